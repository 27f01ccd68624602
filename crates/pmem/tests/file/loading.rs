//! A store that is opened before its pages are read: what is read is what was stored last, whoever
//! is first; a page that cannot be read is an error or an end and never zeros.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use pmem::{
    Device, DeviceError, DiskCall, DiskFile, DiskHook, DiskOperation, File, FileOptions, Needed,
    Outcome, PAGE_BYTES, PinnedSnapshot, in_fork,
};

use crate::residency::{is_impossible, load, next, snapshot, store};
use crate::scenario::fast_dir;

const PAGES: u64 = 3000;
/// Pages from this one on are not in the slots that are read first.
const LATER: u64 = 1000;
const EIO: i32 = 5;

/// Name of a thread whose reads take long.
const SLOW: &str = "slow reads";

/// The page table of a store that was filled at once: pages are in their order, behind the head.
fn slot_of(page: u64) -> u64 {
    page + 1
}

/// Who reads a page of `data` now.
fn is_background() -> bool {
    std::thread::current().name() == Some("pmem-load")
}

/// Holds the thread that reads in the background at its first read, until it is let go; counts what
/// others read, and may have slots that cannot be read.
#[derive(Debug, Default)]
struct Held {
    state: Mutex<HeldState>,
    changed: Condvar,
    read_by_others: AtomicU64,
    read_by_background: AtomicU64,
    /// 0: none.
    bad_slot: AtomicU64,
}

#[derive(Debug, Default)]
struct HeldState {
    is_free: bool,
    has_begun: bool,
    /// The thread whose reads take long goes on.
    may_be_slow: bool,
}

impl Held {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn free() -> Arc<Self> {
        let held = Self::new();
        held.let_go();
        held
    }

    fn let_go(&self) {
        self.state.lock().unwrap().is_free = true;
        self.changed.notify_all();
    }

    /// Waits until the thread is about to read: it has chosen the order then.
    fn wait_begun(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !state.has_begun).unwrap());
    }

    fn reads_of_others(&self) -> u64 {
        self.read_by_others.load(Ordering::Relaxed)
    }
}

impl DiskHook for Held {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let DiskOperation::Read { offset, len } = call.operation else { return Outcome::Proceed };
        if call.file != DiskFile::Data {
            return Outcome::Proceed;
        }
        if is_background() {
            self.read_by_background.fetch_add(1, Ordering::Relaxed);
            let mut state = self.state.lock().unwrap();
            state.has_begun = true;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |state| !state.is_free).unwrap());
        } else {
            self.read_by_others.fetch_add(1, Ordering::Relaxed);
        }
        if std::thread::current().name() == Some(SLOW) {
            let state = self.state.lock().unwrap();
            drop(self.changed.wait_while(state, |state| !state.may_be_slow).unwrap());
        }
        let bad = self.bad_slot.load(Ordering::Relaxed) * PAGE_BYTES;
        match bad > 0 && (offset..offset + len).contains(&bad) {
            true => Outcome::Fail(EIO),
            false => Outcome::Proceed,
        }
    }
}

fn eager() -> FileOptions {
    FileOptions::new(64 << 20, 1 << 20)
}

/// A store that was opened before its pages are read. A test that fails lets the thread go, too.
struct Opened {
    device: File,
    held: Arc<Held>,
}

impl std::ops::Deref for Opened {
    type Target = File;

    fn deref(&self) -> &File {
        &self.device
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.held.let_go();
    }
}

fn open(dir: &Path, held: Arc<Held>) -> Opened {
    let hook: Arc<dyn DiskHook> = held.clone();
    let options = FileOptions { background_load_bytes_min: Some(0), hook: Some(hook), ..eager() };
    let device = File::open(dir, &options).unwrap();
    assert!(device.description().note.contains("after the open"));
    assert!(!device.has_memory_limit() && device.page_use().is_none());
    Opened { device, held }
}

