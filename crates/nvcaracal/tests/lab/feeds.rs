//! Callers that follow the changes of the rows (O-110): what they lead to is what snapshots have.

use std::collections::BTreeMap;

use nvcaracal::{Change, Changes, Database, Result};

use crate::program::{ROWS, Row};

/// A copy of the rows that is kept by their changes.
pub(crate) struct Follower {
    changes: Changes<u64, Row>,
    rows: BTreeMap<u64, Row>,
    /// A change of an epoch after the one that was looked at.
    next: Option<Change<u64, Row>>,
}

/// A follower, or none where it was too slow; or why there is none any more. The outer result is
/// what is wrong.
type Followed = std::result::Result<Result<Option<Follower>>, String>;

/// Nothing is wrong if changes or a snapshot are no longer kept.
fn unless_gone(result: Result<Follower>) -> Result<Option<Follower>> {
    match result {
        Err(error) if error.is_limit() => Ok(None),
        result => result.map(Some),
    }
}

impl Follower {
    pub(crate) fn begin(db: &Database) -> Followed {
        let begin = || {
            let mut changes = db.changes(ROWS, None)?;
            let snapshot = db.snapshot()?;
            let rows = snapshot.range(ROWS, ..).collect::<Result<_>>()?;
            changes.go_on_after(snapshot.epoch())?;
            Ok(Self { changes, rows, next: None })
        };
        Ok(unless_gone(begin()))
    }

    /// Reads on up to a new snapshot, which must have the rows that the changes lead to.
    pub(crate) fn go_on(mut self, db: &Database) -> Followed {
        let look = || {
            let snapshot = db.snapshot()?;
            Ok((snapshot.epoch(), snapshot.range(ROWS, ..).collect::<Result<BTreeMap<_, _>>>()?))
        };
        let (epoch, rows) = match look() {
            Ok(seen) => seen,
            Err(error) => return Ok(unless_gone(Err(error))),
        };
        loop {
            let change = match self.next.take() {
                Some(change) => change,
                None => match self.changes.try_next() {
                    Ok(Some(change)) => change,
                    Ok(None) => break,
                    Err(error) => return Ok(unless_gone(Err(error))),
                },
            };
            if change.epoch > epoch {
                self.next = Some(change);
                break;
            }
            self.apply(change)?;
        }
        if self.rows != rows {
            let found = &self.rows;
            return Err(format!("changes up to epoch {epoch} lead to {found:?} and not {rows:?}"));
        }
        Ok(Ok(Some(self)))
    }

    fn apply(&mut self, change: Change<u64, Row>) -> std::result::Result<(), String> {
        let found = self.rows.get(&change.key);
        if found != change.before.as_ref() || change.before == change.after {
            return Err(format!("{change:?} of a row that was {found:?}"));
        }
        match change.after {
            Some(row) => self.rows.insert(change.key, row),
            None => self.rows.remove(&change.key),
        };
        Ok(())
    }
}
