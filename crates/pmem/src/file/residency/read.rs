//! Pages come: the thread that hears of touches, and those that read.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Residency;
use super::ahead::{Ahead, MOST_PAGES};
use super::failures::end_process;
use super::queue::{Queue, Why};
use super::server::Shared;
use crate::device::Needed;
use crate::failure::{DeviceError, lock};
use crate::file::disk::{PageBuffers, RUN_PAGES};
use crate::file::format::{Entry, page_crc};
use crate::file::page_reads::{check_page, read_pages};
use crate::memory::PAGE_BYTES;

/// Pages that may be in memory, for each that is read ahead at once: a guess must not drive out
/// what was just read.
const PAGES_A_GUESS: u64 = 64;

impl Shared {
    /// Hears of touches of absent pages until it is over.
    pub(super) fn serve(&self) {
        let mut ahead = Ahead::default();
        let served = self.faults.serve(|address| {
            let page = (address - self.base) as u64 / PAGE_BYTES;
            self.counts.faults.fetch_add(1, Ordering::Relaxed);
            // What is begun is in the queue, for one who looks at both.
            let mut queue = lock(&self.queue);
            // A page that is being read wakes all who wait for it.
            if self.states.begin_awaited(page) {
                queue.push_awaited(page);
                self.queued.notify_one();
                self.read_ahead(page, &mut ahead, &mut queue);
            } else if queue.is_awaited_now(page) {
                self.queued.notify_one();
            }
        });
        if let Err(error) = served {
            end_process(&format!("absent pages of memory cannot be served: {error}"));
        }
    }

    /// Queues the pages that the thread which has touched a page is likely to touch next.
    fn read_ahead(&self, page: u64, ahead: &mut Ahead, queue: &mut Queue) {
        // Without a limit all pages come in any case.
        let Some(evictor) = &self.evictor else { return };
        let (states, room) = (&self.states, evictor.allowed() / PAGES_A_GUESS);
        let most = MOST_PAGES.min(room).min(queue.guesses_left() as u64);
        let is_there = |page| page < states.pages() && !states.is_absent(page);
        let pages = ahead.touched(page, most, is_there).take_while(|page| *page < states.pages());
        // What was never saved takes no read, and the image ends there.
        let saved = pages.take_while(|page| states.place(*page).is_some());
        let mut guessed = 0;
        for page in saved.filter(|page| states.begin_guessed(*page)) {
            queue.push_guessed(page);
            guessed += 1;
        }
        self.counts.guessed.fetch_add(guessed, Ordering::Relaxed);
        (0..guessed.div_ceil(RUN_PAGES as u64)).for_each(|_| self.queued.notify_one());
    }

    /// Reads pages of the queue until it is over.
    pub(super) fn read_queued(&self) {
        let mut has_read = false;
        while let Some((pages, why)) = self.next(has_read) {
            self.bring_begun(pages, why);
            has_read = true;
        }
    }

    /// Reads neighbouring pages that were begun, and installs them: those whose slots follow each
    /// other are one read. Guesses for which there is no room stay absent.
    fn bring_begun(&self, pages: Range<u64>, why: Why) {
        self.make_room();
        if why == Why::Guessed && self.is_crowded() {
            return pages.for_each(|page| self.leave_absent(page));
        }
        let mut left = pages;
        while let Some(first) = left.next() {
            let Some(entry) = self.states.place(first) else {
                self.bring_one(first, why);
                continue;
            };
            let mut entries = [entry; RUN_PAGES];
            let mut count = 1;
            while count < RUN_PAGES
                && left.start < left.end
                && let Some(entry) = self.states.place(left.start)
                && entry.slot == entries[count - 1].slot + 1
            {
                entries[count] = entry;
                (count, left.start) = (count + 1, left.start + 1);
            }
            self.bring_run(&entries[..count], why);
        }
    }

    fn bring_one(&self, page: u64, why: Why) {
        if let Err(error) = self.bring(page) {
            self.fail(page, error, why);
        }
    }

    /// Pages that were begun, in slots that follow each other.
    fn bring_run(&self, entries: &[Entry], why: Why) {
        let mut buffers = PageBuffers::new();
        let (data, offset) = (&self.files.data, entries[0].slot * PAGE_BYTES);
        let is_read = data.read_pages_at(offset, entries.len(), &mut buffers).is_ok();
        for (entry, bytes) in entries.iter().zip(&buffers.0) {
            // The slot may have another page by now, or not be there any more.
            if !is_read || self.states.place(entry.page) != Some(*entry) {
                self.bring_one(entry.page, why);
            } else if let Err(error) = self.install_checked(entry, bytes) {
                self.fail(entry.page, error, why);
            }
        }
    }

