//! What a power cut may leave, and what it may not.

use std::collections::BTreeSet;
use std::sync::Arc;

use pmem::{
    Adversary, AllNewest, AllOldest, Crash, Device, OneLineEarly, OneLineLate, PAGE_BYTES, Port,
    Random, UndurableLine,
};

fn device() -> (Arc<Crash>, Port<Crash>) {
    let device = Arc::new(Crash::new(1 << 20, 1 << 20).unwrap());
    device.grow_image(4 * PAGE_BYTES).unwrap();
    device.grow_log(4 * PAGE_BYTES).unwrap();
    let port = Port::new(Arc::clone(&device), 0);
    (device, port)
}

fn store(port: &mut Port<Crash>, offset: u64, value: u64) {
    // SAFETY: each test owns its device.
    unsafe { port.store_u64(offset, value) }
}

/// The words at these offsets after a power cut.
fn words<const N: usize>(
    device: &Crash,
    adversary: &mut dyn Adversary,
    offsets: [u64; N],
) -> [u64; N] {
    let after = device.image_after_power_cut(adversary);
    offsets.map(|offset| after.image().load_u64(offset))
}

/// Every state that some seed leads to.
fn all_states<const N: usize>(device: &Crash, offsets: [u64; N]) -> BTreeSet<[u64; N]> {
    (0..400).map(|seed| words(device, &mut Random::new(seed), offsets)).collect()
}

#[test]
fn a_line_holds_a_prefix_of_its_stores() {
    let (device, mut port) = device();
    store(&mut port, 0, 1);
    store(&mut port, 8, 2);
    store(&mut port, 0, 3);
    let expected = BTreeSet::from([[0, 0], [1, 0], [1, 2], [3, 2]]);
    assert_eq!(all_states(&device, [0, 8]), expected);
}

#[test]
fn lines_are_independent() {
    let (device, mut port) = device();
    store(&mut port, 0, 1);
    store(&mut port, 64, 2);
    let expected = BTreeSet::from([[0, 0], [1, 0], [0, 2], [1, 2]]);
    assert_eq!(all_states(&device, [0, 64]), expected);
}

#[test]
fn words_do_not_tear() {
    let (device, mut port) = device();
    // SAFETY: this test owns the device.
    unsafe { port.store_bytes(3, &[1; 10]) };
    // Bytes 3 to 7 of the first word, then 0 to 4 of the second.
    let first = u64::from_le_bytes([0, 0, 0, 1, 1, 1, 1, 1]);
    let second = u64::from_le_bytes([1, 1, 1, 1, 1, 0, 0, 0]);
    let expected = BTreeSet::from([[0, 0], [first, 0], [first, second]]);
    assert_eq!(all_states(&device, [0, 8]), expected);
}

#[test]
fn stores_past_the_cache_arrive_in_any_order_until_fenced() {
    let (device, mut port) = device();
    // SAFETY: this test owns the device.
    unsafe { port.store_nt(0, &[[1, 0, 0, 0, 0, 0, 0, 0]; 3].concat()) };
    assert_eq!(all_states(&device, [0, 8, 16]).len(), 8);
    port.fence();
    assert_eq!(device.undurable_lines(), 0);
    assert_eq!(words(&device, &mut AllOldest, [0, 8, 16]), [1, 1, 1]);
}

#[test]
fn a_newer_store_is_never_overwritten_by_an_older_one() {
    let (device, mut port) = device();
    let mut other = Port::new(Arc::clone(&device), 1);
    // SAFETY: this test owns the device; the two ports alternate.
    unsafe { other.store_nt(0, &5_u64.to_le_bytes()) };
    store(&mut port, 0, 6);
    port.flush(0, 8);
    port.fence();
    assert_eq!(all_states(&device, [0]), BTreeSet::from([[6]]));
}

#[test]
fn a_flush_without_a_fence_makes_nothing_durable() {
    let (device, mut port) = device();
    store(&mut port, 0, 1);
    port.flush(0, 8);
    assert_eq!(words(&device, &mut AllOldest, [0]), [0]);
    port.fence();
    assert_eq!(words(&device, &mut AllOldest, [0]), [1]);
}

