//! An image that is larger than memory: what is read is what was stored last, whatever is in
//! memory, and a page that cannot be read is an end and never zeros.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pmem::{
    Device, DiskCall, DiskFile, DiskHook, DiskOperation, EpochNumber, File, FileOptions, Needed,
    Outcome, PAGE_BYTES, PageUse, PortState, memory_can_be_limited,
};

use crate::scenario::fast_dir;

/// The image has three times the pages that may be in memory.
const PAGES: u64 = 3 * LIMIT_PAGES;
const LIMIT_PAGES: u64 = 2048;
/// How many more there may be for a moment: each thread that reads may have one, and no thread
/// waits for the one that evicts before there are 64.
const OVER_PAGES: u64 = 128;
/// Of which pages get two thirds ...
const LIMIT_BYTES: u64 = 12 << 20;
/// ... and seven eighths where little is stored to.
const MOST_PAGES: u64 = LIMIT_BYTES / PAGE_BYTES / 8 * 7;

/// Whether there is nothing to test.
pub(crate) fn is_impossible() -> bool {
    if !memory_can_be_limited() {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
    }
    !memory_can_be_limited()
}

fn options(limit: Option<u64>) -> FileOptions {
    FileOptions { memory_limit_bytes: limit, ..FileOptions::new(64 << 20, 1 << 20) }
}

pub(crate) fn store(device: &File, page: u64, number: u64) {
    // SAFETY: the test owns the device, or threads that only read pages that it does not store to.
    unsafe {
        device.store_u64(&mut PortState::default(), page * PAGE_BYTES + 8 * (page % 500), number)
    };
}

pub(crate) fn load(device: &File, page: u64) -> u64 {
    device.image().load_u64(page * PAGE_BYTES + 8 * (page % 500))
}

pub(crate) fn snapshot(device: &File, epoch: u64) {
    (0..2).for_each(|part| device.snapshot_part(part, 2).unwrap());
    device.snapshot_commit(EpochNumber(epoch)).unwrap();
}

/// A store whose page p holds p + 1.
fn filled(dir: &Path) {
    let device = File::open(dir, &options(None)).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    (0..PAGES).for_each(|page| store(&device, page, page + 1));
    snapshot(&device, 1);
    device.settle().unwrap();
}

fn limited(dir: &Path) -> File {
    let device = File::open(dir, &options(Some(LIMIT_BYTES))).unwrap();
    device.accept().unwrap();
    device
}

fn resident(device: &File) -> u64 {
    device.page_use().unwrap().resident_bytes / PAGE_BYTES
}

/// A generator of Marsaglia.
pub(crate) fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// S8, S9, S10, S15: random stores, snapshots that are being written, fetched and touched pages,
/// and pages that go, for many rounds; then the store is opened without a limit.
#[test]
fn s_15_pages_come_and_go_and_hold_what_was_stored_last() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let mut model: Vec<u64> = (1..=PAGES).collect();
    let device = limited(dir.path());
    let (mut random, mut missing) = (0x9e37_79b9_7f4a_7c15, Vec::new());
    for round in 2..80_u64 {
        for _ in 0..500 {
            let page = next(&mut random) % PAGES;
            device.want_pages(page * PAGE_BYTES, PAGE_BYTES, Needed::Seldom, &mut missing);
        }
        device.fetch_pages(&mut missing);
        for _ in 0..300 {
            let page = next(&mut random) % PAGES;
            assert_eq!(load(&device, page), model[page as usize], "page {page}, round {round}");
            let changed = next(&mut random) % PAGES;
            store(&device, changed, round * PAGES + changed);
            model[changed as usize] = round * PAGES + changed;
        }
        if round.is_multiple_of(3) || device.needs_snapshot() {
            snapshot(&device, round);
        }
        let resident = resident(&device);
        assert!(resident <= MOST_PAGES + OVER_PAGES, "{resident} pages in round {round}");
    }
    let done = device.page_use().unwrap();
    assert!(done.faults > 1000 && done.fetched > 1000 && done.evicted > 1000, "{done:?}");
    snapshot(&device, 80);
    device.settle().unwrap();
    drop(device);
    let device = File::open(dir.path(), &options(None)).unwrap();
    for page in 0..PAGES {
        assert_eq!(load(&device, page), model[page as usize], "page {page}");
    }
}

