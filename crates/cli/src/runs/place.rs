//! Where a run keeps its store, by its options.

use bench::{BenchError, Maker, Parameters, Place, Progress};
use pmem::DeviceSpec;

use crate::args::RunArguments;
use crate::output::{Done, Failure};

/// The place of a run on a device, or a temporary one.
///
/// # Errors
/// There is no such place, or something is in the way.
pub fn find(
    arguments: &RunArguments,
    device: Option<DeviceSpec>,
    by: Maker,
    progress: Progress,
) -> Result<Place, Failure> {
    match device {
        Some(spec) => Ok(Place::named(spec, arguments.resume.then_some(by), progress)?),
        None if arguments.resume => {
            Err(Failure::usage("--resume needs --device file:DIR or dax:PATH: say what to resume"))
        }
        None => Ok(Place::temporary(arguments.keep)?),
    }
}

/// A stream goes on only with the parameters that it began with.
///
/// # Errors
/// The parameters that differ.
pub fn check_same(place: &Place, asked: &Parameters) -> Done {
    let Some(stored) = &place.stored else { return Ok(()) };
    let differences = stored.differences(asked);
    if differences.is_empty() {
        return Ok(());
    }
    let advice = "leave out the options that differ, or choose another place";
    let all = differences.join("; ");
    Err(BenchError::Usage(format!("cannot resume {}: {all}; {advice}", place.spec)).into())
}
