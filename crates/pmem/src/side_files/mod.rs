//! Small files beside a store.

mod load_mark;
mod openings;
mod replay_marks;

pub use load_mark::LoadMark;
pub use openings::{Opening, Openings};
pub use replay_marks::{REPLAY_WORDS, ReplayMarks};

pub(crate) use openings::OPENINGS_MAX;
pub(crate) use replay_marks::remove_made;
