//! The segments of a log, and its root.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pmem::{Device, Port};
use xxhash_rust::xxh3::xxh3_64;

use super::super::design::Way;
use super::area::Area;
use crate::error::{Error, Result};
use crate::memory::WORD_BYTES;

const MAGIC_ROOT: u64 = u64::from_le_bytes(*b"NVdbxro1");
const MAGIC_SEGMENT: u64 = u64::from_le_bytes(*b"NVdbxse1");
/// Words of a root, and of the head of a segment: a line.
pub(super) const LINE_WORDS: usize = 8;
/// Distance of the two roots: they are in different blocks.
const ROOT_BYTES: u64 = pmem::BLOCK_BYTES;
/// The kind of a segment that is part of a checkpoint; others are their writers.
pub(crate) const CHECKPOINT: u64 = u64::MAX;

/// The head of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) turn: u64,
    /// How many segments were begun before it.
    pub(super) life: u64,
    pub(super) writer: u64,
}

/// A line with a checksum.
fn line(words: [u64; 4]) -> [u64; LINE_WORDS] {
    let mut line = [0; LINE_WORDS];
    line[..4].copy_from_slice(&words);
    line[7] = xxh3_64(zerocopy::IntoBytes::as_bytes(&line[..7]));
    line
}

/// The words of a line, if it is whole and of this kind.
fn read_line(words: &[u64], magic: u64) -> Option<[u64; 3]> {
    let is_whole = xxh3_64(zerocopy::IntoBytes::as_bytes(&words[..7])) == words[7];
    (is_whole && words[0] == magic).then(|| [words[1], words[2], words[3]])
}

impl Head {
    pub(super) fn to_line(self) -> [u64; LINE_WORDS] {
        line([MAGIC_SEGMENT, self.turn, self.life, self.writer])
    }

    pub(super) fn read(words: &[u64]) -> Option<Self> {
        let [turn, life, writer] = read_line(words, MAGIC_SEGMENT)?;
        Some(Self { turn, life, writer })
    }
}

/// What is known of segments.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// How many there are, with the first.
    pub(super) count: u64,
    pub(super) free: Vec<u64>,
    /// Offset, turn and writer of those in use.
    pub(super) used: Vec<(u64, Head)>,
    pub(super) lives: u64,
}

/// A log. See the module's documentation.
pub(crate) struct Log<D: Device> {
    pub(super) area: Area<D>,
    pub(super) segment_bytes: u64,
    /// Which tables it is of.
    tables: u64,
    pub(super) segments: Mutex<Segments>,
    /// Segments that begin now have it.
    turn: AtomicU64,
    /// Segments that began since the last checkpoint.
    begun: AtomicU64,
}

impl<D: Device> Log<D> {
    pub(super) fn new(device: Arc<D>, way: Way, segment_bytes: u64, tables: u64) -> Self {
        Self {
            area: Area::new(device, way),
            segment_bytes,
            tables,
            segments: Mutex::default(),
            turn: AtomicU64::new(1),
            begun: AtomicU64::new(0),
        }
    }

    /// An empty log on a device.
    pub(crate) fn create(
        device: Arc<D>,
        way: Way,
        segment_bytes: u64,
        tables: u64,
    ) -> Result<Self> {
        let log = Self::new(Arc::clone(&device), way, segment_bytes, tables);
        let mut port = Port::new(device, 0);
        if log.area.bytes() > 0 && log.read_root(&mut port)?.is_some() {
            return Err(Error::Corrupt("there is a log already".into()));
        }
        log.area.grow(segment_bytes)?;
        log.lock().count = log.area.bytes() / segment_bytes;
        let free = (1..log.lock().count).map(|number| number * segment_bytes).collect();
        log.lock().free = free;
        log.write_root(&mut port)?;
        Ok(log)
    }

    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, Segments> {
        crate::lock(&self.segments)
    }

