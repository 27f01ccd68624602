//! `recover`: what the engine alone made is recovered by it, anything else as by `nvcaracal`.

use bench::Maker;
use cli::args::{RecoverArguments, StoreCommand};
use cli::output::Done;
use cli::runs::workers;
use cli::stores::{is_recovery, run as run_store, show_recovered};

/// Runs a `recover` command.
pub(crate) fn run(arguments: RecoverArguments) -> Done {
    if is_recovery(&arguments) {
        let spec = bench::spec_of_path(&arguments.store.path)?;
        if bench::maker_of(&spec)? == Some(Maker::Engine) {
            let summary = lab::recover(&spec, workers(arguments.workers))?;
            return show_recovered(&summary, arguments.store.json);
        }
    }
    run_store(&StoreCommand::Recover(arguments))
}
