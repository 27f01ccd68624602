//! What an engine is that runs batches of calls, and what all of them have.

use workloads::{TableSpec, View, Workload};

use super::bodies::{KnownCall, Told};
use super::declare::{Asked, Declarations, Declared, share};
use super::footprint::{Access, Footprints, Granules, add_granules};
use super::inplace::Scratch;
use super::phases::{Halt, Threads, Waits, phase};
use super::rows::Pool;
use super::tables::Tables;
use crate::error::Result;
use crate::rival::Options;
use crate::run::calls::Calls;
use crate::run::procedure::Outcome;

/// In which order the calls of a batch seem to have run. Numbers of sequences are allocated in the
/// order in which they were given, in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were given.
    Given,
    /// As the engine tells.
    Told,
}

/// Gets an answer: the number of the call in its batch, its place in the serial order, what became
/// of it, and what it put out.
pub type EachAnswer<'a> = &'a mut dyn FnMut(usize, u64, Outcome, &[u8]);

/// An engine over DRAM that runs whole batches and comes to the same state each time.
pub trait BatchEngine: Send + Sized {
    /// Name for reports.
    const NAME: &'static str;
    /// Whose order it keeps.
    const ORDER: Order;

    /// Makes an empty store.
    ///
    /// # Errors
    /// Tables that do not fit.
    fn create(tables: &[TableSpec], options: &Options) -> Result<Self>;

    /// Runs a batch. Every call of it has an answer then.
    ///
    /// # Errors
    /// The engine's failure, and calls that do what they had not declared.
    fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()>;

    /// Visits the answers to the last batch in any order.
    fn for_each_answer(&self, each: EachAnswer<'_>);

    /// The state between batches.
    fn view(&self) -> &dyn View;

    /// What was counted since the last time.
    fn take_counts(&mut self) -> BatchCounts;
}

/// What the workers of an engine did. Which of it an engine counts follows from its design.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BatchCounts {
    /// Waits for other workers.
    pub waits: Waits,
    /// Locks, rows or partitions that a call got from one before it that it had to wait for.
    pub hand_overs: u64,
    /// Requests, writes or pieces that one thread left to another.
    pub messages: u64,
    /// Versions that were made.
    pub versions: u64,
    /// Runs of calls that were thrown away, because of conflicts, and repeated.
    pub reruns: u64,
    /// Calls that were run because another call wanted what they write.
    pub producer_runs: u64,
    /// Calls that were run in a fall-back.
    pub fallbacks: u64,
    /// Rows whose old versions were freed where they got new ones.
    pub minor_collections: u64,
    /// Rows whose old versions were freed because they had not been written for long.
    pub major_collections: u64,
}

impl BatchCounts {
    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Self) {
        self.waits.add(other.waits);
        self.hand_overs += other.hand_overs;
        self.messages += other.messages;
        self.versions += other.versions;
        self.reruns += other.reruns;
        self.producer_runs += other.producer_runs;
        self.fallbacks += other.fallbacks;
        self.minor_collections += other.minor_collections;
        self.major_collections += other.major_collections;
    }
}

/// The answers that one worker gave.
#[derive(Debug, Default)]
pub(super) struct Answers {
    bytes: Vec<u8>,
    given: Vec<(usize, u64, Outcome, usize)>,
}

impl Answers {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.given.clear();
    }

    pub(super) fn push(&mut self, call: usize, serial: u64, outcome: Outcome, output: &[u8]) {
        self.bytes.extend_from_slice(output);
        self.given.push((call, serial, outcome, self.bytes.len()));
    }

    pub(super) fn for_each(&self, each: EachAnswer<'_>) {
        let mut start = 0;
        for (call, serial, outcome, end) in &self.given {
            each(*call, *serial, *outcome, &self.bytes[start..*end]);
            start = *end;
        }
    }
}

/// What one worker changes while calls run.
pub(super) struct Worker {
    pub(super) pool: Pool,
    pub(super) answers: Answers,
    pub(super) scratch: Scratch,
    pub(super) counts: BatchCounts,
    /// What the running call has put out.
    pub(super) output: Vec<u8>,
}

