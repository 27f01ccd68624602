//! The locks of one lock manager: a flat table without memory of the heap for each lock, and a
//! queue for each lock in the order in which it was asked for.

use super::super::footprint::{Mode, Target};

/// No request.
const NONE: u32 = u32::MAX;

/// A lock: who holds it, in which mode, and who waits.
#[derive(Debug, Clone, Copy)]
struct Lock {
    target: Target,
    mode: Mode,
    holders: u32,
    first: u32,
    last: u32,
}

/// One call that waits for a lock.
#[derive(Debug, Clone, Copy)]
struct Request {
    call: u32,
    mode: Mode,
    next: u32,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(in super::super) struct LockTable {
    /// Places in `locks`, one more than the number; 0 where there is none.
    places: Vec<u32>,
    locks: Vec<Lock>,
    requests: Vec<Request>,
}

impl LockTable {
    /// A batch with so many locks at most begins.
    pub(super) fn begin(&mut self, locks: usize) {
        self.locks.clear();
        self.requests.clear();
        self.places.clear();
        self.places.resize((locks * 2).next_power_of_two().max(2), 0);
    }

    fn lock(&mut self, target: Target, mode: Mode) -> &mut Lock {
        let mask = self.places.len() - 1;
        let mut place = target.mixed() as usize & mask;
        loop {
            match self.places[place].checked_sub(1) {
                Some(number) if self.locks[number as usize].target == target => {
                    return &mut self.locks[number as usize];
                }
                Some(_) => place = (place + 1) & mask,
                None => break,
            }
        }
        self.locks.push(Lock { target, mode, holders: 0, first: NONE, last: NONE });
        self.places[place] = self.locks.len() as u32;
        self.locks.last_mut().expect("just added")
    }

    /// Asks for a lock; whether the call has it. If not, it gets it when those before it are done.
    pub(super) fn request(&mut self, target: Target, mode: Mode, call: usize) -> bool {
        let number = self.requests.len() as u32;
        let lock = self.lock(target, mode);
        if lock.holders == 0 || lock.first == NONE && lock.mode.goes_with(mode) {
            lock.holders += 1;
            lock.mode = mode;
            return true;
        }
        let last = std::mem::replace(&mut lock.last, number);
        if last == NONE {
            lock.first = number;
        }
        self.requests.push(Request { call: call as u32, mode, next: NONE });
        if let Some(last) = self.requests.get_mut(last as usize) {
            last.next = number;
        }
        false
    }

    /// Releases a lock; `granted` gets the calls that have it now.
    pub(super) fn release(&mut self, target: Target, granted: &mut Vec<u32>) {
        let mut lock = *self.lock(target, Mode::Write);
        assert!(lock.holders > 0, "a call releases a lock that it has");
        lock.holders -= 1;
        while let Some(request) = self.requests.get(lock.first as usize) {
            if lock.holders > 0 && !lock.mode.goes_with(request.mode) {
                break;
            }
            lock.holders += 1;
            lock.mode = request.mode;
            granted.push(request.call);
            lock.first = request.next;
        }
        if lock.first == NONE {
            lock.last = NONE;
        }
        *self.lock(target, Mode::Write) = lock;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_granted_in_the_order_of_requests() {
        let (mut table, target, mut granted) = (LockTable::default(), Target(7), Vec::new());
        table.begin(10);
        assert!(table.request(target, Mode::Read, 0));
        assert!(table.request(target, Mode::Read, 1));
        assert!(!table.request(target, Mode::Write, 2));
        assert!(!table.request(target, Mode::Read, 3), "it does not overtake the writer");
        assert!(!table.request(target, Mode::Read, 4));
        assert!(table.request(Target(8), Mode::Write, 5), "another lock");
        table.release(target, &mut granted);
        assert!(granted.is_empty());
        table.release(target, &mut granted);
        assert_eq!(std::mem::take(&mut granted), [2]);
        table.release(target, &mut granted);
        assert_eq!(granted, [3, 4]);
        assert!(table.request(target, Mode::Read, 6));
    }

    #[test]
    fn scans_exclude_touches() {
        let (mut table, target) = (LockTable::default(), Target(1 << 63));
        table.begin(1);
        assert!(table.request(target, Mode::Touch, 0) && table.request(target, Mode::Touch, 1));
        assert!(!table.request(target, Mode::Scan, 2));
    }
}