    /// The turn with which the segments begin that count, and the tables.
    pub(super) fn read_root(&self, port: &mut Port<D>) -> Result<Option<u64>> {
        let (mut newest, mut words) = (None, Vec::new());
        for place in 0..2 {
            if self.area.bytes() < (place + 1) * ROOT_BYTES {
                continue;
            }
            self.area.read(port, place * ROOT_BYTES, LINE_WORDS, &mut words)?;
            if let Some([turn, tables, segment_bytes]) = read_line(&words, MAGIC_ROOT) {
                if (tables, segment_bytes) != (self.tables, self.segment_bytes) {
                    return Err(Error::Corrupt("the log is one of other tables".into()));
                }
                newest = newest.max(Some(turn));
            }
        }
        Ok(newest)
    }

    /// Makes the running turn the first that counts; durable when this returns.
    fn write_root(&self, port: &mut Port<D>) -> Result<()> {
        let turn = self.turn();
        let root = line([MAGIC_ROOT, turn, self.tables, self.segment_bytes]);
        self.area.write(port, turn % 2 * ROOT_BYTES, &root)?;
        self.area.fence(port)
    }

    /// The turn of segments that begin now.
    pub(crate) fn turn(&self) -> u64 {
        self.turn.load(Ordering::SeqCst)
    }

    pub(super) fn set_turn(&self, turn: u64) {
        self.turn.store(turn, Ordering::SeqCst);
    }

    /// Begins the next turn.
    pub(crate) fn next_turn(&self) {
        self.begun.store(0, Ordering::Relaxed);
        self.turn.fetch_add(1, Ordering::SeqCst);
    }

    /// Bytes of the segments that began since the last checkpoint did.
    pub(crate) fn bytes_since_checkpoint(&self) -> u64 {
        self.begun.load(Ordering::Relaxed) * self.segment_bytes
    }

    /// Bytes of the newest checkpoint.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        let segments = self.lock();
        let of_checkpoint = segments.used.iter().filter(|(_, head)| head.writer == CHECKPOINT);
        of_checkpoint.count() as u64 * self.segment_bytes
    }

    /// All rows are in the segments of the running turn: those of older ones are free.
    pub(crate) fn end_checkpoint(&self, port: &mut Port<D>) -> Result<()> {
        self.write_root(port)?;
        let turn = self.turn();
        let mut segments = self.lock();
        let used = std::mem::take(&mut segments.used);
        let (kept, old): (Vec<_>, Vec<_>) =
            used.into_iter().partition(|(_, head)| head.turn >= turn);
        segments.used = kept;
        segments.free.extend(old.into_iter().map(|(at, _)| at));
        Ok(())
    }

    /// A segment that is not in use: where it is.
    pub(super) fn take(&self) -> Result<u64> {
        let mut segments = self.lock();
        if let Some(at) = segments.free.pop() {
            return Ok(at);
        }
        let at = segments.count * self.segment_bytes;
        self.area.grow(at + self.segment_bytes).map_err(|error| {
            let bytes = segments.count * self.segment_bytes;
            Error::Limit(format!("the log is full, it has {bytes} bytes: {error}"))
        })?;
        let count = self.area.bytes() / self.segment_bytes;
        let more = (segments.count + 1..count).map(|number| number * self.segment_bytes);
        segments.free.extend(more);
        segments.count = count;
        Ok(at)
    }

    /// Begins a segment: its head, durable after the port's next fence.
    pub(super) fn begin(
        &self,
        port: &mut Port<D>,
        at: u64,
        writer: u64,
        turn: u64,
    ) -> Result<Head> {
        let head = {
            let mut segments = self.lock();
            segments.lives += 1;
            let head = Head { turn, life: segments.lives, writer };
            segments.used.push((at, head));
            head
        };
        if writer != CHECKPOINT {
            self.begun.fetch_add(1, Ordering::Relaxed);
        }
        self.area.write(port, at, &head.to_line())?;
        Ok(head)
    }

    /// Words of a segment.
    pub(super) fn segment_words(&self) -> usize {
        (self.segment_bytes / WORD_BYTES) as usize
    }

    /// Makes durable what a port has written.
    pub(crate) fn fence(&self, port: &mut Port<D>) -> Result<()> {
        self.area.fence(port)
    }
}
