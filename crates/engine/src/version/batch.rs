//! Batch append (CA 3.3, 4.1): the version array of a row that several calls write is made once, by
//! one worker, from all its appends.
//!
//! The worker goes through its rows' appends in serial order and links those of a row, newest
//! first; the row's entry holds the newest link and how many there are, in the word that holds the
//! value where there is one version only. Then it makes each array, of the size that is needed, and
//! fills it from the end. No element moves, and nothing is sorted but the claim's position, which
//! may be anywhere.

use storage::Position;

use super::array::VersionArray;
use super::entry::Chain;
use super::{AppendedBy, EntrySlab, TransientPool};
use crate::index::EntryId;
use crate::stats::WorkCounts;

/// Appends of one worker, by the worker that makes the arrays; each buffer in serial order.
pub(crate) type Buffers = Vec<Vec<Appended>>;

/// An append to a row that was claimed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) position: Position,
    pub(crate) id: EntryId,
}

/// One append of a row, and the one before it.
#[derive(Debug, Clone, Copy)]
struct Link {
    position: Position,
    /// Index of the one before; any index where there is none.
    before: u32,
}

/// Rows whose entries are prefetched.
const AHEAD: usize = 8;

/// The appends to the rows of which one worker makes the arrays.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    links: Vec<Link>,
    /// Rows with a chain.
    rows: Vec<EntryId>,
}

impl Chains {
    /// Adds the next append, in serial order.
    ///
    /// # Panics
    /// If the worker has 2^32 appends.
    #[inline]
    pub(crate) fn add(&mut self, entries: &EntrySlab, append: Appended) {
        let entry = entries.get(append.id);
        let chain = entry.chain();
        if chain.len == 0 {
            self.rows.push(append.id);
        }
        debug_assert!(
            chain.len == 0 || self.links[chain.newest as usize].position < append.position,
            "appends of a row in serial order"
        );
        let newest = u32::try_from(self.links.len()).expect("fewer than 2^32 appends");
        self.links.push(Link { position: append.position, before: chain.newest });
        entry.set_chain(Chain { len: chain.len + 1, newest });
    }

    /// Whether no append waits for its array.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.rows.is_empty()
    }

    /// Makes the arrays of all rows that were added, and forgets them. A caller that asks which
    /// rows have several writers gets them in `contended`.
    pub(crate) fn build(
        &mut self,
        entries: &EntrySlab,
        by: AppendedBy,
        pool: &mut TransientPool,
        work: &mut WorkCounts,
        contended: Option<&mut Vec<EntryId>>,
    ) {
        if let Some(contended) = contended {
            contended.extend_from_slice(&self.rows);
        }
        for (index, &id) in self.rows.iter().enumerate() {
            if let Some(&ahead) = self.rows.get(index + AHEAD) {
                entries.prefetch(ahead);
            }
            let entry = entries.get(id);
            let chain = entry.chain();
            let claimed = entry.claimed();
            debug_assert!(chain.len > 0, "a row that is listed has appends behind its claim");
            let array = if chain.len == 1 {
                // Most arrays have two versions.
                let other = self.links[chain.newest as usize].position;
                VersionArray::new(pool, claimed.min(other), claimed.max(other))
            } else {
                let fill =
                    |positions: &mut [Position]| fill(positions, &self.links, chain, claimed);
                VersionArray::exactly(pool, chain.len as usize + 1, fill)
            };
            work.locks_handed_over += u64::from(entry.set_array(by, array));
        }
        work.version_arrays += self.rows.len() as u64;
        self.links.clear();
        self.rows.clear();
    }
}

/// Writes the positions of a row from the last to the first: those of its chain, and the one that
/// claimed it where that belongs.
fn fill(positions: &mut [Position], links: &[Link], chain: Chain, claimed: Position) {
    assert!(positions.len() == chain.len as usize + 1, "those of the chain, and the claim's");
    let (mut link, mut after) = (links[chain.newest as usize], positions.len() - 1);
    while after > 0 && link.position > claimed {
        positions[after] = link.position;
        after -= 1;
        link = links[link.before as usize];
    }
    positions[after] = claimed;
    for place in positions[..after].iter_mut().rev() {
        *place = link.position;
        link = links[link.before as usize];
    }
}

#[cfg(test)]
mod tests {
    use pmem::sync::atomic::Ordering;
    use storage::{EpochNumber, SerialId};

    use super::super::entry::Versions;
    use super::super::{Claimed, KeepPersistent, RowPlace, ValueWord};
    use super::*;
    use crate::worker_id::WorkerId;