/// A store whose page p holds p + 1.
fn filled(dir: &Path) {
    let device = File::open(dir, &eager()).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    (0..PAGES).for_each(|page| store(&device, page, page + 1));
    snapshot(&device, 1);
    device.settle().unwrap();
}

fn check(device: &File, model: &[u64]) {
    for (page, number) in (0..).zip(model) {
        assert_eq!(load(device, page), *number, "page {page}");
    }
}

/// Damages a page of a store that was filled.
fn damage(dir: &Path, page: u64) {
    use std::os::unix::fs::FileExt;
    let data = std::fs::OpenOptions::new().write(true).open(dir.join("data")).unwrap();
    data.write_all_at(&[0x5a], slot_of(page) * PAGE_BYTES + 100).unwrap();
}

/// Pages in any order in the file, with holes, are the same as with an open that reads them first,
/// byte by byte.
#[test]
fn all_pages_come_and_hold_what_was_saved() {
    if is_impossible() {
        return;
    }
    for seed in 1..=4 {
        let dir = fast_dir();
        let device = File::open(dir.path(), &eager()).unwrap();
        device.accept().unwrap();
        device.grow_image(PAGES * PAGE_BYTES).unwrap();
        let mut random = 0x9e37_79b9_7f4a_7c15 ^ seed;
        for epoch in 1..=5 {
            // Some pages are never stored to, those of the end among them.
            for _ in 0..seed * 200 {
                let page = next(&mut random) % (PAGES - 100) / 5 * 5 + epoch % 3;
                store(&device, page, next(&mut random));
            }
            snapshot(&device, epoch);
        }
        device.settle().unwrap();
        drop(device);
        let first = File::open(dir.path(), &eager()).unwrap();
        // SAFETY: nothing stores to it.
        let expected = unsafe { first.image().slice(0, PAGES * PAGE_BYTES) }.to_vec();
        drop(first);
        for waits in [true, false] {
            let device = open(dir.path(), Held::free());
            if waits {
                device.wait_for_pages().unwrap();
                assert!(!device.has_absent_pages());
            }
            // SAFETY: nothing stores to it.
            let found = unsafe { device.image().slice(0, PAGES * PAGE_BYTES) };
            assert!(found == expected, "seed {seed}, after waiting: {waits}");
            device.wait_for_pages().unwrap();
            assert!(found == expected, "seed {seed}, at the end");
        }
    }
}

/// A range that is read ahead is there, all of it and nothing else.
#[test]
fn what_is_read_ahead_is_there_and_the_rest_is_not() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let opened = open(dir.path(), Held::new());
    opened.held.wait_begun();
    let before = opened.held.reads_of_others();
    opened.read_pages(LATER * PAGE_BYTES, 40 * PAGE_BYTES).unwrap();
    let reads = opened.held.reads_of_others();
    assert!((1..=2).contains(&(reads - before)), "{reads} reads, {before} before");
    (LATER..LATER + 40).for_each(|page| assert_eq!(load(&opened, page), page + 1));
    assert_eq!(opened.held.reads_of_others(), reads, "they were there");
    assert_eq!(load(&opened, LATER + 200), LATER + 201);
    assert!(opened.held.reads_of_others() > reads, "it was not there");
}

/// S11: pages that are touched come before the others, also those that were never saved.
#[test]
fn what_is_touched_comes_first() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let held = Held::new();
    let device = open(dir.path(), held.clone());
    device.accept().unwrap();
    device.grow_image(2 * PAGES * PAGE_BYTES).unwrap();
    assert!(device.has_absent_pages());
    let before = held.reads_of_others();
    for page in (LATER..PAGES).step_by(100) {
        assert_eq!(load(&device, page), page + 1);
        store(&device, page, 7 * page);
        assert_eq!(load(&device, page + PAGES), 0, "the image has grown by it");
    }
    let touched = (PAGES - LATER) / 100;
    assert_eq!(held.reads_of_others() - before, touched, "one read for each of them");
    held.let_go();
    device.wait_for_pages().unwrap();
    for page in 0..PAGES {
        let is_stored = page >= LATER && page.is_multiple_of(100);
        assert_eq!(load(&device, page), if is_stored { 7 * page } else { page + 1 });
    }
}

