//! Power cuts: a history runs on a device that records it. For its events, each of several images
//! that a power cut there may leave is recovered. The state must be that of the committed
//! transactions up to one that lies between the last that was answered and the last that began to
//! commit; no memory may be lost; and the engine must go on. Some images lose their power once more
//! in recovery.

use std::sync::Arc;

use pmem::{
    Adversary, AllNewest, AllOldest, EventKind, OneLineEarly, OneLineLate, Random, Replay, Trace,
    Traced,
};

use super::history::{
    Change, State, Transaction, apply, apply_to_model, history, options, schema, state_of,
    with_indexes,
};
use crate::engines::Engine;
use crate::options::Fault;
use crate::{Cow, Inp, Key, Log, NvmCow, NvmInp, NvmLog, Partition};

const IMAGE_BYTES: u64 = 8 << 20;
/// Added to the number of a transaction in the mark of its commit's beginning.
const BEGINS: u64 = 1 << 32;

fn device() -> Traced {
    pmem::small_pages_only();
    Traced::new(IMAGE_BYTES, 0).unwrap()
}

/// A recorded history, and the states after each number of commits.
struct Recorded {
    trace: Trace,
    states: Vec<State>,
}

fn record<E: Engine<Traced>>(seed: u64, transactions: usize, fault: Option<Fault>) -> Recorded {
    let device = Arc::new(device());
    let options = options(fault);
    let mut partition =
        Partition::<_, E>::create(Arc::clone(&device), &schema(), &options).unwrap();
    let mut states = vec![State::new()];
    device.record();
    for transaction in history(seed, transactions, 9) {
        let mut state = states.last().expect("the first").clone();
        apply_to_model(&transaction, &mut state);
        apply(&transaction, &mut partition).unwrap();
        if transaction.aborts {
            partition.abort().unwrap();
            continue;
        }
        states.push(state);
        device.mark(BEGINS + states.len() as u64 - 1);
        partition.commit().unwrap();
        device.mark(partition.engine().durable());
    }
    partition.flush().unwrap();
    device.mark(partition.engine().durable());
    let states = states.iter().map(with_indexes).collect();
    Recorded { trace: device.take_trace(), states }
}

/// As [`check`]; a panic is a failure, too.
fn check_or_panic<E: Engine<Traced>>(
    device: &Arc<Traced>,
    states: &[State],
    answered: usize,
    begun: usize,
) -> Result<(), String> {
    let run = || check::<E>(device, states, answered, begun);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    ended.unwrap_or_else(|_| Err("a panic".into()))
}

/// Opens what a power cut left, and holds it against the states from `answered` to `begun`.
fn check<E: Engine<Traced>>(
    device: &Arc<Traced>,
    states: &[State],
    answered: usize,
    begun: usize,
) -> Result<(), String> {
    let said = |e: crate::Error| e.to_string();
    let opened = Partition::<_, E>::open(Arc::clone(device), &schema(), &options(None));
    let (mut partition, _) = opened.map_err(said)?;
    let state = state_of(&mut partition).map_err(said)?;
    if !states[answered..=begun].contains(&state) {
        return Err(format!("no state of {answered} to {begun} commits: {state:?}"));
    }
    let lost = partition.engine_mut().lost_slots().map_err(said)?;
    if lost != 0 {
        return Err(format!("{lost} slots are lost or free in use"));
    }
    let row = vec![7u64.to_le_bytes().to_vec(), vec![1; 33], vec![2; 3]];
    let change = (0, Key::of_u64(1 << 40), Change::Insert(row));
    let more = Transaction { changes: vec![change], aborts: false };
    apply(&more, &mut partition).map_err(said)?;
    partition.commit().map_err(said)?;
    partition.flush().map_err(said)?;
    let count = state_of(&mut partition).map_err(said)?.len();
    match count == state.len() + 2 {
        true => Ok(()),
        false => Err(format!("{count} tuples after an insert into {}", state.len())),
    }
}

/// The adversaries at an event.
fn adversaries(event: u64, lines: u64, seeds: u64) -> Vec<Box<dyn Adversary>> {
    let mut all: Vec<Box<dyn Adversary>> = vec![Box::new(AllOldest), Box::new(AllNewest)];
    if lines > 0 {
        all.push(Box::new(OneLineEarly(event % lines)));
        all.push(Box::new(OneLineLate((event / 2) % lines)));
    }
    all.extend((0..seeds).map(|seed| Box::new(Random::new(seed << 32 | event)) as _));
    all
}