    const EPOCH: u64 = 9;

    /// Rows that the first of their positions, in the order given, claims.
    fn build(rows: &[&[u32]]) -> (EntrySlab, Vec<EntryId>, [TransientPool; 2], WorkCounts) {
        let (slab, ids) = EntrySlab::of_rows(rows.len() as u64);
        let mut pools = [0, 1].map(|worker| TransientPool::new(WorkerId(worker)).unwrap());
        let mut appends = Vec::new();
        for (&id, positions) in ids.iter().zip(rows) {
            let entry = slab.get(id);
            entry.initialise(RowPlace::of_two(0), ValueWord::PENDING, SerialId(0));
            entry.set_same_parts(0xf00f);
            for (index, &position) in positions.iter().enumerate() {
                let sid = SerialId::new(EpochNumber(EPOCH), Position(position));
                let by = AppendedBy::new(WorkerId(1), EpochNumber(EPOCH));
                match entry.claim(sid, by, &mut pools[1], &mut KeepPersistent) {
                    Ok(()) => assert_eq!(index, 0),
                    Err(claimed) => {
                        assert_eq!(claimed, Claimed { by_other: false });
                        appends.push(Appended { position: Position(position), id });
                    }
                }
            }
        }
        appends.sort_unstable_by_key(|append| append.position);
        let mut chains = Chains::default();
        appends.iter().for_each(|&append| chains.add(&slab, append));
        let mut work = WorkCounts::default();
        chains.build(
            &slab,
            AppendedBy::new(WorkerId(0), EpochNumber(EPOCH)),
            &mut pools[0],
            &mut work,
            None,
        );
        assert!(chains.links.is_empty() && chains.rows.is_empty(), "nothing stays");
        (slab, ids, pools, work)
    }

    #[test]
    fn an_array_has_all_positions_in_order_wherever_its_claim_is() {
        let orders: [&[u32]; 6] =
            [&[5, 9], &[9, 5], &[7, 1, 2, 3], &[3, 1, 2, 900, 7], &[1, 4, 3, 2], &[8]];
        let long: Vec<u32> = (0..5000).map(|i| (i * 2_654_435_761u64 % 5003) as u32).collect();
        let rows: Vec<&[u32]> = orders.into_iter().chain([&long[..]]).collect();
        let (slab, ids, pools, work) = build(&rows);
        for (&id, positions) in ids.iter().zip(&rows) {
            let mut sorted = positions.to_vec();
            sorted.sort_unstable();
            let sorted: Vec<Position> = sorted.into_iter().map(Position).collect();
            assert_eq!(
                slab.get(id).same_parts(),
                0xf00f,
                "the row keeps what else its state holds"
            );
            match slab.get(id).versions(EpochNumber(EPOCH)) {
                Versions::Array(array) => {
                    assert_eq!(array.sorted(), sorted);
                    assert!(pools[0].holds(array.word() as usize), "its maker's memory");
                    for index in 0..array.len() {
                        let cell = array.cell(index).load(Ordering::Relaxed);
                        assert_eq!(ValueWord(cell), ValueWord::PENDING);
                    }
                }
                Versions::Single(sid, cell) => {
                    assert_eq!(
                        (sid, sorted.len()),
                        (SerialId::new(EpochNumber(EPOCH), Position(8)), 1)
                    );
                    assert_eq!(ValueWord(cell.load(Ordering::Relaxed)), ValueWord::PENDING);
                }
                Versions::None => panic!("it has writers"),
            }
        }
        assert_eq!((work.version_arrays, work.locks_handed_over, work.insertion_moves), (6, 6, 0));
    }

    /// O-16: what is linked to a row in one epoch means nothing in the next one.
    #[test]
    fn o_16_a_row_begins_every_epoch_without_a_chain() {
        let (slab, ids, mut pools, _) = build(&[&[1, 2, 3], &[4]]);
        for (&id, value) in ids.iter().zip([u64::MAX, 77 << 32]) {
            let entry = slab.get(id);
            entry.set_chain(Chain::from_word(value));
            let sid = SerialId::new(EpochNumber(EPOCH + 1), Position(6));
            let by = AppendedBy::new(WorkerId(0), EpochNumber(EPOCH + 1));
            entry.claim(sid, by, &mut pools[0], &mut KeepPersistent).unwrap();
            assert_eq!(entry.chain(), Chain::default());
            let versions = entry.versions(EpochNumber(EPOCH + 1));
            assert!(matches!(versions, Versions::Single(first, _) if first == sid));
        }
    }
}
