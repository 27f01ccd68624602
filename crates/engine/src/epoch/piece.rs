//! Running pieces (CA 3.4, 4.2): those in a worker's queue, and those that stay with their calls.
//!
//! The latter run when the body has come to its end. A piece in a queue runs once it is known that
//! its call commits and the version before is there. A worker runs them in serial order, those
//! before the next call that it runs first, and also while a body waits for a version. That cannot
//! deadlock: the smallest unfinished call is the next one of the worker that claimed it, which runs
//! it at once or waits for nothing but smaller ones; and the smallest unfinished piece is the first
//! in the queue of a worker that runs nothing smaller, so whatever that worker waits for, it runs
//! the piece meanwhile (O-11).

use pmem::Device;
use pmem::sync::RwLockReadGuard;
use storage::{NewValue, Position};

use super::declare::panic_text;
use super::execute::begin;
use super::prefetch::call_at;
use super::publish::{Runner, with_lines};
use crate::call::panics::caught;
use crate::declaration::{CallView, Declarations, NO_ENTRY};
use crate::error::EngineError;
use crate::memory::{Local, QueuedPiece};
use crate::program::procedure::Registered;
use crate::transaction::piece::{Piece, PieceWrite};
use crate::transaction::{FirstError, Stop};
use crate::version::{ReadPhase, Stopped, Waiter, Write};
use crate::worker::{Epoch, Leave};

impl<D: Device> Runner<'_, '_, D> {
    /// Whether the call of a queued piece commits, once that is known and the version before is
    /// there.
    fn ready(&self, queued: QueuedPiece) -> Option<bool> {
        let call = call_at(self.lists, queued.position.index());
        let piece = &call.pieces()[queued.number as usize];
        let commits = piece.commits()?;
        let sid = self.epoch.sid_at(queued.position);
        let entry = self.epoch.core.entries.get(call.declared_of(piece).id);
        entry.try_read(sid).is_ok().then_some(commits)
    }

    /// Runs the first piece of the queue, which is ready.
    fn run_queued(
        &mut self,
        local: &mut Local,
        queued: QueuedPiece,
        commits: bool,
    ) -> Result<(), Stopped> {
        debug_assert!(local.pieces.front() == Some(queued), "pieces run in serial order (O-11)");
        local.pieces.advance();
        let call = call_at(self.lists, queued.position.index());
        self.run_piece(local, &call, queued.number as usize, commits)?;
        self.reveal();
        local.reads.account_charged(&mut self.row_store.port, self.epoch.core.image_base);
        local.work.pieces_split += 1;
        Ok(())
    }

    /// Runs pieces of calls before a position as long as the next one is ready; whether there was
    /// one.
    pub(super) fn run_ready_pieces(
        &mut self,
        local: &mut Local,
        before: Position,
    ) -> Result<bool, Stopped> {
        let mut ran = false;
        while let Some(queued) = local.pieces.front_before(before)
            && let Some(commits) = self.ready(queued)
        {
            self.run_queued(local, queued, commits)?;
            ran = true;
        }
        Ok(ran)
    }

    /// Runs all pieces of calls before a position.
    pub(super) fn drain_pieces(
        &mut self,
        local: &mut Local,
        before: Position,
    ) -> Result<(), Stopped> {
        let mut waiter = Waiter::new(self.epoch.core.stopped());
        while let Some(queued) = local.pieces.front_before(before) {
            let commits = waiter.until(|| self.ready(queued), || Ok(false))?;
            self.run_queued(local, queued, commits)?;
        }
        Ok(())
    }

