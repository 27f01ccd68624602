//! What the serial part of an epoch has made of the state at the end of the epoch before: private
//! until the epoch is accepted (O-72).
//!
//! The calls of the serial part run one after the other on one thread, so each writes straight into
//! it, and what a failed one wrote is undone. At the end every row has the value that its last
//! writer left (O-73).

mod gaps;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use storage::{Position, TableId};

use self::gaps::Gaps;
use crate::declaration::NO_ENTRY;
use crate::emptied::empty;
use crate::index::EntryId;
use crate::reads::{KeyRange, Reads, Visit};
use crate::secondary::IndexUndo;
use crate::state::core::{BySequence, Core};
use crate::table::{KeyWord, Table};

/// Bytes that the overlay keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    from: usize,
    len: usize,
}

/// What a row is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    /// What it was before the epoch.
    Unchanged,
    /// It has this value.
    Value(Kept),
    /// It is deleted.
    Deleted,
}

/// A row that a call of the serial part wrote, or tried to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverlayRow {
    pub(crate) table: TableId,
    /// Word of the hash index.
    pub(crate) word: u64,
    /// All of the key is in the word.
    pub(crate) is_word: bool,
    key: Kept,
    /// Its entry; [`NO_ENTRY`] if there was no such row before the epoch.
    pub(crate) id: EntryId,
    pub(crate) now: Now,
    /// Position of the last call that wrote it and committed.
    writer: Position,
    /// Another row of its table whose key has the same word.
    next: u32,
}

impl OverlayRow {
    /// Bytes of the value that it has now, if it was written one.
    pub(crate) fn value_bytes(&self) -> Option<u64> {
        match self.now {
            Now::Value(kept) => Some(kept.len as u64),
            Now::Unchanged | Now::Deleted => None,
        }
    }

    /// Whether it is to be written. One that was made and deleted leaves nothing.
    fn is_written(&self) -> bool {
        match self.now {
            Now::Unchanged => false,
            Now::Value(_) => true,
            Now::Deleted => self.id != NO_ENTRY,
        }
    }
}

/// No row.
const NONE: u32 = u32::MAX;
/// A map of which less than this part was in use is given up.
const USED_PART_MIN: usize = 64;

/// Empties a map. That takes as long as it is large, so one that a larger epoch has left is given
/// up.
fn clear_map(map: &mut BySequence<u32>) {
    if map.capacity() / USED_PART_MIN > map.len() + USED_PART_MIN {
        *map = BySequence::default();
    } else {
        map.clear();
    }
}

/// Where the value of a row is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OverlayValue {
    /// In the overlay.
    Kept(Kept),
    /// Where it was before the epoch.
    Before(EntryId),
    /// There is no such row.
    Absent,
}

/// A row of a piece of the running call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PieceRow<'k> {
    pub(crate) piece: usize,
    pub(crate) table: TableId,
    pub(crate) key: &'k [u8],
}

/// What a piece writes to one of its rows.
#[derive(Debug, Clone, Copy)]
struct OfPiece {
    piece: usize,
    table: TableId,
    key: Kept,
    now: Now,
}

/// The live rows of an ordered table that were not there before the epoch. They are put in order
/// when a scan wants that: calls that only insert never do.
#[derive(Debug, Default)]
struct NewKeys {
    sorted: BTreeMap<Vec<u8>, u32>,
    /// Rows that were made, or changed otherwise, since the last scan.
    changed: Vec<u32>,
}

/// What the serial part has written.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    rows: Vec<OverlayRow>,
    /// The first row of each word of a table.
    by_word: BySequence<u32>,
    /// The row of each entry of a table.
    by_entry: BySequence<u32>,
    bytes: Vec<u8>,
    /// For each ordered table, the live rows that were not there before the epoch ...
    new_keys: Vec<Option<NewKeys>>,
    /// ... and where all rows that were there are deleted.
    gaps: Vec<Gaps>,
    /// What the running call has changed: rows, and what they were before.
    undo: Vec<(u32, Now)>,
    /// What the pieces of the running call write, in the order in which they do. Its body does not
    /// see it.
    of_pieces: Vec<OfPiece>,
    /// Rows that are to be written, by their last writers.
    written: Vec<u32>,
    /// For each row how many calls wrote it, and the last of them, where that is counted. A row
    /// that was added since is not here yet.
    writers: Vec<(u32, Position)>,
    /// Procedures of which a call has said what it may write.
    pub(crate) predicted: BTreeSet<u16>,
    /// How secondary indexes are set back.
    pub(crate) index_undo: IndexUndo,
}

