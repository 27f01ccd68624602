//! What the system says of its memory. Where it says nothing, nothing is concluded.

use std::fs;

/// Bytes that could be used without pushing anything out.
pub(crate) fn available_bytes() -> Option<u64> {
    bytes_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Per cent of `bytes` that this process has on huge pages.
pub(super) fn huge_pages_percent(bytes: u64) -> Option<u64> {
    let huge = bytes_of(&fs::read_to_string("/proc/self/smaps_rollup").ok()?, "AnonHugePages:")?;
    Some((huge.saturating_mul(100) / bytes.max(1)).min(100))
}

/// The figure behind a name, as in `MemAvailable:   123 kB`.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_whole_name() {
        let text = "MemTotal:       100 kB\nMemFree:  7 kB\nMemAvailable:  9 kB\nHuge:  3\n";
        assert_eq!(bytes_of(text, "MemAvailable:"), Some(9 * 1024));
        for name in ["Mem", "SwapFree:", "Huge:"] {
            assert_eq!(bytes_of(text, name), None);
        }
    }
}
