//! Which declared key, or which member of a declared range, a key of the body is.

use storage::TableId;

use super::{Slot, Stop, Transaction, for_a_piece};
use crate::declaration::{Declared, DeclaredKind, Member, NO_ENTRY, NO_PIECE};
use crate::index::EntryId;
use crate::memory::PrivateWrite;
use crate::table::{KeyWord, Table, order_word, word_of};

impl Transaction<'_> {
    /// Which private write belongs to a row that a scan met.
    pub(super) fn own_write(&self, table: TableId, word: u64, id: EntryId) -> Option<usize> {
        if self.local.writes.is_empty() {
            return None;
        }
        let (declared, members) = (self.call.declared, self.call.members());
        let by_key = declared.iter().position(|d| d.id == id && d.kind != DeclaredKind::Read);
        by_key.or_else(|| {
            let at = members.binary_search(&Member { table, word, id }).ok()?;
            Some(declared.len() + at)
        })
    }

    /// The private write of a declared key.
    #[inline]
    pub(super) fn writable(&mut self, table: TableId, key: &[u8]) -> Result<Slot, Stop> {
        match self.next_slot(table, key) {
            Some(slot) if slot.kind.is_of_body() => Ok(slot),
            _ => self.any_writable(table, key),
        }
    }

    #[inline(never)]
    pub(super) fn any_writable(&mut self, table: TableId, key: &[u8]) -> Result<Slot, Stop> {
        let t = self.core.row_table(table)?;
        let word = t.word(key)?;
        match self.find_slot(t, table, word) {
            Some(slot) if slot.kind.is_of_body() => Ok(slot),
            Some(slot) if slot.kind.is_of_piece() => Err(for_a_piece(t, key)),
            _ => {
                let write = self.without_row(t, table, key)?;
                Ok(Slot { write, id: NO_ENTRY, kind: DeclaredKind::Update })
            }
        }
    }

    /// A key that was not declared for writing. Where no row exists at this position, reading says
    /// so and writing does nothing: then this returns the index of a private write. Any other write
    /// was not predicted (O-67).
    #[cold]
    pub(super) fn without_row(
        &mut self,
        t: &Table,
        table: TableId,
        key: &[u8],
    ) -> Result<usize, Stop> {
        if !self.call.is_in_range(NO_PIECE, table, key) {
            if self.keeps_to_its_set() {
                return Err(super::undeclared(t, key));
            }
            if self.try_get(table, key)?.is_some() {
                return Err(Stop::Deferred);
            }
        }
        let of_set = self.call.declared.len() + self.call.members().len();
        assert!(self.local.writes.len() >= of_set, "declared keys have the first private writes");
        self.local.writes.push(PrivateWrite::None);
        Ok(self.local.writes.len() - 1)
    }

    /// Whether it can no longer be deferred, or its pieces could not: then leaving its write set is
    /// a mistake (O-68).
    pub(super) fn keeps_to_its_set(&self) -> bool {
        self.committed || !self.call.pieces().is_empty()
    }

    /// An insert of a key that was not declared for it.
    #[cold]
    pub(super) fn may_not_insert(&self, table: TableId, key: &[u8]) -> Stop {
        if !self.keeps_to_its_set() {
            return Stop::Deferred;
        }
        let name = &self.core.tables[table.index()].name;
        Stop::mistake(format!(
            "table {name:?}: insert of key {key:02x?}, which was declared for update only"
        ))
    }

    /// What the call declared of a key, if it is the one that comes next, or the one before again,
    /// and keys are words.
    #[inline]
    pub(super) fn next_slot(&mut self, table: TableId, key: &[u8]) -> Option<Slot> {
        let word = word_of(key)?;
        let declared = self.call.declared;
        for write in [self.next_declared, self.next_declared.wrapping_sub(1)] {
            // No key is both declared for writing and the member of a range, but it may be hinted
            // at and a member.
            if let Some(d) = declared.get(write)
                && (d.word == word && d.table == table && d.is_word)
                && (d.kind != DeclaredKind::Read || self.call.extra.members.is_empty())
            {
                self.next_declared = write + 1;
                return Some(Slot { write, id: d.id, kind: d.kind });
            }
        }
        None
    }

    /// What the call declared of a key.
    #[inline(always)]
    pub(super) fn find_slot(
        &mut self,
        t: &Table,
        table: TableId,
        word: KeyWord<'_>,
    ) -> Option<Slot> {
        if let Some(slot) = self.next_slot(table, word.key) {
            return Some(slot);
        }
        if self.local.writes.is_empty() {
            return None;
        }
        self.search_slot(t, table, word).map(|write| self.slot_at(write))
    }

    /// What a private write of the call is for.
    #[inline]
    pub(super) fn slot_at(&self, write: usize) -> Slot {
        let declared = self.call.declared;
        match declared.get(write) {
            Some(d) => Slot { write, id: d.id, kind: d.kind },
            None => {
                let member = self.call.members()[write - declared.len()];
                Slot { write, id: member.id, kind: DeclaredKind::Update }
            }
        }
    }

    /// [`Transaction::find_slot`] where the key is not the next one, nor the one before: the index
    /// of its private write.
    pub(super) fn search_slot(
        &mut self,
        t: &Table,
        table: TableId,
        word: KeyWord<'_>,
    ) -> Option<usize> {
        if let Some(write) = self.find_member(t, table, word.key) {
            return Some(write);
        }
        let declared = self.call.declared;
        let call = self.call;
        let same = |d: &Declared| {
            d.word == word.hash && d.table == table && (t.exact || call.key(d.key) == word.key)
        };
        // Most bodies go on from where they are.
        let (before, after) = declared.split_at(self.next_declared.min(declared.len()));
        let write = match after.iter().position(same) {
            Some(found) => before.len() + found,
            None => before.iter().position(same)?,
        };
        debug_assert!(write < self.local.writes.len(), "a declared key has a private write");
        self.next_declared = write + 1;
        Some(write)
    }

    #[inline]
    pub(super) fn find_member(&mut self, t: &Table, table: TableId, key: &[u8]) -> Option<usize> {
        let members = self.call.members();
        if members.is_empty() || t.ordered.is_none() {
            return None;
        }
        let word = order_word(key);
        if let Some(m) = members.get(self.next_member)
            && (m.word == word && m.table == table && t.exact)
        {
            let write = self.call.declared.len() + self.next_member;
            self.next_member += 1;
            return Some(write);
        }
        let at = self.search_members(members, t, table, key)?;
        self.next_member = at + 1;
        Some(self.call.declared.len() + at)
    }

    /// Which of these members a key is, which are of ordered tables.
    pub(super) fn search_members(
        &self,
        members: &[Member],
        t: &Table,
        table: TableId,
        key: &[u8],
    ) -> Option<usize> {
        let word = order_word(key);
        let before = |m: &Member| (m.table, m.word) < (table, word);
        debug_assert!(members.is_sorted_by_key(|m| (m.table, m.word)), "members are in order");
        let first = members.partition_point(before);
        let reads = &self.local.reads;
        let mut same = members[first..].iter().take_while(|m| (m.table, m.word) == (table, word));
        let at = same.position(|m| t.exact || self.core.key_of(m.id, reads) == key)?;
        Some(first + at)
    }
}
