//! The laboratory's command line, run as a user runs it; and checks of the repository.
//!
//! What kills, signals and full disks leave of a run of the engine is tested as for the library, by
//! the same text.

mod ablation;
mod arulraj;
mod clients;
mod counters;
mod crash_and_return;
mod designs;
mod device;
mod full_disk;
#[path = "../../../../crates/cli/tests/all/interrupt.rs"]
mod interrupt;
#[path = "../../../../crates/cli/tests/all/kill.rs"]
mod kill;
mod model;
mod peers;
mod power_cuts;
mod recover_after_run;
mod report;
mod reproduce;
#[path = "../../../../crates/cli/tests/all/resume.rs"]
mod resume;
mod rivals;
mod roofline;
mod same_digest;
mod sim;
mod state_hash;
mod stores;
#[path = "../../../../crates/cli/tests/all/support.rs"]
mod support;

/// The program that is run.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_nvcaracal-lab");
/// Where its golden files are.
pub(crate) const GOLDEN: &str = "lab/cli/tests/golden";
