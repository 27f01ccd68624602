//! What only the DBX family has: a transaction comes in between the steps of another one's commit;
//! the log is bounded; and what each design writes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use pmem::{Counters, Dram, Traced};
use workloads::{TableId, Visit, Workload};

use super::crash::{
    BEGINS, Extent, History, Survivors, device, explore, is_thorough, options, record,
};
use super::support::{dram, smallbank, tpcc, updates, verified, ycsb};
use crate::rival::{AtPhase, Fault, Phase};
use crate::{
    Accesses, Answered, Calls, Counts, Dbx, DbxDisk, DbxDram, DbxNaive, DbxNvm, DbxSyncDisk, Dbxn,
    DbxnLines, DbxnNvm, DbxnParity, DbxnPastCache, Error, Pisces, Procedures, RegionCounts, Report,
    Result, Rival, Session, Settings, Stop, load, run,
};

/// A session that fails where others are in its way, in place of waiting for them.
struct Once<S>(S);

fn once<T>(ended: Result<T, Stop>) -> Result<T, Stop> {
    ended.map_err(|stop| match stop {
        Stop::Conflict => Stop::Failed(Error::Broken("another one is in the way".into())),
        other => other,
    })
}

impl<S: Session> Accesses for Once<S> {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        once(self.0.get(table, key))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        once(self.0.scan(table, low, high, descending, each))
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        once(self.0.insert(table, key, value))
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        once(self.0.update(table, key, value))
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        once(self.0.modify(table, key, change))
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        once(self.0.modify_part(table, key, part, change))
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        once(self.0.delete(table, key))
    }
}

impl<S: Session> Session for Once<S> {
    fn begin(&mut self) {
        self.0.begin();
    }

    fn commit(&mut self) -> Result<u64, Stop> {
        once(self.0.commit())
    }

    fn give_up(&mut self) -> Result<u64, Stop> {
        once(self.0.give_up())
    }

    fn roll_back(&mut self) {
        self.0.roll_back();
    }

    fn snapshot(&self) -> Option<u64> {
        self.0.snapshot()
    }

    fn durable(&self) -> u64 {
        self.0.durable()
    }

    fn finish(&mut self) -> Result<()> {
        self.0.finish()
    }

    fn take_counters(&mut self) -> Counters {
        self.0.take_counters()
    }

    fn count(&self) -> Counts {
        self.0.count()
    }
}

/// The one that comes in between.
struct Between<S: Session> {
    session: Once<S>,
    procedures: Procedures<Once<S>>,
    calls: Calls,
    device: Arc<Traced>,
    /// The call that it makes next.
    call: Option<usize>,
    answered: Vec<Answered>,
    /// How often it could not commit.
    conflicts: usize,
}

impl<S: Session> Between<S> {
    /// Makes its call, if others let it.
    fn act(&mut self) {
        let Some(call) = self.call else { return };
        self.device.mark(BEGINS + call as u64);
        let (procedure, args) = self.calls.get(call);
        let mut output = Vec::new();
        match self.procedures.run(&mut self.session, procedure, args, &mut output) {
            Ok(done) => {
                self.answered.push(Answered::new(call, &done, &output));
                self.device.mark(call as u64);
                self.call = None;
            }
            Err(_) => self.conflicts += 1,
        }
    }
}

