//! What an epoch changes in tables that are watched, for feeds of changes (O-110).
//!
//! A row is written once in an epoch, by the owner of its last version, who has both at hand: what
//! the row was before the epoch and what it is after it. So each worker notes the rows that it
//! writes, and all notes together are the difference of two states, whatever calls there were.

use storage::TableId;

/// How a row has changed in an epoch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Number of its table.
    pub table: TableId,
    /// Its key.
    pub key: Box<[u8]>,
    /// Its value before the epoch; `None` if there was no row.
    pub before: Option<Box<[u8]>>,
    /// Its value after the epoch, which is another one; `None` if there is no row.
    pub after: Option<Box<[u8]>>,
}

/// What a change takes besides its key and values, about.
const CHANGE_BYTES: u64 = 64;

impl Change {
    /// What it takes in memory, about.
    pub fn bytes(&self) -> u64 {
        let len = |value: &Option<Box<[u8]>>| value.as_ref().map_or(0, |value| value.len() as u64);
        self.key.len() as u64 + len(&self.before) + len(&self.after) + CHANGE_BYTES
    }
}

/// How rows of watched tables have changed in an epoch.
#[derive(Debug, Default)]
pub struct EpochChanges {
    /// By table and key.
    pub rows: Vec<Change>,
    /// They were too many: there are none in `rows`.
    pub are_too_many: bool,
}

/// Which tables are watched.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchedTables {
    /// By table; empty where none is.
    pub(crate) tables: Vec<bool>,
    /// Most bytes of an epoch's changes.
    pub(crate) bytes_max: u64,
}

/// The changes that one worker has noted.
#[derive(Debug, Default)]
pub(crate) struct WorkerChanges {
    /// Whether final writes are looked at, for whatever purpose.
    pub(crate) are_observed: bool,
    watched: Vec<bool>,
    /// Bytes that may still be noted in this epoch.
    room: u64,
    noted: EpochChanges,
}

impl WorkerChanges {
    /// An epoch begins, of so many workers.
    pub(crate) fn begin(&mut self, watched: &WatchedTables, workers: usize) {
        assert!(!self.noted.are_too_many, "that the epoch before changed much was handed out");
        self.watched.clone_from(&watched.tables);
        self.room = watched.bytes_max / workers as u64;
        assert!(self.noted.rows.is_empty(), "changes of the epoch before were handed out");
    }

    /// Whether changes of a table are noted.
    pub(crate) fn are_of(&self, table: TableId) -> bool {
        self.watched.get(table.index()).is_some_and(|&is_watched| is_watched)
    }

    /// Notes how a row changes, if it does.
    pub(crate) fn note(
        &mut self,
        table: TableId,
        key: &[u8],
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) {
        if before == after || self.noted.are_too_many {
            return;
        }
        let (before, after) = (before.map(Box::from), after.map(Box::from));
        let change = Change { table, key: key.into(), before, after };
        match self.room.checked_sub(change.bytes()) {
            Some(room) => {
                self.room = room;
                self.noted.rows.push(change);
            }
            None => self.noted = EpochChanges { rows: Vec::new(), are_too_many: true },
        }
    }

    /// What was noted in the epoch.
    pub(crate) fn take(&mut self) -> EpochChanges {
        std::mem::take(&mut self.noted)
    }
}

impl EpochChanges {
    /// Adds what another worker has noted.
    pub(crate) fn add(&mut self, others: Self) {
        self.are_too_many |= others.are_too_many;
        match self.are_too_many {
            true => self.rows = Vec::new(),
            false => self.rows.extend(others.rows),
        }
    }

    /// Puts all into their order, once each worker's are there.
    pub(crate) fn sort(&mut self) {
        self.rows.sort_unstable();
        let key = |change: &Change| (change.table, change.key.clone());
        debug_assert!(
            self.rows.windows(2).all(|two| key(&two[0]) < key(&two[1])),
            "a row is written once in an epoch"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_beyond_the_room_leave_none() {
        let mut changes = WorkerChanges::default();
        let watched = WatchedTables { tables: vec![false, true], bytes_max: 600 };
        changes.begin(&watched, 2);
        assert!(changes.are_of(TableId(1)));
        assert!(!changes.are_of(TableId(0)) && !changes.are_of(TableId(2)));
        changes.note(TableId(1), b"same", Some(b"value"), Some(b"value"));
        changes.note(TableId(1), b"never", None, None);
        changes.note(TableId(1), b"new", None, Some(&[1; 100]));
        let noted = changes.take();
        assert_eq!((noted.rows.len(), noted.are_too_many), (1, false));
        assert_eq!(noted.rows[0].bytes(), 3 + 100 + CHANGE_BYTES);

        changes.begin(&watched, 2);
        for key in 0..4 {
            changes.note(TableId(1), &[key], Some(&[1; 100]), None);
        }
        let mut noted = changes.take();
        assert!(noted.are_too_many && noted.rows.is_empty());
        noted.add(EpochChanges::default());
        assert!(noted.are_too_many, "one worker's are missing");
    }
}
