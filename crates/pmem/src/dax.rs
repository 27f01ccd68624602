//! A file on persistent memory, mapped so that a flush and a fence make data durable.
//!
//! That promise holds only where the kernel maps the file with `MAP_SYNC`: then the page that is
//! stored to is the device, and the file system has made durable where it is. On any other file
//! system a flush would only reach the page cache, so this device refuses there, and there is no
//! fallback (O-55).
//!
//! The image is the file that was named; the log space is a file beside it with `.log` appended.
//! Both are mapped for their whole limit at once; pages beyond the end of a file are never handed
//! out, because touching them would kill the process. The files must not be truncated while they
//! are open.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::MapFlags;

use crate::cpu::{Cpu, REGIONS, caches_survive};
use crate::device::{Description, Device, Kind, PortState, Shortcuts};
use crate::failure::{DeviceError, Health, lock};
use crate::memory::{Mapping, PAGE_BYTES, Space, page_ceil};
use crate::side_files::LoadMark;
use crate::sync::background::Mutex;
use crate::system::{Locked, advice, open_regular};
use crate::units::{LINE_BYTES, Line};

/// A mapped file and how much of it is usable.
#[derive(Debug)]
struct Mapped {
    path: PathBuf,
    space: Space,
    /// Dropped after the mapping.
    locked: Locked,
}

/// Files on persistent memory. See the module's documentation.
#[derive(Debug)]
pub struct Dax {
    image: Mapped,
    log: Mapped,
    cpu: Cpu,
    /// Only one caller at a time extends files.
    growing: Mutex<()>,
    health: Health,
}

impl Dax {
    /// Opens the image at `path` and the log beside it, creating both if they do not exist.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] where the file system or the processor cannot make a flush durable
    /// (O-55), [`DeviceError::Locked`] if the file is open elsewhere (O-52), [`DeviceError::Full`]
    /// if an existing file is larger than its limit, [`DeviceError::Io`] otherwise.
    pub fn open(
        path: impl AsRef<Path>,
        image_limit_bytes: u64,
        log_limit_bytes: u64,
    ) -> Result<Self, DeviceError> {
        let path = path.as_ref();
        let opened = Self::open_for_load(path, image_limit_bytes, log_limit_bytes)?;
        load_mark(path).check_none(path)?;
        Ok(opened)
    }

    /// The same for a load, which may finish one that was cut short. Anybody else is refused what
    /// that has left.
    ///
    /// # Errors
    /// As [`Dax::open`].
    pub fn open_for_load(
        path: impl AsRef<Path>,
        image_limit_bytes: u64,
        log_limit_bytes: u64,
    ) -> Result<Self, DeviceError> {
        let path = path.as_ref();
        if !Cpu::CAN_PERSIST {
            let path = path.display();
            return Err(DeviceError::Refused(format!(
                "this processor has no flush that is known to reach persistent memory, so \
                 dax:{path} cannot be durable; use --device file:DIR"
            )));
        }
        let Some(flags) = advice::durable_flags() else {
            let path = path.display();
            return Err(DeviceError::Refused(format!(
                "this system has no mapping that is known to be durable, so dax:{path} cannot be; \
                 use --device file:DIR"
            )));
        };
        Self::open_with(path, image_limit_bytes, log_limit_bytes, flags)
    }

    fn open_with(
        path: &Path,
        image_limit_bytes: u64,
        log_limit_bytes: u64,
        flags: MapFlags,
    ) -> Result<Self, DeviceError> {
        let mut log_path = path.as_os_str().to_os_string();
        log_path.push(".log");
        Ok(Self {
            image: Mapped::open(path, "image", image_limit_bytes, flags)?,
            log: Mapped::open(Path::new(&log_path), "log", log_limit_bytes, flags)?,
            cpu: Cpu::detect(),
            growing: Mutex::new(()),
            health: Health::default(),
        })
    }

    fn grow(&self, mapped: &Mapped, bytes: u64) -> Result<(), DeviceError> {
        let _one = lock(&self.growing);
        let bytes = mapped.space.usable.check_limit(bytes)?;
        if bytes > mapped.space.usable.bytes() {
            self.health.check()?;
            self.health.note_growth(mapped.extend(bytes))?;
            mapped.space.usable.set(bytes);
        }
        Ok(())
    }
}

