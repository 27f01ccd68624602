//! Who has which lock, and who waits for it.

use super::super::pool::lock;
use sql::system::AdvisoryLock;
use std::collections::{BTreeMap, VecDeque, btree_map};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use values::{Error, Result, SqlState, Timestamp};

/// The most pairs of a lock and a session that has it.
const HELD_MAX: usize = 65_536;

/// What a lock is called: one number, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Key {
    One(i64),
    Two(i32, i32),
}

impl Key {
    /// The columns `classid`, `objid` and `objsubid` of `pg_locks`.
    pub(super) fn place(self) -> (i32, i32, i16) {
        match self {
            Key::One(number) => ((number >> 32) as i32, number as i32, 1),
            Key::Two(first, second) => (first, second, 2),
        }
    }
}

/// A session, by the number of its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) number: u64,
    pub(super) process: i32,
}

/// How often a session has a lock.
#[derive(Clone, Copy, Debug)]
struct Holder {
    owner: Owner,
    exclusive: u32,
    shared: u32,
}

impl Holder {
    fn count(&mut self, is_shared: bool) -> &mut u32 {
        if is_shared { &mut self.shared } else { &mut self.exclusive }
    }

    fn allows(&self, is_shared: bool) -> bool {
        is_shared && self.exclusive == 0
    }
}

/// A session that waits for a lock.
struct Waiter {
    owner: Owner,
    is_shared: bool,
    since: Timestamp,
    has_lock: AtomicBool,
    told: Notify,
}

#[derive(Default)]
struct Entry {
    holders: Vec<Holder>,
    queue: VecDeque<Arc<Waiter>>,
}

/// A session that waits for another one.
#[derive(Clone, Copy, Debug)]
struct Wait {
    owner: Owner,
    key: Key,
    is_shared: bool,
    next: Owner,
}

/// The waits of a path whose last one this is. `before` has the wait that leads to each session.
fn path_to(last: Wait, before: &BTreeMap<u64, Wait>) -> Vec<Wait> {
    let mut path = vec![last];
    while let Some(wait) = before.get(&path[path.len() - 1].owner.number) {
        path.push(*wait);
    }
    path.reverse();
    path
}

#[derive(Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    /// Pairs of a lock and a session that has it.
    held: usize,
    /// What each session waits for.
    waits: BTreeMap<u64, Key>,
}

/// The locks of a store.
#[derive(Default)]
pub(in super::super) struct LockTable(Mutex<State>);

impl Entry {
    fn has(&self, owner: Owner) -> bool {
        self.holders.iter().any(|holder| holder.owner.number == owner.number)
    }

    /// The sessions that one would wait for in this place of the queue. One that has the lock
    /// already does not wait for others that wait.
    fn blockers(&self, owner: Owner, is_shared: bool, place: usize) -> Vec<Owner> {
        let holders = self
            .holders
            .iter()
            .filter(|holder| holder.owner.number != owner.number && !holder.allows(is_shared));
        let waiters = self.queue.iter().take(if self.has(owner) { 0 } else { place });
        let waiters = waiters.filter(|waiter| !(waiter.is_shared && is_shared));
        let all = holders.map(|holder| holder.owner);
        all.chain(waiters.map(|waiter| waiter.owner)).collect()
    }

    fn is_free_for(&self, owner: Owner, is_shared: bool, place: usize) -> bool {
        self.blockers(owner, is_shared, place).is_empty()
    }
}

impl State {
    /// Gives a lock to a session.
    fn give(&mut self, key: Key, owner: Owner, is_shared: bool) {
        let entry = self.entries.entry(key).or_default();
        let known = entry.holders.iter().position(|holder| holder.owner.number == owner.number);
        let place = known.unwrap_or_else(|| {
            self.held += 1;
            entry.holders.push(Holder { owner, exclusive: 0, shared: 0 });
            entry.holders.len() - 1
        });
        *entry.holders[place].count(is_shared) += 1;
    }

    /// Takes a lock away from a session once; the next ones in the queue may have it then.
    fn take(&mut self, key: Key, owner: Owner, is_shared: bool) {
        let entry = self.entries.get_mut(&key).expect("a lock that a session has is known");
        let place = entry.holders.iter().position(|holder| holder.owner.number == owner.number);
        let place = place.expect("what is given back was taken");
        let holder = &mut entry.holders[place];
        let count = holder.count(is_shared);
        *count = count.checked_sub(1).expect("what is given back was taken");
        if (holder.exclusive, holder.shared) == (0, 0) {
            entry.holders.swap_remove(place);
            self.held -= 1;
        }
        self.pass_on(key);
    }

