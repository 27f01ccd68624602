//! Hashes of rows, and what changes of values do to them.

use std::slice::from_ref;

use pmem::Line;

use crate::digest::gain::{Gain, length_hash, row_seed};
use crate::digest::state_hash::{StateHash, join, sum_of};
use crate::digest::sums::{BLOCK_LINES, KEYS, SHIFT, WORDS, gain_of, product};
use crate::ids::TableId;
use crate::value::NewValue;
use crate::value::lines::{ALL_LINES, LINE, for_each_run};

/// Hash of one row, two numbers modulo 2^64: for each a number for its table, key and length, and
/// for each word of its value a product, times a number for table, key and block. The state hash is
/// the sum of these.
#[inline]
pub fn row_hash(table: TableId, key: &[u8], value: &[u8]) -> u128 {
    value_hash(row_seed(table, key), value)
}

/// What a new value changes in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowChange {
    /// What the row's hash gains: [`row_hash`] of the new value less that of the old.
    pub hash: u128,
    /// The lines that differ, or all of them if the values differ in length.
    pub lines: u64,
}

/// Compares the values of a row, line by line, where it is not known what they have in common. A
/// new value of another length must lie in one piece.
#[inline]
pub fn row_change(table: TableId, key: &[u8], old: &[u8], new: &NewValue<'_>) -> RowChange {
    let seed = row_seed(table, key);
    if old.len() != new.len() {
        let new = new.in_one_piece().expect("lines are replaced in a value of the same length");
        return of_other_length(seed, old, new);
    }
    debug_assert!(is_changed_in_mask(old, new), "the mask has all lines that differ");
    if new.changed() == ALL_LINES {
        return compare(seed, old, new);
    }
    // Lines that are known to have changed are not compared.
    let mut gain = Gain::of(seed);
    for_each_run(new.changed(), old.len().div_ceil(LINE), |from, to| {
        (from..to).for_each(|line| gain.add(line, line_of(old, line), new.line(line)));
    });
    RowChange { hash: join(gain.of_row()), lines: new.changed() }
}

#[inline(never)]
fn of_other_length(seed: u64, old: &[u8], new: &[u8]) -> RowChange {
    let StateHash(hash) = StateHash(value_hash(seed, new)).less(value_hash(seed, old));
    RowChange { hash, lines: ALL_LINES }
}

/// [`row_change`] where the mask says nothing.
#[inline(never)]
fn compare(seed: u64, old: &[u8], new: &NewValue<'_>) -> RowChange {
    let (mut gain, mut lines) = (Gain::of(seed), 0);
    for_each_changed(old, new, |line, old, new| {
        gain.add(line, old, new);
        lines |= 1 << line.min(63);
    });
    RowChange { hash: join(gain.of_row()), lines }
}

/// What the hash of a row gains with some lines that are replaced: from a byte on, which begins a
/// line, up to the end of a line or of the value.
#[inline(always)]
pub fn lines_gain(table: TableId, key: &[u8], at: usize, old: &[u8], new: &[u8]) -> u128 {
    debug_assert!(at.is_multiple_of(LINE), "what is replaced begins with a line");
    debug_assert!(old.len() == new.len(), "lines are replaced by as many");
    let (seed, first) = (row_seed(table, key), at / LINE);
    let ((old, old_rest), (new, new_rest)) = (old.as_chunks(), new.as_chunks());
    let mut gain = Gain::of(seed);
    gain.enter(first / BLOCK_LINES);
    if new_rest.is_empty() && first % BLOCK_LINES + new.len() <= BLOCK_LINES {
        gain.of_block = gain_of(&KEYS[first % BLOCK_LINES * WORDS..], old, new);
        return join(gain.of_row());
    }
    for (line, (old, new)) in (first..).zip(old.iter().zip(new)) {
        gain.add(line, old, new);
    }
    if !new_rest.is_empty() {
        gain.add(first + new.len(), old_rest, new_rest);
    }
    join(gain.of_row())
}

