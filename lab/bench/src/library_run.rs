//! The library under clients, beside the engine alone: which share of its throughput the library
//! gives.

use bench::{
    Alone, ClientSettings, ClientsReport, EngineAlone, Parameters, Place, Result, SERIAL_CALLS_MAX,
};

use crate::engine_run::run;
use crate::{Job, Settings};

/// Runs a job under clients and, if asked to, by the engine alone.
///
/// # Errors
/// Whatever stops a run. What only the consistency check found is in the report.
pub fn run_clients(
    job: &Job,
    place: &Place,
    settings: &Settings,
    clients: &ClientSettings,
    compares_engine: bool,
) -> Result<ClientsReport> {
    let alone = OfJob { job, settings };
    let alone = compares_engine.then_some(&alone as &dyn EngineAlone);
    bench::run_clients(job, place, &settings.client_settings(), clients, alone)
}

struct OfJob<'a> {
    job: &'a Job,
    settings: &'a Settings,
}

impl EngineAlone for OfJob<'_> {
    fn run(&self, place: &Place, epoch_size: u64, epochs: u64) -> Result<Option<Alone>> {
        let parameters = Parameters { epoch_size, ..self.job.parameters().clone() };
        let settings =
            Settings { epochs, serial_calls_max: SERIAL_CALLS_MAX, ..self.settings.clone() };
        let report = run(&Job::of(&parameters)?, place, &settings)?;
        if report.interrupted {
            return Ok(None);
        }
        let (epochs, committed) = (report.head.epochs, report.committed);
        Ok(Some(Alone::new(epoch_size, epochs, committed, report.seconds)))
    }
}
