//! One shard: an array of buckets, the lock under which it changes, and its growth.

use std::ptr::{self, NonNull};

use pmem::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use pmem::sync::{Patience, reads, writes};

use super::super::EntryId;
use super::super::arena::Arena;
use super::super::memory::prefetch_line;
use super::bucket::{self, Bucket, Mixed, SHARDS_COUNT};

/// Polls for the lock of a shard before the processor is given up: its holder may have lost its
/// own.
const LOCK_POLLS: u32 = 64;

/// Where a shard's buckets are. Kept apart from the lock, so that the heads of all shards stay
/// in the nearest cache while readers use nothing else.
#[derive(Debug)]
pub(super) struct Head<B> {
    /// Of a shard without memory [`Bucket::EMPTY`], which has no room by the shard's limit, so that
    /// it is never written.
    buckets: AtomicPtr<B>,
    /// The number of buckets less one.
    last: AtomicUsize,
}

/// The lock of a shard and what only its holder uses, on a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Lock {
    is_held: AtomicBool,
    /// Written only under the lock; read by anyone in other phases.
    len: AtomicUsize,
    /// The length at which the shard grows; zero as long as it has no memory.
    len_max: AtomicUsize,
}

/// A shard that this thread may change.
#[derive(Debug)]
pub(super) struct Locked<'i, B> {
    head: &'i Head<B>,
    lock: &'i Lock,
    arena: &'i Arena,
    /// Which of the shards it is.
    number: usize,
}

impl<B: Bucket> Default for Head<B> {
    fn default() -> Self {
        let nothing = ptr::from_ref(B::EMPTY).cast_mut();
        Self { buckets: AtomicPtr::new(nothing), last: AtomicUsize::new(0) }
    }
}

impl<B: Bucket> Head<B> {
    /// Asks for the line of a bucket; right in any phase, since nothing of it is read.
    #[inline]
    pub(super) fn prefetch(&self, mixed: u64) {
        prefetch_line(self.place_of(mixed));
    }

    /// The address of the bucket where a mixed word belongs.
    pub(super) fn address_of(&self, mixed: u64) -> usize {
        self.place_of(mixed).addr()
    }

    #[inline]
    fn place_of(&self, mixed: u64) -> *const B {
        let buckets = self.buckets.load(Ordering::Relaxed);
        let at = B::home_of_mixed(mixed, self.last.load(Ordering::Relaxed));
        buckets.wrapping_add(at)
    }

    /// The bucket where a mixed word belongs.
    ///
    /// # Safety
    ///
    /// As for [`Head::buckets`].
    #[inline]
    // SAFETY: the caller keeps the shard from changing, see above.
    pub(super) unsafe fn home(&self, mixed: u64) -> &B {
        let at = B::home_of_mixed(mixed, self.last.load(Ordering::Relaxed));
        // SAFETY: a home is not behind the last bucket; the rest is as in `buckets`.
        unsafe { &*self.buckets.load(Ordering::Relaxed).add(at) }
    }

    /// The buckets.
    ///
    /// # Safety
    ///
    /// The shard must not change as long as the array is in use: either this is a phase
    /// without changes, or the caller holds the lock.
    #[inline]
    // SAFETY: the caller keeps the shard from changing, see above.
    pub(super) unsafe fn buckets(&self) -> &[B] {
        let buckets = self.buckets.load(Ordering::Relaxed);
        let count = self.last.load(Ordering::Relaxed) + 1;
        // SAFETY: the array was initialised under the lock and published by the barrier after
        // that phase or by the lock; the caller sees to it that it stays.
        unsafe { std::slice::from_raw_parts(buckets, count) }
    }
}

impl Lock {
    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Waits for the lock.
    #[inline]
    pub(super) fn acquire<'i, B>(
        &'i self,
        head: &'i Head<B>,
        arena: &'i Arena,
        number: usize,
    ) -> Locked<'i, B> {
        while self.is_held.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Locked { head, lock: self, arena, number }
    }

    #[cold]
    fn wait(&self) {
        let mut patience = Patience::new(LOCK_POLLS);
        while self.is_held.load(Ordering::Relaxed) {
            patience.wait();
        }
    }
}