/// Cuts the power at one of `every` events; how many images were recovered.
fn explore<E: Engine<Traced>>(
    recorded: &Recorded,
    every: usize,
    seeds: u64,
) -> Result<usize, String> {
    let mut replay = Replay::new(&recorded.trace, device());
    let (mut answered, mut begun, mut images) = (0, 0, 0);
    let mut seen = std::collections::HashSet::new();
    loop {
        let event = replay.position();
        if event.is_multiple_of(every) {
            for mut adversary in adversaries(event as u64, replay.undurable_lines(), seeds) {
                let left = replay.left(adversary.as_mut());
                if !seen.insert((left.hash(), answered, begun)) {
                    continue;
                }
                let device = replay.load(&left);
                let failed = |e| format!("{} at event {event}: {e}", E::NAME);
                images += 1;
                if images % 16 == 0 {
                    twice::<E>(device, &recorded.states, answered, begun).map_err(failed)?;
                } else {
                    let states = &recorded.states;
                    check_or_panic::<E>(device, states, answered, begun).map_err(failed)?;
                }
            }
        }
        match replay.step() {
            None => return Ok(images),
            Some(event) if event.kind == EventKind::Mark && event.offset >= BEGINS => {
                begun = (event.offset - BEGINS) as usize;
            }
            Some(event) if event.kind == EventKind::Mark => answered = event.offset as usize,
            Some(_) => {}
        }
    }
}

/// Loses the power once more, in recovery.
fn twice<E: Engine<Traced>>(
    device: &Arc<Traced>,
    states: &[State],
    answered: usize,
    begun: usize,
) -> Result<(), String> {
    device.record();
    let opened = E::open(Arc::clone(device), &schema(), &options(None));
    drop(opened.map_err(|e| e.to_string())?);
    let trace = device.take_trace();
    let mut replay = Replay::new(&trace, self::device());
    let every = trace.events().len() / 7 + 1;
    loop {
        let event = replay.position();
        if event.is_multiple_of(every) {
            let left = replay.left(&mut Random::new(event as u64));
            check::<E>(replay.load(&left), states, answered, begun)
                .map_err(|e| format!("in recovery, at event {event}: {e}"))?;
        }
        if replay.step().is_none() {
            return Ok(());
        }
    }
}

/// With `NVCARACAL_ARULRAJ_CUTS=every` at every event, which takes minutes.
fn survives<E: Engine<Traced>>() {
    let is_thorough = std::env::var("NVCARACAL_ARULRAJ_CUTS").is_ok_and(|cuts| cuts == "every");
    let (every, seeds, histories) = if is_thorough { (1, 3, 4) } else { (5, 1, 2) };
    for seed in 0..histories {
        let recorded = record::<E>(seed, 30, None);
        let images = explore::<E>(&recorded, every, seeds).unwrap_or_else(|e| panic!("{e}"));
        assert!(images > 50, "{images} images are too few to mean anything");
    }
}

/// Whether power cuts find a fault.
fn is_found<E: Engine<Traced>>(fault: Fault) {
    let found = (0..4).find_map(|seed| {
        let recorded = record::<E>(seed, 30, Some(fault));
        explore::<E>(&recorded, 1, 3).err()
    });
    assert!(found.is_some(), "{} with {fault:?} passes", E::NAME);
}

#[test]
fn inp_survives_power_cuts() {
    survives::<Inp<Traced>>();
}

#[test]
fn nvm_inp_survives_power_cuts() {
    survives::<NvmInp<Traced>>();
}

#[test]
fn cow_survives_power_cuts() {
    survives::<Cow<Traced>>();
}

#[test]
fn nvm_cow_survives_power_cuts() {
    survives::<NvmCow<Traced>>();
}

#[test]
fn log_survives_power_cuts() {
    survives::<Log<Traced>>();
}

#[test]
fn nvm_log_survives_power_cuts() {
    survives::<NvmLog<Traced>>();
}

#[test]
fn power_cuts_find_faults_of_inp() {
    is_found::<Inp<Traced>>(Fault::AnswerBeforeSync);
    is_found::<Inp<Traced>>(Fault::CutEarly);
}

#[test]
fn power_cuts_find_faults_of_nvm_inp() {
    is_found::<NvmInp<Traced>>(Fault::PersistBeforeLog);
    is_found::<NvmInp<Traced>>(Fault::ChangeBeforeLog);
}

#[test]
fn power_cuts_find_faults_of_cow() {
    is_found::<Cow<Traced>>(Fault::MasterFirst);
    is_found::<Cow<Traced>>(Fault::EarlyReuse);
}

#[test]
fn power_cuts_find_faults_of_nvm_cow() {
    is_found::<NvmCow<Traced>>(Fault::MasterFirst);
    is_found::<NvmCow<Traced>>(Fault::EarlyReuse);
}

#[test]
fn power_cuts_find_faults_of_log() {
    is_found::<Log<Traced>>(Fault::AnswerBeforeSync);
    is_found::<Log<Traced>>(Fault::CutEarly);
}

#[test]
fn power_cuts_find_faults_of_nvm_log() {
    is_found::<NvmLog<Traced>>(Fault::PersistBeforeLog);
    is_found::<NvmLog<Traced>>(Fault::ChangeBeforeLog);
    is_found::<NvmLog<Traced>>(Fault::MasterFirst);
}
