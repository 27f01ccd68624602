//! Power cuts: a small history runs on a device that records it. Then, for many of its events, each
//! of several images that a power cut there may leave is recovered and held against the serial
//! oracle: every call that was answered by then is there, no call that had not begun, and of those
//! in between each whole or not at all, so that all their answers are those of a serial execution.
//! Some images lose their power once more while they are recovered. On every image the calls that
//! are missing then run after all, and the store is recovered once more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pmem::{
    Adversary, AllNewest, AllOldest, EventKind, OneLineEarly, OneLineLate, Random, Replay, Trace,
    Traced,
};
use workloads::Workload;
use workloads::digest::state_digest;
use workloads::oracle::Oracle;
use workloads::smallbank::{SmallBank, SmallBankSettings};

use super::scramble::Scramble;
use super::support::{smallbank, tpcc, updates, ycsb};
use crate::check::{compare_states, replay};
use crate::rival::Fault;
use crate::run::calls::on_workers;
use crate::{
    Answered, Calls, Dbx, DbxDisk, DbxNaive, DbxNvm, DbxSyncDisk, Dbxn, DbxnLines, DbxnNvm,
    DbxnParity, DbxnPastCache, Options, Pisces, Procedures, Rival, RivalView, Session, Wbl, Zen,
    ZenMvcc, load,
};

const IMAGE_BYTES: u64 = 64 << 20;
const LOG_BYTES: u64 = 16 << 20;
/// Added to the number of a call in the mark of its beginning.
pub(super) const BEGINS: u64 = 1 << 32;

/// One of so many images loses its power once more in recovery ...
const RECOVERIES: usize = 32;
/// ... at one of so many events.
const CUTS_OF_RECOVERY: usize = 3;

/// A recorded history.
pub(super) struct History {
    pub(super) trace: Trace,
    pub(super) calls: Calls,
    /// By call.
    pub(super) answered: Vec<Answered>,
    pub(super) options: Options,
}

/// How to explore.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Events between two power cuts.
    pub(super) every: usize,
    /// Random adversaries at each.
    pub(super) seeds: u64,
}

/// Which sets of calls may survive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Survivors {
    /// All that were answered, and any of those that had begun.
    Any,
    /// The first ones of the serial order.
    Prefix,
}

pub(super) fn device() -> Traced {
    pmem::small_pages_only();
    Traced::new(IMAGE_BYTES, LOG_BYTES).unwrap()
}

pub(super) fn options(workers: usize, fault: Option<Fault>) -> Options {
    let page_bytes = 8 << 10;
    Options { page_bytes, group_calls: 3, group_us: 0, fault, ..Options::new(workers) }
}

/// Runs calls and records what reaches the device. With a script one thread runs them, each by the
/// worker that the script names; without, every worker has a thread and runs its share.
pub(super) fn record<R: Rival<Device = Traced>, W: Workload>(
    workload: &W,
    calls: u64,
    options: Options,
    script: Option<&dyn Fn(usize) -> usize>,
) -> History {
    let device = Arc::new(device());
    let rival = R::create(Arc::clone(&device), &workload.tables(), &options).unwrap();
    load(&rival, workload, 1).unwrap();
    let mut procedures = Procedures::default();
    workload.register(&mut procedures);
    let calls = Calls::of_stream(workload, 0..calls);
    device.record();
    let run =
        |worker: usize, session: &mut R::Session, numbers: &mut dyn Iterator<Item = usize>| {
            let (mut output, mut answered, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
            for call in numbers {
                device.mark(BEGINS + call as u64);
                let (procedure, args) = calls.get(call);
                let done = procedures.run(session, procedure, args, &mut output)?;
                answered.push(Answered::new(call, &done, &output));
                waiting.push((done.serial, call));
                // Groups of a thread of their own are of no order that is known here: few calls
                // are in them.
                if R::NAME.starts_with("dbx") && waiting.len() == 2 {
                    session.finish()?;
                }
                answer(&device, session.durable(), &mut waiting);
            }
            let _ = worker;
            Ok((answered, waiting))
        };
    let mut answered: Vec<Answered> = if let Some(script) = script {
        let mut sessions: Vec<_> = (0..options.workers).map(|w| rival.session(w)).collect();
        let all = 0..calls.len();
        all.flat_map(|call| {
            let worker = script(call);
            let ran = run(worker, &mut sessions[worker], &mut std::iter::once(call));
            let ran: crate::Result<_> = ran;
            ran.unwrap().0
        })
        .collect()
    } else {
        let parts = on_workers(options.workers, |worker| {
            let mut session = rival.session(worker);
            let mut numbers = (worker..calls.len()).step_by(options.workers);
            let (answered, mut waiting) = run(worker, &mut session, &mut numbers)?;
            session.finish()?;
            answer(&device, session.durable(), &mut waiting);
            Ok(answered)
        });
        parts.unwrap().into_iter().flatten().collect()
    };
    answered.sort_unstable_by_key(|answered| answered.call);
    History { trace: device.take_trace(), calls, answered, options }
}

/// Marks the calls that may be answered now.
fn answer(device: &Traced, durable: u64, waiting: &mut Vec<(u64, usize)>) {
    waiting.retain(|(serial, call)| {
        if *serial <= durable {
            device.mark(*call as u64);
        }
        *serial > durable
    });
}

/// The states that sets of calls come to.
struct States<'h, W> {
    workload: &'h W,
    history: &'h History,
    /// By set of calls; `None` where no serial execution of the set gives its answers.
    known: HashMap<u64, Option<u128>>,
}

