//! Regions without help of the processor: version numbers of lines, after TL2 (Dice, Shalev and
//! Shavit, 2006).
//!
//! Every line has a *mark*: the place of the last region that stored to it, and whether one is
//! about to. A region notes the clock when it begins, and is aborted when it meets a line that is
//! newer; so it always sees one state, that of its beginning. Stores wait in the region. At its end
//!
//! 1. the marks of what it stores to are locked, in one order for all,
//! 2. it takes its place from the clock,
//! 3. the fall-back lock, the lines that it read, and the words that it watched are looked at
//!    again: they must be as they were,
//! 4. the words are stored, and the marks get its place, which unlocks them.
//!
//! One who holds the fall-back lock takes the same steps, and waits where others abort. Regions
//! that are past step 3 have locked what they store to, so that the holder waits for them; all
//! others find the lock.
//!
//! Lines share marks by a hash of their address: two lines may be one to the model, which is a
//! conflict that hardware would not have.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use smallvec::SmallVec;

use super::access::{Access, Body, Cause, Ended, Limits, RETRIES, back_off, count};
use crate::grace::Padded;
use crate::pause;
use crate::rival::RegionCounts;

/// Number of marks, a power of two.
const MARKS: usize = 1 << 16;
const LOCKED: u64 = 1;
const LINE_SHIFT: u32 = pmem::LINE_BYTES.ilog2();

/// See the module's documentation.
pub(crate) struct Software {
    /// Places, shifted by the lock.
    marks: Box<[AtomicU64]>,
    clock: Padded<AtomicU64>,
    /// Odd while one holds it.
    fallback: Padded<AtomicU64>,
    limits: Limits,
}

/// Who runs a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A region, which aborts.
    Region,
    /// Holds locks of its own, and waits.
    Locks,
    /// Holds the fall-back lock, too.
    Fallback,
}

