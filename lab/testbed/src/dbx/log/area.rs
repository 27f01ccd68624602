//! Where a log is: in the image of a memory device, or in the log space of a device, which is
//! written to as a file is.

use std::sync::Arc;

use pmem::{Device, Port};

use super::super::design::Way;
use crate::error::Result;
use crate::memory::{WORD_BYTES, count_load, load_counted_words, store_words, store_words_past};

/// See the module's documentation.
pub(super) struct Area<D: Device> {
    device: Arc<D>,
    way: Way,
}

impl<D: Device> Area<D> {
    pub(super) fn new(device: Arc<D>, way: Way) -> Self {
        // A device that keeps files syncs nothing but its log.
        let way = if device.takes_snapshots() { Way::File } else { way };
        Self { device, way }
    }

    pub(super) fn way(&self) -> Way {
        self.way
    }

    pub(super) fn bytes(&self) -> u64 {
        match self.way {
            Way::File => self.device.log_bytes(),
            _ => self.device.image_bytes(),
        }
    }

    pub(super) fn grow(&self, bytes: u64) -> Result<()> {
        match self.way {
            Way::File => self.device.grow_log(bytes)?,
            _ => self.device.grow_image(bytes)?,
        }
        Ok(())
    }

    /// Stores words; durable after this port's next [`Self::fence`].
    pub(super) fn write(&self, port: &mut Port<D>, at: u64, words: &[u64]) -> Result<()> {
        match self.way {
            Way::File => port.log_write(at, zerocopy::IntoBytes::as_bytes(words))?,
            Way::Stores | Way::Lines => {
                store_words(port, at, words);
                port.flush(at, words.len() as u64 * WORD_BYTES);
            }
            Way::PastCache | Way::Blocks => store_words_past(port, at, words),
        }
        Ok(())
    }

    /// Makes durable what this port has written.
    pub(super) fn fence(&self, port: &mut Port<D>) -> Result<()> {
        if self.way == Way::File {
            port.log_fence();
            return Ok(self.device.log_sync()?);
        }
        port.fence();
        Ok(())
    }

    /// Makes durable what the device shows when it is opened.
    pub(super) fn settle(&self, port: &mut Port<D>) -> Result<()> {
        if self.way != Way::File && self.device.may_show_undurable() {
            port.flush(0, self.bytes());
        }
        self.fence(port)
    }

    /// Reads consecutive words into `words`, in place of what is there.
    pub(super) fn read(
        &self,
        port: &mut Port<D>,
        at: u64,
        count: usize,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        words.clear();
        if self.way == Way::File {
            words.resize(count, 0);
            let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut words[..]);
            return Ok(self.device.log_read(at, bytes)?);
        }
        count_load(port, at, count as u64 * WORD_BYTES);
        load_counted_words(port, at, count, words);
        Ok(())
    }
}
