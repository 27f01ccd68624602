//! Changing rows in private copies: whole, or a part of them.

use std::ops::{Bound, Range, RangeBounds};

use storage::{TableId, lines_around};

use super::{Slot, Stop, Transaction};
use crate::declaration::{NO_ENTRY, Span};
use crate::memory::{PrivatePart, PrivateWrite};

impl Transaction<'_> {
    /// Changes a declared row in a private copy of its newest value; its length stays. False where
    /// the row does not exist.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key.
    pub fn modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: F,
    ) -> Result<bool, Stop> {
        let first_error = self.first_error;
        let result = match self.is_serial() {
            true => self.serial_modify(table, key, change),
            false if self.is_indexed(table) => {
                self.with_indexes(table, key, |tx| tx.try_modify(table, key, change))
            }
            false => self.try_modify(table, key, change),
        };
        result.map_err(|stop| first_error.note(stop))
    }

    #[inline(always)]
    fn try_modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: F,
    ) -> Result<bool, Stop> {
        let slot = self.writable(table, key)?;
        let Some(span) = self.copy_to_change(slot)? else {
            return Ok(false);
        };
        change(&mut self.local.scratch[span.range()]);
        self.put(slot.write, PrivateWrite::Value(span))?;
        Ok(true)
    }

    /// Changes a part of a declared row, all of it with `..`: `change` gets the row's newest value,
    /// and a private copy of the bytes in `part` to change. As [`Transaction::modify`], but the row
    /// is not copied, and only the lines of 64 bytes that hold the part are compared, if no other
    /// transaction of the epoch wrote the row: the way to change a few bytes of a long row. False
    /// where the row does not exist.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key, or a part that goes beyond the end of the value.
    pub fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: impl RangeBounds<usize>,
        change: F,
    ) -> Result<bool, Stop> {
        let (first_error, part) = (self.first_error, Bounds::of(&part));
        let result = match self.is_serial() {
            true => self.serial_modify_part(table, key, part, change),
            false if self.is_indexed(table) => {
                self.with_indexes(table, key, |tx| tx.try_modify_part(table, key, part, change))
            }
            false => self.try_modify_part(table, key, part, change),
        };
        result.map_err(|stop| first_error.note(stop))
    }

    #[inline(always)]
    fn try_modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Bounds,
        change: F,
    ) -> Result<bool, Stop> {
        let slot = self.writable(table, key)?;
        let before = self.local.writes[slot.write];
        if slot.id == NO_ENTRY || !matches!(before, PrivateWrite::None | PrivateWrite::Seen) {
            return self.modify_part_again(slot, part, change);
        }
        let (seen, value) = match self.see_planned(slot) {
            Some(value) => (self.call.access(slot.write).seen, value),
            None => {
                let seen = self.read_declared(slot)?;
                let Some(value) = self.value_of(slot.id, seen) else {
                    return Ok(false);
                };
                (seen.word, value)
            }
        };
        let scratch = &mut self.local.scratch;
        let from = scratch.len();
        let at = change_lines(value, part, scratch, change)? as u32;
        let lines = Span::up_to(from, scratch.len());
        let write = PrivateWrite::Lines(self.local.parts.len() as u32);
        self.local.parts.push(PrivatePart { seen, at, lines });
        self.put(slot.write, write)?;
        Ok(true)
    }

    /// [`Transaction::modify_part`] of a row that this call has written itself.
    #[inline(never)]
    fn modify_part_again<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        slot: Slot,
        part: Bounds,
        change: F,
    ) -> Result<bool, Stop> {
        let Some(span) = self.copy_to_change(slot)? else {
            return Ok(false);
        };
        change_part(&mut self.local.scratch, span.range(), part, change)?;
        self.put(slot.write, PrivateWrite::Value(span))?;
        Ok(true)
    }

    /// A private copy of the newest value of a declared row; `None` where the row does not exist.
    fn copy_to_change(&mut self, slot: Slot) -> Result<Option<Span>, Stop> {
        let before = self.local.writes[slot.write];
        match before {
            PrivateWrite::Value(span) => Ok(Some(span)),
            PrivateWrite::Lines(part) => Ok(Some(self.make_whole(slot.write, part))),
            PrivateWrite::Tombstone => Ok(None),
            _ if slot.id == NO_ENTRY => Ok(None),
            _ => {
                let seen = match before {
                    PrivateWrite::Published => self.see(slot.id, true)?,
                    _ => self.see_declared(slot)?,
                };
                Ok(seen.map(|value| self.keep_value(value)))
            }
        }
    }

    /// Makes a whole private value of one of which only lines were kept.
    #[cold]
    pub(super) fn make_whole(&mut self, write: usize, part: u32) -> Span {
        let PrivatePart { seen, at, lines } = self.local.parts[part as usize];
        let span = self.keep_value(self.phase.bytes(seen));
        let to = span.from as usize + at as usize;
        self.local.scratch.copy_within(lines.range(), to);
        self.local.writes[write] = PrivateWrite::Value(span);
        span
    }
}

/// Appends the lines of a value that hold a part, with the part changed; where in the value these
/// lines begin.
#[inline(always)]
pub(crate) fn change_lines(
    value: &[u8],
    part: Bounds,
    lines: &mut Vec<u8>,
    change: impl FnOnce(&[u8], &mut [u8]),
) -> Result<usize, Stop> {
    let part = part.within(value.len())?;
    let (from, around) = (lines.len(), lines_around(&part, value.len()));
    lines.extend_from_slice(&value[around.clone()]);
    change(value, &mut lines[from + part.start - around.start..][..part.len()]);
    Ok(around.start)
}

/// Changes a part of one of these values in a copy, because `change` sees the whole as it was.
pub(crate) fn change_part(
    bytes: &mut Vec<u8>,
    value: Range<usize>,
    part: Bounds,
    change: impl FnOnce(&[u8], &mut [u8]),
) -> Result<(), Stop> {
    let part = part.within(value.len())?;
    let (copy, at) = (bytes.len(), value.start + part.start);
    bytes.extend_from_within(at..at + part.len());
    let (before, after) = bytes.split_at_mut(copy);
    change(&before[value], after);
    bytes.copy_within(copy.., at);
    bytes.truncate(copy);
    Ok(())
}

/// Which bytes of a value are wanted, before its length is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    start: usize,
    /// [`Bounds::NO_END`] if it goes to the end of the value; an end that is given is smaller. A
    /// word, which costs a call of a body less than an `Option`.
    end: usize,
}

impl Bounds {
    const NO_END: usize = usize::MAX;

    #[inline]
    pub(crate) fn of(part: &impl RangeBounds<usize>) -> Self {
        let start = match part.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        // No value is so long that this makes a difference.
        let given = |end: usize| end.min(Self::NO_END - 1);
        let end = match part.end_bound() {
            Bound::Included(&last) => given(last.saturating_add(1)),
            Bound::Excluded(&end) => given(end),
            Bound::Unbounded => Self::NO_END,
        };
        Self { start, end }
    }

    /// The part of a value of a length, if it has such a part.
    #[inline]
    fn within(self, len: usize) -> Result<Range<usize>, Stop> {
        let part = self.start..if self.end == Self::NO_END { len } else { self.end };
        let is_within = part.start <= part.end && part.end <= len;
        if is_within { Ok(part) } else { Err(no_such_part(&part, len)) }
    }
}

#[cold]
fn no_such_part(part: &Range<usize>, len: usize) -> Stop {
    Stop::mistake(format!("bytes {} to {} of a value of {len} bytes", part.start, part.end))
}
