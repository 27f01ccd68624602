//! Running pieces (CA 3.4, 4.2): those in a worker's queue, and those that stay with their calls.
//!
//! The latter run when the body has come to its end. A piece in a queue runs once it is known that
//! its call commits and the version before is there. A worker runs them in serial order, those
//! before the next call that it runs first, and also while a body waits for a version. That cannot
//! deadlock:
//! the smallest unfinished call is the next one of whoever took it, which runs it at once or waits
//! for nothing but smaller ones; and the smallest unfinished piece is the first in the queue of a
//! worker that runs nothing smaller, so whatever that worker waits for, it runs the piece meanwhile
//! (O-11).

use std::panic::{AssertUnwindSafe, catch_unwind};

use pmem::Device;
use pmem::sync::{RwLockReadGuard, polls, spin_loop, thread};
use storage::SerialId;

use super::ahead::call_at;
use super::declare::panic_text;
use super::execute::begin;
use super::publish::Runner;
use crate::EngineError;
use crate::local::{CallView, Declarations, Local, NO_ENTRY};
use crate::piece::Piece;
use crate::procedure::FinishFn;
use crate::transaction::Stop;
use crate::version::{Publication, Stopped, Write};
use crate::worker::{Epoch, Leave};

/// Looks for a piece to run before the processor is yielded.
const POLLS_BEFORE_YIELD: u32 = polls(256);

impl<D: Device> Runner<'_, '_, D> {
    /// Runs pieces of calls before a position as long as the next one can run; whether there was
    /// one.
    pub(super) fn run_ready_pieces(
        &mut self,
        local: &mut Local,
        before: u32,
    ) -> Result<bool, Stopped> {
        let mut ran = false;
        while let Some(next) = local.pieces.front().filter(|next| next.position < before) {
            let call = call_at(self.lists, next.position as usize);
            let piece = &call.pieces()[next.number as usize];
            let Some(commits) = piece.commits() else {
                break;
            };
            let sid = SerialId::new(self.epoch.number, u64::from(next.position));
            let entry = self.epoch.core.entries.get(call.declared_of(piece).id);
            if entry.try_read(sid).is_err() {
                break;
            }
            local.pieces.advance();
            self.run_piece(local, call, next.number as usize, commits)?;
            self.reveal();
            local.work.pieces_split += 1;
            ran = true;
        }
        Ok(ran)
    }

    /// Runs all pieces of calls before a position.
    pub(super) fn drain_pieces(&mut self, local: &mut Local, before: u32) -> Result<(), Stopped> {
        self.run_pieces_until(local, before, |local| {
            local.pieces.front().is_none_or(|next| next.position >= before)
        })
    }

    /// Runs pieces of calls before a position until something has come about.
    fn run_pieces_until(
        &mut self,
        local: &mut Local,
        before: u32,
        is_done: impl Fn(&Local) -> bool,
    ) -> Result<(), Stopped> {
        let mut idle = 0_u32;
        while !is_done(local) {
            if self.run_ready_pieces(local, before)? {
                continue;
            }
            idle += 1;
            if idle.is_multiple_of(POLLS_BEFORE_YIELD) {
                self.epoch.core.check_running()?;
                thread::yield_now();
            } else {
                spin_loop();
            }
        }
        Ok(())
    }

    /// What a piece of the running call, which commits, comes to.
    pub(super) fn wait_for_piece(
        &mut self,
        local: &mut Local,
        call: CallView<'_>,
        number: usize,
    ) -> Result<u64, Stopped> {
        let piece = &call.pieces()[number];
        if piece.is_split {
            local.work.waits += u64::from(piece.result().is_none());
            let before = call.txn.position + 1;
            self.run_pieces_until(local, before, |_| piece.result().is_some())?;
        } else if piece.result().is_none() {
            self.run_piece(local, call, number, true)?;
            self.reveal();
        }
        Ok(piece.result().expect("it was run"))
    }

    /// It is known whether a call commits: those of its pieces that stayed with it run now.
    pub(super) fn settle_pieces(
        &mut self,
        local: &mut Local,
        call: CallView<'_>,
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
        call: CallView<'_>,
        number: usize,
        commits: bool,
    ) -> Result<(), Stopped> {
        // Another piece may be half done, and wait for this one.
        let outer = std::mem::take(&mut local.piece_value);
        let (result, is_written) =
            if commits { self.call_piece(local, call, number)? } else { (0, false) };
        let piece = &call.pieces()[number];
        let declared = call.declared_of(piece);
        if declared.id != NO_ENTRY {
            let core = self.epoch.core;
            let to = Publication {
                id: declared.id,
                word: declared.word,
                entry: core.entries.get(declared.id),
                layout: &core.tables[declared.table as usize].layout,
                sid: SerialId::new(self.epoch.number, u64::from(call.txn.position)),
            };
            let value = std::mem::take(&mut local.piece_value);
            let write = if is_written { Write::Value(&value) } else { Write::Ignore };
            self.publish_piece(local, &to, write)?;
            local.piece_value = value;
        }
        if outer.capacity() > 0 {
            local.piece_value = outer;
        } else {
            local.piece_value.clear();
        }
        local.work.pieces += 1;
        piece.finish(result);
        Ok(())
    }

