//! An image that is opened before it is in memory: its pages come when they are touched, and all of
//! them in the background, in the order of the file.
//!
//! Rules 1 and 2 of the module above hold. Besides:
//!
//! 1. No page goes. So a page that was installed is never read again, and what is stored to it is
//!    the page's.
//! 2. Pages are absent as long as `userfaultfd` says so. It is given up when every page with a slot
//!    is in memory, and not before: the others are zeros, which is what the system then gives.
//! 3. The image grows behind these pages, by memory that nothing watches.
//! 4. A page that cannot be read and that no thread waits for makes the device fail, so that its
//!    user stops. Where a thread waits, the process ends (S12). Then no more pages are read in the
//!    background, and those that are touched still are.
//! 5. A child of `fork`, in which `userfaultfd` does not hold, has no such pages until all are
//!    there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::failures::{Failures, end_process};
use super::queue::Why;
use super::server::{Keeping, STACK_BYTES, Saved, Server, Shared, readers_of};
use crate::failure::{DeviceError, Health, lock};
use crate::file::disk::Files;
use crate::file::format::Entry;
use crate::file::page_reads::Run;
use crate::file::table::PageTable;
use crate::memory::{HUGE_PAGE_BYTES, Mapping, PAGE_BYTES};
use crate::sync::background::{Condvar, Mutex};
use crate::system::{Process, advice};

/// Slots that are read at once: a thread that touches one of their pages waits for all of them.
const RUN_SLOTS: u64 = (1 << 20) / PAGE_BYTES;

/// How often a page is looked at that another thread reads.
const POLL: Duration = Duration::from_micros(50);

/// How far the reading is.
#[derive(Debug, Default)]
enum Phase {
    #[default]
    Reading,
    /// All pages are in memory.
    Read,
    /// A page could not be read; who asks first gets the error.
    Failed(Option<DeviceError>),
}

#[derive(Debug, Default)]
struct Progress {
    phase: Phase,
    /// The device goes.
    is_over: bool,
}

/// What the thread and the device tell each other.
#[derive(Debug, Default)]
pub(super) struct Told {
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl Told {
    pub(super) fn is_over(&self) -> bool {
        lock(&self.progress).is_over
    }

    fn set(&self, phase: Phase) {
        lock(&self.progress).phase = phase;
        self.changed.notify_all();
    }

    fn wait_over(&self) {
        let progress = lock(&self.progress);
        drop(self.changed.wait_while(progress, |progress| !progress.is_over));
    }
}

/// The pages of an image that is opened before it is in memory. See the module's documentation.
#[derive(Debug)]
pub(in crate::file) struct Loading {
    /// Dropped when all pages are there.
    shared: Weak<Shared>,
    pub(super) told: Arc<Told>,
    thread: Option<JoinHandle<()>>,
    /// In which the thread is.
    process: Process,
}

impl Loading {
    /// The pages of the image that has so many bytes are absent, and begin to be read.
    ///
    /// # Safety
    /// The mapping outlives this, and nothing touched it.
    ///
    /// # Errors
    /// If the system has no `userfaultfd` for this process, or no threads; the image is as before.
    // SAFETY: the contract is above.
    pub(in crate::file) unsafe fn begin(
        image: &Mapping,
        files: &Arc<Files>,
        table: &PageTable,
        image_bytes: u64,
        health: &Arc<Health>,
    ) -> std::io::Result<Self> {
        let range = Range { base: image.base().expose_provenance(), len: image_bytes as usize };
        let failures = Some(Failures::of(health));
        let start = || {
            range.keep_from_children();
            let keeping = Keeping { readers: readers_of(image_bytes), failures, evictor: None };
            // SAFETY: promised.
            let server = unsafe { Server::over(image, image_bytes, files, table, keeping) }?;
            let (shared, told) = (Arc::downgrade(&server.shared), Arc::<Told>::default());
            let theirs = Arc::clone(&told);
            let thread = std::thread::Builder::new()
                .name("pmem-load".to_string())
                .stack_size(STACK_BYTES)
                .spawn(move || load(server, range, &theirs))?;
            Ok(Self { shared, told, thread: Some(thread), process: Process::current() })
        };
        let started = start();
        if started.is_err() {
            range.give_to_children();
            range.ask_for_large_pages();
        }
        started
    }

