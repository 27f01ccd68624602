//! The loop: make a case, try it, make it smaller if it fails.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::edit::{Editor, Files, describe};
use super::log::LogSubject;
use super::store::StoreSubject;
use super::subject::{Case, Subject, Verdict};
use crate::history::Random;

/// Cases of one subject, before another one is made.
const CASES_PER_SUBJECT: u64 = 40;
/// Nothing takes nearly as long: a case that does has no end.
const PATIENCE: Duration = Duration::from_secs(120);
/// The process may grow by so much in one case: the files have a few megabytes.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// What is fuzzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The files of a store on the `file` device: meta, data, table, log.
    Store,
    /// The input log alone.
    Log,
}

/// What was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Cases.
    pub cases: u64,
    /// Refused with an error.
    pub refused: u64,
    /// Came up with the right state.
    pub right: u64,
    /// Came up with the right state of an earlier epoch than the last answered.
    pub older: u64,
    /// Came up with a state that was forged together with its checksums.
    pub forged: u64,
}

impl Report {
    /// Adds what another run tried.
    pub fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.refused += other.refused;
        self.right += other.right;
        self.older += other.older;
        self.forged += other.forged;
    }

    fn count(&mut self, verdict: Verdict) {
        self.cases += 1;
        let counter = match verdict {
            Verdict::Refused => &mut self.refused,
            Verdict::Right => &mut self.right,
            Verdict::Older => &mut self.older,
            Verdict::Forged => &mut self.forged,
        };
        *counter += 1;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cases: {} refused, {} right, {} of an earlier epoch, {} forged",
            self.cases, self.refused, self.right, self.older, self.forged
        )
    }
}

/// A case that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Of the run.
    pub seed: u64,
    /// Number of the case in the run.
    pub case: u64,
    /// What went wrong.
    pub what: String,
    /// The smallest changes that were found to do it.
    pub edits: String,
    /// Where the changed files are.
    pub saved: Option<PathBuf>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, case, what, edits, saved } = self;
        write!(f, "fuzz seed {seed}, case {case}: {what}; by {edits}")?;
        match saved {
            Some(dir) => write!(f, "; saved in {}", dir.display()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// Tries so many cases. The same seed tries the same ones.
///
/// # Errors
/// The first case that failed, made smaller and saved.
pub fn run(target: Target, seed: u64, iterations: u64) -> Result<Report, Failure> {
    let (tell, told) = channel();
    let thread = std::thread::spawn(move || {
        let mut random = Random::new(seed);
        let mut report = Report::default();
        while report.cases < iterations {
            let made = subject(target, &mut random);
            let subject = made.map_err(|what| failure(seed, report.cases, what))?;
            for _ in 0..CASES_PER_SUBJECT.min(iterations - report.cases) {
                let case = subject.case(&mut random);
                let verdict = one(subject.as_ref(), &case)
                    .map_err(|what| shrunk(subject.as_ref(), case, seed, report.cases, what))?;
                report.count(verdict);
                // The receiver is gone only if a case took too long.
                let _ = tell.send(report.cases);
            }
        }
        Ok(report)
    });
    let mut cases = 0;
    loop {
        match told.recv_timeout(PATIENCE) {
            Ok(done) => cases = done,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                return Err(failure(seed, cases, "the case does not end".into()));
            }
        }
    }
    thread.join().unwrap_or_else(|_| Err(failure(seed, cases, "the fuzzer panicked".into())))
}

fn subject(target: Target, random: &mut Random) -> Result<Box<dyn Subject>, String> {
    Ok(match target {
        Target::Store => Box::new(StoreSubject::new(random)?),
        Target::Log => Box::new(LogSubject::new(random)?),
    })
}

fn failure(seed: u64, case: u64, what: String) -> Failure {
    Failure { seed, case, what, edits: String::new(), saved: None }
}

/// Tries one case.
fn one(subject: &dyn Subject, case: &Case) -> Result<Verdict, String> {
    let files = subject.apply(case);
    let before = peak_bytes();
    let result = catch_unwind(AssertUnwindSafe(|| subject.check(&files, case)));
    let grown = peak_bytes().saturating_sub(before);
    if grown > MEMORY_BYTES_MAX {
        return Err(format!("{grown} bytes of memory for files of {} bytes", files.bytes()));
    }
    result.unwrap_or_else(|_| Err("a panic".into()))
}

/// Most memory that the process had; zero where the system does not say. (Address space would say
/// nothing: the engine reserves far more than it uses.)
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// Leaves out what is not needed to fail, and saves what is left.
fn shrunk(subject: &dyn Subject, mut case: Case, seed: u64, number: u64, what: String) -> Failure {
    let mut what = what;
    let mut edit = 0;
    while edit < case.edits.len() {
        let mut smaller = case.clone();
        smaller.edits.remove(edit);
        match one(subject, &smaller) {
            Err(error) => (case, what) = (smaller, error),
            Ok(_) => edit += 1,
        }
    }
    let repaired = if case.repaired { ", checksums made right" } else { "" };
    let edits = format!("{}{repaired}", describe(&case.edits));
    let saved = crate::disk::fast_dir().ok().map(tempfile::TempDir::keep);
    let saved = saved.filter(|dir| subject.apply(&case).write_to(dir).is_ok());
    Failure { seed, case: number, what, edits, saved }
}

/// Hands changed bytes to a decoder, which must come back: of each of `examples`, and bytes that
/// are nothing at all.
///
/// # Errors
/// The bytes with which the decoder panicked, made shorter.
pub fn decode(
    examples: &[Vec<u8>],
    seed: u64,
    iterations: u64,
    decoder: &mut dyn FnMut(&[u8]),
) -> Result<Report, Failure> {
    let mut random = Random::new(seed);
    let mut report = Report::default();
    let mut panics = |bytes: &[u8]| catch_unwind(AssertUnwindSafe(|| decoder(bytes))).is_err();
    while report.cases < iterations {
        let mut bytes = if examples.is_empty() || random.percent(5) {
            (0..random.below(300)).map(|_| random.byte(255)).collect()
        } else {
            let example = &examples[random.below(examples.len() as u64) as usize];
            let mut files = Files([("bytes", example.clone())].into());
            let editor = Editor::new(&files, Files::default());
            editor.edits(&files, &mut random).iter().for_each(|edit| edit.apply(&mut files));
            files.0.remove("bytes").unwrap_or_default()
        };
        if panics(&bytes) {
            while bytes.pop().is_some() && panics(&bytes) {}
            let edits = format!("all of the bytes up to {bytes:02x?}, and some more");
            let what = "the decoder panicked".to_string();
            return Err(Failure { seed, case: report.cases, what, edits, saved: None });
        }
        report.count(Verdict::Refused);
    }
    Ok(report)
}
