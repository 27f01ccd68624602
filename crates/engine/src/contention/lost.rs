//! How much of the execution phase a worker loses to versions that do not come: their writers have
//! lost their processors, or wait themselves because every call extends the same rows. It decides
//! which worker runs a call (`epoch/dispatch.rs`), never what the call comes to.

use std::cell::Cell;

/// Less than this is not worth a decision: about a slice of the operating system's scheduler.
const LOST_MIN_NS: u64 = 1_000_000;

#[derive(Clone, Copy)]
struct Lost {
    clock: fn() -> u64,
    /// When the phase began.
    began_ns: u64,
    /// What was lost since.
    ns: u64,
}

thread_local! {
    /// Of the worker that runs on this thread.
    static LOST: Cell<Lost> = const { Cell::new(Lost { clock: || 0, began_ns: 0, ns: 0 }) };
}

/// The execution phase of this worker begins.
pub(crate) fn begin(clock: fn() -> u64) {
    LOST.set(Lost { clock, began_ns: clock(), ns: 0 });
}

/// What the clock says.
pub(crate) fn now() -> u64 {
    (LOST.get().clock)()
}

/// This worker has waited since a time.
pub(crate) fn add_since(began_ns: u64) {
    let lost = LOST.get();
    LOST.set(Lost { ns: lost.ns + (lost.clock)().saturating_sub(began_ns), ..lost });
}

/// Whether so many workers that all lose as much as this one do less together than one alone.
#[inline]
pub(crate) fn is_most(workers: usize) -> bool {
    LOST.get().ns >= LOST_MIN_NS && is_most_of_the_phase(workers as u64)
}

#[cold]
fn is_most_of_the_phase(workers: u64) -> bool {
    let lost = LOST.get();
    let elapsed = (lost.clock)().saturating_sub(lost.began_ns);
    lost.ns.saturating_mul(workers) > elapsed.saturating_mul(workers - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    #[test]
    fn workers_that_do_less_than_one_are_noticed() {
        let pass = |ns| NOW.set(NOW.get() + ns);
        begin(|| NOW.get());
        let began = now();
        pass(LOST_MIN_NS - 1);
        add_since(began);
        assert!(!is_most(2), "too little to decide by");
        let began = now();
        pass(1);
        add_since(began);
        assert!(is_most(2) && is_most(8), "nothing was done but waiting");
        pass(LOST_MIN_NS / 2);
        assert!(is_most(2) && !is_most(4), "a third of the time is worth four thirds of a worker");
        pass(LOST_MIN_NS);
        assert!(!is_most(2));
        begin(|| NOW.get());
        assert!(!is_most(2), "a new phase");
    }
}
