//! The log of `serve` on standard error: events of `tracing`.

use std::io;

use tracing_subscriber::filter::LevelFilter;

use crate::args::{LogArguments, LogFormat, LogLevel};

/// Starts the log of this process.
pub(super) fn begin(arguments: &LogArguments) {
    let level = match arguments.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    // A terminal that is closed is no reason to end.
    let all = tracing_subscriber::fmt()
        .with_target(false)
        .with_max_level(level)
        .with_writer(io::stderr)
        .log_internal_errors(false);
    let begun = match arguments.log_format {
        LogFormat::Text => all.with_ansi(false).try_init(),
        LogFormat::Json => all.json().flatten_event(true).try_init(),
    };
    begun.expect("a process serves once");
}
