//! YCSB as grouped into transactions by Caracal: each reads or updates 10 different keys of one
//! table.
//!
//! As in NV 6.2.1 (Table 1): 1,000-byte rows of which an update overwrites the first 100 bytes, or
//! 64-byte rows that are overwritten whole; 0, 4 or 7 of the 10 keys come from 256 hot rows, the
//! others from the whole table. As in CA 5.3: a part of the keys is only read, keys are
//! Zipf-distributed, 77 hot rows lie 2^17 keys apart.
//!
//! * An update is a read-modify-write: it folds the whole row into the answer, counts bytes 0..8 of
//!   the row up by one, and overwrites the rest of the first `update_bytes` with the payload in its
//!   arguments. The payload is input and is logged, so inputs are about as large as outputs, as the
//!   papers say.
//! * The counters make the check: every row must have counted exactly the committed updates that
//!   were answered.
//! * With `pieces` each update is a piece (CA 3.4, 5.3), which an engine may run apart from the
//!   rest of its call. The arguments, the answers and the state are the same.
//! * Hot row `i` has key `i * hot_spacing`. "The others" may hit a hot row, as rarely as chance has
//!   it.
//! * Zipf ranks of the whole table are scattered over the keys by a fixed bijection, so that
//!   frequent keys are not neighbours; ranks of the hot rows are not. The keys of a call are
//!   shuffled, so that hot keys have no fixed place in it and are as likely read as updated.

mod procedures;
mod settings;

use crate::api::{
    Answer, IndexKind, Observer, ProcedureId, Register, StreamEpoch, TableId, TableSpec, View,
    Workload,
};
use crate::common::{Complaints, SettingsError, named, word_at};
use crate::random::{Random, Zipf};
use procedures::{Call, YcsbCall, YcsbLoad, YcsbPieces};
pub use settings::{Contention, KEYS_PER_TXN_MAX, YcsbSettings};

/// The only table.
pub const USERTABLE: TableId = TableId(0);
const CALL: ProcedureId = 0;
const LOAD: ProcedureId = 1;
const PIECES: ProcedureId = 2;
const ROWS_PER_LOAD: u64 = 100;
/// A prime above the largest table, so that multiplying by it permutes the keys of every table.
const SCATTER: u64 = 2_654_435_761;

/// The YCSB workload.
#[derive(Debug, Clone)]
pub struct Ycsb {
    settings: YcsbSettings,
    zipf_all: Option<Zipf>,
    zipf_hot: Option<Zipf>,
}

impl Ycsb {
    /// A workload with these settings.
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub fn new(settings: YcsbSettings) -> Result<Self, SettingsError> {
        settings.validate()?;
        let zipf_all = settings.theta.map(|theta| Zipf::new(settings.rows, theta));
        let zipf_hot = settings.theta.map(|theta| Zipf::new(settings.hot_rows.max(1), theta));
        Ok(Self { settings, zipf_all, zipf_hot })
    }

    /// The settings it was made with.
    #[must_use]
    pub fn settings(&self) -> &YcsbSettings {
        &self.settings
    }

    fn hot_key(&self, random: &mut Random) -> u64 {
        let rank = match &self.zipf_hot {
            Some(zipf) => zipf.sample(random),
            None => random.below(self.settings.hot_rows),
        };
        rank * self.settings.hot_spacing
    }

    fn any_key(&self, random: &mut Random) -> u64 {
        match &self.zipf_all {
            // One more than the rank, so that the most frequent key is not hot row 0 as well.
            Some(zipf) => (zipf.sample(random) + 1) * SCATTER % self.settings.rows,
            None => random.below(self.settings.rows),
        }
    }

    /// Chooses the different keys of a call, hot ones first, then shuffles them.
    fn choose_keys(&self, random: &mut Random, keys: &mut [u64]) {
        let hot = self.settings.hot_keys as usize;
        for i in 0..keys.len() {
            keys[i] = loop {
                let key = if i < hot { self.hot_key(random) } else { self.any_key(random) };
                if !keys[..i].contains(&key) {
                    break key;
                }
            };
        }
        if hot == 0 && self.settings.theta.is_none() {
            return;
        }
        for i in (1..keys.len()).rev() {
            keys.swap(i, random.below(i as u64 + 1) as usize);
        }
    }
}