/// Worker 0 makes every other call; where its commit is at `phase` worker 1 makes the next one, or
/// tries to. How often it could not.
pub(super) fn interleaved<R: Rival<Device = Traced>, W: Workload>(
    workload: &W,
    phase: Phase,
    fault: Option<Fault>,
) -> (History, usize) {
    let device = Arc::new(device());
    let between: Arc<Mutex<Option<Between<R::Session>>>> = Arc::default();
    let mut options = options(2, fault);
    let acting = Arc::clone(&between);
    options.at_phase = Some(AtPhase(Arc::new(move |at| {
        // It is not there while it acts, so that it does not come in between itself.
        let one = (at == phase).then(|| crate::lock(&acting).take()).flatten();
        if let Some(mut one) = one {
            one.act();
            *crate::lock(&acting) = Some(one);
        }
    })));
    let rival = R::create(Arc::clone(&device), &workload.tables(), &options).unwrap();
    load(&rival, workload, 1).unwrap();
    let calls = Calls::of_stream(workload, 0..40);
    let mut procedures = Procedures::default();
    workload.register(&mut procedures);
    let mut of_between = Procedures::default();
    workload.register(&mut of_between);
    *crate::lock(&between) = Some(Between {
        session: Once(rival.session(1)),
        procedures: of_between,
        calls: calls.clone(),
        device: Arc::clone(&device),
        call: None,
        answered: Vec::new(),
        conflicts: 0,
    });
    device.record();
    let (mut session, mut output, mut answered) = (rival.session(0), Vec::new(), Vec::new());
    for call in (0..calls.len()).step_by(2) {
        crate::lock(&between).as_mut().unwrap().call = Some(call + 1);
        device.mark(BEGINS + call as u64);
        let (procedure, args) = calls.get(call);
        let done = procedures.run(&mut session, procedure, args, &mut output).unwrap();
        answered.push(Answered::new(call, &done, &output));
        device.mark(call as u64);
        // What was in its way is not there any more.
        let mut one = crate::lock(&between).take().unwrap();
        one.act();
        *crate::lock(&between) = Some(one);
    }
    let one = crate::lock(&between).take().unwrap();
    answered.extend(one.answered);
    answered.sort_unstable_by_key(|answered| answered.call);
    options.at_phase = None;
    (History { trace: device.take_trace(), calls, answered, options }, one.conflicts)
}

fn explore_interleaved(phase: Phase, fault: Option<Fault>) -> Result<usize, String> {
    let workload = updates();
    let (mut history, conflicts) = interleaved::<Dbx<Traced, Dbxn>, _>(&workload, phase, fault);
    history.options.fault = None;
    let is_seen = fault.is_none() && phase == Phase::Installed;
    assert!(!is_seen || conflicts > 3, "{conflicts} calls are too few to mean anything");
    explore::<Dbx<Traced, Dbxn>, _>(
        &workload,
        &history,
        Extent { every: 1, seeds: 1 },
        Survivors::Any,
    )
}

#[test]
fn who_reads_what_is_not_durable_cannot_commit_before_it() {
    for phase in [Phase::Installed, Phase::Published] {
        assert!(explore_interleaved(phase, None).unwrap() > 100);
    }
}

#[test]
fn power_cuts_find_versions_that_are_even_too_early() {
    let error = explore_interleaved(Phase::Published, Some(Fault::EvenBeforeFence)).unwrap_err();
    assert!(error.contains("no set of calls"), "{error}");
}

#[test]
fn power_cuts_find_versions_that_are_raised_though_odd() {
    let error = explore_interleaved(Phase::Installed, Some(Fault::RaisesOdd)).unwrap_err();
    assert!(error.contains("no set of calls"), "{error}");
}

/// Cuts at one event of `thinning`, at one of two in a thorough test, which takes minutes.
fn with_checkpoints<R: Rival<Device = Traced>, W: Workload>(workload: &W, thinning: usize) {
    let every = if is_thorough() { 2 } else { thinning };
    for workers in [1, 2, 4] {
        let mut options = options(workers, None);
        options.log_bytes = 16 << 10;
        let history = record::<R, W>(workload, 40, options, None);
        let extent = Extent { every, seeds: 1 };
        let images = explore::<R, W>(workload, &history, extent, Survivors::Any);
        let images = images.unwrap_or_else(|e| panic!("{workers} workers: {e}"));
        assert!(images > 20, "{images} images are too few to mean anything");
    }
}

#[test]
fn checkpoints_survive_power_cuts() {
    // The last two have many more events than the others.
    with_checkpoints::<Dbx<Traced, Dbxn>, _>(&ycsb(20, false), 2);
    with_checkpoints::<Dbx<Traced, DbxNvm>, _>(&smallbank(20), 2);
    with_checkpoints::<Dbx<Traced, DbxNaive>, _>(&smallbank(20), 17);
    with_checkpoints::<Dbx<Traced, Pisces>, _>(&updates(), 17);
}

