//! A workload as a run needs it, whatever its type: tables, procedures, and the calls of each
//! epoch.
//!
//! Epochs 1 to L load the data, twice: the second time each row is overwritten with what it is,
//! which puts a whole value into both of its versions. From then on a final write stores the lines
//! that changed, so that the stream is measured in the state that a store is in for good. Epoch
//! L + b is epoch b of the workload's stream. The calls of an epoch depend on the parameters and on
//! its number alone, so it makes no difference when and how often they are generated. Knows no
//! device and no state.

use std::ops::RangeInclusive;
use std::sync::Arc;

use storage::TableDefinition;
use workloads::oracle::Oracle;
use workloads::smallbank::{SmallBank, SmallBankSettings};
use workloads::tpcc::{Tpcc, TpccSettings};
use workloads::ycsb::{Ycsb, YcsbSettings};
use workloads::{Observer, ProcedureId, StreamEpoch, TableId, TableSpec, View, Workload};

use super::parameters::{Parameters, WorkloadParameters};
use crate::library::{Procedures, RowSizes, Tables, table_definition};
use crate::{BenchError, Result};

/// How often the data are loaded, see above.
const LOADING_PASSES: u64 = 2;

/// Calls that a client takes from one epoch of the workload's stream.
const CALLS_PER_EPOCH: u64 = 1 << 20;

/// Limits of a segment of the store.
const SEGMENT_BYTES: RangeInclusive<u64> = 4096..=64 << 20;
/// Keys of a YCSB transaction, in both papers.
const KEYS_PER_TXN: u32 = 10;

/// One of several that are alike, such as streams of calls.
#[derive(Debug, Clone, Copy)]
pub struct OneOf {
    /// Which, from 0.
    pub index: u64,
    /// How many there are.
    pub count: u64,
}

/// A workload with its type erased; generating calls is outside of what is timed.
trait Erased: Send + Sync {
    fn name(&self) -> &'static str;
    fn tables(&self) -> Vec<TableSpec>;
    fn load_count(&self) -> u64;
    fn load(&self, i: u64, args: &mut Vec<u8>) -> ProcedureId;
    fn generate(&self, epoch: StreamEpoch, position: u64, args: &mut Vec<u8>) -> ProcedureId;
    fn inserts(&self, transactions: u64) -> Vec<(TableId, u64)>;
    fn observer(&self, view: &dyn View) -> Box<dyn Observer>;
    fn procedures(&self) -> Procedures;
    fn oracle(&self) -> Oracle;
}

impl<W: Workload> Erased for W {
    fn name(&self) -> &'static str {
        Workload::name(self)
    }

    fn tables(&self) -> Vec<TableSpec> {
        Workload::tables(self)
    }

    fn load_count(&self) -> u64 {
        Workload::load_count(self)
    }

    fn load(&self, i: u64, args: &mut Vec<u8>) -> ProcedureId {
        Workload::load(self, i, args)
    }

    fn generate(&self, epoch: StreamEpoch, position: u64, args: &mut Vec<u8>) -> ProcedureId {
        Workload::generate(self, epoch, position, args)
    }

    fn inserts(&self, transactions: u64) -> Vec<(TableId, u64)> {
        Workload::inserts(self, transactions)
    }

    fn observer(&self, view: &dyn View) -> Box<dyn Observer> {
        Workload::observer(self, view)
    }

    fn procedures(&self) -> Procedures {
        let mut procedures = Procedures::default();
        self.register(&mut procedures);
        procedures
    }

    fn oracle(&self) -> Oracle {
        Oracle::new(self)
    }
}

/// A workload and the parameters it was made from.
#[derive(Clone)]
pub struct Job {
    workload: Arc<dyn Erased>,
    parameters: Parameters,
}

/// What is done with a workload whose type is known.
pub trait WorkloadVisitor {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<W: Workload + 'static>(self, workload: Arc<W>) -> Self::Output;
}

