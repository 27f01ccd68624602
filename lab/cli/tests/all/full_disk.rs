//! No space left (O-43, O-58): a clear error, and what was acknowledged is still there.

use std::path::Path;
use std::process::Command;

use crate::support::{Room, run, run_command};

const SIZE: &str = "bench ycsb --rows 2000 --epoch-size 500";

/// A small file system in memory; unmounted when dropped.
struct SmallDisk<'r>(&'r Path);

impl<'r> SmallDisk<'r> {
    fn mount(at: &'r Path, bytes: &str) -> Option<Self> {
        std::fs::create_dir(at).expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"]).arg(at);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).output();
    }
}

/// Runs until there is no space, then checks what is left.
fn check(store: &str, acks: &str, full: &mut Command) {
    let ran = run_command(full);
    ran.failed(1, &["room", "free space"]);
    let acknowledged = std::fs::read_to_string(acks).expect("the acknowledgements");
    let last = acknowledged.lines().last().expect("some epochs fit");
    let epoch: u64 = last.split(' ').next().and_then(|e| e.parse().ok()).expect("an epoch");
    let check = run(&format!("check {store} --json")).succeeded().json();
    assert!(check["recovers_to_epoch"].as_u64() >= Some(epoch), "{last} was lost: {check}");
}

#[test]
fn a_full_file_system_loses_nothing_that_was_acknowledged() {
    let room = Room::new();
    let disk = room.path("disk");
    let Some(_mounted) = SmallDisk::mount(&disk, "40m") else {
        eprintln!(
            "SKIPPED: this user may not mount a file system; the other test limits file sizes"
        );
        return;
    };
    let (store, acks) = (room.text("disk/store"), room.text("acks"));
    let line = format!("{SIZE} --epochs 100000 --device file:{store} --ack-log {acks}");
    // Pages take 19 MB, with room for all of them to change; the log of the epochs between two
    // checkpoints does not fit any more.
    check(
        &store,
        &acks,
        &mut crate::support::command(&format!("{line} --checkpoint-every 100000")),
    );
}

#[test]
fn a_limit_on_file_sizes_loses_nothing_that_was_acknowledged() {
    let room = Room::new();
    let (store, acks) = (room.text("store"), room.text("acks"));
    let binary = crate::BINARY;
    let line = format!(
        "{SIZE} --epochs 100000 --device file:{store} --ack-log {acks} --checkpoint-every 100000"
    );
    // Pages take 19 MB, with room for all of them to change: the log comes to the limit. The
    // kernel sends SIGXFSZ for a write beyond it, which ends nothing.
    let script = format!("ulimit -f 32768; exec {binary} {line}");
    let mut command = Command::new("bash");
    command.args(["-c", &script]);
    check(&store, &acks, &mut command);
}
