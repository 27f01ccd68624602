//! Runs the real binary.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{BINARY, GOLDEN};

/// How long something may take that takes much less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks whether it has happened.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// What a run of the binary came to.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Exit code; -1 for a signal.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    fn new(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The run must have succeeded.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }

    /// The run must have failed with this code and said all of these; and nobody may see a panic.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, said: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(self.stderr.contains("error: "), "{self:#?}");
        for text in said {
            assert!(self.stderr.contains(text), "{text:?} is not in {self:#?}");
        }
        for word in ["panicked", "backtrace"] {
            assert!(!self.stderr.contains(word), "{self:#?}");
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A command line of the binary, words separated by spaces.
pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command
}

/// Runs a command line.
pub(crate) fn run(line: &str) -> Ran {
    Ran::new(&command(line).output().expect("the binary can be started"))
}

/// Runs a prepared command.
pub(crate) fn run_command(command: &mut Command) -> Ran {
    Ran::new(&command.output().expect("the program can be started"))
}

/// A benchmark in the background; killed when dropped.
pub(crate) struct Background(Child);

impl Background {
    pub(crate) fn start(line: &str) -> Self {
        Self::start_command(command(line).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    pub(crate) fn start_command(command: &mut Command) -> Self {
        Self(command.spawn().expect("the binary can be started"))
    }

    /// Sends a signal; to a process that has ended and was not waited for, it does nothing.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("a process of ours");
    }

    /// How the process ended, if it has.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a process of ours")
    }

    /// Waits for the end. What the process says must fit into a pipe.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Ran {
        let started = Instant::now();
        let status = loop {
            match self.status() {
                Some(status) => break status,
                None => assert!(started.elapsed() < PATIENCE, "the process does not end"),
            }
            std::thread::sleep(PAUSE);
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        if let Some(pipe) = &mut self.0.stdout {
            pipe.read_to_end(&mut stdout).expect("a pipe of ours");
        }
        if let Some(pipe) = &mut self.0.stderr {
            pipe.read_to_end(&mut stderr).expect("a pipe of ours");
        }
        Ran::new(&Output { status, stdout, stderr })
    }

    /// SIGKILL, at once.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("a running process");
        self.0.wait().expect("a killed process");
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a file has at least so many lines.
#[track_caller]
pub(crate) fn wait_for_lines(path: &Path, lines: usize) {
    let started = Instant::now();
    while std::fs::read_to_string(path).map_or(0, |text| text.lines().count()) < lines {
        assert!(started.elapsed() < PATIENCE, "{} stays short", path.display());
        std::thread::sleep(PAUSE);
    }
}

/// A directory of one test.
pub(crate) struct Room(tempfile::TempDir);

impl Room {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path as text, for command lines.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

/// The whole repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a golden file holds; with NVCARACAL_BLESS set it first becomes what was found.
pub(crate) fn golden(name: &str, found: &str) -> String {
    let path = repository().join(GOLDEN).join(name);
    if std::env::var_os("NVCARACAL_BLESS").is_some() {
        std::fs::write(&path, found).expect("a written golden file");
    }
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Small sizes of each workload.
pub(crate) const SMALL: [(&str, &str); 3] = [
    ("ycsb", "--rows 2000 --epoch-size 400"),
    ("smallbank", "--customers 3600 --epoch-size 800"),
    ("tpcc", "--warehouses 1 --mix full --items 300 --customers-per-district 30 --epoch-size 300"),
];
