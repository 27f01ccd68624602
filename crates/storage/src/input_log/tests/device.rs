//! A log space that records what was written and can lose it.

use std::sync::{Mutex, OnceLock};

use pmem::{Description, Device, DeviceError, Mapping, PortState};

use super::{Random, SEGMENT_BYTES};

/// One write to the log space.
#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) port: u32,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    fenced: bool,
}

#[derive(Debug, Default)]
struct State {
    /// What a read sees.
    log: Vec<u8>,
    /// What survives a power cut for certain.
    durable: Vec<u8>,
    /// Writes that may survive, each of its 8-byte words for itself.
    pending: Vec<Write>,
    /// Writes since the last look.
    history: Vec<Write>,
    limit_bytes: u64,
    writes_left: Option<u64>,
    syncs_left: Option<u64>,
    failed: bool,
}

/// See the module's documentation. Nothing is durable before its port fenced *and* the log was
/// synced.
pub(super) struct TestDevice {
    state: Mutex<State>,
}

impl TestDevice {
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self::with_log(Vec::new(), limit_bytes)
    }

    /// A device after a reboot that finds `log`.
    pub(super) fn with_log(log: Vec<u8>, limit_bytes: u64) -> Self {
        let state = State { durable: log.clone(), log, limit_bytes, ..State::default() };
        Self { state: Mutex::new(state) }
    }

    /// What a read sees now: what a killed process leaves.
    pub(super) fn log(&self) -> Vec<u8> {
        self.state.lock().unwrap().log.clone()
    }

    /// The writes since the last call.
    pub(super) fn take_history(&self) -> Vec<Write> {
        std::mem::take(&mut self.state.lock().unwrap().history)
    }

    /// The writes since the last call, cut where segments begin.
    pub(super) fn take_segments(&self) -> Vec<Write> {
        let cut = |write: Write| {
            let pieces = write.bytes.chunks(SEGMENT_BYTES as usize).map(<[u8]>::to_vec);
            let places = (write.offset..).step_by(SEGMENT_BYTES as usize);
            let part = move |(offset, bytes)| Write { offset, bytes, ..write };
            places.zip(pieces.collect::<Vec<_>>()).map(part).collect::<Vec<_>>()
        };
        self.take_history().into_iter().flat_map(cut).collect()
    }

    /// Lets the next writes and syncs succeed and fails all after them.
    pub(super) fn fail_after(&self, writes: Option<u64>, syncs: Option<u64>) {
        let mut state = self.state.lock().unwrap();
        (state.writes_left, state.syncs_left) = (writes, syncs);
    }

    /// One of the logs that a power cut could leave: of each pending write any 8-byte words, or all
    /// or none of it, or whole 512-byte sectors.
    pub(super) fn crash_image(&self, random: &mut Random) -> Vec<u8> {
        let state = self.state.lock().unwrap();
        let mut log = state.durable.clone();
        for write in &state.pending {
            let unit: u64 = match random.below(5) {
                0 => 8,
                1 => 64,
                2 => 512,
                3 => u64::MAX,
                _ => continue,
            };
            let mut last = (u64::MAX, false);
            for (at, byte) in write.bytes.iter().enumerate() {
                let place = write.offset + at as u64;
                if last.0 != place / unit {
                    last = (place / unit, random.below(4) != 0);
                }
                if last.1 {
                    log[place as usize] = *byte;
                }
            }
        }
        log
    }

    fn check(state: &mut State, count: impl Fn(&mut State) -> &mut Option<u64>) -> bool {
        match count(state) {
            Some(0) => state.failed = true,
            Some(left) => *left -= 1,
            None => {}
        }
        !state.failed
    }
}

fn failed() -> DeviceError {
    DeviceError::Sticky { first: "a failure that the test asked for".to_string() }
}

impl Device for TestDevice {
    fn description(&self) -> Description {
        Description { name: "device".to_string(), durable: true, note: String::new() }
    }

    fn image(&self) -> &Mapping {
        static EMPTY: OnceLock<Mapping> = OnceLock::new();
        EMPTY.get_or_init(|| Mapping::reserve(4096).expect("a page of address space"))
    }

    fn image_bytes(&self) -> u64 {
        0
    }

    fn grow_image(&self, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    // SAFETY: it stores nothing.
    unsafe fn store_nt(&self, _: &mut PortState, _: u64, _: &[u8]) {
        unreachable!("the input log does not touch the image")
    }

    fn flush(&self, _: &mut PortState, _: u64, _: u64) {}

    fn fence(&self, _: &mut PortState) {}

    fn log_bytes(&self) -> u64 {
        self.state.lock().unwrap().log.len() as u64
    }

    fn grow_log(&self, bytes: u64) -> Result<(), DeviceError> {
        let mut state = self.state.lock().unwrap();
        if bytes > state.limit_bytes {
            return Err(DeviceError::Full {
                what: "log".to_string(),
                wanted_bytes: bytes,
                limit_bytes: Some(state.limit_bytes),
            });
        }
        let bytes = state.log.len().max(bytes as usize);
        state.log.resize(bytes, 0);
        state.durable.resize(bytes, 0);
        Ok(())
    }

    fn log_write(
        &self,
        port: &mut PortState,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let mut state = self.state.lock().unwrap();
        if !Self::check(&mut state, |state| &mut state.writes_left) {
            return Err(failed());
        }
        state.log[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        let write = Write { port: port.id, offset, bytes: bytes.to_vec(), fenced: false };
        state.history.push(write.clone());
        state.pending.push(write);
        Ok(())
    }

    fn log_fence(&self, port: &mut PortState) {
        let mut state = self.state.lock().unwrap();
        for write in state.pending.iter_mut().filter(|write| write.port == port.id) {
            write.fenced = true;
        }
    }

    fn log_sync(&self) -> Result<(), DeviceError> {
        let mut state = self.state.lock().unwrap();
        if !Self::check(&mut state, |state| &mut state.syncs_left) {
            return Err(failed());
        }
        let pending = std::mem::take(&mut state.pending);
        for write in pending {
            if write.fenced {
                let place = write.offset as usize..write.offset as usize + write.bytes.len();
                state.durable[place].copy_from_slice(&write.bytes);
            } else {
                state.pending.push(write);
            }
        }
        Ok(())
    }

    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let state = self.state.lock().unwrap();
        into.copy_from_slice(&state.log[offset as usize..][..into.len()]);
        Ok(())
    }
}