/// A running region.
struct Running<'w, 'r> {
    of: &'r Software,
    mode: Mode,
    /// The fall-back lock when it began.
    fallback: u64,
    /// The clock when it began.
    began: u64,
    reads: SmallVec<[u32; 32]>,
    writes: SmallVec<[(&'w AtomicU64, u64); 16]>,
    watched: SmallVec<[(&'w AtomicU64, u64); 8]>,
    /// The line that was read last.
    line: usize,
    lines_read: usize,
}

fn line_of(word: &AtomicU64) -> usize {
    std::ptr::from_ref(word).addr() >> LINE_SHIFT
}

fn mark_of(word: &AtomicU64) -> u32 {
    let mixed = (line_of(word) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - MARKS.ilog2())) as u32
}

impl Software {
    /// Regions whose places come after `clock`.
    pub(super) fn new(clock: u64, limits: Limits) -> Self {
        Self {
            marks: (0..MARKS).map(|_| AtomicU64::new(0)).collect(),
            clock: Padded(AtomicU64::new(clock)),
            fallback: Padded::default(),
            limits,
        }
    }

    /// See [`super::regions::Regions::run`].
    pub(super) fn run<'w, B: Body<'w>>(
        &self,
        counts: &mut RegionCounts,
        body: &mut B,
    ) -> Option<Ended<B::Output>> {
        let mut aborts = 0;
        loop {
            let cause = match self.attempt(Mode::Region, body) {
                Ok(ended) => {
                    counts.ended += 1;
                    return Some(ended);
                }
                Err(cause) => cause,
            };
            count(counts, cause);
            aborts += 1;
            if cause == Cause::GaveUp {
                return None;
            }
            if !cause.may_pass() || aborts > RETRIES {
                return self.fall_back(counts, body);
            }
            back_off(aborts);
        }
    }

    /// Runs a body under the fall-back lock.
    fn fall_back<'w, B: Body<'w>>(
        &self,
        counts: &mut RegionCounts,
        body: &mut B,
    ) -> Option<Ended<B::Output>> {
        let held = self.lock_fallback();
        let mut turns = 0;
        // Words may be stored to outside of regions meanwhile.
        let ended = loop {
            match self.attempt(Mode::Fallback, body) {
                Ok(ended) => break Some(ended),
                Err(Cause::GaveUp) => break None,
                Err(_) => pause(&mut turns),
            }
        };
        self.fallback.0.store(held + 1, Ordering::SeqCst);
        counts.fallbacks += 1;
        match ended {
            Some(_) => counts.ended += 1,
            None => counts.gave_up += 1,
        }
        ended
    }

    fn lock_fallback(&self) -> u64 {
        let mut turns = 0;
        loop {
            let now = self.free_fallback();
            let taken =
                self.fallback.0.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::Relaxed);
            if taken.is_ok() {
                return now + 1;
            }
            pause(&mut turns);
        }
    }

    /// Waits until the fall-back lock is free.
    fn free_fallback(&self) -> u64 {
        let mut turns = 0;
        loop {
            let now = self.fallback.0.load(Ordering::SeqCst);
            if now.is_multiple_of(2) {
                return now;
            }
            pause(&mut turns);
        }
    }

    fn begin<'w>(&self, mode: Mode) -> Running<'w, '_> {
        let fallback = match mode {
            Mode::Region => self.free_fallback(),
            Mode::Locks | Mode::Fallback => 0,
        };
        Running {
            of: self,
            mode,
            fallback,
            began: self.clock.0.load(Ordering::SeqCst),
            reads: SmallVec::new(),
            writes: SmallVec::new(),
            watched: SmallVec::new(),
            line: 0,
            lines_read: 0,
        }
    }

    fn attempt<'w, B: Body<'w>>(
        &self,
        mode: Mode,
        body: &mut B,
    ) -> Result<Ended<B::Output>, Cause> {
        let mut running = self.begin(mode);
        let output = body.run(&mut running)?;
        let place = running.end(|_| Ok(()))?;
        Ok(Ended { output, place })
    }

    /// See [`super::regions::Regions::run_locked`].
    pub(super) fn run_locked<'w, B: Body<'w>, E>(
        &self,
        body: &mut B,
        mut inside: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Option<Ended<B::Output>>, E> {
        let mut turns = 0;
        loop {
            let mut running = self.begin(Mode::Locks);
            let mut failed = None;
            let ended = body.run(&mut running).and_then(|output| {
                let place = running.end(|place| {
                    inside(place).map_err(|error| {
                        failed = Some(error);
                        Cause::GaveUp
                    })
                })?;
                Ok(Ended { output, place })
            });
            match (failed, ended) {
                (Some(error), _) => return Err(error),
                (None, Ok(ended)) => return Ok(Some(ended)),
                (None, Err(Cause::GaveUp)) => return Ok(None),
                // Whether what stood in the way matters is for the body to find.
                (None, Err(_)) => pause(&mut turns),
            }
        }
    }

    /// See [`super::regions::Regions::store_all`].
    pub(super) fn store_all<'w>(&self, words: impl Iterator<Item = (&'w AtomicU64, u64)>) {
        let mut running = self.begin(Mode::Locks);
        running.writes.extend(words);
        let stored = running.end(|_| Ok(()));
        debug_assert!(stored.is_ok(), "nothing was read");
    }

    /// Locks a mark; the mark before. `None` if another one has it, and this one does not wait.
    fn lock(&self, mark: u32, waits: bool) -> Option<u64> {
        let mark = &self.marks[mark as usize];
        let mut turns = 0;
        loop {
            let now = mark.load(Ordering::SeqCst);
            let is_free = now & LOCKED == 0;
            let lock = |now: u64| {
                mark.compare_exchange(now, now | LOCKED, Ordering::SeqCst, Ordering::Relaxed)
            };
            if is_free && lock(now).is_ok() {
                // A reader that sees a word that is stored from here on must not find the mark as
                // before.
                fence(Ordering::Release);
                return Some(now);
            }
            if !waits {
                return None;
            }
            pause(&mut turns);
        }
    }
}

