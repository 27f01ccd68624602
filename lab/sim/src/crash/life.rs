//! A life of a store: it is opened, runs epochs, and everything that it does to the device is
//! recorded.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Answer, Engine, EngineConfig, EngineError, EpochOutcome, Moment, Watch, Watcher};
use pmem::{AnyDevice, Trace, Traced};
use storage::{EpochNumber, StorageError};

use super::decide::{Came, Decision, Ended, open_deciding};
use super::points::Place;
use crate::history::model::REFUSED;
use crate::history::procedures::procedures;
use crate::history::{
    Expected, LONG, Model, Pair, Program, Setup, compare_answers, compare_hash, compare_indexes,
    serial_order,
};

/// What the oracle says of the epochs so far: the state after each, and the answers of each. The
/// first element is that of epoch 0.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) models: Vec<Arc<Model>>,
    pub(super) answers: Vec<Arc<Vec<Expected>>>,
    /// The epoch that a call has ended, if one has.
    pub(super) ended: Option<Ended>,
    /// The state after a change of the schema at the end of an epoch.
    pub(super) changed: Option<(EpochNumber, Arc<Model>)>,
    /// Whether that is the state of the newest epoch.
    pub(super) is_changed: bool,
}

impl Known {
    /// Of an empty store.
    pub(super) fn new() -> Self {
        Self {
            models: vec![Arc::default()],
            answers: vec![Arc::default()],
            ended: None,
            changed: None,
            is_changed: false,
        }
    }

    /// Without what comes after `epoch`, in one of the states that it had.
    pub(super) fn up_to(&self, epoch: EpochNumber, is_changed: bool) -> Self {
        let count = epoch.0 as usize + 1;
        let (models, answers) = (&self.models[..count], &self.answers[..count]);
        let changed = self.changed.clone().filter(|(changed, _)| *changed <= epoch);
        let ended = self.ended;
        Self { models: models.to_vec(), answers: answers.to_vec(), ended, changed, is_changed }
    }

    /// The state after an epoch, before or after the change of the schema.
    pub(super) fn state(&self, epoch: EpochNumber, is_changed: bool) -> Option<&Arc<Model>> {
        match &self.changed {
            Some((changed, model)) if is_changed && *changed == epoch => Some(model),
            _ if is_changed => None,
            _ => self.models.get(epoch.0 as usize),
        }
    }

    /// An epoch was answered.
    fn answered(&mut self, device: &Traced, model: &Model, answers: Vec<Expected>) {
        device.mark(Place::Answered(EpochNumber(model.epoch)).encode());
        self.models.push(Arc::new(model.clone()));
        self.answers.push(Arc::new(answers));
    }

    /// The newest epoch.
    pub(super) fn newest(&self) -> EpochNumber {
        EpochNumber(self.models.len() as u64 - 1)
    }
}

/// Marks where the engine is, and compares what replay answers.
pub(super) struct Watching {
    device: Arc<Traced>,
    known: Known,
    difference: Mutex<Option<String>>,
}

impl Watching {
    pub(super) fn new(device: &Arc<Traced>, known: &Known) -> Arc<Self> {
        Arc::new(Self {
            device: Arc::clone(device),
            known: known.clone(),
            difference: Mutex::default(),
        })
    }

