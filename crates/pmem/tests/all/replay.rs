//! A recorded trace gives at every event, for every adversary, what the device gives that is cut
//! there.

use std::sync::Arc;

use pmem::{
    Adversary, AllNewest, AllOldest, Crash, Device, EventKind, Numbered, OneLineEarly, OneLineLate,
    Port, Random, Replay, Traced,
};

const LIMIT: u64 = 64 << 10;

/// The splitmix64 generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) % end
    }
}

/// Stores of all kinds by two ports to few lines, with flushes, fences and growth.
fn run<D: Device>(device: &Arc<D>, seed: u64) {
    let mut dice = Dice(seed);
    let mut ports = [Port::new(Arc::clone(device), 0), Port::new(Arc::clone(device), 1)];
    device.grow_image(4096).unwrap();
    device.grow_log(4096).unwrap();
    for step in 0..60u64 {
        let port = &mut ports[dice.below(2) as usize];
        let (line, bytes) = (dice.below(6) * 64, [step as u8 + 1; 100]);
        let len = dice.below(100) as usize;
        match dice.below(12) {
            // SAFETY: there is one thread.
            0..3 => unsafe { port.store_u64(line + dice.below(8) * 8, step) },
            // SAFETY: there is one thread.
            3..5 => unsafe { port.store_bytes(line + dice.below(64), &bytes[..len]) },
            // SAFETY: there is one thread.
            5..7 => unsafe { port.store_nt(line, &bytes[..len]) },
            7 => port.log_write(line, &bytes[..len]).unwrap(),
            8..10 => port.flush(line, len as u64),
            10 if step == 30 => device.grow_image(12_000).unwrap(),
            _ => port.fence(),
        }
    }
    // SAFETY: there is one thread.
    unsafe { ports[0].store_u64(device.image_bytes() - 8, 9) };
}

/// The bytes of a device.
fn contents<D: Device>(device: &D) -> (Vec<u8>, Vec<u8>) {
    let (mut log, image) = (vec![0; device.log_bytes() as usize], device.image());
    device.log_read(0, &mut log).unwrap();
    // SAFETY: no thread stores.
    (unsafe { image.slice(0, device.image_bytes()) }.to_vec(), log)
}

fn adversaries(seed: u64) -> Vec<Box<dyn Adversary>> {
    vec![
        Box::new(AllOldest),
        Box::new(AllNewest),
        Box::new(OneLineLate(seed % 4)),
        Box::new(OneLineEarly(seed % 4)),
        Box::new(Random::new(seed)),
        Box::new(Random::new(seed + 1)),
        Box::new(Numbered(seed)),
    ]
}

#[test]
fn a_replay_gives_what_a_cut_gives() {
    for seed in 0..12 {
        let recorder = Arc::new(Traced::new(LIMIT, LIMIT).unwrap());
        recorder.record();
        run(&recorder, seed);
        let trace = recorder.take_trace();
        let mut replay = Replay::new(&trace, Traced::new(LIMIT, LIMIT).unwrap());
        let mut hashes = std::collections::HashMap::new();
        loop {
            let before = trace.events()[..replay.position()].iter();
            let event = before.filter(|event| event.kind != EventKind::Grow).count() as u64;
            let cut = Arc::new(Crash::new(LIMIT, LIMIT).unwrap());
            cut.cut_at(event);
            run(&cut, seed);
            let all = adversaries(seed * 100 + event);
            for (mut one, mut other) in all.into_iter().zip(adversaries(seed * 100 + event)) {
                let expected = contents(&cut.image_after_power_cut(&mut *one));
                let left = replay.left(&mut *other);
                let device = Arc::clone(replay.load(&left));
                let found = contents(&*device);
                // Where the event beside is growth the other device may have another size.
                let both = [(&found.0, &expected.0), (&found.1, &expected.1)];
                for (found, expected) in both {
                    let there = found.len().min(expected.len());
                    assert_eq!(found[..there], expected[..there], "seed {seed}, event {event}");
                }
                assert!(hashes.entry(left.hash()).or_insert_with(|| found.clone()) == &found);
                // What is done to the device must be lost when it is loaded again.
                device.grow_image(LIMIT).unwrap();
                let mut port = Port::new(device, 5);
                // SAFETY: there is one thread.
                unsafe { port.store_bytes(40_000, &[1; 500]) };
                // SAFETY: as above.
                unsafe { port.store_bytes(0, &[1; 5000]) };
            }
            if replay.step().is_none() {
                break;
            }
        }
        let mut different: Vec<_> = hashes.values().collect();
        different.sort_unstable();
        assert!(different.windows(2).all(|pair| pair[0] != pair[1]), "equal bytes, other hash");
    }
}

#[test]
fn numbers_give_every_choice_once() {
    let recorder = Arc::new(Traced::new(LIMIT, LIMIT).unwrap());
    recorder.grow_image(4096).unwrap();
    recorder.record();
    let mut port = Port::new(Arc::clone(&recorder), 0);
    for (at, value) in [(0, 1), (0, 2), (8, 3), (64, 4)] {
        // SAFETY: there is one thread.
        unsafe { port.store_u64(at, value) };
    }
    // SAFETY: there is one thread.
    unsafe { port.store_nt(128, &[7; 16]) };
    let trace = recorder.take_trace();
    let mut replay = Replay::new(&trace, Traced::new(LIMIT, LIMIT).unwrap());
    while replay.step().is_some() {}
    assert_eq!(replay.choices(), 4 * 2 * 4);
    let mut hashes: Vec<u128> =
        (0..replay.choices()).map(|n| replay.left(&mut Numbered(n)).hash()).collect();
    assert_eq!(hashes[0], replay.left(&mut AllOldest).hash());
    assert_eq!(hashes[31], replay.left(&mut AllNewest).hash());
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 32);
}

/// What a killed process left undurable is so in the record of the next one, as it is on the device
/// that both of them used.
#[test]
fn a_run_after_a_kill_inherits_what_was_not_durable() {
    for seed in 0..40 {
        let crash = Arc::new(Crash::new(LIMIT, LIMIT).unwrap());
        let recorder = Arc::new(Traced::new(LIMIT, LIMIT).unwrap());
        recorder.record();
        run(&recorder, seed);
        run(&crash, seed);
        let trace = recorder.take_trace();
        let mut replay = Replay::new(&trace, Traced::new(LIMIT, LIMIT).unwrap());
        while replay.step().is_some() {}
        let (left, killed) = (replay.left(&mut AllNewest), replay.killed());
        crash.kill();
        let next = Arc::clone(replay.load(&left));
        next.record();
        run(&next, seed + 100);
        run(&crash, seed + 100);
        let trace = next.take_trace().after_kill(killed);
        let mut replay = Replay::new(&trace, Traced::new(LIMIT, LIMIT).unwrap());
        while replay.step().is_some() {}
        for (mut one, mut other) in adversaries(seed).into_iter().zip(adversaries(seed)) {
            let expected = contents(&crash.image_after_power_cut(&mut *one));
            let left = replay.left(&mut *other);
            assert!(contents(&**replay.load(&left)) == expected, "seed {seed}");
        }
    }
}
