//! Where the image may be larger than memory, readers from outside bring the pages that they need
//! themselves, before they touch them. A page that is touched while it is absent comes, too, but by
//! way of two other threads: one hears of it, and one reads it.

use pmem::{AnyDevice, Device, LINE_BYTES, Needed};

use crate::index::EntryId;
use crate::state::core::Core;
use crate::state::row_cache::RowCache;
use crate::table::{KeyWord, Table};
use crate::version::ValueWord;

impl Core {
    /// Readers bring pages, and keep rows, where the device has a limit of memory.
    pub(crate) fn limit_memory(&mut self, device: &AnyDevice) {
        self.brings_pages = device.brings_pages();
        self.row_cache = RowCache::of(device);
    }

    fn bring(&self, address: usize, bytes: u64, needed: Needed) {
        if let Some(bring) = &self.brings_pages {
            bring(address.wrapping_sub(self.image_base) as u64, bytes, needed);
        }
    }

    /// Brings a row, with its inline values: neighbouring pages are one read.
    pub(super) fn bring_row(&self, id: EntryId) {
        if self.brings_pages.is_some() {
            let (row, bytes) = (self.entries.row_of(id), self.entries.row_bytes_of(id));
            self.bring(self.image_base + row as usize, bytes, Needed::Seldom);
        }
    }

    /// Whether a value lies in its row.
    pub(super) fn is_in_row(&self, id: EntryId, word: ValueWord) -> bool {
        let row = self.image_base + self.entries.row_of(id) as usize;
        (word.address().wrapping_sub(row) as u64) < self.entries.row_bytes_of(id)
    }

    /// Brings a value that is in the image.
    pub(super) fn bring_value(&self, word: ValueWord) {
        if self.brings_pages.is_some() && word.is_value() && word.is_persistent() {
            self.bring(word.address(), word.len() as u64, Needed::Seldom);
        }
    }

    /// Brings what finding a key looks at: its bucket, which need not be in the image, and the key
    /// of the row that is found.
    pub(crate) fn bring_key(&self, table: &Table, word: KeyWord<'_>) {
        if self.brings_pages.is_none() {
            return;
        }
        if self.kept.is_some() {
            self.bring(table.hash.address_of(word.hash), LINE_BYTES, Needed::Often);
        }
        if !table.finds_exactly()
            && let Some(id) = table.hash.find(word.hash, |_| true)
        {
            self.bring_row(id);
        }
    }
}
