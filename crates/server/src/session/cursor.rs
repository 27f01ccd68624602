//! Cursors of SQL: DECLARE runs the query, FETCH answers its rows part by part, in any
//! direction. The rows are those of the moment of DECLARE.

use super::conversation::{Conversation, Stop, Submission};
use super::planned::{Cursor, Prepared, Work};
use super::queue::Shape;
use crate::codec::Format;
use crate::store::Answer;
use sql::Grant;
use sql::parse::{Declared, Fetch, FetchTo};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState};

impl Conversation {
    /// DECLARE: runs the query and keeps its rows.
    pub(super) async fn declare(
        &mut self,
        prepared: &Arc<Prepared>,
        values: Vec<Datum>,
        memory: Option<Arc<Grant>>,
        bytes: usize,
    ) -> Result<(), Stop> {
        let Work::Declare(declared, statement) = &prepared.work else {
            unreachable!("it declares a cursor")
        };
        self.open_held().await?;
        let Declared { name, is_held, is_forward, is_binary } = declared;
        if !is_held && !self.is_within_more() {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_TRANSACTION, message).into());
        }
        if let Some(locking) = statement.command().filter(|_| *is_held) {
            let locking = locking.trim_start_matches("SELECT ");
            let message = format!("DECLARE CURSOR WITH HOLD ... {locking} is not supported");
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_detail("Holdable cursors must be READ ONLY.")
                .into());
        }
        self.cursors.check(name, 0)?;
        self.refuse_by_block(statement).await?;
        let formats: Arc<[Format]> = Arc::new([]);
        let submission = Submission {
            prepared: Arc::clone(prepared),
            statement: Arc::clone(statement),
            values,
            memory,
            bytes,
            shape: Shape::of(prepared, &formats, self.settings.zone()),
            limit: None,
            before: Default::default(),
        };
        let Answer { rows, memory, .. } = self.read(submission).await?;
        let bytes = rows.iter().flatten().map(Datum::memory_bytes).sum();
        self.cursors.check(name, bytes)?;
        let columns = statement.columns.clone().into();
        let (is_held, is_forward) = (*is_held, *is_forward);
        let cursor = Cursor {
            text: Arc::clone(statement.text()),
            at_time: self.connection.now(),
            columns,
            rows,
            _memory: memory,
            at: 0,
            bytes,
            is_forward,
            is_binary: *is_binary,
            is_held,
            is_of_transaction: true,
            savepoints: self.block.savepoints.len(),
        };
        self.cursors.insert(name.clone(), cursor);
        self.out.command_complete(&"DECLARE CURSOR");
        Ok(())
    }

    /// FETCH or MOVE: goes with a cursor; the rows that it comes to, or how many there are.
    pub(super) fn fetch(&mut self, fetch: &Fetch, shape: &Shape) -> Result<Answer> {
        if self.is_portal(&fetch.cursor) {
            return self.fetch_portal(fetch, shape);
        }
        let cursor = self.cursors.get(&fetch.cursor)?;
        if fetch.is_move {
            let count = cursor.go(fetch.to, true)?.len();
            return Ok(Answer { tag: format!("MOVE {count}"), ..Answer::default() });
        }
        if cursor.columns != shape.columns {
            let message = "cached plan must not change result type";
            return Err(Error::unsupported(message, "Prepare the FETCH again."));
        }
        let rows = cursor.fetch(fetch.to)?;
        Ok(Answer { tag: format!("FETCH {}", rows.len()), rows, ..Answer::default() })
    }

    /// CLOSE of a cursor, or of all.
    pub(super) fn close(&mut self, name: Option<&str>) -> Result<&'static str> {
        let Some(name) = name else {
            self.cursors.clear();
            return Ok("CLOSE CURSOR ALL");
        };
        if self.is_portal(name) {
            self.portals.remove(name);
            return Ok("CLOSE CURSOR");
        }
        self.cursors.get(name)?;
        self.cursors.remove(name);
        Ok("CLOSE CURSOR")
    }

    /// Goes back to a savepoint: what was declared or bound since never was.
    pub(super) fn close_cursors_since(&mut self, savepoint: &str) {
        let Some(at) = self.block.savepoint(savepoint) else { return };
        self.portals.retain(|portal| portal.savepoints <= at);
        self.block.savepoints.truncate(at + 1);
        self.cursors.retain(|cursor| !cursor.is_of_transaction || cursor.savepoints <= at);
    }

    /// Forgets a savepoint: what was declared or bound since belongs to what is around it.
    pub(super) fn keep_cursors_since(&mut self, savepoint: &str) {
        let Some(at) = self.block.savepoint(savepoint) else { return };
        self.block.savepoints.truncate(at);
        self.cursors.retain(|cursor| {
            cursor.savepoints = cursor.savepoints.min(at);
            true
        });
        self.portals.retain(|portal| {
            portal.savepoints = portal.savepoints.min(at);
            true
        });
    }

    /// At the end of a transaction its cursors are closed, but for those that it commits WITH HOLD.
    pub(super) fn end_cursors(&mut self, has_committed: bool) {
        self.cursors.retain(|cursor| {
            let stays = !cursor.is_of_transaction || has_committed && cursor.is_held;
            (cursor.is_of_transaction, cursor.savepoints) = (false, 0);
            stays
        });
    }
}

