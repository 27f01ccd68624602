//! An image that is larger than memory: which of its pages are in memory, how the others come, and
//! how they go.
//!
//! The image stays one range of addresses. A page that is not in memory is *absent*: a thread that
//! touches it sleeps until it was read from its slot and checked. What an epoch declares is read
//! before it is touched, many pages at once. Where more are in memory than may be, a page that
//! comes lets others go together that are *clean*: their slot holds what they hold. The others stay
//! until a snapshot has saved them, so a snapshot is due when they are a large part of memory.
//!
//! 1. A page is read by one thread; others wait until it is installed (S11).
//! 2. What is read is checked against the entry of its page, which says its number, too. If the
//!    page got another entry meanwhile it is read again, because its slot may have another page by
//!    then (S6, S9, S13).
//! 3. A page that cannot be read ends the process, with a message: the thread that waits for it
//!    can have no error, and never gets zeros (S12). The log has what was answered. How it ends is
//!    the program's affair ([`on_lost_page`]).
//! 4. Only clean pages go. A thread that is about to store to a page that is being evicted waits
//!    for that, and then for its content (S8). If one touches it meanwhile, the thread that evicts
//!    it lets it be read again, if no other one has begun to.
//! 5. A page that a snapshot saves is clean when its writer has told the new slot
//!    (S10).
//! 6. A thread that touches one absent page after the other has those behind it read, too
//!    (`ahead`). Such a guess stays absent where it cannot be read, or where there is no room for
//!    it: it is read when it is touched.
//!
//! No answer depends on which pages are in memory (S15).
//!
//! Without a limit of memory, an image can be opened before it was read (`load`): pages come in the
//! same way, none goes, and at the end all are there and the threads have ended.

mod ahead;
mod failures;
mod queue;
mod states;

mod server;

mod read;

mod evict;
mod load;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::disk::{Files, RUN_PAGES};
use super::table::PageTable;
use crate::device::{BringsPages, Needed, PageUse};
use crate::failure::DeviceError;
use crate::memory::{DirtyPages, Mapping, PAGE_BYTES, Pages};
use crate::system::page_faults::PageFaults;
use evict::{CHANGED_PART, Evictor};
use server::{Keeping, Server, Shared, readers_of};

pub use failures::on_lost_page;
pub(super) use load::Loading;
pub(super) use server::Saved;

/// So many pages may be in memory, or half of the limit, whatever else needs: with fewer, every
/// access would read.
const PAGES_MIN: u64 = (8 << 20) / PAGE_BYTES;

/// What is known of a page of the image takes so many bytes, whether it is in memory or not: its
/// entry in the table, place and state here, what is stored to it, and the system's own entry.
const KNOWN_BYTES: u64 = 12 + 9 + 1 + 8;

/// The pages of an image that is larger than memory. See the module's documentation.
#[derive(Debug)]
pub(super) struct Residency {
    shared: Arc<Shared>,
    /// Ends with this.
    _server: Server,
    /// What all memory together may have.
    limit_bytes: u64,
}

impl Residency {
    /// All pages of the image are absent.
    ///
    /// # Safety
    /// The mapping outlives this, has pages of 4 KiB, and none of them was touched.
    pub(super) unsafe fn over(
        image: &Mapping,
        files: &Arc<Files>,
        table: &PageTable,
        dirty: &Arc<DirtyPages>,
        image_bytes: u64,
        limit_bytes: u64,
    ) -> Result<Self, DeviceError> {
        let least = PAGES_MIN.min(limit_bytes / 2 / PAGE_BYTES);
        let evictor = Some(Evictor::new(Arc::clone(dirty), image_bytes / PAGE_BYTES, least));
        let keeping = Keeping { readers: readers_of(limit_bytes), failures: None, evictor };
        // SAFETY: promised.
        let server = unsafe { Server::over(image, image.len(), files, table, keeping) };
        let server = server.map_err(refused)?;
        let shared = Arc::clone(&server.shared);
        let residency = Self { shared, _server: server, limit_bytes };
        residency.leave(0);
        Ok(residency)
    }

    /// Between epochs: leaves so many bytes of the limit to other things than the image and what is
    /// known of its pages. What is left holds pages, those that the image has grown by, and copies
    /// of those that are stored to before a snapshot has saved them: of both there are no more than
    /// pages that were stored to, which may be so many that two thirds are left. Where they are
    /// fewer, more pages may be in memory.
    pub(super) fn leave(&self, other_bytes: u64) {
        let evictor = self.evictor();
        let known = evictor.image_pages.load(Ordering::Relaxed) * KNOWN_BYTES;
        let left = self.limit_bytes.saturating_sub(other_bytes + known) / PAGE_BYTES;
        evictor.left_pages.store(left, Ordering::Relaxed);
        evictor.promised.store(0, Ordering::Relaxed);
    }

