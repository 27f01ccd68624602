//! Pages come: the thread that hears of touches, and those that read.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Residency;
use super::failures::end_process;
use super::server::{Queue, Shared};
use crate::failure::{DeviceError, lock};
use crate::file::disk::PageBuffer;
use crate::file::format::page_crc;
use crate::file::page_reads::{check_page, read_pages};
use crate::memory::PAGE_BYTES;

impl Shared {
    /// Hears of touches of absent pages until it is over.
    pub(super) fn serve(&self) {
        let served = self.faults.serve(|address| {
            let page = (address - self.base) as u64 / PAGE_BYTES;
            self.counts.faults.fetch_add(1, Ordering::Relaxed);
            // What is begun is in the queue, for one who looks at both.
            let mut queue = lock(&self.queue);
            // A page that is being read wakes all who wait for it.
            if self.states.begin_awaited(page) {
                queue.pages.push_front(page);
                self.queued.notify_one();
            }
        });
        if let Err(error) = served {
            end_process(&format!("absent pages of memory cannot be served: {error}"));
        }
    }

    /// Reads pages of the queue until it is over.
    pub(super) fn read_queued(&self) {
        let mut has_read = false;
        while let Some(page) = self.next(has_read) {
            self.bring_begun(page);
            has_read = true;
        }
    }

    /// Reads a page that was begun, and installs it.
    fn bring_begun(&self, page: u64) {
        self.make_room();
        if let Err(error) = self.bring(page) {
            self.fail(page, error);
        }
    }

    /// The same on a thread that needs it.
    #[cold]
    pub(super) fn bring_wanted(&self, page: u64) {
        self.counts.fetched.fetch_add(1, Ordering::Relaxed);
        self.bring_begun(page);
    }

    /// The next page of the queue, for a thread that has read one or that begins.
    fn next(&self, has_read: bool) -> Option<u64> {
        let mut queue = lock(&self.queue);
        queue.reading -= u64::from(has_read);
        if self.failures.is_some() && queue.is_idle() {
            self.idle.notify_all();
        }
        let has_to_wait =
            |queue: &mut Queue| queue.pages.is_empty() && !self.is_over.load(Ordering::Acquire);
        let queue = self.queued.wait_while(queue, has_to_wait);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        let page = queue.pages.pop_front();
        queue.reading += u64::from(page.is_some());
        page
    }

    /// Waits until the queue is empty, and all of it was read.
    pub(super) fn wait_idle(&self) {
        let queue = lock(&self.queue);
        drop(self.idle.wait_while(queue, |queue| !queue.is_idle()));
    }

    /// A page cannot be read: a thread that waits for it can have no error. If none does, the
    /// device fails.
    pub(super) fn fail(&self, page: u64, error: DeviceError) {
        match &self.failures {
            Some(failures) if !self.states.give_up(page) => failures.note(error),
            _ => end_process(&format!("a page of the store cannot be read: {error}")),
        }
    }

    /// Reads a page, and installs it.
    pub(super) fn bring(&self, page: u64) -> Result<(), DeviceError> {
        let mut bytes = PageBuffer([0; PAGE_BYTES as usize]);
        loop {
            let Some(entry) = self.states.place(page) else {
                return self.install_zero(page);
            };
            let data = &self.files.data;
            let read = data.read_page_at(entry.slot * PAGE_BYTES, &mut bytes);
            if self.states.place(page) != Some(entry) {
                // The slot may have another page by now, or not be there any more.
                continue;
            }
            read?;
            check_page(data, &entry, &bytes.0)?;
            return self.install(page, &bytes.0);
        }
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
        let is_mine = |page: &u64| states.want(*page) && states.begin_wanted(*page);
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
