//! Fail points: a process that ends in the middle of a named call to the file system. For the
//! harness that kills real processes; nothing else asks for one.

use std::str::FromStr;
use std::sync::{Arc, Mutex};

use pmem::{DeviceSpec, DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};

use crate::BenchError;

/// Where a process ends: `FILE-CALL[:N]`, before the Nth such call (from 1, which is the default).
///
/// FILE is `meta`, `data`, `table`, `log`, `directory` or `any`; CALL is `read`, `write`,
/// `sync`, `grow`, `any`, or `torn`: a write of which the first half is made, in whole sectors, as
/// the device's model of the device has it. On the `file` device these moments of an epoch are such
/// calls:
///
/// | moment | fail point |
/// |---|---|
/// | in recovery | `any-read`, and `log-write` (hardening) of a store with committed epochs |
/// | while inputs are logged | `log-write`, `log-torn` |
/// | before an epoch is committed for good | `log-sync` |
/// | while pages of the image snapshot are written | `data-write`, `data-torn`, `data-sync` |
/// | while their entries are written | `table-write`, `table-torn`, `table-sync` |
/// | before the image snapshot counts | `meta-write`, `meta-sync` |
/// | while files grow | `data-grow`, `table-grow`, `log-grow` |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailPoint {
    file: Option<DiskFile>,
    call: Call,
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Any,
    Read,
    Write,
    Torn,
    Sync,
    Grow,
    Cut,
}

const FILES: [(&str, Option<DiskFile>); 6] = [
    ("any", None),
    ("meta", Some(DiskFile::Meta)),
    ("data", Some(DiskFile::Data)),
    ("table", Some(DiskFile::Table)),
    ("log", Some(DiskFile::Log)),
    ("directory", Some(DiskFile::Directory)),
];

const CALLS: [(&str, Call); 7] = [
    ("any", Call::Any),
    ("read", Call::Read),
    ("write", Call::Write),
    ("torn", Call::Torn),
    ("sync", Call::Sync),
    ("grow", Call::Grow),
    ("cut", Call::Cut),
];

impl FromStr for FailPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no fail point: expected FILE-CALL[:N], as log-sync:3");
        let (name, number) = text.split_once(':').unwrap_or((text, "1"));
        let (file, call) = name.split_once('-').ok_or_else(wrong)?;
        let file = FILES.iter().find(|(name, _)| *name == file).ok_or_else(wrong)?.1;
        let call = CALLS.iter().find(|(name, _)| *name == call).ok_or_else(wrong)?.1;
        let number = number.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
        Ok(Self { file, call, number })
    }
}

impl FailPoint {
    /// What ends the process, for the device.
    ///
    /// # Errors
    /// `Usage` on a device without files.
    pub(crate) fn hook(self, spec: &DeviceSpec) -> Result<Arc<dyn DiskHook>, BenchError> {
        match spec {
            DeviceSpec::File(_) => Ok(Arc::new(Dying::at(self))),
            _ => {
                let why = format!("{spec} has no fail points, only file:DIR has");
                Err(BenchError::Usage(why))
            }
        }
    }

    fn is_met_by(&self, call: &DiskCall<'_>) -> bool {
        let same = match call.operation {
            DiskOperation::Open { .. } => false,
            DiskOperation::Read { .. } => self.call == Call::Read,
            DiskOperation::Write { .. } => matches!(self.call, Call::Write | Call::Torn),
            DiskOperation::Sync => self.call == Call::Sync,
            DiskOperation::Allocate { .. } => self.call == Call::Grow,
            DiskOperation::Truncate { .. } => self.call == Call::Cut,
        };
        let same = same || self.call == Call::Any;
        same && self.file.is_none_or(|file| file == call.file)
    }
}

/// What a device writes whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// Ends the process at a fail point.
#[derive(Debug)]
struct Dying {
    point: FailPoint,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    met: u64,
    /// A torn write was made: the next call, its second half, is the last.
    torn: Option<DiskFile>,
}

impl Dying {
    fn at(point: FailPoint) -> Self {
        Self { point, state: Mutex::default() }
    }
}

impl DiskHook for Dying {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        // Poisoned only if a thread panicked in here, which it does not.
        let Ok(mut state) = self.state.lock() else { return Outcome::Proceed };
        if state.torn == Some(call.file) {
            std::process::abort();
        }
        if !self.point.is_met_by(call) {
            return Outcome::Proceed;
        }
        state.met += 1;
        if state.met != self.point.number {
            return Outcome::Proceed;
        }
        match (self.point.call, call.operation) {
            (Call::Torn, DiskOperation::Write { offset, bytes }) => {
                let half = offset + bytes.len() as u64 / 2;
                let made = (half - half % SECTOR_BYTES).saturating_sub(offset);
                if made == 0 {
                    std::process::abort();
                }
                state.torn = Some(call.file);
                Outcome::Short(made as usize)
            }
            _ => std::process::abort(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fail_points_have_names() {
        let point: FailPoint = "log-sync:3".parse().expect("a fail point");
        let expected = FailPoint { file: Some(DiskFile::Log), call: Call::Sync, number: 3 };
        assert_eq!(point, expected);
        let any: FailPoint = "any-torn".parse().expect("a fail point");
        assert_eq!(any, FailPoint { file: None, call: Call::Torn, number: 1 });
        for wrong in ["", "log", "log-sync:0", "log-sync:x", "tape-sync", "log-burn"] {
            assert!(wrong.parse::<FailPoint>().expect_err("no fail point").contains("log-sync:3"));
        }
    }

    #[test]
    fn a_fail_point_counts_its_own_calls() {
        let point: FailPoint = "log-torn:2".parse().expect("a fail point");
        let dying = Dying::at(point);
        let write = DiskOperation::Write { offset: 100, bytes: &[0; 2048] };
        let call = |file, operation| dying.before(&DiskCall { file, operation });
        assert_eq!(call(DiskFile::Log, write), Outcome::Proceed);
        assert_eq!(call(DiskFile::Data, write), Outcome::Proceed);
        assert_eq!(call(DiskFile::Log, DiskOperation::Sync), Outcome::Proceed);
        assert_eq!(call(DiskFile::Log, write), Outcome::Short(924));
        assert_eq!(call(DiskFile::Data, write), Outcome::Proceed);
    }
}