impl Workload for Ycsb {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn tables(&self) -> Vec<TableSpec> {
        vec![TableSpec {
            name: "usertable",
            index: IndexKind::Hash,
            key_bytes_max: 8,
            value_bytes_max: self.settings.value_bytes,
        }]
    }

    fn register<R: Register>(&self, to: &mut R) {
        to.procedure::<YcsbCall>();
        to.procedure::<YcsbLoad>();
        to.procedure::<YcsbPieces>();
    }

    fn load_count(&self) -> u64 {
        self.settings.rows.div_ceil(ROWS_PER_LOAD)
    }

    fn load(&self, i: u64, args: &mut Vec<u8>) -> ProcedureId {
        let first = i * ROWS_PER_LOAD;
        let count = ROWS_PER_LOAD.min(self.settings.rows - first) as u32;
        args.extend_from_slice(&first.to_le_bytes());
        args.extend_from_slice(&self.settings.seed.to_le_bytes());
        args.extend_from_slice(&count.to_le_bytes());
        args.extend_from_slice(&self.settings.value_bytes.to_le_bytes());
        LOAD
    }

    fn generate(&self, epoch: StreamEpoch, position: u64, args: &mut Vec<u8>) -> ProcedureId {
        let settings = &self.settings;
        let mut random = Random::new(settings.seed ^ 0x5943_5342, epoch.0, position);
        let mut keys = [0_u64; KEYS_PER_TXN_MAX];
        let keys = &mut keys[..settings.keys_per_txn as usize];
        self.choose_keys(&mut random, keys);
        let reads = settings.read_keys as u16;
        let updates = keys.len() as u16 - reads;
        args.extend_from_slice(&reads.to_le_bytes());
        args.extend_from_slice(&updates.to_le_bytes());
        args.extend_from_slice(&settings.update_bytes.to_le_bytes());
        for key in keys {
            args.extend_from_slice(&key.to_le_bytes());
        }
        let payload_at = args.len();
        let payload_bytes = usize::from(updates) * settings.update_bytes as usize;
        args.resize(payload_at + payload_bytes, 0);
        random.fill(&mut args[payload_at..]);
        if settings.pieces { PIECES } else { CALL }
    }

    fn observer(&self, view: &dyn View) -> Box<dyn Observer> {
        let mut expected = vec![0_u32; self.settings.rows as usize].into_boxed_slice();
        view.for_each(USERTABLE, &mut |key, value| {
            if let (Some(row), Some(counter)) = (row_of(key, &expected), word_at(value, 0)) {
                expected[row] = counter as u32;
            }
        });
        Box::new(YcsbObserver { expected })
    }
}

/// The row number of a key of the table, if it is one.
fn row_of(key: &[u8], rows: &[u32]) -> Option<usize> {
    let row = u64::from_be_bytes(key.try_into().ok()?);
    (row < rows.len() as u64).then_some(row as usize)
}

/// What each row's counter must be. 4 bytes a row: no run updates a row 2^32 times between two
/// checks.
struct YcsbObserver {
    expected: Box<[u32]>,
}

impl Observer for YcsbObserver {
    fn observe(&mut self, procedure: ProcedureId, args: &[u8], answer: Answer<'_>) {
        if procedure == LOAD || !matches!(answer, Answer::Committed(_)) {
            return;
        }
        let Some(call) = Call::parse(args) else { return };
        for key in call.update_keys() {
            if let Some(row) = row_of(&key, &self.expected) {
                self.expected[row] = self.expected[row].wrapping_add(1);
            }
        }
    }

    fn check(&self, view: &dyn View) -> Vec<String> {
        let mut complaints = Complaints::default();
        let mut seen = 0_usize;
        view.for_each(USERTABLE, &mut |key, value| {
            seen += 1;
            let (Some(row), Some(counter)) = (row_of(key, &self.expected), word_at(value, 0))
            else {
                complaints.add("stray row", || format!("key {key:x?}, {} bytes", value.len()));
                return;
            };
            complaints.equal(
                "wrong counter",
                named("counted", counter as u32),
                named("answered", self.expected[row]),
                || format!("row {row}"),
            );
        });
        let rows = self.expected.len();
        complaints.equal(
            "wrong row count",
            named("found", seen),
            named("loaded", rows),
            String::new,
        );
        complaints.into_lines()
    }
}
