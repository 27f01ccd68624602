//! Texts of counts, for operators.

use std::fmt;
use std::time::Duration;

use super::stats::Stats;

/// Shows the counts in lines: the place of the database, its calls, its queue, latencies, an error
/// of the archive if there is one, and a table of the procedures.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, checkpoint_epoch, epochs, .. } = self;
        write!(f, "{:<16}{epoch}, checkpoint of epoch {checkpoint_epoch}", "epoch")?;
        let mut line = |name: &str, what: fmt::Arguments<'_>| write!(f, "\n{name:<16}{what}");
        line("rows", format_args!("{}", self.rows))?;
        line("state hash", format_args!("{:032x}", self.state_hash))?;
        line("epochs run", format_args!("{epochs}"))?;
        let Self { committed, aborted, failed, deferred, refused, .. } = self;
        let calls = format_args!(
            "{committed} committed, {aborted} aborted, {failed} failed, {deferred} deferred, \
             {refused} refused"
        );
        line("calls", calls)?;
        let Self { queued_calls, queued_bytes, blocked_submitters, deferred_calls, .. } = self;
        let waiting = format_args!(
            "{queued_calls} calls with {queued_bytes} bytes, {deferred_calls} deferred calls, \
             {blocked_submitters} blocked submitters"
        );
        line("waiting now", waiting)?;
        let (half, most) = (ms(self.latency_p50), ms(self.latency_p99));
        line("epoch latency", format_args!("p50 {half:.3} ms, p99 {most:.3} ms"))?;
        if let Some(error) = &self.archive_error {
            line("archive fails", format_args!("{error}"))?;
        }
        self.show_procedures(f)
    }
}

impl Stats {
    /// Writes the table of the procedures, if there are any.
    fn show_procedures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(longest) = self.procedures.iter().map(|of| of.name.len()).max() else {
            return Ok(());
        };
        let width = longest.max(14) + 2;
        let counts = ["committed", "aborted", "failed", "deferred", "slow"];
        let latencies = ["p50 ms", "p99 ms", "p999 ms"];
        write!(f, "\n{:<width$}", "procedure")?;
        counts.iter().chain(&latencies).try_for_each(|name| write!(f, "{name:>12}"))?;
        for of in &self.procedures {
            write!(f, "\n{:<width$}", of.name)?;
            for count in [of.committed, of.aborted, of.failed, of.deferred, of.slow] {
                write!(f, "{count:>12}")?;
            }
            for latency in [of.latency_p50, of.latency_p99, of.latency_p999] {
                write!(f, "{:>12.3}", ms(latency))?;
            }
        }
        Ok(())
    }
}

/// Milliseconds of a duration.
fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::procedures::ProcedureStats;

    #[test]
    fn stats_are_aligned_lines() {
        let pay = ProcedureStats {
            name: "pay",
            committed: 1_000_000,
            aborted: 2,
            latency_p50: Duration::from_micros(1500),
            latency_p99: Duration::from_secs(2),
            ..ProcedureStats::default()
        };
        let stats = Stats {
            epoch: 12,
            checkpoint_epoch: 10,
            rows: 7,
            state_hash: 255,
            epochs: 5,
            committed: 1_000_000,
            aborted: 2,
            queued_calls: 3,
            queued_bytes: 99,
            latency_p50: Duration::from_micros(1500),
            archive_error: Some("no room".into()),
            procedures: vec![pay],
            ..Stats::default()
        };
        let wanted = "\
epoch           12, checkpoint of epoch 10
rows            7
state hash      000000000000000000000000000000ff
epochs run      5
calls           1000000 committed, 2 aborted, 0 failed, 0 deferred, 0 refused
waiting now     3 calls with 99 bytes, 0 deferred calls, 0 blocked submitters
epoch latency   p50 1.500 ms, p99 0.000 ms
archive fails   no room
procedure          committed     aborted      failed    deferred        slow      p50 ms      \
p99 ms     p999 ms
pay                  1000000           2           0           0           0       1.500    \
2000.000       0.000";
        assert_eq!(stats.to_string(), wanted);
    }
}
