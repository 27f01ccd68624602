//! Opening again: what was saved is there, what was not is no longer there, and nothing foreign is
//! touched.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pmem::{
    Device, DeviceError, DiskCall, DiskHook, EpochNumber, File, FileOptions, Outcome, PAGE_BYTES,
    PortState, compact,
};

use crate::refused::contents;
use crate::scenario::{
    EPOCHS, LOG_LIMIT_BYTES, Progress, check, fast_dir, image_bytes, open, options, run,
};

/// A directory with the whole scenario in it, as a killed process leaves it.
pub(crate) fn filled() -> tempfile::TempDir {
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    run(&device, None, &mut Progress::default()).unwrap();
    killed(dir.path(), &device)
}

/// The files of a device that does not get to its end, with all its snapshots written.
pub(crate) fn killed(dir: &Path, device: &File) -> tempfile::TempDir {
    device.settle().unwrap();
    let copy = fast_dir();
    for file in fs::read_dir(dir).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

pub(crate) fn edit(dir: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(dir.join(name)).unwrap();
    change(&mut bytes);
    fs::write(dir.join(name), bytes).unwrap();
}

#[test]
fn a_snapshot_survives_and_later_stores_do_not() {
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    run(&device, None, &mut Progress::default()).unwrap();
    let mut port = PortState::default();
    // SAFETY: this test owns the device.
    unsafe { device.store_u64(&mut port, 0, 12345) };
    device.flush(&mut port, 0, 8);
    device.fence(&mut port);
    drop(device);
    for _ in 0..3 {
        assert_eq!(check(&open(dir.path()).unwrap(), "reopened"), EPOCHS.last().copied());
    }
}

#[test]
fn dropping_the_device_finishes_what_was_committed() {
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    device.accept().unwrap();
    device.grow_image(image_bytes(3)).unwrap();
    device.snapshot_part(0, 1).unwrap();
    device.snapshot_commit(EpochNumber(3)).unwrap();
    drop(device);
    assert_eq!(open(dir.path()).unwrap().snapshot_epoch(), Some(EpochNumber(3)));
}

/// Makes three snapshots, of most pages, of all and of a few, and looks for them after a reopen.
fn large_snapshots(dir: &Path, hook: Option<Arc<dyn DiskHook>>) {
    const PAGES: u64 = 20 << 20 >> 12;
    let changed: [fn(&u64) -> bool; 3] = [|page| page % 7 != 3, |_| true, |page| page % 999 == 5];
    let options = FileOptions { hook, ..FileOptions::new(PAGES * PAGE_BYTES, LOG_LIMIT_BYTES) };
    let device = File::open(dir, &options).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    let mut expected = vec![0; PAGES as usize];
    let mut port = PortState::default();
    for ((epoch, changed), parts) in (1..).zip(changed).zip([4, 1, 3]) {
        for page in (0..PAGES).filter(changed) {
            expected[page as usize] = page * 10 + epoch;
            // SAFETY: this test owns the device, and no part is being saved.
            unsafe { device.store_u64(&mut port, page * PAGE_BYTES + 8, page * 10 + epoch) };
        }
        std::thread::scope(|scope| {
            for part in 0..parts {
                let device = &device;
                scope.spawn(move || device.snapshot_part(part, parts).unwrap());
            }
        });
        device.snapshot_commit(EpochNumber(epoch)).unwrap();
        device.settle().unwrap();
        // After the second one every page has another slot, and after the third some have one of
        // those that the first had.
        check_large(killed(dir, &device).path(), &options, epoch, &expected);
    }
    drop(device);
    check_large(dir, &options, 3, &expected);
}

fn check_large(dir: &Path, options: &FileOptions, epoch: u64, expected: &[u64]) {
    let device = File::open(dir, options).unwrap();
    assert_eq!(device.snapshot_epoch(), Some(EpochNumber(epoch)));
    for (page, expected) in (0..).zip(expected) {
        let found = device.image().load_u64(page * PAGE_BYTES + 8);
        assert_eq!(found, *expected, "page {page} of snapshot {epoch}");
    }
}

/// In memory and on a disk, which writes long runs with direct I/O; and where writes end
/// early, so that their rest is not aligned to anything.
#[test]
fn a_large_snapshot_takes_several_pieces() {
    #[derive(Debug)]
    struct Shortened;
    impl DiskHook for Shortened {
        fn before(&self, _: &DiskCall<'_>) -> Outcome {
            Outcome::Short(300_001)
        }
    }
    for dir in [fast_dir(), tempfile::tempdir().unwrap()] {
        large_snapshots(dir.path(), None);
    }
    large_snapshots(tempfile::tempdir().unwrap().path(), Some(Arc::new(Shortened)));
}

#[test]
fn o_52_a_second_open_is_refused() {
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(error.is_locked(), "{error}");
    assert!(error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
    drop(device);
    open(dir.path()).unwrap();
}

#[test]
fn without_create_a_missing_database_is_an_error() {
    let dir = fast_dir();
    let options = FileOptions { create: false, ..options(None) };
    for path in [dir.path().to_path_buf(), dir.path().join("nowhere")] {
        let error = File::open(&path, &options).unwrap_err();
        assert!(matches!(error, DeviceError::Missing { .. }), "{error}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was created");
    drop(open(dir.path()).unwrap());
    File::open(dir.path(), &options).unwrap();
}

#[test]
fn a_database_whose_creation_was_cut_off_is_none_yet() {
    let only_open = FileOptions { create: false, ..options(None) };
    let files = ["meta", "data", "table", "log"];
    for there in 0..=files.len() {
        let dir = fast_dir();
        for name in &files[..there] {
            fs::write(dir.path().join(name), []).unwrap();
        }
        let error = File::open(dir.path(), &only_open).unwrap_err();
        assert!(matches!(error, DeviceError::Missing { .. }), "{there} files: {error}");
        drop(open(dir.path()).unwrap());
        File::open(dir.path(), &only_open).unwrap();
    }
    let dir = filled();
    fs::remove_file(dir.path().join("table")).unwrap();
    let error = File::open(dir.path(), &only_open).unwrap_err();
    assert!(error.to_string().contains("table"), "a lost file is not a missing store: {error}");
}

#[test]
fn o_54_an_existing_database_larger_than_the_limits_is_not_opened() {
    let dir = filled();
    for options in [FileOptions::new(PAGE_BYTES, 1 << 20), FileOptions::new(1 << 20, PAGE_BYTES)] {
        assert!(File::open(dir.path(), &options).unwrap_err().is_limit());
    }
}

/// Damages that no power cut can cause: each is refused, with a text that says what is wrong.
#[test]
fn o_54_damaged_and_foreign_files_are_refused() {
    type Damage = (&'static str, &'static str, fn(&mut Vec<u8>));
    let damages: [Damage; 17] = [
        ("meta", "magic number", |b| b.fill(7)),
        ("meta", "there are pages of a database", |b| b.clear()),
        ("meta", "truncated", |b| b.truncate(2 * 4096)),
        ("meta", "a slot is missing", |b| b[..128].fill(0)),
        ("meta", "a slot is damaged", |b| b[30] ^= 1),
        ("meta", "a slot is damaged", |b| b[4096 + 30] ^= 1),
        ("meta", "do not belong together", |b| b.copy_within(0..4096, 4096)),
        ("data", "were saved", |b| b.truncate(5000)),
        ("data", "were saved", |b| b.truncate(4096)),
        ("data", "its head is empty", |b| b.clear()),
        ("data", "its head: its checksum", |b| b[40] ^= 1),
        ("data", "page 0, in slot", |b| b[4096 + 7] ^= 1),
        ("table", "its head is empty", |b| b.fill(0)),
        ("table", "magic number", |b| b[0] ^= 1),
        ("table", "its head: its checksum", |b| b[30] ^= 1),
        ("table", "truncated", |b| b.truncate(4100)),
        ("table", "its checksum is", |b| b[4096 + 13] ^= 1),
    ];
    for (name, text, damage) in damages {
        let dir = filled();
        if (name, text) == ("data", "page 0, in slot") {
            // Whatever slot it has now.
            let slot = entries(dir.path()).into_iter().rev().find(|entry| entry.0 == 0).unwrap().1;
            edit(dir.path(), name, |bytes| bytes[slot as usize * 4096 + 7] ^= 1);
        } else {
            edit(dir.path(), name, damage);
        }
        let before = contents(dir.path());
        let error = open(dir.path()).unwrap_err();
        assert!(error.to_string().contains(text), "{name}: wanted {text:?}, got: {error}");
        assert!(error.is_corrupt(), "{error}");
        assert!(error.to_string().contains(&format!("/{name} ")), "{name}: {error}");
        assert!(before == contents(dir.path()), "{name}: a refused open changes nothing");
    }
}

/// A log that is shorter than the newest snapshot says is told to the caller, who knows which
/// epochs are whole; accepted, it is as long again. It is not compacted before.
#[test]
fn o_54_a_log_that_was_cut_off_is_told() {
    let dir = filled();
    assert_eq!(open(dir.path()).unwrap().lost_log(), None);
    let log = dir.path().join("log");
    let bytes = fs::metadata(&log).unwrap().len();
    fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(4096).unwrap();
    let before = contents(dir.path());
    let error = compact(dir.path(), None, &mut |_, _| {}).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("/log "), "{error}");
    let device = open(dir.path()).unwrap();
    assert!(before == contents(dir.path()), "neither changed anything");
    assert!(device.lost_log().unwrap().contains("truncated?"));
    device.accept().unwrap();
    assert_eq!(fs::metadata(&log).unwrap().len(), bytes);
}

/// Offset, in `meta`, of the newest root.
fn newest_root(meta: &[u8]) -> usize {
    let sequence = |at: usize| u64::from_le_bytes(*meta[at + 24..].first_chunk().unwrap());
    if sequence(0) > sequence(4096) { 0 } else { 4096 }
}

/// Page and slot of each entry that counts, in the order of the file.
fn entries(dir: &Path) -> Vec<(u64, u64)> {
    let meta = fs::read(dir.join("meta")).unwrap();
    let root = newest_root(&meta);
    let word = |at: usize| u64::from_le_bytes(*meta[root + at..].first_chunk().unwrap()) as usize;
    let table = fs::read(dir.join("table")).unwrap();
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..6].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let entries = table[word(64)..][..word(72) * 16].chunks(16);
    entries.map(|entry| (number(&entry[..6]), number(&entry[6..12]))).collect()
}

/// Changes the last entry of the table, and makes all checksums right.
fn change_last_entry(dir: &Path, change: impl FnOnce(&mut [u8])) {
    let mut meta = fs::read(dir.join("meta")).unwrap();
    let root = newest_root(&meta);
    let word = |at: usize| u64::from_le_bytes(*meta[root + at..].first_chunk().unwrap()) as usize;
    let (start, count) = (word(64), word(72));
    let mut table = fs::read(dir.join("table")).unwrap();
    let entries = &mut table[start..][..count * 16];
    change(&mut entries[(count - 1) * 16..]);
    let crc = crc32fast::hash(entries);
    fs::write(dir.join("table"), table).unwrap();
    meta[root + 80..root + 84].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32fast::hash(&meta[root..root + 124]);
    meta[root + 124..root + 128].copy_from_slice(&crc.to_le_bytes());
    fs::write(dir.join("meta"), meta).unwrap();
}

/// O-54: an entry leads to a page of the image and to a slot of the file, whatever it says.
#[test]
fn o_54_an_entry_stays_within_its_files() {
    type Change = fn(&mut [u8]);
    let changes: [(&str, Change); 3] = [
        ("page 11 of an image of 11", |entry| entry[0] = 11),
        ("slot 0 of", |entry| entry[6..12].fill(0)),
        ("slot 65535 of", |entry| entry[6..8].fill(255)),
    ];
    for (text, change) in changes {
        let dir = filled();
        change_last_entry(dir.path(), change);
        let error = open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("/table ") && error.contains(text), "{text}: {error}");
    }
}

