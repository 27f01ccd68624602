//! Where a run keeps its store: checked before anything is created, remembered so that it can be
//! resumed, and removed unless it is to be kept.

use std::fs::{self, TryLockError};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use pmem::{DeviceError, DeviceSpec};
use tempfile::TempDir;

use super::manifest::{self, Made, Maker};
use super::parameters::Parameters;
use crate::{BenchError, Progress, Result};

/// What a run writes at most, roughly: a temporary directory must have that much room.
const ROOM_BYTES: u64 = 3 << 30;

/// What is written beside a store.
const MANIFEST_NAME: &str = "bench.json";
/// The same, while it is being written.
const MANIFEST_TEMPORARY_NAME: &str = "bench.json.tmp";
/// What may lie in the directory of a store before there is one.
pub(crate) const BESIDE: &[&str] = &[MANIFEST_NAME, MANIFEST_TEMPORARY_NAME];

/// The place of a store, and whether it may be created there.
#[derive(Debug)]
pub struct Place {
    /// The device.
    pub spec: DeviceSpec,
    /// Parameters of the store that is there already.
    pub stored: Option<Parameters>,
    temporary: Option<TempDir>,
    kept: bool,
}

impl Place {
    /// A directory of its own under the system's temporary directory; under the current one if that
    /// is only memory or has too little room. Removed with the value, unless `keep`.
    ///
    /// # Errors
    /// `Io` if it cannot be created.
    pub fn temporary(keep: bool) -> Result<Self> {
        let choices = [std::env::temp_dir(), PathBuf::from(".")];
        let parent = choices.iter().find(|path| has_room(path)).unwrap_or(&choices[0]);
        let directory = tempfile::Builder::new().prefix("nvcaracal-bench-").tempdir_in(parent);
        let mut directory =
            directory.map_err(|e| BenchError::io("create a directory in", parent, e))?;
        directory.disable_cleanup(keep);
        let spec = DeviceSpec::File(directory.path().to_path_buf());
        Ok(Self { spec, stored: None, temporary: Some(directory), kept: keep })
    }

    /// The place that a device names. With `resume`, what that made there is continued; otherwise
    /// nothing may be there.
    ///
    /// # Errors
    /// `Usage` for a resume on a device that forgets; `Store` if there is something that is in the
    /// way or is not ours.
    pub fn named(spec: DeviceSpec, resume: Option<Maker>, progress: Progress) -> Result<Self> {
        let place = |stored| Self { spec: spec.clone(), stored, temporary: None, kept: true };
        let Some(path) = manifest_path(&spec) else {
            if resume.is_some() {
                return Err(BenchError::Usage(format!(
                    "--resume needs a store that is still there: {spec} keeps nothing after the \
                     process, use file:DIR or dax:PATH"
                )));
            }
            return Ok(place(None));
        };
        let stored = manifest::read(&path)?;
        match (stored, resume) {
            // A creation that was cut short before there was a store is done again.
            (Some(_), None) if !is_made(&spec)? => Ok(place(None)),
            (Some(made), Some(maker)) if made.by == maker => Ok(place(Some(made.parameters))),
            (Some(made), Some(_)) => Err(BenchError::Store(format!(
                "{spec} was made by `{0} bench`, which runs its procedures otherwise: continue it \
                 with {0}",
                made.by.binary()
            ))),
            (Some(_), None) => Err(BenchError::Store(format!(
                "{spec} already holds a store: continue it with --resume, or choose another place"
            ))),
            (None, _) => {
                check_empty(&spec)?;
                if resume.is_some() {
                    progress
                        .note(&format!("nothing to resume in {spec}: starting at the beginning"));
                }
                Ok(place(None))
            }
        }
    }

    /// Does something at a new place of the same kind: in memory, or in a directory beside this
    /// one, which is removed then.
    ///
    /// # Errors
    /// `Usage` on persistent memory, of which there may be no more; `Io`.
    pub fn beside<R>(&self, what: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        let place = match &self.spec {
            DeviceSpec::File(directory) => {
                let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
                let parent = parent.unwrap_or(Path::new("."));
                let made = tempfile::Builder::new().prefix("nvcaracal-bench-").tempdir_in(parent);
                let made = made.map_err(|e| BenchError::io("create a directory in", parent, e))?;
                let spec = DeviceSpec::File(made.path().to_path_buf());
                Self { spec, stored: None, temporary: Some(made), kept: false }
            }
            DeviceSpec::Dax(_) => {
                return Err(BenchError::Usage(format!(
                    "{} has room for one store: leave out what needs a second one",
                    self.spec
                )));
            }
            spec => Self { spec: spec.clone(), stored: None, temporary: None, kept: false },
        };
        let done = what(&place)?;
        place.remove()?;
        Ok(done)
    }

