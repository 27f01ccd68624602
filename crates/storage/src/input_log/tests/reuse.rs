//! Nothing that is still needed is ever overwritten (O-23), by comparison with a model.

use crate::ids::EpochNumber;
use pmem::AnyDevice;
use std::collections::BTreeMap;

use super::device::TestDevice;
use super::*;

/// What must be readable, and where it lies.
#[derive(Default)]
struct Model {
    checkpoint: u64,
    next: u64,
    epochs: BTreeMap<u64, Vec<Vec<u8>>>,
    deferred_records: BTreeMap<u64, Vec<u8>>,
    /// Byte ranges by epoch that need them.
    needed: BTreeMap<u64, Vec<(u64, u64)>>,
}

impl Model {
    /// Checks that no write hits what is needed, and remembers the writes as needed by `epoch`.
    fn absorb(&mut self, device: &TestDevice, epoch: u64, keep: bool, seed: u64) {
        let mut ranges = Vec::new();
        for write in device.take_history() {
            let (from, to) = (write.offset, write.offset + write.bytes.len() as u64);
            for (epoch, allocated) in
                self.needed.iter().flat_map(|(e, all)| all.iter().map(move |r| (e, r)))
            {
                assert!(
                    to <= allocated.0 || allocated.1 <= from,
                    "seed {seed}: bytes {from} to {to} belong to epoch {epoch}"
                );
            }
            // What a crash left behind is erased, and nobody holds that.
            if write.bytes != [0; HEADER_BYTES] {
                let segments = (from..to).step_by(SEGMENT_BYTES as usize);
                ranges.extend(segments.map(|segment| (segment, segment + SEGMENT_BYTES)));
            }
        }
        if keep {
            self.needed.entry(epoch).or_default().extend(ranges);
        }
    }

    fn release(&mut self) {
        let checkpoint = self.checkpoint;
        self.epochs.retain(|epoch, _| *epoch > checkpoint);
        self.deferred_records.retain(|epoch, _| *epoch > checkpoint);
        self.needed.retain(|epoch, _| *epoch > checkpoint);
    }

    fn check(&self, device: &Arc<TestDevice>, seed: u64) -> InputLog {
        let (log, recovered) = open(device, self.checkpoint).unwrap();
        let expected: Vec<u64> = self.epochs.keys().copied().collect();
        assert_eq!(committed(&recovered), expected, "seed {seed}");
        for (epoch, streams) in &self.epochs {
            assert_eq!(
                &log.read_epoch(EpochNumber(*epoch)).unwrap().streams,
                streams,
                "seed {seed}"
            );
        }
        for (epoch, bytes) in &self.deferred_records {
            assert_eq!(
                log.deferred_calls(EpochNumber(*epoch)).unwrap().as_ref(),
                Some(bytes),
                "seed {seed}"
            );
        }
        let segments: u64 = self.needed.values().map(|ranges| ranges.len() as u64).sum();
        assert_eq!(log.bytes_in_use(), segments * SEGMENT_BYTES, "seed {seed}: nothing leaks");
        log
    }
}

fn random_streams(random: &mut Random) -> Vec<Vec<u8>> {
    (0..random.below(5))
        .map(|_| {
            let len = random.below(3 * PAYLOAD_BYTES as u64) as usize;
            random.bytes(len)
        })
        .collect()
}

#[test]
fn random_histories_overwrite_nothing_that_is_needed() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let device = Arc::new(TestDevice::new(1 << 24));
        let (mut log, _) = open(&device, 0).unwrap();
        let mut model = Model { next: 1, ..Model::default() };
        for _ in 0..60 {
            let epoch = model.next;
            match random.below(10) {
                0..=4 => {
                    let streams = random_streams(&mut random);
                    log_epoch(&log, &device, epoch, &streams).unwrap();
                    model.absorb(&device, epoch, true, seed);
                    model.epochs.insert(epoch, streams);
                    model.next += 1;
                }
                5 => {
                    log_streams(&log, &device, epoch, &random_streams(&mut random)).unwrap();
                    model.absorb(&device, epoch, false, seed);
                    log.abandon(EpochNumber(epoch));
                }
                6 if !model.deferred_records.contains_key(&epoch) => {
                    let len = random.below(9000) as usize;
                    let bytes = random.bytes(len);
                    log.write_deferred_calls(
                        &mut Port::new(AnyDevice::of(&device), 0),
                        EpochNumber(epoch),
                        &bytes,
                    )
                    .unwrap();
                    log.make_durable().unwrap();
                    model.absorb(&device, epoch, true, seed);
                    model.deferred_records.insert(epoch, bytes);
                }
                7 | 8 => {
                    model.checkpoint += random.below(epoch - model.checkpoint);
                    log.release(EpochNumber(model.checkpoint));
                    model.release();
                }
                _ => {
                    log_streams(&log, &device, epoch, &random_streams(&mut random)).unwrap();
                    model.absorb(&device, epoch, false, seed);
                    log = model.check(&device, seed);
                }
            }
        }
        model.check(&device, seed);
    }
}
