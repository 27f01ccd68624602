//! Fuzzing the reader of the input log.

use std::sync::Arc;

use pmem::{AnyDevice, Device, Dram, Port};
use storage::EpochNumber;
use storage::input_log::{InputLog, LogError, LoggedEpoch};

use super::edit::{Editor, Files};
use super::subject::{Case, Subject, Verdict};
use crate::history::{Mix, Random, Setup, batch, info, to_calls};

const IMAGE_BYTES: u64 = 64 << 20;
const LOG_BYTES: u64 = 8 << 20;
const SEGMENT_BYTES: u64 = 4096;
/// The number of every store that a test creates.
const INSTANCE: u64 = 1;

/// A log with a few committed epochs.
pub(crate) struct LogSubject {
    files: Files,
    editor: Editor,
    epochs: Vec<LoggedEpoch>,
}

fn with_log(bytes: &[u8]) -> Result<Arc<AnyDevice>, String> {
    let text = |error: pmem::DeviceError| error.to_string();
    let device = AnyDevice::new(Dram::new(4096, LOG_BYTES).map_err(text)?);
    let len = (bytes.len() as u64).next_multiple_of(SEGMENT_BYTES).min(LOG_BYTES);
    device.grow_log(len).map_err(text)?;
    let mut port = Port::new(Arc::clone(&device), 0);
    port.log_write(0, &bytes[..bytes.len().min(len as usize)]).map_err(text)?;
    Ok(device)
}

type Read = (Vec<LoggedEpoch>, Option<Vec<u8>>);

fn read_all(device: &Arc<AnyDevice>) -> Result<Read, LogError> {
    let (log, recovered) =
        InputLog::open(Arc::clone(device), INSTANCE, SEGMENT_BYTES, EpochNumber(0))?;
    let epochs: Result<_, _> =
        recovered.committed.iter().map(|committed| log.read_epoch(committed.epoch)).collect();
    let mut port = Port::new(Arc::clone(device), 0);
    let last = recovered.committed.last().map_or(0, |committed| committed.epoch.0);
    let deferred_calls = log.deferred_calls(EpochNumber(last + 1))?;
    log.harden(&mut port)?;
    Ok((epochs?, deferred_calls))
}

impl LogSubject {
    pub(crate) fn new(random: &mut Random) -> Result<Self, String> {
        let setup = Setup {
            checkpoint_every: 100,
            segment_bytes: SEGMENT_BYTES,
            workers: random.pick(&[1, 2, 3]),
            ..Setup::default()
        };
        let device = AnyDevice::new(Dram::new(IMAGE_BYTES, LOG_BYTES).map_err(|e| e.to_string())?);
        let mut engine = setup.open(&device).map_err(|error| error.to_string())?;
        let mix = Mix { keys: 6, long_values: true, lookups: 20 };
        for _ in 0..1 + random.below(5) {
            let calls = 1 + random.below(40);
            let calls = to_calls(&batch(random, &mix, calls));
            engine.run_epoch(&calls, info(engine.epoch().0 + 1)).map_err(|e| e.to_string())?;
        }
        drop(engine);
        let mut bytes = vec![0; device.log_bytes() as usize];
        device.log_read(0, &mut bytes).map_err(|error| error.to_string())?;
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(end.next_multiple_of(SEGMENT_BYTES as usize) + SEGMENT_BYTES as usize);
        let (epochs, _) = read_all(&with_log(&bytes)?).map_err(|error| error.to_string())?;
        let files = Files([("log", bytes)].into());
        let editor = Editor::new(&files, Files::default());
        Ok(Self { files, editor, epochs })
    }
}

impl Subject for LogSubject {
    fn files(&self) -> (&Files, &Editor) {
        (&self.files, &self.editor)
    }

    fn check(&self, files: &Files, case: &Case) -> Result<Verdict, String> {
        let bytes = files.0.get("log").map_or(&[][..], Vec::as_slice);
        let (epochs, _) = match read_all(&with_log(bytes)?) {
            Ok(read) => read,
            Err(_) => return Ok(Verdict::Refused),
        };
        let total: usize = epochs.iter().flat_map(|epoch| &epoch.streams).map(Vec::len).sum();
        if total > bytes.len() {
            return Err(format!("{total} bytes were read from a log of {}", bytes.len()));
        }
        if epochs.len() <= self.epochs.len() && self.epochs[..epochs.len()] == epochs {
            let whole = epochs.len() == self.epochs.len();
            return Ok(if whole { Verdict::Right } else { Verdict::Older });
        }
        if case.repaired { Ok(Verdict::Forged) } else { Err("other epochs were read".into()) }
    }
}