impl<W: Workload> States<'_, W> {
    /// The oracle after a set of calls, if their answers are right.
    fn after(&self, set: u64) -> Option<Oracle> {
        let mut oracle = Oracle::loaded(self.workload);
        let mut members: Vec<&Answered> =
            self.history.answered.iter().filter(|a| set >> a.call & 1 == 1).collect();
        members.sort_unstable_by_key(|answered| answered.serial);
        let mut all = members.into_iter();
        all.all(|a| replay(&mut oracle, &self.history.calls, a).is_ok()).then_some(oracle)
    }

    fn digest(&mut self, set: u64) -> Option<u128> {
        if let Some(known) = self.known.get(&set) {
            return *known;
        }
        let oracle = self.after(set);
        let digest = oracle.map(|oracle| state_digest(&self.workload.tables(), &oracle));
        self.known.insert(set, digest);
        digest
    }

    /// A set of calls with this state that contains the answered ones and none that had not begun.
    fn find(&mut self, digest: u128, (begun, answered): (u64, u64), by: Survivors) -> Option<u64> {
        let mut maybe: Vec<&Answered> = self
            .history
            .answered
            .iter()
            .filter(|a| (begun & !answered) >> a.call & 1 == 1)
            .collect();
        maybe.sort_unstable_by_key(|answered| answered.serial);
        let maybe: Vec<u64> = maybe.iter().map(|answered| 1 << answered.call).collect();
        let choices = if by == Survivors::Any { 1_u64 << maybe.len() } else { 0 };
        assert!(choices <= 1 << 10, "{} calls are neither answered nor unknown", maybe.len());
        let sets: Vec<u64> = match by {
            Survivors::Any => (0..choices)
                .map(|choice| {
                    let chosen = maybe.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1);
                    chosen.fold(answered, |set, (_, call)| set | call)
                })
                .collect(),
            Survivors::Prefix => (0..=maybe.len())
                .map(|count| maybe[..count].iter().fold(answered, |set, call| set | call))
                .collect(),
        };
        sets.into_iter().find(|set| self.digest(*set) == Some(digest))
    }
}