    /// Gives a lock to those in the queue that may have it now.
    fn pass_on(&mut self, key: Key) {
        let mut place = 0;
        while let Some(entry) = self.entries.get_mut(&key)
            && let Some(waiter) = entry.queue.get(place)
        {
            if !entry.is_free_for(waiter.owner, waiter.is_shared, place) {
                place += 1;
                continue;
            }
            let waiter = entry.queue.remove(place).expect("it was there");
            self.waits.remove(&waiter.owner.number);
            self.give(key, waiter.owner, waiter.is_shared);
            waiter.has_lock.store(true, Ordering::Release);
            waiter.told.notify_one();
        }
        if let Some(entry) = self.entries.get(&key)
            && entry.holders.is_empty()
            && entry.queue.is_empty()
        {
            self.entries.remove(&key);
        }
    }

    /// The sessions from one that waits back to itself; none if there is no such circle.
    fn circle(&self, first: Owner) -> Vec<Wait> {
        let (mut open, mut before) = (VecDeque::from([first]), BTreeMap::new());
        while let Some(owner) = open.pop_front() {
            let Some((key, is_shared, blockers)) = self.waited(owner) else { continue };
            for next in blockers {
                let wait = Wait { owner, key, is_shared, next };
                if next.number == first.number {
                    return path_to(wait, &before);
                }
                if let btree_map::Entry::Vacant(place) = before.entry(next.number) {
                    place.insert(wait);
                    open.push_back(next);
                }
            }
        }
        Vec::new()
    }

    /// What a session waits for, and which sessions.
    fn waited(&self, owner: Owner) -> Option<(Key, bool, Vec<Owner>)> {
        let key = *self.waits.get(&owner.number)?;
        let entry = self.entries.get(&key)?;
        let place = entry.queue.iter().position(|waiter| waiter.owner.number == owner.number)?;
        let waiter = &entry.queue[place];
        Some((key, waiter.is_shared, entry.blockers(waiter.owner, waiter.is_shared, place)))
    }

    fn check_room(&self, key: Key, owner: Owner) -> Result<()> {
        let is_new = !self.entries.get(&key).is_some_and(|entry| entry.has(owner));
        if is_new && self.held + self.waits.len() >= HELD_MAX {
            return Err(too_many(HELD_MAX));
        }
        Ok(())
    }
}

/// The error of a lock beyond so many.
pub(super) fn too_many(count: usize) -> Error {
    let message = format!("there are {count} advisory locks");
    Error::new(SqlState::OUT_OF_MEMORY, message).with_hint("Unlock what is not needed any more.")
}

impl LockTable {
    /// Takes a lock, unless it would have to be waited for; whether it did.
    pub(super) fn take_now(&self, key: Key, owner: Owner, is_shared: bool) -> Result<bool> {
        let mut state = lock(&self.0);
        state.check_room(key, owner)?;
        let entry = state.entries.get(&key);
        let is_free =
            entry.is_none_or(|entry| entry.is_free_for(owner, is_shared, entry.queue.len()));
        if is_free {
            state.give(key, owner, is_shared);
        }
        Ok(is_free)
    }

    /// Begins to wait for a lock, which may be there by now.
    ///
    /// # Errors
    /// That sessions would wait for each other.
    pub(super) fn wait(
        self: &Arc<LockTable>,
        key: Key,
        owner: Owner,
        is_shared: bool,
        since: Timestamp,
    ) -> Result<Waiting> {
        let mut state = lock(&self.0);
        state.check_room(key, owner)?;
        let (has_lock, told) = Default::default();
        let waiter = Arc::new(Waiter { owner, is_shared, since, has_lock, told });
        let entry = state.entries.entry(key).or_default();
        // One that has the lock already would be waited for by those before it.
        let place = if entry.has(owner) { 0 } else { entry.queue.len() };
        entry.queue.insert(place, Arc::clone(&waiter));
        state.waits.insert(owner.number, key);
        let circle = state.circle(owner);
        let waiting = Waiting { table: Arc::clone(self), key, waiter, is_taken: false };
        if circle.is_empty() {
            state.pass_on(key);
            return Ok(waiting);
        }
        drop(state);
        drop(waiting);
        Err(deadlock(&circle))
    }

    pub(super) fn give_back(&self, key: Key, owner: Owner, is_shared: bool) {
        lock(&self.0).take(key, owner, is_shared);
    }

    /// The sessions that a session waits for.
    pub(in super::super) fn blockers(&self, session: u64) -> Vec<u64> {
        let owner = Owner { number: session, process: 0 };
        let waited = lock(&self.0).waited(owner);
        waited.map_or_else(Vec::new, |(.., all)| all.iter().map(|owner| owner.number).collect())
    }

