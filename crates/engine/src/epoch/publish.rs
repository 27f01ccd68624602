//! Publishing what bodies and pieces wrote, with the device at hand: as value, tombstone or IGNORE
//! (O-03).

use pmem::sync::RwLockReadGuard;
use storage::{ALL_LINES, NewValue, Position, SerialId, TableId};

use crate::declaration::overlay::{Now, Overlay};
use crate::declaration::{
    CallView, Declarations, Declared, Member, NO_ENTRY, PieceResult, PieceState,
};
use crate::index::EntryId;
use crate::memory::{Local, PieceWrite, PieceWrites, PrivatePart, PrivateWrite, QueuedPiece};
use crate::state::core::Core;
use crate::stats::WorkCounts;
use crate::transaction::{PublishNow, Stop};
use crate::version::{
    CachePool, NO_PLACE, Publication, Publisher, ReadPhase, RowStore, Stopped, TransientPool,
    ValueWord, Waiter, Write,
};
use crate::worker::Epoch;

/// Whether a call publishes IGNORE for any of its rows.
fn leaves_untouched(call: &CallView<'_>, writes: &[PrivateWrite], mode: Mode) -> bool {
    let of_body = call.declared.iter().map(|d| d.kind.is_of_body());
    let mut of_body = of_body.chain(call.members().iter().map(|_| true));
    let untouched = |write| matches!(write, PrivateWrite::None | PrivateWrite::Seen);
    match mode {
        Mode::Written => false,
        Mode::Abort => of_body.any(|of_body| of_body),
        Mode::Commit => of_body.zip(writes).any(|(of_body, &write)| of_body && untouched(write)),
    }
}

/// Which of a call's declared writes are published, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// All: what is not written becomes IGNORE.
    Commit,
    /// All, as IGNORE.
    Abort,
    /// Only what is written (commit point).
    Written,
}

/// Runs calls and pieces, and publishes with the device at hand.
pub(super) struct Runner<'r, 'e> {
    pub(super) epoch: &'r Epoch<'e>,
    /// What the calls of each worker declared.
    pub(super) lists: &'r [RwLockReadGuard<'r, Declarations>],
    /// What the calls of the serial part wrote.
    pub(super) overlay: &'r Overlay,
    pub(super) row_store: &'r mut RowStore,
}

impl PublishNow for Runner<'_, '_> {
    fn publish_written(&mut self, local: &mut Local, call: &CallView<'_>) -> Result<(), Stopped> {
        self.publish(local, call, Mode::Written)?;
        call.pieces().iter().filter(|piece| piece.is_split).for_each(|piece| piece.decide(true));
        Ok(())
    }

    fn run_pieces_before(
        &mut self,
        local: &mut Local,
        position: Position,
    ) -> Result<bool, Stopped> {
        self.run_ready_pieces(local, QueuedPiece::first_of(position))
    }

    fn wait_for_index_writers(
        &mut self,
        local: &mut Local,
        position: Position,
    ) -> Result<bool, Stopped> {
        let lists = self.lists;
        let mut are_some = false;
        for writers in lists.iter().map(|lists| &lists.index_writers) {
            are_some |= !writers.is_empty();
            while let Some(writer) = writers.unended_before(position) {
                let mut waiter = Waiter::new(self.epoch.core.stopped());
                let has_ended = || writer.has_ended().then_some(());
                let end = QueuedPiece::first_of(position);
                waiter.until(has_ended, || self.run_ready_pieces(local, end))?;
                local.work.waits += 1;
            }
        }
        Ok(are_some)
    }

    fn piece_result(
        &mut self,
        local: &mut Local,
        _: Option<&mut Overlay>,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stop> {
        Ok(self.come_to_piece(local, call, number)?)
    }

    fn earlier_result(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stopped> {
        self.wait_for_piece(local, call, number)
    }
}

/// What publishing touches besides the device, of these parts of a worker.
fn publisher<'w>(
    epoch: &Epoch<'w>,
    pool: &'w mut TransientPool,
    cache: &'w mut CachePool,
    work: &'w mut WorkCounts,
) -> Publisher<'w, 'w> {
    Publisher {
        segments: epoch.store.segments(),
        checkpoint_epoch: epoch.checkpoint_epoch,
        pool,
        cache,
        work,
        waiter: Waiter::new(epoch.core.stopped()),
    }
}

/// The value that a call saw, with lines replaced; `base` is what the row was before the epoch.
#[inline(always)]
fn with_lines<'v>(
    phase: ReadPhase<'v>,
    seen: ValueWord,
    initial: ValueWord,
    at: usize,
    lines: &'v [u8],
) -> NewValue<'v> {
    let changed = match seen {
        _ if seen == initial => 0,
        _ if seen.is_transient() => phase.maker(seen).changed,
        _ => ALL_LINES,
    };
    NewValue::with_lines(phase.bytes(seen), at, lines, changed)
}

