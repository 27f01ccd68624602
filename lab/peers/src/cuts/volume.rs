//! A small file system whose disk loses what was not flushed.
//!
//! Two file systems, each on a loop device: the *disk* is a file of the outer one, and the inner
//! one, on that disk, has the database. What is written to the disk is in the outer one's memory
//! until the inner one flushes the disk: that is the disk's volatile cache. Each of them can end
//! without writing anything more:
//!
//! - the inner one: what it had written to its disk is there, and nothing else;
//! - the outer one: only what was flushed is there, and of the rest any part, in pages of 4 KiB.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pmem::shut_file_system_down;
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use crate::peer::{Error, Result};
use crate::value::Random;

/// The file system that the database is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4, as it is by default.
    Ext4,
    /// XFS, as it is by default.
    Xfs,
}

impl FileSystem {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ext4, Self::Xfs];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// Bytes of its disk; XFS is not made on less than 300 MiB.
    const fn disk_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 256 << 20,
            Self::Xfs => 304 << 20,
        }
    }

    /// Makes it on a disk, none of whose blocks are given back: they would be allocated anew.
    fn make(self, disk: &Path) -> Result<()> {
        let words: &[&str] = match self {
            Self::Ext4 => &["-q", "-F", "-m", "0", "-N", "1024", "-J", "size=4", "-E", EXT4_EAGER],
            Self::Xfs => &["-q", "-f", "-K"],
        };
        run(Command::new(format!("mkfs.{}", self.name())).args(words).arg(disk))
    }
}

/// Nothing is initialized later, beside the database.
const EXT4_EAGER: &str = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
/// Room of the outer file system for what is not the disk.
const OUTER_BYTES: u64 = 32 << 20;

/// Why power cannot be cut here; none if it can.
#[must_use]
pub fn why_not(file_system: FileSystem) -> Option<String> {
    let makes = format!("mkfs.{}", file_system.name());
    let is_there = |program: &str| {
        let mut says = Command::new(program);
        says.arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    if !cfg!(target_os = "linux") {
        Some("power cuts of file systems need Linux".into())
    } else if !rustix::process::geteuid().is_root() {
        Some("power cuts mount file systems on loop devices, which only root may do".into())
    } else if !Path::new("/dev/loop-control").exists() {
        Some("there are no loop devices here: /dev/loop-control is missing".into())
    } else {
        let needed = ["mkfs.ext4", &makes, "mount", "umount", "unshare"];
        let missing = needed.into_iter().find(|program| !is_there(program))?;
        Some(format!("power cuts need the program {missing}, which is not installed"))
    }
}

/// Runs a program; what it says is the error.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    // A signal from the terminal is for this process alone.
    let ran = command
        .process_group(0)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::of(&name, error))?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr).trim().replace('\n', " ");
    Err(Error::of(&name, format!("{}: {said}", ran.status)))
}

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
struct Mount(PathBuf);

/// How often and how long an unmount waits for what still uses the file system.
const BUSY_LOOKS: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

impl Mount {
    fn new(image: &Path, at: PathBuf) -> Result<Self> {
        run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(&at))?;
        Ok(Self(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        for _ in 0..BUSY_LOOKS {
            if run(Command::new("umount").arg(&self.0)).is_ok() {
                return;
            }
            std::thread::sleep(BUSY_PAUSE);
        }
        // It goes away with its last user.
        let _ = run(Command::new("umount").arg("-l").arg(&self.0));
    }
}

/// What loses its power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The file system: what it had written to its disk stays.
    FileSystem,
    /// The disk, too: of what was not flushed any part stays.
    Disk,
}

/// The file system and its disk.
#[derive(Debug)]
pub(super) struct Volume {
    room: PathBuf,
    /// Before the outer one, on whose disk it is.
    inner: Option<Mount>,
    outer: Option<Mount>,
}

