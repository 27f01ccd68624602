//! What a run is about: everything that its data and its stream of calls depend on.
//!
//! Parameters are kept beside a durable store, so that a resumed run and a recovery use the same
//! ones. What may differ from run to run (device, workers, cache, checkpoint interval) is not here.

use std::fmt;

use serde::{Deserialize, Serialize};
use workloads::smallbank::SmallBankSettings;
use workloads::tpcc::{self, TpccSettings};
use workloads::ycsb::{self, YcsbSettings};

/// How much transactions fight over few rows (NV Tables 1 to 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contention {
    /// Hardly.
    Low,
    /// Between the papers' two.
    Medium,
    /// Very much.
    High,
}

impl fmt::Display for Contention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// TPC-C: how much of the specification is in the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// As in the papers.
    Paper,
    /// As in the specification.
    Full,
}

impl From<Mix> for tpcc::Mix {
    fn from(mix: Mix) -> Self {
        match mix {
            Mix::Paper => Self::Paper,
            Mix::Full => Self::Full,
        }
    }
}

/// The workload and its own parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "lowercase")]
pub enum WorkloadParameters {
    /// YCSB.
    Ycsb {
        /// Rows of the table.
        rows: u64,
        /// Bytes of a value.
        value_bytes: u32,
        /// Bytes that an update overwrites.
        update_bytes: u32,
        /// Hot rows.
        hot_rows: u64,
        /// Keys of 10 that are hot.
        hot_keys: u32,
        /// Distance between the keys of neighbouring hot rows.
        hot_spacing: u64,
        /// Keys of 10 that are only read.
        read_keys: u32,
        /// Zipf skew; uniform if absent.
        theta: Option<f64>,
        /// Whether each update is a piece of its transaction.
        #[serde(default)]
        pieces: bool,
    },
    /// SmallBank.
    SmallBank {
        /// Customers.
        customers: u64,
        /// Customers that get 90 % of the transactions.
        hot_customers: u64,
        /// Whether transactions have commit points.
        #[serde(default)]
        commit_points: bool,
    },
    /// TPC-C.
    Tpcc {
        /// Warehouses.
        warehouses: u32,
        /// How much of the specification is in the calls.
        mix: Mix,
        /// Items, and stock rows of a warehouse.
        items: u32,
        /// Customers of a district.
        customers_per_district: u32,
        /// Whether transactions have commit points.
        #[serde(default)]
        commit_points: bool,
        /// Whether transactions are cut into pieces.
        #[serde(default)]
        pieces: bool,
    },
}

/// Everything that data and calls depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// The workload and its own parameters.
    #[serde(flatten)]
    pub workload: WorkloadParameters,
    /// The preset that the workload's parameters started from.
    pub contention: Contention,
    /// Transactions of an epoch.
    pub epoch_size: u64,
    /// Names the data and the stream of calls.
    pub seed: u64,
    /// Bytes of a segment of the store.
    pub segment_bytes: u64,
    /// Loading transactions of a loading epoch.
    pub loads_per_epoch: u64,
    /// Bytes of a persistent row of every table but sequences; 0 lets the store choose.
    #[serde(default)]
    pub row_bytes: u32,
    /// Bytes of an inline heap that both versions of a row share, in every table but sequences; 0:
    /// each has a half.
    #[serde(default)]
    pub shared_heap_bytes: u32,
}

/// Loading transactions of a loading epoch: up to 300 rows each, so at most 75,000 rows.
pub(crate) const LOADS_PER_EPOCH: u64 = 250;
impl WorkloadParameters {
    /// YCSB of NV 6.2.1 with Table 1's contention, and fewer rows.
    #[must_use]
    pub fn ycsb(rows: u64, contention: Contention) -> Self {
        let contention = match contention {
            Contention::Low => ycsb::Contention::Low,
            Contention::Medium => ycsb::Contention::Medium,
            Contention::High => ycsb::Contention::High,
        };
        let paper = YcsbSettings::paper(rows, contention);
        Self::Ycsb {
            rows,
            value_bytes: paper.value_bytes,
            update_bytes: paper.update_bytes,
            hot_rows: paper.hot_rows,
            hot_keys: paper.hot_keys,
            hot_spacing: paper.hot_spacing,
            read_keys: paper.read_keys,
            theta: paper.theta,
            pieces: paper.pieces,
        }
    }

