//! Changing a few bytes of long rows.

use crate::common::dram;
use nvcaracal::{
    Data, Database, HashTable, Piece, PieceResult, PieceResults, Procedure, Stop, Table,
    Transaction, Tuning, WriteSet, plain,
};

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

    fn piece(&self, piece: &mut Piece) -> Result<PieceResult, Stop> {
        let (byte, mut before) = (self.byte as usize, 0);
        piece.modify_bytes::<Vec<u8>>(byte..byte + 1, |page, part| {
            self.count(page, part, &mut before)
        })?;
        Ok(u64::from(before).into())
    }

    fn finish(&self, (before, _): (u64, u64), results: PieceResults) -> (u64, u64) {
        (before, results.get(0))
    }
}

#[test]
fn bytes_of_rows_are_changed_in_place_for_all_who_follow() {
    for threshold in [0, 2] {
        let options = Database::options().table(PAGES).procedure::<Make>().procedure::<Count>();
        let db = dram(
            options.workers(2).tuning(Tuning { split_threshold: threshold, ..Tuning::default() }),
        );
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

const TEXTS: HashTable<u64, String> = Table::hash("texts");
const BLOBS: HashTable<u64, Vec<u8>> = Table::hash("blobs");
const WORDS: HashTable<u64, u64> = Table::hash("words");

/// Writes a row of each table from bytes, and changes all of the text.
#[derive(Data)]
struct Write {
    blob: Vec<u8>,
    text: Vec<u8>,
    word: Vec<u8>,
    is_new: bool,
}

impl Procedure for Write {
    const NAME: &'static str = "write";
    type Output = bool;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(BLOBS, 1);
        set.insert(TEXTS, 1);
        set.insert(WORDS, 1);
    }

    fn run(&self, tx: &mut Transaction) -> Result<bool, Stop> {
        if self.is_new {
            tx.insert_bytes(BLOBS, 1, &self.blob)?;
            tx.insert_bytes(TEXTS, 1, &self.text)?;
            tx.insert_bytes(WORDS, 1, &self.word)?;
            return Ok(true);
        }
        let blob = tx.update_bytes(BLOBS, 1, &self.blob)?;
        let text = tx.update_bytes(TEXTS, 1, &self.text)?;
        tx.update_bytes(WORDS, 1, &self.word)?;
        tx.modify_bytes(TEXTS, 1, .., |old, new| {
            assert_eq!(old, new);
            new.make_ascii_uppercase();
        })?;
        tx.modify_bytes(TEXTS, 1, 1.., |_, new| new.fill(b'-'))?;
        tx.modify_bytes(TEXTS, 1, ..=2, |_, new| new[2] = b'+')?;
        Ok(blob && text)
    }
}

/// Changes all of a page up to a byte that it does not have.
#[derive(Data)]
struct TooFar {}

impl Procedure for TooFar {
    const NAME: &'static str = "too far";
    type Output = bool;

    fn write_set(&self, set: &mut WriteSet) {
        set.update(PAGES, 0);
    }

    fn run(&self, tx: &mut Transaction) -> Result<bool, Stop> {
        tx.modify_bytes(PAGES, 0, 0..usize::MAX, |_, page| page.fill(1))
    }
}

#[test]
fn a_part_with_an_end_is_never_taken_for_one_without() {
    let options = Database::options().table(PAGES).procedure::<Make>().procedure::<TooFar>();
    for serial_calls_max in [0, 64] {
        let db = dram(options.clone().tuning(Tuning { serial_calls_max, ..Tuning::default() }));
        db.call(Make { page: 0 }).unwrap();
        let error = db.call(TooFar {}).unwrap_err();
        assert!(error.to_string().contains("of a value of 1000 bytes"), "{error}");
        assert_eq!(db.get(PAGES, 0).unwrap(), Some([0; 1000]));
    }
}

/// What is there as bytes is written without a value being made of it, if it is one.
#[test]
fn bytes_are_written_as_values_of_their_table() {
    let options = Database::options().table(TEXTS).table(BLOBS).table(WORDS);
    let db = dram(options.procedure::<Write>());
    let write = |text: &[u8], word: &[u8], is_new| Write {
        blob: vec![7; 300],
        text: text.to_vec(),
        word: word.to_vec(),
        is_new,
    };
    let words = 5_u64.to_le_bytes();
    assert!(!db.call(write(b"text", &words, false)).unwrap(), "no row yet");
    assert!(db.call(write(b"text", &words, true)).unwrap());
    assert_eq!(db.get(BLOBS, 1).unwrap(), Some(vec![7; 300]));
    assert_eq!(db.get(TEXTS, 1).unwrap().as_deref(), Some("text"));
    assert_eq!(db.get(WORDS, 1).unwrap(), Some(5));
    assert!(db.call(write(b"other", &words, false)).unwrap());
    assert_eq!(db.get(TEXTS, 1).unwrap().as_deref(), Some("O-+--"));
    for (text, word, what) in [
        (&b"\xff\xfe"[..], &words[..], "2 bytes are written that are no alloc::string::String"),
        (b"text", &words[..7], "7 bytes are written that are no u64"),
    ] {
        for is_new in [true, false] {
            let error = db.call(write(text, word, is_new)).unwrap_err();
            assert!(error.is_failed() && error.to_string().contains(what), "{error}");
        }
    }
    assert_eq!(db.get(TEXTS, 1).unwrap().as_deref(), Some("O-+--"), "nothing of it was written");
}
