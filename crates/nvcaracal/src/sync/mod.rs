//! What threads of this crate share and wait with.
//!
//! In ordinary builds these are the standard library's own items, and the system's futex. With the
//! feature `shuttle`, which no ordinary build has, they are those of a schedule explorer: another
//! thread may run before each operation, and threads that wait for ever are found.

pub(crate) mod event_count;
#[cfg(all(not(feature = "shuttle"), not(target_os = "linux")))]
mod futex_elsewhere;
#[cfg(all(not(feature = "shuttle"), target_os = "linux"))]
mod futex_linux;
#[cfg(not(feature = "shuttle"))]
mod plain;
#[cfg(not(feature = "shuttle"))]
pub(crate) use plain::*;

#[cfg(feature = "shuttle")]
mod explored;
#[cfg(feature = "shuttle")]
pub(crate) use explored::*;
