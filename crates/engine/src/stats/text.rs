//! Texts of reports, for operators.

use std::fmt;

use super::{HashCheck, RecoveryReport};

/// Shows the report in lines: where the store is, what was replayed, what was left out, and a table
/// of the time and the cache lines read of each part. A store that was just created has one line.
impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { checkpoint_epoch, epoch, .. } = self;
        if self.created {
            return write!(f, "created at epoch {epoch}");
        }
        write!(f, "recovered to epoch {epoch} from the checkpoint of epoch {checkpoint_epoch}")?;
        line(f, "rows", format_args!("{}, {}", self.rows, checked(self.hash)))?;
        let (epochs, calls) = (self.epochs_replayed, self.calls_replayed);
        let verified = self.epochs_verified;
        let replayed =
            format_args!("{epochs} epochs with {calls} calls, {verified} epochs verified by hash");
        line(f, "replayed", replayed)?;
        for out in &self.skipped {
            let (position, epoch) = (out.position, out.epoch);
            let why = format_args!("call {position} of epoch {epoch}: {}", out.reason);
            line(f, "left out", why)?;
        }
        for kept in &self.kept_procedures {
            let needed = if kept.was_needed { "needed" } else { "not needed" };
            let which = format_args!("{} version {}, {needed} by the log", kept.name, kept.version);
            line(f, "kept procedure", which)?;
        }
        if self.deaths_unnoted {
            line(f, "without marks", format_args!("{UNNOTED}"))?;
        }
        write!(f, "\n  {:<16}{:>14}{:>14}", "part", "ms", "lines read")?;
        for (name, ns, device) in [
            ("load log", self.load_log_ns, &self.load_log),
            ("scan", self.scan_ns, &self.scan),
            ("rebuild indexes", self.rebuild_ns, &self.rebuild),
            ("replay", self.replay_ns, &self.replay),
        ] {
            let ms = ns as f64 / 1e6;
            write!(f, "\n  {name:<16}{ms:>14.3}{:>14}", device.lines_read)?;
        }
        Ok(())
    }
}

/// What is said of a replay on a full disk.
const UNNOTED: &str = "a full disk has no room for the marks of calls that end the process";

/// Writes a line with a name and what it has.
fn line(f: &mut fmt::Formatter<'_>, name: &str, what: fmt::Arguments<'_>) -> fmt::Result {
    write!(f, "\n  {name:<16}{what}")
}

/// Says how far the rows are known to be those of the checkpoint.
fn checked(hash: HashCheck) -> &'static str {
    match hash {
        HashCheck::Verified => "verified by the state hash",
        HashCheck::Computed => "not verified: the checkpoint has no state hash, one was computed",
        HashCheck::Unknown => "not verified: no state hash is maintained",
        HashCheck::Kept => "not visited: the indexes were kept",
    }
}

#[cfg(test)]
mod tests {
    use pmem::Counters;
    use storage::EpochNumber;

    use super::super::KeptProcedure;
    use super::*;

    #[test]
    fn a_report_is_aligned_lines() {
        let report = RecoveryReport {
            checkpoint_epoch: EpochNumber(10),
            epoch: EpochNumber(12),
            rows: 1000,
            epochs_replayed: 2,
            epochs_verified: 1,
            calls_replayed: 8,
            kept_procedures: vec![KeptProcedure {
                name: "pay".into(),
                version: 3,
                was_needed: true,
            }],
            load_log_ns: 1_234_567,
            deaths_unnoted: true,
            replay_ns: 12_000_000_000,
            scan: Counters { lines_read: 77, ..Counters::default() },
            ..RecoveryReport::default()
        };
        let wanted = "\
recovered to epoch 12 from the checkpoint of epoch 10
  rows            1000, verified by the state hash
  replayed        2 epochs with 8 calls, 1 epochs verified by hash
  kept procedure  pay version 3, needed by the log
  without marks   a full disk has no room for the marks of calls that end the process
  part                        ms    lines read
  load log                 1.235             0
  scan                     0.000            77
  rebuild indexes          0.000             0
  replay               12000.000             0";
        assert_eq!(report.to_string(), wanted);
        let created = RecoveryReport { created: true, ..RecoveryReport::default() };
        assert_eq!(created.to_string(), "created at epoch 0");
    }
}
