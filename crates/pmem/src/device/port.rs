//! A worker's way to a device.

use std::sync::Arc;

use crate::device::interface::{Device, PortState};
use crate::device::step::Step;
use crate::device::{AnyDevice, Counters, LineCount, Loads};
use crate::failure::DeviceError;
use crate::sync::{point, writes};
use crate::units::{LINE_BYTES, Line};

/// Lines that a port notes before it flushes them: few enough to be in the processor's nearest
/// caches still, and so many that the wait behind the last of them is spread thin.
const NOTED_MAX: usize = 1024;

/// One worker's way to a device: forwards to it and counts. Not shared between threads.
///
/// A fence waits for the flushes before it, and so does any locked instruction. Therefore lines
/// that need not be durable before the next fence are *noted* ([`Port::flush_by_fence`]), and
/// flushed together when that fence comes.
pub struct Port<D: Device = AnyDevice> {
    device: Arc<D>,
    state: PortState,
    step: Step,
    /// Lines to flush before the next fence, in the order in which they were stored to.
    noted: Vec<u64>,
    /// Whether there are non-temporal stores that later stores could overtake.
    has_unordered: bool,
}

impl<D: Device> Port<D> {
    /// A port with its own number and zero counters.
    pub fn new(device: Arc<D>, id: u32) -> Self {
        let state = PortState { id, ..PortState::default() };
        Self { device, state, step: Step::default(), noted: Vec::new(), has_unordered: false }
    }

    /// The device behind the port.
    pub fn device(&self) -> &Arc<D> {
        &self.device
    }

