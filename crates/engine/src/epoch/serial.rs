//! The serial part of an epoch: its first calls run one after the other on one worker, before space
//! is reserved and before anything is logged. What they wrote stays in the overlay until then
//! (O-72), and enters the rest of the epoch as calls that are decided: each declares the rows whose
//! last writer it is, and publishes their values when its turn comes (O-73).
//!
//! Here run calls that were deferred, and those that were submitted for it. They need no prediction
//! of what they write, so that none is ever deferred again (O-75). A failure of a call, of its
//! pieces and its answer included, is that call's alone (O-79).

use storage::Position;

use super::declare::{LEFT_OUT, PIECES_WITHOUT_FUNCTION, ending, panic_text};
use super::execute::begin;
use super::{page_in, sequences};
use crate::call::answers::{Abort, Failure};
use crate::call::batch::Part;
use crate::call::panics::{PanicText, caught};
use crate::declaration::declare::{Declaration, Sequences, WriteSet};
use crate::declaration::overlay::Overlay;
use crate::declaration::{CallView, Declarations, Extra, PieceResult, Span, Txn};
use crate::error::Words;
use crate::memory::Local;
use crate::program::procedure::Registered;
use crate::state::core::BySequence;
use crate::transaction::piece::Piece;
use crate::transaction::{FirstError, PublishNow, Stop, Transaction};
use crate::version::Stopped;
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    if epoch.calls.serial() == 0 {
        return Ok(());
    }
    if epoch.leads(worker) {
        let overlay = &mut *epoch.shared.overlay.write().expect("no panic while locked");
        overlay.begin(&epoch.core.tables);
        run_calls(epoch, worker, overlay)?;
        overlay.finish();
    }
    epoch.barrier()?;
    Ok(())
}

fn run_calls(epoch: &Epoch<'_>, worker: &mut Worker, overlay: &mut Overlay) -> Result<(), Leave> {
    if epoch.asks_for_pages {
        ask_for_pages(epoch, &mut worker.local, overlay);
    }
    let mut lists = std::mem::take(&mut worker.local.lists);
    let mut place_of = BySequence::default();
    for position in 0..epoch.calls.serial() {
        let call = Call { epoch, position: Position::from_index(position) };
        let local = &mut worker.local;
        let result = call.run(local, &mut lists, &mut *overlay, &mut place_of);
        if epoch.core.config.contention {
            overlay.count_writer(call.position);
        }
        match result {
            Ok(()) => overlay.commit(call.position),
            Err(Leaving::Failure(failure)) => {
                overlay.roll_back(epoch.core);
                local.answers.fail(call.position, failure);
            }
            Err(Leaving::Stopped) => return Err(Leave::Stopped),
        }
        lists.clear();
        local.reads.account_charged(&mut worker.row_store.port, epoch.core.image_base);
    }
    worker.local.lists = lists;
    let answers = worker.local.answers.len();
    assert!(answers == epoch.calls.serial(), "each call of the serial part has its answer");
    assert!(worker.local.deferred.is_empty(), "no call of the serial part is deferred (O-75)");
    worker.local.work.serial += epoch.calls.serial() as u64;
    Ok(())
}

/// Asks for what the calls declare before the first of them runs: each would wait for its own pages
/// only when it is its turn. What they declare is found out for this alone; numbers of sequences
/// are not known, and keys made of these are not those that they will touch.
fn ask_for_pages(epoch: &Epoch<'_>, local: &mut Local, overlay: &mut Overlay) {
    let mut lists = std::mem::take(&mut local.lists);
    for position in 0..epoch.calls.serial() {
        let call = Call { epoch, position: Position::from_index(position) };
        if epoch.skips(position) || epoch.calls.call(position).part == Part::Refused {
            continue;
        }
        let from = lists.allocations.len();
        if call.take_numbers(local, &mut lists, overlay).is_ok() {
            let allocations = Span::up_to(from, lists.allocations.len());
            call.predict(local, &mut lists, overlay, allocations);
        }
    }
    local.lists = lists;
    page_in::serial_part(epoch, local);
    local.lists.clear();
}

/// Why a call does not commit.
enum Leaving {
    Failure(Failure),
    /// The engine was stopped.
    Stopped,
}

impl From<Failure> for Leaving {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// What the write set of a call came to.
struct Prediction {
    result: Result<Result<(), Abort>, PanicText>,
    mistake: Option<Words>,
    is_unknown: bool,
}

/// A call of the serial part.
struct Call<'c, 'e> {
    epoch: &'c Epoch<'e>,
    position: Position,
}

impl Call<'_, '_> {
    fn number(&self) -> u16 {
        self.epoch.calls.get(self.position.index()).0
    }

