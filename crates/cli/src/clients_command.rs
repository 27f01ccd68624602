//! `bench WORKLOAD --clients N`: the library as its users meet it.

use bench::{BenchError, ClientSettings, Job, Place, Settings};
use pmem::DeviceSpec;

use crate::args::RunArguments;
use crate::output::{Done, Failure, JsonTarget};
use crate::runs::end;
use crate::signals::Signals;

/// How long clients submit calls, unless they are told.
const SECONDS_DEFAULT: f64 = 5.0;

/// Rows that are shown for which calls contended.
const CONTENDED_ROWS: usize = 10;

/// What clients do.
pub(crate) fn settings(
    arguments: &RunArguments,
    clients: usize,
    spec: &DeviceSpec,
) -> Result<ClientSettings, Failure> {
    let options = &arguments.clients;
    let in_flight = options.in_flight.map_or(clients, |calls| calls as usize);
    if in_flight < clients {
        return Err(Failure::usage(format!(
            "--in-flight {in_flight} is less than one call for each of {clients} clients"
        )));
    }
    let batch = options.batch.map_or(1, |calls| calls as usize);
    if batch > in_flight / clients {
        return Err(Failure::usage(format!(
            "--batch {batch} is more than the {} calls that each client has in flight",
            in_flight / clients
        )));
    }
    let is_dax = matches!(spec, DeviceSpec::Dax(_));
    if is_dax && !(options.no_engine && options.epoch_sizes.is_empty()) {
        return Err(Failure::usage(format!(
            "{spec} has room for one store: leave out --epoch-sizes, and give --no-engine"
        )));
    }
    Ok(ClientSettings {
        clients,
        in_flight,
        batch,
        seconds: options.seconds.unwrap_or(SECONDS_DEFAULT),
        rate: options.rate,
        epoch_calls_max: arguments.epoch_size.map(|calls| calls as usize),
        epoch_sizes: options.epoch_sizes.iter().map(|&calls| calls as usize).collect(),
        compares_engine: !options.no_engine,
        contended_rows: if arguments.details { CONTENDED_ROWS } else { 0 },
    })
}

/// Runs clients and reports.
pub(crate) fn run(
    job: &Job,
    place: Place,
    (settings, clients): (&Settings, &ClientSettings),
    arguments: &RunArguments,
    signals: &Signals,
) -> Done {
    let target = JsonTarget::open(arguments.json.as_deref())?;
    eprintln!("note: {}", place.describe());
    let result: Result<_, BenchError> = bench::run_clients(job, &place, settings, clients);
    let removed = place.remove();
    let report = result?;
    removed?;
    target.write(&report, || bench::render_clients(&report))?;
    end(&report.problems, report.workload, report.interrupted, signals)
}