/// S11: readers from outside touch pages while others go.
#[test]
fn s_11_readers_beside_pages_that_go_see_what_they_held() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let device = limited(dir.path());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 1..=3 {
            let (device, is_over) = (&device, &is_over);
            scope.spawn(move || {
                let mut random = 0x9e37_79b9_7f4a_7c15 ^ reader;
                let mut missing = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let page = next(&mut random) % PAGES;
                    if page.is_multiple_of(3) {
                        device.want_pages(page * PAGE_BYTES, 1, Needed::Seldom, &mut missing);
                        device.fetch_pages(&mut missing);
                    }
                    assert_eq!(load(device, page), page + 1);
                }
            });
        }
        while device.page_use().unwrap().evicted < 3 * PAGES {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(resident(&device) <= MOST_PAGES + OVER_PAGES);
}

/// S8: threads store to pages, each to its own, while they go, and find what they stored last.
#[test]
fn s_8_stores_beside_pages_that_go_are_kept() {
    const THREADS: u64 = 3;
    const ROUNDS: u64 = 12;
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let device = limited(dir.path());
    let mut model: Vec<u64> = (1..=PAGES).collect();
    for round in 2..2 + ROUNDS {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (thread, mine) in (0..).zip(model.chunks_mut((PAGES / THREADS) as usize)) {
                let (device, first) = (&device, thread * (PAGES / THREADS));
                threads.push(scope.spawn(move || {
                    let mut random = 0x9e37_79b9_7f4a_7c15 ^ (round * THREADS + thread);
                    for nth in 0..1500_u64 {
                        let at = next(&mut random) % mine.len() as u64;
                        let number = &mut mine[at as usize];
                        // Some of them are stored to before they are in memory.
                        if nth.is_multiple_of(8) {
                            *number += PAGES;
                            store(device, first + at, *number);
                        }
                        assert_eq!(load(device, first + at), *number);
                    }
                }));
            }
            join_all(threads);
        });
        snapshot(&device, round);
    }
    device.settle().unwrap();
    assert!(device.page_use().unwrap().evicted > PAGES);
    assert!(resident(&device) <= MOST_PAGES + OVER_PAGES);
    for page in 0..PAGES {
        assert_eq!(load(&device, page), model[page as usize], "page {page}");
    }
}

/// Joins threads one by one: the thread sanitizer does not see the order that the end of a scope
/// makes.
fn join_all(threads: Vec<std::thread::ScopedJoinHandle<'_, ()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Threads scan pages of their own one after the other, and store to some of them.
fn scan_and_store(device: &File, first: u64, model: &mut [u64], seed: u64) {
    let mut random = seed;
    for (page, number) in (first..).zip(model) {
        if !page.is_multiple_of(5) && next(&mut random).is_multiple_of(4) {
            *number += PAGES;
            store(device, page, *number);
        }
        assert_eq!(load(device, page), *number, "page {page}");
    }
}

/// S8, S11: scans whose next pages are read ahead, beside stores, snapshots that are being written,
/// and threads that touch other pages at random.
#[test]
fn s_8_scans_that_are_read_ahead_beside_stores_find_what_was_stored() {
    const SCANS: u64 = 3;
    const ROUNDS: u64 = 8;
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let device = limited(dir.path());
    let mut model: Vec<u64> = (1..=PAGES).collect();
    for round in 2..2 + ROUNDS {
        let own = (0..).zip(model.chunks_mut((PAGES / SCANS) as usize));
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (scan, own) in own {
                let device = &device;
                threads.push(scope.spawn(move || {
                    let seed = 0x9e37_79b9_7f4a_7c15 ^ (round * SCANS + scan);
                    scan_and_store(device, scan * (PAGES / SCANS), own, seed);
                }));
            }
            for reader in 1..=2 {
                let device = &device;
                threads.push(scope.spawn(move || {
                    let mut random = 0x9e37_79b9_7f4a_7c15 ^ (round * SCANS + reader);
                    for _ in 0..1000 {
                        // Pages that no scan stores to.
                        let page = next(&mut random) % (PAGES / 5) * 5;
                        assert_eq!(load(device, page), page + 1);
                    }
                }));
            }
            join_all(threads);
        });
        snapshot(&device, round);
    }
    device.settle().unwrap();
    let done = device.page_use().unwrap();
    assert!(done.evicted > PAGES && done.guessed > PAGES, "{done:?}");
    drop(device);
    let device = File::open(dir.path(), &options(None)).unwrap();
    for page in 0..PAGES {
        assert_eq!(load(&device, page), model[page as usize], "page {page}");
    }
}

