//! The process of a database while it runs, as the one that cuts the power sees it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::protocol::{Phase, Said, Task};
use super::verify::{Found, Known};
use crate::peer::{Error, Result};

/// How long a database may take for anything that takes much less.
const PATIENCE: Duration = Duration::from_secs(120);

/// When the power is cut.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moment {
    /// So long after the open began.
    AfterOpening(Duration),
    /// So long after callers began.
    AfterRunning(Duration),
    /// Never: the process ends by itself.
    Never,
}

/// How the time until the moment ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The moment has come.
    Moment,
    /// What the database holds is not right.
    Wrong,
    /// The process has ended or failed.
    Ended,
    /// It says nothing for too long.
    Hangs,
}

/// What the process has said.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) phase: Phase,
    /// What is known of each caller.
    pub(super) known: Vec<Known>,
    /// Calls that were answered meanwhile.
    pub(super) calls: u64,
    pub(super) is_loaded: bool,
    /// This process has made the rows.
    pub(super) is_made: bool,
    /// It found some of them only, which it was never said to have.
    pub(super) is_partial: bool,
    pub(super) found: Option<Found>,
    pub(super) failed: Option<Error>,
    /// How long the first open took.
    pub(super) opened_in: Option<Duration>,
    opening: Option<Instant>,
    running: Option<Instant>,
}

/// A process; killed when dropped.
#[derive(Debug)]
pub(super) struct Running {
    process: Child,
    said: Receiver<Said>,
    pub(super) heard: Heard,
}

impl Running {
    /// Starts it, with a file for what it says to people.
    pub(super) fn start(mut program: Command, task: &Task, errors: &Path) -> Result<Self> {
        let failed = |error: &dyn std::fmt::Display| Error::of(task.database.name(), error);
        let errors = File::create(errors).map_err(|error| failed(&error))?;
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut process = program.spawn().map_err(|error| failed(&error))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (mut orders, answers) = pipes.ok_or_else(|| failed(&"its process has no pipes"))?;
        let (say, said) = channel();
        // Ends with the process. A line that was cut was not said.
        std::thread::spawn(move || {
            for line in BufReader::new(answers).lines().map_while(std::io::Result::ok) {
                let Ok(said) = serde_json::from_str(&line) else { break };
                if say.send(said).is_err() {
                    break;
                }
            }
        });
        let heard = Heard {
            phase: Phase::Opening,
            known: task.known.clone(),
            calls: 0,
            is_loaded: task.is_loaded,
            is_made: false,
            is_partial: false,
            found: None,
            failed: None,
            opened_in: None,
            opening: None,
            running: None,
        };
        let running = Self { process, said, heard };
        let mut line = serde_json::to_vec(task).map_err(|error| failed(&error))?;
        line.push(b'\n');
        orders.write_all(&line).map_err(|error| failed(&error))?;
        Ok(running)
    }

    /// Hears what it says until the moment has come.
    pub(super) fn until(&mut self, moment: Moment) -> Until {
        let started = Instant::now();
        loop {
            let at = match moment {
                Moment::AfterOpening(after) => self.heard.opening.map(|from| from + after),
                Moment::AfterRunning(after) => self.heard.running.map(|from| from + after),
                Moment::Never => None,
            };
            let end = at.unwrap_or(started + PATIENCE);
            let wait = end.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return if at.is_some() { Until::Moment } else { Until::Hangs };
            }
            match self.said.recv_timeout(wait) {
                Ok(said) => self.heard.hear(said),
                Err(RecvTimeoutError::Disconnected) => return Until::Ended,
                // The time is over.
                Err(RecvTimeoutError::Timeout) => continue,
            }
            if self.heard.is_wrong() {
                return Until::Wrong;
            }
            if self.heard.failed.is_some() {
                return Until::Ended;
            }
        }
    }

    /// Stops all of its threads; what the system does for them goes on.
    pub(super) fn freeze(&self) -> Result<()> {
        let pid = Pid::from_child(&self.process);
        let failed = |error| Error::of("a process that is stopped", error);
        kill_process(pid, Signal::STOP).map_err(failed)?;
        let until = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), until).map_err(failed)?;
        Ok(())
    }

    /// Hears what it says, for so long or until it has ended.
    pub(super) fn hear_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let wait = until.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(wait) {
                Ok(said) => self.heard.hear(said),
                Err(_) => return,
            }
            if wait.is_zero() {
                return;
            }
        }
    }

    /// Kills it, and hears all that it had said; how it ended, if it had ended by itself.
    pub(super) fn end(mut self) -> (Heard, String) {
        // One that has ended already is no error.
        let _ = self.process.kill();
        let status = self.process.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
        while let Ok(said) = self.said.recv() {
            self.heard.hear(said);
        }
        let Self { heard, .. } = &mut self;
        let nothing = Heard { known: Vec::new(), found: None, failed: None, ..*heard };
        (std::mem::replace(heard, nothing), status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Heard {
    fn hear(&mut self, said: Said) {
        let now = Instant::now();
        match said {
            Said::Phase(phase) => {
                self.phase = phase;
                match phase {
                    Phase::Opening => drop(self.opening.get_or_insert(now)),
                    Phase::Checking => self.opened_in = self.opening.map(|from| now - from),
                    Phase::Running => drop(self.running.get_or_insert(now)),
                    Phase::Closing => {}
                }
            }
            Said::Loaded => (self.is_loaded, self.is_made) = (true, true),
            Said::Partial => self.is_partial = true,
            Said::Verified(found) => {
                if found.is_right() {
                    for (known, &count) in self.known.iter_mut().zip(&found.counts) {
                        known.shown = count;
                    }
                    self.is_loaded = true;
                }
                self.found = Some(found);
            }
            Said::Answered { caller, number } => {
                self.known[caller as usize].answered = number;
                self.calls += 1;
            }
            Said::Failed(error) => self.failed = Some(error),
        }
    }

    fn is_wrong(&self) -> bool {
        self.found.as_ref().is_some_and(|found| !found.is_right())
    }
}
