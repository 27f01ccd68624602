//! The options of each workload; those of a run are the binary's own.

use clap::{Args, ValueEnum, value_parser};

/// How much transactions fight over few rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Contention {
    /// Hardly
    Low,
    /// Between the papers' two
    Medium,
    /// Very much
    High,
}

/// How much of TPC-C's specification is in the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mix {
    /// Customers by id, no rolled-back orders, as in the papers
    Paper,
    /// 60 % of customers by last name, 1 % rolled-back orders, as in the specification
    Full,
}

/// Options of Ycsb, and those of a run.
#[derive(Debug, Args)]
pub struct YcsbArguments<R: Args> {
    /// Keys of 10 that are hot: low 0, device 4, high 7 (NV Table 1) [default: low]
    #[arg(long, value_enum)]
    pub contention: Option<Contention>,
    /// Rows of the table (NV: 16 million) [default: 100000]
    #[arg(long)]
    pub rows: Option<u64>,
    /// Bytes of a row's value, 8 to 262128 [default: 1000]
    #[arg(long)]
    pub value_bytes: Option<u32>,
    /// Bytes that an update overwrites, 8 to value-bytes [default: 100, or value-bytes if that is
    /// less]
    #[arg(long)]
    pub update_bytes: Option<u32>,
    /// Keys of 10 that are only read; the others are updated [default: 0]
    #[arg(long, value_parser = value_parser!(u32).range(0..=10))]
    pub read_ratio: Option<u32>,
    /// Zipf skew of the keys, between 0 and 1 (CA: 0.9) [default: uniform]
    #[arg(long)]
    pub theta: Option<f64>,
    /// How many rows are hot (CA: 77) [default: 256]
    #[arg(long)]
    pub hot_rows: Option<u64>,
    /// Keys of 10 that are hot, instead of the contention's
    #[arg(long, value_parser = value_parser!(u32).range(0..=10))]
    pub hot_keys: Option<u32>,
    /// Distance between the keys of neighbouring hot rows (CA: 131072) [default: 1]
    #[arg(long)]
    pub hot_spacing: Option<u64>,
    /// Each update is a piece of its transaction, which --split-threshold can split off (CA 3.4,
    /// 5.3); answers and state are the same
    #[arg(long)]
    pub pieces: bool,
    /// Options that all workloads have.
    #[command(flatten)]
    pub run: R,
}

/// Options of SmallBank, and those of a run.
#[derive(Debug, Args)]
pub struct SmallBankArguments<R: Args> {
    /// Customers that get 90 % of the transactions: low 1 of 18, medium 1 of 180, high 1 of 1,800
    /// (NV Table 2) [default: low]
    #[arg(long, value_enum)]
    pub contention: Option<Contention>,
    /// Customers (NV: 18 million) [default: 500000]
    #[arg(long)]
    pub customers: Option<u64>,
    /// Hot customers, instead of the contention's
    #[arg(long)]
    pub hot_customers: Option<u64>,
    /// Transactions have a commit point behind their last check, from which on others see each of
    /// their writes at once (NV 3.1.2); answers and state are the same
    #[arg(long)]
    pub commit_points: bool,
    /// Options that all workloads have.
    #[command(flatten)]
    pub run: R,
}

/// Options of Tpcc, and those of a run.
#[derive(Debug, Args)]
pub struct TpccArguments<R: Args> {
    /// Warehouses: low 8 (NV Table 3: 256), device 2, high 1 [default: device]
    #[arg(long, value_enum)]
    pub contention: Option<Contention>,
    /// Warehouses, instead of the contention's; about 250 MB each
    #[arg(long)]
    pub warehouses: Option<u32>,
    /// Which transactions [default: paper]
    #[arg(long, value_enum)]
    pub mix: Option<Mix>,
    /// Items, and stock rows of a warehouse; fewer than the specification's make small tests
    /// [default: 100000]
    #[arg(long)]
    pub items: Option<u32>,
    /// Customers of each of the 10 districts of a warehouse [default: 3000]
    #[arg(long)]
    pub customers_per_district: Option<u32>,
    /// NewOrder, Payment and Delivery have a commit point behind their last check, from which on
    /// others see each of their writes at once (NV 3.1.2); answers and state are the same
    #[arg(long)]
    pub commit_points: bool,
    /// What NewOrder does with stock, Payment with warehouse and district, and Delivery with an
    /// order and its customer are pieces of them, which --split-threshold can split off (CA 5.4);
    /// answers and state are the same
    #[arg(long)]
    pub pieces: bool,
    /// Options that all workloads have.
    #[command(flatten)]
    pub run: R,
}
