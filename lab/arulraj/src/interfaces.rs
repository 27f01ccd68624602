//! The paper's Figure 1: how fast small chunks become durable through the allocator and through
//! files.

use std::sync::Arc;

use pmem::{Device, Dram, Emulated, Profile};
use serde::Serialize;

use crate::Result;
use crate::ground::{Area, FileId, Modelled, Nvm, Traffic};
use crate::run::clock::thread_cpu_ns;
use crate::run::report::STORE_NS;

/// How chunks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// Stores, flushes and a fence.
    Allocator,
    /// A write and an fsync of a file.
    File,
}

/// Where chunks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One behind the other.
    Sequential,
    /// Anywhere.
    Random,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    /// How.
    pub interface: Interface,
    /// Where.
    pub order: Order,
    /// Bytes of a chunk, at most [`SLOT_BYTES`].
    pub chunk_bytes: u64,
    /// How many are written.
    pub count: u64,
    /// What is modelled.
    pub modelled: Modelled,
}

/// What it took.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ChunksReport {
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Lines read for a chunk.
    pub lines_read: f64,
    /// Lines written.
    pub lines_written: f64,
    /// Fences.
    pub fences: f64,
    /// System calls.
    pub system_calls: f64,
    /// Nanoseconds of the processor, measured in DRAM without a modelled cache; system calls as
    /// charged among them.
    pub cpu_ns: f64,
    /// Durable MB a second, by that and by the device's time: loads of 160 ns, stores at 9.5 GB/s.
    pub mb_per_second: f64,
}

/// Bytes of a slot of the region that is written to.
pub const SLOT_BYTES: u64 = 60_000;
/// From a slot's first byte, behind its header, to the next line.
const TO_LINE: u64 = 56;
/// Slots of the region.
const SLOTS: u64 = 128;
const IMAGE_BYTES: u64 = 64 << 20;

/// Writes chunks, and says what each takes.
///
/// # Errors
/// The device's.
pub fn run_chunks(chunks: &Chunks) -> Result<ChunksReport> {
    let plain = Modelled { cache: None, ..chunks.modelled };
    let (_, cpu_ns) = write(Dram::new(IMAGE_BYTES, 0)?, chunks, plain)?;
    let device = Emulated::new(Profile::None, IMAGE_BYTES, 0)?;
    let (traffic, _) = write(device, chunks, chunks.modelled)?;
    let each = |count: u64| count as f64 / chunks.count.max(1) as f64;
    let (lines_read, lines_written) = (each(traffic.cache.loads), each(traffic.cache.stores));
    let cpu_ns = each(cpu_ns);
    let ns = cpu_ns + lines_read * 160.0 + lines_written * STORE_NS;
    Ok(ChunksReport {
        chunk_bytes: chunks.chunk_bytes,
        lines_read,
        lines_written,
        fences: each(traffic.syncs),
        system_calls: each(traffic.system_calls),
        cpu_ns,
        mb_per_second: chunks.chunk_bytes as f64 * 1e3 / ns,
    })
}

/// The region: slots, or a file of as many bytes.
enum Region {
    Slots(Vec<u64>),
    File(FileId),
}

impl Region {
    fn create<D: Device>(nvm: &mut Nvm<D>, interface: Interface) -> Result<Self> {
        let zeros = vec![0; SLOT_BYTES as usize];
        match interface {
            Interface::Allocator => {
                let slots = (0..SLOTS).map(|_| {
                    let slot = nvm.allocate(TO_LINE + SLOT_BYTES, Area::Table)?;
                    nvm.mark_persisted(slot);
                    nvm.memory.store_past(slot + TO_LINE, &zeros);
                    Ok(slot + TO_LINE)
                });
                slots.collect::<Result<_>>().map(Self::Slots)
            }
            Interface::File => {
                let file = nvm.create_file(1)?;
                (0..SLOTS).try_for_each(|i| nvm.write_file(file, i * SLOT_BYTES, &zeros))?;
                nvm.sync_file(file);
                Ok(Self::File(file))
            }
        }
    }

    /// Writes a chunk into a slot, durably.
    fn write<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        slot: u64,
        within: u64,
        chunk: &[u8],
    ) -> Result<()> {
        match self {
            Self::Slots(slots) => {
                let at = slots[slot as usize] + within;
                nvm.memory.store(at, chunk);
                nvm.memory.sync(at, chunk.len() as u64);
            }
            Self::File(file) => {
                nvm.write_file(*file, slot * SLOT_BYTES + within, chunk)?;
                nvm.sync_file(*file);
            }
        }
        Ok(())
    }
}

/// What went to and from the device, and nanoseconds of the processor.
fn write<D: Device>(device: D, chunks: &Chunks, modelled: Modelled) -> Result<(Traffic, u64)> {
    let mut nvm = Nvm::create(Arc::new(device), 1, modelled)?;
    let region = Region::create(&mut nvm, chunks.interface)?;
    let of_slot = SLOT_BYTES / chunks.chunk_bytes;
    let chunk = vec![7; chunks.chunk_bytes as usize];
    let (before, start_ns) = (nvm.traffic(), thread_cpu_ns());
    for i in 0..chunks.count {
        let place = match chunks.order {
            Order::Sequential => i,
            // A generator of whole period, whose high bits are random enough for places.
            Order::Random => i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20,
        };
        let place = place % (of_slot * SLOTS);
        region.write(&mut nvm, place / of_slot, place % of_slot * chunks.chunk_bytes, &chunk)?;
    }
    let cpu_ns = thread_cpu_ns() - start_ns;
    Ok((nvm.traffic().since(&before), cpu_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::CacheShape;

    fn report(interface: Interface, order: Order, chunk_bytes: u64) -> ChunksReport {
        let cache = Some(CacheShape::of_bytes(64 << 10));
        let modelled = Modelled { cache, ..Modelled::default() };
        run_chunks(&Chunks { interface, order, chunk_bytes, count: 600, modelled }).unwrap()
    }

    #[test]
    fn a_chunk_is_flushed_or_written_and_synced() {
        let line = report(Interface::Allocator, Order::Sequential, 8);
        assert_eq!((line.fences, line.system_calls), (1.0, 0.0));
        assert!((line.lines_read, line.lines_written) == (1.0, 1.0), "CLFLUSH evicts: {line:?}");
        let file = report(Interface::File, Order::Random, 8);
        assert_eq!((file.fences, file.system_calls), (1.0, 2.0));
        assert!(file.lines_read == 0.0 && file.lines_written >= 1.0, "{file:?}");
        let aligned = report(Interface::Allocator, Order::Sequential, 64);
        assert!((aligned.lines_read, aligned.lines_written) == (1.0, 1.0), "{aligned:?}");
        let large = report(Interface::File, Order::Sequential, 256);
        assert!((4.0..=5.0).contains(&large.lines_written), "{large:?}");
    }
}
