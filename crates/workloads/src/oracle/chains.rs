//! How far the calls of an epoch depend on one another: the longest chain of calls each of which
//! needs what the one before left. However many cores there are, an engine that runs a call as a
//! whole takes as many steps as the chain has calls.
//!
//! A call needs the call that may have written a row last before it, whether that one wrote it or
//! not: until it has ended it is not known. A row that is only overwritten needs none. Left out, so
//! that a chain is rather too short: rows of a declared range that were not written, and rows that
//! a scan does not meet because they were just deleted.

use std::collections::HashMap;

use crate::api::TableId;
use crate::oracle::declaring::Keys;

/// The chains of one epoch.
pub(super) struct Chains {
    /// For each table and key, the length of the chain that ends in the row's last writer.
    ends: Vec<HashMap<Vec<u8>, u64>>,
    /// The length of the longest chain that the running call continues.
    continued: u64,
    /// The length of the chain that the call which ended last ends.
    call: u64,
    /// The longest of all.
    longest: u64,
}

impl Chains {
    pub(super) fn new(tables: usize) -> Self {
        Self { ends: vec![HashMap::new(); tables], continued: 0, call: 0, longest: 0 }
    }

    /// An epoch begins.
    pub(super) fn clear(&mut self) {
        self.ends.iter_mut().for_each(HashMap::clear);
        (self.continued, self.call, self.longest) = (0, 0, 0);
    }

    /// The running call reads a row.
    pub(super) fn read(&mut self, table: TableId, key: &[u8]) {
        let end = self.ends[usize::from(table.0)].get(key);
        self.continued = self.continued.max(end.copied().unwrap_or(0));
    }

    /// The running call ends, having declared these keys and written those.
    pub(super) fn end<'k>(
        &mut self,
        declared: &Keys,
        written: impl Iterator<Item = (TableId, &'k [u8])>,
    ) {
        let length = std::mem::take(&mut self.continued) + 1;
        self.call = length;
        self.longest = self.longest.max(length);
        for (table, key) in declared.iter() {
            let end = self.ends[usize::from(table.0)].entry(key.to_vec()).or_insert(0);
            *end = length.max(*end);
        }
        for (table, key) in written {
            self.ends[usize::from(table.0)].insert(key.to_vec(), length);
        }
    }

    /// A piece of the call that ended last begins, which needs that call.
    pub(super) fn begin_piece(&mut self) {
        self.continued = self.call;
    }

    /// The running piece needs one whose chain has this length.
    pub(super) fn read_result(&mut self, length: u64) {
        self.continued = self.continued.max(length);
    }

    /// The running piece ends, of which these are the rows; the length of its chain.
    pub(super) fn end_piece<'k>(&mut self, rows: impl Iterator<Item = (TableId, &'k [u8])>) -> u64 {
        let length = std::mem::take(&mut self.continued) + 1;
        self.longest = self.longest.max(length);
        for (table, key) in rows {
            let end = self.ends[usize::from(table.0)].entry(key.to_vec()).or_insert(0);
            *end = length.max(*end);
        }
        length
    }

    /// Calls in the longest chain since the epoch began.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(0);

    /// A call that reads, declares and writes keys of one byte.
    fn call(chains: &mut Chains, read: &[u8], declared: &[u8], written: &[u8]) {
        let mut keys = Keys::default();
        declared.iter().for_each(|key| keys.add(TABLE, std::slice::from_ref(key), false));
        read.iter().for_each(|key| chains.read(TABLE, std::slice::from_ref(key)));
        chains.end(&keys, written.chunks(1).map(|key| (TABLE, key)));
    }

    /// A piece that updates a row.
    fn piece(chains: &mut Chains, key: u8) -> u64 {
        chains.begin_piece();
        chains.read(TABLE, &[key]);
        chains.end_piece(std::iter::once((TABLE, [key].as_slice())))
    }

    #[test]
    fn a_chain_grows_only_where_a_call_needs_another() {
        let mut chains = Chains::new(1);
        (0..5).for_each(|key| call(&mut chains, &[key], &[key], &[key]));
        assert_eq!(chains.longest(), 1, "five rows");
        (0..4).for_each(|_| call(&mut chains, &[7], &[7], &[7]));
        assert_eq!(chains.longest(), 4, "one row");
        call(&mut chains, &[0, 7], &[], &[]);
        assert_eq!(chains.longest(), 5, "a reader of both is behind the longer one");
        chains.clear();
        call(&mut chains, &[7], &[7], &[7]);
        assert_eq!(chains.longest(), 1, "another epoch");
    }

    #[test]
    fn pieces_continue_the_chain_of_their_row_and_of_their_call_only() {
        let mut chains = Chains::new(1);
        for key in 0..10 {
            call(&mut chains, &[], &[key], &[key]);
            piece(&mut chains, 99);
            piece(&mut chains, 98);
        }
        assert_eq!(chains.longest(), 11, "ten pieces behind the first call");
        call(&mut chains, &[99], &[], &[]);
        assert_eq!(chains.longest(), 12, "a reader is behind the last piece");
    }

    #[test]
    fn a_piece_that_asks_for_a_result_is_behind_the_piece_that_came_to_it() {
        let mut chains = Chains::new(1);
        (0..4).for_each(|_| call(&mut chains, &[7], &[7], &[7]));
        call(&mut chains, &[], &[], &[]);
        assert_eq!(piece(&mut chains, 7), 5, "behind the last writer of its row");
        chains.begin_piece();
        assert_eq!(chains.end_piece(std::iter::empty()), 2, "behind its call");
        chains.begin_piece();
        chains.read_result(5);
        assert_eq!(chains.end_piece(std::iter::empty()), 6);
    }

    #[test]
    fn what_is_declared_and_not_written_holds_readers_up_and_a_blind_write_does_not() {
        let mut chains = Chains::new(1);
        (0..3).for_each(|_| call(&mut chains, &[1], &[1], &[1]));
        call(&mut chains, &[], &[1], &[]);
        call(&mut chains, &[1], &[], &[]);
        assert_eq!(chains.longest(), 4, "the row still ends in the third call");
        call(&mut chains, &[], &[1], &[1]);
        call(&mut chains, &[1], &[2], &[2]);
        assert_eq!(chains.longest(), 4, "the reader is the second behind a blind write");
    }
}
