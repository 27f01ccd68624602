//! What a process leaves to the next one when it dies: replay marks and the newest mark.
//!
//! In a test program of its own, because it starts a process, which shares the files of its parent
//! for a moment.

use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use pmem::{Device, File, FileOptions, MARK_BYTES, REPLAY_WORDS};

const DIE_IN: &str = "PMEM_TEST_DIE_IN";

fn open(dir: impl AsRef<std::path::Path>) -> File {
    File::open(dir, &FileOptions::new(1 << 20, 1 << 20)).unwrap()
}

#[test]
fn marks_outlive_the_process_that_made_them() {
    if let Some(dir) = std::env::var_os(DIE_IN) {
        // This is the process that dies.
        let device = open(dir);
        let marks = device.replay_marks().unwrap().unwrap();
        let before = marks.words()[7].fetch_add(1, Ordering::Relaxed);
        marks.words()[REPLAY_WORDS - 1].store(before + 100, Ordering::Relaxed);
        device.accept().unwrap();
        device.write_mark(&[before as u8 + 1; MARK_BYTES]).unwrap();
        std::process::abort();
    }
    let dir = tempfile::tempdir().unwrap();
    for deaths in 1..4_u64 {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "outlive::marks_outlive_the_process_that_made_them"])
            .env(DIE_IN, dir.path())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "it was to die");
        let device = open(dir.path());
        let marks = device.replay_marks().unwrap().unwrap();
        let word = |at: usize| marks.words()[at].load(Ordering::Relaxed);
        assert_eq!((word(7), word(REPLAY_WORDS - 1)), (deaths, deaths + 99));
        assert_eq!(device.mark(), Some([deaths as u8; MARK_BYTES]));
    }
}
