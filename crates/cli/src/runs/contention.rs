//! `bench contention`: what few hot rows cost callers of the library.

use bench::Progress;
use bench::contention::{Load, Settings, render, run as measure};

use super::ending::workers;
use crate::args::ContentionArguments;
use crate::output::{Done, JsonTarget};

/// Runs a `bench contention` command.
pub(super) fn run(arguments: &ContentionArguments) -> Done {
    let quick = arguments.quick;
    let load = Load {
        workers: workers(arguments.workers),
        clients: arguments.clients as usize,
        in_flight: arguments.in_flight as usize,
        value_bytes: arguments.value_bytes as usize,
        reads: arguments.reads,
        zipf: arguments.zipf,
        rounds: arguments.rounds.unwrap_or(if quick { 1 } else { 5 }) as usize,
        seconds: arguments.seconds.unwrap_or(if quick { 0.05 } else { 1.0 }),
    };
    let settings = Settings {
        rows: arguments.rows.clone(),
        busy: arguments.busy.iter().map(|&loops| loops as usize).collect(),
        load,
        progress: if arguments.no_progress { Progress::Hidden } else { Progress::Shown },
    };
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let report = measure(&settings)?;
    target.write(&report, || render(&report))
}
