//! The interface between the engine and whatever keeps its bytes.
//!
//! A device has two spaces. The **image** is byte-addressed memory: rows, values, pools,
//! superblock; it is always mapped, so loads are plain loads. The **log** is written front to back
//! in records and read only at recovery. Every change of either goes through a [`Port`], so that a
//! device can count it, slow it down, mark a page dirty, or record it for crash exploration. The
//! engine is generic over `Device`: on `dram` a store compiles to a store.
//!
//! This module knows nothing of rows, versions or epochs, except that a snapshot has a number.

use std::sync::Arc;

use crate::combining::Buffered;
use crate::owed_time::OwedTime;
use crate::step::Step;
use crate::sync::{point, writes};
use crate::units::{LINE_BYTES, Line};
use crate::{Counters, DeviceError, LineCount, LoadMark, Loads, Mapping, ReplayMarks};

/// Bytes of the record that [`Device::write_mark`] keeps.
pub const MARK_BYTES: usize = 48;

/// What a device is, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Short name as given on the command line: `dram`, `emulated:optane`, `file:DIR`.
    pub name: String,
    /// Whether what was fenced (and saved) survives a power cut.
    pub durable: bool,
    /// One sentence that says what the figures of this device mean.
    pub note: String,
}

/// What a port knows of itself; devices see it in every call.
#[derive(Debug, Default)]
pub struct PortState {
    /// Number of the port: fences cover only the flushes of the same port (obligation O-22).
    pub id: u32,
    /// What went through this port.
    pub counters: Counters,
    /// What it owes to an emulated device, which it pays in pieces.
    pub(crate) owed: OwedTime,
    /// Which blocks it has in an emulated device's buffer of writes.
    pub(crate) buffered: Buffered,
}

