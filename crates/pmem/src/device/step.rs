//! Which lines of the image one step of the program has read: a line that it reads again is in the
//! processor's cache, and costs nothing. Only used where reads cost something.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The lines that the running step has read.
#[derive(Debug, Default)]
pub(crate) struct Step(HashSet<u64, BuildHasherDefault<LineHasher>>);

impl Step {
    /// Notes a line, given by its offset; whether the step reads it for the first time.
    #[inline]
    pub(crate) fn is_new(&mut self, line: u64) -> bool {
        self.0.insert(line)
    }

    /// The next step begins.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0.clear();
        }
    }
}

/// Spreads the offsets of lines: the usual hash would take as long as what is to be charged.
#[derive(Debug, Default)]
struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, line: u64) {
        let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("lines are numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_new_once_in_each_step() {
        let mut step = Step::default();
        for _ in 0..2 {
            for line in (0..100_000).step_by(64) {
                assert!(step.is_new(line));
                assert!(!step.is_new(line));
            }
            step.clear();
        }
    }
}
