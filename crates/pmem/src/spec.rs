//! Devices as they are named on the command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::emulated::Profile;

/// Which device to open. Limits and other options are given when it is opened.
///
/// ```
/// use pmem::{DeviceSpec, Profile};
/// assert_eq!("emulated".parse(), Ok(DeviceSpec::Emulated(Profile::Optane)));
/// assert_eq!("file:/var/db".parse::<DeviceSpec>().unwrap().to_string(), "file:/var/db");
/// assert!("flie:/var/db".parse::<DeviceSpec>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSpec {
    /// `dram`
    Dram,
    /// `emulated:PROFILE`; `emulated` alone means `emulated:optane`
    Emulated(Profile),
    /// `dax:PATH`
    Dax(PathBuf),
    /// `file:DIR`
    File(PathBuf),
    /// `crash`
    Crash,
}

/// A text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no device is called {given:?}: choose dram, emulated:none, emulated:optane, \
     emulated:optane-lines, emulated:eadr, emulated:cxl, emulated:low, emulated:high, dax:PATH, \
     file:DIR or crash"
)]
pub struct SpecError {
    /// The text.
    pub given: String,
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dram => f.write_str("dram"),
            Self::Emulated(profile) => write!(f, "emulated:{profile}"),
            Self::Dax(path) => write!(f, "dax:{}", path.display()),
            Self::File(dir) => write!(f, "file:{}", dir.display()),
            Self::Crash => f.write_str("crash"),
        }
    }
}

impl FromStr for DeviceSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let unknown = || SpecError { given: text.to_string() };
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        match (kind, rest) {
            ("dram", None) => Ok(Self::Dram),
            ("crash", None) => Ok(Self::Crash),
            ("emulated", None) => Ok(Self::Emulated(Profile::Optane)),
            ("emulated", Some(name)) => name.parse().map(Self::Emulated).map_err(|_| unknown()),
            ("dax", Some(path)) if !path.is_empty() => Ok(Self::Dax(path.into())),
            ("file", Some(dir)) if !dir.is_empty() => Ok(Self::File(dir.into())),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spec_prints_as_it_parses() {
        for text in [
            "dram",
            "emulated:none",
            "emulated:optane",
            "emulated:optane-lines",
            "emulated:eadr",
            "emulated:cxl",
            "emulated:low",
            "emulated:high",
            "dax:/pm/a:b",
            "file:db",
            "crash",
        ] {
            assert_eq!(text.parse::<DeviceSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_unknown_device_lists_the_choices() {
        for text in ["", "file", "file:", "dax:", "dram:1", "emulated:", "emulated:fast", "disk"] {
            let message = text.parse::<DeviceSpec>().unwrap_err().to_string();
            assert!(message.contains("file:DIR"), "{message}");
        }
    }
}
