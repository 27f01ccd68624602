//! The threads that bring absent pages: one hears of touches, others read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use super::evict::Evictor;
use super::failures::Failures;
use super::queue::Queue;
use super::states::{PageStates, Stay};
use crate::failure::lock;
use crate::file::disk::Files;
use crate::file::format::Entry;
use crate::file::table::PageTable;
use crate::memory::{Mapping, PAGE_BYTES};
use crate::sync::background::{Condvar, Mutex};
use crate::system::page_faults::PageFaults;
use crate::system::{Process, advice};

/// Reads that are on their way at once, at most; and pages that may be in memory for each of them.
const READERS: u64 = 32;
const PAGES_A_READER: u64 = 4;

/// Threads that read, where so many bytes of the image may be in memory.
pub(super) fn readers_of(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES / PAGES_A_READER).clamp(1, READERS)
}

pub(super) const STACK_BYTES: usize = 128 << 10;

/// What has been done.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) fetched: AtomicU64,
    pub(super) faults: AtomicU64,
    pub(super) guessed: AtomicU64,
    pub(super) evicted: AtomicU64,
}

/// What the threads share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) files: Arc<Files>,
    /// Address of the image.
    pub(super) base: usize,
    pub(super) faults: PageFaults,
    pub(super) states: PageStates,
    pub(super) queue: Mutex<Queue>,
    pub(super) queued: Condvar,
    /// The queue is empty, and nothing of it is being read.
    pub(super) idle: Condvar,
    pub(super) is_over: AtomicBool,
    pub(super) counts: Counts,
    /// What is told of a page that cannot be read, if no thread waits for it; `None`: the process
    /// ends all the same.
    pub(super) failures: Option<Failures>,
    /// `None`: all pages stay.
    pub(super) evictor: Option<Evictor>,
}

impl Shared {
    /// Where a page begins.
    pub(super) fn address(&self, page: u64) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.base + (page * PAGE_BYTES) as usize)
    }

    /// Forgets pages that no thread needs any more.
    pub(super) fn forget_queue(&self) {
        lock(&self.queue).clear();
        self.idle.notify_all();
    }

    /// Queues pages behind those that threads wait for.
    pub(super) fn enqueue(&self, pages: impl Iterator<Item = u64>) {
        let added = lock(&self.queue).push_wanted(pages);
        self.counts.fetched.fetch_add(added as u64, Ordering::Relaxed);
        if added as u64 >= READERS {
            return self.queued.notify_all();
        }
        // A thread that wakes in vain takes a processor from those that read.
        (0..added).for_each(|_| self.queued.notify_one());
    }
}

/// A thread that reads pages which are not in the queue.
pub(super) struct Reading<'s>(&'s Shared);

impl Shared {
    /// Says, before any page is begun, that this thread reads some.
    pub(super) fn note_reading(&self) -> Reading<'_> {
        lock(&self.queue).reading += 1;
        Reading(self)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.reading -= 1;
        if queue.is_idle() {
            self.0.idle.notify_all();
        }
    }
}

/// How pages come, and whether they go.
pub(super) struct Keeping {
    /// Threads that read.
    pub(super) readers: u64,
    /// As in [`Shared`].
    pub(super) failures: Option<Failures>,
    pub(super) evictor: Option<Evictor>,
}

/// The threads, and what they share. They end with this.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) shared: Arc<Shared>,
    readers: Vec<JoinHandle<()>>,
    /// Hears of touches.
    listener: Option<JoinHandle<()>>,
    /// In which the threads are.
    process: Process,
}

impl Server {
    /// The first `bytes` of the image are absent from now on, and come when they are touched.
    ///
    /// # Safety
    /// The mapping outlives this, and nothing touched these pages.
    ///
    /// # Errors
    /// If the system has no `userfaultfd` for this process, or no threads. The range is to have
    /// ordinary pages then, and is else as it was.
    // SAFETY: the contract is above.
    pub(super) unsafe fn over(
        image: &Mapping,
        bytes: u64,
        files: &Arc<Files>,
        table: &PageTable,
        keeping: Keeping,
    ) -> std::io::Result<Self> {
        let len = usize::try_from(bytes).expect("64-bit sizes");
        // SAFETY: it is mapped.
        unsafe { advice::small_pages(image.base().cast(), len) };
        // SAFETY: mapped while this lives (promised); the threads below install what is touched.
        let faults = unsafe { PageFaults::of(image.base(), bytes) }?;
        let Keeping { readers, failures, evictor } = keeping;
        let stay = if evictor.is_some() { Stay::UntilEvicted } else { Stay::Always };
        let shared = Arc::new(Shared {
            files: Arc::clone(files),
            base: image.base().expose_provenance(),
            faults,
            states: PageStates::new(bytes / PAGE_BYTES, stay),
            queue: Mutex::default(),
            queued: Condvar::new(),
            idle: Condvar::new(),
            is_over: AtomicBool::new(false),
            counts: Counts::default(),
            failures,
            evictor,
        });
        for entry in table.entries() {
            shared.states.saved(&entry);
        }
        let process = Process::current();
        let mut server = Self { shared, readers: Vec::new(), listener: None, process };
        server.listener = Some(server.start("pmem-faults", Shared::serve)?);
        for _ in 0..readers {
            server.readers.push(server.start("pmem-pages", Shared::read_queued)?);
        }
        Ok(server)
    }

    fn start(&self, name: &str, run: fn(&Shared)) -> std::io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new().name(name.to_string());
        builder.stack_size(STACK_BYTES).spawn(move || run(&shared))
    }

    /// Lets the threads that read come to the end of the queue, and waits for them.
    pub(super) fn end_readers(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // A thread that looks for work has the lock, and looks at that first.
        drop(lock(&self.shared.queue));
        self.shared.queued.notify_all();
        for thread in self.readers.drain(..) {
            // None of them panics: what cannot be read ends the process, or is told.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let listener = self.listener.take();
        if !self.process.is_here() {
            // A child of `fork` has no such threads.
            self.readers.drain(..).for_each(std::mem::forget);
            return std::mem::forget(listener);
        }
        self.end_readers();
        self.shared.faults.end();
        if let Some(thread) = listener {
            let _ = thread.join();
        }
    }
}

/// Hears where pages were saved; nothing does where all of the image is in memory.
#[derive(Debug, Default)]
pub(in crate::file) struct Saved(pub(super) Weak<Shared>);

impl Saved {
    /// Pages have these entries from now on.
    pub(in crate::file) fn tell(&self, entries: &[Entry]) {
        if let Some(shared) = self.0.upgrade() {
            let saved = entries.iter().filter(|entry| shared.states.saved(entry)).count();
            if let Some(evictor) = &shared.evictor {
                evictor.saving.fetch_sub(saved as u64, Ordering::Relaxed);
            }
            // What was new, or changed, may go from now on.
            shared.make_all_room();
        }
    }
}