    /// Writes down what the store is for, before it is created.
    ///
    /// # Errors
    /// `Io`.
    pub fn remember(&self, parameters: &Parameters, by: Maker) -> Result<()> {
        let Some(path) = manifest_path(&self.spec).filter(|_| self.stored.is_none()) else {
            return Ok(());
        };
        let made = Made { by, parameters: parameters.clone() };
        let DeviceSpec::File(directory) = &self.spec else {
            return manifest::write(&path, &made);
        };
        fs::create_dir_all(directory).map_err(|e| BenchError::io("create", directory, e))?;
        // As the store itself is locked: no run writes over what belongs to an open one.
        let lock = fs::File::open(directory);
        let lock = lock.map_err(|e| BenchError::io("open", directory, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DeviceError::Locked { path: directory.clone(), is_own: false }.into());
            }
            Err(TryLockError::Error(e)) => return Err(BenchError::io("lock", directory, e)),
        }
        if is_made(&self.spec)? {
            return Err(BenchError::Store(format!(
                "{} got a store a moment ago: choose another place, or continue it with --resume",
                self.spec
            )));
        }
        manifest::write(&path, &made)
    }

    /// The same when the store's own lock is held: another run may have remembered another one in
    /// between.
    ///
    /// # Errors
    /// `Io`.
    pub fn remember_locked(&self, parameters: &Parameters, by: Maker) -> Result<()> {
        let Some(path) = manifest_path(&self.spec).filter(|_| self.stored.is_none()) else {
            return Ok(());
        };
        let made = Made { by, parameters: parameters.clone() };
        if manifest::read(&path)?.as_ref() == Some(&made) {
            return Ok(());
        }
        manifest::write(&path, &made)
    }

    /// Takes back what [`Place::remember`] wrote, if no store came of it.
    pub fn forget(&self) {
        let Some(path) = manifest_path(&self.spec).filter(|_| self.stored.is_none()) else {
            return;
        };
        if is_made(&self.spec).unwrap_or(true) {
            return;
        }
        // What cannot be removed does no harm: the next run names it.
        let _ = fs::remove_file(path);
        if let DeviceSpec::File(directory) = &self.spec {
            let _ = fs::remove_dir(directory);
        }
    }

    /// One line that says where the store is and what becomes of it.
    #[must_use]
    pub fn describe(&self) -> String {
        match (&self.temporary, self.kept) {
            _ if manifest_path(&self.spec).is_none() => {
                format!("the store is in memory ({})", self.spec)
            }
            (Some(_), false) => format!("the store is in {}, removed at the end", self.spec),
            _ => format!("the store is in {}, kept at the end", self.spec),
        }
    }

    /// Whether there is still a store after [`Place::remove`] and the end of the process.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.kept && manifest_path(&self.spec).is_some()
    }

    /// Removes a temporary store.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove(self) -> Result<()> {
        match self.temporary {
            Some(directory) if !self.kept => {
                let path = directory.path().to_path_buf();
                directory.close().map_err(|e| BenchError::io("remove", &path, e))
            }
            _ => Ok(()),
        }
    }
}

/// What made a store, if it is one of `bench`, whose procedures are known.
///
/// # Errors
/// `Store` if what describes it cannot be read.
pub fn maker_of(spec: &DeviceSpec) -> Result<Option<Maker>> {
    let Some(path) = manifest_path(spec) else { return Ok(None) };
    Ok(manifest::read(&path)?.map(|made| made.by))
}

/// The parameters of an existing store of a maker.
///
/// # Errors
/// `Usage` for a device that forgets; `Store` if it is not one of this maker.
pub fn stored_parameters(spec: &DeviceSpec, by: Maker) -> Result<Parameters> {
    let Some(path) = manifest_path(spec) else {
        return Err(BenchError::Usage(format!("{spec} keeps nothing after the process")));
    };
    let there = match spec {
        DeviceSpec::File(directory) => directory.is_dir(),
        DeviceSpec::Dax(file) => file.exists(),
        _ => false,
    };
    match manifest::read(&path)? {
        Some(made) if made.by == by => Ok(made.parameters),
        Some(made) => Err(BenchError::Store(format!(
            "{spec} was made by `{0} bench`: only {0} replays it",
            made.by.binary()
        ))),
        None if there => Err(BenchError::Store(format!(
            "there is no {}: this command replays stores that `bench` made, because it must know \
             their procedures",
            path.display()
        ))),
        None => Err(DeviceError::Missing { path: store_path(spec) }.into()),
    }
}

/// Whether a device keeps nothing once it is closed.
pub fn forgets(spec: &DeviceSpec) -> bool {
    manifest_path(spec).is_none()
}

fn store_path(spec: &DeviceSpec) -> PathBuf {
    match spec {
        DeviceSpec::File(path) | DeviceSpec::Dax(path) => path.clone(),
        _ => PathBuf::new(),
    }
}

