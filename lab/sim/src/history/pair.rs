//! Runs an engine and the oracle side by side and compares everything that can be seen.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use engine::{
    Answer, AppendMethod, CachePolicy, Calls, Definitions, Engine, EngineConfig, EngineError,
    EpochOutcome, Lab, Packing, ProcedureTable, RecoveryReport, WorkCounts,
};
use pmem::AnyDevice;
use storage::EpochNumber;
use storage::{IndexKind, RowLayout, StoreOptions, TableDefinition, TableId};

use super::compare_indexes::compare_indexes;
use super::indexes::index_definitions;
use super::model::{Expected, Model, info};
use super::procedures::{number_of, procedures};
use super::program::{
    INDEXED, LONG, ROW_TABLES, SEQUENCES, VALUE_BYTES_MAX, has_long_keys, is_ordered, is_serial,
};
use super::random::Random;
use super::snapshots::Snapshots;

/// Tables of rows whose size is a choice; rows of the table with indexes are as those of [`LONG`].
pub const TABLES_SIZED: usize = ROW_TABLES - 1;

/// Choices that must change no answer and no state.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Worker threads.
    pub workers: usize,
    /// See [`EngineConfig`].
    pub cache_bytes: u64,
    /// See [`EngineConfig`].
    pub cache_epochs: u64,
    /// See [`EngineConfig`].
    pub checkpoint_every: u64,
    /// See [`EngineConfig`].
    pub split_threshold: u32,
    /// See [`EngineConfig`].
    pub append: AppendMethod,
    /// See [`EngineConfig`].
    pub packing: Packing,
    /// See [`EngineConfig`].
    pub state_hash: bool,
    /// See [`EngineConfig`].
    pub scans_rows: bool,
    /// See [`EngineConfig`].
    pub minor_collection: bool,
    /// See [`EngineConfig`].
    pub cache_policy: CachePolicy,
    /// Fixed when the store is created.
    pub row_bytes: [u32; TABLES_SIZED],
    /// Fixed when the store is created: bytes of a heap that both versions of a row share, or 0.
    pub shared_heap_bytes: [u32; TABLES_SIZED],
    /// Fixed when the store is created; segments of the log are of this size too, 64 KiB at most.
    pub segment_bytes: u64,
    /// Longest values: they may grow from one open to another.
    pub value_bytes_max: [u32; TABLES_SIZED],
    /// Epochs between two snapshots that are made; 0: none is.
    pub snapshots_every: u64,
}

/// Longest values of the tables of rows whose size is a choice.
const SIZED_BYTES_MAX: [u32; TABLES_SIZED] = {
    let of = VALUE_BYTES_MAX;
    [of[0] as u32, of[1] as u32, of[2] as u32, of[3] as u32]
};

impl Default for Setup {
    fn default() -> Self {
        Self {
            workers: 1,
            cache_bytes: 0,
            cache_epochs: 20,
            checkpoint_every: 1,
            split_threshold: 0,
            append: AppendMethod::default(),
            packing: Packing::default(),
            state_hash: true,
            scans_rows: false,
            minor_collection: true,
            cache_policy: CachePolicy::default(),
            row_bytes: [0; TABLES_SIZED],
            shared_heap_bytes: [0; TABLES_SIZED],
            segment_bytes: 256 << 10,
            value_bytes_max: SIZED_BYTES_MAX,
            snapshots_every: 2,
        }
    }
}

fn key_bytes_max(table: u8) -> u32 {
    if has_long_keys(table) { 40 } else { 8 }
}

/// Bytes of a row of the first table in which both versions of every value are inline.
const ALL_INLINE: u32 = 64 + 2 * 704;