    /// What a piece of the running call, which commits, comes to.
    pub(super) fn wait_for_piece(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<u64, Stopped> {
        let piece = &call.pieces()[number];
        if let Some(result) = piece.result() {
            return Ok(result);
        }
        if piece.is_split {
            local.work.waits += 1;
            let before = call.position.next();
            let mut waiter = Waiter::new(self.epoch.core.stopped());
            return waiter.until(|| piece.result(), || self.run_ready_pieces(local, before));
        }
        self.run_piece(local, call, number, true)?;
        self.reveal();
        Ok(piece.result().expect("it was run"))
    }

    /// It is known whether a call commits: those of its pieces that stayed with it run now.
    pub(super) fn settle_pieces(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        commits: bool,
    ) -> Result<(), Stopped> {
        for (number, piece) in call.pieces().iter().enumerate() {
            if piece.is_split {
                piece.decide(commits);
            } else if piece.result().is_none() {
                self.run_piece(local, call, number, commits)?;
            }
        }
        self.reveal();
        Ok(())
    }

    /// Runs one piece and publishes what it wrote, or IGNORE; a final write with the next
    /// [`Runner::reveal`].
    fn run_piece(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        number: usize,
        commits: bool,
    ) -> Result<(), Stopped> {
        // Another piece may be half done, and wait for this one.
        let outer = std::mem::take(&mut local.piece_value);
        let (result, write) =
            if commits { self.call_piece(local, call, number)? } else { (0, PieceWrite::None) };
        let mut value = std::mem::replace(&mut local.piece_value, outer);
        let piece = &call.pieces()[number];
        let declared = call.declared_of(piece);
        if declared.id != NO_ENTRY {
            let sid = self.epoch.sid_at(call.position);
            let write = match write {
                PieceWrite::Value => Write::Value(NewValue::whole(&value)),
                PieceWrite::Lines { seen, at } => {
                    let initial = self.epoch.core.entries.get(declared.id).initial_version();
                    Write::Value(with_lines(ReadPhase::of(self.epoch), seen, initial, at, &value))
                }
                PieceWrite::None => {
                    // The owner of a last version that becomes IGNORE waits for those before, which
                    // may be those of pieces that this worker has to run.
                    self.drain_pieces(local, call.position)?;
                    Write::Ignore
                }
            };
            self.publish_piece(local, declared, sid, write)?;
        }
        if local.piece_value.capacity() == 0 {
            value.clear();
            local.piece_value = value;
        }
        debug_assert!(piece.result().is_none(), "a piece runs once");
        local.work.pieces += 1;
        piece.finish(result);
        Ok(())
    }

    /// Calls the function of a piece: its result, and what it wrote. A failure stops the engine:
    /// the rest of the call may have been seen (O-49).
    fn call_piece(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<(u64, PieceWrite), Stopped> {
        let epoch = self.epoch;
        let (procedure_number, arguments) = epoch.calls.get(call.position.index());
        let procedure = epoch.procedures.get(procedure_number).expect("checked before");
        let first_error = FirstError::default();
        let worker = local.worker;
        let tx = begin(epoch, local, self, call, &first_error);
        let mut piece = Piece { tx, number, write: PieceWrite::None };
        let body = || caught(|| procedure.piece(arguments, &mut piece));
        let result = epoch.noting(worker, call.position, procedure_number, body);
        let (write, waits) = (piece.write, piece.tx.waiter.waits);
        local.work.waits += waits;
        let what = match first_error.take().map_or(result, |stop| Ok(Err(stop))) {
            Ok(Ok(result)) => return Ok((result, write)),
            Ok(Err(Stop::Stopped)) => return Err(Stopped),
            Ok(Err(stop)) => stop.to_string(),
            Err(panic) => panic_text(&panic),
        };
        let what = format!("commits, but its piece {number} failed: {what}");
        epoch.core.stop(epoch.poison(call.position, &what));
        Err(Stopped)
    }
}

/// The answer of a call that committed: what its body put out, or what its procedure makes of that
/// and of its pieces. If some of them have not run yet, that is left for [`finish_answers`].
#[inline]
pub(super) fn commit_answer<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    call: &CallView<'_>,
    procedure: &Registered,
) -> Result<(), Leave> {
    let position = call.position;
    if !procedure.steps.finish {
        local.answers.commit(position);
    } else if call.pieces().iter().any(|piece| piece.result().is_none()) {
        local.answers.commit_later(position);
    } else {
        let mut bytes = std::mem::take(&mut local.piece_value);
        bytes.clear();
        bytes.extend_from_slice(local.answers.put_out());
        run_finish(epoch, local, call, &mut bytes)?;
        local.answers.commit_instead(position, &bytes);
        local.piece_value = bytes;
    }
    Ok(())
}

/// Makes the answers that had to wait for pieces, when all pieces have run.
pub(super) fn finish_answers<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    lists: &[RwLockReadGuard<'_, Declarations>],
) -> Result<(), Leave> {
    let mut bytes = std::mem::take(&mut local.piece_value);
    for later in 0..local.answers.later() {
        let (position, put_out) = local.answers.put_out_for(later);
        bytes.clear();
        bytes.extend_from_slice(put_out);
        run_finish(epoch, local, &call_at(lists, position.index()), &mut bytes)?;
        local.answers.finish(later, &bytes);
    }
    local.piece_value = bytes;
    Ok(())
}

/// Makes an answer of what was put out; a panic stops the engine, because the call has committed
/// (O-49).
fn run_finish<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    call: &CallView<'_>,
    bytes: &mut Vec<u8>,
) -> Result<(), Leave> {
    let (number, arguments) = epoch.calls.get(call.position.index());
    let procedure = epoch.procedures.get(number).expect("checked before");
    let results = &mut local.piece_results;
    results.clear();
    results.extend(call.pieces().iter().map(|piece| piece.result().expect("all have run")));
    let make = || caught(|| procedure.finish(arguments, results, bytes));
    epoch.noting(local.worker, call.position, number, make).map_err(|panic| {
        let what = format!("commits, but not its answer: {}", panic_text(&panic));
        EngineError::Poisoned(epoch.poison(call.position, &what)).into()
    })
}
