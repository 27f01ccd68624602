//! NVCaracal beside the six storage engines of `arulraj`: the same transactions of each partition,
//! one worker, and a report with the same fields.
//!
//! What reaches persistent memory is counted as the engine's own devices do, without a modelled
//! cache: the engine flushes all that it stores there, and its indexes, version arrays and cached
//! rows are in DRAM, which is charged as time of the processor. The six have no DRAM.

use std::sync::Arc;

use arulraj::{Counts, Ycsb, YcsbCalls, share, warehouse};
use bench::{
    Contention, EngineConfig, IMAGE_LIMIT_BYTES_DEFAULT, LOG_LIMIT_BYTES_DEFAULT, Parameters,
    Place, Progress, Result, Stop, WorkloadParameters,
};
use pmem::{DeviceSpec, Profile};
use workloads::Workload;

use crate::engine_run::run;
use crate::{Design, Job, Measuring, Report, Settings};

/// The name of the engine in reports.
pub const BESIDE: &str = "nvcaracal";
/// Most transactions of an epoch.
const EPOCH_SIZE_MAX: u64 = 4000;

/// What a partition came to.
struct Part {
    /// On emulated persistent memory.
    counted: Report,
    /// Nanoseconds of the processor of a transaction, on a device without flushes.
    cpu_ns: f64,
}

/// Runs the work of the six engines on NVCaracal.
///
/// # Errors
/// `Usage` for a recovery or shares of time, which are not measured here; what stops a run.
pub fn run_beside(settings: &arulraj::Settings) -> Result<arulraj::Report> {
    if settings.recover || settings.shares {
        let what = "--recover and --shares are of the six engines; bench ycsb and bench tpcc \
                    recover NVCaracal";
        return Err(bench::BenchError::Usage(what.into()));
    }
    let parts = (0..settings.partitions).map(|partition| one_partition(settings, partition));
    let parts: Vec<Part> = parts.collect::<Result<_>>()?;
    let each =
        |of: &dyn Fn(&Part) -> f64| parts.iter().map(of).sum::<f64>() / parts.len().max(1) as f64;
    let counter = |name: &str| each(&|part| part.counted.counters.get(&format!("{name}_per_txn")));
    let counts = Counts {
        lines_read: counter("lines_read"),
        // The input log is streamed.
        lines_written: counter("lines_written") + counter("log_bytes") / 64.0,
        bytes_stored: counter("bytes_stored") + counter("bytes_stored_nt") + counter("log_bytes"),
        fences: counter("fences"),
        written_log: counter("log_bytes"),
        load_waits: counter("lines_read"),
        ..Counts::default()
    };
    let seconds = parts.iter().map(|part| part.counted.seconds).sum();
    let cpu_ns = each(&|part| part.cpu_ns);
    let mut report = arulraj::Report::of_another(BESIDE, settings, counts, seconds, cpu_ns);
    report.verified = parts.iter().all(|part| part.counted.verified);
    Ok(report)
}

fn one_partition(settings: &arulraj::Settings, partition: u64) -> Result<Part> {
    let count = share(settings.transactions, settings.partitions, partition);
    let epochs = count.div_ceil(EPOCH_SIZE_MAX).max(1);
    let epoch_size = count.div_ceil(epochs).max(1);
    let seed = settings.seed;
    match settings.tpcc {
        Some(size) => {
            let workload = warehouse(size, seed, partition)
                .map_err(|error| bench::BenchError::Usage(error.to_string()))?;
            run_workload(settings, workload, epoch_size, epochs)
        }
        None => {
            let tuples = share(settings.tuples, settings.partitions, partition);
            let arulraj::Settings { mix, skew, .. } = *settings;
            let ycsb = Ycsb { tuples, mix, skew, seed, partition };
            run_workload(settings, YcsbCalls { ycsb, epoch_size }, epoch_size, epochs)
        }
    }
}

fn run_workload<W: Workload + 'static>(
    settings: &arulraj::Settings,
    workload: W,
    epoch_size: u64,
    epochs: u64,
) -> Result<Part> {
    // The workload is not made from its parameters here; sizes of epochs are what counts of them.
    let contention = Contention::Low;
    let parameters = Parameters::new(WorkloadParameters::tpcc(contention), contention);
    let parameters = Parameters { epoch_size, seed: settings.seed, ..parameters };
    let job = Job::new(Arc::new(workload), parameters);
    let on = |spec: DeviceSpec, verify: bool| {
        let place = Place::named(spec.clone(), None, Progress::Hidden)?;
        run(&job, &place, &engine_settings(&spec, epochs, verify))
    };
    let counted = on(DeviceSpec::Emulated(Profile::None), settings.verify)?;
    let cpu_ns = match settings.cost {
        true => on(DeviceSpec::Dram, false)?.cpu_ns_per_txn,
        false => 0.0,
    };
    Ok(Part { counted, cpu_ns })
}

fn engine_settings(spec: &DeviceSpec, epochs: u64, verify: bool) -> Settings {
    Settings {
        epochs,
        design: Design::default(),
        engine: EngineConfig { workers: 1, ..EngineConfig::for_device(spec) },
        serial_calls_max: 0,
        group_us: 0,
        image_limit_bytes: IMAGE_LIMIT_BYTES_DEFAULT,
        memory_limit_bytes: None,
        log_limit_bytes: LOG_LIMIT_BYTES_DEFAULT,
        ack_log: None,
        resume: false,
        verify,
        check: false,
        recover: false,
        count_written: false,
        limits: Measuring::Never,
        progress: Progress::Hidden,
        stop: Stop::never(),
        die_at: None,
    }
}
