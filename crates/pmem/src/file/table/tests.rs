//! Where entries are placed while an image grows and changes.

use super::*;

/// A table, and a file that has its entries.
#[derive(Default)]
struct Written {
    table: PageTable,
    entries: Entries,
    file: Vec<u8>,
    /// How often the table was written anew.
    anew: u64,
}

impl Written {
    /// A snapshot gives these entries to pages of an image of so many.
    fn save(&mut self, image_pages: u64, new: &[Entry]) {
        let before = self.entries;
        let room = table_bytes(before.end(), image_pages, new.len() as u64);
        for entry in new {
            self.table.set(*entry);
        }
        let Placed { before: behind, bytes } = self.table.place(&before, new);
        let (at, end) = (behind.end(), behind.end() + bytes.len() as u64);
        assert!(end <= room, "{end} bytes are written, and room was made for {room}");
        assert!(at >= HEAD_BYTES, "the head stays");
        assert!(at >= before.end() || end <= before.start, "{before:?} is written over");
        let longest = 2 * self.table.used() + EXTRA_ENTRIES;
        let is_anew = behind.count == 0 && before.count > 0;
        assert_eq!(is_anew, before.count + new.len() as u64 > longest, "{before:?}");
        self.anew += u64::from(is_anew);
        self.file.resize(self.file.len().max(end as usize), 0);
        self.file[at as usize..end as usize].copy_from_slice(&bytes);
        let count = behind.count + (bytes.len() / ENTRY_BYTES) as u64;
        self.entries = Entries { start: behind.start, count, crc: 0 };
        assert!(count <= longest, "{count} entries");
    }

    /// What is read of the file is the table.
    fn check(&self) {
        let mut read = PageTable::default();
        let bytes = &self.file[self.entries.start as usize..self.entries.end() as usize];
        for entry in bytes.as_chunks::<ENTRY_BYTES>().0 {
            read.set(Entry::decode(entry));
        }
        assert!(read.entries().eq(self.table.entries()), "{:?}", self.entries);
    }
}

fn entry(page: u64, slot: u64) -> Entry {
    Entry { page, slot, crc: (page ^ slot) as u32 }
}

/// S6, S21: entries fit where room was made for them, also where the image has grown much since
/// the table was written anew; those of the snapshot before are never written over.
#[test]
fn s_6_entries_have_room_and_replace_none_of_the_snapshot_before() {
    let mut written = Written::default();
    let mut slot = FIRST_SLOT;
    for image_pages in [10, 10_000, 10_500, 30_000, 30_000] {
        let step = (image_pages / 20).max(3);
        for round in 0..200 {
            let new: Vec<_> =
                (0..step).map(|at| entry((round * step + at) % image_pages, slot + at)).collect();
            slot += step;
            written.save(image_pages, &new);
        }
        written.check();
    }
    assert!(written.anew > 10, "written anew {} times", written.anew);
}

/// An image that does not grow has a table of two lists, however often it is written anew.
#[test]
fn a_table_that_is_written_anew_stays_as_long_as_two_lists() {
    const PAGES: u64 = 1000;
    let mut written = Written::default();
    let mut slot = FIRST_SLOT;
    while written.anew < 50 {
        let new: Vec<_> = (0..PAGES).map(|page| entry(page, slot + page)).collect();
        slot += PAGES;
        written.save(PAGES, &new);
    }
    written.check();
    let longest = (2 * PAGES + EXTRA_ENTRIES) * ENTRY_BYTES as u64;
    assert!(written.file.len() as u64 <= HEAD_BYTES + 2 * longest, "{}", written.file.len());
}