impl Overlay {
    /// Forgets the epoch before.
    pub(crate) fn begin(&mut self, tables: &[Table]) {
        assert!(self.undo.is_empty(), "no call of the serial part before is half done");
        self.give_back();
        clear_map(&mut self.by_word);
        clear_map(&mut self.by_entry);
        self.predicted.clear();
        self.new_keys.clear();
        self.new_keys.extend(tables.iter().map(|t| t.ordered.as_ref().map(|_| NewKeys::default())));
        self.gaps.clear();
        self.gaps.resize_with(tables.len(), Gaps::default);
    }

    /// Forgets rows and values, behind an epoch, so that the memory of many need not stay until the
    /// next one.
    pub(crate) fn give_back(&mut self) {
        empty(&mut self.rows);
        empty(&mut self.bytes);
        empty(&mut self.undo);
        empty(&mut self.of_pieces);
        empty(&mut self.written);
        empty(&mut self.writers);
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self, kept: Kept) -> &[u8] {
        &self.bytes[kept.from..][..kept.len]
    }

    /// The same, to be changed by who has just had them kept.
    pub(crate) fn bytes_mut(&mut self, kept: Kept) -> (&mut Vec<u8>, std::ops::Range<usize>) {
        (&mut self.bytes, kept.from..kept.from + kept.len)
    }