/// A row of a table, with its key where all keys have 8 bytes.
#[derive(Clone, Copy)]
struct NamedRow {
    id: EntryId,
    table: TableId,
    word: u64,
}

impl NamedRow {
    /// The row of a declared key.
    #[inline(always)]
    fn of(declared: &Declared) -> Self {
        Self { id: declared.id, table: declared.table, word: declared.word }
    }

    /// The row of a member of a range.
    #[inline(always)]
    fn of_member(member: &Member) -> Self {
        Self { id: member.id, table: member.table, word: member.word }
    }
}

/// The version of a serial id, and its place in the version array, if that is known.
#[derive(Clone, Copy)]
struct VersionPlace {
    sid: SerialId,
    place: u32,
}

/// Where private writes have their values.
#[derive(Clone, Copy)]
struct PrivateValues<'p> {
    scratch: &'p [u8],
    parts: &'p [PrivatePart],
}

/// Where the version of a serial id goes, of a row of a table.
#[inline(always)]
fn version_of(core: &Core, row: NamedRow, at: VersionPlace) -> Publication<'_> {
    let (NamedRow { id, table, word }, VersionPlace { sid, place }) = (row, at);
    let (layout, entry) = (&core.tables[table.index()].layout, core.entries.get(id));
    Publication { id, word, entry, layout, sid, initial: entry.initial_version(), place }
}

impl Runner<'_, '_> {
    /// Publishes what a call wrote, and lets its pieces run.
    pub(super) fn publish(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        mode: Mode,
    ) -> Result<(), Stopped> {
        if local.pieces.front().is_some() && leaves_untouched(call, &local.writes, mode) {
            // The owner of a last version that becomes IGNORE waits for those before.
            self.drain_pieces(local, call.position)?;
        }
        let sid = self.epoch.sid_at(call.position);
        let Local { writes, scratch, parts, pool, cache, work, fetching, .. } = local;
        let private = PrivateValues { scratch, parts };
        let (keys, members) = writes.split_at_mut(call.declared.len());
        let with = &mut publisher(self.epoch, pool, cache, work);
        for (number, (d, write)) in call.declared.iter().zip(keys).enumerate() {
            if d.id != NO_ENTRY && d.kind.is_of_body() {
                fetching.step();
                let at = VersionPlace { sid, place: call.access(number).place };
                self.publish_write(NamedRow::of(d), at, mode, write, private, with)?;
            }
        }
        for (m, write) in call.members().iter().zip(members) {
            let row = NamedRow::of_member(m);
            let at = VersionPlace { sid, place: NO_PLACE };
            self.publish_write(row, at, mode, write, private, with)?;
        }
        self.reveal();
        if mode != Mode::Written && !call.pieces().is_empty() {
            self.settle_pieces(local, call, mode == Mode::Commit)?;
        }
        Ok(())
    }

    /// Publishes what a call of the serial part wrote: the rows whose last writer there it is.
    #[inline(never)]
    pub(super) fn publish_serial(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
    ) -> Result<(), Stopped> {
        let sid = self.epoch.sid_at(call.position);
        let Local { pool, cache, work, .. } = local;
        let with = &mut publisher(self.epoch, pool, cache, work);
        let overlay = self.overlay;
        for (number, (d, row)) in
            call.declared.iter().zip(overlay.written_by(call.position)).enumerate()
        {
            debug_assert!((d.table, d.word) == (row.table, row.word), "as it was declared");
            let to = version_of(
                self.epoch.core,
                NamedRow::of(d),
                VersionPlace { sid, place: call.access(number).place },
            );
            let write = match row.now {
                Now::Value(kept) => Write::Value(NewValue::whole(overlay.bytes(kept))),
                Now::Deleted => Write::Tombstone,
                Now::Unchanged => unreachable!("it was written"),
            };
            self.row_store.publish(&to, write, with)?;
        }
        self.reveal();
        Ok(())
    }

