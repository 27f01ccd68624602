//! What is cut, and with what.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::volume::FileSystem;
use crate::databases::Database;

/// What is cut, and how often.
#[derive(Debug, Clone)]
pub struct CutSettings {
    /// Where images of disks are made, in directories that are removed; memory will do.
    pub directory: PathBuf,
    /// Which databases.
    pub databases: Vec<Database>,
    /// Cuts of each of them.
    pub cuts: u64,
    /// Names the calls and, but for times, the cuts.
    pub seed: u64,
    /// On which file system.
    pub file_system: FileSystem,
    /// Answers do not wait for the disk: such databases must lose some, or the lab is blind.
    pub is_unsynced: bool,
    /// Where the files of databases that are not right are kept, as they were before the open.
    pub keep: PathBuf,
}

/// Programs that run in processes of their own.
pub struct Programs<'p> {
    /// Calls [`serve_until_cut`](crate::serve_until_cut) with its standard input and output.
    pub process: &'p dyn Fn() -> Command,
    /// Checks the store of the library in a directory; a failure if there is damage.
    pub check: &'p dyn Fn(&Path) -> Command,
}

/// What a round depends on, of all that the campaign has.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) settings: &'c CutSettings,
    pub(super) programs: &'c Programs<'c>,
}
