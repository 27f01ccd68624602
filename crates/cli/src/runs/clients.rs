//! `bench WORKLOAD --clients N`: the library as its users meet it.

use bench::{BenchError, ClientSettings, ClientsReport, Place, render_clients};
use pmem::DeviceSpec;

use super::ending::end;
use crate::args::RunArguments;
use crate::output::{Done, Failure, JsonTarget};
use crate::signals::Signals;

/// Clients, and calls that they have in flight, unless they are told.
const CLIENTS_DEFAULT: usize = 2;
const IN_FLIGHT_DEFAULT: usize = 10_000;

/// How long clients submit calls, unless they are told.
const SECONDS_DEFAULT: f64 = 5.0;

/// Rows that are shown for which calls contended.
const CONTENDED_ROWS: usize = 10;

/// What clients do, if there are not said to be any: a few of them, with many calls in flight.
pub(super) fn settings_or_default(
    arguments: &RunArguments,
    spec: &DeviceSpec,
) -> Result<ClientSettings, Failure> {
    match arguments.clients.clients {
        Some(clients) => settings(arguments, clients as usize, spec, false),
        None => Ok(ClientSettings {
            in_flight: IN_FLIGHT_DEFAULT,
            ..settings(arguments, CLIENTS_DEFAULT, spec, false)?
        }),
    }
}

/// What so many clients do; whether the engine alone runs beside them.
///
/// # Errors
/// Options that contradict each other.
pub fn settings(
    arguments: &RunArguments,
    clients: usize,
    spec: &DeviceSpec,
    compares_engine: bool,
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
    if is_dax && (compares_engine || !options.epoch_sizes.is_empty()) {
        let engine = if compares_engine { ", and give --no-engine" } else { "" };
        return Err(Failure::usage(format!(
            "{spec} has room for one store: leave out --epoch-sizes{engine}"
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
        contended_rows: if arguments.details { CONTENDED_ROWS } else { 0 },
    })
}

/// Runs clients at a place and reports.
///
/// # Errors
/// Whatever stops the run; what only the consistency check found.
pub fn report(
    place: Place,
    arguments: &RunArguments,
    signals: &Signals,
    run: impl FnOnce(&Place) -> Result<ClientsReport, BenchError>,
) -> Done {
    let target = JsonTarget::open(arguments.json.as_deref())?;
    eprintln!("note: {}", place.describe());
    let result = run(&place);
    let removed = place.remove();
    let report = result?;
    removed?;
    target.write(&report, || render_clients(&report))?;
    end(&report.problems, report.workload, report.interrupted, signals)
}
