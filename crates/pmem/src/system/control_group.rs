//! The memory that a process may take: that of the machine, or less in a control group of Linux.

use std::fs;
use std::path::{Path, PathBuf};

/// A version of the interface of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

impl Version {
    /// The name of the file with the limit of memory.
    #[must_use]
    pub fn limit(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }
}

/// The version and the directory of the control group that limits the memory of this process;
/// `None` if it is in none that is mounted.
#[must_use]
pub fn memory_group() -> Option<(Version, PathBuf)> {
    let read = |path: &str| fs::read_to_string(path).ok();
    group_of(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
}

/// The bytes of memory that the machine has; `None` if the system does not say.
#[must_use]
pub fn machine_bytes() -> Option<u64> {
    fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text))
}

/// The bytes of memory that this process may take with the pages that the system keeps of its
/// files: the smallest limit of its control groups. `None` if that is no less than the machine has.
#[must_use]
pub fn limit_bytes() -> Option<u64> {
    let (version, path) = memory_group()?;
    let limit = smallest_limit(version, &path)?;
    machine_bytes().is_none_or(|bytes| limit < bytes).then_some(limit)
}

/// The smallest limit of a group and of those around it.
fn smallest_limit(version: Version, group: &Path) -> Option<u64> {
    let limit = |path: &Path| fs::read_to_string(path.join(version.limit())).ok();
    let limits = group.ancestors().map_while(limit);
    // Without a limit version 2 has the word `max`, and version 1 a number beyond all machines.
    limits.filter_map(|text| text.trim().parse().ok()).min()
}

/// The memory of the machine that `/proc/meminfo` tells.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The memory group that `/proc/self/cgroup` names, at the place where `/proc/self/mountinfo` has
/// it. Version 1, if memory is there: then version 2 does not have it.
fn group_of(groups: &str, mounts: &str) -> Option<(Version, PathBuf)> {
    let groups: Vec<[&str; 3]> = groups
        .lines()
        .filter_map(|line| <[&str; 3]>::try_from(line.splitn(3, ':').collect::<Vec<_>>()).ok())
        .collect();
    let of_one = groups.iter().find(|[_, controllers, _]| has_memory(controllers));
    let of_two =
        groups.iter().find(|[number, controllers, _]| *number == "0" && controllers.is_empty());
    let one = of_one.map(|of| (Version::One, of[2]));
    let (version, group) = one.or(of_two.map(|of| (Version::Two, of[2])))?;
    mounts.lines().find_map(|line| {
        // `ID PARENT DEVICE ROOT PLACE OPTIONS ... - TYPE SOURCE OPTIONS`
        let (left, right) = line.split_once(" - ")?;
        let [_, _, _, root, place, ..] = *left.split(' ').collect::<Vec<_>>() else { return None };
        let [kind, _, options] = *right.split(' ').collect::<Vec<_>>() else { return None };
        let fits = match version {
            Version::One => kind == "cgroup" && has_memory(options),
            Version::Two => kind == "cgroup2",
        };
        let below = group.strip_prefix(root.trim_end_matches('/'))?;
        fits.then(|| (version, Path::new(place).join(below.trim_start_matches('/'))))
    })
}

fn has_memory(list: &str) -> bool {
    list.split(',').any(|name| name == "memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS_OF_ONE: &str = "\
        22 1 0:20 / /sys rw - sysfs sysfs rw\n\
        30 22 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        31 22 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        32 22 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const MOUNTS_OF_TWO: &str = "\
        30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const MOUNTS_OF_A_CONTAINER: &str = "\
        30 22 0:26 /docker/f00 /sys/fs/cgroup/memory ro shared:4 - cgroup cgroup rw,memory\n";

    #[track_caller]
    fn check(groups: &str, mounts: &str, expected: Option<(Version, &str)>) {
        let expected = expected.map(|(version, path)| (version, PathBuf::from(path)));
        assert_eq!(group_of(groups, mounts), expected);
    }

    #[test]
    fn the_group_of_a_process_is_found_in_both_versions() {
        let one = "8:cpu:/\n4:memory:/jobs/a:b\n0::/\n";
        check(one, MOUNTS_OF_ONE, Some((Version::One, "/sys/fs/cgroup/memory/jobs/a:b")));
        let two = "0::/user.slice/run-1.scope\n";
        let place = "/sys/fs/cgroup/user.slice/run-1.scope";
        check(two, MOUNTS_OF_TWO, Some((Version::Two, place)));
        check("0::/\n", MOUNTS_OF_TWO, Some((Version::Two, "/sys/fs/cgroup/")));
        let inside = "4:memory:/docker/f00/job\n";
        check(inside, MOUNTS_OF_A_CONTAINER, Some((Version::One, "/sys/fs/cgroup/memory/job")));
        check(one, MOUNTS_OF_TWO, None);
        check("", MOUNTS_OF_ONE, None);
    }

    #[test]
    fn the_smallest_limit_of_the_groups_around_counts() {
        let room = std::env::temp_dir().join(format!("nvcaracal-groups-{}", std::process::id()));
        let inner = room.join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        for version in [Version::One, Version::Two] {
            let write = |path: &Path, text: &str| {
                fs::write(path.join(version.limit()), text).unwrap();
            };
            assert_eq!(smallest_limit(version, &inner), None);
            write(&inner, "max\n");
            assert_eq!(smallest_limit(version, &inner), None);
            write(&room.join("outer"), "1073741824\n");
            assert_eq!(smallest_limit(version, &inner), Some(1 << 30));
            write(&inner, "536870912\n");
            assert_eq!(smallest_limit(version, &inner), Some(1 << 29));
        }
        fs::remove_dir_all(&room).unwrap();
    }

    #[test]
    fn the_machine_says_how_much_memory_it_has() {
        assert_eq!(total("MemTotal:       100 kB\nMemFree:  7 kB\n"), Some(102_400));
        assert_eq!(total("MemFree:  7 kB\n"), None);
        let machine = machine_bytes();
        assert!(machine.is_none_or(|bytes| bytes > 1 << 20));
        assert!(limit_bytes().is_none_or(|bytes| Some(bytes) < machine));
    }
}
