//! Lines that need not be durable before the next fence are flushed by then, each once.

use std::sync::Arc;

use pmem::{AllOldest, Crash, Device, Dram, LINE_BYTES, PAGE_BYTES, Port};

/// More lines than a port notes before it flushes them.
const MANY: u64 = 5_000;

fn port<D: Device>(device: D) -> (Arc<D>, Port<D>) {
    let device = Arc::new(device);
    device.grow_image(2 * MANY * LINE_BYTES).unwrap();
    let port = Port::new(Arc::clone(&device), 0);
    (device, port)
}

/// Stores a number to a line, and notes it.
fn write<D: Device>(port: &mut Port<D>, line: u64, value: u64) {
    // SAFETY: each test owns its device.
    unsafe { port.store_u64(line * LINE_BYTES, value) };
    port.flush_line_by_fence(line * LINE_BYTES);
}

/// O-22, O-26: what the port stored before it noted the line is durable after its fence.
#[test]
fn o_22_noted_lines_are_durable_after_the_fence() {
    let (device, mut port) = port(Crash::new(1 << 20, PAGE_BYTES).unwrap());
    let mut other = Port::new(Arc::clone(&device), 1);
    let line_of = |number: u64| number * 7919 % (2 * MANY);
    for number in 0..MANY {
        write(&mut port, line_of(number), number + 1);
    }
    // Again, long after they were noted first.
    for number in [0, 1, MANY - 1] {
        write(&mut port, line_of(number), number + 2);
    }
    other.fence();
    let after = device.image_after_power_cut(&mut AllOldest);
    assert!((0..MANY).all(|n| after.image().load_u64(line_of(n) * LINE_BYTES) == 0));
    port.fence();
    let after = device.image_after_power_cut(&mut AllOldest);
    for number in 0..MANY {
        let expected = number + 1 + u64::from([0, 1, MANY - 1].contains(&number));
        assert_eq!(after.image().load_u64(line_of(number) * LINE_BYTES), expected, "{number}");
    }
    assert_eq!(device.undurable_lines(), 0);
}

/// A range is noted by its lines, one that begins or ends within a line included.
#[test]
fn o_31_all_lines_of_a_range_are_noted() {
    for (from, len) in [(0, 1), (63, 2), (64, 64), (8, 200), (100, 0), (128, 0), (1, 640)] {
        let (device, mut port) = port(Crash::new(1 << 20, PAGE_BYTES).unwrap());
        // SAFETY: this test owns its device.
        unsafe { port.store_bytes(from, &vec![7; len as usize]) };
        port.flush_by_fence(from, len);
        port.fence();
        assert_eq!(device.undurable_lines(), 0, "{len} bytes from {from}");
        let lines = if len == 0 { 0 } else { (from + len).div_ceil(64) - from / 64 };
        assert_eq!(port.counters().flushes, lines, "{len} bytes from {from}");
    }
}

#[test]
fn a_line_is_counted_when_it_is_flushed() {
    let (_device, mut port) = port(Dram::new(1 << 20, PAGE_BYTES).unwrap());
    for line in [0, 0, 1, 2, 9, 8] {
        write(&mut port, line, 1);
    }
    assert_eq!(port.counters().flushes, 0);
    port.fence();
    let counters = port.take_counters();
    // Line 0 once. Lines that follow each other are in one block.
    assert_eq!((counters.flushes, counters.lines_written, counters.blocks_written), (5, 5, 3));
    port.fence();
    assert_eq!(port.counters().flushes, 0, "nothing was noted since");
}

/// Beside a line that was stored non-temporally: together they are one write of the device.
#[test]
fn a_line_is_flushed_at_once_where_a_fence_is_to_come() {
    let (device, mut port) = port(Crash::new(1 << 20, PAGE_BYTES).unwrap());
    // SAFETY: this test owns its device.
    unsafe { port.store_line(64, &[1; 64]) };
    write(&mut port, 0, 1);
    assert_eq!(port.counters().flushes, 1);
    port.order_stores();
    write(&mut port, 2, 1);
    assert_eq!(port.counters().flushes, 1, "it is noted");
    port.fence();
    assert_eq!((port.counters().flushes, device.undurable_lines()), (2, 0));
}

/// However much is written between two fences, what is remembered of it is bounded.
#[test]
fn o_61_so_many_lines_are_noted_at_most() {
    let (_device, mut port) = port(Dram::new(1 << 20, PAGE_BYTES).unwrap());
    for line in 0..MANY {
        write(&mut port, 2 * line, 1);
    }
    let before = port.counters().flushes;
    assert!((MANY - 1024..MANY).contains(&before), "{before} lines are flushed");
    port.fence();
    assert_eq!(port.counters().flushes, MANY);
}

/// O-06: stores are ordered where a port made non-temporal ones since it last did, or fenced.
#[test]
fn o_06_non_temporal_stores_are_ordered_once() {
    let (_device, mut port) = port(Dram::new(1 << 20, PAGE_BYTES).unwrap());
    let mut orders = |act: &dyn Fn(&mut Port<Dram>)| {
        act(&mut port);
        port.order_stores();
        port.take_counters().store_orders
    };
    // SAFETY: this test owns its device.
    let store_nt = |port: &mut Port<Dram>| unsafe { port.store_nt(0, &[1; 64]) };
    // SAFETY: as above.
    let store_line = |port: &mut Port<Dram>| unsafe { port.store_line(64, &[1; 64]) };
    assert_eq!(orders(&|_| {}), 0);
    assert_eq!(orders(&|port| write(port, 5, 1)), 0, "ordinary stores come in order");
    assert_eq!(orders(&store_nt), 1);
    assert_eq!(orders(&|_| {}), 0);
    assert_eq!(orders(&store_line), 1);
    assert_eq!(
        orders(&|port| {
            store_line(port);
            port.fence();
        }),
        0
    );
}
