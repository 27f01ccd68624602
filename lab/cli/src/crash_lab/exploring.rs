//! What every exploration of the crash lab does: it ends in time or on a signal, shows how far it
//! is, and says by its exit code whether it found something.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bench::{Bar, Progress, Stop};
use cli::output::{Done, Failure};
use cli::signals::Signals;

use crate::args::SimArguments;

const SECONDS_DEFAULT: u64 = 60;

/// An exploration that is going on.
pub(super) struct Exploring {
    started: Instant,
    seconds: Option<u64>,
    stop: Stop,
    /// Until it is hidden.
    bar: Mutex<Option<Bar>>,
}

impl Exploring {
    /// Begins one of so many `cases` (of this `unit`), or of the time that is asked for.
    pub(super) fn begin(
        arguments: &SimArguments,
        cases: Option<u64>,
        unit: &'static str,
        signals: &Signals,
    ) -> Self {
        let seconds = arguments.seconds.or(cases.is_none().then_some(SECONDS_DEFAULT));
        let (length, unit) = match (seconds, cases) {
            (Some(seconds), _) => (seconds, "s"),
            (None, cases) => (cases.unwrap_or(1), unit),
        };
        let progress = if arguments.no_progress { Progress::Hidden } else { Progress::Shown };
        Self {
            started: Instant::now(),
            seconds,
            stop: signals.stop(),
            bar: Mutex::new(Some(progress.bar("sim", length, unit))),
        }
    }

    /// Whether the time is over, or a signal came.
    pub(super) fn is_over(&self) -> bool {
        let limit = self.seconds.map(Duration::from_secs);
        self.interrupted() || limit.is_some_and(|limit| self.started.elapsed() >= limit)
    }

    /// Whether a signal came.
    pub(super) fn interrupted(&self) -> bool {
        self.stop.asked()
    }

    /// Seconds since it began.
    pub(super) fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// So many cases are done.
    pub(super) fn show(&self, cases: u64, message: String) {
        let done = self.seconds.map_or(cases, |_| self.started.elapsed().as_secs());
        if let Ok(bar) = self.bar.lock()
            && let Some(bar) = &*bar
        {
            bar.set(done, message);
        }
    }

    /// Takes the progress bar away, before anything is printed.
    pub(super) fn hide(&self) {
        if let Ok(mut bar) = self.bar.lock() {
            *bar = None;
        }
    }

    /// How it ends, after a report that has said what there is to say.
    pub(super) fn end(&self, violations: u64, signals: &Signals) -> Done {
        let failed = |code| Err(Failure { messages: Vec::new(), code });
        match (violations, self.interrupted()) {
            (0, false) => Ok(()),
            (0, true) => failed(signals.exit_code()),
            _ => failed(1),
        }
    }
}
