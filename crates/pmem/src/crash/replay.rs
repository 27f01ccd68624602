//! Goes through a trace and gives what a power cut leaves at each event.

use std::sync::Arc;

use super::adversary::{Adversary, SpaceKind};
use super::contents::Contents;
use super::history::{History, Key, LINE};
use super::trace::{Event, EventKind, Killed, Trace};
use super::traced::{Touched, Traced};
use crate::memory::PAGE_BYTES;
use crate::units::LINE_BYTES;

/// A trace as far as it was followed: what memory holds there, and what of it is durable.
///
/// ```
/// use std::sync::Arc;
/// use pmem::{AllOldest, Device, Port, Replay, Traced};
///
/// let device = Arc::new(Traced::new(1 << 20, 1 << 20)?);
/// device.grow_image(4096)?;
/// device.record();
/// let mut port = Port::new(Arc::clone(&device), 0);
/// // SAFETY: no other thread uses the image.
/// unsafe { port.store_u64(0, 7) };
/// port.flush(0, 8);
/// port.fence();
/// let trace = device.take_trace();
/// let mut replay = Replay::new(&trace, Traced::new(1 << 20, 1 << 20)?);
/// for expected in [0, 0, 0, 7] {
///     let left = replay.left(&mut AllOldest);
///     assert_eq!(replay.load(&left).image().load_u64(0), expected);
///     replay.step();
/// }
/// # Ok::<(), pmem::DeviceError>(())
/// ```
pub struct Replay<'t> {
    trace: &'t Trace,
    position: usize,
    /// What memory holds, as the program sees it.
    now: Contents,
    /// Sum of the hashes of all lines of `now`.
    hash: u128,
    history: History,
    /// Gets what is left.
    device: Arc<Traced>,
    /// Pages in which the device's bytes may not be those of `now`, beside those that the device
    /// itself knows of.
    stale: Touched,
}

/// What a power cut left: the lines that are not as memory was, and a hash of all.
#[derive(Debug, Clone)]
pub struct Left {
    lines: Vec<(Key, [u8; LINE])>,
    hash: u128,
}

impl Left {
    /// Hash of all bytes that are left and of the sizes of the spaces: equal for equal contents.
    #[must_use]
    pub fn hash(&self) -> u128 {
        self.hash
    }
}

impl<'t> Replay<'t> {
    /// Stands before the first event of a trace. What is left of memory is put into `device`, whose
    /// limits should be those of the recording one.
    #[must_use]
    pub fn new(trace: &'t Trace, device: Traced) -> Self {
        let mut stale = Touched::default();
        let now = trace.start.clone();
        let mut hash = 0u128;
        for kind in [SpaceKind::Image, SpaceKind::Log] {
            for (line, bytes) in now.space(kind).as_chunks::<LINE>().0.iter().enumerate() {
                let offset = (line * LINE) as u64;
                hash = hash.wrapping_add(line_hash((kind, offset), bytes));
                if bytes.iter().any(|byte| *byte != 0) {
                    stale.add(kind, offset, LINE);
                }
            }
        }
        let device = Arc::new(device);
        let history = trace.inherited.clone();
        Self { trace, position: 0, now, hash, history, device, stale }
    }