    /// Waits until all pages are in memory.
    ///
    /// # Errors
    /// [`DeviceError::Corrupt`] if a page is damaged, [`DeviceError::Io`] if one cannot be read;
    /// [`DeviceError::Sticky`] from the second time on.
    pub(in crate::file) fn wait(&self, health: &Health) -> Result<(), DeviceError> {
        let progress = lock(&self.told.progress);
        let is_reading = |progress: &mut Progress| matches!(progress.phase, Phase::Reading);
        let progress = self.told.changed.wait_while(progress, is_reading);
        let mut progress = progress.unwrap_or_else(PoisonError::into_inner);
        match &mut progress.phase {
            Phase::Failed(error) => error.take().map_or_else(|| health.check(), Err),
            Phase::Reading | Phase::Read => Ok(()),
        }
    }

    /// Whether pages may be absent.
    #[inline]
    pub(in crate::file) fn has_absent_pages(&self) -> bool {
        self.shared.strong_count() > 0
    }

    /// As [`super::Residency::want`]; a page may be on several lists.
    #[inline]
    pub(in crate::file) fn want(&self, offset: u64, len: u64, missing: &mut Vec<u64>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let end = (offset + len).div_ceil(PAGE_BYTES).min(shared.states.pages());
        missing.extend((offset / PAGE_BYTES..end).filter(|page| shared.states.is_absent(*page)));
    }

    /// Reads the pages of a list before others. Empties the list.
    pub(in crate::file) fn fetch(&self, missing: &mut Vec<u64>) {
        let pages = missing.drain(..);
        if let Some(shared) = self.shared.upgrade().filter(|_| pages.len() > 0) {
            shared.enqueue(pages.filter(|page| shared.states.begin(*page)));
        }
    }

    /// Reads the pages of a part of the image that are absent, on this thread, and waits for those
    /// that others read.
    ///
    /// # Errors
    /// As [`Loading::wait`].
    pub(in crate::file) fn read(&self, offset: u64, len: u64) -> Result<(), DeviceError> {
        let Some(shared) = self.shared.upgrade() else { return Ok(()) };
        // Who waits until all pages were read waits for this thread, too.
        let _reading = shared.note_reading();
        let end = (offset + len).div_ceil(PAGE_BYTES).min(shared.states.pages());
        let pages = offset / PAGE_BYTES..end;
        let mut entries: Vec<Entry> = pages.filter_map(|page| shared.states.place(page)).collect();
        entries.sort_unstable_by_key(|entry| entry.slot);
        let mut buffer = Vec::new();
        for run in Run::all(&entries, RUN_SLOTS) {
            shared.read_run(run.entries(), &mut buffer);
        }
        let failures = shared.failures.as_ref().expect("they are told of what is read ahead");
        failures.check()?;
        for entry in &entries {
            while !shared.states.is_present(entry.page) {
                failures.check()?;
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }

    /// What the writer of snapshots tells.
    pub(in crate::file) fn saved(&self) -> Saved {
        Saved(Weak::clone(&self.shared))
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        if !self.process.is_here() {
            // A child of `fork` has no such thread, and what it had locked stays so.
            return std::mem::forget(self.thread.take());
        }
        lock(&self.told.progress).is_over = true;
        self.told.changed.notify_all();
        if let Some(shared) = self.shared.upgrade() {
            shared.forget_queue();
        }
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has ended the process.
            let _ = thread.join();
        }
    }
}

/// Reads all pages, and gives `userfaultfd` up; or the device goes before.
fn load(mut server: Server, range: Range, told: &Told) {
    let shared = Arc::clone(&server.shared);
    let read = catch_unwind(AssertUnwindSafe(|| shared.read_all(told)));
    // Without the threads of the server, absent pages would be zeros.
    let read = read.unwrap_or_else(|_| end_process("the thread that reads the store panicked"));
    if let Err(error) = read {
        told.set(Phase::Failed(Some(error)));
        told.wait_over();
    }
    if told.is_over() {
        // No thread touches the image any more.
        return;
    }
    // No page with a slot is absent. A thread that installs zeros would find nothing to do so in.
    server.end_readers();
    // From here on the system gives zeros, also to threads that wait for them. Where it does not
    // know this call, closing the descriptor does the same.
    let _ = shared.faults.give_up();
    drop((shared, server));
    range.give_to_children();
    told.set(Phase::Read);
    range.ask_for_large_pages();
    range.make_large(|| told.is_over());
}

impl Shared {
    /// Reads all pages that are absent, in the order of the file, until it is over.
    fn read_all(&self, told: &Told) -> Result<(), DeviceError> {
        let failures = self.failures.as_ref().expect("they are told of what is read ahead");
        let mut entries: Vec<Entry> = self.states.places().collect();
        entries.sort_unstable_by_key(|entry| entry.slot);
        let mut buffer = Vec::new();
        for run in Run::all(&entries, RUN_SLOTS) {
            if told.is_over() {
                return Ok(());
            }
            failures.check()?;
            self.read_run(run.entries(), &mut buffer);
        }
        // What others have begun to read is in the queue, or is being read.
        self.wait_idle();
        if told.is_over() {
            return Ok(());
        }
        failures.check()?;
        let absent = entries.iter().find(|entry| !self.states.is_present(entry.page));
        assert!(absent.is_none(), "all pages were read, but not that of {absent:?}");
        Ok(())
    }

