//! What Zen does with versions: persist them with a mark, and reuse slots.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Device;

use crate::error::Result;
use crate::grace::{Grace, Limbo, Padded};
use crate::image::layout::{Header, Layout, WORKERS_MAX};
use crate::memory::{prefetch_slot, store_words};
use crate::occ::{Between, Old, Putting, Steps, Write};
use crate::rival::Fault;
use crate::transaction::Kind;

/// Transactions of a worker between two looks at what it may reuse.
const CALLS_BETWEEN_LOOKS: u64 = 16;

/// What all workers know of marks.
pub struct ZenSteps<const SNAPSHOTS: bool> {
    /// Versions up to this timestamp count without a mark.
    base: u64,
    /// By worker, the timestamp of its newest mark that is durable.
    marked: Box<[Padded<AtomicU64>]>,
}

/// One worker's old versions.
#[derive(Debug, Default)]
pub struct ZenLocal {
    limbo: Limbo<Old>,
    /// Versions with the newest mark of some worker.
    kept: Vec<Old>,
    calls: u64,
}

impl<const SNAPSHOTS: bool> ZenSteps<SNAPSHOTS> {
    pub(super) fn new(base: u64) -> Self {
        let marked = (0..WORKERS_MAX).map(|_| Padded(AtomicU64::new(0))).collect();
        Self { base, marked }
    }

    /// Whether recovery needs the mark of a version.
    fn needs(&self, header: Header) -> bool {
        header.is_last()
            && header.timestamp() > self.base
            && header.timestamp() == self.marked[header.worker()].0.load(Ordering::Acquire)
    }
}

/// Stores a version into a slot. The header comes first, so that no key is ever found under the
/// header of another version; it says nothing about a commit.
fn store<D: Device>(at: &mut Putting<'_, D>, write: &Write, header: Header, layout: &Layout) {
    let slot = write.versions.new.0;
    let payload = &at.payloads[write.payload_at as usize..][..layout.payload_words];
    store_words(at.port, slot, &[header.0]);
    store_words(at.port, slot + 8, payload);
}

impl<D: Device, const SNAPSHOTS: bool> Steps<D> for ZenSteps<SNAPSHOTS> {
    type Local = ZenLocal;
    const CACHES: bool = true;
    const SNAPSHOTS: bool = SNAPSHOTS;

    fn local(&self, _: usize) -> ZenLocal {
        ZenLocal::default()
    }

    fn put(&self, at: &mut Putting<'_, D>, _: &mut ZenLocal, writes: &mut [Write]) -> Result<()> {
        let heap = at.heap;
        let mut last: Option<usize> = None;
        let mut count = 0;
        for (i, write) in writes.iter_mut().enumerate().filter(|(_, write)| write.needs_version()) {
            let table = usize::from(write.table.0);
            let slot = at.slots.take(heap, at.port, table)?;
            prefetch_slot(at.port, slot, heap.layouts[table].used_bytes());
            write.versions.new =
                (slot, Header::new(at.serial, at.worker, write.kind == Kind::Delete));
            count += 1;
            // A version within one line is stored with its mark: prefer it.
            if last.is_none() || heap.layouts[table].is_one_line() {
                last = Some(i);
            }
        }
        let Some(last) = last else { return Ok(()) };
        for (i, write) in writes.iter().enumerate().filter(|(_, write)| write.needs_version()) {
            let layout = &heap.layouts[usize::from(write.table.0)];
            if i != last || !layout.is_one_line() {
                store(at, write, write.versions.new.1, layout);
                at.port.flush(write.versions.new.0, layout.used_bytes());
            }
        }
        let (slot, header) = writes[last].versions.new;
        writes[last].versions.new.1 = header.with_last();
        let layout = &heap.layouts[usize::from(writes[last].table.0)];
        if layout.is_one_line() {
            if count > 1 && !at.options.has(Fault::NoFenceBeforeMark) {
                at.port.fence();
            }
            store(at, &writes[last], header, layout);
        } else if !at.options.has(Fault::NoFenceBeforeMark) {
            at.port.fence();
        }
        // In one line after all that it stands for.
        store_words(at.port, slot, &[header.with_last().0]);
        at.port.flush(slot, if layout.is_one_line() { layout.used_bytes() } else { 8 });
        at.port.fence();
        self.marked[at.worker].0.store(at.serial, Ordering::Release);
        Ok(())
    }

    fn retire(&self, grace: &Grace, own: &mut ZenLocal, old: Old) {
        own.limbo.push(grace, old);
    }

    fn ended(&self, at: &mut Between<'_, D>, own: &mut ZenLocal) -> Result<()> {
        own.calls += 1;
        if !own.calls.is_multiple_of(CALLS_BETWEEN_LOOKS) {
            return Ok(());
        }
        at.grace.tick();
        let unknown = at.grace.unknown_before();
        own.kept.retain(|old| {
            let needed = self.needs(old.header);
            if !needed {
                at.slots.give_back(usize::from(old.table.0), old.slot);
            }
            needed
        });
        while let Some(old) = own.limbo.pop_before(unknown) {
            if self.needs(old.header) && !at.options.has(Fault::EarlyReuse) {
                own.kept.push(old);
            } else {
                at.slots.give_back(usize::from(old.table.0), old.slot);
            }
        }
        Ok(())
    }

    fn durable(&self) -> u64 {
        u64::MAX
    }

    fn finish(&self, _: &mut Between<'_, D>, _: &mut ZenLocal) -> Result<()> {
        Ok(())
    }
}
