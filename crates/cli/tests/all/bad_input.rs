//! Wrong command lines, wrong files, somebody else's files: a clear error and the right exit code,
//! never a panic.

use std::fs;

use crate::support::{Background, Room, run, wait_for_lines};

#[test]
fn wrong_command_lines_end_with_2_and_say_what_is_wrong() {
    for (line, said) in [
        ("", "Usage"),
        ("fly", "fly"),
        ("bench ycsb --frobnicate", "--frobnicate"),
        ("bench oracle", "oracle"),
        ("bench smallbank --warehouses 3", "--warehouses"),
        ("bench ycsb --device disk", "file:DIR"),
        ("bench ycsb --device emulated:warp", "emulated:optane"),
        ("bench ycsb --device file:", "file:DIR"),
        ("bench ycsb --workers 0", "1..=64"),
        ("bench ycsb --workers 65", "1..=64"),
        ("bench ycsb --workers many", "many"),
        ("bench ycsb --epochs 0", "1..="),
        ("bench ycsb --epoch-size 16777216", "16777215"),
        ("bench ycsb --checkpoint-every 0", "1..=1000000"),
        ("bench ycsb --cache-epochs 1000001", "1000000"),
        ("bench ycsb --read-ratio 11", "0..=10"),
        ("bench ycsb --theta 1.5", "theta is 1.5"),
        ("bench ycsb --theta x", "--theta"),
        ("bench ycsb --rows 3", "rows is 3"),
        ("bench ycsb --rows -3", "-3"),
        ("bench ycsb --value-bytes 4", "value_bytes is 4"),
        ("bench ycsb --value-bytes 300000", "262128"),
        ("bench ycsb --value-bytes 100 --update-bytes 101", "update_bytes is 101"),
        ("bench ycsb --row-bytes 100", "multiple of 64"),
        ("bench ycsb --row-bytes 256 --shared-heap-bytes 100", "shared heap is 100"),
        ("bench smallbank --row-bytes 256 --shared-heap-bytes 200", "up to 192 in rows of 256"),
        ("bench tpcc --row-bytes 256 --shared-heap-bytes 184", "up to 176 in rows of 256"),
        ("bench tpcc --shared-heap-bytes 4294967288", "row size is"),
        ("bench ycsb --segment-bytes 5000", "power of two"),
        ("bench ycsb --hot-keys 4 --hot-rows 2", "hot_rows is 2"),
        ("bench ycsb --hot-keys 4 --hot-spacing 1000000", "do not fit"),
        ("bench smallbank --customers 3", "customers"),
        ("bench smallbank --contention extreme", "extreme"),
        ("bench tpcc --warehouses 0", "warehouses is 0"),
        ("bench tpcc --mix half", "half"),
        ("bench ycsb --resume", "--device"),
        ("bench ycsb --resume --device dram", "--resume"),
        ("check", "<PATH>"),
        ("check emulated:low", "keeps nothing"),
        ("inspect /tmp mirrors", "mirrors"),
        ("recover /tmp --workers 0", "1..=64"),
    ] {
        let ran = run(line);
        assert_eq!(ran.code, 2, "{line}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{line}: {said:?} is not in {ran:#?}");
    }
}

#[test]
fn help_names_units_and_defaults() {
    let help = run("bench ycsb --help").succeeded().stdout;
    for word in ["[default: 100000]", "[default: all cores]", "Bytes", "--ack-log", "file:DIR"] {
        assert!(help.contains(word), "{word:?} is not in\n{help}");
    }
    for line in ["--help", "bench --help", "check --help", "inspect --help", "recover --help"] {
        run(line).succeeded();
    }
}

#[test]
fn places_without_a_store_are_told() {
    let room = Room::new();
    let nowhere = room.text("nowhere");
    fs::create_dir(room.path("empty")).expect("a directory");
    for command in ["check", "inspect", "recover"] {
        run(&format!("{command} {nowhere}")).failed(1, &[&nowhere]);
        let empty = room.text("empty");
        run(&format!("{command} {empty}")).failed(1, &[&empty]);
    }
    assert_eq!(fs::read_dir(room.path("empty")).expect("a directory").count(), 0);
    assert!(!room.path("nowhere").exists());
}

#[test]
fn other_peoples_files_are_left_alone() {
    let room = Room::new();
    let home = room.text("home");
    fs::create_dir(room.path("home")).expect("a directory");
    fs::write(room.path("home/letter.txt"), "hello").expect("a written file");
    for resume in ["", "--resume"] {
        let line = format!("bench ycsb --rows 100 --device file:{home} {resume}");
        run(&line).failed(1, &["letter.txt is in the way"]);
    }
    for name in ["meta", "data", "table", "log"] {
        fs::write(room.path("home").join(name), vec![7; 8192]).expect("a written file");
    }
    run(&format!("check {home}")).failed(1, &["meta", "not ours"]);
    assert_eq!(fs::read(room.path("home/meta")).expect("the file"), vec![7; 8192]);
    assert_eq!(fs::read(room.path("home/letter.txt")).expect("the file"), b"hello");
}