impl<B: Bucket> Locked<'_, B> {
    /// The buckets.
    #[inline]
    pub(super) fn buckets(&self) -> &[B] {
        reads(self.head);
        // SAFETY: this thread holds the lock, and changing takes `&mut self`.
        unsafe { self.head.buckets() }
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.lock.len()
    }

    /// Adds an entry, after growing if it is time to.
    pub(super) fn insert(&mut self, mark: B::Mark, id: EntryId) {
        let len = self.lock.len();
        self.reserve(len + 1);
        let arena = self.arena;
        bucket::place(self.buckets_mut(), mark, id, |bucket| arena.before_store(bucket));
        self.lock.len.store(len + 1, Ordering::Relaxed);
    }

    /// Adds an entry, where the search for it ended in a bucket with room.
    #[inline]
    pub(super) fn insert_at(mut self, at: usize, mark: B::Mark, id: EntryId) {
        let len = self.lock.len();
        if len == self.lock.len_max.load(Ordering::Relaxed) {
            return self.grow_and_insert(mark, id);
        }
        assert!(
            len < self.lock.len_max.load(Ordering::Relaxed),
            "a search ends at a bucket with room"
        );
        let arena = self.arena;
        bucket::place_at(self.buckets_mut(), at, mark, id, |bucket| arena.before_store(bucket));
        self.lock.len.store(len + 1, Ordering::Relaxed);
    }

    #[inline(never)]
    fn grow_and_insert(mut self, mark: B::Mark, id: EntryId) {
        self.insert(mark, id);
    }

    /// Removes the entry that has this word and this id; returns whether there was one.
    pub(super) fn remove(&mut self, word: Mixed, id: EntryId) -> bool {
        let found = bucket::locate(self.buckets(), word, |other| other == id);
        let Ok((at, slot)) = found else { return false };
        assert!(self.lock.len() > 0, "an entry that is there is counted");
        let arena = self.arena;
        bucket::remove_at(self.buckets_mut(), at, slot, |bucket| arena.before_store(bucket));
        self.lock.len.store(self.lock.len() - 1, Ordering::Relaxed);
        true
    }

    /// Makes room for `len` entries in all.
    pub(super) fn reserve(&mut self, len: usize) {
        if len <= self.lock.len_max.load(Ordering::Relaxed) {
            return;
        }
        let count = count_for::<B>(self.buckets().len(), len, self.number);
        let old = self.head.buckets.load(Ordering::Relaxed);
        let old_bytes = size_of_val(self.buckets());
        let new = self.arena.take(count * size_of::<B>()).cast::<B>();
        // SAFETY: the block is mapped, has room for `count` buckets, is initialised with zeros,
        // which make empty buckets, and is owned here until it is published below.
        let buckets = unsafe { std::slice::from_raw_parts_mut(new.as_ptr(), count) };
        let mut moved_count = 0;
        for (mark, id) in self.buckets().iter().flat_map(B::entries) {
            // `Arena::take` has noted the block.
            bucket::place(buckets, mark, id, |_| ());
            moved_count += 1;
        }
        assert!(moved_count == self.lock.len(), "a shard that grows keeps its entries");
        let len_max = len_max_of::<B>(count, self.number);
        assert!(len <= len_max, "the new array has room for {len} entries");
        let had_memory = self.lock.len_max.load(Ordering::Relaxed) > 0;
        self.head.buckets.store(new.as_ptr(), Ordering::Relaxed);
        self.head.last.store(count - 1, Ordering::Relaxed);
        self.lock.len_max.store(len_max, Ordering::Relaxed);
        if had_memory {
            let old = NonNull::new(old).expect("an array has an address");
            self.arena.give(old.cast(), old_bytes);
        }
    }

    /// Takes over an array that is in use, of so many buckets with so many entries. False if there
    /// is none.
    pub(super) fn attach(&mut self, offset: u64, count: usize, len: usize) -> bool {
        assert!(self.lock.len_max.load(Ordering::Relaxed) == 0, "a shard without memory");
        if !B::can_be_count(count) || len > len_max_of::<B>(count, SHARDS_COUNT - 1) {
            return false;
        }
        let bytes = (count as u64).checked_mul(size_of::<B>() as u64);
        let Some(block) = bytes.and_then(|bytes| self.arena.claim(offset, bytes)) else {
            return false;
        };
        self.head.buckets.store(block.cast().as_ptr(), Ordering::Relaxed);
        self.head.last.store(count - 1, Ordering::Relaxed);
        // It may have been kept by a program that let this shard have more.
        let len_max = len_max_of::<B>(count, self.number).max(len);
        self.lock.len_max.store(len_max, Ordering::Relaxed);
        self.lock.len.store(len, Ordering::Relaxed);
        true
    }

    /// Where the array is in the image, how many buckets it has, and with how many entries; zeros
    /// for a shard without memory. `None` if it is not in the image.
    pub(super) fn kept(&self) -> Option<[u64; 3]> {
        if self.lock.len_max.load(Ordering::Relaxed) == 0 {
            return Some([0; 3]);
        }
        let buckets = NonNull::new(self.head.buckets.load(Ordering::Relaxed))?;
        let offset = self.arena.space()?.offset_of(buckets.cast())?;
        Some([offset, self.buckets().len() as u64, self.lock.len() as u64])
    }

    /// Bytes of the arrays that the shard needs until it has so many entries, if it has to grow.
    pub(super) fn growth(&self, len: usize) -> impl Iterator<Item = u64> {
        let (number, count) = (self.number, self.buckets().len());
        let len_max = self.lock.len_max.load(Ordering::Relaxed);
        let first = (len > len_max).then(|| count_for::<B>(count, len_max + 1, number));
        let next = move |&count: &usize| {
            (len > len_max_of::<B>(count, number)).then(|| B::next_count(count))
        };
        std::iter::successors(first, next).map(|count| (count * size_of::<B>()) as u64)
    }

    /// How many entries may be added before it grows.
    pub(super) fn room(&self) -> usize {
        self.lock.len_max.load(Ordering::Relaxed) - self.lock.len()
    }

    #[inline]
    fn buckets_mut(&mut self) -> &mut [B] {
        writes(self.head);
        assert!(self.lock.len_max.load(Ordering::Relaxed) > 0, "the shard has memory of its own");
        let buckets = self.head.buckets.load(Ordering::Relaxed);
        let count = self.head.last.load(Ordering::Relaxed) + 1;
        // SAFETY: the array is initialised and not the shared empty bucket. This thread holds
        // the lock, in a phase where the shard is read only under it, so that the array is
        // owned here as long as `self` is borrowed.
        unsafe { std::slice::from_raw_parts_mut(buckets, count) }
    }
}

impl<B> Drop for Locked<'_, B> {
    #[inline]
    fn drop(&mut self) {
        debug_assert!(self.lock.is_held.load(Ordering::Relaxed), "it was locked until now");
        self.lock.is_held.store(false, Ordering::Release);
    }
}

/// How many buckets the array of a shard has for so many entries, which had so many.
fn count_for<B: Bucket>(mut count: usize, len: usize, shard: usize) -> usize {
    while len_max_of::<B>(count, shard) < len {
        count = B::next_count(count);
    }
    count
}

/// How many entries an array of `count` buckets may have: of a small one seven of ten slots, of
/// others by the number of the shard. All shards have about as many entries, and if all grew at
/// once, one epoch would write all of the index anew.
fn len_max_of<B: Bucket>(count: usize, shard: usize) -> usize {
    let slots = count * B::SLOTS;
    if count <= SMALL_BUCKETS {
        return slots * 7 / 10;
    }
    let (least, most) = B::LOADS;
    (slots * least + slots * (most - least) * shard / (SHARDS_COUNT - 1)) / 1000
}

/// Arrays of so many buckets are small: a page.
const SMALL_BUCKETS: usize = 64;
