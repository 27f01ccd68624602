//! Power cuts of a real file system under databases that callers use.
//!
//! A database runs in a process of its own on a small file system, whose disk is a loop device. At
//! a random moment (while it is made, opened, used, closed or recovers) the file system ends
//! without writing anything more, the process is killed, and the file system is mounted again.
//! Then the database must open, find itself whole, and hold every call that was answered once, and
//! every other one whole or not at all. It goes on with the same files, so that damage adds up.
//!
//! - `calls`: what callers do, as a function of the caller and the number of the call;
//! - `verify`: what a database must therefore hold;
//! - `protocol`: what its process is told, and what it says;
//! - `process`: that process;
//! - `volume`: the file system, its disk, and how both end;
//! - `running`: that process as the one that cuts the power hears it;
//! - `store`: a database on a volume, from cut to cut;
//! - `settings`: what is cut, and how often;
//! - `campaign`: cuts of all databases;
//! - `report`: what they came to.

mod calls;
mod campaign;
mod process;
mod protocol;
mod report;
mod running;
mod settings;
mod store;
mod verify;
mod volume;

pub use campaign::cut_power;
pub use process::serve_until_cut;
pub use report::{CutReport, CutRow, Violation, render_cuts};
pub use settings::{CutSettings, Programs};
pub use volume::{FileSystem, why_not};
