//! What every device does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::device::combining::Buffered;
use crate::device::owed_time::OwedTime;
use crate::device::{Counters, FileUse, PageUse, Shortcuts};
use crate::epoch_number::EpochNumber;
use crate::failure::DeviceError;
use crate::memory::Mapping;
use crate::side_files::{LoadMark, Openings, ReplayMarks};
use crate::units::{LINE_BYTES, Line};

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
    /// Where the read before ended, for an emulated device that tells what follows it.
    pub(crate) read_to: u64,
}

/// See [`Device::notes_of_stores`].
pub type NotesOfStores = Box<dyn Fn(u64, u64) + Send + Sync>;

/// See [`Device::brings_pages`].
pub type BringsPages = Box<dyn Fn(u64, u64, Needed) + Send + Sync>;

/// How soon a page is likely to be needed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// As pages of rows are, of which there are many.
    Seldom,
    /// As pages of indexes are, each of which leads to the rows of many.
    Often,
}

/// A log space that is read: that of a device, or a copy of one.
pub trait LogSpace {
    /// Its length in bytes.
    fn log_bytes(&self) -> u64;

    /// Reads from it.
    ///
    /// # Errors
    /// [`DeviceError`] when it cannot be read.
    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError>;
}

impl<D: Device> LogSpace for D {
    fn log_bytes(&self) -> u64 {
        Device::log_bytes(self)
    }

    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        Device::log_read(self, offset, into)
    }
}

