//! What no test from outside can bring about: a page that moves while it is read, and a device that
//! goes while its pages come.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::load::Told;
use super::server::Shared;
use super::{Loading, Residency};
use crate::epoch_number::EpochNumber;
use crate::failure::lock;
use crate::file::disk::{DiskCall, DiskFile, DiskHook, Outcome};
use crate::file::format::Entry;
use crate::file::open::{Found, open_state};
use crate::file::{File, FileOptions};
use crate::memory::{DirtyPages, Mapping, PAGE_BYTES, Pages};
use crate::{Device, PortState};

const PAGES: u64 = 4;
const PAGE: u64 = 2;

/// When a page was read, it has got another slot, and the slot that was read holds another page.
#[derive(Debug, Default)]
struct Moving(OnceLock<(Arc<Shared>, Entry)>);

impl DiskHook for Moving {
    fn before(&self, _: &DiskCall<'_>) -> Outcome {
        Outcome::Proceed
    }

    fn after_read(&self, file: DiskFile, offset: u64, bytes: &mut [u8]) {
        let Some((shared, entry)) = self.0.get() else { return };
        if file == DiskFile::Data && offset != entry.slot * PAGE_BYTES {
            shared.states.saved(entry);
            bytes.fill(0x5a);
        }
    }
}

fn is_impossible() -> bool {
    if !super::memory_can_be_limited() {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
    }
    !super::memory_can_be_limited()
}

/// A store whose page p holds p + 1.
fn fill(dir: &Path, options: &FileOptions, pages: u64) {
    let device = File::open(dir, options).unwrap();
    device.accept().unwrap();
    device.grow_image(pages * PAGE_BYTES).unwrap();
    for page in 0..pages {
        // SAFETY: the test owns the device.
        unsafe { device.store_u64(&mut PortState::default(), page * PAGE_BYTES, page + 1) };
    }
    device.snapshot_part(0, 1).unwrap();
    device.snapshot_commit(EpochNumber(1)).unwrap();
    device.settle().unwrap();
}

/// S6, S9: such a page is read again, from its new slot.
#[test]
fn s_6_a_page_that_moves_while_it_is_read_is_read_again() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let hook = Arc::new(Moving::default());
    let options = FileOptions { hook: Some(hook.clone()), ..FileOptions::new(1 << 20, 1 << 20) };
    fill(dir.path(), &options, PAGES);

    let Found { files, state, .. } = open_state(dir.path(), &options).unwrap();
    let image = Arc::new(Mapping::anonymous(PAGES * PAGE_BYTES, Pages::Small).unwrap());
    let dirty = Arc::new(DirtyPages::new(Arc::clone(&image)));
    let bytes = PAGES * PAGE_BYTES;
    // SAFETY: it is dropped before the mapping, of which nothing was touched.
    let residency =
        unsafe { Residency::over(&image, &files, &state.table, &dirty, bytes, 1 << 24) }.unwrap();
    let entry = state.table.entry(PAGE).unwrap();
    let mut content = vec![0; PAGE_BYTES as usize];
    let mut to_write = std::fs::OpenOptions::new();
    let data = to_write.read(true).write(true).open(dir.path().join("data")).unwrap();
    data.read_exact_at(&mut content, entry.slot * PAGE_BYTES).unwrap();
    let slot = data.metadata().unwrap().len().div_ceil(PAGE_BYTES);
    data.write_all_at(&content, slot * PAGE_BYTES).unwrap();
    let moved = Entry { slot, ..entry };
    hook.0.set((Arc::clone(&residency.shared), moved)).unwrap();
    assert_eq!(image.load_u64(PAGE * PAGE_BYTES), PAGE + 1);
    assert_eq!(residency.shared.states.place(PAGE), Some(moved));
    drop(residency);
}

/// The first read in the background ends when the device has begun to go.
#[derive(Debug, Default)]
struct Going {
    told: OnceLock<Arc<Told>>,
    reads: AtomicU64,
}

impl DiskHook for Going {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let is_background = std::thread::current().name() == Some("pmem-load");
        if is_background && call.file == DiskFile::Data {
            self.reads.fetch_add(1, Ordering::Relaxed);
            while !self.told.get().is_some_and(|told| told.is_over()) {
                std::thread::yield_now();
            }
        }
        Outcome::Proceed
    }
}

/// What goes while its pages come waits for one read, and not for all.
#[test]
fn a_device_that_goes_does_not_read_on() {
    const MANY: u64 = 2000;
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let hook = Arc::new(Going::default());
    let options = FileOptions { hook: Some(hook.clone()), ..FileOptions::new(16 << 20, 1 << 20) };
    fill(dir.path(), &options, MANY);
    let Found { files, state, .. } = open_state(dir.path(), &options).unwrap();
    let image = Mapping::anonymous(MANY * PAGE_BYTES, Pages::Small).unwrap();
    let (bytes, health) = (MANY * PAGE_BYTES, Arc::default());
    // SAFETY: it is dropped before the mapping, of which nothing was touched.
    let loading = unsafe { Loading::begin(&image, &files, &state.table, bytes, &health) }.unwrap();
    hook.told.set(Arc::clone(&loading.told)).unwrap();
    drop(loading);
    assert!(hook.reads.load(Ordering::Relaxed) <= 1);
}

/// The pages of a store, some of which are in memory.
struct Limited {
    residency: Residency,
    /// Goes after what brings its pages.
    image: Arc<Mapping>,
}