/// Whether a thread of this process with a name waits, and for no disk; or none has that name.
#[cfg(target_os = "linux")]
fn is_asleep(name: &str) -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let states =
        tasks.filter_map(|at| std::fs::read_to_string(at.unwrap().path().join("stat")).ok());
    let of_name = states.filter(|state| state.contains(&format!("({name})")));
    let mut codes = of_name.map(|state| state.rsplit(')').next().unwrap().trim_start().to_string());
    codes.all(|code| code.starts_with('S'))
}

/// Pages that a thread reads for itself are waited for before absent pages count as zeros.
#[cfg(target_os = "linux")]
#[test]
fn pages_that_another_thread_reads_are_waited_for() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let opened = open(dir.path(), Held::new());
    opened.held.wait_begun();
    std::thread::scope(|scope| {
        let read = || opened.read_pages(LATER * PAGE_BYTES, 40 * PAGE_BYTES).unwrap();
        let reader = std::thread::Builder::new().name(SLOW.into()).spawn_scoped(scope, read);
        while opened.held.reads_of_others() == 0 {
            std::thread::yield_now();
        }
        opened.held.let_go();
        // It sleeps when nothing is left to read but what the other one does.
        let goes_on = || opened.held.read_by_background.load(Ordering::Relaxed) > 1;
        while !goes_on() || !is_asleep("pmem-load") {
            std::thread::yield_now();
        }
        opened.held.state.lock().unwrap().may_be_slow = true;
        opened.held.changed.notify_all();
        opened.wait_for_pages().unwrap();
        reader.unwrap().join().unwrap();
    });
    check(&opened, &(1..=PAGES).collect::<Vec<_>>());
}

/// Pages that an epoch declares are read ahead of the others, each once, and cost no touch.
#[test]
fn what_is_wanted_comes_first() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let held = Held::new();
    let device = open(dir.path(), held.clone());
    let before = held.reads_of_others();
    let (mut wanted, mut again) = (Vec::new(), Vec::new());
    let range = (LATER * PAGE_BYTES + 5, 50 * PAGE_BYTES);
    device.want_pages(range.0, range.1, Needed::Seldom, &mut wanted);
    device.want_pages(range.0, range.1, Needed::Seldom, &mut again);
    assert_eq!(wanted, (LATER..=LATER + 50).collect::<Vec<_>>());
    device.fetch_pages(&mut wanted);
    device.fetch_pages(&mut again);
    assert!(wanted.is_empty() && again.is_empty());
    (LATER..=LATER + 50).for_each(|page| assert_eq!(load(&device, page), page + 1));
    assert_eq!(held.reads_of_others() - before, 51_u64.div_ceil(4), "neighbours come together");
    device.want_pages(range.0, range.1, Needed::Seldom, &mut wanted);
    assert!(wanted.is_empty(), "they are there");
    held.let_go();
    device.wait_for_pages().unwrap();
    device.want_pages(0, 2 * PAGES * PAGE_BYTES, Needed::Seldom, &mut wanted);
    assert!(wanted.is_empty(), "all are there");
}