impl Setup {
    /// Any choices.
    pub fn random(random: &mut Random) -> Self {
        // Allocation aside, so that everything else of a seed's history is what it is without them.
        let mut aside = Random::new(random.clone().word());
        let (append, state_hash) = (aside.pick(&AppendMethod::ALL), aside.percent(75));
        let scans_rows = Random::new(random.clone().word().rotate_left(9)).percent(25);
        let (minor_collection, cache_policy) = (aside.percent(75), aside.pick(&CachePolicy::ALL));
        let packing = Random::new(!random.clone().word()).pick(&Packing::ALL);
        // Words in the header line, and in halves behind it.
        let words_row_bytes = aside.pick(&[0, 128]);
        let setup = Self {
            workers: random.pick(&[1, 2, 4]),
            cache_bytes: random.pick(&[0, 64 << 10, 1 << 20]),
            cache_epochs: random.pick(&[0, 1, 20]),
            checkpoint_every: random.pick(&[1, 1, 3, 10]),
            split_threshold: random.pick(&[0, 1, 2, 4]),
            append,
            packing,
            state_hash,
            scans_rows,
            minor_collection,
            cache_policy,
            row_bytes: [
                random.pick(&[0, 64, 128, 256, ALL_INLINE, ALL_INLINE]),
                random.pick(&[0, 64, 128, 256]),
                random.pick(&[0, 128, 256]),
                words_row_bytes,
            ],
            segment_bytes: random.pick(&[4096, 256 << 10]),
            ..Self::default()
        };
        setup.with_shared_heaps(&mut aside)
    }

    /// The same with shared heaps in some of its tables, of all sizes that fit their rows.
    #[must_use]
    pub fn with_shared_heaps(mut self, random: &mut Random) -> Self {
        for (table, shared) in self.shared_heap_bytes.iter_mut().enumerate() {
            let key_bytes = key_bytes_max(table as u8);
            // The smallest row with room for the heap, if the row is left open.
            let bytes_max = match self.row_bytes[table] {
                0 => random.pick(&[168, 368, 1344]),
                row_bytes => RowLayout::shared_heap_bytes_max(key_bytes, row_bytes),
            };
            let words = u64::from(bytes_max / 8);
            let (is_shared, is_whole) = (random.percent(40), random.percent(50));
            let chosen = if is_whole { words } else { random.below(words + 1) };
            *shared = if is_shared { chosen as u32 * 8 } else { 0 };
        }
        self
    }

    /// Other choices for the same store.
    pub fn reopened(&self, random: &mut Random) -> Self {
        let Self { row_bytes, shared_heap_bytes, segment_bytes, .. } = *self;
        let Self { value_bytes_max, snapshots_every, .. } = *self;
        let fixed = Self { row_bytes, shared_heap_bytes, segment_bytes, ..Self::random(random) };
        Self { value_bytes_max, snapshots_every, ..fixed }
    }

    /// As an engine takes them.
    pub fn config(&self) -> EngineConfig {
        EngineConfig {
            workers: self.workers,
            cache_bytes: self.cache_bytes,
            checkpoint_every: self.checkpoint_every,
            split_threshold: self.split_threshold,
            lab: Lab {
                append: self.append,
                packing: self.packing,
                state_hash: self.state_hash,
                scans_rows: self.scans_rows,
                minor_collection: self.minor_collection,
                cache_policy: self.cache_policy,
                cache_epochs: self.cache_epochs,
                ..Lab::default()
            },
            store: StoreOptions {
                segment_bytes: self.segment_bytes,
                log_segment_bytes: self.segment_bytes.min(64 << 10),
                ..StoreOptions::default()
            },
            ..EngineConfig::default()
        }
    }

    /// The tables of every history.
    pub fn tables(&self) -> Vec<TableDefinition> {
        let sized = (0..TABLES_SIZED).chain([usize::from(LONG)]);
        let mut tables: Vec<TableDefinition> = (0..ROW_TABLES as u8)
            .zip(sized)
            .map(|(table, sized)| TableDefinition {
                name: ["hashed", "ordered", "long", "words", "indexed"][usize::from(table)].into(),
                index: if is_ordered(table) { IndexKind::Ordered } else { IndexKind::Hash },
                key_bytes_max: key_bytes_max(table),
                value_bytes_max: match table {
                    INDEXED => VALUE_BYTES_MAX[usize::from(table)] as u32,
                    _ => self.value_bytes_max[sized],
                },
                row_bytes: self.row_bytes[sized],
                shared_heap_bytes: self.shared_heap_bytes[sized],
            })
            .collect();
        tables.push(TableDefinition {
            name: "sequences".into(),
            index: IndexKind::Sequence,
            key_bytes_max: 8,
            value_bytes_max: 8,
            row_bytes: 0,
            shared_heap_bytes: 0,
        });
        tables
    }