/// The numbers of rows, in the order in which they are answered.
struct Places {
    next: usize,
    left: usize,
    is_back: bool,
}

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let place = self.next;
        self.next = if self.is_back { place - 1 } else { place + 1 };
        Some(place)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Places {}

impl Cursor {
    /// Goes there; the rows that it comes to. MOVE may stay where it is, whatever the cursor.
    fn go(&mut self, to: FetchTo, is_move: bool) -> Result<Places> {
        let end = self.rows.len() + 1;
        let (at, one) = (self.at, |place| Places { next: place, left: 1, is_back: false });
        let none = Places { next: 0, left: 0, is_back: false };
        let is_on_row = (1..end).contains(&at);
        match to {
            FetchTo::Forward(0) | FetchTo::Relative(0) if !is_on_row => Ok(none),
            FetchTo::Forward(0) | FetchTo::Relative(0) => {
                if !is_move {
                    self.check_back()?;
                }
                Ok(one(at))
            }
            FetchTo::Forward(count) if count > 0 => Ok(self.on(at.saturating_add(wide(count)))),
            FetchTo::End => Ok(self.on(end)),
            FetchTo::Forward(count) => self.back(at.saturating_sub(wide(count))),
            FetchTo::Begin => self.back(0),
            FetchTo::Absolute(place) => {
                let place = match place {
                    0.. => wide(place).min(end),
                    _ => {
                        self.at = end;
                        end.saturating_sub(wide(place))
                    }
                };
                self.single(place)
            }
            FetchTo::Relative(count) => self.single(match count {
                0.. => at.saturating_add(wide(count)).min(end),
                _ => at.saturating_sub(wide(count)),
            }),
        }
    }

    /// Goes there; copies of the rows that it comes to.
    pub(super) fn fetch(&mut self, to: FetchTo) -> Result<Vec<Vec<Datum>>> {
        let places = self.go(to, false)?;
        Ok(places.map(|place| self.rows[place - 1].clone()).collect())
    }

    /// Goes on, over the rows that are answered.
    fn on(&mut self, to: usize) -> Places {
        let (at, end) = (self.at, self.rows.len() + 1);
        self.at = to.min(end);
        Places { next: at + 1, left: to.min(end - 1).saturating_sub(at), is_back: false }
    }

    /// Goes back, over the rows that are answered.
    fn back(&mut self, to: usize) -> Result<Places> {
        self.check_back()?;
        let at = std::mem::replace(&mut self.at, to);
        let left = at.saturating_sub(to.max(1));
        Ok(Places { next: at.saturating_sub(1), left, is_back: true })
    }

    /// Goes to one row, or beside all.
    fn single(&mut self, to: usize) -> Result<Places> {
        if to <= self.at && self.at > 0 {
            self.check_back()?;
        }
        self.at = to;
        let left = usize::from((1..=self.rows.len()).contains(&to));
        Ok(Places { next: to, left, is_back: false })
    }

    fn check_back(&self) -> Result<()> {
        if !self.is_forward {
            return Ok(());
        }
        Err(Error::new(SqlState::WRONG_STATE, "cursor can only scan forward")
            .with_hint("Declare it with SCROLL option to enable backward scan."))
    }
}

fn wide(count: i64) -> usize {
    usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)
}
