//! Control groups of Linux, versions 1 and 2: a limit of memory for a process, which counts the
//! pages of files that the system keeps for it, too. A limit of the process alone (`setrlimit`)
//! counts addresses, and no pages of files: it would be another comparison.

use std::fs;
use std::path::{Path, PathBuf};

use pmem::control_group::{Version, memory_group};

use crate::peer::{Error, Result};
use crate::settings::Memory;

/// The file that says how many processes were killed at the limit, in a line `oom_kill N`.
fn events(version: Version) -> &'static str {
    match version {
        Version::One => "memory.oom_control",
        Version::Two => "memory.events",
    }
}

/// Files that keep a group from swapping, where there are any, and what is written into them.
fn without_swap(version: Version, bytes: u64) -> (&'static str, u64) {
    match version {
        // Memory and swap together.
        Version::One => ("memory.memsw.limit_in_bytes", bytes),
        Version::Two => ("memory.swap.max", 0),
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
        let (swap, value) = without_swap(version, group.bytes);
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
        let events = fs::read_to_string(self.path.join(events(self.version)));
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
    memory_group().ok_or_else(|| {
        Error::Failed(
            "--memory needs a memory control group: this process is in none that is mounted \
             (/proc/self/cgroup, /proc/self/mountinfo)"
                .into(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
