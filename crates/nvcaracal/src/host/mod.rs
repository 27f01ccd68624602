//! The engine on whichever device it runs, and copies of it.

mod archive_room;
pub(crate) mod driver;
pub(crate) mod earlier;
pub(crate) mod open;
pub(crate) mod repeat;