/// Explores power cuts of a history. How many images were looked at.
pub(super) fn explore<R: Rival<Device = Traced>, W: Workload>(
    workload: &W,
    history: &History,
    extent: Extent,
    by: Survivors,
) -> Result<usize, String> {
    let mut states = States { workload, history, known: HashMap::new() };
    let mut cut = Replay::new(&history.trace, device());
    let mut seen = HashSet::new();
    let mut calls = (0_u64, 0_u64);
    loop {
        if cut.position().is_multiple_of(extent.every) {
            let lines = cut.undurable_lines();
            let mut adversaries: Vec<Box<dyn Adversary>> =
                vec![Box::new(AllOldest), Box::new(AllNewest)];
            for seed in 0..extent.seeds {
                let mixed = cut.position() as u64 * 31 + seed;
                adversaries.push(Box::new(Random::new(mixed)));
                if lines > 0 {
                    adversaries.push(Box::new(OneLineLate(mixed % lines)));
                    adversaries.push(Box::new(OneLineEarly(mixed % lines)));
                }
            }
            for adversary in &mut adversaries {
                let left = cut.left(adversary.as_mut());
                if seen.insert((left.hash(), calls)) {
                    let at = cut.position();
                    if seen.len() % RECOVERIES == 1 {
                        cut_recovery::<R, W>(cut.load(&left), &mut states, calls, by)
                            .map_err(|e| format!("power cut at event {at}, then {e}"))?;
                    }
                    recover::<R, W>(cut.load(&left), &mut states, calls, by)
                        .map_err(|e| format!("power cut at event {at}: {e}"))?;
                }
            }
        }
        let Some(event) = cut.step() else { return Ok(seen.len()) };
        match event.kind {
            EventKind::Mark if event.offset >= BEGINS => calls.0 |= 1 << (event.offset - BEGINS),
            EventKind::Mark => calls.1 |= 1 << event.offset,
            _ => {}
        }
    }
}

/// Cuts the power again in the recovery of an image, and recovers what is left then.
fn cut_recovery<R: Rival<Device = Traced>, W: Workload>(
    image: &Arc<Traced>,
    states: &mut States<'_, W>,
    calls: (u64, u64),
    by: Survivors,
) -> Result<(), String> {
    let tables = states.workload.tables();
    image.record();
    R::open(Arc::clone(image), &tables, &states.history.options).map_err(|e| e.to_string())?;
    let trace = image.take_trace();
    let mut cut = Replay::new(&trace, device());
    loop {
        if cut.position() % CUTS_OF_RECOVERY == 0 || cut.position() == trace.events().len() {
            let mixed = cut.position() as u64 + 1;
            for adversary in [&mut AllOldest as &mut dyn Adversary, &mut Random::new(mixed)] {
                let left = cut.left(adversary);
                recover::<R, W>(cut.load(&left), states, calls, by)
                    .map_err(|e| format!("at event {} of recovery: {e}", cut.position()))?;
            }
        }
        if cut.step().is_none() {
            return Ok(());
        }
    }
}

/// Recovers an image, checks it, runs what is missing, and recovers again.
fn recover<R: Rival<Device = Traced>, W: Workload>(
    image: &Arc<Traced>,
    states: &mut States<'_, W>,
    calls: (u64, u64),
    by: Survivors,
) -> Result<(), String> {
    let (workload, history) = (states.workload, states.history);
    let tables = workload.tables();
    let open = || R::open(Arc::clone(image), &tables, &history.options).map_err(|e| e.to_string());
    let (rival, _) = open()?;
    let digest = state_digest(&tables, &RivalView(&rival));
    let Some(survivors) = states.find(digest, calls, by) else {
        let (begun, answered) = calls;
        let show = |set| match states.after(set) {
            Some(oracle) => compare_states(workload, &oracle, &RivalView(&rival)),
            None => Err("its answers are not those of a serial execution".into()),
        };
        return Err(format!(
            "no set of calls has this state: begun {begun:b}, which gives {:?}; answered \
             {answered:b}, which gives {:?}",
            show(begun),
            show(answered)
        ));
    };
    let mut oracle = states.after(survivors).expect("it was found");
    let mut procedures = Procedures::default();
    workload.register(&mut procedures);
    let mut session = rival.session(0);
    let mut output = Vec::new();
    for call in (0..history.calls.len()).filter(|call| survivors >> call & 1 == 0) {
        let (procedure, args) = history.calls.get(call);
        let done = procedures.run(&mut session, procedure, args, &mut output);
        let done = done.map_err(|e| e.to_string())?;
        let answered = Answered::new(call, &done, &output);
        replay(&mut oracle, &history.calls, &answered)?;
    }
    session.finish().map_err(|e| e.to_string())?;
    drop(session);
    drop(rival);
    let (rival, _) = open()?;
    compare_states(workload, &oracle, &RivalView(&rival))
}

