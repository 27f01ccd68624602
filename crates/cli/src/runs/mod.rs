//! `bench`: settings from options, a place for the store, the run, the result.

mod clients;
mod contention;
mod ending;
mod parameters;
mod place;
mod stream;

use bench::{EngineConfig, Lab, Maker, Progress, Settings, Stop};
use pmem::DeviceSpec;

use crate::args::{BenchCommand, RunArguments};
use crate::output::Done;
use crate::signals::Signals;

pub use clients::{report as report_clients, settings as client_settings};
pub use ending::{end, ending, text_with, workers};
pub use parameters::Options;
pub use place::{check_same, find as find_place};

/// Runs a `bench` command.
pub(crate) fn bench(command: &BenchCommand) -> Done {
    match command {
        BenchCommand::Ycsb(options) => run_workload(options),
        BenchCommand::Smallbank(options) => run_workload(options),
        BenchCommand::Tpcc(options) => run_workload(options),
        BenchCommand::Contention(options) => contention::run(options),
    }
}

fn run_workload<O: Options<Run = RunArguments>>(options: &O) -> Done {
    let arguments = options.run();
    // Wrong options are told before anything is created.
    options.parameters(None).job()?;
    // Before anything is created that a signal might leave behind.
    let signals = Signals::listen()?;
    let progress = progress(arguments);
    let place = find_place(arguments, arguments.device.clone(), Maker::Library, progress)?;
    let parameters = options.parameters(place.stored.as_ref());
    check_same(&place, &parameters)?;
    let job = parameters.job()?;
    let settings = settings(arguments, &place.spec, signals.stop());
    if stream::is_asked_for(arguments) {
        let epochs = arguments.epochs.unwrap_or_else(|| options.default_epochs());
        let asked = stream::Asked { arguments, epochs };
        return stream::run(&job, place, &settings, asked, &signals);
    }
    let clients = clients::settings_or_default(arguments, &place.spec)?;
    report_clients(place, arguments, &signals, |place| {
        bench::run_clients(&job, place, &settings, &clients, None)
    })
}

/// Whether to show progress.
#[must_use]
pub fn progress(arguments: &RunArguments) -> Progress {
    if arguments.no_progress { Progress::Hidden } else { Progress::Shown }
}

/// What options say of the engine.
#[must_use]
pub fn engine_config(arguments: &RunArguments, spec: &DeviceSpec) -> EngineConfig {
    let defaults = EngineConfig::for_device(spec).checkpoint_after(arguments.checkpoint_every);
    EngineConfig {
        workers: workers(arguments.workers),
        cache_bytes: arguments.cache_bytes.unwrap_or(defaults.cache_bytes),
        lab: Lab { cache_epochs: arguments.cache_epochs, ..Lab::default() },
        split_threshold: arguments.split_threshold,
        ..defaults
    }
}

fn settings(arguments: &RunArguments, spec: &DeviceSpec, stop: Stop) -> Settings {
    Settings {
        engine: engine_config(arguments, spec),
        image_limit_bytes: arguments.limits.image_limit_bytes(),
        log_limit_bytes: arguments.limits.log_limit_bytes,
        memory_limit_bytes: arguments.limits.memory_limit_bytes,
        check: !arguments.no_check,
        progress: progress(arguments),
        stop,
        die_at: arguments.die_at.clone(),
    }
}