    /// Reads those of neighbouring pages that are absent and that no thread reads, on this one, and
    /// tells of each that came.
    pub(super) fn bring_absent(&self, pages: Range<u64>, needed: Needed, came: impl Fn(u64)) {
        let begin = |page| self.states.want(page, needed) && self.states.begin_wanted(page);
        let Range { start: mut next, end } = pages;
        while next < end {
            let first = next;
            while next < end && begin(next) {
                next += 1;
            }
            if next > first {
                self.bring_wanted(first..next);
                (first..next).for_each(&came);
            }
            next += 1;
        }
    }

    #[cold]
    fn bring_wanted(&self, pages: Range<u64>) {
        self.counts.fetched.fetch_add(pages.end - pages.start, Ordering::Relaxed);
        self.bring_begun(pages, Why::Needed);
    }

    /// The next pages of the queue, which are neighbours, for a thread that has read some or that
    /// begins.
    fn next(&self, has_read: bool) -> Option<(Range<u64>, Why)> {
        let mut queue = lock(&self.queue);
        queue.reading -= u64::from(has_read);
        if self.failures.is_some() && queue.is_idle() {
            self.idle.notify_all();
        }
        let has_to_wait =
            |queue: &mut Queue| queue.is_empty() && !self.is_over.load(Ordering::Acquire);
        let queue = self.queued.wait_while(queue, has_to_wait);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        let next = queue.pop()?;
        queue.reading += 1;
        Some(next)
    }

    /// Waits until the queue is empty, and all of it was read.
    pub(super) fn wait_idle(&self) {
        let queue = lock(&self.queue);
        drop(self.idle.wait_while(queue, |queue| !queue.is_idle()));
    }

    /// A page cannot be read: a thread that waits for it can have no error. If none does, the
    /// device fails; not for a guess, which nothing may ever need.
    pub(super) fn fail(&self, page: u64, error: DeviceError, why: Why) {
        match &self.failures {
            _ if why == Why::Guessed && !self.states.give_up(page) => {}
            Some(failures) if !self.states.give_up(page) => failures.note(error),
            _ => end_process(&format!("a page of the store cannot be read: {error}")),
        }
    }

    /// Reads a page, and installs it.
    pub(super) fn bring(&self, page: u64) -> Result<(), DeviceError> {
        let mut buffers = PageBuffers::new();
        loop {
            let Some(entry) = self.states.place(page) else {
                return self.install_zero(page);
            };
            let data = &self.files.data;
            let read = data.read_pages_at(entry.slot * PAGE_BYTES, 1, &mut buffers);
            if self.states.place(page) != Some(entry) {
                // The slot may have another page by now, or not be there any more.
                continue;
            }
            read?;
            return self.install_checked(&entry, &buffers.0[0]);
        }
    }

    pub(super) fn install_checked(&self, entry: &Entry, bytes: &[u8]) -> Result<(), DeviceError> {
        check_page(&self.files.data, entry, bytes)?;
        self.install(entry.page, bytes)
    }

    pub(super) fn install(&self, page: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        debug_assert!(
            self.states.place(page).is_some_and(|at| at.crc == page_crc(page, bytes)),
            "what is installed is what was saved last (S9)"
        );
        // SAFETY: a page of the image; it is absent, so what was saved last is what it is to hold:
        // it was clean when it went, and no thread has stored to it since.
        unsafe { self.faults.install(self.address(page), bytes) }
            .map_err(|e| DeviceError::io("install a page of", self.files.data.path(), e))?;
        self.states.installed(page);
        Ok(())
    }

    /// A page that was never saved is zeros.
    fn install_zero(&self, page: u64) -> Result<(), DeviceError> {
        self.map_zeros(page..page + 1)?;
        self.states.installed(page);
        Ok(())
    }

    /// Pages that were never saved are zeros, of which all have one page of memory, until they are
    /// stored to.
    pub(super) fn map_zeros(&self, pages: Range<u64>) -> Result<(), DeviceError> {
        let len = (pages.end - pages.start) * PAGE_BYTES;
        // SAFETY: pages of the image that are absent and were never saved.
        unsafe { self.faults.install_zeros(self.address(pages.start), len) }
            .map_err(|e| DeviceError::io("install pages of", self.files.data.path(), e))
    }
}

impl Residency {
    /// Reads the pages of a range that are absent, on this thread. Those that others read it does
    /// not wait for.
    ///
    /// # Errors
    /// [`DeviceError::Corrupt`] if a page is damaged, [`DeviceError::Io`] if it cannot be read.
    pub(in crate::file) fn read(&self, offset: u64, len: u64) -> Result<(), DeviceError> {
        let states = &self.shared.states;
        self.shared.make_room();
        let pages = offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES);
        let is_mine = |page: &u64| states.want(*page, Needed::Seldom) && states.begin_wanted(*page);
        let wanted: Vec<u64> = pages.filter(is_mine).collect();
        let entries = wanted.iter().filter_map(|page| states.place(*page)).collect();
        read_pages(&self.shared.files.data, entries, |page, bytes| {
            self.shared.install(page, bytes)
        })?;
        for page in wanted.into_iter().filter(|page| states.place(*page).is_none()) {
            self.shared.install_zero(page)?;
        }
        Ok(())
    }
}