impl Job {
    /// A job that runs a workload.
    #[must_use]
    pub fn new<W: Workload + 'static>(workload: Arc<W>, parameters: Parameters) -> Self {
        Self { workload, parameters }
    }

    /// Name of the workload.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.workload.name()
    }

    /// What it was made from.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The tables in the workload's words.
    #[must_use]
    pub fn tables(&self) -> Vec<TableSpec> {
        self.workload.tables()
    }

    /// The tables in the engine's words.
    #[must_use]
    pub fn table_definitions(&self) -> Vec<TableDefinition> {
        self.tables().iter().map(|spec| table_definition(spec, self.row_sizes())).collect()
    }

    /// The procedures, as the library registers and calls them.
    #[must_use]
    pub fn client_procedures(&self) -> Procedures {
        self.workload.procedures()
    }

    /// The tables, as the library is asked for them.
    #[must_use]
    pub fn client_tables(&self) -> Tables {
        let segment_bytes = self.parameters.segment_bytes;
        Tables { specs: self.tables(), row_sizes: self.row_sizes(), segment_bytes }
    }

    fn row_sizes(&self) -> RowSizes {
        let Parameters { row_bytes, shared_heap_bytes, .. } = self.parameters;
        RowSizes { row_bytes, shared_heap_bytes }
    }

    /// Loading call `i` of one pass, if there are so many.
    pub fn load_call(&self, i: u64) -> Option<(ProcedureId, Vec<u8>)> {
        let mut args = Vec::new();
        (i < self.workload.load_count()).then(|| (self.workload.load(i, &mut args), args))
    }

    /// Call `i` of one of several streams, all of whose calls are different.
    pub fn client_call(&self, stream: OneOf, i: u64) -> (ProcedureId, Vec<u8>) {
        // Positions stay below those of the largest epoch.
        let epoch = 1 + stream.index + stream.count * (i / CALLS_PER_EPOCH);
        let mut args = Vec::with_capacity(64);
        (self.workload.generate(StreamEpoch(epoch), i % CALLS_PER_EPOCH, &mut args), args)
    }

    /// How often the data are loaded.
    pub fn loading_passes(&self) -> u64 {
        LOADING_PASSES
    }

    /// A serial oracle for this workload, with no data.
    #[must_use]
    pub fn oracle(&self) -> Oracle {
        self.workload.oracle()
    }

    /// An observer that starts from a state.
    #[must_use]
    pub fn observer(&self, view: &dyn View) -> Box<dyn Observer> {
        self.workload.observer(view)
    }

    /// About how many rows so many epochs of the stream insert, by table.
    #[must_use]
    pub fn inserts(&self, epochs: u64) -> Vec<(u16, u64)> {
        self.inserts_of(epochs * self.parameters.epoch_size)
    }

    /// About how many rows so many transactions of the stream insert, by table.
    pub fn inserts_of(&self, transactions: u64) -> Vec<(u16, u64)> {
        let rows = self.workload.inserts(transactions);
        rows.into_iter().map(|(table, rows)| (table.0, rows)).collect()
    }

    /// How many epochs the loading takes; engine epochs 1 to this.
    #[must_use]
    pub fn loading_epochs(&self) -> u64 {
        LOADING_PASSES * self.epochs_of_a_pass()
    }

    fn epochs_of_a_pass(&self) -> u64 {
        self.workload.load_count().div_ceil(self.parameters.loads_per_epoch)
    }

    /// Does something with each call of an epoch, in order.
    ///
    /// # Errors
    /// Those of `each`, which is not called any more then.
    ///
    /// # Panics
    /// If the epoch is 0.
    pub fn each_call<E>(
        &self,
        epoch: u64,
        mut each: impl FnMut(ProcedureId, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        assert!(epoch >= 1, "epochs count from 1");
        let mut args = Vec::new();
        let loading = self.loading_epochs();
        let per_epoch = self.parameters.loads_per_epoch;
        let positions = if epoch <= loading {
            let first = (epoch - 1) % self.epochs_of_a_pass() * per_epoch;
            first..(first + per_epoch).min(self.workload.load_count())
        } else {
            0..self.parameters.epoch_size
        };
        for position in positions {
            args.clear();
            let procedure = if epoch <= loading {
                self.workload.load(position, &mut args)
            } else {
                self.workload.generate(StreamEpoch(epoch - loading), position, &mut args)
            };
            each(procedure, &args)?;
        }
        Ok(())
    }

    /// Whether a store can be what the parameters ask for.
    ///
    /// # Errors
    /// `Usage` if they contradict a limit of the store.
    pub fn check(&self) -> Result<()> {
        let bytes = self.parameters.segment_bytes;
        if !bytes.is_power_of_two() || !SEGMENT_BYTES.contains(&bytes) {
            let (low, high) = (SEGMENT_BYTES.start(), SEGMENT_BYTES.end());
            return Err(BenchError::Usage(format!(
                "segment_bytes is {bytes}, must be a power of two from {low} to {high}"
            )));
        }
        for table in self.table_definitions() {
            table.to_record(bytes).map_err(|e| BenchError::Usage(e.to_string()))?;
        }
        Ok(())
    }

    /// An epoch as people should read it.
    #[must_use]
    pub fn epoch_name(&self, epoch: u64) -> String {
        match epoch.checked_sub(self.loading_epochs()) {
            None | Some(0) => format!("epoch {epoch} (loading)"),
            Some(stream) => format!("epoch {epoch} ({stream} of the stream)"),
        }
    }
}