impl Worker {
    pub(super) fn new(tables: usize) -> Self {
        Self {
            pool: Pool::new(tables),
            answers: Answers::default(),
            scratch: Scratch::default(),
            counts: BatchCounts::default(),
            output: Vec::new(),
        }
    }
}

/// What one worker's share of the calls declares; nothing changes it while calls run.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) declared: Declared,
    pub(super) footprints: Footprints,
    granules: Granules,
}

/// What all engines that know write sets are made of.
pub(super) struct Base {
    pub(super) tables: Tables,
    pub(super) shares: Vec<Share>,
    pub(super) workers: Vec<Worker>,
    pub(super) threads: Threads,
    pub(super) options: Options,
    /// For each table, whether calls of the batch insert into it, each a key of its own that was
    /// not there before.
    new_keys: Vec<bool>,
}

/// The calls of a batch with all that is known of them, while they run.
pub(super) struct Batch<'a> {
    pub(super) workload: &'a dyn Workload,
    pub(super) calls: &'a Calls,
    pub(super) tables: &'a Tables,
    pub(super) shares: &'a [Share],
    pub(super) threads: &'a Threads,
    pub(super) halt: &'a Halt,
    pub(super) options: &'a Options,
    /// For each table, whether calls of the batch insert into it, each a key of its own that was
    /// not there before.
    pub(super) new_keys: &'a [bool],
}

impl Base {
    pub(super) fn new(specs: &[TableSpec], options: &Options) -> Result<Self> {
        let workers = options.workers;
        Ok(Self {
            tables: Tables::new(specs, workers)?,
            shares: (0..workers).map(|_| Share::default()).collect(),
            workers: (0..workers).map(|_| Worker::new(specs.len())).collect(),
            threads: Threads::new(workers)?,
            options: options.clone(),
            new_keys: Vec::new(),
        })
    }

