//! Running pieces (CA 3.4, 4.2): those in a worker's queue, and those that stay with their calls.
//!
//! The latter run when the body has come to its end, in the order of their numbers. A piece in a
//! queue runs once it is known that its call commits and the version before of the row that may be
//! contended is there. A worker runs them in serial order, and those of a call by their numbers:
//! what is before the next call that it runs comes first, and some run while a body or piece waits.
//!
//! That cannot deadlock (O-11). Bodies and pieces are in one order: by calls; within a call the
//! body up to where it is decided, pieces by their numbers, and the body behind each result that it
//! asks for. Everything waits for what is before it only:
//!
//! - for versions of calls before,
//! - a piece for results of pieces with smaller numbers, which are decided when it runs,
//! - the body, decided, for a result. It has run those pieces first that stayed with it up to that
//!   one, because it may wait for them in turn.
//!
//! What a worker runs while something waits is before that: pieces of calls before, or, for a
//! result, up to the one that is waited for. So the first that is not done is a call that a worker
//! runs next, or runs; or a piece at the front of the queue of a worker which, whatever it waits
//! for, runs it meanwhile.

use pmem::sync::RwLockReadGuard;
use storage::Position;

use super::declare::panic_text;
use super::execute::begin;
use super::prefetch::call_at;
use super::publish::Runner;
use crate::call::panics::caught;
use crate::declaration::{CallView, Declarations, PieceResult};
use crate::error::EngineError;
use crate::memory::{Local, QueuedPiece};
use crate::program::procedure::Registered;
use crate::transaction::piece::Piece;
use crate::transaction::{FirstError, Stop};
use crate::version::{Stopped, Waiter};
use crate::worker::{Epoch, Leave};

impl Runner<'_, '_> {
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

    /// Runs pieces before another one as long as the next one is ready; whether there was one.
    pub(super) fn run_ready_pieces(
        &mut self,
        local: &mut Local,
        end: QueuedPiece,
    ) -> Result<bool, Stopped> {
        let mut ran = false;
        while let Some(queued) = local.pieces.front_before(end)
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
        let (mut waiter, end) =
            (Waiter::new(self.epoch.core.stopped()), QueuedPiece::first_of(before));
        while let Some(queued) = local.pieces.front_before(end) {
            let commits = waiter.until(|| self.ready(queued), || Ok(false))?;
            self.run_queued(local, queued, commits)?;
        }
        Ok(())
    }

    /// What a piece of the running call, which commits, comes to, for its body. Those that stayed
    /// with the call run up to it, because it may wait for them wherever it runs.
    pub(super) fn come_to_piece(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stopped> {
        self.run_own_pieces(local, call, number + 1, true)?;
        self.wait_for_piece(local, call, number)
    }

    /// What a piece comes to that runs apart, or has run. The worker runs no piece behind that one
    /// meanwhile: it may wait for the one that waits here.
    pub(super) fn wait_for_piece(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stopped> {
        let piece = &call.pieces()[number];
        if let Some(result) = piece.result() {
            return Ok(result);
        }
        local.work.waits += 1;
        let end = QueuedPiece { position: call.position, number: number as u32 }.next();
        let mut waiter = Waiter::new(self.epoch.core.stopped());
        waiter.until(|| piece.result(), || self.run_ready_pieces(local, end))
    }

    /// It is known whether a call commits: those of its pieces that stayed with it run now.
    pub(super) fn settle_pieces(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        commits: bool,
    ) -> Result<(), Stopped> {
        let pieces = call.pieces();
        pieces.iter().filter(|piece| piece.is_split).for_each(|piece| piece.decide(commits));
        self.run_own_pieces(local, call, pieces.len(), commits)
    }

    /// Runs the first pieces of a call, so many, as far as they stayed with it and have not run.
    fn run_own_pieces(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        count: usize,
        commits: bool,
    ) -> Result<(), Stopped> {
        for (number, piece) in call.pieces()[..count].iter().enumerate() {
            if !piece.is_split && !piece.is_done() {
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
        let piece = &call.pieces()[number];
        // Another piece may be half done, and wait for this one.
        let outer = std::mem::take(&mut local.piece);
        let result = match commits {
            true => self.call_piece(local, call, number)?,
            false => {
                local.piece.begin(1 + piece.keys.len() + piece.members.len());
                PieceResult::NONE
            }
        };
        let written = std::mem::replace(&mut local.piece, outer);
        self.publish_piece(local, call, piece, &written)?;
        if local.piece.writes.capacity() == 0 {
            // No piece is half done: its memory serves the next one.
            local.piece = written;
        }
        debug_assert!(!piece.is_done(), "a piece runs once");
        local.work.pieces += 1;
        piece.finish(&result);
        Ok(())
    }

    /// Calls the function of a piece: its result. A failure stops the engine: the rest of the call
    /// may have been seen (O-49).
    fn call_piece(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stopped> {
        let epoch = self.epoch;
        let (procedure_number, arguments) = epoch.calls.get(call.position.index());
        let procedure = epoch.procedures.get(procedure_number).expect("checked before");
        let first_error = FirstError::default();
        let worker = local.worker;
        let tx = begin(epoch, local, self, call, &first_error);
        let mut piece = Piece::new(tx, number);
        let body = || caught(|| procedure.piece(arguments, &mut piece));
        let result = epoch.noting(worker, call.position, procedure_number, body);
        let waits = piece.waits();
        local.work.waits += waits;
        let what = match first_error.take().map_or(result, |stop| Ok(Err(stop))) {
            Ok(Ok(result)) => return Ok(result),
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
pub(super) fn commit_answer(
    epoch: &Epoch<'_>,
    local: &mut Local,
    call: &CallView<'_>,
    procedure: &Registered,
) -> Result<(), Leave> {
    let position = call.position;
    if !procedure.steps.finish {
        local.answers.commit(position);
    } else if call.pieces().iter().any(|piece| !piece.is_done()) {
        local.answers.commit_later(position);
    } else {
        let mut bytes = std::mem::take(&mut local.piece.values);
        bytes.clear();
        bytes.extend_from_slice(local.answers.put_out());
        run_finish(epoch, local, call, &mut bytes)?;
        local.answers.commit_instead(position, &bytes);
        local.piece.values = bytes;
    }
    Ok(())
}

/// Makes the answers that had to wait for pieces, when all pieces have run.
pub(super) fn finish_answers(
    epoch: &Epoch<'_>,
    local: &mut Local,
    lists: &[RwLockReadGuard<'_, Declarations>],
) -> Result<(), Leave> {
    let mut bytes = std::mem::take(&mut local.piece.values);
    for later in 0..local.answers.later() {
        let (position, put_out) = local.answers.put_out_for(later);
        bytes.clear();
        bytes.extend_from_slice(put_out);
        run_finish(epoch, local, &call_at(lists, position.index()), &mut bytes)?;
        local.answers.finish(later, &bytes);
    }
    local.piece.values = bytes;
    Ok(())
}

/// Makes an answer of what was put out; a panic stops the engine, because the call has committed
/// (O-49).
fn run_finish(
    epoch: &Epoch<'_>,
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
