//! Memory that knows what could be left of it after a power cut.
//!
//! The model, for persistent memory behind write-back caches:
//!
//! 1. After a power cut each cache line holds some *prefix* of the ordinary stores made to it since
//!    it was last durable, in any combination across lines. Nothing tears inside an aligned 8-byte
//!    word.
//! 2. Non-temporal stores arrive in any order, by 8-byte words, until their port's fence.
//! 3. A line's stores become durable when a port has flushed the line after them *and the same
//!    port* has fenced after that. Another port's fence does nothing (O-22).
//! 4. Whatever arrived is applied in program order: an older store never overwrites a newer one.
//! 5. Growth is durable at once (O-56).
//! 6. A killed process loses no store: the next one sees all of them. But what was not durable is
//!    still not, and only a flush and a fence of the next process make it so.
//!
//! A run can be cut at any numbered event (store, flush or fence): the run goes on in memory, but
//! the history stops there. An [`Adversary`] then chooses what the device holds.
//!
//! There are two ways to use the model. [`Crash`] is a device that can be cut at one event of a
//! run. [`Traced`] is one that only records a [`Trace`] of a run; a [`Replay`] then goes through
//! the trace and gives what is left at any event, for any adversary, without another run.

mod adversary;
mod contents;
mod device;
mod history;
mod replay;
mod trace;
mod traced;

pub use adversary::{
    Adversary, AllNewest, AllOldest, Numbered, OneLineEarly, OneLineLate, Random, SpaceKind,
    UndurableLine,
};
pub use contents::Contents;
pub use device::Crash;
pub use replay::{Left, Replay};
pub use trace::{Event, EventKind, Killed, Trace};
pub use traced::Traced;
