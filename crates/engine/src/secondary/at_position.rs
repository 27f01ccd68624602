//! A secondary index as a call of the parallel part sees it: the index behind the serial part, what
//! calls before it have changed since, and what it has changed itself (O-96).

use std::collections::BTreeMap;
use std::ops::Bound;

use storage::Position;

use super::of_call::OwnChange;
use super::pending::{OfWorker, later};
use super::{CallIndexChanges, SecondaryIndex, SecondaryIndexes, in_order};
use crate::reads::{KeyRange, Visit};

/// Bounds of keys.
type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// What is visited, and by what.
struct Walk<'w> {
    bounds: Bounds<'w>,
    is_descending: bool,
    position: Position,
    own: Option<&'w BTreeMap<Box<[u8]>, OwnChange>>,
}

impl SecondaryIndexes {
    /// Visits the rows that an index has with `low <= key < high` for the call at a position, which
    /// has made changes itself: the key there, and the row's. All calls before it that may change
    /// an index have ended.
    ///
    /// # Errors
    /// If there is no such index.
    pub(crate) fn scan_at(
        &self,
        number: u16,
        keys: KeyRange<'_>,
        position: Position,
        own: &CallIndexChanges,
        each: Visit<'_>,
    ) -> Result<(), String> {
        let KeyRange { low, high, is_descending } = keys;
        let index = self.get(number)?.read().expect("no panic while locked");
        if low >= high {
            return Ok(());
        }
        let pending = self.pending.of_index(number);
        let own = own.of(number);
        let bounds = (Bound::Included(low), Bound::Excluded(high));
        let walk = Walk { bounds, is_descending, position, own };
        index.walk(&walk, &pending, |key, prefix| {
            each(key, &key[usize::from(prefix)..]).is_continue()
        });
        Ok(())
    }
}

impl SecondaryIndex {
    /// How many rows the call at a position sees with a key, at most two.
    pub(super) fn rows_like_at(
        &self,
        prefix: &[u8],
        pending: &[impl std::ops::Deref<Target = OfWorker>],
        position: Position,
        own: Option<&BTreeMap<Box<[u8]>, OwnChange>>,
    ) -> usize {
        let bounds = (Bound::Included(prefix), Bound::Unbounded);
        let is_like = |key: &[u8]| key.starts_with(prefix);
        let mut entries = self.entries.range::<[u8], _>(bounds);
        let is_in_index = entries.next().is_some_and(|(key, _)| is_like(key));
        let mut pending_like = pending.iter().filter(|changes| {
            changes.range::<[u8], _>(bounds).next().is_some_and(|(key, _)| is_like(key))
        });
        if !is_in_index && pending_like.next().is_none() {
            // As it mostly is: no other call has, or had, a row with this key.
            let own = own.iter().flat_map(|own| own.range::<[u8], _>(bounds));
            let own = own.take_while(|(key, _)| is_like(key));
            return own.filter(|(_, change)| change.is_there).take(2).count();
        }
        let walk = Walk { bounds, is_descending: false, position, own };
        let mut rows = 0;
        self.walk(&walk, pending, |key, _| {
            rows += usize::from(is_like(key));
            is_like(key) && rows < 2
        });
        rows
    }

    /// Goes through the entries in order, until `each` returns false.
    fn walk(
        &self,
        walk: &Walk<'_>,
        pending: &[impl std::ops::Deref<Target = OfWorker>],
        mut each: impl FnMut(&[u8], u16) -> bool,
    ) {
        let &Walk { bounds, is_descending, position, own } = walk;
        let mut entries = in_order(self.entries.range::<[u8], _>(bounds), is_descending);
        let of_worker = |c| in_order(OfWorker::range::<[u8], _>(c, bounds), is_descending);
        let mut pending: Vec<_> = pending.iter().map(|changes| of_worker(&**changes)).collect();
        let mut own = own.map(|own| in_order(own.range::<[u8], _>(bounds), is_descending));
        loop {
            let heads = entries.peek().map(|head| head.0);
            let heads =
                heads.into_iter().chain(pending.iter_mut().filter_map(|p| Some(p.peek()?.0)));
            let heads = heads.chain(own.as_mut().and_then(|own| Some(own.peek()?.0)));
            let Some(key) = (if is_descending { heads.max() } else { heads.min() }) else { return };
            let mut seen = entries.next_if(|head| head.0 == key).map(|head| head.1.prefix);
            let mut last = None;
            for changes in &mut pending {
                if let Some((_, changes)) = changes.next_if(|head| head.0 == key) {
                    last = later(last, changes.before(position));
                }
            }
            if let Some(last) = last {
                seen = last.is_added.then_some(last.prefix);
            }
            let of_call = own.as_mut().and_then(|own| own.next_if(|head| head.0 == key));
            if let Some((_, change)) = of_call {
                seen = change.is_there.then_some(change.prefix);
            }
            if let Some(prefix) = seen
                && !each(key, prefix)
            {
                return;
            }
        }
    }
}
