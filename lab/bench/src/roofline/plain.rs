//! What a plain program does here: no engine, no log, no versions. It says how fast the whole
//! machine is for this kind of work, processor and memory together.

use std::hint::black_box;
use std::sync::Mutex;

use bench::clock::now_ns;
use bench::report::median;
use pmem::MeasuringArea;
use workloads::random::Random;

const REPETITIONS: u64 = 5;
const TRANSACTIONS: u64 = 20_000;
const ROW_BYTES: u64 = 1_000;
const UPDATE_BYTES: usize = 100;
const ROWS_PER_TRANSACTION: u64 = 10;

/// Microseconds of a transaction of ten read-modify-writes on rows of 1,000 bytes in a plain array
/// behind one mutex: each row is read whole, and 100 bytes of it are written. One thread.
pub(super) fn rmw_us(area: &mut MeasuringArea) -> f64 {
    let rows = area.bytes() / ROW_BYTES;
    let table = Mutex::new(area);
    let one = |seed| {
        let mut random = Random::new(seed, 4, 0);
        let start = now_ns();
        for _ in 0..TRANSACTIONS {
            let mut area = table.lock().expect("no thread panicked");
            for _ in 0..ROWS_PER_TRANSACTION {
                change_row(&mut area, random.below(rows) * ROW_BYTES, &mut random);
            }
        }
        (now_ns() - start) as f64 / 1e3 / TRANSACTIONS as f64
    };
    median((1..=REPETITIONS).map(one).collect())
}

fn change_row(area: &mut MeasuringArea, row: u64, random: &mut Random) {
    let words = (row..row + ROW_BYTES).step_by(8).map(|at| area.load_u64(at));
    let sum = black_box(words.fold(0, u64::wrapping_add));
    let place = row + random.below(ROW_BYTES / UPDATE_BYTES as u64) * UPDATE_BYTES as u64;
    area.store_bytes(place, &[sum as u8; UPDATE_BYTES]);
}