/// Whether the creation of a store came so far that there is something to go on with.
fn is_made(spec: &DeviceSpec) -> Result<bool> {
    let path = match spec {
        DeviceSpec::File(directory) => directory.join("meta"),
        DeviceSpec::Dax(file) => file.clone(),
        _ => return Ok(false),
    };
    let failed = |e| BenchError::io("look into", &path, e);
    let mut bytes = Vec::new();
    match fs::metadata(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(failed(e)),
        // Anything else is in the way, as a store would be.
        Ok(data) if !data.is_file() => return Ok(true),
        Ok(_) => {}
    }
    // A file of zeros is the beginning of one.
    let head = fs::File::open(&path).and_then(|file| file.take(64 << 10).read_to_end(&mut bytes));
    head.map_err(failed)?;
    Ok(bytes.iter().any(|byte| *byte != 0))
}

/// Where the parameters are kept; `None` on devices that forget.
fn manifest_path(spec: &DeviceSpec) -> Option<PathBuf> {
    match spec {
        DeviceSpec::File(directory) => Some(directory.join(MANIFEST_NAME)),
        DeviceSpec::Dax(file) => {
            let mut path = file.as_os_str().to_os_string();
            path.push(".");
            path.push(MANIFEST_NAME);
            Some(path.into())
        }
        _ => None,
    }
}

/// A new store must not get mixed up with other files.
fn check_empty(spec: &DeviceSpec) -> Result<()> {
    let in_the_way = match spec {
        DeviceSpec::File(directory) if directory.exists() => {
            let entries =
                fs::read_dir(directory).map_err(|e| BenchError::io("list", directory, e))?;
            let names = entries.flatten().map(|entry| entry.file_name());
            let others = names.filter(|name| *name != *MANIFEST_TEMPORARY_NAME);
            others.min().map(|name| directory.join(name))
        }
        DeviceSpec::Dax(file) if file.exists() => Some(file.clone()),
        _ => None,
    };
    match in_the_way {
        None => Ok(()),
        Some(path) => Err(BenchError::Store(format!(
            "{spec} is not empty and was not made by `bench`: {} is in the way; choose an empty \
             or a new place",
            path.display()
        ))),
    }
}

/// Whether a directory is on a disk with enough room. A file system in memory would measure
/// nothing.
fn has_room(path: &Path) -> bool {
    let Ok(statistics) = rustix::fs::statfs(path) else { return false };
    let free = statistics.f_bavail.saturating_mul(statistics.f_bsize as u64);
    !is_in_memory(path) && free >= ROOM_BYTES
}

/// Whether a directory is on a file system that is only memory, as far as we can tell.
pub fn is_in_memory(path: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(path).is_ok_and(|statistics| statistics.f_type == TMPFS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contention, WorkloadParameters};

    #[test]
    fn a_temporary_place_goes_away_unless_it_is_kept() {
        for keep in [false, true] {
            let place = Place::temporary(keep).expect("a temporary directory");
            let DeviceSpec::File(path) = place.spec.clone() else { panic!("not a directory") };
            assert!(path.is_dir());
            assert_eq!(place.is_kept(), keep);
            place.remove().expect("a removed directory");
            assert_eq!(path.exists(), keep);
            if keep {
                fs::remove_dir_all(path).expect("a removed directory");
            }
        }
    }

    #[test]
    fn only_a_store_of_ours_is_resumed_and_only_an_empty_place_is_taken() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let spec = DeviceSpec::File(dir.path().join("db"));
        let by = Maker::Library;
        let named =
            |resume: bool| Place::named(spec.clone(), resume.then_some(by), Progress::Hidden);
        let workload = WorkloadParameters::ycsb(1_000, Contention::Low);
        let parameters = Parameters::new(workload, Contention::Low);
        named(true).expect("nothing to resume").remember(&parameters, by).expect("written");
        assert_eq!(named(true).expect("a store").stored, Some(parameters));
        let other = Place::named(spec.clone(), Some(Maker::Engine), Progress::Hidden);
        assert!(other.expect_err("not its own").to_string().contains("continue it with nvcaracal"));
        // A creation that was cut short before there was a store.
        assert_eq!(named(false).expect("it can be made").stored, None);
        fs::write(dir.path().join("db/meta"), [0; 100]).expect("written");
        assert_eq!(named(false).expect("it can be made").stored, None);
        fs::write(dir.path().join("db/meta"), "a store").expect("written");
        assert!(named(false).expect_err("in the way").to_string().contains("--resume"));
        fs::remove_file(dir.path().join("db/bench.json")).expect("removed");
        fs::write(dir.path().join("db/letter.txt"), "hello").expect("written");
        for resume in [false, true] {
            let message = named(resume).expect_err("in the way").to_string();
            assert!(message.contains("letter.txt"), "{message}");
        }
        assert!(
            Place::named(DeviceSpec::Dram, Some(by), Progress::Hidden).expect_err("no").is_usage()
        );
    }
}
