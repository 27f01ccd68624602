//! What a YCSB run looks like, and which settings make sense.

use crate::common::{SettingsError, require};

/// Most keys of one transaction.
pub const KEYS_PER_TXN_MAX: usize = 64;
/// Bytes of the counter at the start of a row.
pub(super) const COUNTER_BYTES: usize = 8;
/// Most rows of the table.
const ROWS_MAX: u64 = 1 << 31;

/// The share of hot keys of Table 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contention {
    /// No key of 10 is from the hot rows.
    Low,
    /// 4 of 10 keys are from the hot rows.
    Medium,
    /// 7 of 10 keys are from the hot rows.
    High,
}

/// What a YCSB run looks like. Start from a preset and change fields.
#[derive(Debug, Clone, PartialEq)]
pub struct YcsbSettings {
    /// Rows of the table.
    pub rows: u64,
    /// Bytes of a row.
    pub value_bytes: u32,
    /// Bytes that an update overwrites, from the start of the row.
    pub update_bytes: u32,
    /// Different keys of one transaction.
    pub keys_per_txn: u32,
    /// How many rows are hot.
    pub hot_rows: u64,
    /// How many keys of a transaction are from the hot rows.
    pub hot_keys: u32,
    /// Distance between the keys of neighbouring hot rows.
    pub hot_spacing: u64,
    /// How many keys of a transaction are only read.
    pub read_keys: u32,
    /// Zipf skew of the choice from the hot rows and from the whole table; uniform if absent.
    pub theta: Option<f64>,
    /// Whether updates are pieces, which an engine may split off where rows are contended (CA 3.4).
    pub pieces: bool,
    /// Names the data and the stream of calls.
    pub seed: u64,
}

impl YcsbSettings {
    /// NV 6.2.1: 1,000-byte rows, updates of 100 bytes, all 10 keys updated.
    #[must_use]
    pub fn paper(rows: u64, contention: Contention) -> Self {
        let hot_keys = match contention {
            Contention::Low => 0,
            Contention::Medium => 4,
            Contention::High => 7,
        };
        Self {
            rows,
            value_bytes: 1000,
            update_bytes: 100,
            keys_per_txn: 10,
            hot_rows: 256,
            hot_keys,
            hot_spacing: 1,
            read_keys: 0,
            theta: None,
            pieces: false,
            seed: 1,
        }
    }

    /// NV 6.2.1, YCSB-smallrow: 64-byte rows, overwritten whole.
    #[must_use]
    pub fn small_rows(rows: u64, contention: Contention) -> Self {
        Self { value_bytes: 64, update_bytes: 64, ..Self::paper(rows, contention) }
    }

    /// CA 5.3, Figure 5: 8 reads and 2 updates, keys uniform or skewed by `theta` (0.9 in the
    /// paper).
    #[must_use]
    pub fn caracal(rows: u64, theta: Option<f64>) -> Self {
        Self { read_keys: 8, theta, ..Self::paper(rows, Contention::Low) }
    }

    /// CA 5.3, Figure 6: 10 updates, 7 of them in 77 rows that are 2^17 keys apart. Needs the
    /// paper's 10 M rows, or a smaller `hot_spacing`.
    #[must_use]
    pub fn caracal_contended(rows: u64, theta: Option<f64>) -> Self {
        Self { hot_rows: 77, hot_spacing: 1 << 17, theta, ..Self::paper(rows, Contention::High) }
    }

    pub(super) fn validate(&self) -> Result<(), SettingsError> {
        let Self { rows, hot_rows, hot_spacing, .. } = *self;
        let keys = self.keys_per_txn;
        require((1..=KEYS_PER_TXN_MAX).contains(&(keys as usize)), || {
            format!("keys_per_txn is {keys}, allowed are 1 to {KEYS_PER_TXN_MAX}")
        })?;
        require((u64::from(keys)..=ROWS_MAX).contains(&rows), || {
            format!("rows is {rows}, allowed are keys_per_txn ({keys}) to {ROWS_MAX}")
        })?;
        require(self.hot_keys <= keys, || {
            format!("hot_keys is {}, more than keys_per_txn ({keys})", self.hot_keys)
        })?;
        require(self.read_keys <= keys, || {
            format!("read_keys is {}, more than keys_per_txn ({keys})", self.read_keys)
        })?;
        require((COUNTER_BYTES..=1 << 20).contains(&(self.value_bytes as usize)), || {
            format!("value_bytes is {}, allowed are 8 to 1048576", self.value_bytes)
        })?;
        require((COUNTER_BYTES as u32..=self.value_bytes).contains(&self.update_bytes), || {
            let (update, value) = (self.update_bytes, self.value_bytes);
            format!("update_bytes is {update}, allowed are 8 to value_bytes ({value})")
        })?;
        if let Some(theta) = self.theta {
            require(theta > 0.0 && theta < 1.0, || {
                format!("theta is {theta}, it must lie between 0 and 1, both excluded")
            })?;
        }
        if self.hot_keys == 0 {
            return Ok(());
        }
        require(hot_rows >= u64::from(self.hot_keys), || {
            format!("hot_rows is {hot_rows}, less than hot_keys ({})", self.hot_keys)
        })?;
        require(hot_spacing >= 1, || "hot_spacing is 0".to_owned())?;
        let last = (hot_rows - 1).checked_mul(hot_spacing);
        require(last.is_some_and(|last| last < rows), || {
            format!("{hot_rows} hot rows {hot_spacing} keys apart do not fit into {rows} rows")
        })
    }
}
