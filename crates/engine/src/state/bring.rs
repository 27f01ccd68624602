//! Where the image may be larger than memory, readers from outside bring the pages that they need
//! themselves, before they touch them. A page that is touched while it is absent comes, too, but by
//! way of two other threads: one hears of it, and one reads it.

use pmem::LINE_BYTES;

use crate::index::EntryId;
use crate::state::core::Core;
use crate::table::{KeyWord, Table};
use crate::version::ValueWord;

impl Core {
    fn bring(&self, address: usize, bytes: u64) {
        if let Some(bring) = &self.brings_pages {
            bring(address.wrapping_sub(self.image_base) as u64, bytes);
        }
    }

    /// Brings the head of a row.
    pub(super) fn bring_row(&self, id: EntryId) {
        if self.brings_pages.is_some() {
            self.bring(self.image_base + self.entries.row_of(id) as usize, LINE_BYTES);
        }
    }

    /// Brings a value that is in the image.
    pub(super) fn bring_value(&self, word: ValueWord) {
        if self.brings_pages.is_some() && word.is_value() && word.is_persistent() {
            self.bring(word.address(), word.len() as u64);
        }
    }

    /// Brings what finding a key looks at: its bucket, which need not be in the image, and the key
    /// of the row that is found.
    pub(crate) fn bring_key(&self, table: &Table, word: KeyWord<'_>) {
        if self.brings_pages.is_none() {
            return;
        }
        if self.kept.is_some() {
            self.bring(table.hash.address_of(word.hash), LINE_BYTES);
        }
        if !table.exact
            && let Some(id) = table.hash.find(word.hash, |_| true)
        {
            self.bring_row(id);
        }
    }
}
