//! LISTEN and NOTIFY: what a call tells listeners is a part of its answer, and goes out in the
//! serial order of the calls, when they are durable.
//!
//! 1. A call that notifies is known here when it has been submitted (`bus`).
//! 2. Its answer has its place in the serial order, and what it tells (`form`). Answers are there
//!    in that order: if one is there, those of all earlier calls are.
//! 3. The task that finds one there looks at those of all calls that are known by then, and passes
//!    on what they tell, up to the latest that it has found first.
//! 4. Each session that listens has a list of what it was not sent yet (`mailbox`).
//!
//! Nothing of this is in the log: a replay makes the answers again, and they are not read.

mod bus;
pub(super) mod form;
mod mailbox;

pub(super) use bus::Bus;
pub(crate) use mailbox::{Mailbox, Notification};
