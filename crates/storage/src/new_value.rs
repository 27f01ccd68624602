//! The value of a version that is to be written.

use std::ops::Range;

use crate::line::LINE;

/// A new value: all of it, or an old value and the lines of it that are replaced. Who changes a few
/// bytes of a long row need not copy the row for it.
#[derive(Debug, Clone, Copy)]
pub struct NewValue<'v> {
    /// The whole value, or the old one.
    base: &'v [u8],
    /// Where `part` belongs, a multiple of 64.
    at: usize,
    /// What replaces as many bytes of `base`: whole lines, but for the last of the value.
    part: &'v [u8],
}

/// The bytes from the first to the last line of a value that holds some of these bytes.
pub fn lines_around(bytes: &Range<usize>, value_len: usize) -> Range<usize> {
    let from = bytes.start - bytes.start % LINE;
    from..bytes.end.next_multiple_of(LINE).min(value_len)
}

impl<'v> NewValue<'v> {
    /// A whole value.
    #[inline(always)]
    pub fn whole(value: &'v [u8]) -> Self {
        Self { base: value, at: 0, part: &[] }
    }

    /// An old value, and the lines that replace those at an offset.
    ///
    /// # Panics
    /// If these are not whole lines of the value; see [`lines_around`].
    #[inline(always)]
    pub fn with_lines(base: &'v [u8], at: usize, part: &'v [u8]) -> Self {
        let end = at + part.len();
        assert!(
            at.is_multiple_of(LINE)
                && end <= base.len()
                && (end.is_multiple_of(LINE) || end == base.len()),
            "bytes {at} to {end} are no lines of a value of {} bytes",
            base.len()
        );
        Self { base, at, part }
    }

    /// Its length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.base.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.base.is_empty()
    }

    /// All of it, if it lies in one piece.
    #[inline(always)]
    pub fn in_one_piece(&self) -> Option<&'v [u8]> {
        self.part.is_empty().then_some(self.base)
    }

    /// The bytes of a range, in up to three pieces.
    #[inline(always)]
    pub fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &'v [u8]> + use<'v> {
        let Self { base, at, part } = *self;
        let Range { start, end } = range;
        let part_end = at + part.len();
        let before = &base[start.min(at)..end.min(at)];
        let among = &part[start.clamp(at, part_end) - at..end.clamp(at, part_end) - at];
        let after = &base[start.max(part_end)..end.max(part_end)];
        [before, among, after].into_iter().filter(|piece| !piece.is_empty())
    }

    /// Appends the whole value.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        self.pieces(0..self.len()).for_each(|piece| bytes.extend_from_slice(piece));
    }

    /// Which bytes of an old value of the same length are read to compare it with this one.
    pub fn compared_with(&self, old: &[u8]) -> impl Iterator<Item = Range<usize>> {
        self.against(old).map(|(at, old, _)| at..at + old.len())
    }

    /// Where it may differ from an old value of the same length: in up to three pieces, the offset,
    /// what the old value has there, and what this one has. If lines of that very value were
    /// replaced, only these.
    #[inline(always)]
    pub(crate) fn against<'o>(
        &self,
        old: &'o [u8],
    ) -> impl Iterator<Item = (usize, &'o [u8], &'v [u8])> + use<'o, 'v> {
        let replaced = self.at..self.at + self.part.len();
        let is_base = !self.part.is_empty() && std::ptr::eq(self.base, old);
        let mut at = if is_base { replaced.start } else { 0 };
        self.pieces(if is_base { replaced } else { 0..self.len() }).map(move |piece| {
            let from = at;
            at += piece.len();
            (from, &old[from..at], piece)
        })
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
            let value = NewValue::with_lines(&base, lines.start, &part);
            for start in 0..=base.len() {
                for end in start..=base.len() {
                    assert_eq!(
                        value.pieces(start..end).collect::<Vec<_>>().concat(),
                        whole[start..end]
                    );
                }
            }
            let mut appended = vec![7];
            value.append_to(&mut appended);
            assert_eq!((appended[0], &appended[1..]), (7, &whole[..]));
        }
    }

    #[test]
    #[should_panic(expected = "bytes 64 to 100 are no lines of a value of 200 bytes")]
    fn half_a_line_replaces_none() {
        NewValue::with_lines(&[0; 200], 64, &[0; 36]);
    }
}
