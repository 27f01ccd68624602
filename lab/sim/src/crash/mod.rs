//! Power cuts: whatever the device kept, recovery must find every epoch that was answered, none
//! that was not committed, and nothing in between, and the engine must go on from there.
//!
//! A [`Case`] follows from a seed. Its history runs once, on a device that records every store,
//! flush and fence: that is a *life*. The explorer then goes through the record. At each crash
//! point it lets adversaries choose what the device kept; each such *image* is recovered, checked,
//! and compared with the oracle: the whole state, and every answer of the epochs that were
//! replayed. From some images another life begins: only the recovery, which is cut in its turn,
//! three deep; or the recovery and a hundred epochs more.
//!
//! At a few points the process is *killed* instead: every store stays visible, the store is opened
//! and lives on, and a power cut in that life may take back what was visible and not durable.
//!
//! Nothing here knows how the engine orders its stores; the phases come from its own hook.

mod budget;
mod campaign;
mod case;
mod choices;
mod counts;
mod decide;
mod explore;
mod kill;
mod life;
mod minimise;
mod points;
mod verify;

pub use budget::is_deep;
pub use campaign::{Campaign, Outcome, run, run_as_told};
pub use case::{Case, Grown, Habit, Size, short_batches, shorten};
pub use choices::Choice;
pub use counts::{Counts, Seldom};
pub use decide::Decision;
pub use explore::{Cut, Failure, Options, explore, explore_case};
pub use minimise::minimise;
pub use points::{Class, DEPTH_MAX};
pub use verify::{Violation, ViolationKind};