    fn procedure(&self) -> (&Registered, &[u8]) {
        let (number, arguments) = self.epoch.calls.get(self.position.index());
        let procedure = self.epoch.procedures.get(number);
        (procedure.expect("checked before the epoch began"), arguments)
    }

    /// Runs it, and notes its answer if it commits.
    fn run(
        &self,
        local: &mut Local,
        lists: &mut Declarations,
        overlay: &mut Overlay,
        place_of: &mut BySequence<usize>,
    ) -> Result<(), Leaving> {
        let epoch = self.epoch;
        if epoch.skips(self.position.index()) {
            return Err(Failure::Failed(LEFT_OUT.into()).into());
        }
        if epoch.calls.call(self.position.index()).part == Part::Refused {
            let what = "it was deferred and then refused: there was no space for it by itself, or \
                        the process died in it twice";
            return Err(Failure::Failed(what.into()).into());
        }
        self.allocate(local, lists, overlay, place_of)?;
        self.declare(local, lists, overlay)?;
        let lists = &*lists;
        let call = &CallView::new(lists, 0, &[]);
        let first_error = FirstError::default();
        let (procedure, arguments) = self.procedure();
        let body = |mut tx: Transaction<'_>| procedure.run(arguments, &mut tx);
        self.in_transaction(local, overlay, call, &first_error, body)?;
        epoch.core.secondary.check_unique(&overlay.index_undo).map_err(Failure::Aborted)?;
        self.answer(local, overlay, call)
    }

    /// Sequences; a call that ends in that takes nothing.
    fn allocate(
        &self,
        local: &mut Local,
        lists: &mut Declarations,
        overlay: &mut Overlay,
        place_of: &mut BySequence<usize>,
    ) -> Result<(), Failure> {
        self.take_numbers(local, lists, overlay)?;
        sequences::rank_at_once(self.epoch, &mut lists.allocations, &mut local.sequences, place_of);
        Ok(())
    }

    /// Runs its step that allocates, if it has one; the numbers are not known yet.
    fn take_numbers(
        &self,
        local: &Local,
        lists: &mut Declarations,
        overlay: &mut Overlay,
    ) -> Result<(), Failure> {
        let (procedure, arguments) = self.procedure();
        if !procedure.steps.sequences {
            return Ok(());
        }
        let before = self.epoch.state_before();
        let declaration = Declaration::serial(before, lists, &local.reads, overlay);
        let steps = Sequences { declaration, position: self.position };
        let step = || sequences::run_step(steps, |numbers| procedure.sequences(arguments, numbers));
        let early = self.epoch.noting(local.worker, self.position, self.number(), step);
        early.map_or(Ok(()), Err)
    }

    /// Declares: what it writes need not be known, but it may end in that, and its pieces are
    /// declared there.
    fn declare(
        &self,
        local: &Local,
        lists: &mut Declarations,
        overlay: &mut Overlay,
    ) -> Result<(), Failure> {
        let procedure = self.procedure().0;
        let allocations = Span::up_to(0, lists.allocations.len());
        let Prediction { result, mut mistake, is_unknown } =
            self.predict(local, lists, overlay, allocations);
        if !is_unknown {
            overlay.predicted.insert(self.epoch.calls.get(self.position.index()).0);
        }
        if !lists.pieces.is_empty() && !procedure.steps.pieces {
            mistake.get_or_insert_with(|| Box::new(PIECES_WITHOUT_FUNCTION.into()));
        }
        ending(result, mistake).map_or(Ok(()), Err)?;
        lists.extras.push(Extra {
            allocations,
            ranges: Span::up_to(0, lists.ranges.len()),
            pieces: Span::up_to(0, lists.pieces.len()),
            ..Extra::default()
        });
        let declared = Span::up_to(0, lists.declared.len());
        lists.txns.push(Txn { position: self.position, declared, extra: 0 });
        Ok(())
    }

    /// Runs its write set.
    fn predict(
        &self,
        local: &Local,
        lists: &mut Declarations,
        overlay: &mut Overlay,
        allocations: Span,
    ) -> Prediction {
        let (procedure, arguments) = self.procedure();
        let before = self.epoch.state_before();
        let declaration = Declaration::serial(before, lists, &local.reads, overlay);
        let mut set = WriteSet::new(declaration, allocations);
        let declare = || caught(|| procedure.write_set(arguments, &mut set));
        let result = self.epoch.noting(local.worker, self.position, self.number(), declare);
        let Declaration { mistake, is_unknown, .. } = set.declaration;
        Prediction { result, mistake, is_unknown }
    }