    /// Keeps a copy.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Kept {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Kept { from, len: bytes.len() }
    }

    /// Keeps a copy of what is kept already.
    pub(crate) fn keep_again(&mut self, kept: Kept) -> Kept {
        let from = self.bytes.len();
        self.bytes.extend_from_within(kept.from..kept.from + kept.len);
        Kept { from, len: kept.len }
    }

    /// The key of a row; `room` is for one that is a word.
    pub(crate) fn key<'k>(&'k self, row: &OverlayRow, room: &'k mut [u8; 8]) -> &'k [u8] {
        if !row.is_word {
            return self.bytes(row.key);
        }
        *room = row.word.to_be_bytes();
        room
    }

    fn find(&self, table: TableId, word: KeyWord<'_>) -> Option<u32> {
        let mut at = *self.by_word.get(&(table, word.hash))?;
        loop {
            let row = &self.rows[at as usize];
            if row.is_word || self.bytes(row.key) == word.key {
                return Some(at);
            }
            at = row.next;
            if at == NONE {
                return None;
            }
        }
    }

    /// Where the value of a key is.
    pub(crate) fn look(
        &self,
        core: &Core,
        table: TableId,
        word: KeyWord<'_>,
        reads: &Reads,
    ) -> OverlayValue {
        match self.find(table, word) {
            Some(at) => self.found(at),
            None => match core.find(&core.tables[table.index()], word, reads) {
                Some(id) => OverlayValue::Before(id),
                None => OverlayValue::Absent,
            },
        }
    }

    fn found(&self, at: u32) -> OverlayValue {
        let row = &self.rows[at as usize];
        match row.now {
            Now::Value(kept) => OverlayValue::Kept(kept),
            Now::Unchanged if row.id != NO_ENTRY => OverlayValue::Before(row.id),
            Now::Unchanged | Now::Deleted => OverlayValue::Absent,
        }
    }

    /// The running call writes a row.
    pub(crate) fn write(
        &mut self,
        core: &Core,
        table: TableId,
        word: KeyWord<'_>,
        now: Now,
        reads: &Reads,
    ) {
        let at = self.find(table, word).unwrap_or_else(|| self.add(core, table, word, reads));
        self.undo.push((at, self.rows[at as usize].now));
        self.set(at, now);
    }

    fn add(&mut self, core: &Core, table: TableId, word: KeyWord<'_>, reads: &Reads) -> u32 {
        let t = &core.tables[table.index()];
        let id = core.find(t, word, reads).unwrap_or(NO_ENTRY);
        let key = if t.exact { Kept { from: 0, len: 0 } } else { self.keep(word.key) };
        let at = u32::try_from(self.rows.len()).expect("fewer than 2^32 rows");
        let next = self.by_word.insert((table, word.hash), at).unwrap_or(NONE);
        if id != NO_ENTRY {
            self.by_entry.insert((table, id.0.into()), at);
        }
        self.rows.push(OverlayRow {
            table,
            word: word.hash,
            is_word: t.exact,
            key,
            id,
            now: Now::Unchanged,
            writer: Position(0),
            next,
        });
        at
    }

    fn set(&mut self, at: u32, now: Now) {
        let before = std::mem::replace(&mut self.rows[at as usize].now, now);
        let row = self.rows[at as usize];
        let table = row.table.index();
        let Some(new_keys) = &mut self.new_keys[table] else { return };
        if row.id == NO_ENTRY {
            if new_keys.changed.last() != Some(&at) {
                new_keys.changed.push(at);
            }
        } else if before == Now::Deleted && now != Now::Deleted {
            let mut room = [0; 8];
            let key = self.key(&row, &mut room).to_vec();
            self.gaps[table].revive(&key, row.is_word);
        }
    }

    /// Puts the new keys of an ordered table in order.
    fn sort_new_keys(&mut self, table: TableId) {
        let mut new_keys = self.new_keys[table.index()].take().expect("it is ordered");
        for at in new_keys.changed.drain(..) {
            let row = self.rows[at as usize];
            let mut room = [0; 8];
            let key = self.key(&row, &mut room);
            match row.now {
                Now::Value(_) => drop(new_keys.sorted.insert(key.to_vec(), at)),
                Now::Unchanged | Now::Deleted => drop(new_keys.sorted.remove(key)),
            }
        }
        self.new_keys[table.index()] = Some(new_keys);
    }

    /// A piece of the running call writes one of its rows, or deletes it, when the call commits.
    pub(crate) fn write_later(&mut self, row: PieceRow<'_>, value: Option<&[u8]>) {
        let key = self.keep(row.key);
        let now = value.map_or(Now::Deleted, |value| Now::Value(self.keep(value)));
        self.of_pieces.push(OfPiece { piece: row.piece, table: row.table, key, now });
    }

    /// What a piece of the running call has made of one of its rows.
    pub(crate) fn of_piece(&self, row: PieceRow<'_>) -> Now {
        let is_same = |of: &&OfPiece| {
            of.piece == row.piece && of.table == row.table && self.bytes(of.key) == row.key
        };
        self.of_pieces.iter().rfind(is_same).map_or(Now::Unchanged, |of| of.now)
    }

    /// The pieces of the running call have run: writes what they write.
    pub(crate) fn write_of_pieces(&mut self, core: &Core, reads: &Reads) -> Result<(), String> {
        for OfPiece { table, key, now, .. } in std::mem::take(&mut self.of_pieces) {
            let key = self.bytes(key).to_vec();
            let word = core.row_table(table)?.word(&key)?;
            self.write(core, table, word, now, reads);
        }
        Ok(())
    }

    /// The running call commits at its position.
    pub(crate) fn commit(&mut self, position: Position) {
        debug_assert!(self.of_pieces.is_empty(), "what pieces of the call write is in their rows");
        for (at, _) in self.undo.drain(..) {
            self.rows[at as usize].writer = position;
        }
        self.index_undo.commit();
    }

    /// The running call has failed.
    pub(crate) fn roll_back(&mut self, core: &Core) {
        core.secondary.roll_back(&mut self.index_undo, false);
        self.of_pieces.clear();
        while let Some((at, before)) = self.undo.pop() {
            self.set(at, before);
        }
    }

    /// Counts the call at a position for all rows that it wrote, before it commits or is undone.
    pub(crate) fn count_writer(&mut self, position: Position) {
        self.writers.resize(self.rows.len(), (0, Position(NONE)));
        for &(at, _) in &self.undo {
            let (calls, last) = &mut self.writers[at as usize];
            *calls += u32::from(*last != position);
            *last = position;
        }
    }

    /// The rows that several calls wrote, or one that left nothing in them, if that was counted;
    /// how many calls, and whether the row is to be written.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&OverlayRow, u32, bool)> {
        let rows = self.rows.iter().zip(&self.writers);
        let rows = rows.map(|(row, &(calls, _))| (row, calls, row.is_written()));
        rows.filter(|&(_, calls, is_written)| calls > u32::from(is_written))
    }

    /// All calls have run: finds the rows that are to be written.
    pub(crate) fn finish(&mut self) {
        assert!(self.undo.is_empty(), "the last call of the serial part committed or is undone");
        assert!(self.of_pieces.is_empty(), "what its pieces wrote is in the overlay, or gone");
        assert!(self.written.is_empty(), "the serial part ends once");
        let rows = &self.rows;
        self.written.extend((0..rows.len() as u32).filter(|&at| rows[at as usize].is_written()));
        self.written.sort_by_key(|&at| rows[at as usize].writer);
    }

    /// The rows whose last writer is the call at a position.
    pub(crate) fn written_by(&self, position: Position) -> impl Iterator<Item = &OverlayRow> {
        let writer = |at: &u32| self.rows[*at as usize].writer;
        let from = self.written.partition_point(|at| writer(at) < position);
        let rows = self.written[from..].iter().take_while(move |at| writer(at) == position);
        rows.map(|&at| &self.rows[at as usize])
    }

    /// Scans rows of an ordered table as they are now. `before` reads a row as it was before the
    /// epoch.
    pub(crate) fn scan<'p>(
        &mut self,
        core: &'p Core,
        table: TableId,
        keys: KeyRange<'_>,
        reads: &Reads,
        before: &mut dyn FnMut(EntryId) -> Option<&'p [u8]>,
        each: Visit<'_>,
    ) -> Result<(), String> {
        let KeyRange { low, high, is_descending } = keys;
        let t = core.row_table(table)?;
        core.range(t, low, high, reads)?;
        if low >= high {
            return Ok(());
        }
        self.sort_new_keys(table);
        let Self { rows, by_entry, bytes, new_keys, gaps, .. } = self;
        let new_keys = &new_keys[table.index()].as_ref().expect("it is ordered").sorted;
        let mut new_rows = new_keys.range::<[u8], _>((Bound::Included(low), Bound::Excluded(high)));
        let mut next_new = || if is_descending { new_rows.next_back() } else { new_rows.next() };
        let mut new = next_new();
        let value_of = |at: u32| match rows[at as usize].now {
            Now::Value(Kept { from, len }) => &bytes[from..][..len],
            Now::Unchanged | Now::Deleted => unreachable!("new keys are of live rows"),
        };
        let comes_first = |new: &[u8], key: &[u8]| (new < key) != is_descending;
        let mut walk = gaps[table.index()].walk(keys, t.exact);
        // Where rows are skipped, the search begins anew behind them.
        while let Some((from, to)) = walk.next_bounds() {
            let mut range = core.range(t, &from, &to, reads)?;
            loop {
                let entry = if is_descending { range.next_back() } else { range.next() };
                let Some((word, id)) = entry else {
                    walk.end();
                    break;
                };
                let mut room = [0; 8];
                let key = core.key(t, word, id, &mut room, reads);
                let own = by_entry.get(&(table, id.0.into())).map(|&at| rows[at as usize]);
                let value = match own.map(|row| row.now) {
                    Some(Now::Deleted) => {
                        if walk.skip(key) {
                            break;
                        }
                        continue;
                    }
                    Some(Now::Value(Kept { from, len })) => Some(&bytes[from..][..len]),
                    Some(Now::Unchanged) | None => before(id),
                };
                walk.live(key);
                while let Some((new_key, &at)) = new.filter(|new| comes_first(new.0, key)) {
                    if each(new_key, value_of(at)).is_break() {
                        return Ok(());
                    }
                    new = next_new();
                }
                if let Some(value) = value
                    && each(key, value).is_break()
                {
                    return Ok(());
                }
            }
        }
        while let Some((key, &at)) = new
            && each(key, value_of(at)).is_continue()
        {
            new = next_new();
        }
        Ok(())
    }
}
