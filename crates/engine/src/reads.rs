//! Reads of the image that are not accounted for yet: bodies, indexes and lookups know no device.
//!
//! Where reads cost nothing only the values that calls read are counted. Where they cost something
//! every read is noted, and charged when the step ends that made it (`pmem::Port::charge_load`).

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use pmem::{Device, Loads, Port};
use storage::row;

use crate::version::ValueWord;

/// Sees the key and the value of one row after the other, until it returns `Break`.
pub type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

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

    /// A value is read, wherever it is, by somebody else than the body of a call.
    #[inline(always)]
    pub(crate) fn charge_value(&self, word: ValueWord) {
        if let Self::Charged(list) = self
            && word.is_on_medium()
        {
            list.borrow_mut().push((word.address(), word.len()));
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
    pub(crate) fn account<D: Device>(&mut self, port: &mut Port<D>, image_base: usize) {
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
    pub(crate) fn account_charged<D: Device>(&mut self, port: &mut Port<D>, image_base: usize) {
        if port.device().charges_loads() {
            self.account(port, image_base);
        }
    }
}
