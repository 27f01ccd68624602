//! What goes through a port, in the units that the papers report.

use crate::units::{BLOCK_BYTES, LINE_BYTES, units};

/// Counts of one port. Blocks are 256-byte units of the device, lines are 64-byte cache lines.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counters {
    /// Cache lines read from the image: in epochs the values that calls read and, where reads cost
    /// something, everything else that is read; at recovery everything.
    pub lines_read: u64,
    /// 256-byte blocks touched by those reads.
    pub blocks_read: u64,
    /// Bytes stored with ordinary stores.
    pub bytes_stored: u64,
    /// Bytes stored non-temporally.
    pub bytes_stored_nt: u64,
    /// Cache lines written back (flushed or stored non-temporally).
    pub lines_written: u64,
    /// 256-byte blocks touched by those writes.
    pub blocks_written: u64,
    /// Flush calls, in lines.
    pub flushes: u64,
    /// Fences.
    pub fences: u64,
    /// Bytes written to the log space.
    pub log_bytes: u64,
    /// How often non-temporal stores were ordered with others, which makes nothing durable.
    pub store_orders: u64,
    /// Bytes that an emulated device wrote for what was stored and logged, in its own units.
    /// Divided by the bytes of those lines it is the amplification of writes; 0 where no device is
    /// imitated.
    pub media_bytes_written: u64,
    /// Nanoseconds of waiting that an emulated device added.
    pub added_ns: u64,
}

/// Reads of the image, counted by the caller that makes them without a port.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Loads {
    /// Cache lines.
    pub lines: u64,
    /// 256-byte blocks.
    pub blocks: u64,
}

impl Loads {
    /// Counts a read at an address or offset: images begin at a block.
    #[inline]
    pub fn count(&mut self, at: u64, len: u64) {
        self.lines += units(at, len, LINE_BYTES);
        self.blocks += units(at, len, BLOCK_BYTES);
    }
}

/// Lines of a row that are stored non-temporally.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LineCount {
    /// How many they are.
    pub lines: u64,
    /// In how many blocks.
    pub blocks: u64,
}

impl LineCount {
    /// Lines that follow each other, from an offset on.
    #[inline]
    pub fn of(offset: u64, lines: u64) -> Self {
        Self { lines, blocks: units(offset, lines * LINE_BYTES, BLOCK_BYTES) }
    }
}

impl Counters {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Counters) {
        self.lines_read += other.lines_read;
        self.blocks_read += other.blocks_read;
        self.bytes_stored += other.bytes_stored;
        self.bytes_stored_nt += other.bytes_stored_nt;
        self.lines_written += other.lines_written;
        self.blocks_written += other.blocks_written;
        self.flushes += other.flushes;
        self.fences += other.fences;
        self.log_bytes += other.log_bytes;
        self.store_orders += other.store_orders;
        self.media_bytes_written += other.media_bytes_written;
        self.added_ns += other.added_ns;
    }

    /// Whether anything was stored in the image.
    #[must_use]
    pub fn has_stores(&self) -> bool {
        self.bytes_stored > 0 || self.bytes_stored_nt > 0
    }

    /// Bytes that the device wrote for each byte of the lines and of the log that were written to
    /// it: less than 1 where lines were written again while the device still had them in its
    /// buffer. `None` if nothing was written or no device is imitated.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.lines_written * LINE_BYTES + self.log_bytes;
        (self.media_bytes_written > 0 && written > 0)
            .then(|| self.media_bytes_written as f64 / written as f64)
    }

    #[inline]
    pub(crate) fn add_loads(&mut self, loads: Loads) {
        self.lines_read += loads.lines;
        self.blocks_read += loads.blocks;
    }

    #[inline]
    pub(crate) fn count_store_nt(&mut self, offset: u64, len: u64) {
        self.bytes_stored_nt += len;
        self.lines_written += units(offset, len, LINE_BYTES);
        self.blocks_written += units(offset, len, BLOCK_BYTES);
    }

    #[inline]
    pub(crate) fn count_lines(&mut self, count: LineCount) {
        self.bytes_stored_nt += count.lines * LINE_BYTES;
        self.lines_written += count.lines;
        self.blocks_written += count.blocks;
    }

    #[inline]
    pub(crate) fn count_flush(&mut self, offset: u64, len: u64) {
        let lines = units(offset, len, LINE_BYTES);
        self.flushes += lines;
        self.lines_written += lines;
        self.blocks_written += units(offset, len, BLOCK_BYTES);
    }

    #[inline]
    pub(crate) fn count_line_flush(&mut self) {
        self.flushes += 1;
        self.lines_written += 1;
        self.blocks_written += 1;
    }
}
