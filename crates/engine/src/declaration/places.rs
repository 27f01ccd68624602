//! Where a key is among those that a call has declared.

use std::collections::BTreeSet;

use storage::TableId;

use crate::declaration::Declared;

/// The most keys of a call that are compared one after the other.
const COMPARED_MAX: usize = 128;

/// The places of a call's declared keys, by table and word; empty until there are many.
#[derive(Debug, Default)]
pub(crate) struct Places {
    by_word: BTreeSet<(TableId, u64, u32)>,
    /// How many keys are in it: the call's first ones.
    count: usize,
}

impl Places {
    /// The first of the call's `declared` keys that has the `table`, the `word`, and is the `same`.
    pub(crate) fn find(
        &mut self,
        declared: &[Declared],
        table: TableId,
        word: u64,
        mut same: impl FnMut(&Declared) -> bool,
    ) -> Option<usize> {
        if declared.len() <= COMPARED_MAX {
            return declared.iter().position(|d| d.word == word && d.table == table && same(d));
        }
        self.add_new(declared);
        let places = self.by_word.range((table, word, 0)..=(table, word, u32::MAX));
        places.map(|(_, _, at)| *at as usize).find(|at| same(&declared[*at]))
    }

    /// Adds the keys that came since the last time.
    fn add_new(&mut self, declared: &[Declared]) {
        for (at, d) in declared.iter().enumerate().skip(self.count) {
            self.by_word.insert((d.table, d.word, at as u32));
        }
        self.count = declared.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::{DeclaredKind, NO_ENTRY, Span};

    fn key(table: u16, word: u64) -> Declared {
        Declared {
            word,
            key: Span::EMPTY,
            table: TableId(table),
            kind: DeclaredKind::Insert,
            is_word: true,
            appended: false,
            id: NO_ENTRY,
        }
    }

    /// Each key of a large call is compared with those of its own word only.
    #[test]
    fn a_key_is_compared_with_those_of_its_word() {
        let (mut places, mut declared, mut compared) = (Places::default(), Vec::new(), 0);
        for i in 0..20_000_u64 {
            let (table, word) = ((i % 2) as u16, i / 4);
            let found = places.find(&declared, TableId(table), word, |_| {
                compared += 1;
                false
            });
            assert_eq!(found, None);
            declared.push(key(table, word));
        }
        // Two keys have the same table and word; the first 128 are few enough to be compared.
        assert_eq!(compared, 20_000 / 2);
    }

    /// The place is that of the first key that is the same, however many keys there are.
    #[test]
    fn the_first_place_is_found() {
        for keys in [1, COMPARED_MAX, COMPARED_MAX + 1, 1_000] {
            let (mut places, mut declared) = (Places::default(), Vec::new());
            for at in 0..keys {
                declared.push(key(0, at as u64 % 100));
                let first = places.find(&declared, TableId(0), at as u64 % 100, |_| true);
                assert_eq!(first, Some(at % 100));
                assert_eq!(places.find(&declared, TableId(1), at as u64, |_| true), None);
            }
        }
    }
}
