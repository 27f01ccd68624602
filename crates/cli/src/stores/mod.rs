//! The commands about a store.

mod backup;
mod check;
mod compact;
mod inspect;
mod recover;
mod repair;
mod salvage;

use crate::args::StoreCommand;
use crate::output::Done;
use crate::rows;

pub use recover::{is_recovery, show_recovered};

/// Runs a command.
///
/// # Errors
/// What is wrong with the store or the command line.
pub fn run(command: &StoreCommand) -> Done {
    match command {
        StoreCommand::Check(command) => check::run(command),
        StoreCommand::Inspect(command) => inspect::run(command),
        StoreCommand::Dump(command) => rows::dump(command),
        StoreCommand::Load(command) => rows::load(command),
        StoreCommand::Backup(command) => backup::backup(command),
        StoreCommand::Restore(command) => backup::restore(command),
        StoreCommand::Compact(command) => compact::run(command),
        StoreCommand::Recover(command) => recover::run(command),
    }
}