    /// All locks that sessions have or wait for.
    pub(in super::super) fn all(&self) -> Vec<AdvisoryLock> {
        let state = lock(&self.0);
        let mut all = Vec::new();
        for (key, entry) in &state.entries {
            let mut add = |owner: Owner, is_shared, since| {
                let (place, process) = (key.place(), owner.process);
                all.push(AdvisoryLock { place, process, is_shared, since });
            };
            for holder in &entry.holders {
                for (count, is_shared) in [(holder.exclusive, false), (holder.shared, true)] {
                    if count > 0 {
                        add(holder.owner, is_shared, None);
                    }
                }
            }
            for waiter in &entry.queue {
                add(waiter.owner, waiter.is_shared, Some(waiter.since));
            }
        }
        all
    }
}

/// The error of a session that would close a circle.
fn deadlock(circle: &[Wait]) -> Error {
    let line = |wait: &Wait| {
        let (class, object, part) = wait.key.place();
        let (class, object) = (class.cast_unsigned(), object.cast_unsigned());
        let mode = AdvisoryLock::mode(wait.is_shared);
        format!(
            "Process {} waits for {mode} on advisory lock [5,{class},{object},{part}]; blocked by \
             process {}.",
            wait.owner.process, wait.next.process
        )
    };
    let lines: Vec<String> = circle.iter().map(line).collect();
    Error::new(SqlState::DEADLOCK, "deadlock detected").with_detail(lines.join("\n"))
}

/// A place in the queue of a lock, which is left when this is dropped; so is a lock that was given
/// and not taken.
pub(in super::super) struct Waiting {
    table: Arc<LockTable>,
    key: Key,
    waiter: Arc<Waiter>,
    is_taken: bool,
}

impl Waiting {
    /// Waits until the session has the lock.
    pub(super) async fn taken(mut self) {
        while !self.waiter.has_lock.load(Ordering::Acquire) {
            // One that was told before is not lost: it is kept for the next who asks.
            self.waiter.told.notified().await;
        }
        self.is_taken = true;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let mut state = lock(&self.table.0);
        if self.waiter.has_lock.load(Ordering::Acquire) {
            return state.take(self.key, self.waiter.owner, self.waiter.is_shared);
        }
        state.waits.remove(&self.waiter.owner.number);
        if let Some(entry) = state.entries.get_mut(&self.key) {
            entry.queue.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
        }
        state.pass_on(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(number: u64) -> Owner {
        Owner { number, process: number as i32 }
    }

    fn now() -> Timestamp {
        Timestamp::from_bits(0).unwrap()
    }

    fn has(waiting: &Waiting) -> bool {
        waiting.waiter.has_lock.load(Ordering::Acquire)
    }

    #[test]
    fn locks_go_to_who_waits_longest_and_are_shared() {
        let table = Arc::<LockTable>::default();
        let key = Key::One(7);
        assert!(table.take_now(key, owner(1), false).unwrap());
        assert!(table.take_now(key, owner(1), true).unwrap(), "its own do not count");
        assert!(!table.take_now(key, owner(2), true).unwrap());
        let wait = |number, is_shared| table.wait(key, owner(number), is_shared, now()).unwrap();
        let (second, third) = (wait(2, true), wait(3, true));
        let (fourth, fifth) = (wait(4, false), wait(5, true));
        table.give_back(key, owner(1), false);
        assert!(has(&second) && has(&third), "both may share it with the first");
        assert!(!has(&fourth) && !has(&fifth), "the last one waits behind the one before it");
        assert!(!table.take_now(key, owner(6), true).unwrap());
        assert_eq!(table.all().len(), 5);
        drop(fourth);
        assert!(has(&fifth), "who leaves the queue is not waited for");
        drop((second, third, fifth));
        table.give_back(key, owner(1), true);
        assert!(table.all().is_empty() && lock(&table.0).entries.is_empty());
        assert_eq!(lock(&table.0).held, 0);
    }

    #[test]
    fn who_would_close_a_circle_is_told() {
        let table = Arc::<LockTable>::default();
        for number in 0..3 {
            assert!(table.take_now(Key::One(number), owner(number as u64), false).unwrap());
        }
        let wait = |number: u64, key| table.wait(Key::One(key), owner(number), false, now());
        let _first = wait(0, 1).unwrap();
        let _second = wait(1, 2).unwrap();
        let error = wait(2, 0).err().unwrap();
        assert_eq!(error.state().code(), "40P01");
        assert_eq!(error.detail().unwrap().lines().count(), 3, "{error:?}");
        assert!(wait(2, 3).is_ok(), "it waits for nothing now");
        // Two that share a lock, and both want it alone.
        let key = Key::Two(1, 2);
        for number in [10, 11] {
            assert!(table.take_now(key, owner(number), true).unwrap());
        }
        let _third = table.wait(key, owner(10), false, now()).unwrap();
        let error = table.wait(key, owner(11), false, now()).err().unwrap();
        assert_eq!(error.state().code(), "40P01");
    }
}