/// Records and explores on all numbers of workers.
fn survives<R: Rival<Device = Traced>, W: Workload>(
    workload: &W,
    calls: u64,
    extent: Extent,
    by: Survivors,
) {
    for workers in [1, 2, 4] {
        let history = record::<R, W>(workload, calls, options(workers, None), None);
        let images = explore::<R, W>(workload, &history, extent, by);
        let images = images.unwrap_or_else(|e| panic!("{workers} workers: {e}"));
        assert!(images > 20, "{images} images are too few to mean anything");
    }
}

/// Whether all is looked at, which takes minutes, and not a sample.
pub(super) fn is_thorough() -> bool {
    std::env::var("NVCARACAL_RIVAL_CUTS").is_ok_and(|cuts| cuts == "every")
}

/// All workloads, at one event of `thinning` of what a thorough test looks at.
fn survives_all<R: Rival<Device = Traced>>(by: Survivors, thinning: usize) {
    let (thinning, seeds) = if is_thorough() { (1, 3) } else { (thinning, 1) };
    survives::<R, _>(&ycsb(40, false), 16, Extent { every: thinning, seeds }, by);
    survives::<R, _>(&smallbank(20), 40, Extent { every: thinning.div_ceil(5), seeds }, by);
    survives::<R, _>(&Scramble { seed: 5 }, 60, Extent { every: thinning, seeds }, by);
    survives::<R, _>(&tpcc(), 20, Extent { every: (40 * thinning).min(700), seeds }, by);
}

#[test]
fn zen_survives_power_cuts() {
    survives_all::<Zen<Traced>>(Survivors::Any, 23);
}

#[test]
fn zen_with_snapshots_survives_power_cuts() {
    survives_all::<ZenMvcc<Traced>>(Survivors::Any, 37);
}

#[test]
fn wbl_survives_power_cuts() {
    survives_all::<Wbl<Traced>>(Survivors::Prefix, 23);
}

/// All workloads, of an engine with a redo log: it has few events, and each counts.
fn redo_log_survives<R: Rival<Device = Traced>>() {
    let every = |seeds| Extent { every: 1, seeds };
    survives::<R, _>(&ycsb(40, false), 20, every(3), Survivors::Any);
    survives::<R, _>(&smallbank(20), 40, every(1), Survivors::Any);
    survives::<R, _>(&Scramble { seed: 5 }, 60, every(1), Survivors::Any);
    survives::<R, _>(&tpcc(), 20, every(1), Survivors::Any);
}

#[test]
fn dbx_with_groups_survives_power_cuts() {
    redo_log_survives::<Dbx<Traced, DbxNvm>>();
}

#[test]
fn dbx_with_logs_under_locks_survives_power_cuts() {
    survives_all::<Dbx<Traced, DbxNaive>>(Survivors::Any, 37);
}

#[test]
fn dbxn_survives_power_cuts() {
    redo_log_survives::<Dbx<Traced, Dbxn>>();
}

#[test]
fn the_steps_of_dbxn_survive_power_cuts() {
    let extent = Extent { every: 3, seeds: 1 };
    survives::<Dbx<Traced, DbxnParity>, _>(&smallbank(20), 40, extent, Survivors::Any);
    survives::<Dbx<Traced, DbxnLines>, _>(&smallbank(20), 40, extent, Survivors::Any);
    survives::<Dbx<Traced, DbxnPastCache>, _>(&smallbank(20), 40, extent, Survivors::Any);
    survives::<Dbx<Traced, DbxnNvm>, _>(&smallbank(20), 40, extent, Survivors::Any);
    survives::<Dbx<Traced, DbxDisk>, _>(&smallbank(20), 40, extent, Survivors::Any);
    survives::<Dbx<Traced, DbxSyncDisk>, _>(&smallbank(20), 40, extent, Survivors::Any);
}