    /// Publishes what a body wrote to a row.
    #[inline(always)]
    fn publish_write(
        &mut self,
        row: NamedRow,
        at: VersionPlace,
        mode: Mode,
        private: &mut PrivateWrite,
        values: PrivateValues<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> Result<(), Stopped> {
        let PrivateValues { scratch, parts } = values;
        let to = version_of(self.epoch.core, row, at);
        let write = match (mode, *private) {
            (_, PrivateWrite::Published)
            | (Mode::Written, PrivateWrite::None | PrivateWrite::Seen) => return Ok(()),
            (Mode::Abort, _) | (Mode::Commit, PrivateWrite::None | PrivateWrite::Seen) => {
                Write::Ignore
            }
            (_, PrivateWrite::Tombstone) => Write::Tombstone,
            (_, PrivateWrite::Value(span)) => Write::Value(NewValue::whole(&scratch[span.range()])),
            (_, PrivateWrite::Lines(part)) => {
                let PrivatePart { seen, at, lines } = parts[part as usize];
                let (phase, lines) = (ReadPhase::of(self.epoch), &scratch[lines.range()]);
                Write::Value(with_lines(phase, seen, to.initial, at as usize, lines))
            }
        };
        *private = PrivateWrite::Published;
        self.row_store.publish(&to, write, with)
    }

    /// Publishes what a piece of a call wrote to its rows, or IGNORE.
    pub(super) fn publish_piece(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        piece: &PieceState,
        written: &PieceWrites,
    ) -> Result<(), Stopped> {
        let of_keys = call.keys_of(piece).map(NamedRow::of);
        let of_members = call.members_of(piece).iter().map(NamedRow::of_member);
        let rows = of_keys.chain(of_members).zip(&written.writes);
        let rows = rows.filter(|(row, _)| row.id != NO_ENTRY);
        if local.pieces.front().is_some()
            && rows.clone().any(|(_, write)| matches!(write, PieceWrite::None))
        {
            // The owner of a last version that becomes IGNORE waits for those before, which may be
            // those of pieces that this worker has to run.
            self.drain_pieces(local, call.position)?;
        }
        let at = VersionPlace { sid: self.epoch.sid_at(call.position), place: NO_PLACE };
        let Local { pool, cache, work, .. } = local;
        let with = &mut publisher(self.epoch, pool, cache, work);
        for (row, &write) in rows {
            let to = version_of(self.epoch.core, row, at);
            let write = match write {
                PieceWrite::None => Write::Ignore,
                PieceWrite::Tombstone => Write::Tombstone,
                PieceWrite::Value(span) => Write::Value(NewValue::whole(written.value(span))),
                PieceWrite::Lines { seen, at, lines } => {
                    let (phase, lines) = (ReadPhase::of(self.epoch), written.value(lines));
                    Write::Value(with_lines(phase, seen, to.initial, at as usize, lines))
                }
            };
            self.row_store.publish(&to, write, with)?;
        }
        Ok(())
    }

    /// Publishes the final writes that still hide.
    pub(super) fn reveal(&mut self) {
        self.row_store.reveal();
    }

    /// The new numbers of sequences, as final writes of their rows.
    pub(super) fn persist_sequences(&mut self, local: &mut Local) {
        let core = self.epoch.core;
        let sequences = core.sequences.read().expect("no panic while locked");
        let Local { sequences: changed, pool, cache, work, .. } = local;
        let with = &mut publisher(self.epoch, pool, cache, work);
        for change in changed.iter() {
            let state = &sequences[&(change.table, change.key)];
            assert!(state.next == change.next, "the last number of the epoch is made durable");
            let id = state.id.expect("inserted before");
            let sid = self.epoch.sid_at(change.position);
            let row = NamedRow { id, table: change.table, word: change.key };
            // The row is not claimed, and its entry perhaps not filled.
            let initial = core.entry(id).persistent_version();
            let to = version_of(core, row, VersionPlace { sid, place: NO_PLACE });
            let to = Publication { initial, ..to };
            let next = change.next.to_le_bytes();
            self.row_store.write_final(&to, &NewValue::whole(&next), with);
        }
        // Each row is written once, so that nothing was read twice.
        self.row_store.port.end_step();
    }
}
