//! Choices by a seed.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A stream of choices that a seed fixes.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// The stream of `seed`.
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    /// True once in `sides` times.
    pub(crate) fn one_in(&mut self, sides: u32) -> bool {
        self.0.random_range(0..sides) == 0
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        self.0.random_range(low..=high)
    }

    /// One of the choices.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        choices.choose(&mut self.0).expect("there is something to choose from")
    }

    /// One of the words.
    pub(crate) fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.pick::<&'static str>(words)
    }
}