    /// Calls the function of a piece: its result, and whether it wrote. A failure stops the engine:
    /// the rest of the call may have been seen (O-49).
    fn call_piece(
        &mut self,
        local: &mut Local,
        call: CallView<'_>,
        number: usize,
    ) -> Result<(u64, bool), Stopped> {
        let epoch = self.epoch;
        let declared = call.declared_of(&call.pieces()[number]);
        let (procedure, arguments) = epoch.calls.get(call.txn.position as usize);
        let procedure = epoch.core.procedures.get(procedure).expect("checked before");
        let run = procedure.pieces.expect("checked with the declaration").piece;
        let tx = begin(epoch, local, self, call);
        let mut piece =
            Piece { tx, number, table: declared.table, id: declared.id, is_written: false };
        let result = catch_unwind(AssertUnwindSafe(|| run(arguments, &mut piece)));
        let (is_written, waits) = (piece.is_written, piece.tx.waiter.waits);
        local.work.waits += waits;
        let what = match result {
            Ok(Ok(result)) => return Ok((result, is_written)),
            Ok(Err(Stop::Stopped)) => return Err(Stopped),
            Ok(Err(stop)) => stop.to_string(),
            Err(panic) => panic_text(panic.as_ref()),
        };
        self.failure = Some(EngineError::Poisoned(format!(
            "piece {number} of call {} of epoch {} ({}), which commits, failed: {what}",
            call.txn.position, epoch.number, procedure.name
        )));
        Err(Stopped)
    }
}

/// The answer of a call that committed: what its body put out, or what its procedure makes of that
/// and of its pieces. If some of them have not run yet, that is left for [`finish_answers`].
#[inline]
pub(super) fn commit_answer<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    call: CallView<'_>,
) -> Result<(), Leave> {
    let position = call.txn.position;
    if !epoch.core.procedures.have_pieces() {
        local.answers.commit(position);
        return Ok(());
    }
    let (number, _) = epoch.calls.get(position as usize);
    let procedure = epoch.core.procedures.get(number).expect("checked before");
    match procedure.pieces.and_then(|functions| functions.finish) {
        None => local.answers.commit(position),
        Some(_) if call.pieces().iter().any(|piece| piece.result().is_none()) => {
            let index = local.answers.commit_later(position);
            local.unfinished.push(index);
        }
        Some(finish) => {
            let mut bytes = std::mem::take(&mut local.piece_value);
            bytes.clear();
            bytes.extend_from_slice(local.answers.put_out());
            run_finish(epoch, local, (call, procedure.name, finish), &mut bytes)?;
            local.answers.commit_instead(position, &bytes);
            local.piece_value = bytes;
        }
    }
    Ok(())
}

/// Makes the answers that had to wait for pieces, when all pieces have run.
pub(super) fn finish_answers<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    lists: &[RwLockReadGuard<'_, Declarations>],
) -> Result<(), Leave> {
    let unfinished = std::mem::take(&mut local.unfinished);
    let mut bytes = std::mem::take(&mut local.piece_value);
    for &index in &unfinished {
        let (position, put_out) = local.answers.later(index);
        bytes.clear();
        bytes.extend_from_slice(put_out);
        let (number, _) = epoch.calls.get(position as usize);
        let procedure = epoch.core.procedures.get(number).expect("checked before");
        let finish = procedure.pieces.and_then(|functions| functions.finish);
        let finish = finish.expect("only such answers wait");
        let call = call_at(lists, position as usize);
        run_finish(epoch, local, (call, procedure.name, finish), &mut bytes)?;
        local.answers.finish_later(index, &bytes);
    }
    (local.unfinished, local.piece_value) = (unfinished, bytes);
    Ok(())
}

/// Makes an answer; a panic stops the engine, because the call has committed (O-49).
fn run_finish<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    (call, name, finish): (CallView<'_>, &str, FinishFn),
    bytes: &mut Vec<u8>,
) -> Result<(), Leave> {
    let results = &mut local.piece_results;
    results.clear();
    results.extend(call.pieces().iter().map(|piece| piece.result().expect("all have run")));
    let (position, number) = (call.txn.position, epoch.number);
    let (_, arguments) = epoch.calls.get(position as usize);
    catch_unwind(AssertUnwindSafe(|| finish(arguments, results, bytes))).map_err(|panic| {
        let what = panic_text(panic.as_ref());
        let what = format!("the answer of call {position} of epoch {number} ({name}): {what}");
        EngineError::Poisoned(what).into()
    })
}
