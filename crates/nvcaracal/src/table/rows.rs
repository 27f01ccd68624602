//! Rows of an ordered table one after the other, read in parts that grow.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use storage::TableId;

use crate::data::stored;
use crate::data::value::Data;
use crate::error::Error;
use crate::key::bytes::Key;
use crate::table::handle::Shape;
use crate::table::range::{Bytes, LAST_WORD};

/// A part holds at most so many bytes, but for its last row.
const PART_BYTES_MAX: usize = 256 << 10;
/// A part holds so many times the rows of the one before ...
const GROWTH: usize = 4;

/// Where rows are read.
pub(crate) trait Source {
    type Error;

    /// Rows of the first part, and the most of any.
    fn sizes(&self, of: Of) -> (usize, usize);

    /// The next rows of a range, from either end.
    fn part(
        &mut self,
        of: Of,
        range: &Bytes,
        is_descending: bool,
        rows_max: usize,
    ) -> Result<RowPage, Self::Error>;

    /// One row of a table.
    fn value(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// A mistake of who reads.
    fn mistake(&mut self, what: String) -> Self::Error;
}

/// By which keys rows are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of {
    /// By their own, of a table of this number.
    Table(TableId),
    /// By those that an index of this number has for them.
    Index(u16),
}

/// Rows that are asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) of: Of,
    /// Their table.
    pub(crate) shape: Shape,
    pub(crate) range: Bytes,
}

/// Where a row lies among the bytes of its part.
#[derive(Debug, Clone, Copy)]
struct RowPlace {
    start: usize,
    key_end: usize,
    end: usize,
}

/// Rows as bytes.
#[derive(Debug, Default)]
pub(crate) struct RowPage {
    bytes: Vec<u8>,
    rows: Vec<RowPlace>,
    /// The first row that was not visited.
    next: usize,
    /// Behind which key there may be more.
    pub(crate) last: Option<Vec<u8>>,
}

impl RowPage {
    /// Reads a part of a table.
    pub(crate) fn of_table<E>(
        rows_max: usize,
        scan: impl FnOnce(engine::Visit<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (mut part, mut is_full) = (Self::default(), false);
        scan(&mut |key, value| {
            is_full = part.push(key, value, rows_max);
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        part.last = is_full.then(|| part.last_key()).flatten();
        Ok(part)
    }

    /// Adds a row that an index led to, if it is still there.
    pub(crate) fn add_found(&mut self, key: &[u8], value: Option<&[u8]>) {
        if let Some(value) = value {
            self.push(key, value, usize::MAX);
        }
    }

    /// Adds a row; whether that is enough.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8], rows_max: usize) -> bool {
        assert!(self.rows.len() < rows_max, "a row comes after there were enough");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let key_end = start + key.len();
        self.rows.push(RowPlace { start, key_end, end: self.bytes.len() });
        self.rows.len() >= rows_max || self.bytes.len() >= PART_BYTES_MAX
    }

    /// The key of the row that was added last.
    fn last_key(&self) -> Option<Vec<u8>> {
        let row = self.rows.last()?;
        Some(self.bytes[row.start..row.key_end].to_vec())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.rows.len()
    }

    fn row(&self, at: RowPlace) -> (&[u8], &[u8]) {
        (&self.bytes[at.start..at.key_end], &self.bytes[at.key_end..at.end])
    }

    pub(crate) fn take_first(&mut self) -> Option<(&[u8], &[u8])> {
        let row = *self.rows.get(self.next)?;
        self.next += 1;
        Some(self.row(row))
    }

    fn take_last(&mut self) -> Option<(&[u8], &[u8])> {
        if self.is_empty() {
            return None;
        }
        let row = self.rows.pop()?;
        Some(self.row(row))
    }
}

/// Keys of rows that an index led to.
pub(crate) struct FoundKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    rows_max: usize,
    /// The entry behind which there may be more.
    pub(crate) last: Option<Vec<u8>>,
}

impl FoundKeys {
    pub(crate) fn new(rows_max: usize) -> Self {
        Self { bytes: Vec::new(), ends: vec![0], rows_max, last: None }
    }

    /// Adds the key of a row by its entry.
    pub(crate) fn add(&mut self, entry: &[u8], key: &[u8]) -> ControlFlow<()> {
        assert!(self.last.is_none(), "an entry comes after there were enough");
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        if self.ends.len() <= self.rows_max {
            return ControlFlow::Continue(());
        }
        self.last = Some(entry.to_vec());
        ControlFlow::Break(())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.windows(2).map(|ends| &self.bytes[ends[0]..ends[1]])
    }
}

/// The rows of an ordered table in a range, in the order of their keys, from both ends.
///
/// Made by [`Snapshot::range`](crate::Snapshot::range) and
/// [`Transaction::range`](crate::Transaction::range). Rows are read as they are asked for, few at
/// first: stop early, or `take` a number of them, and the rest costs nothing.
pub struct Rows<'a, K: ?Sized, V, E = Error> {
    source: Box<dyn Source<Error = E> + 'a>,
    /// What was not read yet; or the one error that there is instead.
    rest: Result<Wanted, Option<E>>,
    rows_max: usize,
    front: RowPage,
    /// Descending.
    back: RowPage,
    types: PhantomData<fn(&K) -> V>,
}

