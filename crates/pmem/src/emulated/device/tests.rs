//! What accesses of a port cost, with figures of no machine.

use super::*;
use crate::device::{Counters, Port};
use crate::emulated::costs::{BlockTime, BlockTimes};
use crate::units::BLOCK_BYTES;

/// A device whose blocks take 110 ns to read and 218 ns to write, and its media 80 and 143 ns.
fn device(profile: Profile) -> Emulated {
    let dram = BlockTimes {
        reads: BlockTime::new(50_000, 25_000),
        writes: BlockTime::new(20_000, 12_000),
    };
    let costs = match profile {
        Profile::Optane => Costs::optane(dram),
        Profile::Eadr => Costs::eadr(dram),
        Profile::OptaneLines => Costs::optane_lines(),
        other => Costs::of(other, || panic!("{other} is relative to nothing")),
    };
    let device = Emulated::with_costs(profile, costs, 1 << 20, 1 << 20).unwrap();
    device.grow_image(1 << 20).unwrap();
    device.grow_log(1 << 20).unwrap();
    device
}

fn owed(latency_ns: u64, reading_ns: u64, writing_ns: u64) -> OwedTime {
    OwedTime { latency_ns, reading_ns, writing_ns }
}

#[test]
fn a_port_pays_its_owed_time_at_a_fence() {
    let device = device(Profile::High);
    let mut port = PortState::default();
    device.loaded(&mut port, 0, 8);
    assert_eq!(port.owed, owed(700, 0, 0));
    device.fence(&mut port);
    assert_eq!((port.owed, port.counters.added_ns), (OwedTime::default(), 700));
    let start = Instant::now();
    for _ in 0..100 {
        device.loaded(&mut port, 0, 8);
    }
    assert!(start.elapsed().as_nanos() >= 69_000);
}

#[test]
fn optane_charges_each_block_once_while_it_is_in_the_buffer() {
    let device = device(Profile::Optane);
    let mut port = PortState::default();
    // SAFETY: this test owns the device.
    unsafe { device.store_nt(&mut port, 64, &[1; 64]) };
    assert_eq!(port.owed, owed(218, 0, 143));
    device.flush_line(&mut port, 0);
    device.flush(&mut port, 64, 128);
    device.wrote_lines(&mut port, 192, 1);
    assert_eq!(port.owed, owed(218, 0, 143));
    device.wrote_lines(&mut port, 192, 2);
    device.fence(&mut port);
    device.flush_line(&mut port, 256);
    assert_eq!(port.owed, OwedTime::default(), "a fence leaves blocks in the buffer");
    device.loaded(&mut port, 200, 100);
    assert_eq!(port.owed, owed(220, 160, 0));
    assert_eq!(port.counters.media_bytes_written, 2 * BLOCK_BYTES);
}

#[test]
fn the_log_and_the_image_are_different_blocks() {
    let device = device(Profile::Optane);
    let mut port = PortState::default();
    device.flush_line(&mut port, 0);
    device.log_write(&mut port, 0, &[1; 10]).unwrap();
    device.log_write(&mut port, 10, &[1; 100]).unwrap();
    assert_eq!(port.counters.media_bytes_written, 2 * BLOCK_BYTES);
}

#[test]
fn counted_bits_are_charged_in_runs() {
    let device = std::sync::Arc::new(device(Profile::Optane));
    let written = |bits: u64| {
        let mut port = Port::new(std::sync::Arc::clone(&device), 0);
        port.count_lines(crate::device::LineCount::default(), 64, bits);
        port.take_counters().media_bytes_written / BLOCK_BYTES
    };
    assert_eq!([0, 0b1, 0b111, 0b1111, 0b1001, 0b1000_0000_0001].map(written), [0, 1, 1, 2, 2, 2]);
    assert_eq!([1 << 63, u64::MAX].map(written), [1, 17]);
}

/// What the paper's Table 2 says that 64 bytes take, from what is added here and its DRAM.
#[test]
fn accesses_of_a_line_take_what_table_2_says() {
    const COUNT: u64 = 1000;
    let device = device(Profile::OptaneLines);
    let lines = device.costs.lines.unwrap();
    type Charge<'a> = &'a dyn Fn(&mut PortState, u64);
    let mean = |dram_ns: f64, at: fn(u64) -> u64, charge: Charge<'_>| {
        let mut port = PortState::default();
        let mut added_ns = 0;
        for i in 0..COUNT {
            charge(&mut port, at(i));
            // It would be paid when it is due.
            added_ns += std::mem::take(&mut port.owed).latency_ns + port.counters.added_ns;
            port.counters = Counters::default();
        }
        dram_ns + added_ns as f64 / COUNT as f64
    };
    let following: fn(u64) -> u64 = |i| 4096 + 64 * i;
    let apart: fn(u64) -> u64 = |i| 64 * (i * 7919 % 16_381);
    let write = |port: &mut PortState, at| device.charge_lines(port, lines, at, 64);
    let read = |port: &mut PortState, at| device.charge_read(port, at, 64);
    let is_about = |ours: f64, paper: f64| (ours / paper - 1.0).abs() < 0.01;
    assert!(is_about(mean(153.0, following, &write), 171.0));
    assert!(is_about(mean(234.0, apart, &write), 510.0));
    assert!(is_about(mean(82.0, following, &read), 248.06));
    assert!(is_about(mean(82.2, apart, &read), 276.6));
}