    /// Opens an engine without an oracle.
    ///
    /// # Errors
    /// The engine's.
    pub fn open(&self, device: &Arc<AnyDevice>) -> Result<Engine, EngineError> {
        Ok(self.open_with(device, self.config(), procedures())?.0)
    }

    /// Opens an engine without an oracle, after tables were dropped, which are made anew.
    ///
    /// # Errors
    /// The engine's.
    pub fn open_without(
        &self,
        device: &Arc<AnyDevice>,
        dropped: &[String],
    ) -> Result<Engine, EngineError> {
        Ok(self.open_as(device, self.config(), procedures(), dropped)?.0)
    }

    /// Opens an engine without an oracle, with another configuration or other procedures; as
    /// [`Engine::open`] it tells of the recovery.
    ///
    /// # Errors
    /// The engine's.
    pub fn open_with(
        &self,
        device: &Arc<AnyDevice>,
        config: EngineConfig,
        procedures: ProcedureTable,
    ) -> Result<(Engine, RecoveryReport), EngineError> {
        self.open_as(device, config, procedures, &[])
    }

    fn open_as(
        &self,
        device: &Arc<AnyDevice>,
        config: EngineConfig,
        procedures: ProcedureTable,
        dropped: &[String],
    ) -> Result<(Engine, RecoveryReport), EngineError> {
        let tables: Vec<_> = self.tables().into_iter().map(Into::into).collect();
        let (indexes, mut procedures) =
            (index_definitions(), |_: &[TableId]| Ok(procedures.clone()));
        let definitions = Definitions {
            dropped,
            indexes: &indexes,
            in_order: true,
            ..Definitions::new(&tables, &mut procedures)
        };
        Engine::open_with(Arc::clone(device), config, definitions)
    }
}

/// An engine next to the oracle.
pub struct Pair {
    /// The engine.
    pub engine: Engine,
    /// The oracle.
    pub model: Model,
    snapshots: Snapshots,
}

/// A batch of encoded programs as calls.
pub fn to_calls(batch: &[Vec<u8>]) -> Calls {
    let mut calls = Calls::new();
    for arguments in batch {
        let procedure = number_of(arguments);
        let pushed = match is_serial(arguments) {
            true => calls.push_serial(procedure, arguments),
            false => calls.push(procedure, arguments),
        };
        pushed.expect("programs are short");
    }
    calls
}

impl Pair {
    /// An engine in the state of `model`.
    pub fn new(engine: Engine, model: Model) -> Self {
        Self { engine, model, snapshots: Snapshots::default() }
    }

    /// With as many snapshots as a setup says.
    #[must_use]
    pub fn with_snapshots_of(mut self, setup: &Setup) -> Self {
        self.snapshots = Snapshots::every(setup.snapshots_every);
        self
    }

    /// Opens a store that must be in the state of `model`.
    pub fn open(device: &Arc<AnyDevice>, setup: &Setup, model: Model) -> Result<Self, String> {
        let engine = setup.open(device).map_err(|error| format!("open: {error}"))?;
        let mut pair = Self::new(engine, model).with_snapshots_of(setup);
        pair.compare_state()?;
        compare_indexes(&mut pair.engine, &pair.model)?;
        Ok(pair)
    }

    /// The next epoch runs on all workers, on the first one or on half of them, by its number: that
    /// changes nothing of what it comes to.
    pub fn vary_workers(&mut self) {
        let (epoch, all) = (self.engine.epoch().0 + 1, self.engine.workers());
        self.engine.limit_workers([all, 1, all.div_ceil(2), all][epoch as usize % 4]);
    }

