//! Progress bars on standard error, for people only.

use std::borrow::Cow;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Whether to show progress and notes on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bars where standard error is a terminal, notes always.
    Shown,
    /// Notes only.
    Hidden,
}

impl Progress {
    /// Starts a bar of `length` steps of a unit.
    #[must_use]
    pub fn bar(self, what: &'static str, length: u64, unit: &'static str) -> Bar {
        let visible = self == Self::Shown && std::io::stderr().is_terminal();
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        let template = format!(
            "{{prefix:>8}} [{{bar:40}}] {{pos}}/{{len}} {unit}, {{elapsed}} elapsed, {{eta}} left \
             {{msg}}"
        );
        // A constant that is right once is always right; a bar without style is no reason to fail.
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what);
        Bar(bar)
    }

    /// Says something on standard error that the person should know now.
    pub fn note(self, text: &str) {
        eprintln!("note: {text}");
    }
}

/// A running bar; removed when dropped.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// One more step is done.
    pub fn step(&self, message: impl Into<Cow<'static, str>>) {
        self.0.set_message(message);
        self.0.inc(1);
    }

    /// What is being done now.
    pub fn say(&self, message: impl Into<Cow<'static, str>>) {
        self.0.set_message(message);
        self.0.tick();
    }

    /// So many steps are done.
    pub fn set(&self, steps: u64, message: impl Into<Cow<'static, str>>) {
        self.0.set_message(message);
        self.0.set_position(steps);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