/// What the hash of a row gains whose value is a line, or less with zeros behind it.
#[inline(always)]
pub fn only_line_gain(table: TableId, key: &[u8], old: &Line, new: &Line) -> u128 {
    let mut gain = Gain::of(row_seed(table, key));
    gain.of_block = gain_of(&KEYS, from_ref(old), from_ref(new));
    join(gain.of_row())
}

/// [`row_hash`] of a value of some bytes that lie in a line, with zeros behind them.
#[inline(always)]
pub fn only_line_hash(table: TableId, key: &[u8], line: &Line, len: usize) -> u128 {
    debug_assert!(len <= LINE, "a value of {len} bytes lies in no line");
    debug_assert!(line[len..].iter().all(|byte| *byte == 0), "zeros follow a value");
    let seed = row_seed(table, key);
    let mut gain = Gain::of(seed);
    gain.of_block = gain_of(&KEYS, &ZEROS[..1], from_ref(line));
    sum_of(length_hash(seed, len), join(gain.of_row()))
}

/// What the hash of a row gains whose value is one word, see [`row_hash`].
#[inline(always)]
pub fn word_gain(table: TableId, key: &[u8], old: u64, new: u64) -> u128 {
    let mut gain = Gain::of(row_seed(table, key));
    gain.of_block =
        [KEYS[0], KEYS[SHIFT]].map(|key| product(new, key).wrapping_sub(product(old, key)));
    join(gain.of_row())
}

/// The lines in which the values of a row differ, as [`row_change`] finds them, where the hash is
/// not needed.
pub fn changed_lines(old: &[u8], new: &NewValue<'_>) -> u64 {
    if old.len() != new.len() {
        return ALL_LINES;
    }
    if new.changed() != ALL_LINES {
        return new.changed();
    }
    let mut lines = 0;
    for_each_changed(old, new, |line, _, _| lines |= 1 << line.min(63));
    lines
}

/// Calls `each` with the lines in which two values of one length differ.
#[inline(always)]
fn for_each_changed(old: &[u8], new: &NewValue<'_>, mut each: impl FnMut(usize, &[u8], &[u8])) {
    for line in 0..old.len().div_ceil(LINE) {
        let (old, new) = (line_of(old, line), new.line(line));
        let is_same = match (<&Line>::try_from(old), <&Line>::try_from(new)) {
            // Without a call, which costs more than the comparison.
            (Ok(old), Ok(new)) => old == new,
            _ => old == new,
        };
        if !is_same {
            each(line, old, new);
        }
    }
}

/// Whether two values of one length differ in lines of the mask only.
fn is_changed_in_mask(old: &[u8], new: &NewValue<'_>) -> bool {
    let mut lines = old.chunks(LINE).enumerate();
    lines.all(|(line, old)| new.changed() >> line.min(63) & 1 != 0 || new.line(line) == old)
}

/// The bytes of a line of a value; fewer than 64 of the last one.
#[inline(always)]
fn line_of(value: &[u8], line: usize) -> &[u8] {
    &value[line * LINE..value.len().min((line + 1) * LINE)]
}

/// A block of zeros, which adds nothing.
static ZEROS: [Line; BLOCK_LINES] = [[0; LINE]; BLOCK_LINES];

/// What the value of a row adds to the state hash.
#[inline]
fn value_hash(seed: u64, value: &[u8]) -> u128 {
    let mut gain = Gain::of(seed);
    for (number, block) in value.chunks(BLOCK_LINES * LINE).enumerate() {
        let (lines, rest) = block.as_chunks();
        gain.enter(number);
        gain.of_block = gain_of(&KEYS, &ZEROS[..lines.len()], lines);
        if !rest.is_empty() {
            gain.add(number * BLOCK_LINES + lines.len(), &[], rest);
        }
    }
    sum_of(length_hash(seed, value.len()), join(gain.of_row()))
}

#[cfg(test)]
mod tests;
