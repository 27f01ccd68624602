//! Measures the processor alone: how many instructions it gets done when nothing waits for memory.

use std::hint::black_box;

use bench::clock::now_ns;
use bench::report::median;

const REPETITIONS: u64 = 7;
/// Rounds of a repetition: some ten milliseconds, so that it is not one slice of a shared core.
const ROUNDS: u64 = 1 << 20;
/// Steps that are written out in a round, so that counting rounds does not matter.
const STEPS_PER_ROUND: u64 = 16;
const WORDS: usize = 8;

/// Additions and exclusive ors that one thread executes in a nanosecond, of which nearly all are
/// independent of the ones next to them: what the core can start is the limit, not how long one
/// takes.
///
/// It says what a run had of its core. A virtual processor that shares its core with a neighbour
/// executes about half of what it would alone, and that changes from minute to minute; figures of
/// memory hardly show it. So there is no reference: compare it with itself, before and after a run.
pub(super) fn operations_per_ns() -> f64 {
    let one = |seed| {
        let mut words = black_box([seed; WORDS]);
        let start = now_ns();
        for _ in 0..ROUNDS {
            round(&mut words);
        }
        black_box(words);
        let operations = ROUNDS * STEPS_PER_ROUND * WORDS as u64;
        operations as f64 / (now_ns() - start).max(1) as f64
    };
    median((1..=REPETITIONS).map(one).collect())
}

/// Steps that cannot be left out or done at once: each word takes in the next one of a ring, by
/// turns with an addition and an exclusive or, which no shorter sum replaces. As every word takes
/// in another one, the compiler does not put two into one vector, either: on x86-64 the machine
/// code of a round is 128 instructions on words, and two to count it.
#[inline(always)]
fn round(words: &mut [u64; WORDS]) {
    let [a, b, c, d, e, f, g, h] = words;
    for _ in 0..STEPS_PER_ROUND {
        *a = a.wrapping_add(*b);
        *b ^= *c;
        *c = c.wrapping_add(*d);
        *d ^= *e;
        *e = e.wrapping_add(*f);
        *f ^= *g;
        *g = g.wrapping_add(*h);
        *h ^= *a;
    }
}
