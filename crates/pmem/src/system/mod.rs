//! What the operating system gives a process: its identity, memory, locks on files, stacks.

#[cfg_attr(miri, expect(dead_code, reason = "the interpreter has no such memory"))]
pub(crate) mod advice;
pub mod control_group;
pub(crate) mod death;
mod heap;
pub(crate) mod page_faults;
pub mod private;
mod process;
mod regular;
mod shutdown;

mod lock;
mod stack;

pub use heap::{freed_bytes, give_back_freed, keep_little_freed};
pub use process::{Process, in_fork};
pub use shutdown::shut_file_system_down;
pub use stack::{Stack, stack_bytes_with};

pub(crate) use lock::{Locked, Sharing, is_locked};
pub(crate) use regular::open_regular;