#[test]
fn a_write_that_does_not_fill_its_line_reads_it_and_reads_slow_writes() {
    let lines = device(Profile::OptaneLines);
    let owes = |device: &Emulated, offset, len| {
        let mut port = PortState::default();
        device.charge_write(&mut port, offset, len);
        port.owed
    };
    assert_eq!(owes(&lines, 0, 128), owed(18 * 2 + 258, 0, 20));
    assert_eq!(owes(&lines, 0, 100), owed(18 * 2 + 258 + 195, 6, 20 + 6));
    assert_eq!(owes(&lines, 8, 16), owed(18 + 258 + 195, 6, 20 + 6));
    assert_eq!(owes(&lines, 100, 128), owed(18 * 3 + 258 + 2 * 195, 12, 20 + 12));
    // Other profiles have none of that.
    assert_eq!(owes(&device(Profile::Optane), 0, 100), owed(218, 0, 143));
    let mut port = PortState::default();
    device(Profile::Optane).charge_read(&mut port, 0, 64);
    assert_eq!(port.owed, owed(110, 80, 0));
}

#[test]
fn with_eadr_a_flush_is_free_and_what_it_wrote_takes_bandwidth() {
    let device = device(Profile::Eadr);
    let mut port = PortState::default();
    device.flush_line(&mut port, 0);
    assert_eq!(port.owed, owed(0, 0, 143));
    device.fence(&mut port);
    assert_eq!((port.owed, port.counters.added_ns), (owed(0, 0, 143), 0), "nobody waits for it");
    // The same block again, later.
    device.flush_line(&mut port, 64);
    // Neighbours that are written together.
    device.flush(&mut port, 512, 256);
    assert_eq!(port.owed, owed(0, 0, 3 * 143));
    assert_eq!(port.counters.media_bytes_written, 3 * BLOCK_BYTES);
}

#[test]
fn cxl_charges_lines() {
    let device = device(Profile::Cxl);
    let mut port = PortState::default();
    device.flush(&mut port, 0, 256);
    device.loaded(&mut port, 0, 64);
    assert_eq!(port.owed, owed(24 + 130, 6, 24));
    assert_eq!(port.counters.media_bytes_written, 256);
}

#[test]
fn two_ports_owe_twice() {
    let device = device(Profile::Eadr);
    // Each moves 100 blocks at the same moment: the second gets them when the first has them.
    let (reading, writing) = (100 * 80, 100 * 143);
    let taken = [(); 2].map(|()| {
        let now_ns = 50_000;
        (device.reads.take(now_ns, reading), device.writes.take(now_ns, writing))
    });
    assert_eq!(taken[1].0 - taken[0].0, reading);
    assert_eq!(taken[1].1 - taken[0].1, writing);
    // A port waits for what it owes itself, and for the device.
    let mut ports = [PortState::default(), PortState::default()];
    for port in &mut ports {
        device.flush(port, 0, 1 << 20);
        assert_eq!(port.owed, OwedTime::default(), "it was due");
    }
    let busy_ns = 2 * (writing + (4096 * 143));
    assert!(device.now_ns() >= busy_ns);
}

#[test]
fn a_long_read_of_the_log_takes_the_device() {
    let device = device(Profile::Optane);
    device.log_read(0, &mut [0; 1024]).unwrap();
    let after = device.reads.take(0, 1);
    assert!(after > 4 * 80, "{after}");
}

#[test]
fn the_description_says_what_is_added() {
    let note = |profile| device(profile).description().note;
    assert!(note(Profile::None).contains("real flushes and fences and no added time"));
    let optane = note(Profile::Optane);
    assert!(optane.contains("110 ns for each 256 bytes (all threads together one in 80 ns)"));
    assert!(optane.contains("218 ns for each 256 bytes"), "{optane}");
    assert!(note(Profile::Eadr).contains("without flushes"));
    assert!(note(Profile::Cxl).contains("130 ns, and 6 ns for each 64 bytes after the first"));
}