    /// Runs an epoch and compares answers, numbers and the state hash.
    pub fn run(&mut self, batch: &[Vec<u8>]) -> Result<(), String> {
        self.run_counted(batch).map(drop)
    }

    /// As [`Pair::run`]; returns what the workers counted.
    pub fn run_counted(&mut self, batch: &[Vec<u8>]) -> Result<WorkCounts, String> {
        let info = info(self.engine.epoch().0 + 1);
        let deferred = self.model.deferred_calls.len();
        self.vary_workers();
        let outcome = self.engine.run_epoch(&to_calls(batch), info);
        let outcome =
            outcome.map_err(|error| format!("epoch {}: {error}", self.model.epoch + 1))?;
        let expected = self.model.run(batch, info.timestamp_ns);
        if outcome.deferred_in != deferred || outcome.epoch.0 != self.model.epoch {
            let epoch = self.model.epoch;
            return Err(format!(
                "epoch {} deferred {} in, expected epoch {epoch} and {deferred}",
                outcome.epoch.0, outcome.deferred_in
            ));
        }
        compare_answers(&outcome, &expected)
            .map_err(|difference| format!("epoch {}: {difference}", outcome.epoch.0))?;
        compare_hash(&outcome, &self.engine, &self.model)?;
        self.look_behind()?;
        Ok(outcome.stats.work)
    }

    /// After an epoch: compares what its state hash does not cover, secondary indexes and what
    /// snapshots see.
    ///
    /// # Errors
    /// The first difference.
    pub fn look_behind(&mut self) -> Result<(), String> {
        compare_indexes(&mut self.engine, &self.model)?;
        self.snapshots.step(&mut self.engine, &self.model)
    }

    /// After the last epoch: as [`Pair::look_behind`], with all snapshots to their ends.
    ///
    /// # Errors
    /// The first difference.
    pub fn end_snapshots(&mut self) -> Result<(), String> {
        self.snapshots.end(&mut self.engine, &self.model)
    }

    /// Compares all rows of all tables.
    pub fn compare_state(&self) -> Result<(), String> {
        compare_state(&self.engine, &self.model)
    }
}

/// Compares the state after an epoch by its hash; where none is maintained, row by row.
///
/// # Errors
/// The first difference.
pub fn compare_hash(outcome: &EpochOutcome, engine: &Engine, model: &Model) -> Result<(), String> {
    if outcome.state_hash == Some(model.state_hash()) {
        return Ok(());
    }
    compare_state(engine, model)?;
    match outcome.state_hash {
        Some(_) => Err(format!("epoch {}: equal rows, other state hash", outcome.epoch.0)),
        None => Ok(()),
    }
}

/// Compares all rows of all tables, and everything else that an engine says of its state.
///
/// # Errors
/// The first difference.
pub fn compare_state(engine: &Engine, model: &Model) -> Result<(), String> {
    let at = |what: String| Err(format!("after epoch {}: {what}", model.epoch));
    if (engine.epoch().0, engine.deferred()) != (model.epoch, model.deferred_calls.len()) {
        return at(format!(
            "engine at {} with {} deferred, expected {}",
            engine.epoch().0,
            engine.deferred(),
            model.deferred_calls.len()
        ));
    }
    for (table, rows) in model.tables.iter().enumerate() {
        compare_rows(rows.clone(), rows_of(engine, TableId(table as u16)))
            .or_else(|difference| at(format!("table {table}: {difference}")))?;
    }
    read_between_epochs(engine, model).or_else(at)?;
    let sequences = model.sequences.iter();
    let sequences =
        sequences.map(|(k, v)| (k.to_be_bytes().to_vec(), v.to_le_bytes().to_vec())).collect();
    compare_rows(sequences, rows_of(engine, TableId(SEQUENCES.into())))
        .or_else(|difference| at(format!("sequences: {difference}")))?;
    if engine.state_hash() != model.state_hash() {
        return at("equal rows, other state hash".into());
    }
    if engine.rows() != model.rows() {
        return at(format!("{} rows counted, {} are there", engine.rows(), model.rows()));
    }
    Ok(())
}

