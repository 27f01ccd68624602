//! `power-cuts`: power cuts of a real file system under the library and other databases.

use std::io::{stdin, stdout};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::Progress;
use cli::output::{Done, Failure, JsonTarget};
use cli::signals::Signals;
use peers::{CutSettings, Database, Programs, cut_power, render_cuts, why_not};

use super::crash::new_seed;
use crate::args::{AnyOf, PowerCutArguments};

/// Memory that is a file system, where there is one.
const MEMORY: &str = "/dev/shm";

/// Runs a `power-cuts` command.
pub(crate) fn run(arguments: &PowerCutArguments) -> Done {
    if let Some(why) = why_not(arguments.file_system) {
        return Err(Failure::new(why));
    }
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::new(format!("this program: {error}")))?;
    if !arguments.own_mounts {
        return Err(with_own_mounts(&program));
    }
    let signals = Signals::listen()?;
    let settings = settings(arguments);
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let progress = if arguments.no_progress { Progress::Hidden } else { Progress::Shown };
    let steps = settings.cuts * settings.databases.len() as u64;
    let bar = progress.bar("cuts", steps, "cuts");
    let process = || {
        let mut command = Command::new(&program);
        // A signal from the terminal is for this process alone, which then ends that one.
        command.arg("power-cut-process").process_group(0);
        command
    };
    let check = |store: &Path| {
        let mut command = Command::new(&program);
        command.arg("check").arg(store).process_group(0);
        command
    };
    let programs = Programs { process: &process, check: &check };
    let steps = AtomicU64::new(0);
    let mut tell = |what: &str| {
        bar.set(steps.fetch_add(1, Ordering::Relaxed) + 1, what.to_string());
    };
    let report = cut_power(&settings, &programs, &signals.stop(), &mut tell);
    drop(bar);
    let report = report.map_err(|error| Failure::new(error.to_string()))?;
    target.write(&report, || render_cuts(&report))?;
    let failed = |code| Err(Failure { messages: Vec::new(), code });
    // What others lose is a result.
    let mut own = report.rows.iter().filter(|row| row.database == Database::Nvcaracal);
    match (own.all(|row| row.is_right()), report.interrupted) {
        (false, _) => failed(1),
        (true, true) => failed(signals.exit_code()),
        (true, false) => Ok(()),
    }
}

/// Is the process of one database.
pub(crate) fn serve() -> Done {
    let served = peers::serve_until_cut(stdin().lock(), stdout());
    served.map_err(|error| Failure::new(error.to_string()))
}

/// Begins this command again, with mounts that no other process sees and that end with it, however
/// it ends. Returns only if that fails.
fn with_own_mounts(program: &Path) -> Failure {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private"]).arg(program);
    unshare.args(std::env::args_os().skip(1)).arg("--own-mounts");
    Failure::new(format!("mounts of its own: unshare: {}", unshare.exec()))
}

fn settings(arguments: &PowerCutArguments) -> CutSettings {
    let memory = || match Path::new(MEMORY).is_dir() {
        true => PathBuf::from(MEMORY),
        false => std::env::temp_dir(),
    };
    let databases = arguments.database.iter().flat_map(|of| match of {
        AnyOf::All => Database::built(),
        AnyOf::One(database) => vec![*database],
    });
    CutSettings {
        directory: arguments.directory.clone().unwrap_or_else(memory),
        databases: databases.collect(),
        cuts: arguments.cuts,
        seed: arguments.seed.unwrap_or_else(|| new_seed() & u64::from(u32::MAX)),
        file_system: arguments.file_system,
        is_unsynced: arguments.unsynced,
        keep: arguments.keep.clone(),
    }
}