impl Limited {
    /// Those of [filled](fill) files.
    fn open(dir: &Path, options: &FileOptions, pages: u64, limit_bytes: u64) -> Self {
        let Found { files, state, .. } = open_state(dir, options).unwrap();
        let bytes = pages * PAGE_BYTES;
        let image = Arc::new(Mapping::anonymous(bytes, Pages::Small).unwrap());
        let dirty = Arc::new(DirtyPages::new(Arc::clone(&image)));
        // SAFETY: it is dropped before the mapping, of which nothing was touched.
        let residency =
            unsafe { Residency::over(&image, &files, &state.table, &dirty, bytes, limit_bytes) };
        Self { residency: residency.unwrap(), image }
    }

    /// Touches a page, and waits until all that is read for that is there.
    fn touch(&self, page: u64) {
        assert_eq!(self.image.load_u64(page * PAGE_BYTES), page + 1);
        while !lock(&self.residency.shared.queue).is_idle() {
            std::thread::yield_now();
        }
    }

    /// Touches of pages that were absent, and pages that were guessed.
    fn counts(&self) -> (u64, u64) {
        let used = self.residency.stats();
        (used.faults, used.guessed)
    }

    fn is_present(&self, page: u64) -> bool {
        self.residency.shared.states.is_present(page)
    }
}

/// Pages of the tests of reading ahead, and a limit that all of them fit into.
const SCANNED: u64 = 2000;
const AMPLE: u64 = 16 << 20;

#[test]
fn a_scan_waits_for_few_of_its_pages() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = FileOptions::new(16 << 20, 1 << 20);
    fill(dir.path(), &options, SCANNED);
    let store = Limited::open(dir.path(), &options, SCANNED, AMPLE);
    (0..SCANNED).for_each(|page| store.touch(page));
    let (faults, guessed) = store.counts();
    assert_eq!(faults + guessed, SCANNED, "each page is read once");
    assert!(faults < SCANNED / 25, "{faults} touches of {SCANNED} were waited for");
}

#[test]
fn touches_at_random_read_nothing_ahead() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = FileOptions::new(16 << 20, 1 << 20);
    fill(dir.path(), &options, SCANNED);
    let store = Limited::open(dir.path(), &options, SCANNED, AMPLE);
    // Each page once; none comes right behind the one before.
    (0..SCANNED).for_each(|nth| store.touch(nth * 773 % SCANNED));
    assert_eq!(store.counts(), (SCANNED, 0));
}

/// Where pages cannot go, no more come than are touched.
#[test]
fn nothing_is_read_ahead_where_there_is_no_room() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = FileOptions::new(16 << 20, 1 << 20);
    fill(dir.path(), &options, SCANNED);
    let store = Limited::open(dir.path(), &options, SCANNED, 1 << 20);
    let least = store.residency.stats().pages_bytes / PAGE_BYTES;
    // All of them stay, as if a snapshot saved them.
    (0..SCANNED).for_each(|page| store.residency.shared.states.saving(page));
    for page in 0..SCANNED / 2 {
        store.touch(page);
        assert!(page < 2 * least || !store.is_present(page + 1), "page {page} of {least}");
    }
    assert!(store.counts().1 > 0, "as long as there was room");
}

/// S12: a page that cannot be read ends the process when it is touched, and not before.
#[test]
fn s_12_a_guess_that_cannot_be_read_does_no_harm() {
    const DAMAGED: u64 = 60;
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = FileOptions::new(16 << 20, 1 << 20);
    fill(dir.path(), &options, SCANNED);
    let store = Limited::open(dir.path(), &options, SCANNED, AMPLE);
    let at = store.residency.shared.states.place(DAMAGED).unwrap().slot * PAGE_BYTES;
    let mut to_write = std::fs::OpenOptions::new();
    let data = to_write.write(true).open(dir.path().join("data")).unwrap();
    data.write_all_at(&[0x5a; 100], at).unwrap();
    (0..DAMAGED).for_each(|page| store.touch(page));
    assert!(store.is_present(DAMAGED - 1) && store.is_present(DAMAGED + 1));
    assert!(!store.is_present(DAMAGED), "it was guessed, and nothing has come of it");
    (DAMAGED + 1..SCANNED).for_each(|page| store.touch(page));
}

/// Forbids this thread `userfaultfd`, as containers do.
#[cfg(all(target_os = "linux", not(miri)))]
fn forbid_page_faults() {
    let step = |code: u32, if_so: u8, if_not: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: if_so,
        jf: if_not,
        k,
    };
    let load = step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0);
    let is_it = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let is_it = step(is_it, 0, 1, libc::SYS_userfaultfd as u32);
    let answer = |k| step(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let refuse = answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    let mut steps = [load, is_it, refuse, answer(libc::SECCOMP_RET_ALLOW)];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    let (yes, no): (libc::c_ulong, libc::c_ulong) = (1, 0);
    let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: a program of so many steps, which the system copies; it is for this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, no, no, no), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}

/// What the system does not give is refused before there is a database.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_refused_creation_leaves_nothing() {
    let room = tempfile::tempdir().unwrap();
    let dir = room.path().join("store");
    let limited =
        FileOptions { memory_limit_bytes: Some(16 << 20), ..FileOptions::new(1 << 20, 1 << 20) };
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| {
            forbid_page_faults();
            File::open(&dir, &limited).unwrap_err()
        });
        let refused = refused.join().unwrap();
        assert!(refused.to_string().contains("needs `userfaultfd`"), "{refused}");
    });
    assert!(!dir.exists(), "a refused limit of memory leaves a database");
    let too_large = FileOptions::new(1 << 50, 1 << 20);
    File::open(&dir, &too_large).unwrap_err();
    assert!(!dir.exists(), "more than the address space leaves a database");
    File::open(&dir, &FileOptions::new(1 << 20, 1 << 20)).unwrap();
}
