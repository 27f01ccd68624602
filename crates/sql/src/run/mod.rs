//! Runs plans: the same code in a call, at a snapshot and in a block, which differ only in their
//! [`Rows`].
//!
//! Effects and answers are those of the canonical order: rows in the order of the primary key,
//! whatever the access path. An error leaves writes behind that must be discarded: run a statement
//! on an [`Overlay`].

mod aggregate;
mod arithmetic;
mod arrays;
mod bits;
mod budget;
mod bytes;
mod cast;
mod change;
mod changes;
mod checks;
mod claimed;
mod compute;
mod constraints;
mod context;
mod deferred;
mod double;
mod entries;
mod evaluate;
mod floats;
mod foreign;
mod formatted;
mod generated;
mod join;
mod joined_change;
mod json;
mod json_change;
mod json_layout;
mod json_parts;
mod json_query;
mod json_text;
mod math;
mod networks;
mod number_text;
mod order;
mod ordered;
mod overlay;
mod pages;
mod pass;
mod path;
mod patterns;
mod predict;
mod queries;
mod random;
mod range;
mod recursion;
mod row_functions;
mod rows;
mod scan;
mod select;
mod sequence;
mod set;
mod similar;
mod statistics;
mod strings;
mod subquery;
mod temporary;
mod texts;
mod times;
mod weight;
mod window;
mod window_frame;
mod write;

pub use budget::bytes_of;
pub use changes::{Effect, Written};
pub(crate) use checks::{check_children, encode_row, passes, value_over};
pub use constraints::check_constraints;
pub use context::{Answer, Context, Limits, Tag};
pub use deferred::{KeyCheck, Side};
pub(crate) use entries::{fill_entry, primary_key, refuse_primary};
pub use overlay::{Buffer, Notice, Overlay, Writes};
pub use pages::Pages;
pub use pass::Pass;
pub use predict::{is_lookup, is_predicted, predict};
pub use random::SEED_BYTES;
pub use rows::{Entry, Memory, Rows, Scan};
pub(crate) use scan::{entry_space_for, space_for};
pub use sequence::STAND_INS;
pub(crate) use sequence::{last_number, sequence_number};
pub use temporary::{TemporaryRows, is_temporary_key};
pub use write::run;
