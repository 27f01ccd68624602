//! Settings that hardly any program needs to change.

use std::time::Duration;

use engine::EngineConfig;
use storage::StoreOptions;

/// What a database is told besides its [`Options`](crate::Options), by
/// [`Options::tuning`](crate::Options::tuning). No setting changes what calls come to. A value out
/// of its range is an error of the open that names the setting.
///
/// | setting | default | from | to |
/// |---|---|---|---|
/// | [`split_threshold`](Self::split_threshold) | 0: never | 0 | |
/// | [`serial_calls_max`](Self::serial_calls_max) | 64 | 0 | |
/// | [`epoch_calls_max`](Self::epoch_calls_max) | 20,000 | 1 | 16,777,215 |
/// | [`epoch_wait_max`](Self::epoch_wait_max) | 0.5 ms | 0 | |
/// | [`queue_calls_max`](Self::queue_calls_max) | 100,000 | 1 | 16,777,215 |
/// | [`queue_bytes_max`](Self::queue_bytes_max) | 256 MiB | 1 MiB | |
/// | [`argument_bytes_max`](Self::argument_bytes_max) | 1 MiB | 1 | 64 MiB, `queue_bytes_max` |
/// | [`procedure_time_warning`](Self::procedure_time_warning) | 0: never | 0 | |
/// | [`close_wait_max`](Self::close_wait_max) | 30 s | 0 | |
/// | [`consumer_bytes_max`](Self::consumer_bytes_max) | 1 GiB | 16 MiB | |
/// | [`procedure_stack_bytes`](Self::procedure_stack_bytes) | 8 MiB | 64 KiB | 1 GiB |
/// | [`segment_bytes`](Self::segment_bytes) | 256 KiB | 4 KiB | 64 MiB |
/// | [`log_segment_bytes`](Self::log_segment_bytes) | 4 KiB | 4 KiB | 16 MiB |
///
/// ```
/// use nvcaracal::{Database, DeviceSpec, Tuning};
///
/// let tuning = Tuning { queue_calls_max: 1000, ..Tuning::default() };
/// let db = Database::options().tuning(tuning).open_device(DeviceSpec::Dram)?;
/// # Ok::<(), nvcaracal::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Updates in an epoch from which a row counts as contended: its
    /// [pieces](crate::WriteSet::update_piece) run apart from their transactions then, packed onto
    /// few workers (split-on-demand). 0: never. It is for many workers: with two, it saves waiting
    /// and gains little.
    pub split_threshold: u32,
    /// Epochs of at most so many calls run one after the other on one thread, whatever their write
    /// sets say: that takes less time than waking the workers. 0: none does.
    pub serial_calls_max: usize,
    /// Most calls in an epoch, but for a [`Batch`](crate::Batch) of more. Larger epochs cost less
    /// for each call, smaller ones answer sooner.
    pub epoch_calls_max: usize,
    /// Longest time that an epoch waits for more calls while the engine is free. It waits only if
    /// much fewer calls are there than the last epoch had, and never longer than an eighth of that
    /// epoch's time, so a single caller never waits.
    pub epoch_wait_max: Duration,
    /// Most calls that wait for an epoch; then [`Database::submit`](crate::Database::submit) waits
    /// and [`Database::try_submit`](crate::Database::try_submit) fails.
    pub queue_calls_max: usize,
    /// Most bytes of arguments that wait for an epoch.
    pub queue_bytes_max: usize,
    /// Most bytes of the arguments of one call. They are logged, in as many segments as they need,
    /// and the epoch of a long call takes as long as writing it.
    pub argument_bytes_max: usize,
    /// The stack that procedures and functions of indexes have, the same for all: alone or beside
    /// others, on any number of workers, from whichever thread they are called, and in a recovery.
    /// Memory is allocated for what is used of it. A call that needs more ends the process, as an
    /// overflow of any stack does; give more to procedures that recurse deeply, and never less than
    /// before while a log may hold such calls.
    pub procedure_stack_bytes: usize,
    /// A call that runs for longer is told to `tracing` and `metrics`, and counted in
    /// [`ProcedureStats::slow`](crate::ProcedureStats::slow), while it runs: one that does not end
    /// is named, also while a database is opened and its log runs again. 0: none is.
    pub procedure_time_warning: Duration,
    /// How long [`Database::close`](crate::Database::close), or dropping the last handle, waits for
    /// one call that runs; longer epochs of shorter calls are waited for.
    pub close_wait_max: Duration,
    /// Most bytes of changes that are kept in the directory of the database for
    /// [consumers](crate::Consumer), over all of them. Beyond it the oldest are deleted, and
    /// consumers that have not confirmed them are told. So are all consumers if one epoch changes
    /// more than a quarter of it, or more than 256 MiB, in the tables that they follow.
    pub consumer_bytes_max: u64,
    /// The unit in which tables get space, a power of two; also the longest row. Fixed when the
    /// database is created.
    pub segment_bytes: u64,
    /// The unit in which the input log gets space, a power of two. Fixed when the database is
    /// created.
    pub log_segment_bytes: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        let (engine, store) = (EngineConfig::default(), StoreOptions::default());
        Self {
            split_threshold: engine.split_threshold,
            serial_calls_max: 64,
            epoch_calls_max: 20_000,
            epoch_wait_max: Duration::from_micros(500),
            queue_calls_max: 100_000,
            queue_bytes_max: 256 << 20,
            argument_bytes_max: 1 << 20,
            procedure_time_warning: Duration::ZERO,
            close_wait_max: Duration::from_secs(30),
            consumer_bytes_max: 1 << 30,
            procedure_stack_bytes: engine.procedure_stack_bytes,
            segment_bytes: store.segment_bytes,
            log_segment_bytes: store.log_segment_bytes,
        }
    }
}