fn report<R: Rival<Device = Dram>, W: Workload>(workload: &W, settings: &Settings) -> Report {
    run::<R, W>(&dram(), workload, settings).unwrap()
}

/// The log has some hundred times as many records as there is room for.
fn is_bounded<R: Rival<Device = Dram>>() {
    for workers in [1, 4] {
        let mut settings = verified(workers, 20_000);
        settings.options.log_bytes = 64 << 10;
        let device = Arc::new(Dram::new(1 << 20, 1 << 20).unwrap());
        let report = run::<R, _>(&device, &smallbank(50), &settings).unwrap();
        assert!(report.counts.checkpoints > 1, "{:?}", report.counts);
        let recovery = report.recovery.unwrap();
        assert!(recovery.versions < 20_000, "{recovery:?}");
    }
}

#[test]
fn checkpoints_bound_the_log() {
    is_bounded::<Dbx<Dram, Dbxn>>();
    is_bounded::<Dbx<Dram, DbxNaive>>();
    is_bounded::<Dbx<Dram, DbxNvm>>();
    is_bounded::<Dbx<Dram, Pisces>>();
}

#[test]
fn a_log_that_is_full_is_an_error() {
    let device = Arc::new(Dram::new(256 << 10, 256 << 10).unwrap());
    let settings = verified(2, 20_000);
    for error in [
        run::<Dbx<Dram, Dbxn>, _>(&device, &smallbank(50), &settings).unwrap_err(),
        run::<Dbx<Dram, DbxNvm>, _>(&device, &smallbank(50), &settings).unwrap_err(),
    ] {
        assert!(matches!(&error, Error::Limit(what) if what.contains("full")), "{error:?}");
    }
}

#[test]
fn another_log_is_not_opened_and_not_overwritten() {
    type Engine = Dbx<Dram, Dbxn>;
    let (device, options) = (dram(), verified(1, 0).options);
    let tables = smallbank(50).tables();
    assert!(matches!(Engine::open(Arc::clone(&device), &tables, &options), Err(Error::Corrupt(_))));
    Engine::create(Arc::clone(&device), &tables, &options).unwrap();
    let again = Engine::create(Arc::clone(&device), &tables, &options);
    assert!(matches!(again, Err(Error::Corrupt(_))));
    let others = Engine::open(Arc::clone(&device), &tpcc().tables(), &options);
    assert!(matches!(others, Err(Error::Corrupt(_))));
    Engine::open(device, &tables, &options).unwrap();
    let nothing = Dbx::<Dram, DbxDram>::open(dram(), &tables, &options);
    assert!(matches!(nothing, Err(Error::Broken(_))));
}

/// Bytes that a key had before it was deleted must not come back, however low its version was.
#[test]
fn a_key_that_comes_again_is_newer_than_before() {
    type Engine = Dbx<Dram, Dbxn>;
    let (device, options) = (dram(), verified(1, 0).options);
    let tables = ycsb(20, false).tables();
    let (table, key) = (TableId(0), 7_u64.to_be_bytes());
    let rival = Engine::create(Arc::clone(&device), &tables, &options).unwrap();
    let mut session = rival.session(0);
    let mut commit = |change: &mut dyn FnMut(&mut <Engine as Rival>::Session)| {
        session.begin();
        change(&mut session);
        session.commit().unwrap();
    };
    for value in 0..20_u8 {
        commit(&mut |session| session.insert(table, &key, &[value]).unwrap());
    }
    commit(&mut |session| assert!(session.delete(table, &key).unwrap()));
    // Its record leaves the index meanwhile.
    for other in 0..100_u64 {
        let other = (1000 + other).to_be_bytes();
        commit(&mut |session| session.insert(table, &other, &[1]).unwrap());
    }
    commit(&mut |session| session.insert(table, &key, b"new").unwrap());
    drop(session);
    drop(rival);
    let (rival, _) = Engine::open(device, &tables, &options).unwrap();
    assert_eq!(rival.get(table, &key).as_deref(), Some(b"new".as_slice()));
}

