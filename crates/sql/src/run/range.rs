//! The entries of a range of keys, page by page.

use super::rows::{Entry, Rows, Scan};
use super::weight;
use crate::ir::Space;
use values::Result;

/// Entries of a page.
const PAGE_ROWS: usize = 256;
/// Entries of the smallest first page.
const PAGE_ROWS_MIN: usize = 2;
/// How many times as many entries as a page the next one has.
const GROWTH: usize = 4;

/// A range of keys that is gone through in their order or in the opposite one.
#[derive(Debug)]
pub(super) struct Range {
    space: Space,
    /// The keys that are left, from `from` on and before `to`; `None` behind the last page.
    left: Option<(Vec<u8>, Option<Vec<u8>>)>,
    is_backward: bool,
    /// Entries of the next page.
    page_rows: usize,
}

impl Range {
    /// The keys from `from` on and before `to`.
    pub(super) fn new(space: Space, from: Vec<u8>, to: Option<Vec<u8>>) -> Range {
        Range { space, left: Some((from, to)), is_backward: false, page_rows: PAGE_ROWS }
    }

    /// The range in the opposite order.
    pub(super) fn backward(self) -> Range {
        Range { is_backward: true, ..self }
    }

    /// The range for a reader to whom `enough` entries may be enough: its first pages are short.
    pub(super) fn with_enough(self, enough: usize) -> Range {
        Range { page_rows: enough.clamp(PAGE_ROWS_MIN, PAGE_ROWS), ..self }
    }

    /// The next entries; `None` behind the last page.
    pub(super) fn next_page(&mut self, rows: &mut dyn Rows) -> Result<Option<Vec<Entry>>> {
        let Some((from, to)) = self.left.take() else { return Ok(None) };
        let (space, rows_max, is_backward) = (self.space, self.page_rows, self.is_backward);
        let scan = Scan { space, from: &from, to: to.as_deref(), rows_max, is_backward };
        let mut page = Vec::new();
        rows.scan(scan, &mut page)?;
        check_page(&page, scan);
        let bytes = page.iter().map(|(key, row)| key.len() + row.len()).sum();
        rows.steps(weight::of_bytes(bytes))?;
        if page.len() == rows_max {
            self.left = page.last().map(|(last, _)| match is_backward {
                false => ([last, &[0][..]].concat(), to),
                true => (from, Some(last.clone())),
            });
        }
        self.page_rows = (rows_max * GROWTH).min(PAGE_ROWS.max(rows_max));
        Ok(Some(page))
    }

    /// Whether there are keys behind the last page.
    pub(super) fn has_more(&self) -> bool {
        self.left.is_some()
    }

    /// Goes on with the keys from `from` on and before `to`. Of a range in the opposite order.
    pub(super) fn go_on_before(&mut self, to: Vec<u8>, from: &[u8]) {
        assert!(self.is_backward, "what is left of a range in order begins behind a key");
        self.left = (from < &to[..]).then(|| (from.to_vec(), Some(to)));
    }
}

/// What the search takes for granted of a page: it goes on behind the last row, and ends it by the
/// number of rows.
fn check_page(page: &[Entry], scan: Scan<'_>) {
    assert!(page.len() <= scan.rows_max, "a scan gives no more rows than was asked for");
    let is_sorted = |left: &Entry, right: &Entry| (left.0 < right.0) != scan.is_backward;
    assert!(page.is_sorted_by(is_sorted), "a scan gives each key once, sorted");
    let (first, last) = match scan.is_backward {
        false => (page.first(), page.last()),
        true => (page.last(), page.first()),
    };
    if let (Some((first, _)), Some((last, _))) = (first, last) {
        assert!(&first[..] >= scan.from, "a scan begins at its first key");
        assert!(scan.to.is_none_or(|to| &last[..] < to), "a scan ends before its last key");
    }
}
