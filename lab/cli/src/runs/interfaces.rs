//! `bench interfaces`: how fast small chunks become durable.

use arulraj::{CacheShape, Chunks, Modelled, run_chunks};
use cli::output::{Done, Failure, JsonTarget};

use crate::args::InterfacesArguments;

/// Runs a `bench interfaces` command.
pub(super) fn run(arguments: &InterfacesArguments) -> Done {
    let modelled = Modelled {
        cache: Some(CacheShape::of_bytes(arguments.cache_kib << 10)),
        system_call_ns: arguments.system_call_ns,
        ..Modelled::default()
    };
    let chunks = Chunks {
        interface: arguments.interface,
        order: arguments.order,
        chunk_bytes: arguments.chunk_bytes,
        count: arguments.writes,
        modelled,
    };
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let report = run_chunks(&chunks).map_err(|error| Failure::new(error.to_string()))?;
    target.write(&report, || {
        let (bytes, speed) = (report.chunk_bytes, report.mb_per_second);
        let (read, written, calls) = (report.lines_read, report.lines_written, report.system_calls);
        format!(
            "{bytes} bytes, each durable by itself: {speed:.1} MB/s; a chunk takes {:.0} ns of the \
             processor, {read:.2} lines read, {written:.2} written, {calls:.0} system calls\n",
            report.cpu_ns,
        )
    })
}
