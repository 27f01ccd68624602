//! `bench`: settings from options, a place for the store, the run, the result.

use bench::{
    BenchError, Design, EngineConfig, Job, Measuring, Parameters, Place, Progress, Report,
    Settings, Stop,
};
use pmem::DeviceSpec;

use crate::ablation_command;
use crate::args::{BenchCommand, Limits, RunArguments};
use crate::clients_command;
use crate::contention_command;
use crate::device_command;
use crate::output::{Done, Failure, JsonTarget};
use crate::parameters::Options;
use crate::peers_command;
use crate::roofline_command;
use crate::runs::{end, workers};
use crate::signals::Signals;

/// The engine's limit.
const CHECKPOINT_EVERY_MAX: u64 = 1_000_000;

/// Runs a `bench` command.
pub(crate) fn run(command: BenchCommand) -> Done {
    match command {
        BenchCommand::Ycsb(options) => run_workload(&options),
        BenchCommand::Smallbank(options) => run_workload(&options),
        BenchCommand::Tpcc(options) => run_workload(&options),
        BenchCommand::Roofline(options) => roofline_command::run(&options),
        BenchCommand::Device(options) => device_command::run(&options),
        BenchCommand::Ablation(options) => ablation_command::run(&options),
        BenchCommand::Contention(options) => contention_command::run(&options),
        BenchCommand::Peers(options) => peers_command::run(&options),
    }
}

fn run_workload<O: Options>(options: &O) -> Done {
    let arguments = options.run();
    // Wrong options are told before anything is created.
    options.parameters(None).job()?;
    // Before anything is created that a signal might leave behind.
    let signals = Signals::listen()?;
    let progress = if arguments.no_progress { Progress::Hidden } else { Progress::Shown };
    let place = find_place(arguments, progress)?;
    let parameters = options.parameters(place.stored.as_ref());
    check_same(&place, &parameters)?;
    let job = parameters.job()?;
    let epochs = arguments.epochs.unwrap_or_else(|| options.default_epochs());
    let settings = settings(arguments, epochs, &place.spec, progress, signals.stop());
    check_rival(arguments)?;
    if let Some(clients) = arguments.clients.clients {
        let clients = clients_command::settings(arguments, clients as usize, &place.spec)?;
        return clients_command::run(&job, place, (&settings, &clients), arguments, &signals);
    }
    let target = JsonTarget::open(arguments.json.as_deref())?;
    eprintln!("note: {}", place.describe());
    if let Design::Rival(rival) = arguments.design {
        let report = bench::run_rival(&job, rival, &place.spec, &settings)?;
        return target.write(&report, || report.render());
    }
    let result = bench::run(&job, &place, &settings);
    let kept = place.is_kept().then(|| place.spec.clone());
    let removed = place.remove();
    let report = result?;
    removed?;
    let ending = report.interrupted.then(|| ending(&report, &job, kept));
    if let (Some(ending), JsonTarget::Standard) = (&ending, &target) {
        eprintln!("note: {ending}");
    }
    target.write(&report, || text(&report, arguments.details, ending.as_deref()))?;
    end(&report.problems, report.head.workload, report.interrupted, &signals)
}

/// What only the engine can do.
fn check_rival(arguments: &RunArguments) -> Done {
    let Design::Rival(rival) = arguments.design else { return Ok(()) };
    let given = [
        ("--clients", arguments.clients.clients.is_some()),
        ("--ack-log", arguments.ack_log.is_some()),
        ("--details", arguments.details),
        ("--checkpoint-every", arguments.checkpoint_every.is_some()),
        ("--no-minor-gc", arguments.no_minor_gc),
        ("--no-state-hash", arguments.no_state_hash),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} is for the engine: design {} has nothing of the kind",
            rival.name()
        ))),
    }
}

/// Where a run was interrupted, and how it goes on if its store is kept.
fn ending(report: &Report, job: &Job, kept: Option<DeviceSpec>) -> String {
    let after = job.epoch_name(report.epoch);
    let nothing =
        if report.head.epochs == 0 { ", with no epoch of the stream to report" } else { "" };
    let resume =
        kept.map_or_else(String::new, |spec| format!("; --device {spec} --resume goes on"));
    format!("interrupted after {after}{nothing}{resume}")
}

fn text(report: &Report, has_details: bool, ending: Option<&str>) -> String {
    let render = || match has_details {
        true => bench::render_details(report),
        false => bench::render(report),
    };
    match ending {
        None => render(),
        Some(ending) if report.head.epochs == 0 => format!("{ending}\n"),
        Some(ending) => format!("{}{ending}\n", render()),
    }
}

fn find_place(arguments: &RunArguments, progress: Progress) -> Result<Place, Failure> {
    match arguments.design.device(arguments.device.clone())? {
        Some(spec) => Ok(Place::named(spec, arguments.resume, progress)?),
        None if arguments.resume => {
            Err(Failure::usage("--resume needs --device file:DIR or dax:PATH: say what to resume"))
        }
        None => Ok(Place::temporary(arguments.keep)?),
    }
}

/// A stream goes on only with the parameters that it began with.
fn check_same(place: &Place, asked: &Parameters) -> Done {
    let Some(stored) = &place.stored else { return Ok(()) };
    let differences = stored.differences(asked);
    if differences.is_empty() {
        return Ok(());
    }
    let advice = "leave out the options that differ, or choose another place";
    let all = differences.join("; ");
    Err(BenchError::Usage(format!("cannot resume {}: {all}; {advice}", place.spec)).into())
}

fn settings(
    arguments: &RunArguments,
    epochs: u64,
    spec: &DeviceSpec,
    progress: Progress,
    stop: Stop,
) -> Settings {
    let defaults = EngineConfig::for_device(spec);
    let cache_bytes = match arguments.design {
        Design::Engine(engine::Design::AllNvmm) | Design::Report2021 => 0,
        Design::Rival(_) => bench::RIVAL_CACHE_BYTES,
        _ => defaults.cache_bytes,
    };
    Settings {
        epochs,
        design: arguments.design,
        engine: EngineConfig {
            workers: workers(arguments.workers),
            cache_bytes: arguments.cache_bytes.unwrap_or(cache_bytes),
            cache_epochs: arguments.cache_epochs,
            split_threshold: arguments.split_threshold,
            // Something is left to replay where that is asked for.
            checkpoint_every: arguments.checkpoint_every.unwrap_or(match arguments.recover {
                true => (epochs + 1).min(CHECKPOINT_EVERY_MAX),
                false => defaults.checkpoint_every,
            }),
            cache_policy: arguments.cache_policy,
            minor_collection: !arguments.no_minor_gc && arguments.design != Design::Report2021,
            append: arguments.append,
            state_hash: !arguments.no_state_hash,
            ..defaults
        },
        serial_calls_max: 0,
        image_limit_bytes: arguments.image_limit_bytes,
        log_limit_bytes: arguments.log_limit_bytes,
        ack_log: arguments.ack_log.clone(),
        resume: arguments.resume,
        verify: arguments.verify,
        check: !arguments.no_check,
        recover: arguments.recover,
        limits: match arguments.limits {
            Limits::Long => Measuring::AfterLongRuns,
            Limits::Always => Measuring::Always,
            Limits::Never => Measuring::Never,
        },
        progress,
        stop,
        die_at: arguments.die_at.clone(),
    }
}