    /// An epoch may store to so many pages: those that it may have too many go before it begins.
    pub(super) fn promise(&self, pages: u64) {
        self.evictor().promised.store(pages, Ordering::Relaxed);
        self.shared.make_all_room();
    }

    fn evictor(&self) -> &Evictor {
        self.shared.evictor.as_ref().expect("pages go where there is a limit")
    }

    /// Bytes that readers keep beside pages.
    pub(super) fn kept_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.evictor().kept_bytes)
    }

    /// A range is needed soon: pages of it that are absent, and that no thread reads yet, are added
    /// to a list for [`Residency::fetch`]. None is begun before: the thread that has the list may
    /// touch one of them.
    #[inline]
    pub(super) fn want(&self, offset: u64, len: u64, needed: Needed, missing: &mut Vec<u64>) {
        for page in offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES) {
            if self.shared.states.want(page, needed) && missing.last() != Some(&page) {
                missing.push(page);
            }
        }
    }

    /// Reads the pages of a list that are absent still: the last of them, with neighbours that are
    /// one read, on this thread, which would wait for it, and all others in the background. Empties
    /// the list.
    pub(super) fn fetch(&self, missing: &mut Vec<u64>) {
        let Some(last) = missing.pop() else { return };
        let mut own = last..last + 1;
        while own.end - own.start < RUN_PAGES as u64
            && missing.last().is_some_and(|page| page + 1 == own.start)
        {
            own.start -= 1;
            missing.pop();
        }
        let states = &self.shared.states;
        if !missing.is_empty() {
            self.shared.enqueue(missing.drain(..).filter(|page| states.begin_wanted(*page)));
        }
        self.shared.bring_absent(own, Needed::Seldom, |_| ());
    }

    /// What brings the pages of a range that are absent and that no thread reads, on the thread
    /// that calls it. A range that begins behind the image has none.
    pub(super) fn brings_pages(&self) -> BringsPages {
        let shared = Arc::downgrade(&self.shared);
        Box::new(move |offset, len, needed| {
            let Some(shared) = shared.upgrade() else { return };
            let image = shared.states.pages() * PAGE_BYTES;
            if offset >= image {
                return;
            }
            let pages = offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES);
            shared.bring_absent(pages, needed, |page| shared.states.read_once(page));
        })
    }

    /// Whether a snapshot is due when so many bytes of pages were stored to since the last one.
    pub(super) fn wants_snapshot(&self, changed_bytes: u64) -> bool {
        changed_bytes / PAGE_BYTES >= self.evictor().always() / CHANGED_PART
    }

    /// What is in memory, and what was done.
    pub(super) fn stats(&self) -> PageUse {
        let counts = &self.shared.counts;
        PageUse {
            limit_bytes: self.limit_bytes,
            pages_bytes: self.evictor().always() * PAGE_BYTES,
            pages_bytes_now: self.evictor().allowed() * PAGE_BYTES,
            resident_bytes: self.shared.states.present() * PAGE_BYTES,
            fetched: counts.fetched.load(Ordering::Relaxed),
            faults: counts.faults.load(Ordering::Relaxed),
            guessed: counts.guessed.load(Ordering::Relaxed),
            evicted: counts.evicted.load(Ordering::Relaxed),
        }
    }

    /// The image has grown: what is new is zeros.
    pub(super) fn grown(&self, from: u64, to: u64) -> Result<(), DeviceError> {
        self.shared.map_zeros(from / PAGE_BYTES..to / PAGE_BYTES)?;
        self.evictor().image_pages.fetch_max(to / PAGE_BYTES, Ordering::Relaxed);
        Ok(())
    }

    /// A snapshot saves pages.
    pub(super) fn saving(&self, pages: &[u64]) {
        self.evictor().saving.fetch_add(pages.len() as u64, Ordering::Relaxed);
        pages.iter().for_each(|&page| self.shared.states.saving(page));
    }

    /// What the writer of snapshots tells.
    pub(super) fn saved(&self) -> Saved {
        Saved(Arc::downgrade(&self.shared))
    }
}

/// Whether this system lets this process have images that are larger than memory: some containers
/// do not.
#[must_use]
pub fn memory_can_be_limited() -> bool {
    check_possible().is_ok()
}

/// Looks whether images can be larger than memory.
///
/// # Errors
/// [`DeviceError::Refused`] if the system does not let this process have such.
pub(super) fn check_possible() -> Result<(), DeviceError> {
    let probe = Mapping::anonymous(PAGE_BYTES, Pages::Small)?;
    // SAFETY: mapped for longer than this; nothing touches it.
    unsafe { PageFaults::of(probe.base(), probe.len()) }.map(drop).map_err(refused)
}

fn refused(error: std::io::Error) -> DeviceError {
    DeviceError::Refused(format!(
        "a limit of memory needs `userfaultfd`, which this system does not give to this process \
         ({error}): allow it (Linux 5.11 or newer, and the filter of system calls of a container), \
         or open the store without a limit"
    ))
}