/// S6, S9: pages move, and slots get other pages, between the moment at which the order of reading
/// was chosen and the read.
#[test]
fn s_6_pages_that_move_before_they_are_read_are_found() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let device = File::open(dir.path(), &eager()).unwrap();
    device.accept().unwrap();
    // What is kept for a copy makes the file longer than it should be.
    let pinned = PinnedSnapshot::open(dir.path(), None).unwrap();
    for epoch in 2..=3 {
        (0..PAGES).for_each(|page| store(&device, page, epoch * PAGES + page));
        snapshot(&device, epoch);
        device.settle().unwrap();
    }
    drop((pinned, device));
    let mut model: Vec<u64> = (0..PAGES).map(|page| 3 * PAGES + page).collect();
    let held = Held::new();
    let device = open(dir.path(), held.clone());
    held.wait_begun();
    device.accept().unwrap();
    for epoch in 4..=11 {
        // Few pages, into slots that others have left.
        for page in (LATER + epoch..PAGES).step_by(97) {
            model[page as usize] = epoch * PAGES + page;
            store(&device, page, model[page as usize]);
        }
        snapshot(&device, epoch);
        device.settle().unwrap();
    }
    let moved = device.use_of_files().unwrap().pages_moved;
    assert!(moved > 1000, "{moved} pages");
    // The slots that they had were cut off; now there are others in their place.
    device.grow_image(4 * PAGES * PAGE_BYTES).unwrap();
    let slots = device.use_of_files().unwrap().data_bytes / PAGE_BYTES;
    assert!(slots > 3 * PAGES, "{slots} slots");
    held.let_go();
    device.wait_for_pages().unwrap();
    check(&device, &model);
    snapshot(&device, 12);
    device.settle().unwrap();
    drop(device);
    check(&File::open(dir.path(), &eager()).unwrap(), &model);
}

/// S9, S15: stores, snapshots and readers while pages come, for several opens.
#[test]
fn s_15_stores_and_snapshots_beside_the_reading_are_kept() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let mut model: Vec<u64> = (1..=PAGES).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15;
    let mut epoch = 1;
    for round in 1..=12 {
        let device = open(dir.path(), Held::free());
        device.accept().unwrap();
        // Readers from outside look at pages that nobody stores to.
        let kept = model[..LATER as usize].to_vec();
        std::thread::scope(|scope| {
            for reader in 1..=2 {
                let (device, kept) = (&device, &kept);
                scope.spawn(move || {
                    let mut random = 0x9e37_79b9_7f4a_7c15 ^ (round * 10 + reader);
                    for _ in 0..300 {
                        let page = next(&mut random) % LATER;
                        assert_eq!(load(device, page), kept[page as usize]);
                    }
                });
            }
            for _ in 0..4 {
                epoch += 1;
                for _ in 0..50 {
                    let read = next(&mut random) % PAGES;
                    assert_eq!(load(&device, read), model[read as usize], "page {read}");
                    let page = LATER + next(&mut random) % (PAGES - LATER);
                    model[page as usize] = epoch * PAGES + page;
                    store(&device, page, model[page as usize]);
                }
                snapshot(&device, epoch);
            }
        });
        if round % 2 == 0 {
            device.wait_for_pages().unwrap();
            check(&device, &model);
        }
        device.settle().unwrap();
        drop(device);
        check(&File::open(dir.path(), &eager()).unwrap(), &model);
    }
}

/// Checks that the device says of a page that it cannot be read, and accepts nothing more, though
/// nobody has touched the page; others still come.
fn check_failed(device: &File, says: &str, is_damaged: bool) {
    let error = device.wait_for_pages().unwrap_err();
    assert!(error.to_string().contains(says), "{error}");
    assert_eq!(error.is_corrupt(), is_damaged, "{error}");
    let results = [
        ("wait_for_pages", device.wait_for_pages()),
        ("accept", device.accept()),
        ("log_sync", device.log_sync()),
        ("settle", device.settle()),
    ];
    for (call, result) in results {
        let Err(DeviceError::Sticky { first }) = result else { panic!("{call}: {result:?}") };
        assert!(first.contains(says), "{call}: {first}");
    }
    assert_eq!(load(device, PAGES - 1), PAGES);
    assert_eq!(load(device, 0), 1);
}

