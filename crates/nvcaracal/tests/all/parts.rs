//! Changing a few bytes of long rows.

use crate::common::dram;
use nvcaracal::{Database, HashTable, Piece, Procedure, Stop, Table, Transaction, WriteSet, plain};

const PAGES: HashTable<u64, [u8; 1000]> = Table::hash("pages");

plain! {
    /// Makes an empty page.
    struct Make { page: u64 }
    /// Counts up a byte of a page, and the same byte of another one in a piece; answers with what
    /// was there before.
    struct Count { page: u64, other: u64, byte: u64 }
}

impl Procedure for Make {
    const NAME: &'static str = "make";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(PAGES, self.page);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        tx.insert(PAGES, self.page, &[0; 1000])
    }
}

impl Count {
    fn count(&self, page: &[u8], part: &mut [u8], before: &mut u8) {
        *before = page[self.byte as usize];
        part[0] = *before + 1;
    }
}

impl Procedure for Count {
    const NAME: &'static str = "count";
    type Output = (u64, u64);
    const PIECES: bool = true;

    fn write_set(&self, set: &mut WriteSet) {
        set.update(PAGES, self.page);
        set.update_piece(PAGES, self.other, 1);
    }

    fn run(&self, tx: &mut Transaction) -> Result<Self::Output, Stop> {
        let (byte, mut before) = (self.byte as usize, 0);
        tx.modify_bytes(PAGES, self.page, byte..byte + 1, |page, part| {
            self.count(page, part, &mut before);
        })?;
        Ok((before.into(), 0))
    }

    fn piece(&self, piece: &mut Piece) -> Result<u64, Stop> {
        let (byte, mut before) = (self.byte as usize, 0);
        piece.modify_bytes::<Vec<u8>>(byte..byte + 1, |page, part| {
            self.count(page, part, &mut before)
        })?;
        Ok(before.into())
    }

    fn finish(&self, (before, _): (u64, u64), results: &[u64]) -> (u64, u64) {
        (before, results[0])
    }
}

#[test]
fn bytes_of_rows_are_changed_in_place_for_all_who_follow() {
    for threshold in [0, 2] {
        let options = Database::options().table(PAGES).procedure::<Make>().procedure::<Count>();
        let db = dram(options.workers(2).split_threshold(threshold));
        for page in 0..2 {
            db.call(Make { page }).unwrap();
        }
        let calls =
            (0..100).map(|i| Count { page: i % 2, other: 1 - i % 2, byte: i / 2 % 3 * 400 });
        let tickets: Vec<_> = calls.map(|call| db.submit(call).unwrap()).collect();
        let mut times = [[0; 3]; 2];
        for (i, ticket) in tickets.into_iter().enumerate() {
            let (page, byte) = (i % 2, i / 2 % 3);
            let expected = (times[page][byte], times[1 - page][byte]);
            assert_eq!(ticket.wait().unwrap(), expected, "call {i}, threshold {threshold}");
            times[page][byte] += 1;
            times[1 - page][byte] += 1;
        }
        for (page, times) in (0_u64..).zip(times) {
            let found = db.get(PAGES, page).unwrap().unwrap();
            assert_eq!([found[0], found[400], found[800]].map(u64::from), times);
            assert_eq!(found.iter().filter(|byte| **byte != 0).count(), 3);
        }
        let error = db.call(Count { page: 0, other: 1, byte: 1000 }).unwrap_err();
        assert!(error.is_failed(), "{error}");
        assert!(error.to_string().contains("bytes 1000 to 1001 of a value of 1000"), "{error}");
    }
}