/// A range that is read ahead causes no fault, and more ranges than memory has are read.
#[test]
fn what_is_read_ahead_is_there() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let device = limited(dir.path());
    let faults = device.page_use().unwrap().faults;
    for first in (0..PAGES).step_by(64) {
        device.read_pages(first * PAGE_BYTES, 64 * PAGE_BYTES).unwrap();
        for page in first..first + 64 {
            assert_eq!(load(&device, page), page + 1);
        }
    }
    let done = device.page_use().unwrap();
    assert_eq!(done.faults, faults, "{done:?}");
    assert!(done.resident_bytes <= (MOST_PAGES + OVER_PAGES) * PAGE_BYTES, "{done:?}");
    assert!(done.resident_bytes > LIMIT_PAGES * PAGE_BYTES, "nothing is stored to: {done:?}");
    // An epoch that may store to a third of it finds room for that.
    device.reserve_pages(LIMIT_BYTES / PAGE_BYTES / 3, false).unwrap();
    assert!(resident(&device) <= LIMIT_PAGES, "{:?}", device.page_use());
}

/// Counts reads of `data`.
#[derive(Debug, Default)]
struct Reads(AtomicU64);

impl DiskHook for Reads {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let is_read = matches!(call.operation, DiskOperation::Read { .. });
        self.0.fetch_add(u64::from(call.file == DiskFile::Data && is_read), Ordering::SeqCst);
        Outcome::Proceed
    }
}

/// The thread that asks reads neighbours as one, and waits for no other read.
#[test]
fn neighbours_that_are_asked_for_are_one_read() {
    const RUN_PAGES: u64 = 4;
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let hook = Arc::new(Reads::default());
    let options = FileOptions { hook: Some(hook.clone()), ..options(Some(LIMIT_BYTES)) };
    let device = File::open(dir.path(), &options).unwrap();
    device.accept().unwrap();
    for first in (100..1000).step_by(100) {
        let before = hook.0.load(Ordering::SeqCst);
        let mut missing = Vec::new();
        device.want_pages(first * PAGE_BYTES, RUN_PAGES * PAGE_BYTES, Needed::Seldom, &mut missing);
        device.fetch_pages(&mut missing);
        (first..first + RUN_PAGES).for_each(|page| assert_eq!(load(&device, page), page + 1));
        assert_eq!(hook.0.load(Ordering::SeqCst) - before, 1, "page {first}");
    }
}

/// Pages that are needed often stay while three times as many as memory has come and go, and go if
/// they are not needed for long, or are too many (decision 76).
#[test]
fn pages_that_are_needed_often_stay_longer() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let device = limited(dir.path());
    // Brings pages, and counts those that were not there.
    let bring = |pages: std::ops::Range<u64>, needed: Needed| {
        let mut missing = Vec::new();
        pages.clone().for_each(|page| {
            device.want_pages(page * PAGE_BYTES, PAGE_BYTES, needed, &mut missing);
        });
        let came = missing.len() as u64;
        device.fetch_pages(&mut missing);
        pages.for_each(|page| assert_eq!(load(&device, page), page + 1));
        came
    };
    let others = |times: u64| {
        (0..times * MOST_PAGES / 64).for_each(|nth| {
            let first = 1000 + 64 * nth % (PAGES - 1064);
            bring(first..first + 64, Needed::Seldom);
        });
    };
    assert_eq!(bring(0..1000, Needed::Often), 1000);
    others(3);
    assert_eq!(bring(0..1000, Needed::Often), 0, "{:?}", device.page_use());
    others(60);
    assert!(bring(0..1000, Needed::Often) > 900, "{:?}", device.page_use());
    // All pages are needed often: each goes as others come.
    for round in 0..3 {
        for first in (0..PAGES).step_by(64) {
            bring(first..first + 64, Needed::Often);
            assert!(resident(&device) <= MOST_PAGES + OVER_PAGES, "round {round}, {first}");
        }
    }
}

/// S6, S9: pages that snapshots move in the file while they are not in memory are read from where
/// they are now. The slots that they had hold other pages, or are cut off.
#[test]
fn s_9_pages_that_move_while_they_are_absent_are_found() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    let device = File::open(dir.path(), &options(None)).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    device.reserve_pages(PAGES, true).unwrap();
    // Saved twice, all pages are in the second half of the file.
    for epoch in 1..3 {
        (0..PAGES).for_each(|page| store(&device, page, page + 1));
        snapshot(&device, epoch);
        device.settle().unwrap();
    }
    drop(device);
    let device = limited(dir.path());
    for epoch in 3..20 {
        (0..16).for_each(|page| store(&device, page, epoch));
        snapshot(&device, epoch);
        device.settle().unwrap();
    }
    let moved = device.use_of_files().unwrap().pages_moved;
    assert!(moved > 1000, "{moved} pages moved");
    assert!(resident(&device) < 100, "most were absent: {:?}", device.page_use());
    for first in (0..PAGES).step_by(64) {
        device.read_pages(first * PAGE_BYTES, 64 * PAGE_BYTES).unwrap();
        for page in first..first + 64 {
            let stored = if page < 16 { 19 } else { page + 1 };
            assert_eq!(load(&device, page), stored, "page {page}");
        }
    }
}

