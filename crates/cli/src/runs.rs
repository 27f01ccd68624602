//! What commands that run something share: how many workers there are, and how a run ends.

use crate::output::{Done, Failure};
use crate::signals::Signals;

/// As many as asked for, or as there are cores, up to the engine's limit.
pub(crate) fn workers(asked: Option<u64>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    asked.map_or_else(|| cores().min(64), |workers| workers as usize)
}

/// How a run ends that has reported.
pub(crate) fn end(
    problems: &[String],
    workload: &str,
    interrupted: bool,
    signals: &Signals,
) -> Done {
    if !problems.is_empty() {
        let failed = |problem| format!("the consistency check of {workload} failed: {problem}");
        return Err(Failure::all(problems.iter().map(failed).collect()));
    }
    // The report has said what there is to say.
    let messages = Vec::new();
    if interrupted { Err(Failure { messages, code: signals.exit_code() }) } else { Ok(()) }
}
