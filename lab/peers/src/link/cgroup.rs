//! Control groups of Linux, versions 1 and 2: a limit of memory for a process, which counts the
//! pages of files that the system keeps for it, too. A limit of the process alone (`setrlimit`)
//! counts addresses, and no pages of files: it would be another comparison.

use std::fs;
use std::path::{Path, PathBuf};

use crate::peer::{Error, Result};
use crate::settings::Memory;

/// Which of the two interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    /// The file with the limit.
    fn limit(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }

    /// The file that says how many processes were killed at the limit, in a line `oom_kill N`.
    fn events(self) -> &'static str {
        match self {
            Self::One => "memory.oom_control",
            Self::Two => "memory.events",
        }
    }

    /// Files that keep it from swapping, where there are any, and what is written into them.
    fn without_swap(self, bytes: u64) -> (&'static str, u64) {
        match self {
            // Memory and swap together.
            Self::One => ("memory.memsw.limit_in_bytes", bytes),
            Self::Two => ("memory.swap.max", 0),
        }
    }
}

/// A group, removed when its processes have ended.
pub(super) struct Group {
    version: Version,
    path: PathBuf,
    bytes: u64,
}

fn failed(what: &str, path: &Path, error: std::io::Error) -> Error {
    let path = path.display();
    Error::Failed(format!("--memory needs a memory control group: cannot {what} {path}: {error}"))
}

fn write(path: &Path, value: u64) -> Result<()> {
    fs::write(path, value.to_string()).map_err(|error| failed("write", path, error))
}

impl Group {
    /// Makes a group for a database.
    pub(super) fn make(name: &str, memory: &Memory) -> Result<Self> {
        let (version, above) = match &memory.group {
            Some(path) => (version_of(path)?, path.clone()),
            None => own_group()?,
        };
        if version == Version::Two {
            give_memory_below(&above)?;
        }
        let path = above.join(format!("nvcaracal-peers-{}-{name}", std::process::id()));
        fs::create_dir(&path).map_err(|error| failed("make", &path, error))?;
        let group = Self { version, path, bytes: memory.bytes };
        let limit = group.path.join(version.limit());
        write(&limit, group.bytes)?;
        let (swap, value) = version.without_swap(group.bytes);
        if group.path.join(swap).exists() {
            write(&group.path.join(swap), value)?;
        }
        let set = fs::read_to_string(&limit).map_err(|error| failed("read", &limit, error))?;
        // The system rounds down to pages.
        if !set.trim().parse().is_ok_and(|set: u64| set > 0 && set <= group.bytes) {
            let limit = limit.display();
            return Err(Error::Failed(format!("--memory is not in force: {limit} is {set:?}")));
        }
        Ok(group)
    }

    /// Puts a process into it, and sees to it that it is there.
    pub(super) fn add(&self, process: u32) -> Result<()> {
        write(&self.path.join("cgroup.procs"), process.into())?;
        let groups = format!("/proc/{process}/cgroup");
        let of = fs::read_to_string(&groups)
            .map_err(|error| failed("read", Path::new(&groups), error))?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        match of.lines().any(|line| line.ends_with(&*name)) {
            true => Ok(()),
            false => Err(Error::Failed(format!(
                "--memory needs a memory control group: {} took process {process}, which is not \
                 in it",
                self.path.display()
            ))),
        }
    }

    /// Whether the system has killed a process of it for want of memory.
    pub(super) fn has_killed(&self) -> bool {
        let events = fs::read_to_string(self.path.join(self.version.events()));
        events.is_ok_and(|events| kills(&events) > 0)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What cannot be removed is empty, and has no effect.
        let _ = fs::remove_dir(&self.path);
    }
}

/// How many processes were killed.
fn kills(events: &str) -> u64 {
    let count = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The interface of a group that was named.
fn version_of(path: &Path) -> Result<Version> {
    let version = [Version::One, Version::Two].into_iter().find(|version| match version {
        Version::One => path.join(version.limit()).exists(),
        // The root of all groups has no limit.
        Version::Two => path.join("cgroup.controllers").exists(),
    });
    let what = "it has neither memory.limit_in_bytes nor cgroup.controllers";
    version.ok_or_else(|| {
        Error::Failed(format!("{} is no memory control group: {what}", path.display()))
    })
}

/// Lets groups below one of version 2 have limits of memory.
fn give_memory_below(path: &Path) -> Result<()> {
    let below = path.join("cgroup.subtree_control");
    let has = |text: &str| text.split_whitespace().any(|name| name == "memory");
    if fs::read_to_string(&below).is_ok_and(|given| has(&given)) {
        return Ok(());
    }
    // Refused where processes are in the group itself, as that of this process is.
    fs::write(&below, "+memory").map_err(|error| {
        Error::Failed(format!(
            "--memory needs a memory control group: {} does not give memory to groups below it \
             ({error}); name one that may with --cgroup",
            below.display()
        ))
    })
}

/// The memory group of this process.
fn own_group() -> Result<(Version, PathBuf)> {
    let read = |path: &str| {
        fs::read_to_string(path).map_err(|error| failed("read", Path::new(path), error))
    };
    let (groups, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
    memory_group(&groups, &mounts).ok_or_else(|| {
        Error::Failed(
            "--memory needs a memory control group: this process is in none that is mounted \
             (/proc/self/cgroup, /proc/self/mountinfo)"
                .into(),
        )
    })
}

/// The memory group that `/proc/self/cgroup` names, at the place where `/proc/self/mountinfo` has
/// it. Version 1, if memory is there: then version 2 does not have it.
fn memory_group(groups: &str, mounts: &str) -> Option<(Version, PathBuf)> {
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
        assert_eq!(memory_group(groups, mounts), expected);
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
    fn processes_that_were_killed_are_counted() {
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), 2);
        assert_eq!(kills("low 0\nmax 41\noom 1\noom_kill 1\noom_group_kill 0\n"), 1);
        assert_eq!(kills("max 41\n"), 0);
    }

    /// What is said of a directory that has these files and is named as a group.
    fn error_of(files: &[&str]) -> String {
        let room = tempfile::tempdir().unwrap();
        files.iter().for_each(|file| fs::write(room.path().join(file), "").unwrap());
        let memory = Memory { bytes: 1 << 30, group: Some(room.path().into()) };
        let group = Group::make("fake", &memory).map(|group| group.add(std::process::id()));
        match group {
            Err(error) | Ok(Err(error)) => error.to_string(),
            Ok(Ok(())) => panic!("a directory passes for a control group"),
        }
    }

    #[test]
    fn a_directory_that_is_no_control_group_is_not_taken_for_one() {
        let none = error_of(&[]);
        assert!(none.contains("is no memory control group"), "{none}");
        // Its files can be written, and the process is not in it all the same.
        let one = error_of(&["memory.limit_in_bytes"]);
        assert!(one.contains("which is not in it"), "{one}");
        let two = error_of(&["cgroup.controllers"]);
        assert!(two.contains("which is not in it"), "{two}");
    }
}