#[test]
fn a_fence_covers_only_stores_before_the_flush() {
    let (device, mut port) = device();
    store(&mut port, 0, 1);
    port.flush(0, 8);
    store(&mut port, 0, 2);
    port.fence();
    assert_eq!(all_states(&device, [0]), BTreeSet::from([[1], [2]]));
}

#[test]
fn o_22_a_fence_of_another_port_makes_nothing_durable() {
    let (device, mut port) = device();
    let mut coordinator = Port::new(Arc::clone(&device), 1);
    store(&mut port, 0, 1);
    port.flush(0, 8);
    // SAFETY: this test owns the device.
    unsafe { port.store_nt(64, &1_u64.to_le_bytes()) };
    coordinator.fence();
    assert_eq!(device.undurable_lines(), 2);
    assert_eq!(words(&device, &mut AllOldest, [0, 64]), [0, 0]);
    port.fence();
    assert_eq!(device.undurable_lines(), 0);
}

#[test]
fn o_22_ports_that_share_a_line_fence_their_own_stores_past_the_cache() {
    let (device, mut port) = device();
    let mut other = Port::new(Arc::clone(&device), 1);
    // SAFETY: this test owns the device; the ports store to different words.
    unsafe {
        port.store_nt(0, &1_u64.to_le_bytes());
        other.store_nt(8, &2_u64.to_le_bytes());
    }
    port.fence();
    assert_eq!(all_states(&device, [0, 8]), BTreeSet::from([[1, 0], [1, 2]]));
}

#[test]
fn a_port_may_flush_what_another_stored() {
    let (device, mut port) = device();
    let mut other = Port::new(Arc::clone(&device), 1);
    store(&mut port, 0, 1);
    other.flush(0, 8);
    other.fence();
    assert_eq!(words(&device, &mut AllOldest, [0]), [1]);
}

/// The old flush of one port must not vouch for stores that were made after another port had made
/// the line durable.
#[test]
fn a_stale_flush_does_not_cover_later_stores() {
    let (device, mut port) = device();
    let mut other = Port::new(Arc::clone(&device), 1);
    store(&mut port, 0, 1);
    port.flush(0, 8);
    other.flush(0, 8);
    other.fence();
    assert_eq!(device.undurable_lines(), 0);
    store(&mut port, 0, 2);
    port.fence();
    assert_eq!(words(&device, &mut AllOldest, [0]), [1]);
}

#[test]
fn whole_line_adversaries() {
    let (device, mut port) = device();
    for line in 0..3 {
        store(&mut port, line * 64, 1);
    }
    let offsets = [0, 64, 128];
    assert_eq!(words(&device, &mut AllOldest, offsets), [0, 0, 0]);
    assert_eq!(words(&device, &mut AllNewest, offsets), [1, 1, 1]);
    assert_eq!(words(&device, &mut OneLineLate(1), offsets), [1, 0, 1]);
    assert_eq!(words(&device, &mut OneLineEarly(2), offsets), [0, 0, 1]);
}

#[test]
fn random_is_reproducible() {
    let (device, mut port) = device();
    for i in 0..200 {
        store(&mut port, i * 8, i);
    }
    let all: [u64; 200] = std::array::from_fn(|i| i as u64 * 8);
    let once = words(&device, &mut Random::new(7), all);
    assert_eq!(once, words(&device, &mut Random::new(7), all));
    assert_ne!(once, words(&device, &mut Random::new(8), all));
}

#[test]
fn adversaries_see_each_line() {
    #[derive(Default)]
    struct Watch(Vec<UndurableLine>);
    impl Adversary for Watch {
        fn prefix(&mut self, line: &UndurableLine) -> usize {
            self.0.push(*line);
            line.ordinary
        }
        fn past_cache(&mut self, _: &UndurableLine, _: usize) -> bool {
            true
        }
    }
    let (device, mut port) = device();
    port.log_write(0, &[1; 16]).unwrap();
    store(&mut port, 128, 1);
    let mut watch = Watch::default();
    let _ = device.image_after_power_cut(&mut watch);
    let seen: Vec<_> = watch.0.iter().map(|l| (l.offset, l.ordinary, l.past_cache)).collect();
    assert_eq!(seen, [(128, 1, 0), (0, 0, 2)]);
}

