//! `bench peers`: callers of the library beside those of other embedded databases.

use std::io::{stdin, stdout};
use std::process::Command;
use std::time::Duration;

use bench::Progress;
use cli::output::{Done, Failure, JsonTarget};
use peers::{Chosen, Database, Load, Memory, Settings, render};

use crate::args::PeersArguments;

/// Runs a `bench peers` command.
pub(super) fn run(arguments: &PeersArguments) -> Done {
    let settings = settings(arguments)?;
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::new(format!("this program: {error}")))?;
    let process = || {
        let mut command = Command::new(&program);
        command.args(["bench", "peer-process"]);
        command
    };
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let progress = if arguments.no_progress { Progress::Hidden } else { Progress::Shown };
    let bar = progress.bar("peers", settings.steps(), "steps");
    let report = peers::run(&settings, &process, &mut |what| bar.step(what.to_string()));
    drop(bar);
    let report = report.map_err(|error| Failure::new(error.to_string()))?;
    target.write(&report, || render(&report))
}

/// Is the process of one database.
pub(super) fn serve() -> Done {
    peers::serve(stdin().lock(), stdout()).map_err(|error| Failure::new(error.to_string()))
}

fn settings(arguments: &PeersArguments) -> Result<Settings, Failure> {
    let is_quick = arguments.quick;
    let seconds = arguments.seconds.unwrap_or(if is_quick { 2.0 } else { 1.0 });
    if !(0.01..=3600.0).contains(&seconds) {
        return Err(Failure::usage(format!("--seconds is {seconds}, must be from 0.01 to 3600")));
    }
    let databases = match &arguments.database[..] {
        [] => Database::built(),
        some => some.to_vec(),
    };
    let group = arguments.cgroup.clone();
    let settings = Settings {
        directory: arguments.directory.clone().unwrap_or_else(|| ".".into()),
        databases,
        time: Duration::from_secs_f64(seconds),
        rounds: arguments.rounds.unwrap_or(if is_quick { 1 } else { 3 }),
        rows: rows(arguments),
        value_bytes: arguments.value_bytes as usize,
        operations: arguments.operations as usize,
        loads: loads(arguments),
        memory: arguments.memory.map(|bytes| Memory { bytes, group }),
    };
    settings.check().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(settings)
}

/// Bytes of a key.
const KEY_BYTES: u32 = 8;

fn rows(arguments: &PeersArguments) -> u64 {
    match (arguments.data, arguments.memory) {
        (Some(factor), Some(memory)) => {
            let row_bytes = f64::from(KEY_BYTES + arguments.value_bytes);
            (factor * memory as f64 / row_bytes).ceil() as u64
        }
        _ => arguments.rows,
    }
}

/// Each number of callers with each share of reads and each choice of rows.
fn loads(arguments: &PeersArguments) -> Vec<Load> {
    let or = |given: &[u64], quick: &[u64], full: &[u64]| match given {
        [] if arguments.quick => quick.to_vec(),
        [] => full.to_vec(),
        given => given.to_vec(),
    };
    let clients = or(&arguments.clients, &[1, 64], &[1, 64]);
    let read_ratios = or(&arguments.read_ratio, &[0], &[10, 5, 0]);
    let mut loads = Vec::new();
    for rows in chosen(arguments) {
        // Readers of the same rows do not wait for each other.
        let is_hot = matches!(rows, Chosen::Hot(_));
        for &read_ratio in read_ratios.iter().filter(|ratio| **ratio < 10 || !is_hot) {
            let load = |&clients: &u64| Load { clients: clients as usize, read_ratio, rows };
            loads.extend(clients.iter().map(load));
        }
    }
    loads
}

fn chosen(arguments: &PeersArguments) -> Vec<Chosen> {
    let most = rows(arguments);
    match &arguments.hot[..] {
        [] if arguments.quick => vec![Chosen::All],
        [] => {
            let fit = |rows: &u64| (arguments.operations..=most).contains(rows);
            let hot = [10, 1].into_iter().filter(fit).map(Chosen::Hot);
            [Chosen::All].into_iter().chain(hot).collect()
        }
        some => some.to_vec(),
    }
}
