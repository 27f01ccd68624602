//! Whether the kernel says that the processor's caches survive a power cut (eADR).
//!
//! Only reports say it: flushes are made all the same. The kernel passes on what the firmware
//! claims; which region a file is on is not looked up; and in a virtual machine the claim is that
//! of a host which cannot be asked. A flush that was left out wrongly loses data, one too many
//! costs some nanoseconds.

use std::fs;
use std::path::Path;

/// Where the kernel lists regions of persistent memory.
pub(crate) const REGIONS: &str = "/sys/bus/nd/devices";

/// Whether every region there is says so; no if there is none.
pub(crate) fn caches_survive(regions: &Path) -> bool {
    let Ok(entries) = fs::read_dir(regions) else { return false };
    let regions = entries.flatten().filter(|entry| {
        // Beside them are namespaces, modules and the bus.
        entry.file_name().to_str().is_some_and(|name| name.starts_with("region"))
    });
    let mut says = regions.map(|region| {
        let domain = fs::read_to_string(region.path().join("persistence_domain"));
        // Older kernels name the memory controller, too.
        domain.is_ok_and(|domain| domain.split_whitespace().any(|word| word == "cpu_cache"))
    });
    says.next().is_some_and(|first| first && says.all(|cache| cache))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_regions_have_to_say_that_caches_survive() {
        let survives = |regions: &[(&str, &str)]| {
            let dir = tempfile::tempdir().unwrap();
            for (name, domain) in regions {
                fs::create_dir(dir.path().join(name)).unwrap();
                fs::write(dir.path().join(name).join("persistence_domain"), domain).unwrap();
            }
            caches_survive(dir.path())
        };
        assert!(survives(&[("region0", "cpu_cache\n")]));
        assert!(survives(&[("region0", "cpu_cache memory_controller\n"), ("nmem0", "\n")]));
        assert!(!survives(&[("region0", "memory_controller\n")]));
        assert!(!survives(&[("region0", "cpu_cache\n"), ("region1", "memory_controller\n")]));
        assert!(!survives(&[("nmem0", "cpu_cache\n")]), "no region");
    }

    #[test]
    fn where_nothing_is_said_caches_do_not_survive() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!caches_survive(&dir.path().join("devices")));
        fs::create_dir(dir.path().join("region0")).unwrap();
        assert!(!caches_survive(dir.path()), "a region without the file");
    }
}