/// With one worker a snapshot is what the call before left; with more, calls that read what they
/// write only are serializable, in the order of their commits, and the serial oracle can tell.
#[test]
fn pisces_survives_power_cuts() {
    let every = Extent { every: 5, seeds: 1 };
    let some = Extent { every: 17, seeds: 1 };
    let alone = |images: Result<usize, String>| assert!(images.unwrap() > 20);
    fn on_one<W: Workload>(workload: &W, calls: u64, extent: Extent) -> Result<usize, String> {
        let history = record::<Dbx<Traced, Pisces>, _>(workload, calls, options(1, None), None);
        explore::<Dbx<Traced, Pisces>, _>(workload, &history, extent, Survivors::Any)
    }
    alone(on_one(&ycsb(40, false), 20, every));
    alone(on_one(&smallbank(20), 40, every));
    alone(on_one(&Scramble { seed: 5 }, 60, some));
    alone(on_one(&tpcc(), 20, Extent { every: 121, seeds: 1 }));
    survives::<Dbx<Traced, Pisces>, _>(&updates(), 20, some, Survivors::Any);
}

/// A worker commits a call of three writes and then no more, while the other reuses slots: the mark
/// of the first must stay, though the row with it is written again.
fn one_rests(fault: Option<Fault>) -> Result<usize, String> {
    const AMALGAMATE: u16 = 3;
    let mut images = 0;
    for seed in 0..4 {
        let settings = SmallBankSettings { hot_customers: 10, seed, ..SmallBankSettings::low(20) };
        let workload = SmallBank::new(settings).unwrap();
        let calls = Calls::of_stream(&workload, 0..60);
        for call in (0..20).filter(|call| calls.get(*call).0 == AMALGAMATE) {
            let script = |other| usize::from(other != call);
            let history = record::<Zen<Traced>, _>(&workload, 60, options(2, fault), Some(&script));
            let extent = Extent { every: 10, seeds: 0 };
            images += explore::<Zen<Traced>, _>(&workload, &history, extent, Survivors::Any)?;
        }
    }
    Ok(images)
}

#[test]
fn zen_keeps_the_mark_of_a_worker_that_rests() {
    one_rests(None).unwrap();
}

#[test]
fn power_cuts_find_a_mark_that_is_overwritten() {
    let error = one_rests(Some(Fault::EarlyReuse)).unwrap_err();
    assert!(error.contains("no set of calls"), "{error}");
}

/// Whether power cuts find a fault that was injected into an engine.
pub(super) fn is_found<R: Rival<Device = Traced>>(fault: Fault, by: Survivors) {
    let workload = ycsb(40, false);
    let history = record::<R, _>(&workload, 8, options(1, Some(fault)), None);
    let found = explore::<R, _>(&workload, &history, Extent { every: 1, seeds: 4 }, by);
    let error = found.unwrap_err();
    assert!(error.contains("no set of calls") || error.contains("impossible"), "{error}");
}

#[test]
fn power_cuts_find_a_missing_fence() {
    is_found::<Zen<Traced>>(Fault::NoFenceBeforeMark, Survivors::Any);
    is_found::<Wbl<Traced>>(Fault::NoFenceBeforeMark, Survivors::Prefix);
}

#[test]
fn power_cuts_find_log_records_that_are_torn() {
    is_found::<Dbx<Traced, Dbxn>>(Fault::NoChecksum, Survivors::Any);
    is_found::<Dbx<Traced, DbxNaive>>(Fault::NoChecksum, Survivors::Any);
    is_found::<Dbx<Traced, DbxNvm>>(Fault::NoChecksum, Survivors::Any);
    is_found::<Dbx<Traced, DbxnLines>>(Fault::NoChecksum, Survivors::Any);
    is_found::<Dbx<Traced, DbxnPastCache>>(Fault::NoChecksum, Survivors::Any);
    is_found::<Dbx<Traced, DbxnNvm>>(Fault::NoChecksum, Survivors::Any);
    is_found::<Dbx<Traced, Pisces>>(Fault::NoChecksum, Survivors::Any);
}

#[test]
fn power_cuts_find_a_slot_that_wbl_reuses_too_early() {
    is_found::<Wbl<Traced>>(Fault::EarlyReuse, Survivors::Prefix);
}
