//! One suite that every device passes.

use std::cell::RefCell;
use std::sync::Arc;

use pmem::{
    AnyDevice, Counters, Crash, Dax, Delayed, Device, Dram, Emulated, EpochNumber, File,
    FileOptions, PAGE_BYTES, Port, Profile,
};

const LIMIT_BYTES: u64 = 1 << 20;

/// Of a device, and of the same one behind a handle that hides its type.
fn conformance<D: Device>(make: impl Fn() -> D) {
    of_device(&make);
    of_device(|| Arc::into_inner(AnyDevice::new(make())).expect("one handle"));
}

fn of_device<D: Device>(make: impl Fn() -> D) {
    stores_are_visible(&make());
    growth_keeps_base_and_content(&make());
    limits_are_reported(&make());
    the_log_keeps_what_was_written(&make());
    counters_are_exact(make());
    two_ports_work_side_by_side(make());
    snapshots_are_consistent(make());
    assert!(!make().description().name.is_empty());
    assert!(!make().description().note.is_empty());
}

fn port<D: Device>(device: &Arc<D>, id: u32) -> Port<D> {
    Port::new(Arc::clone(device), id)
}

fn stores_are_visible<D: Device>(device: &D) {
    device.grow_image(4 * PAGE_BYTES).unwrap();
    let mut state = pmem::PortState::default();
    let bytes: Vec<u8> = (1..=255).collect();
    // SAFETY: this test owns the device.
    unsafe {
        device.store_u64(&mut state, 16, u64::MAX - 1);
        assert_eq!(device.image().load_u64(16), u64::MAX - 1);
        for offset in [0, 1, 63, 64, 4090] {
            device.store_bytes(&mut state, offset, &bytes);
            assert_eq!(device.image().slice(offset, 255), bytes);
            device.store_nt(&mut state, 8192 + offset, &bytes);
            device.order_stores();
            assert_eq!(device.image().slice(8192 + offset, 255), bytes);
        }
        device.store_line(&mut state, 13_312, &[7; 64]);
        device.store_line(&mut state, 13_440, &[8; 64]);
        device.order_stores();
        let (stored, between) = (device.image().slice(13_312, 192), [7, 0, 8]);
        assert!(stored.chunks(64).zip(between).all(|(line, of)| line == [of; 64]));
        device.store_bytes(&mut state, 4 * PAGE_BYTES - 1, &[9]);
        device.store_bytes(&mut state, 4 * PAGE_BYTES, &[]);
        device.store_nt(&mut state, 4 * PAGE_BYTES, &[]);
    }
    device.flush(&mut state, 0, 4 * PAGE_BYTES);
    device.flush(&mut state, 0, 0);
    device.fence(&mut state);
    // SAFETY: no thread stores.
    let end = unsafe { device.image().slice(4 * PAGE_BYTES - 2, 2) };
    assert_eq!(end, [0, 9]);
}

fn growth_keeps_base_and_content<D: Device>(device: &D) {
    assert_eq!((device.image_bytes(), device.log_bytes()), (0, 0));
    device.grow_image(1).unwrap();
    assert!(device.image_bytes() >= 1);
    let base = device.image().base();
    let mut state = pmem::PortState::default();
    // SAFETY: this test owns the device.
    unsafe { device.store_u64(&mut state, 0, 42) };
    device.grow_image(LIMIT_BYTES).unwrap();
    assert_eq!(device.image().base(), base);
    assert_eq!(device.image_bytes(), LIMIT_BYTES);
    assert_eq!(device.image().load_u64(0), 42);
    let zero = (8..LIMIT_BYTES).step_by(8).all(|offset| device.image().load_u64(offset) == 0);
    assert!(zero, "new bytes are zero");
    device.grow_image(0).unwrap();
    assert_eq!(device.image_bytes(), LIMIT_BYTES, "never shrinks");
}

fn limits_are_reported<D: Device>(device: &D) {
    device.grow_image(PAGE_BYTES).unwrap();
    for error in
        [device.grow_image(LIMIT_BYTES + 1).unwrap_err(), device.grow_log(u64::MAX).unwrap_err()]
    {
        assert!(error.is_limit(), "{error}");
        assert!(error.to_string().contains("limit 1048576 bytes"), "{error}");
    }
    assert_eq!((device.image_bytes(), device.log_bytes()), (PAGE_BYTES, 0));
    device.grow_image(LIMIT_BYTES).unwrap();
    device.grow_log(LIMIT_BYTES).unwrap();
}

fn the_log_keeps_what_was_written<D: Device>(device: &D) {
    device.grow_log(2 * PAGE_BYTES).unwrap();
    let mut state = pmem::PortState::default();
    let record: Vec<u8> = (0..1000_u32).map(|i| (i % 251) as u8 + 1).collect();
    device.log_write(&mut state, 7, &record).unwrap();
    device.log_write(&mut state, 2 * PAGE_BYTES - 5, &[1; 5]).unwrap();
    device.log_fence(&mut state);
    device.log_sync().unwrap();
    let mut back = vec![99; 1010];
    device.log_read(3, &mut back).unwrap();
    assert_eq!(back[..4], [0; 4]);
    assert_eq!(back[4..1004], record);
    assert_eq!(back[1004..], [0; 6]);
    let mut end = [99; 10];
    device.log_read(2 * PAGE_BYTES - 5, &mut end).unwrap();
    assert_eq!(end, [1, 1, 1, 1, 1, 0, 0, 0, 0, 0], "beyond the end reads as zero");
    device.log_read(LIMIT_BYTES * 4, &mut end).unwrap();
    assert_eq!(end, [0; 10]);
}

