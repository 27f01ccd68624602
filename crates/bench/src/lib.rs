//! Runs the workloads through the library, as its users meet it, and says what came of it.
//!
//! A run is either one of clients, who make calls for a time ([`run_clients`]), or of the
//! workload's stream, epoch after epoch ([`run_stream`]). The calls depend only on the parameters,
//! so a stream that was killed, or asked to stop, goes on where its recovered store stopped; with
//! `--verify` a serial oracle runs beside. What few hot rows cost callers is measured in module
//! [`contention`].
//!
//! This crate knows the library and the workloads, and what a run needs before and after it (places
//! and devices of stores, reports), which runs of the engine alone use, too. It knows nothing of
//! those, of other engines, and of the command line.

#![forbid(unsafe_code)]

pub mod clock;
mod error;
mod progress;
mod stop;

mod library;
mod setup;

pub mod report;

mod run;

pub mod contention;

pub use engine::{EngineConfig, Lab};
pub use error::{BenchError, Result};
pub use library::{
    Callable, LibraryView, Output, Procedures, RowSizes, Tables, options, reserve, table_definition,
};
pub use progress::{Bar, Progress};
pub use run::{
    AckLog, Alone, ClientSettings, ClientsReport, ClientsRun, EngineAlone, ImageReads,
    RecoverSummary, Recovered, SERIAL_CALLS_MAX, Settings, StreamReport, StreamSettings,
    differing_rows, hex, recover, render_clients, render_stream, run_clients, run_stream,
};
pub use setup::{
    Contention, FailPoint, IMAGE_LIMIT_BYTES_DEFAULT, Job, LOG_LIMIT_BYTES_DEFAULT, Limits, Maker,
    Mix, OneOf, Parameters, Place, WorkloadParameters, WorkloadVisitor, forgets, is_in_memory,
    maker_of, open_device, spec_of_path, stored_parameters,
};
pub use stop::Stop;