/// What each design writes for the same calls, by its name.
fn written() -> HashMap<&'static str, Report> {
    let bank = smallbank(5_000);
    let mut settings = verified(1, 5_000);
    settings.recover = false;
    let mut all = HashMap::new();
    let mut add = |report: Report| all.insert(report.engine, report);
    add(report::<Dbx<Dram, DbxDram>, _>(&bank, &settings));
    add(report::<Dbx<Dram, DbxDisk>, _>(&bank, &settings));
    add(report::<Dbx<Dram, DbxSyncDisk>, _>(&bank, &settings));
    add(report::<Dbx<Dram, DbxNaive>, _>(&bank, &settings));
    add(report::<Dbx<Dram, DbxnParity>, _>(&bank, &settings));
    add(report::<Dbx<Dram, DbxnLines>, _>(&bank, &settings));
    add(report::<Dbx<Dram, DbxnPastCache>, _>(&bank, &settings));
    add(report::<Dbx<Dram, Dbxn>, _>(&bank, &settings));
    add(report::<Dbx<Dram, DbxnNvm>, _>(&bank, &settings));
    add(report::<Dbx<Dram, Pisces>, _>(&bank, &settings));
    all
}

#[test]
fn each_design_does_what_it_is_for() {
    let all = written();
    let digests: Vec<u128> = all.values().map(|report| report.digest).collect();
    assert!(digests.iter().all(|digest| *digest == digests[0]), "one worker, one state");
    let of = |name: &str| &all[name];
    let records = of("dbxn").counts.log_records;
    assert!(records > 1_000);
    // Nothing at all; one write for a group of 256; a sync, or one fence, for each that writes.
    assert_eq!(of("dbx-dram").counters, Counters::default());
    assert_eq!(of("dbx-disk").counters.fences, 0);
    assert!(of("dbx-disk").counters.log_bytes > 0);
    for name in ["dbx-naive", "dbxn-parity", "dbxn-64", "dbxn-nt", "dbxn", "dbxn-nvm", "pisces"] {
        assert_eq!(of(name).counters.fences, records, "{name}");
        assert_eq!(of(name).counts.log_records, records, "{name}");
    }
    // A log inside of a region aborts always; behind it never. What interrupts and evictions abort
    // besides makes the processor's counts differ from run to run; those of software are exact.
    let is_exact = !crate::has_hardware_regions();
    let naive = of("dbx-naive").counts.regions;
    assert!(naive.forbidden > 0 && naive.fallbacks >= records, "{naive:?}");
    assert!(!is_exact || (naive.forbidden, naive.fallbacks) == (records, records), "{naive:?}");
    assert_eq!(of("pisces").counts.regions, RegionCounts::default(), "it has no regions");
    for name in ["dbx-dram", "dbx-disk", "dbxn-parity", "dbxn", "dbxn-nvm"] {
        let regions = of(name).counts.regions;
        assert_eq!(regions.forbidden, 0, "{name}");
        assert!(!is_exact || regions.fallbacks == 0, "{name}: {regions:?}");
    }
    // The steps: whole lines cost bytes and save flushes of a line that was flushed before; past
    // the cache there is nothing to flush.
    let past = |name: &str| of(name).counters.bytes_stored_nt;
    let stored = |name: &str| of(name).counters.bytes_stored;
    let flushes = |name: &str| of(name).counters.flushes;
    assert!(stored("dbxn-64") > stored("dbxn-parity"));
    assert!(flushes("dbxn-64") < flushes("dbxn-parity"));
    assert_eq!((past("dbxn-64"), stored("dbxn-nt"), flushes("dbxn-nt")), (0, 0, 0));
    assert_eq!(past("dbxn-nt"), stored("dbxn-64"));
    assert!(past("dbxn") >= past("dbxn-nt"));
    let read = |name: &str| of(name).counters.lines_read;
    assert_eq!(read("dbxn"), 0);
}