    /// SmallBank of NV 6.2.2 with the shares of hot customers of Table 2: low 1 of 18, high 1 of
    /// 1,800, medium 1 of 180 between them.
    #[must_use]
    pub fn smallbank(customers: u64, contention: Contention) -> Self {
        let hot_customers = match contention {
            Contention::Low => SmallBankSettings::low(customers).hot_customers,
            Contention::Medium => (customers / 180).max(2),
            Contention::High => SmallBankSettings::high(customers).hot_customers,
        };
        Self::SmallBank { customers, hot_customers, commit_points: false }
    }

    /// TPC-C at the specification's scale. Table 3 has 256 warehouses for low and one for high
    /// contention; low is 8 here, which fits a small machine, and medium 2.
    #[must_use]
    pub fn tpcc(contention: Contention) -> Self {
        let warehouses = match contention {
            Contention::Low => 8,
            Contention::Medium => 2,
            Contention::High => 1,
        };
        let standard = TpccSettings::standard(warehouses, tpcc::Mix::Paper);
        Self::Tpcc {
            warehouses,
            mix: Mix::Paper,
            items: standard.items,
            customers_per_district: standard.customers_per_district,
            commit_points: standard.commit_points,
            pieces: standard.pieces,
        }
    }
}

impl Parameters {
    /// Parameters of a new store.
    #[must_use]
    pub fn new(workload: WorkloadParameters, contention: Contention) -> Self {
        Self {
            workload,
            contention,
            epoch_size: 100_000,
            seed: 1,
            segment_bytes: storage::StoreOptions::default().segment_bytes,
            loads_per_epoch: LOADS_PER_EPOCH,
            row_bytes: 0,
            shared_heap_bytes: 0,
        }
    }

    /// Names the parameters in which a store differs from those asked for: `name is A in the
    /// store, B was asked for`.
    #[must_use]
    pub fn differences(&self, asked: &Self) -> Vec<String> {
        let fields = |parameters: &Self| match serde_json::to_value(parameters) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (stored, asked) = (fields(self), fields(asked));
        if stored.get("workload") != asked.get("workload") {
            let of = |map: &serde_json::Map<_, _>| map.get("workload").cloned().unwrap_or_default();
            return vec![format!(
                "workload is {} in the store, {} was asked for",
                of(&stored),
                of(&asked)
            )];
        }
        let differing = stored.iter().filter(|(name, value)| asked.get(*name) != Some(value));
        let line = |(name, value): (&String, &serde_json::Value)| {
            let asked = asked.get(name).cloned().unwrap_or_default();
            format!("{name} is {value} in the store, {asked} was asked for")
        };
        differing.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Parameters> {
        let contention = Contention::High;
        vec![
            Parameters::new(WorkloadParameters::ycsb(1_000, contention), contention),
            Parameters::new(WorkloadParameters::smallbank(10_000, contention), contention),
            Parameters::new(WorkloadParameters::tpcc(contention), contention),
        ]
    }

    #[test]
    fn parameters_survive_their_file() {
        for parameters in all() {
            let text = serde_json::to_string(&parameters).expect("plain data");
            let back: Parameters = serde_json::from_str(&text).expect("the same shape");
            assert_eq!(back, parameters, "{text}");
            assert!(parameters.job().is_ok());
        }
    }

    #[test]
    fn a_difference_names_the_parameter_and_both_values() {
        for parameters in all() {
            assert!(parameters.differences(&parameters.clone()).is_empty());
            let other = Parameters { epoch_size: 7, ..parameters.clone() };
            let found = parameters.differences(&other);
            assert_eq!(found, ["epoch_size is 100000 in the store, 7 was asked for"]);
        }
        let [ycsb, smallbank, _] = all().try_into().expect("three");
        let found = ycsb.differences(&smallbank);
        assert_eq!(found, ["workload is \"ycsb\" in the store, \"smallbank\" was asked for"]);
    }
}