/// Where the bytes are. An image and a log space.
///
/// # Ownership
/// The store methods write through a shared reference. They are `unsafe` because the caller must
/// own the byte range in the current phase: it is inside the image, and no other thread reads or
/// writes it at the same time, except for 8-byte words that all sides access as atomics.
pub trait Device: Send + Sync + 'static {
    /// What this device is.
    fn description(&self) -> Description;

    /// What [`AnyDevice`](crate::AnyDevice) may do by itself instead of calling this device.
    fn shortcuts(&self) -> Shortcuts {
        Shortcuts::default()
    }

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

    /// Makes sure that the next snapshot has room for so many pages more than were stored to since
    /// the last one (O-56): from then on it cannot fail for want of room. Besides them some stay
    /// that only a caller who frees space may take. Devices that store in place have room already.
    ///
    /// # Errors
    /// [`DeviceError::Full`] when the file system has no space left.
    fn reserve_pages(&self, _pages: u64, _frees: bool) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Stores one aligned 8-byte word, atomically (relaxed).
    ///
    /// # Safety
    /// See the trait's section on ownership; the word is aligned.
    #[inline]
    unsafe fn store_u64(&self, port: &mut PortState, offset: u64, value: u64) {
        let _ = port;
        // SAFETY: owned by the caller in this phase.
        unsafe { self.image().store_u64(offset, value) }
    }

    /// Stores bytes with ordinary stores, in increasing address order.
    ///
    /// # Safety
    /// See the trait's section on ownership.
    #[inline]
    unsafe fn store_bytes(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        let _ = port;
        // SAFETY: owned by the caller in this phase.
        unsafe { self.image().store_bytes(offset, bytes) }
    }

    /// Where a caller tells what it stores next to the image by its address, through no method of
    /// this trait: offset and bytes of each range, which it owns. Only of devices that take
    /// snapshots: these have to know which pages change. It does not keep the device.
    fn notes_of_stores(&self) -> Option<NotesOfStores> {
        None
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
    #[inline]
    unsafe fn store_line(&self, port: &mut PortState, offset: u64, line: &Line) {
        // SAFETY: forwarded to the caller.
        unsafe { self.store_nt(port, offset, line) }
    }

    /// Whether writes cost something here, so that [`Device::wrote_lines`] must know of each line
    /// that [`Device::store_line`] stores.
    #[inline]
    fn charges_writes(&self) -> bool {
        false
    }

    /// Called for lines that follow each other and that [`Device::store_line`] stores, where writes
    /// cost something.
    #[inline]
    fn wrote_lines(&self, port: &mut PortState, offset: u64, lines: u64) {
        let _ = (port, offset, lines);
    }

    /// Makes this thread's non-temporal stores visible to other threads before its later stores.
    /// Makes nothing durable.
    #[inline]
    fn order_stores(&self) {}

    /// Whether reads cost something here, so that [`Device::loaded`] must know each of them.
    #[inline]
    fn charges_loads(&self) -> bool {
        false
    }

    /// Called for every read of the image, where reads cost something.
    #[inline]
    fn loaded(&self, port: &mut PortState, offset: u64, len: u64) {
        let _ = (port, offset, len);
    }

    /// Waits for as long as the port still owes, where accesses cost time.
    #[inline]
    fn pay_owed_time(&self, port: &mut PortState) {
        let _ = port;
    }

    /// Starts writing the lines of a range back to the device; durable after the same port's fence.
    fn flush(&self, port: &mut PortState, offset: u64, len: u64);

    /// As [`Device::flush`], of the line that begins at an offset.
    #[inline]
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

    /// Gives the log space behind an offset back, of which nothing is needed for any state that a
    /// crash could leave; its bytes may not be used from then on. If that has to wait for the next
    /// snapshot, `false`: nothing has changed, and the caller tries again when that is durable.
    /// Devices that keep what they have say so, too.
    ///
    /// # Errors
    /// The device's, sticky.
    fn shrink_log(&self, bytes: u64) -> Result<bool, DeviceError> {
        let _ = bytes;
        Ok(false)
    }

    /// Writes into the log space. Two ports never write the same range at the same time.
    ///
    /// # Errors
    /// [`DeviceError`] when the device refuses; the error is sticky (obligation O-57).
    fn log_write(&self, port: &mut PortState, offset: u64, bytes: &[u8])
    -> Result<(), DeviceError>;

    /// What a log write begins at and is as long as a multiple of, in bytes, so that nothing has to
    /// be read for it: with [`Device::log_write`], or `is_now`, with [`Device::log_write_now`].
    fn log_unit(&self, is_now: bool) -> usize {
        let _ = is_now;
        1
    }

    /// [`Device::log_write`] of whole units where [`Device::log_sync`] follows at once, and nothing
    /// else is written before: where one write that is durable takes less time than a write and a
    /// sync, it is made so, and the sync has nothing left to do.
    ///
    /// # Errors
    /// As [`Device::log_write`].
    fn log_write_now(
        &self,
        port: &mut PortState,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        self.log_write(port, offset, bytes)
    }

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

    /// Tells a store that was restored, or that gave up epochs, from the one that it was before: 0,
    /// or a number that was made up then.
    fn branch(&self) -> u64 {
        0
    }

    /// Makes the store a branch of its own, durably, before [`Device::accept`]: its next epochs are
    /// others than those of the same numbers that copies and archives have.
    ///
    /// # Errors
    /// The device's, sticky.
    fn begin_branch(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Notes, durably, that this opening writes epochs from `first` on. Called after
    /// [`Device::accept`], before the first of them is answered; nothing happens where nothing is
    /// written.
    ///
    /// # Errors
    /// [`DeviceError::Full`] if the disk has no room for it; the device's, sticky.
    fn note_opening(&self, first: EpochNumber) -> Result<(), DeviceError> {
        let _ = first;
        Ok(())
    }

    /// Which openings wrote which epochs; `None` if that is not known.
    fn openings(&self) -> Option<Openings> {
        None
    }

    /// The directory in which the user of the log is to keep what it needs no more, if there is
    /// one.
    fn archive(&self) -> Option<&Path> {
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

    /// What shows that the log was cut off after the newest snapshot, if it was: its file was
    /// shorter at this open than that snapshot says. Which epochs it still has is the caller's
    /// affair, and whether it goes on without the others. [`Device::accept`] makes it as long
    /// again, with zeros.
    fn lost_log(&self) -> Option<String> {
        None
    }

    /// Words that outlive the process without being durable, for the one who recovers the store:
    /// where the death of the process in a recovery is to leave a trace. `None` on devices that do
    /// not outlive it, or must not be written to.
    ///
    /// # Errors
    /// [`DeviceError::Full`] if the disk has no room for them; [`DeviceError::Io`] if they cannot
    /// be had.
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
    #[inline]
    fn may_show_undurable(&self) -> bool {
        false
    }

    /// What is in memory of an image that may be larger; `None` where all of it is.
    fn page_use(&self) -> Option<PageUse> {
        None
    }

    /// Whether the image may be larger than memory.
    #[inline]
    fn has_memory_limit(&self) -> bool {
        false
    }

    /// Whether pages of the image may be absent, so that it is worth to tell which are needed
    /// soon. Where they are read after the open, the answer changes at any moment: threads that are
    /// to do the same ask once.
    #[inline]
    fn has_absent_pages(&self) -> bool {
        self.has_memory_limit()
    }

    /// Waits until every page of the image is in memory, where they are read after the open; who
    /// is going to visit all of them calls it first. Does nothing where there is a limit of memory.
    ///
    /// # Errors
    /// [`DeviceError`] if a page is damaged or cannot be read.
    fn wait_for_pages(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Sees that a part of the image is in memory; with a limit of memory, other pages go for it.
    /// What an open looks at is read so first: a damaged page is an error then, and ends the
    /// process when it is touched.
    ///
    /// # Errors
    /// [`DeviceError`] if a page is damaged or cannot be read.
    fn read_pages(&self, _offset: u64, _len: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Leaves so many bytes of the limit of memory to other things than the image.
    fn leave_memory(&self, other_bytes: u64) {
        let _ = other_bytes;
    }

    /// A range of the image is needed soon: pages of it that are absent, and that no thread reads
    /// yet, are added to a list for [`Device::fetch_pages`]. A caller may touch them before.
    #[inline]
    fn want_pages(&self, offset: u64, len: u64, needed: Needed, missing: &mut Vec<u64>) {
        let _ = (offset, len, needed, missing);
    }

    /// Reads the pages of a list in the background, and empties it.
    fn fetch_pages(&self, missing: &mut Vec<u64>) {
        let _ = missing;
    }

    /// What brings the pages of a range that are absent to memory, on the thread that calls it, by
    /// offset and bytes: that costs less than to touch them. A page that cannot be read ends the
    /// process, as if it was touched. An offset behind the image's limit stands for what is not of
    /// the image. Only where the image may be larger than memory; it does not keep the device.
    fn brings_pages(&self) -> Option<BringsPages> {
        None
    }

    /// Where who keeps rows beside the image says how many bytes these take: as many fewer of pages
    /// are in memory. Only where the image may be larger than memory.
    fn kept_bytes(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Whether so much was stored to since the last snapshot that one is due, for want of memory.
    fn needs_snapshot(&self) -> bool {
        false
    }

    /// Bytes of the pages that the next snapshot would write, at most; 0 on devices that take none.
    fn changed_bytes(&self) -> u64 {
        0
    }

    /// Whether a checkpoint must snapshot the image (`file`), because fences alone make nothing
    /// durable.
    fn takes_snapshots(&self) -> bool {
        false
    }

    /// Begins a snapshot of what changed since the last one: part `part` of `parts`. All workers
    /// call it for their part while nothing stores to the image. Waits while the snapshot before is
    /// still being written. What is stored afterwards is not in it.
    ///
    /// # Errors
    /// [`DeviceError`] if an earlier snapshot failed.
    fn snapshot_part(&self, part: usize, parts: usize) -> Result<(), DeviceError> {
        let _ = (part, parts);
        Ok(())
    }

    /// Hands the parts to the background writer, as the state at the end of `epoch`.
    ///
    /// # Errors
    /// The error of an earlier snapshot, sticky.
    fn snapshot_commit(&self, epoch: EpochNumber) -> Result<(), DeviceError> {
        let _ = epoch;
        Ok(())
    }

    /// Whether a snapshot is being written, so that the next one would wait.
    fn is_saving(&self) -> bool {
        false
    }

    /// Saves the newest snapshot again, so that space can be given back that it names and nothing
    /// needs. Waits until that is durable.
    ///
    /// # Errors
    /// The error of the background writer, sticky.
    fn save_again(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// What the files of the store take of the disk; `None` on devices that have none of their own.
    fn use_of_files(&self) -> Option<FileUse> {
        None
    }

    /// Number of the newest snapshot that would survive a crash now; `None` if this device does not
    /// snapshot or nothing was saved yet.
    fn snapshot_epoch(&self) -> Option<EpochNumber> {
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