    /// The first difference between the answers of an epoch that was replayed and the oracle's.
    pub(super) fn difference(&self) -> Option<String> {
        self.difference.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Watcher for Watching {
    fn moment(&self, epoch: EpochNumber, moment: Moment) {
        self.device.mark(Place::Epoch(epoch, moment).encode());
    }

    fn replayed(&self, outcome: &EpochOutcome) {
        let compared = match self.known.answers.get(outcome.epoch.0 as usize) {
            Some(expected) => compare_answers(outcome, expected),
            None => Err("it was never run".into()),
        };
        if let Err(what) = compared {
            let mut difference = self.difference.lock().unwrap_or_else(PoisonError::into_inner);
            difference.get_or_insert(format!("replay of epoch {}: {what}", outcome.epoch.0));
        }
    }
}

/// Opens a store that is watched.
///
/// # Errors
/// The engine's.
pub(super) fn open(
    device: &Arc<Traced>,
    setup: &Setup,
    watching: &Arc<Watching>,
) -> Result<(Engine, engine::RecoveryReport), EngineError> {
    let watch = Watch::by(Arc::clone(watching) as Arc<dyn Watcher>);
    let config = EngineConfig { watch, ..setup.config() };
    setup.open_with(&AnyDevice::of(device), config, procedures())
}

/// Changes the schema of a closed store: the table of long keys, which has values of all sizes, is
/// dropped, and made anew under its number (O-91, O-92).
///
/// # Errors
/// Any difference from the oracle.
fn change(
    device: &Arc<Traced>,
    setup: &Setup,
    mut model: Model,
    known: &mut Known,
) -> Result<(), String> {
    device.mark(Place::Changing.encode());
    model.tables[usize::from(LONG)].clear();
    known.changed = Some((EpochNumber(model.epoch), Arc::new(model.clone())));
    let engine = match setup.open_without(&AnyDevice::of(device), &["long".to_string()]) {
        Ok(engine) => engine,
        Err(error) if error.is_limit() => return Ok(()),
        Err(error) => return Err(format!("changing the schema: {error}")),
    };
    device.mark(Place::Changed.encode());
    known.is_changed = true;
    let mut pair = Pair::new(engine, model);
    pair.compare_state()?;
    compare_indexes(&mut pair.engine, &pair.model)
}

/// What is done in a life.
pub(super) struct Plan<'p> {
    pub(super) setup: &'p Setup,
    pub(super) batches: &'p [Vec<Vec<u8>>],
    pub(super) close: bool,
    /// Whether the schema is changed when the store was closed.
    pub(super) changes: bool,
    /// What is decided about an epoch that a call ends.
    pub(super) decision: Decision,
}

/// A recorded life.
pub(super) struct Life {
    pub(super) trace: Trace,
    /// With the epochs that ran.
    pub(super) known: Known,
    /// Whether a call ended it.
    pub(super) ended: bool,
    /// Epochs that ran.
    pub(super) epochs: u64,
    /// Epochs that were refused because the device was full.
    pub(super) refused: u64,
    /// Of these, the epochs for which only the log was too small.
    pub(super) refused_by_log: u64,
}

/// What became of an epoch.
enum Ran {
    Answered(Vec<Expected>),
    Refused {
        by_log: bool,
    },
    /// A call has ended it, and the engine with it. This is what it will have answered when the
    /// call is left out.
    Ended(Vec<Expected>),
}

impl Life {
    /// Lives on a device, from the newest epoch that is known.
    ///
    /// # Errors
    /// Any difference from the oracle.
    pub(super) fn record(
        device: &Arc<Traced>,
        plan: &Plan<'_>,
        known: Known,
    ) -> Result<Self, String> {
        device.record();
        let watching = Watching::new(device, &known);
        let Came { engine, .. } = open_deciding(device, plan.setup, &known, &watching)
            .map_err(|error| format!("open: {error}"))?;
        if let Some(difference) = watching.difference() {
            return Err(difference);
        }
        device.mark(Place::Opened.encode());
        let mut known = known;
        let model = known.state(known.newest(), known.is_changed).expect("it was recovered");
        let mut pair = Pair::new(engine, Model::clone(model)).with_snapshots_of(plan.setup);
        pair.compare_state()?;
        compare_indexes(&mut pair.engine, &pair.model)?;
        let (mut epochs, mut refused, mut refused_by_log) = (0, 0, 0);
        let life = |trace, known, ended, (epochs, refused, refused_by_log)| Self {
            trace,
            known,
            ended,
            epochs,
            refused,
            refused_by_log,
        };
        for batch in plan.batches {
            match run(&mut pair, batch)? {
                Ran::Refused { by_log } => {
                    refused += 1;
                    refused_by_log += u64::from(by_log);
                    if let Some(answers) = run_deferred(&mut pair)? {
                        known.answered(device, &pair.model, answers);
                        epochs += 1;
                    }
                }
                Ran::Answered(answers) => {
                    known.answered(device, &pair.model, by_position(answers, batch));
                    epochs += 1;
                }
                Ran::Ended(answers) => {
                    let answers = by_position(answers, batch);
                    let epoch = EpochNumber(pair.model.epoch);
                    known.ended = Some(Ended { epoch, decision: plan.decision });
                    known.models.push(Arc::new(pair.model));
                    known.answers.push(Arc::new(answers));
                    drop(pair.engine);
                    return Ok(life(
                        device.take_trace(),
                        known,
                        true,
                        (epochs, refused, refused_by_log),
                    ));
                }
            }
        }
        pair.end_snapshots()?;
        pair.compare_state()?;
        if plan.close {
            device.mark(Place::Closing.encode());
            let Pair { engine, model, .. } = pair;
            engine.close().map_err(|error| format!("close: {error}"))?;
            if plan.changes && model.deferred_calls.is_empty() && !known.is_changed {
                change(device, plan.setup, model, &mut known)?;
            }
        }
        Ok(life(device.take_trace(), known, false, (epochs, refused, refused_by_log)))
    }
}

/// Answers by number, in serial order: replay knows no other.
fn by_position(answers: Vec<Expected>, batch: &[Vec<u8>]) -> Vec<Expected> {
    let order = serial_order(answers.len() - batch.len(), batch);
    order.into_iter().map(|number| answers[number].clone()).collect()
}

/// Runs deferred calls, of which there may be some, in an epoch of their own, because there was no
/// room for them with others. `None` if there is none for one of them either.
fn run_deferred(pair: &mut Pair) -> Result<Option<Vec<Expected>>, String> {
    if pair.model.deferred_calls.is_empty() {
        return Ok(None);
    }
    let info = crate::history::info(pair.model.epoch + 1);
    let outcome = match pair.engine.run_deferred(info) {
        Err(error) if error.is_limit() => return Ok(None),
        outcome => outcome.map_err(|error| format!("deferred calls: {error}"))?,
    };
    let is_refused = matches!(outcome.answer(0), Answer::Failed(why) if why.contains(REFUSED));
    let expected = pair.model.run_deferred(outcome.len(), is_refused, info.timestamp_ns);
    compare(pair, &outcome, &expected)?;
    Ok(Some(expected))
}

/// Compares everything that an epoch came to.
fn compare(pair: &mut Pair, outcome: &EpochOutcome, expected: &[Expected]) -> Result<(), String> {
    compare_answers(outcome, expected)
        .map_err(|difference| format!("epoch {}: {difference}", outcome.epoch.0))?;
    compare_hash(outcome, &pair.engine, &pair.model)?;
    pair.look_behind()
}

/// Runs an epoch, if the device has room for it.
fn run(pair: &mut Pair, batch: &[Vec<u8>]) -> Result<Ran, String> {
    let before = pair.model.clone();
    let info = crate::history::info(before.epoch + 1);
    let calls = crate::history::to_calls(batch);
    pair.vary_workers();
    let outcome = match pair.engine.run_epoch(&calls, info) {
        Err(error) if error.is_limit() => {
            let by_log = matches!(error, EngineError::Storage(StorageError::Log(_)));
            return Ok(Ran::Refused { by_log });
        }
        Err(EngineError::Poisoned(_))
            if batch.iter().any(|call| Program::decode(call).is_fatal()) =>
        {
            return Ok(Ran::Ended(pair.model.run(batch, info.timestamp_ns)));
        }
        outcome => outcome.map_err(|error| format!("epoch {}: {error}", before.epoch + 1))?,
    };
    let expected = pair.model.run(batch, info.timestamp_ns);
    if outcome.epoch.0 != pair.model.epoch || outcome.deferred_in != before.deferred_calls.len() {
        return Err(format!(
            "epoch {} deferred {} in, expected epoch {} and {}",
            outcome.epoch.0,
            outcome.deferred_in,
            pair.model.epoch,
            before.deferred_calls.len()
        ));
    }
    compare(pair, &outcome, &expected)?;
    Ok(Ran::Answered(expected))
}