/// S20: free slots follow from the table, so two pages in one slot are damage.
#[test]
fn s_20_two_pages_of_one_slot_are_refused() {
    let dir = filled();
    let entries = entries(dir.path());
    let (last, _) = *entries.last().unwrap();
    let (page, slot) = *entries.iter().rev().find(|(page, _)| *page != last).unwrap();
    change_last_entry(dir.path(), |entry| entry[6..12].copy_from_slice(&slot.to_le_bytes()[..6]));
    let error = open(dir.path()).unwrap_err().to_string();
    let wanted = format!("page {} and another one have slot {slot}", page.max(last));
    assert!(error.contains("/table ") && error.contains(&wanted), "{wanted}: {error}");
}

/// S13: a disk that returns another page is found out, though that page is whole.
#[test]
fn s_13_a_page_of_another_slot_is_refused() {
    let dir = filled();
    let entries = entries(dir.path());
    let slot = |page: u64| entries.iter().rev().find(|entry| entry.0 == page).unwrap().1 as usize;
    edit(dir.path(), "data", |bytes| {
        bytes.copy_within(slot(1) * 4096..(slot(1) + 1) * 4096, slot(0) * 4096);
    });
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("/data ") && error.contains("page 0, in slot"), "{error}");
}

/// O-59: the file that does not belong to the others is the one to put back.
#[test]
fn o_59_the_stranger_among_the_files_is_named() {
    for name in ["table", "data"] {
        let (dir, other) = (filled(), filled());
        fs::copy(other.path().join(name), dir.path().join(name)).unwrap();
        let error = open(dir.path()).unwrap_err().to_string();
        let wanted = format!("/{name} ");
        assert!(error.contains(&wanted) && error.contains("than meta"), "{name}: {error}");
    }
}

