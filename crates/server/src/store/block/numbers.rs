//! Numbers of sequences for blocks: clients are told them before COMMIT, so a call of their own
//! takes them.

use super::super::call::Call;
use super::super::failure;
use super::super::shared::Shared;
use nvcaracal::Part;
use sql::ir::ObjectId;
use std::collections::{BTreeMap, VecDeque};
use values::{Error, Result};

/// How many numbers are allocated at once where so many were before, or where none is seen.
const AT_ONCE: u32 = 32;
/// So many are allocated as they are needed, so that short blocks leave no holes.
const ONE_BY_ONE: u32 = 16;

/// The numbers of one sequence.
#[derive(Default)]
struct OfSequence {
    left: VecDeque<u64>,
    /// How many the block was given.
    given: u32,
    /// Whether they are of a key that no client sees, and stay for later blocks.
    is_hidden: bool,
}

/// Numbers that were allocated and not yet given.
#[derive(Default)]
pub(in super::super) struct Stock {
    of: BTreeMap<ObjectId, OfSequence>,
    /// How many were given of sequences that the block has made itself.
    made: BTreeMap<ObjectId, u32>,
    /// How many of these the store has counted.
    counted: BTreeMap<ObjectId, u32>,
}

impl Stock {
    /// The number that comes after so many others.
    pub(super) fn peek(&self, sequence: ObjectId, after: usize) -> Option<u64> {
        self.of.get(&sequence)?.left.get(after).copied()
    }

    /// Gives so many of each sequence.
    pub(super) fn give(
        &mut self,
        wanted: &BTreeMap<ObjectId, usize>,
    ) -> BTreeMap<ObjectId, Vec<u64>> {
        let mut all = BTreeMap::new();
        for (id, count) in wanted {
            let own = self.of.entry(*id).or_default();
            assert!(*count <= own.left.len(), "a statement without its numbers runs again");
            own.given = own.given.saturating_add(*count as u32);
            all.insert(*id, own.left.drain(..*count).collect());
        }
        all
    }

    /// What later blocks get: the rest are holes.
    pub(in super::super) fn end_of_block(mut self) -> Stock {
        self.made.clear();
        self.counted.clear();
        self.of.retain(|_, own| own.is_hidden && !own.left.is_empty());
        self
    }

    /// How many numbers the block took of sequences that it has made, and the store has to count.
    pub(super) fn made(&self) -> BTreeMap<ObjectId, u32> {
        let counted = |id| self.counted.get(id).copied().unwrap_or_default();
        self.made.iter().map(|(id, made)| (*id, made - counted(id))).collect()
    }

    /// Rows of a COPY got the first numbers of a sequence that the block has made.
    pub(super) fn count(&mut self, id: ObjectId, count: u32) {
        self.made.insert(id, count);
        self.counted.insert(id, count);
    }

    /// Takes what a statement needs of each sequence, all in all. Nothing counts yet for sequences
    /// that the block has made, whose ids begin at `made`: they begin at 0.
    pub(super) async fn fill(
        &mut self,
        wanted: &BTreeMap<ObjectId, usize>,
        made: Option<ObjectId>,
        shared: &Shared,
    ) -> Result<()> {
        for (id, count) in wanted {
            let own = self.of.entry(*id).or_default();
            let Some(more) = count.checked_sub(own.left.len()).filter(|more| *more > 0) else {
                continue;
            };
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            if made.is_some_and(|made| *id >= made) {
                let given = self.made.entry(*id).or_default();
                let end = given.saturating_add(more);
                own.left.extend((*given..end).map(u64::from));
                *given = end;
                continue;
            }
            own.is_hidden = shared.is_hidden(*id);
            let is_short = !own.is_hidden && own.given < ONE_BY_ONE;
            let count = if is_short { more } else { more.max(AT_ONCE) };
            let numbers = shared.reserve_numbers(*id, count).await?;
            assert!(numbers.len() == count as usize, "a call allocates as many as it is asked for");
            own.left.extend(numbers);
        }
        Ok(())
    }
}

impl Shared {
    /// Whether a sequence counts rows of a table without a key.
    fn is_hidden(&self, id: ObjectId) -> bool {
        self.catalog().tables().any(|table| {
            let columns = table.relation.columns.iter().zip(&table.columns);
            columns
                .into_iter()
                .any(|(column, info)| column.is_hidden() && info.sequence == Some(id))
        })
    }

    async fn reserve_numbers(&self, id: ObjectId, count: u32) -> Result<Vec<u64>> {
        let call = Call::Reserve(id, count).encode();
        let submitter = self.database.in_part(Part::Parallel);
        let called = submitter.submit_raw_async(self.procedure, &call).await;
        let answer = match called {
            Ok(ticket) => ticket.await,
            Err(error) => Err(error),
        };
        let bytes = answer.map_err(|error| failure::of_call(&error))?;
        postcard::from_bytes(&bytes).map_err(|_| Error::corrupted("answer of a call is damaged"))
    }
}
