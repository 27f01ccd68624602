//! What this process took of the machine.

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds that all threads of this process have run.
pub(super) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Bytes that this process has had written to disks, if the system counts them.
pub(super) fn written_bytes() -> Option<u64> {
    written_bytes_of(&std::fs::read_to_string("/proc/self/io").ok()?)
}

fn written_bytes_of(io: &str) -> Option<u64> {
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes:"))?;
    line.trim().parse().ok()
}

/// Ends this process when the one that started it does.
pub(crate) fn end_with_parent() {
    // Without it the process ends with the next order that does not come.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_their_line() {
        let io = "rchar: 1\nwchar: 2\nwrite_bytes: 4096\ncancelled_write_bytes: 3\n";
        assert_eq!(written_bytes_of(io), Some(4096));
        assert_eq!(written_bytes_of("wchar: 2\n"), None);
    }
}
