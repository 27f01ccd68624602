//! Fuzzing with any toolchain: seeded changes of bytes that another program may have changed, and
//! what must become of them.
//!
//! The changes know the structures: they prefer bytes that are in use, overwrite whole words with
//! values that break sums and sizes, move blocks about, mix moments of one file; and half of the
//! time they put the checksums right afterwards, so that the code behind the checksum is reached.
//!
//! | target | bytes | must be |
//! |---|---|---|
//! | [`Target::Store`] | files of a `file:DIR` store | opened with the right state, or refused |
//! | [`Target::Log`] | the input log's space | read as it was written, or refused |
//! | [`decode`] | anything that the caller decodes | decoded or refused |
//!
//! Never a panic, never an open without end, never memory out of all proportion. A case that was
//! made right again with new checksums is forged: then another state is no fault, but the
//! rest holds. A failing case is made smaller before it is reported.

mod checksums;
mod edit;

mod log;
mod pages;
mod store;
mod subject;

mod run;

pub use pages::StoredImage;
pub use run::{Failure, Report, Target, decode, run};
