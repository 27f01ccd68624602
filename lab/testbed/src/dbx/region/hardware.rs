//! Regions of restricted transactional memory.
//!
//! The processor takes back what an aborted region stored, so words are loaded and stored where
//! they lie. The fall-back lock is a word that every region reads when it begins: one who takes the
//! lock aborts all of them. Under the lock stores wait until the body has come to its end, so that
//! one that gives up has stored nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use super::access::{Access, Body, Cause, Ended, RETRIES, back_off, count};
use crate::grace::Padded;
use crate::pause;
use crate::rival::RegionCounts;
use crate::rtm;

/// The instructions, or what stands for them in a test.
pub(crate) trait Rtm {
    /// Begins a region, or says why it was aborted.
    fn begin(&self) -> u32;
    /// Ends it.
    fn end(&self);
    /// Aborts it.
    fn abort(&self, code: u32);
    /// The processor's clock.
    fn clock(&self) -> u64;
}

/// The processor's.
pub(crate) struct Instructions(());

impl Instructions {
    /// If the processor has them.
    pub(super) fn detect() -> Option<Self> {
        rtm::is_there().then_some(Self(()))
    }
}

impl Rtm for Instructions {
    #[inline(always)]
    fn begin(&self) -> u32 {
        rtm::begin()
    }

    #[inline(always)]
    fn end(&self) {
        rtm::end();
    }

    #[inline(always)]
    fn abort(&self, code: u32) {
        rtm::abort(code);
    }

    #[inline(always)]
    fn clock(&self) -> u64 {
        rtm::clock()
    }
}

/// See the module's documentation.
pub(crate) struct Hardware<I> {
    instructions: I,
    fallback: Padded<AtomicU64>,
}

/// A running region.
struct Direct<'r, I> {
    instructions: &'r I,
}

/// What a status of the processor means.
fn cause(status: u32) -> Cause {
    const EXPLICIT: u32 = 1;
    const CONFLICT: u32 = 1 << 2;
    const CAPACITY: u32 = 1 << 3;
    match status {
        _ if status & EXPLICIT != 0 => match status >> 24 {
            rtm::LOCK_IS_HELD => Cause::Conflict,
            rtm::FORBIDDEN => Cause::Forbidden,
            _ => Cause::GaveUp,
        },
        _ if status & CONFLICT != 0 => Cause::Conflict,
        // Which set it was the processor does not say; nearly always the smaller one.
        _ if status & CAPACITY != 0 => Cause::WriteSet,
        _ => Cause::Unknown,
    }
}

impl<I: Rtm> Hardware<I> {
    pub(super) fn new(instructions: I) -> Self {
        Self { instructions, fallback: Padded::default() }
    }

    #[cfg(test)]
    pub(super) fn instructions(&self) -> &I {
        &self.instructions
    }

    /// See [`super::regions::Regions::run`].
    pub(super) fn run<'w, B: Body<'w>>(
        &self,
        counts: &mut RegionCounts,
        body: &mut B,
    ) -> Option<Ended<B::Output>> {
        let mut aborts = 0;
        loop {
            self.wait_for_lock();
            let cause = match self.attempt(body) {
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
                counts.fallbacks += 1;
                let ended = self.run_locked(body, |_| Ok::<(), std::convert::Infallible>(()));
                let Ok(ended) = ended;
                match ended {
                    Some(_) => counts.ended += 1,
                    None => counts.gave_up += 1,
                }
                return ended;
            }
            back_off(aborts);
        }
    }

    /// One try in a region.
    #[inline(always)]
    fn attempt<'w, B: Body<'w>>(&self, body: &mut B) -> Result<Ended<B::Output>, Cause> {
        let status = self.instructions.begin();
        if status != rtm::STARTED {
            return Err(cause(status));
        }
        if self.fallback.0.load(Ordering::Acquire) != 0 {
            self.instructions.abort(rtm::LOCK_IS_HELD);
        }
        let mut direct = Direct { instructions: &self.instructions };
        // A body that gives up does not come back here: the region has been aborted.
        let output = body.run(&mut direct)?;
        let place = self.instructions.clock();
        self.instructions.end();
        Ok(Ended { output, place })
    }

    fn wait_for_lock(&self) {
        let mut turns = 0;
        while self.fallback.0.load(Ordering::Acquire) != 0 {
            pause(&mut turns);
        }
    }

    /// See [`super::regions::Regions::run_locked`]: with the one lock that there is.
    pub(super) fn run_locked<'w, B: Body<'w>, E>(
        &self,
        body: &mut B,
        mut inside: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Option<Ended<B::Output>>, E> {
        let mut turns = 0;
        while self.fallback.0.swap(1, Ordering::SeqCst) != 0 {
            pause(&mut turns);
        }
        let mut locked = Locked { stores: Vec::new() };
        let ended = match body.run(&mut locked) {
            Ok(output) => {
                let place = self.instructions.clock();
                inside(place).map(|()| Some(Ended { output, place }))
            }
            Err(_) => Ok(None),
        };
        if let Ok(Some(_)) = ended {
            locked.stores.iter().for_each(|(word, value)| word.store(*value, Ordering::Release));
        }
        self.fallback.0.store(0, Ordering::Release);
        ended
    }

    /// See [`super::regions::Regions::store_all`]: the processor aborts who has read them.
    pub(super) fn store_all<'w>(&self, words: impl Iterator<Item = (&'w AtomicU64, u64)>) {
        words.for_each(|(word, value)| word.store(value, Ordering::Release));
    }
}

/// What runs under the lock: it stores when it is known that it does not give up.
struct Locked<'w> {
    stores: Vec<(&'w AtomicU64, u64)>,
}

impl<'w> Access<'w> for Locked<'w> {
    fn load(&mut self, word: &'w AtomicU64) -> Result<u64, Cause> {
        let own = self.stores.iter().rev().find(|(of, _)| std::ptr::eq(*of, word));
        Ok(own.map_or_else(|| word.load(Ordering::Acquire), |(_, value)| *value))
    }

    fn store(&mut self, word: &'w AtomicU64, value: u64) -> Result<(), Cause> {
        self.stores.push((word, value));
        Ok(())
    }

    fn watch(&mut self, word: &'w AtomicU64) -> Result<u64, Cause> {
        Ok(word.load(Ordering::Acquire))
    }

    fn copy(&mut self, words: &'w [AtomicU64], into: &mut Vec<u64>) -> Result<(), Cause> {
        into.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        Ok(())
    }

    fn leave_cache(&mut self) -> Result<(), Cause> {
        Ok(())
    }

    fn give_up(&mut self) -> Cause {
        Cause::GaveUp
    }
}

impl<'w, I: Rtm> Access<'w> for Direct<'_, I> {
    fn load(&mut self, word: &'w AtomicU64) -> Result<u64, Cause> {
        Ok(word.load(Ordering::Acquire))
    }

    fn store(&mut self, word: &'w AtomicU64, value: u64) -> Result<(), Cause> {
        word.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn watch(&mut self, word: &'w AtomicU64) -> Result<u64, Cause> {
        self.load(word)
    }

    fn copy(&mut self, words: &'w [AtomicU64], into: &mut Vec<u64>) -> Result<(), Cause> {
        into.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        Ok(())
    }

    fn leave_cache(&mut self) -> Result<(), Cause> {
        self.instructions.abort(rtm::FORBIDDEN);
        Err(Cause::Forbidden)
    }

    fn give_up(&mut self) -> Cause {
        self.instructions.abort(rtm::GAVE_UP);
        Cause::GaveUp
    }
}
