//! The gate of reads: rows are read from any thread while epochs run, but not while their structure
//! changes.
//!
//! A reader sees the state at the end of the last finished epoch R, as a call does that comes
//! before all calls of epoch R + 1. That holds while the calls of R + 1 run, because what their
//! first reads see stays until the epoch ends (O-06, O-15). It does not hold where indexes change
//! and row entries are claimed. So the leader of an epoch closes the gate twice, and waits until no
//! reader is inside:
//! 1. after the inputs are logged, until every pending version is appended: then R is readable
//!    again;
//! 2. after the last call, until rows that are deleted have left the indexes and all stores are
//!    fenced: from then on R + 1 is what readers see. It is durable, and no caller knows an answer
//!    of it yet, so a read that begins after an answer sees what was answered.
//!
//! Readers count themselves in slots of their own, so that they write no line that others do; an
//! epoch without readers pays two stores and a look at each slot.

use pmem::sync::Patience;
use pmem::sync::atomic::{AtomicU64, Ordering};
use storage::EpochNumber;

use crate::version::HoldsValues;

/// Slots for readers; threads that read at the same time should use different ones.
const SLOTS: usize = 16;
/// Polls before a thread that waits at the gate gives its processor up.
const GATE_POLLS: u32 = 128;

/// The gate is closed.
const CLOSED: u64 = 1;
/// It stays closed: the engine is gone.
const SHUT: u64 = 2;
const EPOCH_SHIFT: u32 = 2;

/// The epoch that readers see in a state of the gate.
#[inline]
fn epoch_of(state: u64) -> EpochNumber {
    EpochNumber(state >> EPOCH_SHIFT)
}

/// Readers that are inside, on a line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    readers: AtomicU64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct ReadGate {
    /// The epoch that readers see, and whether the gate is closed.
    state: AtomicU64,
    slots: [Slot; SLOTS],
}

impl Default for ReadGate {
    fn default() -> Self {
        Self { state: AtomicU64::new(CLOSED), slots: Default::default() }
    }
}

/// Why a reader does not get in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoEntry {
    /// The gate is closed for a moment.
    Closed,
    /// It is shut, or the engine was stopped: no epoch will open it any more.
    Ended,
}

/// A reader inside the gate.
#[derive(Debug)]
pub(crate) struct Inside<'g> {
    slot: &'g Slot,
    /// The epoch whose end it sees.
    pub(crate) epoch: EpochNumber,
}

#[expect(unsafe_code, reason = "the gate is closed before values are freed")]
// SAFETY: cached versions are freed, and slots of versions that a reader sees are written, when the
// gate was closed, which waits for all that are inside (O-106).
unsafe impl HoldsValues for Inside<'_> {}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: what it read it has read before the structure changes.
        let before = self.slot.readers.fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "a reader that leaves was counted");
    }
}

impl ReadGate {
    /// The epoch whose end readers see, or saw when the gate was closed.
    pub(crate) fn epoch(&self) -> EpochNumber {
        epoch_of(self.state.load(Ordering::SeqCst))
    }

