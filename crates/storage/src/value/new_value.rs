//! The value of a version that is to be written.

use std::ops::Range;

use crate::value::lines::{ALL_LINES, LINE, LINES_SINGLE, lines_of};

/// A new value: all of it, or an old value and the lines of it that are replaced, so that who
/// changes a few bytes of a long row need not copy the row for it. With it goes a mask of lines:
/// what is not in the mask is as it was in the row before the epoch.
#[derive(Debug, Clone, Copy)]
pub struct NewValue<'v> {
    /// The whole value, or the old one.
    base: &'v [u8],
    /// Where `part` belongs, a multiple of 64.
    at: usize,
    /// What replaces as many bytes of `base`: whole lines, but for the last of the value.
    part: &'v [u8],
    /// Lines that may differ from the row's value before the epoch (`lines.rs`).
    changed: u64,
}

/// The bytes from the first to the last line of a value that holds some of these bytes.
pub fn lines_around(bytes: &Range<usize>, value_len: usize) -> Range<usize> {
    let from = bytes.start - bytes.start % LINE;
    from..bytes.end.next_multiple_of(LINE).min(value_len)
}

impl<'v> NewValue<'v> {
    /// A whole value, of which it is not known what it has in common with the row before the epoch.
    #[inline]
    pub fn whole(value: &'v [u8]) -> Self {
        Self::changed_in(value, ALL_LINES)
    }

    /// A whole value that differs from the row before the epoch in lines of a mask at most.
    #[inline]
    pub fn changed_in(value: &'v [u8], changed: u64) -> Self {
        Self { base: value, at: 0, part: &[], changed }
    }

    /// An old value, and the lines that replace those at an offset; `changed` says in which lines
    /// the old value may differ from the row before the epoch.
    ///
    /// # Panics
    /// If these are not whole lines of the value; see [`lines_around`].
    #[inline]
    pub fn with_lines(base: &'v [u8], at: usize, part: &'v [u8], changed: u64) -> Self {
        let end = at + part.len();
        assert!(
            at.is_multiple_of(LINE)
                && end <= base.len()
                && (end.is_multiple_of(LINE) || end == base.len()),
            "bytes {at} to {end} are no lines of a value of {} bytes",
            base.len()
        );
        Self { base, at, part, changed: changed | lines_of(at, part.len()) }
    }

    /// Lines that may differ from the row's value before the epoch; all others do not.
    #[inline]
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Its length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.base.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.base.is_empty()
    }

    /// All of it, if it lies in one piece.
    #[inline]
    pub fn in_one_piece(&self) -> Option<&'v [u8]> {
        self.part.is_empty().then_some(self.base)
    }

    /// All of it.
    ///
    /// # Panics
    /// If it lies in several pieces; see [`NewValue::put_together`].
    #[inline]
    pub fn bytes(&self) -> &'v [u8] {
        self.in_one_piece().expect("a value that is put together")
    }

    /// The same in one piece, for which `room` is used if it lies in several.
    #[inline]
    pub fn put_together<'r>(&self, room: &'r mut Vec<u8>) -> NewValue<'r>
    where
        'v: 'r,
    {
        if self.part.is_empty() {
            return *self;
        }
        room.clear();
        self.append_to(room);
        NewValue::changed_in(room, self.changed)
    }

    /// The lines that replace some of the old value, and where, if nothing else may differ from the
    /// row before the epoch.
    #[inline]
    pub fn only_part(&self) -> Option<(usize, &'v [u8])> {
        // The last bit stands for many lines.
        let is_exact = self.changed >> LINES_SINGLE == 0;
        let is_only = is_exact && self.changed == lines_of(self.at, self.part.len());
        (is_only && !self.part.is_empty()).then_some((self.at, self.part))
    }

    /// The bytes of a range, in up to three pieces, some of which may be empty.
    #[inline]
    pub fn pieces(&self, range: Range<usize>) -> [&'v [u8]; 3] {
        let Self { base, at, part, .. } = *self;
        let Range { start, end } = range;
        let part_end = at + part.len();
        let before = &base[start.min(at)..end.min(at)];
        let among = &part[start.clamp(at, part_end) - at..end.clamp(at, part_end) - at];
        let after = &base[start.max(part_end)..end.max(part_end)];
        [before, among, after]
    }

    /// The bytes of a line; fewer than 64 of the last one.
    #[inline]
    pub fn line(&self, line: usize) -> &'v [u8] {
        let start = line * LINE;
        let from = start.wrapping_sub(self.at);
        // Lines are replaced as a whole, so that only the end of the value is within one.
        let is_replaced = from < self.part.len();
        let rest = if is_replaced { &self.part[from..] } else { &self.base[start..] };
        rest.first_chunk::<LINE>().map_or(rest, |line| line)
    }

    /// Appends the whole value.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        self.pieces(0..self.len()).iter().for_each(|piece| bytes.extend_from_slice(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_range_are_the_bytes_of_the_whole() {
        let base: Vec<u8> = (0..200).collect();
        for changed in [0..1, 5..70, 64..128, 70..71, 130..200, 190..200, 0..200] {
            let lines = lines_around(&changed, base.len());
            let part: Vec<u8> = base[lines.clone()].iter().map(|byte| !byte).collect();
            let mut whole = base.clone();
            whole[lines.clone()].copy_from_slice(&part);
            let value = NewValue::with_lines(&base, lines.start, &part, 0);
            let differing = whole.chunks(LINE).zip(base.chunks(LINE)).enumerate();
            let differing = differing.filter(|(_, (new, old))| new != old);
            assert_eq!(value.changed(), differing.fold(0, |mask, (line, _)| mask | 1 << line));
            for (line, bytes) in whole.chunks(LINE).enumerate() {
                assert_eq!(value.line(line), bytes);
            }
            for start in 0..=base.len() {
                for end in start..=base.len() {
                    assert_eq!(value.pieces(start..end).concat(), whole[start..end]);
                }
            }
            let mut appended = vec![7];
            value.append_to(&mut appended);
            assert_eq!((appended[0], &appended[1..]), (7, &whole[..]));
            let together = value.put_together(&mut appended);
            assert_eq!((together.bytes(), together.changed()), (&whole[..], value.changed()));
        }
    }

    #[test]
    fn a_part_is_all_that_differs_as_far_as_masks_can_say() {
        let (base, part) = ([1; 6400], [2; 128]);
        let only = |at: usize, changed| NewValue::with_lines(&base, at, &part, changed).only_part();
        assert_eq!(only(64, 0), Some((64, &part[..])));
        assert_eq!(only(64, 0b10), Some((64, &part[..])), "within the part");
        assert_eq!(only(64, 0b1000), None);
        assert_eq!(only(61 * 64, 0), Some((61 * 64, &part[..])));
        assert_eq!(only(62 * 64, 0), None, "the last bit may be of other lines");
        assert_eq!(NewValue::whole(&base).only_part(), None);
        assert_eq!(NewValue::changed_in(&base, 0).only_part(), None);
    }

    #[test]
    #[should_panic(expected = "bytes 64 to 100 are no lines of a value of 200 bytes")]
    fn half_a_line_replaces_none() {
        NewValue::with_lines(&[0; 200], 64, &[0; 36], 0);
    }
}
