//! What workers share: atomic words, locks, threads and waiting, for all crates of the engine.
//!
//! In ordinary builds these are the standard library's own items, and threads that stay; the hooks
//! at the end are empty. The feature `races` takes other locks and threads, for the thread
//! sanitizer. Two further features, which no ordinary build has either, put a schedule explorer in
//! between; then the code above runs as it is, under schedules that the explorer chooses:
//! - `shuttle`: seeded random schedules, sequentially consistent. Another thread may run before any
//!   operation on a shared word, a lock or the image.
//! - `loom`: all schedules of a small model, and with them all results that the memory orderings
//!   allow.
//!
//! Shared words lie in mapped memory that starts as zeros, so they must have the standard library's
//! size. The explorers' own atomics are larger; what is here keeps the size.
//!
//! [`background`] has the locks of threads that no explorer runs.

#[cfg(all(feature = "shuttle", feature = "loom"))]
compile_error!("one schedule explorer at a time: `shuttle` or `loom`");

#[cfg(not(any(feature = "shuttle", feature = "loom")))]
mod plain;
#[cfg(not(any(feature = "shuttle", feature = "loom")))]
pub use plain::*;

#[cfg(not(any(feature = "shuttle", feature = "loom", feature = "races")))]
mod resident;
#[cfg(not(any(feature = "shuttle", feature = "loom", feature = "races")))]
pub use resident::WorkerThreads;

#[cfg(any(feature = "shuttle", feature = "loom", feature = "races"))]
mod scoped;
#[cfg(any(feature = "shuttle", feature = "loom", feature = "races"))]
pub use scoped::WorkerThreads;

mod patience;
pub use patience::Patience;

pub mod background;

#[cfg(feature = "races")]
mod watched;

#[cfg(all(feature = "shuttle", not(feature = "loom")))]
mod random;
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
pub use random::*;

#[cfg(feature = "loom")]
mod exhaustive;
#[cfg(feature = "loom")]
pub use exhaustive::*;
