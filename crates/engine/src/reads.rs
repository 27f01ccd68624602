//! Reads of the image that are not accounted for yet: bodies, indexes and lookups know no device.
//!
//! Where reads cost nothing only the values that calls read are counted. Where they cost something
//! every read is noted, and charged when the step ends that made it (`pmem::Port::charge_load`).

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::{AnyDevice, Device, Loads, Port};
use storage::row;

/// Sees the key and the value of one row after the other, until it returns `Break`.
pub type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Keys from `low` up to, and without, `high`, in one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRange<'k> {
    pub(crate) low: &'k [u8],
    pub(crate) high: &'k [u8],
    pub(crate) is_descending: bool,
}

/// The reads of a step. Closures note theirs, too, so it is shared.
#[derive(Debug)]
pub(crate) enum Reads {
    /// They cost nothing on the device.
    Counted(Cell<Loads>),
    /// Each of them is charged: address and length.
    Charged(RefCell<Vec<(usize, usize)>>),
}

impl Reads {
    /// None yet.
    pub(crate) fn new(charged: bool) -> Self {
        if charged { Self::Charged(RefCell::default()) } else { Self::Counted(Cell::default()) }
    }

    /// Whether they cost something.
    #[inline(always)]
    pub(crate) fn are_charged(&self) -> bool {
        matches!(self, Self::Charged(_))
    }

    /// A call reads a value.
    #[inline(always)]
    pub(crate) fn note(&self, address: usize, len: usize) {
        match self {
            Self::Counted(counted) => {
                let mut loads = counted.get();
                loads.count(address as u64, len as u64);
                counted.set(loads);
            }
            Self::Charged(list) => list.borrow_mut().push((address, len)),
        }
    }

    /// Something else is read, which counts only where it costs something.
    #[inline(always)]
    pub(crate) fn charge(&self, address: usize, len: usize) {
        if let Self::Charged(list) = self {
            list.borrow_mut().push((address, len));
        }
    }

    /// The key of a row is read; `row` is its offset.
    #[inline(always)]
    pub(crate) fn charge_key(&self, image_base: usize, row: u64, key: &[u8]) {
        if let Self::Charged(list) = self {
            let (at, len) = row::key_read(row, key.len() as u64);
            list.borrow_mut().push((image_base + at as usize, len as usize));
        }
    }

    /// Accounts for what was noted: a step is over.
    #[inline(always)]
    pub(crate) fn account(&mut self, port: &mut Port, image_base: usize) {
        match self {
            Self::Counted(loads) => port.add_loads(loads.take()),
            Self::Charged(list) => {
                for (address, len) in list.get_mut().drain(..) {
                    // Some designs have more on the device than the image.
                    port.touch(address.wrapping_sub(image_base) as u64, len as u64);
                }
                port.end_step();
            }
        }
    }

    /// The same where a step can only have made reads that count where they cost something.
    #[inline(always)]
    pub(crate) fn account_charged(&mut self, port: &mut Port, image_base: usize) {
        if port.device().charges_loads() {
            self.account(port, image_base);
        }
    }
}

/// Reads between two epochs: they are charged, too.
pub(crate) struct Reading {
    pub(crate) reads: Reads,
    port: Port,
}

impl Reading {
    pub(crate) fn new(device: &Arc<AnyDevice>) -> Self {
        let reads = Reads::new(device.charges_loads());
        Self { reads, port: Port::new(Arc::clone(device), u32::MAX) }
    }

    pub(crate) fn end_step(&mut self, image_base: usize) {
        self.reads.account_charged(&mut self.port, image_base);
        self.port.pay_owed_time();
    }
}