/// Where the bytes are. See the module's documentation.
///
/// # Ownership
/// The store methods write through a shared reference. They are `unsafe` because the caller must
/// own the byte range in the current phase: it is inside the image, and no other thread reads or
/// writes it at the same time, except for 8-byte words that all sides access as atomics.
pub trait Device: Send + Sync + 'static {
    /// What this device is.
    fn description(&self) -> Description;

    /// The mapped image. Its base address never changes while the device lives.
    fn image(&self) -> &Mapping;

    /// Bytes of the image that may be used now. Never shrinks.
    fn image_bytes(&self) -> u64;

    /// Makes at least `bytes` of the image usable; new bytes are zero. Durable before it returns
    /// (obligation O-56): nothing may refer to space that a crash could take away.
    ///
    /// # Errors
    /// [`DeviceError::Full`] beyond the configured limit or when the file system has no space left.
    fn grow_image(&self, bytes: u64) -> Result<(), DeviceError>;

    /// Stores one aligned 8-byte word, atomically (relaxed).
    ///
    /// # Safety
    /// See the trait's section on ownership; the word is aligned.
    #[inline(always)]
    unsafe fn store_u64(&self, port: &mut PortState, offset: u64, value: u64) {
        let _ = port;
        // SAFETY: owned by the caller in this phase.
        unsafe { self.image().store_u64(offset, value) }
    }

    /// Stores bytes with ordinary stores, in increasing address order.
    ///
    /// # Safety
    /// See the trait's section on ownership.
    #[inline(always)]
    unsafe fn store_bytes(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        let _ = port;
        // SAFETY: owned by the caller in this phase.
        unsafe { self.image().store_bytes(offset, bytes) }
    }

    /// Stores bytes non-temporally; durable after the same port's next fence.
    /// Ordinary stores plus flush where the alignment or the processor does not allow it.
    ///
    /// # Safety
    /// See the trait's section on ownership.
    unsafe fn store_nt(&self, port: &mut PortState, offset: u64, bytes: &[u8]);

    /// As [`Device::store_nt`], of one line, for which [`Device::wrote_lines`] is called apart.
    ///
    /// # Safety
    /// See the trait's section on ownership; the offset is that of a line.
    #[inline(always)]
    unsafe fn store_line(&self, port: &mut PortState, offset: u64, line: &Line) {
        // SAFETY: forwarded to the caller.
        unsafe { self.store_nt(port, offset, line) }
    }

    /// Whether writes cost something here, so that [`Device::wrote_lines`] must know of each line
    /// that [`Device::store_line`] stores.
    #[inline(always)]
    fn charges_writes(&self) -> bool {
        false
    }

    /// Called for lines that follow each other and that [`Device::store_line`] stores, where writes
    /// cost something.
    #[inline(always)]
    fn wrote_lines(&self, port: &mut PortState, offset: u64, lines: u64) {
        let _ = (port, offset, lines);
    }

    /// Makes this thread's non-temporal stores visible to other threads before its later stores.
    /// Makes nothing durable.
    #[inline(always)]
    fn order_stores(&self) {}

    /// Whether reads cost something here, so that [`Device::loaded`] must know each of them.
    #[inline(always)]
    fn charges_loads(&self) -> bool {
        false
    }

    /// Called for every read of the image, where reads cost something.
    #[inline(always)]
    fn loaded(&self, port: &mut PortState, offset: u64, len: u64) {
        let _ = (port, offset, len);
    }

    /// Waits for as long as the port still owes, where accesses cost time.
    #[inline(always)]
    fn pay_owed_time(&self, port: &mut PortState) {
        let _ = port;
    }

    /// Starts writing the lines of a range back to the device; durable after the same port's fence.
    fn flush(&self, port: &mut PortState, offset: u64, len: u64);

    /// As [`Device::flush`], of the line that begins at an offset.
    #[inline(always)]
    fn flush_line(&self, port: &mut PortState, offset: u64) {
        self.flush(port, offset, LINE_BYTES);
    }

    /// Writes back memory that is not of the image, and costs what a flush of as much of the image
    /// does: experiments keep things there that are only imagined to be on the device.
    ///
    /// # Safety
    /// The memory is mapped.
    unsafe fn write_back(&self, port: &mut PortState, address: usize, len: u64) {
        let _ = (port, address, len);
    }

    /// Waits until everything that this port flushed or stored non-temporally is durable.
    fn fence(&self, port: &mut PortState);

    /// Bytes of the log space that may be used now.
    fn log_bytes(&self) -> u64;

    /// Makes at least `bytes` of log space usable; new bytes read as zero.
    ///
    /// # Errors
    /// As [`Device::grow_image`].
    fn grow_log(&self, bytes: u64) -> Result<(), DeviceError>;

    /// Writes into the log space. Two ports never write the same range at the same time.
    ///
    /// # Errors
    /// [`DeviceError`] when the device refuses; the error is sticky (obligation O-57).
    fn log_write(&self, port: &mut PortState, offset: u64, bytes: &[u8])
    -> Result<(), DeviceError>;

    /// Makes this port's log writes durable where that is a matter of the port (memory devices). A
    /// port calls it after its writes and before the coordinator calls [`Device::log_sync`].
    fn log_fence(&self, port: &mut PortState);

    /// Makes all log writes of all ports durable. Called by one thread, after every port's fence.
    ///
    /// # Errors
    /// Sticky: after the first failure every later call fails too (obligation O-57).
    fn log_sync(&self) -> Result<(), DeviceError>;

    /// Reads from the log space. Only at recovery and in `check`.
    ///
    /// # Errors
    /// [`DeviceError`] when the device cannot be read.
    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError>;

    /// The number that the device's own files have, made up when they were created; `None` where
    /// there are no such files. A store on the device takes it as its own, so that files of two
    /// stores cannot be mixed.
    fn instance(&self) -> Option<u64> {
        None
    }

    /// The caller has read and verified the state and is going to change it. Until then a device
    /// that keeps its bytes in files changes none of them, so that an open that is refused leaves
    /// every byte as it was. Called before growth of the log and any snapshot; once it succeeded,
    /// further calls do nothing.
    ///
    /// # Errors
    /// [`DeviceError`] if the files cannot be brought to the state that was read.
    fn accept(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Keeps a small record, in place of the last one, without making it durable: it survives the
    /// end of the process; after a power cut this one or an older one is found. What it means is
    /// the caller's affair. Devices that need no such record drop it.
    ///
    /// # Errors
    /// The device's, sticky.
    fn write_mark(&self, mark: &[u8; MARK_BYTES]) -> Result<(), DeviceError> {
        let _ = mark;
        Ok(())
    }

    /// The newest record that [`Device::write_mark`] left before this open, if any is intact.
    fn mark(&self) -> Option<[u8; MARK_BYTES]> {
        None
    }

    /// Words that outlive the process without being durable, for the one who recovers the store:
    /// where the death of the process in a recovery is to leave a trace. `None` on devices that do
    /// not outlive it, or must not be written to.
    ///
    /// # Errors
    /// [`DeviceError::Io`] if they cannot be had.
    fn replay_marks(&self) -> Result<Option<ReplayMarks>, DeviceError> {
        Ok(None)
    }

    /// The mark of a load that has not come to its end; `None` on devices that do not outlive the
    /// process.
    fn load_mark(&self) -> Option<LoadMark> {
        None
    }

    /// Whether what this device shows when it is opened may be undurable: stores of a process that
    /// was killed, which the processor's cache still holds and no thread will flush. A caller that
    /// builds on them makes them durable first.
    #[inline(always)]
    fn may_show_undurable(&self) -> bool {
        false
    }

    /// Whether a checkpoint must snapshot the image (`file`), because fences alone make nothing
    /// durable.
    fn takes_snapshots(&self) -> bool {
        false
    }

    /// Copies part `part` of `parts` of what changed since the last snapshot aside. All workers
    /// call it for their part while nothing stores to the image.
    ///
    /// # Errors
    /// [`DeviceError`] if an earlier snapshot failed.
    fn snapshot_part(&self, part: usize, parts: usize) -> Result<(), DeviceError> {
        let _ = (part, parts);
        Ok(())
    }

    /// Hands the saved parts to the background writer, as the state at the end of `epoch`. Waits
    /// while the snapshot before is still being written, which bounds memory.
    ///
    /// # Errors
    /// The error of an earlier snapshot, sticky.
    fn snapshot_commit(&self, epoch: u64) -> Result<(), DeviceError> {
        let _ = epoch;
        Ok(())
    }

    /// Number of the newest snapshot that would survive a crash now; `None` if this device does not
    /// snapshot or nothing was saved yet.
    fn snapshot_epoch(&self) -> Option<u64> {
        None
    }

    /// Waits until the newest committed snapshot is durable.
    ///
    /// # Errors
    /// The error of the background writer, sticky.
    fn settle(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Lines that a port notes before it flushes them: few enough to be in the processor's nearest
/// caches still, and so many that the wait behind the last of them is spread thin.
const NOTED_MAX: usize = 1024;

/// One worker's way to a device: forwards to it and counts. Not shared between threads.
///
/// A fence waits for the flushes before it, and so does any locked instruction. Therefore lines
/// that need not be durable before the next fence are *noted* ([`Port::flush_by_fence`]), and
/// flushed together when that fence comes.
pub struct Port<D: Device> {
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
    #[inline(always)]
    pub fn load_u64(&self, offset: u64) -> u64 {
        self.device.image().load_u64(offset)
    }

    /// Borrows bytes of the image and counts the read.
    ///
    /// # Safety
    /// No thread stores to the range while the slice lives (phase rule of the caller).
    #[inline(always)]
    pub unsafe fn read(&mut self, offset: u64, len: u64) -> &[u8] {
        self.count_load(offset, len);
        // SAFETY: forwarded to the caller.
        unsafe { self.device.image().slice(offset, len) }
    }

    /// Counts a read that was made through the mapping directly, on every device.
    #[inline(always)]
    pub fn count_load(&mut self, offset: u64, len: u64) {
        let mut loads = Loads::default();
        loads.count(offset, len);
        self.add_loads(loads);
        self.device.loaded(&mut self.state, offset, len);
    }

    /// Charges and counts a read that was made through the mapping directly, but only where reads
    /// cost something, and only for lines that the running step has not read yet: those are in the
    /// processor's cache.
    #[inline(always)]
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
    #[inline(always)]
    pub fn end_step(&mut self) {
        self.step.clear();
    }

    /// See [`Device::pay_owed_time`].
    pub fn pay_owed_time(&mut self) {
        self.device.pay_owed_time(&mut self.state);
    }

    /// Adds reads that were counted elsewhere, on a device that charges nothing for them.
    #[inline(always)]
    pub fn add_loads(&mut self, loads: Loads) {
        self.state.counters.add_loads(loads);
    }

    /// See [`Device::store_u64`].
    ///
    /// # Safety
    /// The caller owns the word in this phase.
    #[inline(always)]
    pub unsafe fn store_u64(&mut self, offset: u64, value: u64) {
        writes(self.device.image().base().wrapping_add(offset as usize));
        self.state.counters.bytes_stored += 8;
        // SAFETY: forwarded to the caller.
        unsafe { self.device.store_u64(&mut self.state, offset, value) }
    }

    /// Stores two aligned words, one after the other.
    ///
    /// # Safety
    /// The caller owns the words in this phase.
    #[inline(always)]
    pub unsafe fn store_two(&mut self, offset: u64, values: [u64; 2]) {
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
    #[inline(always)]
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
    #[inline(always)]
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
    #[inline(always)]
    pub unsafe fn store_line(&mut self, offset: u64, line: &Line) {
        self.count_run(offset, 1);
        // SAFETY: forwarded to the caller.
        unsafe { self.store_line_counted(offset, line) }
    }

    /// Counts the lines of a row that [`Port::store_line_counted`] stores: of those from an offset
    /// on, the ones that have a bit.
    #[inline(always)]
    pub fn count_lines(&mut self, count: LineCount, offset: u64, bits: u64) {
        self.state.counters.count_lines(count);
        if self.device.charges_writes() {
            self.charge_bits(offset, bits);
        }
    }

    #[inline(never)]
    fn charge_bits(&mut self, offset: u64, mut bits: u64) {
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
    #[inline(always)]
    pub fn count_run(&mut self, offset: u64, lines: u64) {
        self.state.counters.count_lines(LineCount::of(offset, lines));
        self.device.wrote_lines(&mut self.state, offset, lines);
    }

    /// As [`Port::store_line`], of a line that was counted already.
    ///
    /// # Safety
    /// As for [`Port::store_line`].
    #[inline(always)]
    pub unsafe fn store_line_counted(&mut self, offset: u64, line: &Line) {
        debug_assert!(offset.is_multiple_of(LINE_BYTES));
        writes(self.device.image().base().wrapping_add(offset as usize));
        self.has_unordered = true;
        // SAFETY: forwarded to the caller.
        unsafe { self.device.store_line(&mut self.state, offset, line) }
    }

    /// See [`Device::order_stores`]. Nothing is done if this port made no non-temporal store since
    /// it last ordered or fenced them: ordinary stores come in order.
    #[inline(always)]
    pub fn order_stores(&mut self) {
        if std::mem::take(&mut self.has_unordered) {
            self.state.counters.store_orders += 1;
            self.device.order_stores();
        }
    }

    /// See [`Device::flush`]. Lines and blocks written are counted here.
    #[inline(always)]
    pub fn flush(&mut self, offset: u64, len: u64) {
        point();
        self.state.counters.count_flush(offset, len);
        self.device.flush(&mut self.state, offset, len);
    }

    /// As [`Port::flush`], of the line that begins at an offset.
    #[inline(always)]
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
    #[inline(always)]
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

    /// See [`Device::log_fence`].
    pub fn log_fence(&mut self) {
        self.device.log_fence(&mut self.state);
    }
}
