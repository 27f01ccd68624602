//! Runs the workloads on the engine alone and on rival engines, measures the machine, and makes the
//! papers' figures again.
//!
//! A run of the engine is one straight function ([`run`]): open the device, load, run epochs,
//! check, report. The stream of calls depends only on the parameters and the number of the epoch,
//! so a run that was killed, or asked to stop, goes on where its recovered store stopped. With
//! `--verify` a serial oracle runs beside. Which share of the engine's throughput the library gives
//! is said by [`run_clients`].
//!
//! What the engine's options are worth is asked in module [`ablation`]; whether the papers' figures
//! come out again, in module [`reproduce`]; what more cores would give, in module [`model`]. What
//! the machine can do at most is measured apart from all that (module [`roofline`]), or in short
//! after a run, which is then held against it ([`Share`]). How an emulated device compares with the
//! machine's memory is in module [`device_speed`].
//!
//! This crate knows the engine and the rivals; workloads, places of stores and what all reports
//! have in common are those of the product's crate `bench`. It knows nothing of the command line.

#![forbid(unsafe_code)]

mod cost;
mod setup;

mod beside;
mod rival_run;

mod engine_run;
mod library_run;

pub mod roofline;
mod share;

mod report;

mod studies;

pub mod model;
pub mod reproduce;

pub use beside::{BESIDE, run_beside};
pub use cost::{Answer, Answered, Cost, DeviceParts};
pub use engine::{AppendMethod, CachePolicy, EngineConfig, Lab, Packing};
pub use engine_run::{adapter, recover, run};
pub use library_run::run_clients;
pub use report::{Head, Report, render, render_details};
pub use rival_run::{
    BatchRivalReport, Dbx, Deterministic, RIVAL_CACHE_BYTES, Rival, RivalReport, run_deterministic,
    run_rival,
};
pub use setup::{Design, Job, Settings};
pub use share::{Measuring, Parts, PhaseShare, Share};
pub use studies::{ablation, device_speed, render_ablation};