fn counters_are_exact<D: Device>(device: D) {
    device.grow_image(4 * PAGE_BYTES).unwrap();
    device.grow_log(PAGE_BYTES).unwrap();
    let mut port = port(&Arc::new(device), 3);
    // SAFETY: this test owns the device.
    unsafe {
        port.store_u64(8, 1);
        port.store_bytes(100, &[1; 30]);
        port.store_nt(250, &[2; 20]); // lines 3 and 4, blocks 0 and 1
        port.order_stores();
        assert_eq!(port.read(256, 300)[0], 2); // lines 4 to 8, blocks 1 and 2
    }
    port.flush(63, 2); // lines 0 and 1, block 0
    port.flush(512, 0);
    port.fence();
    port.log_write(5, &[1; 11]).unwrap();
    port.log_fence();
    port.order_stores(); // there is nothing to order
    let expected = Counters {
        lines_read: 5,
        blocks_read: 2,
        bytes_stored: 38,
        bytes_stored_nt: 20,
        lines_written: 4,
        blocks_written: 3,
        flushes: 2,
        fences: 1,
        log_bytes: 11,
        store_orders: 1,
        // What an emulated device writes, and how long it waits, is its own affair.
        media_bytes_written: port.counters().media_bytes_written,
        added_ns: port.counters().added_ns,
    };
    assert_eq!(*port.counters(), expected);
    assert_eq!(port.take_counters(), expected);
    assert_eq!(*port.counters(), Counters::default());
}

fn two_ports_work_side_by_side<D: Device>(device: D) {
    let device = Arc::new(device);
    device.grow_image(64 * PAGE_BYTES).unwrap();
    device.grow_log(64 * PAGE_BYTES).unwrap();
    std::thread::scope(|scope| {
        for id in 0..2_u32 {
            let mut port = port(&device, id);
            scope.spawn(move || {
                for i in 0..500 {
                    let offset = (i * 2 + u64::from(id)) * 64;
                    // SAFETY: each port has its own lines.
                    unsafe { port.store_u64(offset, offset + 1) };
                    port.flush(offset, 8);
                    port.log_write(offset, &offset.to_le_bytes()).unwrap();
                }
                port.fence();
                port.log_fence();
            });
        }
    });
    device.log_sync().unwrap();
    for i in 0..1000 {
        assert_eq!(device.image().load_u64(i * 64), i * 64 + 1);
        let mut word = [0; 8];
        device.log_read(i * 64, &mut word).unwrap();
        assert_eq!(u64::from_le_bytes(word), i * 64);
    }
}

fn snapshots_are_consistent<D: Device>(device: D) {
    device.grow_image(10 * PAGE_BYTES).unwrap();
    assert_eq!(device.snapshot_epoch(), None);
    for epoch in 5..8 {
        for part in 0..3 {
            device.snapshot_part(part, 3).unwrap();
        }
        device.snapshot_commit(EpochNumber(epoch)).unwrap();
    }
    device.settle().unwrap();
    let expected = device.takes_snapshots().then_some(7);
    assert_eq!(device.snapshot_epoch(), expected.map(EpochNumber));
}

#[test]
fn dram() {
    conformance(|| Dram::new(LIMIT_BYTES, LIMIT_BYTES).unwrap());
    assert!(!Dram::new(1, 1).unwrap().description().durable);
}

#[test]
fn emulated() {
    for profile in Profile::ALL {
        conformance(|| Emulated::new(profile, LIMIT_BYTES, LIMIT_BYTES).unwrap());
        let description = Emulated::new(profile, 1, 1).unwrap().description();
        assert!(!description.durable);
        assert!(description.note.contains("DRAM stands in"), "{}", description.note);
    }
}

/// Not like the others on purpose, but for this.
#[test]
fn delayed_stores_arrive_when_they_are_ordered() {
    let device = Delayed::new(LIMIT_BYTES, LIMIT_BYTES).unwrap();
    device.grow_image(PAGE_BYTES).unwrap();
    // SAFETY: this test owns the device.
    unsafe { device.store_nt(&mut pmem::PortState::default(), 0, &[7; 8]) };
    assert_eq!(device.image().load_u64(0), 0);
    device.order_stores();
    assert_eq!(device.image().load_u64(0), u64::from_ne_bytes([7; 8]));
}

#[test]
fn crash() {
    conformance(|| Crash::new(LIMIT_BYTES, LIMIT_BYTES).unwrap());
    assert!(!Crash::new(1, 1).unwrap().description().durable);
}

#[test]
fn file() {
    let dirs = RefCell::new(Vec::new());
    conformance(|| {
        let dir = tempfile::tempdir().unwrap();
        let options = FileOptions::new(LIMIT_BYTES, LIMIT_BYTES);
        let device = File::open(dir.path().join("new/db"), &options).unwrap();
        assert!(device.description().durable);
        device.accept().unwrap();
        dirs.borrow_mut().push(dir);
        device
    });
}

/// O-55: where the file system does not grant MAP_SYNC, dax refuses, says why and what to use
/// instead, and leaves nothing behind. On persistent memory it has to pass the suite.
#[test]
fn dax_refuses_or_conforms() {
    let dirs = RefCell::new(Vec::new());
    let make = || {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        let device = Dax::open(&path, LIMIT_BYTES, LIMIT_BYTES);
        if let Err(error) = &device {
            assert!(error.is_refused(), "{error}");
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert!(text.contains("MAP_SYNC") && text.contains("--device file:DIR"), "{text}");
            assert!(!path.exists(), "a refused open leaves no file behind");
        }
        dirs.borrow_mut().push(dir);
        device
    };
    if make().is_ok() {
        conformance(|| make().unwrap());
    }
}