    /// Enters, by any thread, if the gate is open; `slot` is any number.
    #[inline]
    pub(crate) fn try_enter(&self, slot: usize) -> Result<Inside<'_>, NoEntry> {
        let slot = &self.slots[slot % SLOTS];
        // Both sides store and then load, sequentially consistent: either the reader sees that the
        // gate is closed, or the leader sees the reader.
        slot.readers.fetch_add(1, Ordering::SeqCst);
        let state = self.state.load(Ordering::SeqCst);
        let inside = Inside { slot, epoch: epoch_of(state) };
        match state & (CLOSED | SHUT) {
            0 => Ok(inside),
            CLOSED => Err(NoEntry::Closed),
            _ => Err(NoEntry::Ended),
        }
    }

    /// Enters, and waits while the gate is closed, but not where `is_stopped` says that no epoch
    /// will open it.
    #[inline]
    pub(crate) fn enter(
        &self,
        slot: usize,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Inside<'_>, NoEntry> {
        let mut patience = Patience::new(GATE_POLLS);
        loop {
            match self.try_enter(slot) {
                Err(NoEntry::Closed) => {}
                known => return known,
            }
            while self.state.load(Ordering::Relaxed) & (CLOSED | SHUT) == CLOSED {
                if patience.wait() && is_stopped() {
                    return Err(NoEntry::Ended);
                }
            }
        }
    }

    /// Closes the gate, and waits until no reader is inside.
    pub(crate) fn close(&self) {
        self.close_with(CLOSED);
    }

    /// Closes the gate for ever.
    pub(crate) fn shut(&self) {
        self.close_with(CLOSED | SHUT);
    }

    fn close_with(&self, bits: u64) {
        let before = self.state.fetch_or(bits, Ordering::SeqCst);
        assert!(before & CLOSED == 0 || bits & SHUT != 0, "the gate of reads is closed already");
        for slot in &self.slots {
            let mut patience = Patience::new(GATE_POLLS);
            while slot.readers.load(Ordering::SeqCst) > 0 {
                patience.wait();
            }
        }
    }

    /// Whether the gate is closed: what readers see may change.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Opens the gate: readers see the end of an epoch from now on. What it wrote must be visible
    /// to all threads that see this store.
    pub(crate) fn open(&self, epoch: EpochNumber) {
        let before = self.state.load(Ordering::Relaxed);
        assert!(before & (CLOSED | SHUT) == CLOSED, "only a closed gate of reads is opened");
        assert!(epoch_of(before) <= epoch, "what readers see never goes back");
        self.state.store(epoch.0 << EPOCH_SHIFT, Ordering::SeqCst);
    }

    /// Changes structure between two epochs.
    pub(crate) fn while_closed<R>(&self, change: impl FnOnce() -> R) -> R {
        self.close();
        let result = change();
        self.open(epoch_of(self.state.load(Ordering::Relaxed)));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_reader_sees_the_epoch_with_which_the_gate_was_opened_last() {
        let gate = ReadGate::default();
        gate.open(EpochNumber(3));
        assert_eq!(gate.enter(0, || false).map(|inside| inside.epoch).ok(), Some(EpochNumber(3)));
        gate.close();
        assert!(matches!(gate.try_enter(0), Err(NoEntry::Closed)));
        gate.open(EpochNumber(4));
        gate.while_closed(|| ());
        assert_eq!(
            gate.enter(SLOTS + 1, || false).map(|inside| inside.epoch).ok(),
            Some(EpochNumber(4))
        );
    }

    #[test]
    fn a_gate_that_nothing_will_open_is_left() {
        let gate = ReadGate::default();
        assert!(matches!(gate.enter(0, || true), Err(NoEntry::Ended)), "the engine was stopped");
        gate.open(EpochNumber(1));
        gate.shut();
        assert!(matches!(gate.enter(0, || false), Err(NoEntry::Ended)), "the engine is gone");
        gate.shut();
    }

    #[test]
    #[should_panic(expected = "never goes back")]
    fn o_106_what_readers_see_never_goes_back() {
        let gate = ReadGate::default();
        gate.open(EpochNumber(5));
        gate.close();
        gate.open(EpochNumber(4));
    }

    /// Four readers beside a thread that changes two words, with the gate closed, so that they
    /// always differ by one: none sees anything else.
    #[test]
    fn o_106_no_reader_is_inside_while_the_gate_is_closed() {
        let gate = ReadGate::default();
        let words = [AtomicU64::new(0), AtomicU64::new(1)];
        let is_over = AtomicBool::new(false);
        gate.open(EpochNumber(0));
        std::thread::scope(|scope| {
            for reader in 0..4 {
                let (gate, words, is_over) = (&gate, &words, &is_over);
                scope.spawn(move || {
                    let mut seen = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let inside = gate.enter(reader, || false).expect("it is not shut");
                        let first = words[0].load(Ordering::Relaxed);
                        assert_eq!(words[1].load(Ordering::Relaxed), first + 1);
                        assert!(inside.epoch.0 >= seen && first >= inside.epoch.0);
                        seen = inside.epoch.0;
                    }
                });
            }
            for epoch in 1..=2000 {
                gate.close();
                words[0].store(epoch, Ordering::Relaxed);
                words[1].store(epoch + 1, Ordering::Relaxed);
                gate.open(EpochNumber(epoch));
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