    /// Runs a part of the call as a transaction.
    fn in_transaction<R>(
        &self,
        local: &mut Local,
        overlay: &mut Overlay,
        call: &CallView<'_>,
        first_error: &FirstError,
        part: impl FnOnce(Transaction<'_>) -> Result<R, Stop>,
    ) -> Result<R, Leaving> {
        let (epoch, worker) = (self.epoch, local.worker);
        let mut publisher = Self { epoch, position: self.position };
        let mut tx = begin(epoch, local, &mut publisher, call, first_error);
        tx.serial = Some(overlay);
        let run = || caught(|| part(tx));
        let result = epoch.noting(worker, call.position, self.number(), run);
        let ended = first_error.take().map_or(result, |stop| Ok(Err(stop)));
        match ended {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(Stop::Stopped)) => Err(Leaving::Stopped),
            Ok(Err(Stop::Abort(abort))) => Err(Failure::Aborted(*abort).into()),
            Ok(Err(Stop::Code(code))) => Err(Failure::Aborted(Abort::code(code)).into()),
            Ok(Err(Stop::Mistake(what))) => Err(Failure::Failed(*what).into()),
            Ok(Err(Stop::Deferred)) => {
                let what = "it asked to be deferred in the serial part";
                Err(Failure::Failed(what.into()).into())
            }
            Err(panic) => Err(Failure::Failed(panic_text(&panic)).into()),
        }
    }

    /// Runs its pieces, and makes its answer of what the body put out and of what they came to.
    fn answer(
        &self,
        local: &mut Local,
        overlay: &mut Overlay,
        call: &CallView<'_>,
    ) -> Result<(), Leaving> {
        self.run_pieces(local, overlay, call, call.pieces().len())?;
        let written = overlay.write_of_pieces(self.epoch.core, &local.reads);
        written.map_err(Failure::Failed)?;
        let (procedure, arguments) = self.procedure();
        if !procedure.steps.finish {
            local.answers.commit(self.position);
            return Ok(());
        }
        let results: Vec<PieceResult> =
            call.pieces().iter().filter_map(|piece| piece.result()).collect();
        let mut bytes = local.answers.put_out().to_vec();
        let finish = || procedure.finish(arguments, &results, &mut bytes);
        let make = || caught(finish);
        let made = self.epoch.noting(local.worker, self.position, self.number(), make);
        made.map_err(|panic| Failure::Failed(panic_text(&panic)))?;
        local.answers.commit_instead(self.position, &bytes);
        Ok(())
    }

    /// Runs the first pieces, so many, as far as they have not run yet, in the order of their
    /// numbers: none finds that one before it has not run.
    fn run_pieces(
        &self,
        local: &mut Local,
        overlay: &mut Overlay,
        call: &CallView<'_>,
        count: usize,
    ) -> Result<(), Leaving> {
        for (number, piece) in call.pieces()[..count].iter().enumerate() {
            if piece.is_done() {
                continue;
            }
            let (procedure, arguments) = self.procedure();
            let first_error = FirstError::default();
            let run = |tx: Transaction<'_>| procedure.piece(arguments, &mut Piece::new(tx, number));
            let result = self.in_transaction(local, overlay, call, &first_error, run)?;
            debug_assert!(!piece.is_done(), "a piece does not wait for itself");
            local.work.pieces += 1;
            piece.finish(&result);
        }
        Ok(())
    }
}

impl PublishNow for Call<'_, '_> {
    fn publish_written(&mut self, _: &mut Local, _: &CallView<'_>) -> Result<(), Stopped> {
        unreachable!("nothing is published in the serial part")
    }

    fn run_pieces_before(&mut self, _: &mut Local, _: Position) -> Result<bool, Stopped> {
        unreachable!("no read waits in the serial part")
    }

    fn wait_for_index_writers(&mut self, _: &mut Local, _: Position) -> Result<bool, Stopped> {
        unreachable!("an index is read at once in the serial part")
    }

    fn piece_result(
        &mut self,
        local: &mut Local,
        serial: Option<&mut Overlay>,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stop> {
        let overlay = serial.expect("a call of the serial part sees what that has written");
        self.run_pieces(local, overlay, call, number + 1).map_err(|leaving| match leaving {
            Leaving::Stopped => Stop::Stopped,
            Leaving::Failure(Failure::Aborted(abort)) => abort.into(),
            Leaving::Failure(Failure::Failed(what)) => Stop::mistake(what),
            Leaving::Failure(Failure::Deferred) => Stop::Deferred,
        })?;
        Ok(call.pieces()[number].result().expect("it was run"))
    }

    fn earlier_result(
        &mut self,
        _: &mut Local,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stopped> {
        Ok(call.pieces()[number].result().expect("pieces run in the order of their numbers"))
    }
}