    /// Number of events that have happened.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Lets the next event happen.
    pub fn step(&mut self) -> Option<&'t Event> {
        let event = self.trace.events.get(self.position)?;
        self.position += 1;
        match event.kind {
            EventKind::Store => self.store(event, None),
            EventKind::StorePastCache => self.store(event, Some(event.port)),
            EventKind::Flush => {
                self.history.flush(event.space, event.offset, event.len, event.port);
            }
            EventKind::Fence => self.history.fence(event.port),
            EventKind::Grow => self.now.space_mut(event.space).resize(event.len as usize, 0),
            EventKind::Mark => {}
        }
        Some(event)
    }

    fn store(&mut self, event: &Event, past_cache_of: Option<u32>) {
        let bytes = self.trace.bytes_of(event);
        if bytes.is_empty() {
            return;
        }
        let (kind, offset) = (event.space, event.offset);
        let now = self.now.space_mut(kind);
        self.history.store(kind, |line| line_at(now, line), offset, bytes, past_cache_of);
        let first = offset / LINE_BYTES * LINE_BYTES;
        let lines = (first..offset + event.len).step_by(LINE);
        let sum = |now: &[u8]| {
            let hashes = lines.clone().map(|line| line_hash((kind, line), &line_at(now, line)));
            hashes.fold(0u128, u128::wrapping_add)
        };
        let before = sum(now);
        now[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        self.hash = self.hash.wrapping_sub(before).wrapping_add(sum(now));
        self.stale.add(kind, offset, bytes.len());
    }

    /// Number of cache lines that a power cut could leave in more than one state.
    #[must_use]
    pub fn undurable_lines(&self) -> u64 {
        self.history.undurable_lines()
    }

    /// Number of ways in which an adversary can choose here, at most 2^64 - 1: that many numbers
    /// make sense for [`super::Numbered`].
    #[must_use]
    pub fn choices(&self) -> u64 {
        self.history.choices()
    }

    /// What a process leaves undurable that is killed here. What it leaves visible is
    /// [`Replay::left`] with [`super::AllNewest`]: give that to [`Replay::load`], record another
    /// run on it, and join the two with [`Trace::after_kill`].
    #[must_use]
    pub fn killed(&self) -> Killed {
        let mut history = self.history.clone();
        history.kill();
        Killed(history)
    }

    /// What a power cut leaves here.
    #[must_use]
    pub fn left(&self, adversary: &mut dyn Adversary) -> Left {
        let mut lines = Vec::new();
        let mut hash = self.hash;
        for (key, line) in self.history.after_power_cut(adversary) {
            let now = line_at(self.now.space(key.0), key.1);
            if now != line {
                hash = hash.wrapping_sub(line_hash(key, &now)).wrapping_add(line_hash(key, &line));
                lines.push((key, line));
            }
        }
        let sizes = (self.now.image.len() as u128) << 64 | self.now.log.len() as u128;
        Left { lines, hash: hash.wrapping_add(sizes.wrapping_mul(0x9e37_79b9_7f4a_7c15)) }
    }

    /// Puts what is left into the device.
    ///
    /// # Panics
    /// If a caller still has the device from the last time.
    pub fn load(&mut self, left: &Left) -> &Arc<Traced> {
        let device = Arc::get_mut(&mut self.device).expect("the device is not in use any more");
        let touched: Vec<_> = device.touched().drain().chain(self.stale.drain()).collect();
        for (kind, page) in touched {
            device.set_page(kind, page, self.now.page(kind, page));
        }
        device.set_usable(&self.now);
        for &((kind, offset), line) in &left.lines {
            device.set_line(kind, offset, &line);
        }
        &self.device
    }
}

fn line_at(space: &[u8], offset: u64) -> [u8; LINE] {
    *space[offset as usize..].first_chunk().expect("spaces consist of whole lines")
}

/// A hash of a line in its place; 0 for zeros, so that spaces that were never used count nothing.
fn line_hash(key: Key, line: &[u8; LINE]) -> u128 {
    let (kind, offset) = key;
    let words = line.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    if words.clone().all(|word| word == 0) {
        return 0;
    }
    let place = offset << 1 | kind as u64;
    let (mut low, mut high) = (mix(place ^ 0x6c69_6e65), mix(place ^ 0x6861_7368));
    for word in words {
        low = mix(low ^ word);
        high = mix(high.rotate_left(23).wrapping_add(word));
    }
    u128::from(high) << 64 | u128::from(low)
}

fn mix(word: u64) -> u64 {
    let z = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const _: () = assert!(PAGE_BYTES.is_multiple_of(LINE_BYTES));