#[test]
fn the_log_is_durable_after_its_ports_fence() {
    let (device, mut port) = device();
    port.log_write(0, &[1; 64]).unwrap();
    let mut back = [9; 64];
    let after = device.image_after_power_cut(&mut AllOldest);
    after.log_read(0, &mut back).unwrap();
    assert_eq!(back, [0; 64]);
    port.log_fence();
    device.log_sync().unwrap();
    device.image_after_power_cut(&mut AllOldest).log_read(0, &mut back).unwrap();
    assert_eq!(back, [1; 64]);
}

#[test]
fn growth_is_durable_at_once() {
    let (device, _port) = device();
    let after = device.image_after_power_cut(&mut AllOldest);
    assert_eq!((after.image_bytes(), after.log_bytes()), (4 * PAGE_BYTES, 4 * PAGE_BYTES));
}

/// Events 0 to 5: store, flush, fence of one word, then the same of a second one.
#[test]
fn a_cut_stops_the_history_at_every_event() {
    let newest = [[0, 0], [1, 0], [1, 0], [1, 0], [1, 2], [1, 2], [1, 2]];
    let oldest = [[0, 0], [0, 0], [0, 0], [1, 0], [1, 0], [1, 0], [1, 2]];
    for cut in 0..=6 {
        let (device, mut port) = device();
        device.cut_at(cut);
        for (offset, value) in [(0, 1), (64, 2)] {
            store(&mut port, offset, value);
            port.flush(offset, 8);
            port.fence();
        }
        device.grow_image(5 * PAGE_BYTES).unwrap();
        assert_eq!(device.events(), 6);
        assert_eq!(device.is_cut(), cut < 6);
        assert_eq!(device.image().load_u64(64), 2, "the run goes on");
        assert_eq!(words(&device, &mut AllNewest, [0, 64]), newest[cut as usize], "cut {cut}");
        assert_eq!(words(&device, &mut AllOldest, [0, 64]), oldest[cut as usize], "cut {cut}");
        let pages = device.image_after_power_cut(&mut AllNewest).image_bytes() / PAGE_BYTES;
        assert_eq!(pages, if cut < 6 { 4 } else { 5 }, "growth after the cut never happened");
    }
}

#[test]
fn a_device_after_a_power_cut_starts_durable() {
    let (device, mut port) = device();
    store(&mut port, 0, 1);
    let after = Arc::new(device.image_after_power_cut(&mut AllNewest));
    assert_eq!((after.undurable_lines(), after.events()), (0, 0));
    let mut port = Port::new(Arc::clone(&after), 0);
    store(&mut port, 0, 2);
    assert_eq!(words(&after, &mut AllOldest, [0]), [1]);
}

#[test]
fn a_killed_process_leaves_its_stores_visible_and_undurable() {
    let (device, mut port) = device();
    store(&mut port, 0, 1);
    store(&mut port, 64, 2);
    port.flush(64, 8);
    // SAFETY: this test owns the device.
    unsafe { port.store_nt(128, &3_u64.to_ne_bytes()) };
    device.kill();
    // A port of the next process has the same number, and fences for itself only.
    let mut next = Port::new(Arc::clone(&device), 0);
    next.fence();
    assert_eq!([0, 64, 128].map(|offset| next.load_u64(offset)), [1, 2, 3]);
    assert_eq!(words(&device, &mut AllOldest, [0, 64, 128]), [0, 0, 0]);
    next.flush(64, 72);
    assert_eq!(words(&device, &mut AllOldest, [0, 64, 128]), [0, 0, 0]);
    next.fence();
    assert_eq!(words(&device, &mut AllOldest, [0, 64, 128]), [0, 2, 3]);
    // What it stores over them is durable by itself.
    store(&mut next, 8, 4);
    next.flush(0, 16);
    next.fence();
    assert_eq!(words(&device, &mut AllOldest, [0, 8]), [1, 4]);
}