/// S12, S13: what nobody waits for is an error that names page and slot.
#[test]
fn s_12_a_damaged_page_that_nobody_touched_stops_the_device() {
    if is_impossible() {
        return;
    }
    for page in [3, LATER + 7] {
        let dir = fast_dir();
        filled(dir.path());
        damage(dir.path(), page);
        let device = open(dir.path(), Held::free());
        check_failed(&device, &format!("page {page}, in slot {}, has", slot_of(page)), true);
    }
}

/// The same of a read that fails, and of pages that were declared.
#[test]
fn s_12_a_page_that_cannot_be_read_and_nobody_touched_stops_the_device() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let says = |page: u64| format!("read 4096 bytes at offset {} of", slot_of(page) * PAGE_BYTES);
    let held = Held::free();
    held.bad_slot.store(slot_of(LATER), Ordering::Relaxed);
    let device = open(dir.path(), held);
    check_failed(&device, &says(LATER), false);
    drop(device);

    let held = Held::new();
    held.bad_slot.store(slot_of(LATER), Ordering::Relaxed);
    let device = open(dir.path(), held.clone());
    let mut wanted = vec![LATER];
    device.fetch_pages(&mut wanted);
    held.let_go();
    check_failed(&device, &says(LATER), false);
}

/// Runs a test of this file in a process of its own, which the environment tells apart.
fn alone(name: &str, variables: &[(&str, &str)]) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &format!("loading::{name}"), "--nocapture"]);
    child.envs(variables.iter().copied()).output().unwrap()
}

/// S12: a thread that touches a damaged page gets no zeros, whether another one is reading it then
/// or not.
#[test]
fn s_12_a_damaged_page_that_is_touched_ends_the_process() {
    if is_impossible() {
        return;
    }
    let name = "s_12_a_damaged_page_that_is_touched_ends_the_process";
    if let (Some(dir), Ok(page)) = (std::env::var_os("STORE"), std::env::var("PAGE")) {
        let held = Held::new();
        let device = open(Path::new(&dir), held.clone());
        std::thread::scope(|scope| {
            scope.spawn(|| println!("read {}", load(&device, page.parse().unwrap())));
            std::thread::yield_now();
            held.let_go();
        });
        return;
    }
    for page in [3, LATER + 7] {
        let dir = fast_dir();
        filled(dir.path());
        damage(dir.path(), page);
        let store = dir.path().to_str().unwrap();
        let ended = alone(name, &[("STORE", store), ("PAGE", &page.to_string())]);
        let said = String::from_utf8_lossy(&ended.stderr);
        let read = String::from_utf8_lossy(&ended.stdout);
        assert!(!ended.status.success() && !read.contains("read 0"), "{read}");
        let expected = format!("page {page}, in slot {}, has", slot_of(page));
        assert!(said.contains(&expected) && said.contains("this process ends"), "{said}");
    }
}

/// Names of the threads of this process, and what its descriptors are.
#[cfg(target_os = "linux")]
fn threads_and_files() -> (Vec<String>, Vec<String>) {
    let list = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap();
    let threads = list("task").map(|at| std::fs::read_to_string(at.unwrap().path().join("comm")));
    let files = list("fd").filter_map(|at| std::fs::read_link(at.unwrap().path()).ok());
    (
        threads.filter_map(|name| Some(name.ok()?.trim().to_string())).collect(),
        files.map(|target| target.display().to_string()).collect(),
    )
}

/// When all pages are there no thread and no descriptor is left; in a process of its own.
#[cfg(target_os = "linux")]
#[test]
fn at_the_end_nothing_is_left_of_it() {
    if is_impossible() {
        return;
    }
    if let Some(dir) = std::env::var_os("STORE") {
        let held = Held::new();
        let device = open(Path::new(&dir), held.clone());
        let is_of_faults = |name: &String| {
            name.contains("pmem-faults")
                || name.contains("pmem-pages")
                || name.contains("userfault")
        };
        // Some of the threads have their names then.
        assert_eq!(load(&device, LATER), LATER + 1);
        let (threads, files) = threads_and_files();
        assert!(threads.iter().filter(|name| is_of_faults(name)).count() >= 2, "{threads:?}");
        assert!(files.iter().any(is_of_faults), "{files:?}");
        held.let_go();
        device.wait_for_pages().unwrap();
        let (threads, files) = threads_and_files();
        assert!(!threads.iter().chain(&files).any(is_of_faults), "{threads:?} {files:?}");
        check(&device, &(1..=PAGES).collect::<Vec<_>>());
        println!("all is well");
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let ended =
        alone("at_the_end_nothing_is_left_of_it", &[("STORE", dir.path().to_str().unwrap())]);
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("all is well"), "{said} {}", String::from_utf8_lossy(&ended.stderr));
}