impl<'w> Running<'w, '_> {
    /// Counts lines that were read. One that is read twice with others in between counts twice,
    /// which is nothing beside the limit.
    fn count_lines(&mut self, first: usize, last: usize) -> Result<(), Cause> {
        self.lines_read += last - first + usize::from(first != self.line);
        self.line = last;
        let is_beyond = self.lines_read > self.of.limits.read_lines;
        if is_beyond && self.mode == Mode::Region { Err(Cause::ReadSet) } else { Ok(()) }
    }

    /// The four steps at the end; the place. `inside` runs behind the third.
    fn end(&mut self, inside: impl FnOnce(u64) -> Result<(), Cause>) -> Result<u64, Cause> {
        if self.writes.is_empty() && self.mode == Mode::Region {
            return if self.is_as_watched() { Ok(self.began) } else { Err(Cause::Conflict) };
        }
        let mut lines: SmallVec<[usize; 16]> = self.writes.iter().map(|w| line_of(w.0)).collect();
        lines.sort_unstable();
        lines.dedup();
        if lines.len() > self.of.limits.write_lines && self.mode == Mode::Region {
            return Err(Cause::WriteSet);
        }
        let mut marks: SmallVec<[(u32, u64); 16]> =
            self.writes.iter().map(|(word, _)| (mark_of(word), 0)).collect();
        marks.sort_unstable();
        marks.dedup();
        for i in 0..marks.len() {
            match self.of.lock(marks[i].0, self.mode != Mode::Region) {
                Some(was) => marks[i].1 = was,
                None => {
                    self.unlock(&marks[..i]);
                    return Err(Cause::Conflict);
                }
            }
        }
        let place = self.of.clock.0.fetch_add(1, Ordering::SeqCst) + 1;
        let checked = match self.is_valid(&marks) {
            true => inside(place),
            false => Err(Cause::Conflict),
        };
        if let Err(cause) = checked {
            self.unlock(&marks);
            return Err(cause);
        }
        for (word, value) in &self.writes {
            word.store(*value, Ordering::Release);
        }
        for (mark, _) in &marks {
            self.of.marks[*mark as usize].store(place << 1, Ordering::Release);
        }
        Ok(place)
    }

    fn unlock(&self, marks: &[(u32, u64)]) {
        for (mark, was) in marks {
            self.of.marks[*mark as usize].store(*was, Ordering::Release);
        }
    }

    fn is_as_watched(&self) -> bool {
        self.watched.iter().all(|(word, value)| word.load(Ordering::Acquire) == *value)
    }

    fn is_valid(&self, locked: &[(u32, u64)]) -> bool {
        let is_old = |mark: &u32| {
            let now = match locked.binary_search_by_key(mark, |(mark, _)| *mark) {
                Ok(at) => locked[at].1,
                Err(_) => self.of.marks[*mark as usize].load(Ordering::SeqCst),
            };
            now & LOCKED == 0 && now >> 1 <= self.began
        };
        let has_lock = match self.mode {
            Mode::Region => self.of.fallback.0.load(Ordering::SeqCst) == self.fallback,
            Mode::Locks | Mode::Fallback => true,
        };
        has_lock && self.reads.iter().all(is_old) && self.is_as_watched()
    }
}

impl<'w> Access<'w> for Running<'w, '_> {
    fn load(&mut self, word: &'w AtomicU64) -> Result<u64, Cause> {
        let own = self.writes.iter().rev().find(|(of, _)| std::ptr::eq(*of, word));
        if let Some((_, value)) = own {
            return Ok(*value);
        }
        let line = line_of(word);
        self.count_lines(line, line)?;
        let number = mark_of(word);
        let mark = &self.of.marks[number as usize];
        let mut turns = 0;
        loop {
            let before = mark.load(Ordering::SeqCst);
            if before & LOCKED != 0 && self.mode != Mode::Region {
                pause(&mut turns);
                continue;
            }
            if before & LOCKED != 0 || before >> 1 > self.began {
                return Err(Cause::Conflict);
            }
            let value = word.load(Ordering::Acquire);
            fence(Ordering::Acquire);
            if mark.load(Ordering::Relaxed) == before {
                self.reads.push(number);
                return Ok(value);
            }
        }
    }

    fn store(&mut self, word: &'w AtomicU64, value: u64) -> Result<(), Cause> {
        self.writes.push((word, value));
        Ok(())
    }

    fn watch(&mut self, word: &'w AtomicU64) -> Result<u64, Cause> {
        let line = line_of(word);
        self.count_lines(line, line)?;
        let value = word.load(Ordering::Acquire);
        self.watched.push((word, value));
        Ok(value)
    }

    fn copy(&mut self, words: &'w [AtomicU64], into: &mut Vec<u64>) -> Result<(), Cause> {
        if let (Some(first), Some(last)) = (words.first(), words.last()) {
            self.count_lines(line_of(first), line_of(last))?;
        }
        into.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        Ok(())
    }

    fn leave_cache(&mut self) -> Result<(), Cause> {
        match self.mode {
            Mode::Region => Err(Cause::Forbidden),
            Mode::Locks | Mode::Fallback => Ok(()),
        }
    }

    fn give_up(&mut self) -> Cause {
        Cause::GaveUp
    }
}
