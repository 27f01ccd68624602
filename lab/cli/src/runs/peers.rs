//! `bench peers`: callers of the library beside those of other embedded databases.

use std::time::Duration;

use bench::Progress;
use cli::output::{Done, Failure, JsonTarget};
use peers::{Settings, render};

use crate::args::PeersArguments;

/// Runs a `bench peers` command.
pub(super) fn run(arguments: &PeersArguments) -> Done {
    let (seconds, clients) = match arguments.quick {
        true => (2.0, vec![1, 64]),
        false => (8.0, vec![1, 8, 64]),
    };
    let seconds = arguments.seconds.unwrap_or(seconds);
    if !(0.01..=3600.0).contains(&seconds) {
        return Err(Failure::usage(format!("--seconds is {seconds}, must be from 0.01 to 3600")));
    }
    let settings = Settings {
        directory: arguments.directory.clone().unwrap_or_else(|| ".".into()),
        time: Duration::from_secs_f64(seconds),
        rows: arguments.rows,
        clients,
    };
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let progress = if arguments.no_progress { Progress::Hidden } else { Progress::Shown };
    let bar = progress.bar("peers", settings.steps(), "steps");
    let report = peers::run(&settings, &mut |what| bar.step(what.to_string()));
    drop(bar);
    let report = report.map_err(|error| Failure::new(error.to_string()))?;
    target.write(&report, || render(&report))
}
