//! Bytes in volatile memory, end to end: what waits to be written to a file. It is memory of the
//! device like all else, so that its stores and loads are charged.

use pmem::Device;

use crate::Result;
use crate::ground::{Area, Nvm, Part};

/// Bytes of a slot of a buffer.
const SLOT_BYTES: u64 = 4088;

/// A buffer, which keeps its slots when it is emptied.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    slots: Vec<u64>,
    len: u64,
}

impl Buffer {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds bytes at the end.
    pub(crate) fn push<D: Device>(&mut self, nvm: &mut Nvm<D>, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (slot, within) = ((self.len / SLOT_BYTES) as usize, self.len % SLOT_BYTES);
            if slot == self.slots.len() {
                self.slots.push(nvm.allocate(SLOT_BYTES, Area::Log)?);
            }
            let (part, later) = rest.split_at(rest.len().min((SLOT_BYTES - within) as usize));
            let at = self.slots[slot] + within;
            nvm.within(Part::LogBuffer, |nvm| nvm.memory.store(at, part));
            self.len += part.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Forgets what is behind so many bytes.
    pub(crate) fn truncate(&mut self, len: u64) {
        self.len = self.len.min(len);
    }

    /// All bytes; the buffer is empty then.
    pub(crate) fn take<D: Device>(&mut self, nvm: &mut Nvm<D>) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::with_capacity(self.len as usize), self.len);
        for slot in &self.slots {
            let part = rest.min(SLOT_BYTES);
            let loaded = |nvm: &mut Nvm<D>| bytes.extend_from_slice(nvm.memory.load(*slot, part));
            nvm.within(Part::LogBuffer, loaded);
            rest -= part;
        }
        self.len = 0;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pmem::Dram;

    use super::*;
    use crate::ground::{CacheShape, Modelled};

    #[test]
    fn it_has_what_was_pushed_and_charges_it() {
        let device = Arc::new(Dram::new(1 << 20, 0).unwrap());
        let cache = Some(CacheShape::of_bytes(1 << 12));
        let modelled = Modelled { cache, ..Modelled::default() };
        let mut nvm = Nvm::create(device, 1, modelled).unwrap();
        let mut buffer = Buffer::default();
        let bytes: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        for _ in 0..2 {
            buffer.push(&mut nvm, &bytes[..5000]).unwrap();
            buffer.push(&mut nvm, &bytes[..1000]).unwrap();
            buffer.truncate(5000);
            buffer.push(&mut nvm, &bytes[5000..]).unwrap();
            assert_eq!(buffer.len(), 10_000);
            assert_eq!(buffer.take(&mut nvm), bytes);
        }
        assert_eq!(buffer.slots.len(), 3, "they are kept");
        let lines = nvm.traffic().ledger.written(Part::LogBuffer);
        assert!(lines.pushed_out > 156, "a small cache pushes them out: {lines:?}");
    }
}