/// Memory for other things, and for what is known of pages, is no memory for pages; but some may
/// always be there.
#[test]
fn a_limit_leaves_room_for_other_memory() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let device = limited(dir.path());
    let bring_all = || {
        for first in (0..PAGES).step_by(64) {
            device.read_pages(first * PAGE_BYTES, 64 * PAGE_BYTES).unwrap();
        }
        let PageUse { resident_bytes, pages_bytes_now, .. } = device.page_use().unwrap();
        assert!(resident_bytes <= pages_bytes_now + OVER_PAGES * PAGE_BYTES);
        assert!(resident_bytes + (1 << 20) > pages_bytes_now, "memory is used");
    };
    for other_bytes in [0, 1 << 20, 2 << 20, 0] {
        device.leave_memory(other_bytes);
        let left = LIMIT_BYTES - other_bytes;
        let PageUse { pages_bytes, pages_bytes_now, .. } = device.page_use().unwrap();
        let most = left - 24 * PAGES;
        assert!(pages_bytes <= most / 3 * 2, "{pages_bytes} of {left}");
        assert!(pages_bytes_now <= most / 8 * 7 + PAGE_BYTES, "{pages_bytes_now} of {left}");
        let least = left - 40 * PAGES;
        assert!(pages_bytes + 6 * PAGE_BYTES >= least / 3 * 2, "{pages_bytes} of {left}");
        assert!(pages_bytes_now + PAGE_BYTES >= least / 8 * 7, "{pages_bytes_now} of {left}");
        bring_all();
    }
    device.leave_memory(2 * LIMIT_BYTES);
    assert_eq!(device.page_use().unwrap().pages_bytes, LIMIT_BYTES / 2);
    bring_all();
}

/// Pages that were never stored to are zeros, and take no memory; those that were are in memory
/// when they are saved, and go then.
#[test]
fn new_pages_are_zeros_until_they_are_stored_to() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    let device = limited(dir.path());
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    let faults = device.page_use().unwrap().faults;
    (0..PAGES).for_each(|page| assert_eq!(load(&device, page), 0));
    let done = device.page_use().unwrap();
    assert_eq!((done.faults, done.resident_bytes), (faults, 0), "{done:?}");
    (1..PAGES).for_each(|page| store(&device, page, page));
    assert!(device.needs_snapshot());
    snapshot(&device, 1);
    device.settle().unwrap();
    let done = device.page_use().unwrap();
    assert!(resident(&device) <= MOST_PAGES, "{done:?}");
    let were = resident(&device) + done.evicted;
    assert_eq!(were, PAGES - 1, "pages that were in memory when they were saved");
    (0..PAGES).for_each(|page| assert_eq!(load(&device, page), page));
}

/// Reads of `data` fail, or bring other bytes, from some moment on.
#[derive(Debug, Default)]
struct Failing {
    fails: AtomicBool,
    is_damaged: AtomicBool,
}

impl DiskHook for Failing {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let is_read = matches!(call.operation, DiskOperation::Read { .. });
        if call.file == DiskFile::Data && is_read && self.fails.load(Ordering::Relaxed) {
            return Outcome::Fail(5);
        }
        Outcome::Proceed
    }

    fn after_read(&self, file: DiskFile, _: u64, bytes: &mut [u8]) {
        if file == DiskFile::Data && self.is_damaged.load(Ordering::Relaxed) {
            bytes[100] ^= 1;
        }
    }
}

/// S12, S13: in a process of its own, whose directory the environment names.
#[test]
fn s_12_a_page_that_cannot_be_read_ends_the_process() {
    if is_impossible() {
        return;
    }
    let name = "residency::s_12_a_page_that_cannot_be_read_ends_the_process";
    if let Some(dir) = std::env::var_os("STORE") {
        let hook = Arc::new(Failing::default());
        let options = FileOptions { hook: Some(hook.clone()), ..options(Some(LIMIT_BYTES)) };
        let device = File::open(Path::new(&dir), &options).unwrap();
        let is_damaged = std::env::var_os("DAMAGED").is_some();
        hook.fails.store(!is_damaged, Ordering::Relaxed);
        hook.is_damaged.store(is_damaged, Ordering::Relaxed);
        println!("read {}", load(&device, 5));
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    for (damaged, expected) in [(false, "cannot read 4096 bytes"), (true, "it is damaged")] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", name, "--nocapture"]).env("STORE", dir.path());
        if damaged {
            child.env("DAMAGED", "1");
        }
        let ended = child.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        let read = String::from_utf8_lossy(&ended.stdout);
        assert!(!ended.status.success() && !read.contains("read 0"), "{read}");
        assert!(said.contains(expected) && said.contains("this process ends"), "{said}");
    }
}
