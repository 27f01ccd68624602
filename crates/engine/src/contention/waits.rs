//! How long the calls of an epoch waited for rows. A worker notes it where it has waited, so that a
//! read that finds its version pays nothing for it; and only while a log is begun.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// How often calls waited for versions of a row, and how long.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waited {
    pub(crate) waits: u64,
    pub(crate) ns: u64,
}

struct Log {
    /// The clock of reports.
    clock: fn() -> u64,
    /// By the address of the row's entry.
    rows: BTreeMap<usize, Waited>,
}

thread_local! {
    /// The log of the worker that runs on this thread, if there is one.
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// This worker notes from now on for which rows it waits.
pub(crate) fn begin(clock: fn() -> u64) {
    LOG.set(Some(Log { clock, rows: BTreeMap::new() }));
}

/// What this worker noted, by the addresses of row entries. It notes nothing more.
pub(crate) fn take() -> BTreeMap<usize, Waited> {
    LOG.take().map(|log| log.rows).unwrap_or_default()
}

/// Waits for a version of the row with this entry. The wait may do other work, which may wait, too.
pub(crate) fn noting<R, T>(entry: &R, wait: impl FnOnce() -> T) -> T {
    let Some(clock) = LOG.with_borrow(|log| log.as_ref().map(|log| log.clock)) else {
        return wait();
    };
    let began = clock();
    let result = wait();
    let ns = clock().saturating_sub(began);
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            let of_row = log.rows.entry(std::ptr::from_ref(entry).addr()).or_default();
            *of_row = Waited { waits: of_row.waits + 1, ns: of_row.ns + ns };
        }
    });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_a_row_add_up_while_there_is_a_log() {
        let (one, other) = (1u64, 2u64);
        assert_eq!(noting(&one, || 5), 5);
        assert!(take().is_empty(), "no log is begun");
        begin(|| 0);
        noting(&one, || noting(&other, || ()));
        noting(&one, || ());
        let noted: Vec<u64> = {
            let rows = take();
            [&one, &other].map(|row| rows[&std::ptr::from_ref(row).addr()].waits).into()
        };
        assert_eq!(noted, [2, 1]);
        noting(&one, || ());
        assert!(take().is_empty(), "the log was taken");
    }
}
