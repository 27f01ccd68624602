//! One `bench` command in a process of its own, so that no run sees what another one left in
//! memory.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use bench::Stop;
use serde_json::Value;

/// How often a run is asked whether it has ended, and whether a signal came.
const PAUSE: Duration = Duration::from_millis(20);

/// How a run ended.
pub(crate) enum Ended {
    /// With its JSON.
    Report(Value),
    /// A signal came first, to this process, which ended the run.
    Stopped,
    /// Otherwise; the first error that it told.
    Failed(ExitStatus, String),
}

/// Makes a run: `words` follow `bench`.
///
/// # Errors
/// The process cannot be started or waited for, or its JSON is none.
pub(crate) fn run(program: &Path, words: &[String], stop: &Stop) -> Result<Ended, String> {
    let mut command = Command::new(program);
    command.arg("bench").args(words).args(["--json", "-"]);
    // A signal from the terminal is for this process alone, which then ends the run.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (report, said) = (read_beside(child.stdout.take()), read_beside(child.stderr.take()));
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if stop.asked() => {
                // It is in memory and has nothing to close.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(Ended::Stopped);
            }
            None => thread::sleep(PAUSE),
        }
    };
    let text = |read: Reading| read.join().unwrap_or_default();
    if !status.success() {
        return Ok(Ended::Failed(status, first_error(&text(said)).to_string()));
    }
    serde_json::from_str(&text(report)).map(Ended::Report).map_err(|error| error.to_string())
}

/// What a process says, once it has ended.
type Reading = thread::JoinHandle<String>;

/// Reads on a thread of its own, so that a writer never waits.
fn read_beside(pipe: Option<impl Read + Send + 'static>) -> Reading {
    thread::spawn(move || {
        let mut said = Vec::new();
        // What cannot be read is missed where it is needed.
        pipe.map(|mut pipe| pipe.read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// The first line of what a run said that is an error.
fn first_error(said: &str) -> &str {
    let line = said.lines().find(|line| line.starts_with("error: "));
    line.unwrap_or("it did not say why")
}
