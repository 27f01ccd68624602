//! Runs workloads on the engine and says what came of it.
//!
//! A run is one straight function ([`run::run`]): open the device, load, run epochs, check, report.
//! The stream of calls depends only on the parameters and the number of the epoch (module `job`),
//! so a run that was killed, or asked to stop, goes on where its recovered store stopped. With
//! `--verify` a serial oracle runs beside (module `verify`).
//!
//! The same through the library, under clients, is in module `clients`.
//!
//! What few hot rows cost callers of the library is measured in module [`contention`]. What the
//! engine's options are worth is asked in module [`ablation`]; whether the papers' figures
//! come out again, in module [`reproduce`].
//!
//! What the machine can do at most is measured apart from all that (module [`roofline`]), or in
//! short after a run, which is then held against it (module `share`). How an emulated device
//! compares with the machine's memory is in module [`device_speed`].
//!
//! This crate knows the engine, the library and the workloads; it knows nothing of the command
//! line.

#![forbid(unsafe_code)]

mod error;

mod job;
mod parameters;
mod rivals;

pub mod adapter;

mod buffer;
mod clients;
mod clients_table;
mod library;

#[cfg(test)]
mod commit_points;

mod fail_point;

mod design;
mod devices;
mod manifest;
mod place;

mod ack;
mod clock;
mod progress;
mod stop;
mod verify;

mod counts;
mod run;

mod head;
mod numbers;
mod recover;
mod report;
mod rival;
mod settings;
mod share;
mod share_table;
mod summary;
mod table;

pub mod device_speed;
pub mod roofline;

pub mod ablation;
mod ablation_table;

pub mod contention;
mod contention_table;

pub mod reproduce;

pub use ablation_table::render as render_ablation;
pub use ack::AckLog;
pub use clients::{Alone, ClientSettings, ClientsReport, ClientsRun, run_clients};
pub use clients_table::render as render_clients;
pub use contention_table::render as render_contention;
pub use design::Design;
pub use devices::{
    DeviceVisitor, IMAGE_LIMIT_BYTES_DEFAULT, LOG_LIMIT_BYTES_DEFAULT, Limits, open_device,
    spec_of_path,
};
pub use engine::{AppendMethod, CachePolicy, EngineConfig};
pub use error::{BenchError, Result};
pub use fail_point::FailPoint;
pub use head::Head;
pub use job::Job;
pub use parameters::{Contention, Mix, Parameters, WorkloadParameters};
pub use place::{Place, is_of_bench};
pub use progress::{Bar, Progress};
pub use recover::{ImageReads, RecoverSummary, recover};
pub use report::Report;
pub use rival::{RIVAL_CACHE_BYTES, RivalReport, run_rival};
pub use rivals::Rival;
pub use run::run;
pub use settings::Settings;
pub use share::{Measuring, Parts, PhaseShare, Share};
pub use stop::Stop;
pub use table::{render, render_details};