/// O-59, S22: files of two databases, or of two moments of one, do not open as one.
#[test]
fn o_59_mixed_files_are_refused() {
    let (one, other) = (filled(), filled());
    fs::copy(other.path().join("table"), one.path().join("table")).unwrap();
    let error = open(one.path()).unwrap_err();
    assert!(error.to_string().contains("another database"), "{error}");

    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGE_BYTES).unwrap();
    let mut metas = vec![fs::read(dir.path().join("meta")).unwrap()];
    for epoch in 0..4 {
        // SAFETY: this test owns the device.
        unsafe { device.store_u64(&mut PortState::default(), 0, epoch) };
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(epoch)).unwrap();
        device.settle().unwrap();
        metas.push(fs::read(dir.path().join("meta")).unwrap());
    }
    drop(device);
    for (sequence, meta) in metas.into_iter().enumerate().take(3) {
        fs::write(dir.path().join("meta"), meta).unwrap();
        let error = open(dir.path()).unwrap_err().to_string();
        let wanted = format!("meta is corrupt: it names snapshot {sequence}");
        assert!(error.contains(&wanted), "{error}");
    }
}

/// The table is written anew where too many entries were replaced, in turn behind and before the
/// one that counts; and the file does not grow for ever.
#[test]
fn the_table_is_written_anew_now_and_then() {
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    device.accept().unwrap();
    device.grow_image(64 * PAGE_BYTES).unwrap();
    let mut starts = Vec::new();
    for epoch in 1..=400 {
        for page in 0..64 {
            // SAFETY: this test owns the device.
            unsafe {
                device.store_u64(&mut PortState::default(), page * PAGE_BYTES, epoch * 64 + page);
            }
        }
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(epoch)).unwrap();
        device.settle().unwrap();
        let meta = fs::read(dir.path().join("meta")).unwrap();
        let start = *meta[newest_root(&meta) + 64..].first_chunk().unwrap();
        starts.push(u64::from_le_bytes(start));
        if epoch % 37 == 0 {
            let copy = killed(dir.path(), &device);
            let copy = open(copy.path()).unwrap();
            let pages = (0..64).map(|page| copy.image().load_u64(page * PAGE_BYTES));
            assert!(pages.eq((0..64).map(|page| epoch * 64 + page)), "snapshot {epoch}");
        }
    }
    starts.dedup();
    assert!(starts.len() > 4 && starts.iter().any(|start| *start > 4096), "{starts:?}");
    let len = fs::metadata(dir.path().join("table")).unwrap().len();
    assert!(len < 512 << 10, "{len} bytes for 64 pages");
    let len = fs::metadata(dir.path().join("data")).unwrap().len();
    assert!(len <= (2 * 64 + 64 + 1) * PAGE_BYTES, "{len} bytes for 64 pages");
}
