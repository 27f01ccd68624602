//! NVCaracal by its library beside embedded databases for Rust, on the same disk and in the same
//! run: how many durable transactions callers get through, how long they wait, and what it takes.
//!
//! Each caller is a thread that runs a transaction of a few rows, waits until that is durable, and
//! goes on. Each database runs in a process of its own, whose processor time and written bytes are
//! therefore its own, and which may have a limit of memory. What was chosen for each database is in
//! its file; where it allows several ways, the fastest one that is durable. At the end each is
//! closed and opened again, and must hold what it answered, row by row.

#![forbid(unsafe_code)]

mod compare;
mod cuts;
mod databases;
mod disk;
mod host;
mod link;
mod order;
mod peer;
mod report;
mod settings;
mod value;

pub use cuts::{
    CutReport, CutRow, CutSettings, FileSystem, Programs, Violation, cut_power, render_cuts,
    serve_until_cut, why_not,
};
pub use databases::Database;
pub use host::serve;
pub use peer::{Error, Result};
pub use report::{AtEnd, Figures, Report, Row, render};
pub use settings::{Chosen, Load, Memory, Settings};

use std::process::Command;

use link::{Child, Link};

/// Runs the comparison; `tell` hears what comes next. `program` makes a process that calls
/// [`serve`] with its standard input and output.
///
/// # Errors
/// If the settings cannot be, a directory cannot be written, a database fails, or one of them does
/// not hold what it has answered.
pub fn run(
    settings: &Settings,
    program: &dyn Fn() -> Command,
    tell: &mut dyn FnMut(&str),
) -> Result<Report> {
    let room = tempfile::Builder::new().prefix("peers-").tempdir_in(&settings.directory);
    let room = room.map_err(|error| Error::of(&settings.directory.display().to_string(), error))?;
    let mut connect = |database: Database| {
        let child = Child::start(database.name(), program(), settings.memory.as_ref())?;
        Ok(Box::new(child) as Box<dyn Link>)
    };
    compare::compare(settings, room.path(), &mut connect, tell)
}

#[cfg(test)]
mod tests;
