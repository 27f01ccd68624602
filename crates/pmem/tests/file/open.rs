//! Opening again: what was saved is there, what was not is no longer there, and nothing foreign is
//! touched.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pmem::{
    Device, DeviceError, DiskCall, DiskHook, EpochNumber, File, FileOptions, Outcome, PAGE_BYTES,
    PortState,
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

/// Nothing is applied at an open after a close, so what the journal holds does not matter then.
#[test]
fn after_a_close_the_image_is_whole_without_the_journal() {
    let dir = fast_dir();
    run(&open(dir.path()).unwrap(), None, &mut Progress::default()).unwrap();
    edit(dir.path(), "journal", |bytes| bytes[2 * 4096 + 5] ^= 1);
    assert_eq!(check(&open(dir.path()).unwrap(), "closed"), EPOCHS.last().copied());
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
        // After the second one the journal has every page. An open that finds a torn image reads
        // it in several pieces.
        let copy = killed(dir, &device);
        edit(copy.path(), "image", |image| image[5 * 4096..6 * 4096].fill(0xee));
        check_large(copy.path(), &options, epoch, &expected);
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
    let files = ["meta", "image", "journal", "log"];
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
    fs::remove_file(dir.path().join("journal")).unwrap();
    let error = File::open(dir.path(), &only_open).unwrap_err();
    assert!(error.to_string().contains("journal"), "a lost file is not a missing store: {error}");
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
    let damages: [Damage; 14] = [
        ("meta", "magic number", |b| b.fill(7)),
        ("meta", "there is a journal", |b| b.clear()),
        ("meta", "truncated", |b| b.truncate(2 * 4096)),
        ("meta", "missing or damaged", |b| b[..128].fill(0)),
        ("meta", "do not belong together", |b| b.copy_within(0..4096, 4096)),
        ("image", "were saved", |b| b.truncate(5000)),
        ("image", "were saved", |b| b.clear()),
        ("image", "its digest is", |b| b[9 * 4096 + 7] ^= 1),
        ("log", "were saved: truncated? Restore it, or accept the loss", |b| b.truncate(4096)),
        ("journal", "empty, but something was saved", |b| b.fill(0)),
        ("journal", "magic number", |b| b[0] ^= 1),
        ("journal", "header checksum", |b| b[30] ^= 1),
        ("journal", "truncated", |b| b.truncate(6000)),
        ("journal", "its 12 pages of 11", |b| {
            b[48..56].copy_from_slice(&12u64.to_le_bytes());
            commit_header(b);
            b.resize(b.len() + 20 * 4096, 0);
        }),
    ];
    for (name, text, damage) in damages {
        let dir = filled();
        edit(dir.path(), name, damage);
        let before = contents(dir.path());
        let error = open(dir.path()).unwrap_err();
        assert!(error.to_string().contains(text), "{name}: wanted {text:?}, got: {error}");
        assert!(error.is_corrupt(), "{error}");
        let may_be_given_up = error.to_string().contains("--accept-loss-after 20");
        assert_eq!(may_be_given_up, name == "log", "{error}");
        assert!(error.to_string().contains(&format!("/{name} ")), "{name}: {error}");
        assert!(before == contents(dir.path()), "{name}: a refused open changes nothing");
    }
}

/// Makes the checksum of the journal's header right.
fn commit_header(journal: &mut [u8]) {
    let crc = crc32fast::hash(&journal[..124]);
    journal[124..128].copy_from_slice(&crc.to_le_bytes());
}

/// O-54: a journal that is needed, because the image is torn, is not copied beyond the image.
#[test]
fn o_54_a_journal_stays_within_its_image() {
    for (page, works) in [(11, false), (10, true)] {
        let dir = filled();
        edit(dir.path(), "image", |b| b[10 * 4096..].fill(0xee));
        edit(dir.path(), "journal", |b| {
            let pages = u64::from_le_bytes(*b[48..].first_chunk().unwrap()) as usize;
            let last = 4096 + (pages - 1) * 16;
            assert_eq!(b[last..last + 8], 10u64.to_le_bytes(), "the last page of the image");
            b[last..last + 8].copy_from_slice(&u64::to_le_bytes(page));
            let crc = crc32fast::hash(&b[4096..][..pages * 16]);
            b[56..60].copy_from_slice(&crc.to_le_bytes());
            commit_header(b);
        });
        let found = open(dir.path()).map(|_| ()).map_err(|error| error.to_string());
        match found {
            Ok(()) => assert!(works),
            Err(what) => assert!(!works && what.contains("page 11 of an image of 11"), "{what}"),
        }
    }
}

