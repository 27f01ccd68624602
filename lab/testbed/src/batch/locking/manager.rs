//! A lock manager: the one thread that has a part of the locks.

use super::super::footprint::Target;
use super::Locks;
use super::table::LockTable;
use crate::rival::Fault;

/// Calls whose locks are requested at a time.
const CHUNK: usize = 8;

/// See the module's documentation.
pub(super) struct Manager<'a, 'l> {
    locks: &'a Locks<'l>,
    table: &'a mut LockTable,
    number: u64,
    /// The next call whose locks are requested.
    next: usize,
    /// Calls whose locks were released.
    released: usize,
    /// Locks that each call still waits for.
    missing: Vec<u32>,
    /// How many ended calls of each worker are known.
    seen: Vec<usize>,
    granted: Vec<u32>,
    /// Locks that were passed on from one call to another.
    pub(super) hand_overs: u64,
    /// Locks that were requested.
    pub(super) messages: u64,
}

impl<'a, 'l> Manager<'a, 'l> {
    pub(super) fn new(locks: &'a Locks<'l>, number: usize, table: &'a mut LockTable) -> Self {
        let calls = locks.calls;
        table.begin((0..calls).map(|call| (locks.footprint)(call).len()).sum());
        Self {
            locks,
            table,
            number: number as u64,
            next: 0,
            released: 0,
            missing: vec![0; calls],
            seen: vec![0; locks.lists.ended.workers()],
            granted: Vec::new(),
            hand_overs: 0,
            messages: 0,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.released == self.locks.calls
    }

    /// Whether a lock is this manager's.
    fn has(&self, target: Target) -> bool {
        let managers = self.locks.lists.managers as u64;
        managers == 1 || (target.mixed() >> 32) % managers == self.number
    }

    /// Requests the locks of the next calls; false at the end of the batch.
    pub(super) fn request(&mut self) -> bool {
        let calls = self.next..(self.next + CHUNK).min(self.locks.calls);
        self.next = calls.end;
        let at_once = self.locks.options.has(Fault::GrantAtOnce);
        for call in calls.clone() {
            for access in (self.locks.footprint)(call) {
                if self.has(access.target) {
                    self.messages += 1;
                    let is_granted = self.table.request(access.target, access.mode, call);
                    self.missing[call] += u32::from(!is_granted && !at_once);
                }
            }
            if self.missing[call] == 0 {
                self.grant(call);
            }
        }
        !calls.is_empty()
    }

    /// Releases the locks of calls that have ended; whether there are any.
    pub(super) fn release(&mut self) -> bool {
        let before = self.released;
        let mut seen = std::mem::take(&mut self.seen);
        let locks = self.locks;
        for (worker, seen) in seen.iter_mut().enumerate() {
            locks.lists.ended.since(worker, seen, |call| {
                let mut granted = std::mem::take(&mut self.granted);
                for access in (locks.footprint)(call) {
                    if self.has(access.target) {
                        self.table.release(access.target, &mut granted);
                    }
                }
                self.released += 1;
                self.hand_overs += granted.len() as u64;
                granted.drain(..).for_each(|call| self.pass_on(call as usize));
                self.granted = granted;
            });
        }
        self.seen = seen;
        self.released > before
    }

    /// A call got a lock that it waited for.
    fn pass_on(&mut self, call: usize) {
        if self.locks.options.has(Fault::GrantAtOnce) {
            return;
        }
        self.missing[call] -= 1;
        if self.missing[call] == 0 {
            self.grant(call);
        }
    }

    /// A call has all locks of this manager.
    fn grant(&self, call: usize) {
        if !self.locks.options.has(Fault::OneManagerGrants) {
            self.locks.lists.grant(call);
        } else if self.number == 0 {
            self.locks.lists.push(call);
        }
    }
}
