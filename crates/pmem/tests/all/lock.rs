//! O-52: the lock of a database directory dies with the process that holds it, however it dies.
//!
//! In a test program of its own, because it starts processes, which share the files of their parent
//! for a moment.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use pmem::{File, FileOptions};

const HOLD: &str = "PMEM_TEST_HOLD_LOCK";
const HELD: &str = "the lock is held";

#[test]
fn o_52_the_lock_dies_with_its_process() {
    let options = FileOptions::new(1 << 20, 1 << 20);
    if let Some(dir) = std::env::var_os(HOLD) {
        // This is the process that is killed below.
        let _device = File::open(&dir, &options).unwrap();
        println!("{HELD}");
        // Until it is killed, or its parent has ended.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock::o_52_the_lock_dies_with_its_process", "--nocapture"])
        .env(HOLD, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains(HELD)), "the child ended early");
    assert!(File::open(dir.path(), &options).unwrap_err().is_locked());
    child.kill().unwrap();
    child.wait().unwrap();
    File::open(dir.path(), &options).unwrap();
}

/// Regression: a process that was started while the database was open shares the lock until it
/// runs its own program, so closing the file alone does not always release the lock.
#[test]
fn o_52_closing_releases_the_lock_even_while_processes_are_started() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileOptions::new(1 << 20, 1 << 20);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let spawner = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let program = std::env::current_exe().unwrap();
                Command::new(program).arg("--list").stdout(Stdio::null()).status().unwrap();
            }
        });
        for turn in 0..200 {
            if let Err(error) = File::open(dir.path(), &options) {
                done.store(true, Ordering::Relaxed);
                panic!("turn {turn}: {error}");
            }
        }
        done.store(true, Ordering::Relaxed);
        spawner.join().unwrap();
    });
}