impl Volume {
    /// Makes one in an empty directory; it is not mounted then.
    pub(super) fn make(room: &Path, file_system: FileSystem) -> Result<Self> {
        let failed = |error: io::Error| Error::of(&room.display().to_string(), error);
        let mut volume = Self { room: room.to_path_buf(), inner: None, outer: None };
        for directory in [volume.outer_path(), volume.path()] {
            std::fs::create_dir(directory).map_err(failed)?;
        }
        let disk_bytes = file_system.disk_bytes();
        let image = File::create(volume.image()).map_err(failed)?;
        image.set_len(disk_bytes + OUTER_BYTES).map_err(failed)?;
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F", "-m", "0", "-N", "16", "-J", "size=4", "-E", EXT4_EAGER])
            .arg(volume.image()))?;
        volume.outer = Some(Mount::new(&volume.image(), volume.outer_path())?);
        // All of its blocks are allocated and written before anything is lost.
        let mut disk = File::create(volume.disk()).map_err(failed)?;
        let zeros = vec![0; 1 << 20];
        for _ in 0..disk_bytes >> 20 {
            disk.write_all(&zeros).map_err(failed)?;
        }
        file_system.make(&volume.disk())?;
        disk.sync_all().map_err(failed)?;
        Ok(volume)
    }

    /// Where the file system is, once it is mounted.
    pub(super) fn path(&self) -> PathBuf {
        self.room.join("mounted")
    }

    fn outer_path(&self) -> PathBuf {
        self.room.join("outer")
    }

    fn image(&self) -> PathBuf {
        self.room.join("image")
    }

    fn disk(&self) -> PathBuf {
        self.outer_path().join("disk")
    }

    /// Mounts the file system, and its disk if that lost its power.
    pub(super) fn mount(&mut self) -> Result<()> {
        if self.outer.is_none() {
            self.outer = Some(Mount::new(&self.image(), self.outer_path())?);
        }
        self.inner = Some(Mount::new(&self.disk(), self.path())?);
        Ok(())
    }

    /// Whether a quarter of the file system is left, or less.
    pub(super) fn is_full(&self) -> bool {
        rustix::fs::statvfs(self.path()).is_ok_and(|of| of.f_bavail * 4 < of.f_blocks)
    }

    /// Cuts the power; all I/O fails from now on.
    pub(super) fn cut(&self, part: Part, random: &mut Random) -> Result<()> {
        let path = match part {
            Part::FileSystem => self.path(),
            Part::Disk => {
                let written = self.write_some(random);
                written.map_err(|error| Error::of("the disk", error))?;
                self.outer_path()
            }
        };
        let cut = shut_file_system_down(&path);
        cut.map_err(|error| Error::of("a power cut", format!("{}: {error}", path.display())))
    }

    /// Writes some of what is in the disk's cache, as a disk may do at any time.
    fn write_some(&self, random: &mut Random) -> io::Result<()> {
        /// Of 100 ranges so many are written.
        const SHARES: [u64; 5] = [0, 0, 10, 50, 90];
        const PAGE_BYTES: u64 = 4096;
        const RANGE_PAGES_MAX: u64 = 64;
        let share = SHARES[(random.next() % SHARES.len() as u64) as usize];
        if share == 0 {
            return Ok(());
        }
        let disk = File::open(self.disk())?;
        let (mut at, end) = (0, disk.metadata()?.len());
        while at < end {
            let bytes = PAGE_BYTES * (1 + random.next() % RANGE_PAGES_MAX);
            if random.next() % 100 < share {
                // Dirty pages of a range that is not needed any more are written.
                fadvise(&disk, at, NonZeroU64::new(bytes), Advice::DontNeed)?;
            }
            at += bytes;
        }
        Ok(())
    }

    /// Unmounts what lost its power.
    pub(super) fn unmount(&mut self, part: Part) {
        self.inner = None;
        if part == Part::Disk {
            self.outer = None;
        }
    }
}
