//! `bench roofline`: measures the machine instead of the engine.

use bench::Progress;
use cli::output::{Done, JsonTarget};
use cli::runs::workers;
use lab::roofline::{Settings, render};

use crate::args::RooflineArguments;

/// Runs a `bench roofline` command.
pub(super) fn run(arguments: &RooflineArguments) -> Done {
    let settings = Settings {
        memory_mib: arguments.memory_mib,
        workers: workers(arguments.workers),
        directory: arguments.dir.clone().unwrap_or_else(std::env::temp_dir),
        progress: if arguments.no_progress { Progress::Hidden } else { Progress::Shown },
    };
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let report = lab::roofline::run(&settings)?;
    target.write(&report, || render(&report))
}