    /// Reads those pages of some neighbouring slots that are absent and that no other thread reads.
    fn read_run(&self, entries: &[Entry], buffer: &mut Vec<u8>) {
        let is_mine = |entry: &&Entry| self.states.begin(entry.page);
        let mine: Vec<Entry> = entries.iter().filter(is_mine).copied().collect();
        let Some(run) = Run::of(&mine) else { return };
        let is_read = run.read(&self.files.data, buffer).is_ok();
        for entry in &mine {
            // A page that has moved is not in this slot any more, and one that cannot be read keeps
            // its neighbours from being read with it: these are read one by one.
            let installed = match is_read && self.states.place(entry.page) == Some(*entry) {
                true => self.install_checked(entry, run.bytes_of(entry, buffer)),
                false => self.bring(entry.page),
            };
            if let Err(error) = installed {
                self.fail(entry.page, error, Why::Needed);
            }
        }
    }
}

/// The addresses of pages that come in the background.
#[derive(Debug, Clone, Copy)]
struct Range {
    base: usize,
    /// In bytes.
    len: usize,
}

impl Range {
    fn at(self, offset: usize) -> *mut std::ffi::c_void {
        std::ptr::with_exposed_provenance_mut(self.base + offset)
    }

    fn keep_from_children(self) {
        // SAFETY: mapped while the device lives; a child that touches it ends.
        unsafe { advice::not_in_children(self.at(0), self.len) };
    }

    fn give_to_children(self) {
        // SAFETY: mapped while the device lives.
        unsafe { advice::in_children(self.at(0), self.len) };
    }

    fn ask_for_large_pages(self) {
        // SAFETY: mapped while the device lives.
        unsafe { advice::huge_pages(self.at(0), self.len) };
    }

    /// Moves what is there to large pages, one after the other, until it is over.
    fn make_large(self, is_over: impl Fn() -> bool) {
        // The last large page has some of what the image grows by; the mapping ends with one.
        for offset in (0..self.len).step_by(HUGE_PAGE_BYTES) {
            if is_over() {
                return;
            }
            // SAFETY: as above; the base of a mapping is that of a large page.
            unsafe { advice::collapse(self.at(offset), HUGE_PAGE_BYTES) };
        }
    }
}