/// The mark of a load into a database.
fn load_mark(path: &Path) -> LoadMark {
    let mut mark = path.as_os_str().to_os_string();
    mark.push(".loading");
    LoadMark::at(mark.into())
}

impl Mapped {
    fn open(
        path: &Path,
        what: &'static str,
        limit_bytes: u64,
        flags: MapFlags,
    ) -> Result<Self, DeviceError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        // Only the process that made the file knows that there is nothing else in it.
        let made = open_regular(options.create_new(true), path);
        let is_new = made.is_ok();
        let file = match made {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                open_regular(options.create_new(false), path)
            }
            made => made,
        };
        let file = file.map_err(|e| DeviceError::io("open", path, e))?;
        let locked = Locked::new(file, path)?;
        let mapped = Self::map(path, locked, what, limit_bytes, flags);
        if is_new && matches!(mapped, Err(DeviceError::Refused(_))) {
            // Leave nothing behind that we made and cannot use.
            let _ = fs::remove_file(path);
        }
        mapped
    }

    fn map(
        path: &Path,
        locked: Locked,
        what: &'static str,
        limit_bytes: u64,
        flags: MapFlags,
    ) -> Result<Self, DeviceError> {
        use std::os::fd::AsFd;
        let file = &locked.file;
        let mapping = Mapping::of_file(file.as_fd(), page_ceil(limit_bytes), flags);
        let mapping = mapping.map_err(|e| match e {
            Errno::OPNOTSUPP | Errno::INVAL => refused(path),
            other => DeviceError::io("map", path, other),
        })?;
        let data = file.metadata().map_err(|e| DeviceError::io("read the length of", path, e))?;
        let bytes = data.len() / PAGE_BYTES * PAGE_BYTES;
        if bytes > page_ceil(limit_bytes) {
            let what = format!("{what} (the existing file {})", path.display());
            return Err(DeviceError::Full {
                what,
                wanted_bytes: bytes,
                limit_bytes: Some(limit_bytes),
            });
        }
        let space = Space::over(what, limit_bytes, mapping, bytes);
        Ok(Self { path: path.to_path_buf(), space, locked })
    }

    /// Extends the file with zeros, durably (O-56).
    fn extend(&self, bytes: u64) -> Result<(), DeviceError> {
        let old = self.space.usable.bytes();
        loop {
            match fallocate(&self.locked.file, FallocateFlags::empty(), old, bytes - old) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => {
                    return Err(DeviceError::disk_full(&self.path, bytes));
                }
                Err(e) => {
                    return Err(DeviceError::io(format!("extend to {bytes} bytes"), &self.path, e));
                }
            }
        }
        let sync = |file: &File, path: &Path| -> Result<(), DeviceError> {
            file.sync_all().map_err(|e: io::Error| DeviceError::io("sync", path, e))
        };
        sync(&self.locked.file, &self.path)?;
        let dir = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        let dir = dir.unwrap_or(Path::new("."));
        sync(&File::open(dir).map_err(|e| DeviceError::io("open", dir, e))?, dir)
    }
}

fn refused(path: &Path) -> DeviceError {
    let path = path.display();
    DeviceError::Refused(format!(
        "the file system of {path} does not grant MAP_SYNC, so flushing a cache line would not \
         make it durable; put the file on persistent memory mounted with dax, or use --device \
         file:DIR, which is durable on an ordinary file system"
    ))
}

fn note(caches_survive: bool) -> String {
    let caches = match caches_survive {
        true => "; the platform says that processor caches survive, too (eADR): it flushes anyway",
        false => "",
    };
    format!("a file on persistent memory; what was flushed and fenced survives{caches}")
}

impl Device for Dax {
    fn description(&self) -> Description {
        Description {
            name: format!("dax:{}", self.image.path.display()),
            durable: true,
            note: note(caches_survive(Path::new(REGIONS))),
        }
    }

    fn shortcuts(&self) -> Shortcuts {
        Shortcuts(Kind::Flushed(self.cpu))
    }

    #[inline]
    fn image(&self) -> &Mapping {
        &self.image.space.mapping
    }

    #[inline]
    fn image_bytes(&self) -> u64 {
        self.image.space.usable.bytes()
    }

