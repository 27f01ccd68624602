//! `bench WORKLOAD`: a run of the engine alone, of a rival, or of clients of the library beside the
//! engine.

use bench::{Maker, Place, Stop};
use cli::args::RunArguments;
use cli::output::{Done, Failure, JsonTarget};
use cli::runs::{
    Options, check_same, client_settings, end, ending, engine_config, find_place, progress,
    report_clients, text_with,
};
use cli::signals::Signals;
use engine::{EngineConfig, Lab};
use lab::{Design, Job, Measuring, Report, Settings};
use pmem::DeviceSpec;

use crate::args::{LabRunArguments, Limits};

/// The engine's limit.
const CHECKPOINT_EVERY_MAX: u64 = 1_000_000;

/// Runs a workload as its options say.
pub(super) fn run<O: Options<Run = LabRunArguments>>(options: &O) -> Done {
    let of_lab = options.run();
    let arguments = &of_lab.run;
    // Wrong options are told before anything is created.
    options.parameters(None).job()?;
    // Before anything is created that a signal might leave behind.
    let signals = Signals::listen()?;
    let device = of_lab.design.device(arguments.device.clone())?;
    let place = find_place(arguments, device, Maker::Engine, progress(arguments))?;
    let parameters = options.parameters(place.stored.as_ref());
    check_same(&place, &parameters)?;
    let job = Job::of(&parameters)?;
    let epochs = arguments.epochs.unwrap_or_else(|| options.default_epochs());
    let settings = settings(of_lab, epochs, &place.spec, signals.stop());
    check_rival(of_lab)?;
    if let Some(clients) = arguments.clients.clients {
        let compares = !of_lab.no_engine;
        let clients = client_settings(arguments, clients as usize, &place.spec, compares)?;
        return report_clients(place, arguments, &signals, |place| {
            lab::run_clients(&job, place, &settings, &clients, compares)
        });
    }
    if !of_lab.model.is_empty() {
        return show_model(&job, place, &settings, of_lab);
    }
    run_engine(&job, place, &settings, arguments, &signals)
}

/// A model of the run on other numbers of cores.
fn show_model(job: &Job, place: Place, settings: &Settings, of_lab: &LabRunArguments) -> Done {
    let target = JsonTarget::open(of_lab.run.json.as_deref())?;
    let mut cores: Vec<usize> = of_lab.model.iter().map(|cores| *cores as usize).collect();
    cores.sort_unstable();
    cores.dedup();
    let asked = lab::model::Asked { cores, cuts: of_lab.model_cut };
    let result = lab::model::run(job, &place, settings, &asked);
    let removed = place.remove();
    let report = result?;
    removed?;
    target.write(&report, || report.render())
}

fn run_engine(
    job: &Job,
    place: Place,
    settings: &Settings,
    arguments: &RunArguments,
    signals: &Signals,
) -> Done {
    let target = JsonTarget::open(arguments.json.as_deref())?;
    if let Design::Rival(rival) = settings.design {
        let run = |place: &Place| {
            eprintln!("note: {}", place.describe());
            lab::run_rival(job, rival, &place.spec, settings)
        };
        // What a rival leaves in files is no store of anybody else.
        let report = if rival.logs_to_file() { place.beside(run)? } else { run(&place)? };
        place.remove()?;
        return target.write(&report, || report.render());
    }
    eprintln!("note: {}", place.describe());
    if let Design::Deterministic(engine) = settings.design {
        let report = lab::run_deterministic(job, engine, &place.spec, settings)?;
        return target.write(&report, || report.render());
    }
    let result = lab::run(job, &place, settings);
    let kept = place.is_kept().then(|| place.spec.clone());
    let removed = place.remove();
    let report = result?;
    removed?;
    let ran = report.head.epochs;
    let ending = report.interrupted.then(|| ending(job, report.epoch, ran, kept));
    if let (Some(ending), JsonTarget::Standard) = (&ending, &target) {
        eprintln!("note: {ending}");
    }
    target.write(&report, || {
        text_with(ending.as_deref(), ran, || text(&report, arguments.details))
    })?;
    end(&report.problems, report.head.workload, report.interrupted, signals)
}

fn text(report: &Report, has_details: bool) -> String {
    if has_details { lab::render_details(report) } else { lab::render(report) }
}

/// What only the engine can do.
fn check_rival(of_lab: &LabRunArguments) -> Done {
    let arguments = &of_lab.run;
    let is_deterministic = matches!(of_lab.design, Design::Deterministic(_));
    let keeps = !matches!(of_lab.design, Design::Rival(rival) if !rival.keeps());
    if !is_deterministic && !matches!(of_lab.design, Design::Rival(_)) {
        return Ok(());
    }
    let given = [
        ("--recover", of_lab.recover && (is_deterministic || !keeps)),
        ("--clients", arguments.clients.clients.is_some()),
        ("--ack-log", arguments.ack_log.is_some()),
        ("--details", arguments.details),
        ("--checkpoint-every", arguments.checkpoint_every.is_some()),
        ("--no-minor-gc", of_lab.no_minor_gc),
        ("--no-state-hash", of_lab.no_state_hash),
        ("--serial-calls-max", of_lab.serial_calls_max > 0),
        ("--count-written", of_lab.count_written),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} is for the engine: design {} has nothing of the kind",
            of_lab.design.name()
        ))),
    }
}

fn settings(of_lab: &LabRunArguments, epochs: u64, spec: &DeviceSpec, stop: Stop) -> Settings {
    let arguments = &of_lab.run;
    let asked = engine_config(arguments, spec);
    let cache_bytes = match of_lab.design {
        Design::Engine(engine::Design::AllNvmm) | Design::Report2021 => 0,
        Design::Rival(_) => lab::RIVAL_CACHE_BYTES,
        _ => asked.cache_bytes,
    };
    Settings {
        epochs,
        design: of_lab.design,
        engine: EngineConfig {
            cache_bytes: arguments.cache_bytes.unwrap_or(cache_bytes),
            // Something is left to replay where that is asked for.
            checkpoint_every: match (arguments.checkpoint_every, of_lab.recover) {
                (None, true) => (epochs + 1).min(CHECKPOINT_EVERY_MAX),
                _ => asked.checkpoint_every,
            },
            lab: Lab {
                cache_policy: of_lab.cache_policy,
                minor_collection: !of_lab.no_minor_gc && of_lab.design != Design::Report2021,
                append: of_lab.append,
                packing: of_lab.packing,
                state_hash: !of_lab.no_state_hash,
                ..asked.lab
            },
            ..asked
        },
        serial_calls_max: of_lab.serial_calls_max,
        group_us: of_lab.group_us,
        image_limit_bytes: arguments.limits.image_limit_bytes(),
        memory_limit_bytes: arguments.limits.memory_limit_bytes,
        log_limit_bytes: arguments.limits.log_limit_bytes,
        ack_log: arguments.ack_log.clone(),
        resume: arguments.resume,
        verify: arguments.verify,
        check: !arguments.no_check,
        recover: of_lab.recover,
        count_written: of_lab.count_written,
        limits: match of_lab.limits {
            Limits::Long => Measuring::AfterLongRuns,
            Limits::Always => Measuring::Always,
            Limits::Never => Measuring::Never,
        },
        progress: progress(arguments),
        stop,
        die_at: arguments.die_at.clone(),
    }
}
