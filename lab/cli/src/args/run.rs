//! Options of a run of the engine alone, or of another engine, beside those of every run.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, value_parser};
use cli::args::RunArguments;
use lab::{AppendMethod, CachePolicy, Design, Packing};

/// When to measure what the machine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Limits {
    /// After runs of 5 s or more
    Long,
    /// After every run
    Always,
    /// Not at all
    Never,
}

/// What a run of an engine has besides those that all have.
///
/// With --recover --checkpoint-every is by default more than there are epochs. With --clients the
/// library runs, and then the engine alone in epochs of the same size: which share of its
/// throughput the library gives. Clients and the engine alternate, in three parts of --seconds.
#[derive(Debug, Args)]
pub(crate) struct LabRunArguments {
    /// Options that every run has.
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// What keeps the rows: NVCaracal, or a design that it is compared with (NV 6.4, 6.7); those
    /// without a log run in memory, and recover no further than their last checkpoint
    #[arg(long, value_name = "DESIGN", value_parser = design_parser(),
          default_value = Design::default().name())]
    pub(crate) design: Design,
    /// How rows that several calls of an epoch write get their versions
    #[arg(long, value_name = "METHOD", value_parser = append_parser(),
          default_value = AppendMethod::default().name(), conflicts_with = "clients")]
    pub(crate) append: AppendMethod,
    /// How pieces that --split-threshold splits off are packed onto workers
    #[arg(long, value_name = "PACKING", value_parser = packing_parser(),
          default_value = Packing::default().name(), conflicts_with = "clients")]
    pub(crate) packing: Packing,
    /// Which values are cached, where there is a cache
    #[arg(long, value_name = "POLICY", value_parser = cache_policy_parser(),
          default_value = CachePolicy::default().name())]
    pub(crate) cache_policy: CachePolicy,
    /// For experiments: a stale inline version is cleared by the major collector an epoch later,
    /// instead of being overwritten by the final write (NV 6.6)
    #[arg(long)]
    pub(crate) no_minor_gc: bool,
    /// For experiments: maintain no hash of the state, so that recovery has nothing to compare the
    /// rows with; changes no answer and no state, and may differ from one --resume to the next
    #[arg(long, conflicts_with = "clients")]
    pub(crate) no_state_hash: bool,
    /// After the run forget everything but the device, as the end of a killed process does, recover
    /// from it, and show how long each part took and what it read
    ///
    /// Works on every device, also on those that keep nothing after the process: there the same
    /// memory is opened again. Loading ends in a checkpoint, and what is replayed are the epochs
    /// after the last one: with the default of --checkpoint-every all that this run executed, with
    /// --checkpoint-every N those since the last multiple of N. The state digest must be the one
    /// before, or the command fails. A run that was interrupted is closed instead.
    #[arg(long, conflicts_with = "clients")]
    pub(crate) recover: bool,
    /// For dbx-nvm and dbx-disk: microseconds after which the thread that writes the log ends a
    /// group
    #[arg(long, value_name = "US", default_value_t = 40_000, conflicts_with = "clients",
          value_parser = value_parser!(u64).range(1..=10_000_000))]
    pub(crate) group_us: u64,
    /// Run epochs of at most so many calls serially, on one thread and without declarations
    #[arg(long, value_name = "CALLS", default_value_t = 0, conflicts_with = "clients")]
    pub(crate) serial_calls_max: usize,
    /// Count the versions that epochs write to the device by place and length, for which every row
    /// is looked at between two epochs
    #[arg(long, conflicts_with = "clients")]
    pub(crate) count_written: bool,
    /// When to measure, after a run, what this machine's memory can do, and to show which share of
    /// that each phase reached; takes a second or two [default: long, that is after 5 s or
    /// more; without a value: always]
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "long", default_missing_value = "always", hide_default_value = true,
          conflicts_with = "clients")]
    pub(crate) limits: Limits,
    /// Show a model of an epoch on so many cores, 1 to 1024, instead of a run: what throughput
    /// would be there
    ///
    /// What steps cost is measured here with one worker; that run and one with --workers workers
    /// are held against the model. For all-dram and its options, and serial, calvin, bohm, caracal,
    /// granola and pwv.
    #[arg(long, value_name = "CORES[,CORES...]", value_delimiter = ',',
          value_parser = value_parser!(u64).range(1..=1024),
          conflicts_with_all = ["clients", "verify", "resume", "recover", "ack_log"])]
    pub(crate) model: Vec<u64>,
    /// In the model each update of a row runs apart from its call, as the papers cut TPC-C (CA 5.4)
    #[arg(long, requires = "model")]
    pub(crate) model_cut: bool,
    /// Do not run the engine alone beside the clients
    #[arg(long, requires = "clients")]
    pub(crate) no_engine: bool,
}

impl AsRef<RunArguments> for LabRunArguments {
    fn as_ref(&self) -> &RunArguments {
        &self.run
    }
}

fn design_parser() -> impl TypedValueParser<Value = Design> {
    let designs = Design::all();
    let values = designs.iter().map(|design| PossibleValue::new(design.name()).help(design.what()));
    PossibleValuesParser::new(values).map(move |name| {
        let named = designs.iter().find(|design| design.name() == name);
        *named.expect("one of those offered")
    })
}

fn cache_policy_parser() -> impl TypedValueParser<Value = CachePolicy> {
    let policies = CachePolicy::ALL;
    let values =
        policies.iter().map(|policy| PossibleValue::new(policy.name()).help(policy.what()));
    PossibleValuesParser::new(values).map(move |name| {
        let named = policies.into_iter().find(|policy| policy.name() == name);
        named.expect("one of those offered")
    })
}

/// The methods of the append step.
fn append_parser() -> impl TypedValueParser<Value = AppendMethod> {
    let methods = AppendMethod::ALL;
    PossibleValuesParser::new(methods.map(|m| PossibleValue::new(m.name()).help(m.what()))).map(
        move |name| methods.into_iter().find(|m| m.name() == name).expect("one of those offered"),
    )
}

/// The ways to pack pieces onto workers.
fn packing_parser() -> impl TypedValueParser<Value = Packing> {
    let packings = Packing::ALL;
    PossibleValuesParser::new(packings.map(|p| PossibleValue::new(p.name()).help(p.what()))).map(
        move |name| packings.into_iter().find(|p| p.name() == name).expect("one of those offered"),
    )
}