    fn grow_image(&self, bytes: u64) -> Result<(), DeviceError> {
        self.grow(&self.image, bytes)
    }

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, _: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: a range of the caller's.
        let to = unsafe { self.image().owned(offset, bytes.len()) };
        // SAFETY: mapped (checked by `at`) and owned by the caller in this phase.
        unsafe { self.cpu.store_nt(to, bytes) }
    }

    #[inline]
    // SAFETY: as above.
    unsafe fn store_line(&self, _: &mut PortState, offset: u64, line: &Line) {
        // SAFETY: a line of the caller's, which owns it in this phase.
        unsafe { self.cpu.store_line(self.image().owned(offset, line.len()), line) }
    }

    #[inline]
    fn order_stores(&self) {
        self.cpu.fence();
    }

    #[inline]
    fn flush(&self, _: &mut PortState, offset: u64, len: u64) {
        let start = self.image().at(offset, len as usize);
        // SAFETY: mapped (checked by `at`).
        unsafe { self.cpu.flush(start, len as usize) }
    }

    #[inline]
    fn flush_line(&self, _: &mut PortState, offset: u64) {
        let line = self.image().at(offset, LINE_BYTES as usize);
        // SAFETY: mapped (checked by `at`).
        unsafe { self.cpu.flush_line(line) }
    }

    fn load_mark(&self) -> Option<LoadMark> {
        Some(load_mark(&self.image.path))
    }

    #[inline]
    fn may_show_undurable(&self) -> bool {
        true
    }

    #[inline]
    fn fence(&self, _: &mut PortState) {
        self.cpu.fence();
    }

    fn log_bytes(&self) -> u64 {
        self.log.space.usable.bytes()
    }

    fn grow_log(&self, bytes: u64) -> Result<(), DeviceError> {
        self.grow(&self.log, bytes)
    }

    fn log_write(&self, _: &mut PortState, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.log.space.usable.check_usable(offset, bytes.len() as u64);
        self.health.check()?;
        let to = self.log.space.mapping.at(offset, bytes.len());
        // SAFETY: mapped; two ports never write the same range of the log at the same time.
        unsafe { self.cpu.store_nt(to, bytes) };
        Ok(())
    }

    fn log_fence(&self, _: &mut PortState) {
        self.cpu.fence();
    }

    fn log_sync(&self) -> Result<(), DeviceError> {
        self.health.check()
    }

    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.log.space.read(offset, into);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::Port;

    /// The same device over an ordinary shared mapping: not durable, but everything else is as it
    /// is on persistent memory.
    fn open(path: &Path) -> Result<Dax, DeviceError> {
        Dax::open_with(path, 1 << 20, 1 << 20, MapFlags::SHARED)
    }

    #[test]
    fn a_reopened_file_has_what_was_stored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        let device = Arc::new(open(&path).unwrap());
        device.grow_image(5000).unwrap();
        device.grow_log(4096).unwrap();
        assert_eq!(device.image_bytes(), 8192);
        let mut port = Port::new(Arc::clone(&device), 0);
        // SAFETY: this test owns the image.
        unsafe {
            port.store_u64(8, 11);
            port.store_nt(4096 + 60, &[7; 200]);
        }
        port.flush(8, 8);
        port.log_write(10, b"record").unwrap();
        port.fence();
        assert!(open(&path).unwrap_err().is_locked(), "O-52");
        drop((port, device));

        let device = open(&path).unwrap();
        assert_eq!((device.image_bytes(), device.log_bytes()), (8192, 4096));
        assert_eq!(device.image().load_u64(8), 11);
        // SAFETY: no thread stores.
        let bytes = unsafe { device.image().slice(4096, 4096) };
        assert_eq!(bytes[60..260], [7; 200]);
        assert!(bytes[..60].iter().chain(&bytes[260..]).all(|b| *b == 0));
        let mut record = [1; 8];
        device.log_read(9, &mut record).unwrap();
        assert_eq!(&record, b"\0record\0");
    }

    #[test]
    fn the_note_says_whether_caches_survive() {
        assert!(note(true).contains("eADR") && !note(false).contains("eADR"));
        assert!([true, false].into_iter().all(|survive| note(survive).contains("fenced survives")));
    }

    #[test]
    fn limits_hold_for_growth_and_for_existing_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        let device = open(&path).unwrap();
        assert!(device.grow_image((1 << 20) + 1).unwrap_err().is_limit());
        device.grow_image(1 << 20).unwrap();
        drop(device);
        let small = Dax::open_with(&path, 4096, 4096, MapFlags::SHARED).unwrap_err();
        assert!(small.is_limit(), "{small}");
    }
}
