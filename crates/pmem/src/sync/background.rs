//! Locks of background threads: writers of files, readers of pages. No schedule explorer runs these
//! threads; the thread sanitizer sees the order of what the locks protect.

#[cfg(feature = "races")]
pub use super::watched::{Condvar, Mutex, MutexGuard};
#[cfg(not(feature = "races"))]
pub use std::sync::{Condvar, Mutex, MutexGuard};
