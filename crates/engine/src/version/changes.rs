//! What an epoch changes in tables that are watched, for feeds of changes (O-110).
//!
//! A row is written once in an epoch, by the owner of its last version, who has both at hand: what
//! the row was before the epoch and what it is after it. So each worker notes the rows that it
//! writes, and all notes together are the difference of two states, whatever calls there were.

use storage::{Change, EpochChanges, TableId};

/// Which tables are watched.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchedTables {
    /// By table; empty where none is.
    pub(crate) tables: Vec<Watched>,
    /// Tables that feeds want.
    pub(crate) fed: Vec<TableId>,
    /// Most bytes of an epoch's changes that only feeds want.
    pub(crate) fed_bytes_max: u64,
    /// Most bytes of an epoch's changes that the change log wants.
    pub(crate) logged_bytes_max: u64,
}

/// Who wants the changes of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    No,
    /// Feeds.
    Fed,
    /// The change log, and feeds if there are any.
    Logged,
}

/// The changes of an epoch.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// Of tables that only feeds want.
    pub(crate) fed: EpochChanges,
    /// Of tables of the change log.
    pub(crate) logged: EpochChanges,
}

/// The changes that one worker has noted.
#[derive(Debug, Default)]
pub(crate) struct WorkerChanges {
    /// Whether final writes are looked at, for whatever purpose.
    pub(crate) are_observed: bool,
    watched: Vec<Watched>,
    /// Bytes that may still be noted in this epoch.
    fed_room: u64,
    logged_room: u64,
    noted: Noted,
}

impl WorkerChanges {
    /// An epoch begins, of so many workers.
    pub(crate) fn begin(&mut self, watched: &WatchedTables, workers: usize) {
        assert!(!self.noted.are_any(), "changes of the epoch before were handed out");
        self.watched.clone_from(&watched.tables);
        self.fed_room = watched.fed_bytes_max / workers as u64;
        // What is in the change log does not depend on which worker has written a row: the log
        // compares the sum of all with the limit.
        self.logged_room = watched.logged_bytes_max;
    }

    /// Whether changes of a table are noted.
    pub(crate) fn are_of(&self, table: TableId) -> bool {
        self.watched.get(table.index()).is_some_and(|&watched| watched != Watched::No)
    }

    /// Notes how a row changes, if it does.
    pub(crate) fn note(
        &mut self,
        table: TableId,
        key: &[u8],
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) {
        let is_logged = self.watched[table.index()] == Watched::Logged;
        let (noted, room) = match is_logged {
            true => (&mut self.noted.logged, &mut self.logged_room),
            false => (&mut self.noted.fed, &mut self.fed_room),
        };
        if before == after || noted.are_too_many {
            return;
        }
        let (before, after) = (before.map(Box::from), after.map(Box::from));
        let change = Change { table, key: key.into(), before, after };
        match room.checked_sub(change.bytes()) {
            Some(left) => {
                *room = left;
                noted.rows.push(change);
            }
            None => *noted = EpochChanges { rows: Vec::new(), are_too_many: true },
        }
    }

    /// Whether anything was noted in the epoch.
    pub(crate) fn are_any(&self) -> bool {
        self.noted.are_any()
    }

    /// What was noted in the epoch.
    pub(crate) fn take(&mut self) -> Noted {
        std::mem::take(&mut self.noted)
    }
}

impl Noted {
    fn are_any(&self) -> bool {
        self.fed.are_any() || self.logged.are_any()
    }

    /// Adds what another worker has noted.
    pub(crate) fn add(&mut self, others: Self) {
        self.fed.add(others.fed);
        self.logged.add(others.logged);
    }

    /// All changes, by table and key.
    pub(crate) fn together(self) -> EpochChanges {
        let Self { mut fed, logged } = self;
        fed.add(logged);
        fed.sort();
        fed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_beyond_the_room_leave_none() {
        let mut changes = WorkerChanges::default();
        let watched = WatchedTables {
            tables: vec![Watched::No, Watched::Fed],
            fed: vec![TableId(1)],
            fed_bytes_max: 600,
            logged_bytes_max: 0,
        };
        changes.begin(&watched, 2);
        assert!(changes.are_of(TableId(1)));
        assert!(!changes.are_of(TableId(0)) && !changes.are_of(TableId(2)));
        changes.note(TableId(1), b"same", Some(b"value"), Some(b"value"));
        changes.note(TableId(1), b"never", None, None);
        changes.note(TableId(1), b"new", None, Some(&[1; 100]));
        let noted = changes.take().fed;
        assert_eq!((noted.rows.len(), noted.are_too_many), (1, false));
        assert!((103..200).contains(&noted.rows[0].bytes()));

        changes.begin(&watched, 2);
        for key in 0..4 {
            changes.note(TableId(1), &[key], Some(&[1; 100]), None);
        }
        let mut noted = changes.take();
        assert!(noted.fed.are_too_many && noted.fed.rows.is_empty());
        noted.add(Noted::default());
        assert!(noted.together().are_too_many, "one worker's are missing");
    }

    /// What is too much for feeds leaves the change log what it needs.
    #[test]
    fn the_change_log_has_room_of_its_own() {
        let mut changes = WorkerChanges::default();
        let watched = WatchedTables {
            tables: vec![Watched::Fed, Watched::Logged],
            fed: vec![TableId(0)],
            fed_bytes_max: 100,
            logged_bytes_max: 800,
        };
        changes.begin(&watched, 4);
        changes.note(TableId(0), b"key", None, Some(&[1; 100]));
        for key in 0..4 {
            changes.note(TableId(1), &[key], Some(&[1; 100]), None);
        }
        let noted = changes.take();
        assert!(noted.fed.are_too_many && !noted.logged.are_too_many);
        assert_eq!(noted.logged.rows.len(), 4, "of {} workers, all that one has room for", 4);
        assert!(noted.together().are_too_many);
    }
}