/// The slots of `meta` have the fields of the journal's header, but no pages.
#[test]
fn the_headers_of_meta_name_no_pages() {
    let dir = filled();
    let meta = fs::read(dir.path().join("meta")).unwrap();
    for slot in [0, 4096] {
        assert_eq!(meta[slot..slot + 8], *b"NVCRMETA");
        assert_eq!(meta[slot + 48..slot + 64], [0; 16], "pages, their checksum, and zeros");
    }
}

/// O-59: the file that does not belong to the two others is the one to put back.
#[test]
fn o_59_the_stranger_among_the_files_is_named() {
    for (name, others) in [("journal", "than meta"), ("meta", "than journal and image")] {
        let dir = filled();
        let other = fast_dir();
        let device = open(other.path()).unwrap();
        device.accept().unwrap();
        device.grow_image(PAGE_BYTES).unwrap();
        // SAFETY: this test owns the device.
        unsafe { device.store_u64(&mut PortState::default(), 0, 1) };
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(1)).unwrap();
        let other = killed(other.path(), &device);
        fs::copy(other.path().join(name), dir.path().join(name)).unwrap();
        let error = open(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("/{name} ")) && error.contains(others), "{name}: {error}");
    }
}

/// O-59: files of two databases, or of two moments of one, do not open as one.
#[test]
fn o_59_mixed_files_are_refused() {
    let (one, other) = (filled(), filled());
    fs::copy(other.path().join("journal"), one.path().join("journal")).unwrap();
    let error = open(one.path()).unwrap_err();
    assert!(error.to_string().contains("another database"), "{error}");

    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGE_BYTES).unwrap();
    let old = fs::read(dir.path().join("meta")).unwrap();
    for epoch in 0..4 {
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(epoch)).unwrap();
    }
    drop(device);
    fs::write(dir.path().join("meta"), old).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("meta is corrupt: it names snapshot 0"), "{error}");
}

/// A torn index must not send a page to a wrong place, even if the page itself is whole.
#[test]
fn a_torn_index_is_a_torn_journal() {
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    device.accept().unwrap();
    device.grow_image(2 * PAGE_BYTES).unwrap();
    let mut port = PortState::default();
    let mut images = Vec::new();
    for epoch in [1, 2] {
        // SAFETY: this test owns the device.
        unsafe { device.store_u64(&mut port, 0, 76 + epoch) };
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(epoch)).unwrap();
        device.settle().unwrap();
        images.push(fs::read(dir.path().join("image")).unwrap());
    }
    let dir = killed(dir.path(), &device);
    fs::write(dir.path().join("image"), &images[0]).unwrap();
    edit(dir.path(), "journal", |bytes| bytes[4096] ^= 1);
    let device = open(dir.path()).unwrap();
    assert_eq!(device.snapshot_epoch(), Some(EpochNumber(1)));
    assert_eq!((device.image().load_u64(0), device.image().load_u64(PAGE_BYTES)), (77, 0));
}

/// A slot that was torn on a device worse than the model: the journal still holds that snapshot.
#[test]
fn a_torn_slot_is_harmless_while_the_journal_is_whole() {
    // The journal holds snapshot 5, and slot 0 names snapshot 4: damage slot 1 (snapshot 3), as if
    // the cut had come while it was being overwritten.
    let with_torn_slot = || {
        let dir = filled();
        edit(dir.path(), "meta", |bytes| bytes[4096 + 30] ^= 1);
        dir
    };
    let dir = with_torn_slot();
    assert_eq!(check(&open(dir.path()).unwrap(), "torn slot"), EPOCHS.last().copied());
    // A torn journal does no harm on top of it, because the image holds its snapshot already; but
    // if the image does not, nobody knows what it holds.
    let dir = with_torn_slot();
    edit(dir.path(), "journal", |bytes| bytes[2 * 4096 + 5] ^= 1);
    assert_eq!(check(&open(dir.path()).unwrap(), "both torn"), EPOCHS.last().copied());
    edit(dir.path(), "image", |bytes| bytes[5] ^= 1);
    assert!(open(dir.path()).unwrap_err().is_corrupt());
}