    /// Lets all calls allocate and declare, and inserts the rows of new keys: the steps of
    /// `declare.rs`.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn declare<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        self.declare_some(workload, calls, |_, _| true)?;
        self.insert()
    }

    /// Lets all calls allocate, and those declare that leave updates to pieces.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn declare_pieces<W: Workload>(
        &mut self,
        workload: &W,
        calls: &Calls,
    ) -> Result<()> {
        self.declare_some(workload, calls, |declarations, call| {
            declarations.has_pieces(call.procedure)
        })
    }

    fn declare_some<W: Workload>(
        &mut self,
        workload: &W,
        calls: &Calls,
        does: impl Fn(&Declarations, Asked<'_>) -> bool + Sync,
    ) -> Result<()> {
        let mut declarations = Declarations::default();
        workload.register(&mut declarations);
        self.tables.sequences.begin();
        self.workers.iter_mut().for_each(|worker| worker.answers.clear());
        let (threads, workers) = (&self.threads, self.workers.len());
        let tables = &self.tables;
        let want = |worker, share_of: &mut Share| {
            share_of.declared.clear();
            for call in share(calls.len(), workers, worker) {
                share_of.declared.calls.push(declarations.want(tables, Asked::of(calls, call))?);
            }
            Ok(())
        };
        if declarations.have_sequences() {
            phase(threads, &mut self.shares, want)?;
            self.shares.iter_mut().for_each(|share| self.tables.allocate(&mut share.declared));
        } else {
            for (worker, share) in self.shares.iter_mut().enumerate() {
                want(worker, share)?;
            }
        }
        let tables = &self.tables;
        phase(threads, &mut self.shares, |worker, share_of| {
            for (number, call) in share(calls.len(), workers, worker).enumerate() {
                let asked = Asked::of(calls, call);
                if does(&declarations, asked) {
                    declarations.declare(tables, asked, &mut share_of.declared, number)?;
                } else {
                    declarations.skip(&mut share_of.declared, number);
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Inserts the rows of new keys, and finds the tables all of whose inserts are of new keys.
    fn insert(&mut self) -> Result<()> {
        let mut inserts = vec![0; self.tables.count()];
        self.shares.iter().for_each(|share| share.declared.count_inserts(&mut inserts));
        self.new_keys = inserts.iter().map(|count| *count > 0).collect();
        if inserts.iter().all(|count| *count == 0) {
            return Ok(());
        }
        self.tables.grow(&inserts)?;
        let (tables, shares) = (&self.tables, &self.shares);
        let old = phase(&self.threads, &mut self.workers, |number, worker| {
            let mut old = Vec::new();
            for (table, key) in shares[number].declared.inserts() {
                let row = tables.find_or_insert(table, key, number, &mut worker.pool)?;
                let (_, is_new) = row.expect("there was room for all inserts");
                if !is_new && old.last() != Some(&table) {
                    old.push(table);
                }
            }
            Ok(old)
        })?;
        for table in old.concat() {
            self.new_keys[usize::from(table.0)] = false;
        }
        Ok(())
    }

    /// Finds the granules that calls scan.
    ///
    /// # Errors
    /// A worker that panicked before.
    pub(super) fn granules<W: Workload>(&mut self, workload: &W) -> Result<Granules> {
        phase(&self.threads, &mut self.shares, |_, share| {
            let Share { declared, granules, .. } = share;
            granules.clear();
            add_granules(workload, declared, 0..declared.calls.len(), granules);
            Ok(())
        })?;
        let mut granules = Granules::default();
        self.shares.iter().for_each(|share| granules.extend(&share.granules));
        Ok(granules)
    }

    /// Makes the footprints of all calls.
    ///
    /// # Errors
    /// Declarations that cannot be.
    pub(super) fn footprints<W: Workload>(&mut self, workload: &W) -> Result<()> {
        let granules = self.granules(workload)?;
        let tables = &self.tables;
        phase(&self.threads, &mut self.shares, |_, share| {
            share.footprints.clear();
            for _ in 0..share.declared.calls.len() {
                share.footprints.add(workload, tables, &share.declared, &granules)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The batch as it runs, and the workers that run it.
    pub(super) fn split<'a, W: Workload>(
        &'a mut self,
        workload: &'a W,
        calls: &'a Calls,
    ) -> (Batch<'a>, &'a mut [Worker]) {
        let batch = Batch {
            workload,
            calls,
            tables: &self.tables,
            shares: &self.shares,
            threads: &self.threads,
            halt: &self.threads.halt,
            options: &self.options,
            new_keys: &self.new_keys,
        };
        (batch, &mut self.workers)
    }

    /// Visits the answers of all workers.
    pub(super) fn for_each_answer(&self, each: EachAnswer<'_>) {
        self.workers.iter().for_each(|worker| worker.answers.for_each(each));
    }

    /// Takes what all workers counted.
    pub(super) fn take_counts(&mut self) -> BatchCounts {
        let mut counts = BatchCounts::default();
        for worker in &mut self.workers {
            counts.add(&std::mem::take(&mut worker.counts));
        }
        counts
    }
}

impl<'a> Batch<'a> {
    /// Procedure and arguments of a call.
    pub(super) fn asked(&self, call: usize) -> Asked<'a> {
        Asked::of(self.calls, call)
    }

    /// Share and number there of a call.
    fn place(&self, call: usize) -> (&'a Share, usize) {
        let size = share(self.calls.len(), self.shares.len(), 0).len().max(1);
        (&self.shares[call / size], call % size)
    }

    /// What a call has declared: its share, and its number there.
    pub(super) fn declared(&self, call: usize) -> (&'a Declared, usize) {
        let (share, number) = self.place(call);
        (&share.declared, number)
    }

    /// The code with which a call gave up while it declared.
    pub(super) fn gave_up(&self, call: usize) -> Option<u32> {
        let (declared, number) = self.declared(call);
        declared.calls[number].aborted
    }

    /// What a call is told of sequences.
    pub(super) fn told(&self, call: usize) -> Told<'a> {
        let (declared, number) = self.declared(call);
        let numbers = &declared.calls[number].numbers;
        Told { numbers, sequences: &self.tables.sequences }
    }

    /// A call with all that is known of it.
    pub(super) fn call(&self, call: usize) -> KnownCall<'a> {
        let (declared, number) = self.declared(call);
        KnownCall { asked: self.asked(call), told: self.told(call), declared, number }
    }

    /// What a call accesses.
    pub(super) fn footprint(&self, call: usize) -> &'a [Access] {
        let (share, number) = self.place(call);
        share.footprints.of(number)
    }
}