/// O-52: a child of `fork` has none of the threads: it lets go of the device, and never sees zeros.
#[test]
fn o_52_a_child_of_fork_has_no_pages_that_are_absent() {
    if is_impossible() {
        return;
    }
    let dir = fast_dir();
    filled(dir.path());
    let held = Held::new();
    let mut device = Some(open(dir.path(), held.clone()));
    let touches = || u8::from(load(device.as_ref().unwrap(), LATER) != LATER + 1);
    let error = in_fork(touches).unwrap_err();
    assert!(error.to_string().contains("it ended"), "{error}");
    assert_eq!(in_fork(|| (drop(device.take()), 0).1).unwrap(), 0);
    let device = device.unwrap();
    held.let_go();
    device.wait_for_pages().unwrap();
    assert_eq!(in_fork(|| u8::from(load(&device, LATER) != LATER + 1)).unwrap(), 0);
    check(&device, &(1..=PAGES).collect::<Vec<_>>());
}

/// Small stores are read by the open, and so are those that are only looked at.
#[test]
fn small_stores_are_read_by_the_open() {
    let dir = fast_dir();
    filled(dir.path());
    let min = Some(FileOptions::BACKGROUND_LOAD_BYTES);
    let small = FileOptions { background_load_bytes_min: min, ..eager() };
    let looking = FileOptions { background_load_bytes_min: Some(0), read_only: true, ..eager() };
    for options in [small, looking] {
        let held = Held::new();
        let device =
            File::open(dir.path(), &FileOptions { hook: Some(held.clone()), ..options }).unwrap();
        assert!(!device.description().note.contains("after the open"));
        assert!(held.reads_of_others() >= PAGES / 1024, "what is read is read");
        device.wait_for_pages().unwrap();
        check(&device, &(1..=PAGES).collect::<Vec<_>>());
    }
}

/// S24: where the system gives no descriptor for it, the open reads all pages, and the device says
/// so; in a process of its own, which may have so many descriptors as the files need.
#[cfg(target_os = "linux")]
#[test]
fn s_24_without_userfaultfd_the_open_reads_all_pages() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Some(dir) = std::env::var_os("STORE") else {
        let (dir, name) = (fast_dir(), "s_24_without_userfaultfd_the_open_reads_all_pages");
        filled(dir.path());
        let ended = alone(name, &[("STORE", dir.path().to_str().unwrap())]);
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(said.contains("all is well"), "{said} {}", String::from_utf8_lossy(&ended.stderr));
        return;
    };
    let options = FileOptions { background_load_bytes_min: Some(0), ..eager() };
    let mut notes = Vec::new();
    for most in 3..1000 {
        let limit = Rlimit { current: Some(most), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, limit).unwrap();
        let Ok(device) = File::open(Path::new(&dir), &options) else { continue };
        let note = device.description().note;
        check(&device, &(1..=PAGES).collect::<Vec<_>>());
        notes.push(note.clone());
        if note.contains("after the open") {
            break;
        }
        assert!(note.contains("read by the open, because this system has no"), "{note}");
        assert!(!device.has_absent_pages());
    }
    assert!(notes.len() > 1 && notes[notes.len() - 1].contains("after the open"), "{notes:?}");
    println!("all is well");
}
