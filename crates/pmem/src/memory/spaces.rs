//! The two spaces of a device that keeps everything in memory, and the limits of all devices.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::DeviceError;
use crate::memory::{Mapping, Pages, page_ceil};

/// How much of a space is usable, and how much may become so.
#[derive(Debug)]
pub(crate) struct Limited {
    what: &'static str,
    limit_bytes: u64,
    usable_bytes: AtomicU64,
}

impl Limited {
    pub(crate) fn new(what: &'static str, limit_bytes: u64, usable_bytes: u64) -> Self {
        let most = page_ceil(limit_bytes);
        assert!(usable_bytes <= most, "the {what} has {usable_bytes} bytes of {most}");
        Self { what, limit_bytes, usable_bytes: AtomicU64::new(usable_bytes) }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.usable_bytes.load(Ordering::Acquire)
    }

    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// The usable size that serves a request, in whole pages, if the limit allows it.
    pub(crate) fn check_limit(&self, bytes: u64) -> Result<u64, DeviceError> {
        if bytes > self.limit_bytes {
            return Err(DeviceError::Full {
                what: self.what.to_string(),
                wanted_bytes: bytes,
                limit_bytes: Some(self.limit_bytes),
            });
        }
        Ok(page_ceil(bytes))
    }

    /// Publishes a larger usable size, after whatever backs it exists.
    pub(crate) fn set(&self, bytes: u64) {
        self.usable_bytes.fetch_max(bytes, Ordering::AcqRel);
    }

    /// Publishes a smaller usable size, before what backs the rest goes.
    pub(crate) fn shrink(&self, bytes: u64) {
        self.usable_bytes.fetch_min(bytes, Ordering::AcqRel);
    }

    /// Publishes another usable size, also a smaller one, when no thread uses the space.
    pub(crate) fn reset(&mut self, bytes: u64) {
        let most = page_ceil(self.limit_bytes);
        assert!(bytes <= most, "the {} has room for {most} bytes, not for {bytes}", self.what);
        *self.usable_bytes.get_mut() = bytes;
    }

    pub(crate) fn grow(&self, bytes: u64) -> Result<(), DeviceError> {
        self.set(self.check_limit(bytes)?);
        Ok(())
    }

    /// Panics if a write goes beyond the usable part: that is a bug of the caller.
    #[inline]
    pub(crate) fn check_usable(&self, offset: u64, len: u64) {
        let usable = self.bytes();
        let inside = len <= usable && offset <= usable - len;
        assert!(inside, "{len} bytes at {offset} are outside the {} of {usable} bytes", self.what);
    }
}

/// One space in memory: a mapping of which a prefix is usable.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) mapping: Mapping,
    pub(crate) usable: Limited,
}

impl Space {
    pub(crate) fn new(
        what: &'static str,
        limit_bytes: u64,
        pages: Pages,
    ) -> Result<Self, DeviceError> {
        let mapping = Mapping::anonymous(page_ceil(limit_bytes), pages)?;
        Ok(Self::over(what, limit_bytes, mapping, 0))
    }

    /// A space over a mapping whose first `usable_bytes` are usable already.
    pub(crate) fn over(
        what: &'static str,
        limit_bytes: u64,
        mapping: Mapping,
        usable_bytes: u64,
    ) -> Self {
        assert!(page_ceil(limit_bytes) <= mapping.len(), "the limit fits the mapping");
        Self { mapping, usable: Limited::new(what, limit_bytes, usable_bytes) }
    }

    /// Copies bytes out; what lies beyond the usable part reads as zero.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let there = self.usable.bytes().saturating_sub(offset).min(into.len() as u64);
        let (head, tail) = into.split_at_mut(there as usize);
        if there > 0 {
            // SAFETY: mapped; log space is read only when no thread writes it (recovery, check).
            head.copy_from_slice(unsafe { self.mapping.slice(offset, there) });
        }
        tail.fill(0);
    }
}

/// Image and log of a memory device.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) image: Space,
    pub(crate) log: Space,
}

impl Memory {
    pub(crate) fn new(
        image_limit_bytes: u64,
        log_limit_bytes: u64,
        pages: Pages,
    ) -> Result<Self, DeviceError> {
        Ok(Self {
            image: Space::new("image", image_limit_bytes, pages)?,
            log: Space::new("log", log_limit_bytes, pages)?,
        })
    }

    /// Writes to the log with ordinary stores.
    pub(crate) fn log_write(&self, offset: u64, bytes: &[u8]) {
        self.log.usable.check_usable(offset, bytes.len() as u64);
        // SAFETY: two ports never write the same range of the log at the same time.
        unsafe { self.log.mapping.store_bytes(offset, bytes) };
    }
}

/// What devices have in common whose two spaces are a [`Memory`] in the field `memory`: everything
/// of [`crate::Device`] that is about spaces and not about what makes bytes durable. With the word
/// `watched`, without growth, which such devices note down. Reads of the log, which may cost time,
/// come apart, with the word `free_log_reads`.
macro_rules! in_memory {
    () => {
        crate::memory::in_memory!(watched);

        fn grow_image(&self, bytes: u64) -> Result<(), DeviceError> {
            self.memory.image.usable.grow(bytes)
        }

        fn grow_log(&self, bytes: u64) -> Result<(), DeviceError> {
            self.memory.log.usable.grow(bytes)
        }
    };
    (watched) => {
        #[inline]
        fn image(&self) -> &Mapping {
            &self.memory.image.mapping
        }

        #[inline]
        fn image_bytes(&self) -> u64 {
            self.memory.image.usable.bytes()
        }

        fn log_bytes(&self) -> u64 {
            self.memory.log.usable.bytes()
        }

        fn log_sync(&self) -> Result<(), DeviceError> {
            Ok(())
        }
    };
    (free_log_reads) => {
        fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
            self.memory.log.read(offset, into);
            Ok(())
        }
    };
}

pub(crate) use in_memory;
