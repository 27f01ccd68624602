//! From the name of a device to its type: the one place where the choice is made at run time.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use pmem::{AnyDevice, Crash, Dax, DeviceError, DeviceSpec, Dram, Emulated, File, FileOptions};

use super::fail_point::FailPoint;
use super::place::BESIDE;
use crate::{BenchError, Result};

/// Default limit of the image: address space, not memory or disk.
pub const IMAGE_LIMIT_BYTES_DEFAULT: u64 = 64 << 30;
/// Default limit of the input log: address space, too.
pub const LOG_LIMIT_BYTES_DEFAULT: u64 = 64 << 30;

/// How much a device may grow, and whether it may be created.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most bytes of the image.
    pub image_bytes: u64,
    /// Most bytes of the log space.
    pub log_bytes: u64,
    /// Whether to create a store where there is none.
    pub create: bool,
    /// Whether the store is only looked at, without a handle that could write to it, where the
    /// device can do that; only on the `file` device.
    pub read_only: bool,
    /// Whether this is for a load, which may finish one that was cut short.
    pub loading: bool,
    /// Where the process ends; only on the `file` device.
    pub die_at: Option<FailPoint>,
    /// Most bytes of memory, if the store may be larger; only on the `file` device.
    pub memory_limit_bytes: Option<u64>,
}

impl Limits {
    /// For a store that may be created.
    #[must_use]
    pub fn new(image_bytes: u64, log_bytes: u64) -> Self {
        Self {
            image_bytes,
            log_bytes,
            create: true,
            read_only: false,
            loading: false,
            die_at: None,
            memory_limit_bytes: None,
        }
    }

    /// For a store that must be there and is only looked at.
    #[must_use]
    pub fn read_only(spec: &DeviceSpec) -> Self {
        Self { read_only: true, ..Self::existing(spec) }
    }

    /// For a store that must be there: it fits, whatever its size is, and has room to replay its
    /// log.
    #[must_use]
    pub fn existing(spec: &DeviceSpec) -> Self {
        let (image, log) = match spec {
            DeviceSpec::File(directory) => (directory.join("image"), directory.join("log")),
            DeviceSpec::Dax(path) => {
                let mut log = path.clone().into_os_string();
                log.push(".log");
                (path.clone(), log.into())
            }
            _ => Default::default(),
        };
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        Self {
            image_bytes: (bytes(&image) * 2).max(IMAGE_LIMIT_BYTES_DEFAULT),
            log_bytes: (bytes(&log) * 2).max(LOG_LIMIT_BYTES_DEFAULT),
            create: false,
            read_only: false,
            loading: false,
            die_at: None,
            memory_limit_bytes: None,
        }
    }
}

/// Opens the device of a store.
///
/// # Errors
/// `Usage` for a limit of memory that the device cannot keep; the device's.
pub fn open_device(spec: &DeviceSpec, limits: Limits) -> Result<Arc<AnyDevice>> {
    let Limits { image_bytes, log_bytes, create, read_only, loading, die_at, .. } = limits;
    let memory_limit_bytes = limits.memory_limit_bytes;
    let hook = die_at.map(|point| point.hook(spec)).transpose()?;
    if memory_limit_bytes.is_some() && !matches!(spec, DeviceSpec::File(_)) {
        let what = format!("{spec} keeps all data in memory: a limit of memory is for file:DIR");
        return Err(BenchError::Usage(what));
    }
    match spec {
        DeviceSpec::Dram => Ok(AnyDevice::new(Dram::new(image_bytes, log_bytes)?)),
        DeviceSpec::Emulated(profile) => {
            Ok(AnyDevice::new(Emulated::new(*profile, image_bytes, log_bytes)?))
        }
        DeviceSpec::Dax(path) => {
            if !create && !path.exists() {
                return Err(DeviceError::Missing { path: path.clone() }.into());
            }
            let open = if loading { Dax::open_for_load } else { Dax::open };
            Ok(AnyDevice::new(open(path, image_bytes, log_bytes)?))
        }
        DeviceSpec::File(directory) => {
            let limits = FileOptions::new(image_bytes, log_bytes);
            let options = FileOptions {
                create,
                read_only,
                loading,
                beside: BESIDE,
                memory_limit_bytes,
                hook,
                ..limits
            };
            Ok(AnyDevice::new(File::open(directory, &options)?))
        }
        DeviceSpec::Crash => Ok(AnyDevice::new(Crash::new(image_bytes, log_bytes)?)),
    }
}

/// The device of an existing store: a directory is `file`, a file is `dax`; a whole device name
/// works too.
///
/// # Errors
/// `Usage` for a device without a place; the device's if there is nothing.
pub fn spec_of_path(path: impl AsRef<Path>) -> Result<DeviceSpec> {
    let path = path.as_ref();
    // What is no text is no device's name.
    let text = path.to_str().unwrap_or_default();
    if path.is_dir() {
        return Ok(DeviceSpec::File(path.to_path_buf()));
    }
    if let Err(source) = path.try_exists()
        && source.kind() == ErrorKind::PermissionDenied
    {
        // It may be there.
        let (what, path) = ("look for".to_string(), path.to_path_buf());
        return Err(DeviceError::Io { what, path, source }.into());
    }
    match text.parse::<DeviceSpec>() {
        Ok(spec @ (DeviceSpec::File(_) | DeviceSpec::Dax(_))) => Ok(spec),
        Ok(other) if !path.exists() => Err(BenchError::Usage(format!(
            "{other} keeps nothing after the process: name a directory, file:DIR or dax:PATH"
        ))),
        _ if path.exists() => Ok(DeviceSpec::Dax(path.to_path_buf())),
        _ => Err(DeviceError::Missing { path: path.to_path_buf() }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_device() {
        assert_eq!(spec_of_path("/").expect("a directory"), DeviceSpec::File("/".into()));
        assert_eq!(spec_of_path("file:/x").expect("a name"), DeviceSpec::File("/x".into()));
        assert_eq!(spec_of_path("dax:/x").expect("a name"), DeviceSpec::Dax("/x".into()));
        assert!(spec_of_path("emulated:low").expect_err("no place").is_usage());
        let missing = spec_of_path("/no/such/place").expect_err("nothing there").to_string();
        assert!(missing.contains("/no/such/place"), "{missing}");
    }
}