impl<'a, K: Key + ?Sized, V: Data, E> Rows<'a, K, V, E> {
    /// What is wanted of a source, or the one error that there is instead.
    pub(crate) fn new<S: Source<Error = E> + 'a>(source: S, wanted: Result<Wanted, E>) -> Self {
        let rows_max = wanted.as_ref().map_or(0, |wanted| source.sizes(wanted.of).0);
        Self {
            source: Box::new(source),
            rest: wanted.map_err(Some),
            rows_max,
            front: RowPage::default(),
            back: RowPage::default(),
            types: PhantomData,
        }
    }

    /// Reads the next part from one end; false if there is nothing left.
    fn read(&mut self, is_descending: bool) -> Result<bool, E> {
        let Ok(Wanted { of, range, .. }) = &mut self.rest else { return Ok(false) };
        if range.low >= range.high {
            return Ok(false);
        }
        let mut part = self.source.part(*of, range, is_descending, self.rows_max)?;
        self.rows_max = self.source.sizes(*of).1.min(self.rows_max * GROWTH);
        let last = part.last.take();
        // Otherwise the rows would never end, or some come twice.
        let is_within = |last: &Vec<u8>| (&range.low..&range.high).contains(&last);
        assert!(last.as_ref().is_none_or(is_within), "the part ends outside of its range");
        if is_descending {
            range.go_on_before(last);
            self.back = part;
        } else {
            range.go_on_after(last);
            self.front = part;
        }
        Ok(true)
    }

    /// The greatest key of all, which is no part of any.
    fn read_last(&mut self) -> Result<Option<Vec<u8>>, E> {
        let Ok(Wanted { of: Of::Table(table), range, .. }) = &mut self.rest else {
            return Ok(None);
        };
        match std::mem::take(&mut range.and_last) {
            true => self.source.value(*table, &LAST_WORD),
            false => Ok(None),
        }
    }

    fn advance(&mut self, is_descending: bool) -> Option<Result<(K::Owned, V), E>> {
        let shape = match &mut self.rest {
            Ok(wanted) => wanted.shape,
            Err(error) => return error.take().map(Err),
        };
        let typed = self.next_bytes(is_descending, |key, value| row::<K, V>(&shape, key, value));
        match typed {
            Ok(None) => None,
            Ok(Some(Ok(row))) => Some(Ok(row)),
            Ok(Some(Err(what))) => self.fail(|source| source.mistake(what)),
            Err(error) => self.fail(|_| error),
        }
    }

    /// Nothing follows an error.
    fn fail(
        &mut self,
        error: impl FnOnce(&mut dyn Source<Error = E>) -> E,
    ) -> Option<Result<(K::Owned, V), E>> {
        self.rest = Err(None);
        Some(Err(error(&mut *self.source)))
    }

    fn next_bytes<R>(
        &mut self,
        is_descending: bool,
        then: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>, E> {
        let mine = |rows: &mut Self| match is_descending {
            true => rows.back.is_empty(),
            false => rows.front.is_empty(),
        };
        // The greatest key comes first from behind.
        if is_descending && let Some(value) = self.read_last()? {
            return Ok(Some(then(&LAST_WORD, &value)));
        }
        while mine(self) && self.read(is_descending)? {}
        let (mine, other) = match is_descending {
            true => (&mut self.back, &mut self.front),
            false => (&mut self.front, &mut self.back),
        };
        if let Some((key, value)) = mine.take_first().or_else(|| other.take_last()) {
            return Ok(Some(then(key, value)));
        }
        Ok(self.read_last()?.map(|value| then(&LAST_WORD, &value)))
    }
}

impl<K: Key + ?Sized, V: Data, E> Iterator for Rows<'_, K, V, E> {
    type Item = Result<(K::Owned, V), E>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance(false)
    }
}

impl<K: Key + ?Sized, V: Data, E> DoubleEndedIterator for Rows<'_, K, V, E> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.advance(true)
    }
}

impl<K: Key + ?Sized, V: Data, E> FusedIterator for Rows<'_, K, V, E> {}

impl<K: ?Sized, V, E> fmt::Debug for Rows<'_, K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("rest", &self.rest.as_ref().ok()).finish_non_exhaustive()
    }
}

#[cold]
pub(crate) fn undecodable<T>(shape: &Shape, what: &str) -> String {
    let kind = std::any::type_name::<T>();
    format!("{shape}: the {what} of a row is no {kind}: it was written with another type")
}

/// A row with its types.
pub(crate) fn row<K: Key + ?Sized, V: Data>(
    shape: &Shape,
    key: &[u8],
    value: &[u8],
) -> Result<(K::Owned, V), String> {
    let key = K::from_key(key).ok_or_else(|| undecodable::<K::Owned>(shape, "key"))?;
    let value = stored::read::<V>(value).ok_or_else(|| undecodable::<V>(shape, "value"))?;
    Ok((key, value))
}