impl Parameters {
    /// The job that these parameters describe.
    ///
    /// # Errors
    /// `Usage` if they contradict each other or a limit of the store.
    pub fn job(&self) -> Result<Job> {
        let job = self.visit(ToJob(self))?;
        job.check()?;
        Ok(job)
    }

    /// Makes the workload and does something with it.
    ///
    /// # Errors
    /// `Usage` if its parameters contradict each other.
    pub fn visit<V: WorkloadVisitor>(&self, visitor: V) -> Result<V::Output> {
        let usage = |error: workloads::SettingsError| BenchError::Usage(error.to_string());
        let seed = self.seed;
        match self.workload.clone() {
            WorkloadParameters::Ycsb {
                rows,
                value_bytes,
                update_bytes,
                hot_rows,
                hot_keys,
                hot_spacing,
                read_keys,
                theta,
                pieces,
            } => {
                let settings = YcsbSettings {
                    rows,
                    value_bytes,
                    update_bytes,
                    keys_per_txn: KEYS_PER_TXN,
                    hot_rows,
                    hot_keys,
                    hot_spacing,
                    read_keys,
                    theta,
                    pieces,
                    seed,
                };
                Ok(visitor.visit(Arc::new(Ycsb::new(settings).map_err(usage)?)))
            }
            WorkloadParameters::SmallBank { customers, hot_customers, commit_points } => {
                let preset = SmallBankSettings::low(customers);
                let settings = SmallBankSettings { hot_customers, commit_points, seed, ..preset };
                Ok(visitor.visit(Arc::new(SmallBank::new(settings).map_err(usage)?)))
            }
            WorkloadParameters::Tpcc {
                warehouses,
                mix,
                items,
                customers_per_district,
                commit_points,
                pieces,
            } => {
                let settings = TpccSettings {
                    warehouses,
                    mix: mix.into(),
                    items,
                    customers_per_district,
                    commit_points,
                    pieces,
                    seed,
                };
                Ok(visitor.visit(Arc::new(Tpcc::new(settings).map_err(usage)?)))
            }
        }
    }
}

/// Makes a job of a workload.
struct ToJob<'p>(&'p Parameters);

impl WorkloadVisitor for ToJob<'_> {
    type Output = Job;

    fn visit<W: Workload + 'static>(self, workload: Arc<W>) -> Job {
        Job::new(workload, self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contention, WorkloadParameters};

    fn job(customers: u64) -> Job {
        let workload = WorkloadParameters::smallbank(customers, Contention::Low);
        let parameters = Parameters::new(workload, Contention::Low);
        Parameters { epoch_size: 50, loads_per_epoch: 3, ..parameters }.job().expect("good ones")
    }

    fn calls(job: &Job, epoch: u64) -> Vec<(ProcedureId, Vec<u8>)> {
        let mut calls = Vec::new();
        let collected = job.each_call(epoch, |procedure, args| {
            calls.push((procedure, args.to_vec()));
            Ok::<_, std::convert::Infallible>(())
        });
        collected.map_or_else(|never| match never {}, |()| calls)
    }

    #[test]
    fn loading_is_cut_into_epochs_without_gaps() {
        let job = job(1_001); // 11 loading calls of 100 customers
        assert_eq!(job.loading_epochs(), 2 * 4);
        let sizes: Vec<usize> = (1..=9).map(|epoch| calls(&job, epoch).len()).collect();
        assert_eq!(sizes, [3, 3, 3, 2, 3, 3, 3, 2, 50]);
    }

    #[test]
    fn an_epoch_does_not_depend_on_what_was_generated_before() {
        let once = calls(&job(500), 9);
        let other = job(500);
        calls(&other, 3);
        assert_eq!(calls(&other, 9), once);
    }
}
