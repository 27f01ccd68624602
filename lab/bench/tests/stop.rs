//! A run that is asked to stop before any of its epochs closes its store with a checkpoint, says
//! what ran, and goes on later as if it had never stopped (O-62).

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::{
    Contention, EngineConfig, IMAGE_LIMIT_BYTES_DEFAULT, LOG_LIMIT_BYTES_DEFAULT, Maker,
    Parameters, Place, Progress, Stop, WorkloadParameters,
};
use lab::{Design, Job, Measuring, Report, Settings};
use pmem::DeviceSpec;

const EPOCHS: u64 = 3;

fn settings(ack_log: &Path, resume: bool, stop: Stop) -> Settings {
    Settings {
        epochs: EPOCHS,
        design: Design::default(),
        engine: EngineConfig { workers: 2, checkpoint_every: 100, ..EngineConfig::default() },
        serial_calls_max: 0,
        group_us: 40_000,
        image_limit_bytes: IMAGE_LIMIT_BYTES_DEFAULT,
        log_limit_bytes: LOG_LIMIT_BYTES_DEFAULT,
        memory_limit_bytes: None,
        ack_log: Some(ack_log.to_path_buf()),
        resume,
        verify: true,
        check: true,
        recover: false,
        count_written: false,
        limits: Measuring::Never,
        progress: Progress::Hidden,
        stop,
        die_at: None,
    }
}

/// Stops before the epoch that would be the one after so many.
fn after(epochs: u64) -> Stop {
    let asked = AtomicU64::new(0);
    Stop::when(move || asked.fetch_add(1, Ordering::Relaxed) >= epochs)
}

fn run(job: &Job, spec: &DeviceSpec, settings: &Settings) -> Report {
    let place =
        Place::named(spec.clone(), settings.resume.then_some(Maker::Engine), Progress::Hidden)
            .expect("a place");
    let report = lab::run(job, &place, settings).expect("a run without differences");
    assert_eq!(report.problems, [""; 0]);
    report
}

/// Stops a run at every point where it asks, and resumes it.
fn check(workload: WorkloadParameters, loads_per_epoch: u64) {
    let parameters = Parameters::new(workload, Contention::Low);
    let parameters = Parameters { epoch_size: 40, loads_per_epoch, ..parameters };
    let job = Job::of(&parameters).expect("a job");
    let loading = job.loading_epochs();
    assert!((2..20).contains(&loading), "{loading}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = |name: String| dir.path().join(name);
    let acks = |name: &Path| fs::read_to_string(name).expect("an acknowledgement log");

    let whole_acks = path("whole".to_string());
    let whole = run(&job, &DeviceSpec::Dram, &settings(&whole_acks, false, Stop::never()));
    assert!(!whole.interrupted && whole.head.epochs == EPOCHS);
    for stop in 0..=loading + EPOCHS {
        let spec = DeviceSpec::File(path(format!("store{stop}")));
        let ack_log = path(format!("acks{stop}"));
        let report = run(&job, &spec, &settings(&ack_log, false, after(stop)));
        let ran = stop.saturating_sub(loading);
        assert_eq!((report.epoch, report.head.epochs), (stop, ran));
        assert_eq!(report.interrupted, ran < EPOCHS, "{stop} of {loading} and {EPOCHS}");
        assert_eq!((report.verified, report.checked), (ran > 0, ran > 0), "{stop}");
        assert_eq!(acks(&ack_log).lines().count() as u64, stop);

        let found = lab::recover(&spec, 1).expect("a store that can be recovered");
        assert_eq!((found.epoch, found.checkpoint_epoch), (stop, stop));
        assert_eq!(found.state_digest, report.state_digest, "{stop}");

        let resumed = run(&job, &spec, &settings(&ack_log, true, Stop::never()));
        assert!(!resumed.interrupted && resumed.verified, "{stop}");
        assert_eq!(resumed.head.epochs, EPOCHS - ran);
        assert_eq!(resumed.state_digest, whole.state_digest, "{stop}");
        assert_eq!(acks(&ack_log), acks(&whole_acks), "{stop}");
    }
}

#[test]
fn o_62_smallbank_stops_before_any_epoch_and_goes_on() {
    check(WorkloadParameters::smallbank(500, Contention::Low), 2);
}

#[test]
fn o_62_tpcc_stops_before_any_epoch_and_goes_on() {
    let workload = WorkloadParameters::Tpcc {
        warehouses: 1,
        mix: bench::Mix::Full,
        items: 100,
        customers_per_district: 30,
        commit_points: false,
        pieces: false,
    };
    check(workload, 15);
}
