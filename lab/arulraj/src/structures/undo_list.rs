//! What undoes the running transaction of an engine whose trees and tuples are volatile: a list in
//! memory. What a change replaces is kept until the transaction ends.

use pmem::Device;

use super::btree::BTree;
use super::tuple::{WordChange, slots_of, store_changes};
use super::undo::Undo;
use crate::Result;
use crate::ground::Nvm;
use crate::schema::Table;

/// The list, the oldest change first.
#[derive(Debug, Default)]
pub(crate) struct UndoList(Vec<Undo>);

impl UndoList {
    /// A change was made that this undoes.
    pub(crate) fn push(&mut self, undo: Undo) {
        self.0.push(undo);
    }

    /// Changes words.
    pub(crate) fn change_words<D: Device>(&mut self, nvm: &mut Nvm<D>, words: Vec<WordChange>) {
        store_changes(nvm, words.iter().map(WordChange::after), false);
        nvm.written.memory += words.len() as u64 * 8;
        self.push(Undo::Changed(words));
    }

    /// The changes stay: what they replaced is free.
    pub(crate) fn keep<D: Device>(&mut self, nvm: &mut Nvm<D>, tables: &[Table]) {
        for undo in self.0.drain(..) {
            match undo {
                Undo::Linked { .. } => {}
                Undo::Unlinked { table, tuple, .. } => {
                    let slots = slots_of(nvm, &tables[table], tuple);
                    nvm.recycle_all(slots);
                }
                Undo::Changed(words) => {
                    nvm.recycle_all(words.iter().filter_map(WordChange::old_slot));
                }
            }
        }
    }

    /// Undoes the changes, the newest first: what they made is free.
    pub(crate) fn undo<D: Device>(
        &mut self,
        nvm: &mut Nvm<D>,
        tables: &[Table],
        trees: &[BTree],
    ) -> Result<()> {
        while let Some(undo) = self.0.pop() {
            match undo {
                Undo::Linked { table, key, tuple } => {
                    trees[table].remove(nvm, &key);
                    let slots = slots_of(nvm, &tables[table], tuple);
                    nvm.recycle_all(slots);
                }
                Undo::Unlinked { table, key, tuple } => {
                    trees[table].insert(nvm, &key, tuple)?;
                }
                Undo::Changed(words) => {
                    store_changes(nvm, words.iter().map(WordChange::before), false);
                    nvm.recycle_all(words.iter().filter_map(WordChange::new_slot));
                }
            }
        }
        Ok(())
    }
}
