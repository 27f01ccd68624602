//! The devices that rivals run on.

use std::sync::Arc;

use pmem::{Description, Device, Emulated, File};

/// An open device of a rival.
pub(crate) enum RivalDevice {
    /// Emulated persistent memory.
    Emulated(Arc<Emulated>),
    /// Files, of which a rival uses the log.
    File(Arc<File>),
}

impl RivalDevice {
    pub(super) fn description(&self) -> Description {
        match self {
            Self::Emulated(device) => device.description(),
            Self::File(file) => file.description(),
        }
    }
}
