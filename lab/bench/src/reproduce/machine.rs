//! On which machine the runs were made, as far as the system tells.

use std::fs;

use serde::{Deserialize, Serialize};

/// What a reader has to know of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub processor: String,
    /// Processors that this program may use.
    pub cores: usize,
    /// GiB of memory.
    pub memory_gib: f64,
    /// Release of the kernel.
    pub kernel: String,
}

const UNKNOWN: &str = "unknown";

impl Machine {
    /// This one.
    #[must_use]
    pub fn this() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::of(
            &read("/proc/cpuinfo"),
            &read("/proc/meminfo"),
            &read("/proc/sys/kernel/osrelease"),
            cores,
        )
    }

    fn of(processors: &str, memory: &str, kernel: &str, cores: usize) -> Self {
        let value = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start().strip_prefix(':')?.trim().to_string())
        };
        let kib = value(memory, "MemTotal").and_then(|text| {
            text.split_whitespace().next().and_then(|digits| digits.parse::<f64>().ok())
        });
        let kernel = kernel.trim();
        Self {
            processor: value(processors, "model name").unwrap_or_else(|| UNKNOWN.into()),
            cores,
            memory_gib: kib.unwrap_or(0.0) / f64::from(1 << 20),
            kernel: if kernel.is_empty() { UNKNOWN.into() } else { kernel.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_found_and_the_rest_is_unknown() {
        let cpu = "processor\t: 0\nmodel name\t: A <fast> one\nmodel name\t: another\n";
        let found = Machine::of(cpu, "MemTotal:  2097152 kB\n", "6.1.0\n", 2);
        assert_eq!((found.processor.as_str(), found.kernel.as_str()), ("A <fast> one", "6.1.0"));
        assert_eq!((found.memory_gib, found.cores), (2.0, 2));
        let nothing = Machine::of("", "", "", 1);
        assert_eq!((nothing.processor, nothing.memory_gib), (UNKNOWN.to_string(), 0.0));
    }
}
