//! `bench device`: measures an emulated device against memory.

use bench::Progress;
use cli::output::{Done, JsonTarget};
use lab::device_speed::{Settings, render};

use crate::args::DeviceArguments;

/// Runs a `bench device` command.
pub(super) fn run(arguments: &DeviceArguments) -> Done {
    let settings = Settings {
        profile: arguments.profile,
        memory_mib: arguments.memory_mib,
        progress: if arguments.no_progress { Progress::Hidden } else { Progress::Shown },
    };
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let report = lab::device_speed::run(&settings)?;
    target.write(&report, || render(&report))
}