    /// What went through this port since [`Port::take_counters`].
    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }

    /// Returns the counters and starts again from zero.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.state.counters)
    }

    /// Reads one aligned 8-byte word (relaxed) without counting it: words are read with their line.
    #[inline]
    pub fn load_u64(&self, offset: u64) -> u64 {
        self.device.image().load_u64(offset)
    }

    /// Borrows bytes of the image and counts the read.
    ///
    /// # Safety
    /// No thread stores to the range while the slice lives (phase rule of the caller).
    #[inline]
    pub unsafe fn read(&mut self, offset: u64, len: u64) -> &[u8] {
        self.count_load(offset, len);
        // SAFETY: forwarded to the caller.
        unsafe { self.device.image().slice(offset, len) }
    }

    /// Counts a read that was made through the mapping directly, on every device.
    #[inline]
    pub fn count_load(&mut self, offset: u64, len: u64) {
        let mut loads = Loads::default();
        loads.count(offset, len);
        self.add_loads(loads);
        self.device.loaded(&mut self.state, offset, len);
    }

    /// Charges and counts a read that was made through the mapping directly, but only where reads
    /// cost something, and only for lines that the running step has not read yet: those are in the
    /// processor's cache.
    #[inline]
    pub fn charge_load(&mut self, offset: u64, len: u64) {
        if self.device.charges_loads() {
            self.touch(offset, len);
        }
    }

    /// Charges and counts a read as far as it is of lines that the running step has not read yet.
    /// Each run of such lines counts as a read of its own.
    #[inline(never)]
    pub fn touch(&mut self, offset: u64, len: u64) {
        let mut from = offset - offset % LINE_BYTES;
        let end = (offset + len).next_multiple_of(LINE_BYTES);
        while len > 0 && from < end {
            let mut to = from;
            while to < end && self.step.is_new(to) {
                to += LINE_BYTES;
            }
            self.count_load(from, to - from);
            // The line at `to`, if there is one, was read before.
            from = to + LINE_BYTES;
        }
    }

    /// A step is over: what it read may have left the processor's cache when it is read again.
    #[inline]
    pub fn end_step(&mut self) {
        self.step.clear();
    }

    /// See [`Device::pay_owed_time`].
    pub fn pay_owed_time(&mut self) {
        self.device.pay_owed_time(&mut self.state);
    }

    /// Adds reads that were counted elsewhere, on a device that charges nothing for them.
    #[inline]
    pub fn add_loads(&mut self, loads: Loads) {
        self.state.counters.add_loads(loads);
    }

    /// See [`Device::store_u64`].
    ///
    /// # Safety
    /// The caller owns the word in this phase.
    #[inline]
    pub unsafe fn store_u64(&mut self, offset: u64, value: u64) {
        debug_assert!(offset.is_multiple_of(8), "a word is aligned, not at {offset}");
        writes(self.device.image().base().wrapping_add(offset as usize));
        self.state.counters.bytes_stored += 8;
        // SAFETY: forwarded to the caller.
        unsafe { self.device.store_u64(&mut self.state, offset, value) }
    }

    /// Stores two aligned words, one after the other.
    ///
    /// # Safety
    /// The caller owns the words in this phase.
    #[inline]
    pub unsafe fn store_two(&mut self, offset: u64, values: [u64; 2]) {
        debug_assert!(offset.is_multiple_of(8), "words are aligned, not at {offset}");
        writes(self.device.image().base().wrapping_add(offset as usize));
        self.state.counters.bytes_stored += 16;
        // SAFETY: forwarded to the caller.
        unsafe {
            self.device.store_u64(&mut self.state, offset, values[0]);
            self.device.store_u64(&mut self.state, offset + 8, values[1]);
        }
    }

    /// See [`Device::store_bytes`].
    ///
    /// # Safety
    /// The caller owns the range in this phase.
    #[inline]
    pub unsafe fn store_bytes(&mut self, offset: u64, bytes: &[u8]) {
        writes(self.device.image().base().wrapping_add(offset as usize));
        self.state.counters.bytes_stored += bytes.len() as u64;
        // SAFETY: forwarded to the caller.
        unsafe { self.device.store_bytes(&mut self.state, offset, bytes) }
    }

    /// See [`Device::store_nt`].
    ///
    /// # Safety
    /// The caller owns the range in this phase.
    #[inline]
    pub unsafe fn store_nt(&mut self, offset: u64, bytes: &[u8]) {
        writes(self.device.image().base().wrapping_add(offset as usize));
        self.state.counters.count_store_nt(offset, bytes.len() as u64);
        self.has_unordered = true;
        // SAFETY: forwarded to the caller.
        unsafe { self.device.store_nt(&mut self.state, offset, bytes) }
    }

    /// Stores a line non-temporally.
    ///
    /// # Safety
    /// The caller owns the line in this phase, which begins at the offset.
    #[inline]
    pub unsafe fn store_line(&mut self, offset: u64, line: &Line) {
        self.count_run(offset, 1);
        // SAFETY: forwarded to the caller.
        unsafe { self.store_line_counted(offset, line) }
    }

    /// Counts the lines of a row that [`Port::store_line_counted`] stores: of those from an offset
    /// on, the ones that have a bit.
    #[inline]
    pub fn count_lines(&mut self, count: LineCount, offset: u64, bits: u64) {
        self.state.counters.count_lines(count);
        if self.device.charges_writes() {
            self.charge_bits(offset, bits);
        }
    }

    #[inline(never)]
    fn charge_bits(&mut self, offset: u64, mut bits: u64) {
        debug_assert!(offset.is_multiple_of(LINE_BYTES), "lines have bits from a line on");
        while bits != 0 {
            let from = bits.trailing_zeros();
            let lines = (!(bits >> from)).trailing_zeros();
            let run = offset + u64::from(from) * LINE_BYTES;
            self.device.wrote_lines(&mut self.state, run, u64::from(lines));
            // Adding the lowest bit of a run carries through all of it.
            bits &= bits.wrapping_add(1 << from);
        }
    }

    /// As [`Port::count_lines`], of lines that follow each other.
    #[inline]
    pub fn count_run(&mut self, offset: u64, lines: u64) {
        debug_assert!(offset.is_multiple_of(LINE_BYTES), "a run begins with a line");
        self.state.counters.count_lines(LineCount::of(offset, lines));
        self.device.wrote_lines(&mut self.state, offset, lines);
    }

    /// Stores a line non-temporally that is counted otherwise ([`Port::count_lines`],
    /// [`Port::count_run`]).
    ///
    /// # Safety
    /// As for [`Port::store_line`].
    #[inline(always)]
    pub unsafe fn store_line_counted(&mut self, offset: u64, line: &Line) {
        debug_assert!(offset.is_multiple_of(LINE_BYTES), "a line begins at its offset");
        writes(self.device.image().base().wrapping_add(offset as usize));
        self.has_unordered = true;
        // SAFETY: forwarded to the caller.
        unsafe { self.device.store_line(&mut self.state, offset, line) }
    }

    /// See [`Device::order_stores`]. Nothing is done if this port made no non-temporal store since
    /// it last ordered or fenced them: ordinary stores come in order.
    #[inline]
    pub fn order_stores(&mut self) {
        if std::mem::take(&mut self.has_unordered) {
            self.state.counters.store_orders += 1;
            self.device.order_stores();
        }
    }

    /// See [`Device::flush`]. Lines and blocks written are counted here.
    #[inline]
    pub fn flush(&mut self, offset: u64, len: u64) {
        point();
        self.state.counters.count_flush(offset, len);
        self.device.flush(&mut self.state, offset, len);
    }

    /// As [`Port::flush`], of the line that begins at an offset.
    #[inline]
    pub fn flush_line(&mut self, offset: u64) {
        point();
        debug_assert!(offset.is_multiple_of(LINE_BYTES));
        self.state.counters.count_line_flush();
        self.device.flush_line(&mut self.state, offset);
    }

    /// Sees to it that what was stored to the lines of a range is durable after this port's next
    /// fence: notes them, to be flushed then. Where non-temporal stores wait to be ordered they are
    /// flushed at once: the fence that orders them waits anyway, and lines of one block that come
    /// one after the other are one write of the device.
    #[inline]
    pub fn flush_by_fence(&mut self, offset: u64, len: u64) {
        if self.has_unordered {
            return self.flush(offset, len);
        }
        let first = offset - offset % LINE_BYTES;
        let end = if len == 0 { first } else { offset + len };
        for line in (first..end).step_by(LINE_BYTES as usize) {
            self.note(line);
        }
    }

    /// As [`Port::flush_by_fence`], of the line that begins at an offset.
    #[inline(always)]
    pub fn flush_line_by_fence(&mut self, offset: u64) {
        if self.has_unordered {
            return self.flush_line(offset);
        }
        self.note(offset);
    }

    /// Notes a line.
    #[inline]
    fn note(&mut self, line: u64) {
        debug_assert!(line.is_multiple_of(LINE_BYTES));
        if self.noted.len() == NOTED_MAX {
            self.flush_noted();
        }
        self.noted.push(line);
    }

    /// Flushes the lines that are noted; those that follow each other, or were noted twice in a
    /// row, at once.
    #[inline(never)]
    fn flush_noted(&mut self) {
        let mut noted = std::mem::take(&mut self.noted);
        for run in noted.chunk_by(|line, next| next.wrapping_sub(*line) <= LINE_BYTES) {
            match *run {
                [line] => self.flush_line(line),
                [first, .., last] => self.flush(first, last + LINE_BYTES - first),
                [] => {}
            }
        }
        noted.clear();
        self.noted = noted;
    }

    /// See [`Device::write_back`]: counted as stored and flushed.
    ///
    /// # Safety
    /// The memory is mapped.
    pub unsafe fn write_back(&mut self, address: usize, len: u64) {
        self.state.counters.bytes_stored += len;
        self.state.counters.count_flush(address as u64, len);
        // SAFETY: forwarded to the caller.
        unsafe { self.device.write_back(&mut self.state, address, len) }
    }

    /// See [`Device::fence`]; covers what [`Port::flush_by_fence`] noted, too.
    pub fn fence(&mut self) {
        self.flush_noted();
        self.has_unordered = false;
        point();
        self.state.counters.fences += 1;
        self.device.fence(&mut self.state);
    }

    /// See [`Device::log_write`].
    ///
    /// # Errors
    /// As the device's.
    pub fn log_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.state.counters.log_bytes += bytes.len() as u64;
        self.device.log_write(&mut self.state, offset, bytes)
    }

    /// See [`Device::log_write_now`].
    ///
    /// # Errors
    /// As the device's.
    pub fn log_write_now(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.state.counters.log_bytes += bytes.len() as u64;
        self.device.log_write_now(&mut self.state, offset, bytes)
    }

    /// See [`Device::log_fence`].
    pub fn log_fence(&mut self) {
        self.device.log_fence(&mut self.state);
    }
}