#[test]
fn files_that_cannot_be_written_are_told_before_the_run() {
    let room = Room::new();
    let line = "bench ycsb --rows 100 --epoch-size 10 --epochs 1 --device dram";
    let nowhere = room.text("no/such/dir/file");
    run(&format!("{line} --json {nowhere}")).failed(1, &[&nowhere]);
    run(&format!("{line} --ack-log {nowhere}")).failed(1, &[&nowhere]);
}

#[test]
fn a_device_that_this_machine_does_not_have_is_refused_without_a_trace() {
    let room = Room::new();
    let path = room.text("pm");
    let ran = run(&format!("bench ycsb --rows 100 --device dax:{path}"));
    if ran.code == 0 {
        eprintln!("skipped: {path} is on persistent memory");
        return;
    }
    ran.failed(1, &["refused", "file:DIR"]);
    assert_eq!(fs::read_dir(room.path("")).expect("a directory").count(), 0);
}

/// A store of ours, closed.
fn store(room: &Room) -> String {
    let store = room.text("store");
    let size = "--customers 1000 --epoch-size 200 --epochs 3 --checkpoint-every 1";
    run(&format!("bench smallbank {size} --device file:{store}")).succeeded();
    store
}

#[test]
fn damaged_files_are_found() {
    for (file, len) in [("data", 1 << 18), ("data", 4096), ("meta", 100), ("table", 512)] {
        let room = Room::new();
        let store = store(&room);
        let path = room.path("store").join(file);
        let whole = fs::metadata(&path).expect("the file").len();
        assert!(whole > len, "{file} has {whole} bytes");
        let opened = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        opened.set_len(len).expect("a shorter file");
        let ran = run(&format!("check {store}")).failed(1, &[]);
        let ran_json = run(&format!("check {store} --json"));
        assert_eq!(ran_json.code, 1, "{file} cut to {len}: {ran:#?}");
        if let Ok(json) = serde_json::from_str::<serde_json::Value>(&ran_json.stdout) {
            assert_eq!(json["clean"], false, "{file} cut to {len}: {json}");
        }
        for command in ["inspect", "recover"] {
            run(&format!("{command} {store}")).failed(1, &[]);
        }
    }
}

/// Flips one bit of each value of many rows: the checksums of their pages say so, and if these are
/// forged, the state hash (O-48).
#[test]
fn o_48_flipped_bits_in_rows_are_found() {
    let room = Room::new();
    let store = room.text("store");
    let size = "--rows 3000 --value-bytes 64 --epoch-size 1 --epochs 4 --checkpoint-every 1";
    run(&format!("bench ycsb {size} --device file:{store}")).succeeded();
    let dir = room.path("store");
    let mut stored = sim::fuzz::StoredImage::read(&dir).expect("the image");
    let image = &mut stored.bytes;
    let mut flipped = 0;
    for row in (0..image.len() - 128).step_by(64) {
        // A row's header: serial id of the first version, of the second at 16, key of 8 big-endian
        // bytes at 40. Loading wrote the second version in epoch 2.
        let word = |at: usize| image[row + at..row + at + 8].try_into().expect("8 bytes");
        let (serial_id, key) = (u64::from_le_bytes(word(16)), u64::from_be_bytes(word(40)));
        if serial_id >> 24 == 2 && (1..3000).contains(&key) {
            image[row + 64 + 20] ^= 1;
            flipped += 1;
        }
    }
    assert!(flipped > 1000, "{flipped} rows found");
    stored.write(&dir).expect("a written image");
    run(&format!("check {store}")).failed(1, &["data is corrupt: page ", "checksum"]);
    stored.forge(&dir).expect("forged checksums");
    let check = run(&format!("check {store} --json"));
    assert_eq!(check.code, 1, "{check:#?}");
    let found = check.json();
    assert_eq!(found["clean"], false);
    assert!(found["problems"][0].as_str().is_some_and(|p| p.contains("hash")), "{found}");
}

#[test]
fn a_damaged_description_of_the_store_is_told() {
    let room = Room::new();
    let store = store(&room);
    fs::write(room.path("store/bench.json"), "{\"format\": 1}").expect("a written file");
    for line in
        [format!("recover {store}"), format!("bench smallbank --resume --device file:{store}")]
    {
        run(&line).failed(1, &["bench.json"]);
    }
    fs::remove_file(room.path("store/bench.json")).expect("a removed file");
    // It is that of another program then: closed, so that nothing is left to run.
    let recovered = run(&format!("recover {store}")).succeeded().stdout;
    assert!(recovered.contains("is clean"), "{recovered}");
    run(&format!("check {store}")).succeeded();
    run(&format!("bench smallbank --device file:{store}")).failed(1, &["in the way"]);
}

#[test]
fn o_52_a_second_process_is_refused() {
    let room = Room::new();
    let (store, acks) = (room.text("store"), room.text("acks"));
    let size = "--customers 1000 --epoch-size 100";
    let running = Background::start(&format!(
        "bench smallbank {size} --epochs 1000000 --device file:{store} --ack-log {acks}"
    ));
    wait_for_lines(&room.path("acks"), 3);
    for line in [
        format!("check {store}"),
        format!("inspect {store}"),
        format!("recover {store}"),
        format!("bench smallbank --device file:{store} --resume"),
    ] {
        run(&line).failed(1, &["locked", "another process"]);
    }
    running.kill();
    // The lock goes with the process (O-52), and nothing was harmed.
    run(&format!("check {store}")).succeeded();
}