/// Reads one row of each table by its key, another one for each epoch, and the rows from it on.
fn read_between_epochs(engine: &Engine, model: &Model) -> Result<(), String> {
    for (table, rows) in (0..).zip(&model.tables) {
        let Some((key, value)) = rows.iter().cycle().nth(model.epoch as usize % 7) else {
            continue;
        };
        let found = engine.get(TableId(table), key).map_err(|error| error.to_string())?;
        if found.as_ref() != Some(value) {
            return Err(format!("table {table}: row {key:02x?} is read as {found:02x?}"));
        }
        if !is_ordered(table as u8) {
            continue;
        }
        let mut found = Vec::new();
        let mut each = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        let scanned = engine.scan(TableId(table), key, &[0xff; 8], &mut each);
        scanned.map_err(|error| error.to_string())?;
        let expected = rows.range(key.clone()..vec![0xff; 8]);
        if !expected.eq(found.iter().map(|(k, v)| (k, v))) {
            return Err(format!("table {table}: other rows from {key:02x?} on"));
        }
    }
    Ok(())
}

fn rows_of(engine: &Engine, table: TableId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let mut each = |key: &[u8], value: &[u8]| rows.push((key.to_vec(), value.to_vec()));
    engine.for_each(table, &mut each).expect("the table exists");
    if !is_ordered(table.0 as u8) {
        rows.sort_unstable();
    }
    rows
}

fn compare_rows(
    expected: BTreeMap<Vec<u8>, Vec<u8>>,
    found: Vec<(Vec<u8>, Vec<u8>)>,
) -> Result<(), String> {
    if found.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return Err("rows are out of order or there twice".into());
    }
    let found: BTreeMap<_, _> = found.into_iter().collect();
    for (key, value) in &expected {
        match found.get(key) {
            None => return Err(format!("row {key:02x?} is missing")),
            Some(other) if other != value => {
                return Err(format!("row {key:02x?} holds {}, not {}", short(other), short(value)));
            }
            Some(_) => {}
        }
    }
    match found.keys().find(|key| !expected.contains_key(*key)) {
        Some(key) => Err(format!("row {key:02x?} should not exist")),
        None => Ok(()),
    }
}

fn short(bytes: &[u8]) -> String {
    format!("{} bytes {:02x?}", bytes.len(), &bytes[..bytes.len().min(12)])
}

/// Compares all answers of an epoch.
///
/// # Errors
/// The first difference.
pub fn compare_answers(outcome: &EpochOutcome, expected: &[Expected]) -> Result<(), String> {
    if outcome.len() != expected.len() {
        return Err(format!("{} answers, expected {}", outcome.len(), expected.len()));
    }
    for (position, expected) in expected.iter().enumerate() {
        let answer = outcome.answer(position);
        let same = match (&answer, expected) {
            (Answer::Committed(bytes), Expected::Committed(right)) => *bytes == &right[..],
            (Answer::Aborted(abort), Expected::Aborted(code)) => abort.code == *code,
            (Answer::Deferred, Expected::Deferred) => true,
            (Answer::Failed(why), Expected::Failed(part)) => why.contains(part),
            _ => false,
        };
        if !same {
            return Err(format!("call {position}: {answer:02x?}, expected {expected:02x?}"));
        }
    }
    Ok(())
}

/// Reads the whole store: every slot must be accounted for (O-33, O-41, O-48).
pub fn check_clean(device: &Arc<AnyDevice>, model: &Model) -> Result<(), String> {
    let report =
        storage::check::check(Arc::clone(device)).map_err(|error| format!("check: {error}"))?;
    if let Some(first) = report.problems.first() {
        return Err(format!("check: {first} ({} problems)", report.problems.len()));
    }
    engine::check_kept_indexes(Arc::clone(device)).map_err(|error| format!("check: {error}"))?;
    if report.epoch == EpochNumber(model.epoch) && report.state_hash != model.state_hash() {
        return Err("check: another state hash".into());
    }
    Ok(())
}
