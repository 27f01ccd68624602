//! The entries of a range of keys, page by page.

use super::rows::{Entry, Rows, Scan};
use super::weight;
use crate::ir::Space;
use values::Result;

/// Entries of a page.
const PAGE_ROWS: usize = 256;

/// A range of keys that is gone through in their order.
#[derive(Debug)]
pub(super) struct Range {
    space: Space,
    /// The first key of the next page; `None` behind the last page.
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl Range {
    /// The keys from `from` on and before `to`.
    pub(super) fn new(space: Space, from: Vec<u8>, to: Option<Vec<u8>>) -> Range {
        Range { space, from: Some(from), to }
    }

    /// The next entries; `None` behind the last page.
    pub(super) fn next_page(&mut self, rows: &mut dyn Rows) -> Result<Option<Vec<Entry>>> {
        let Some(from) = self.from.take() else { return Ok(None) };
        let to = self.to.as_deref();
        let scan = Scan { space: self.space, from: &from, to, rows_max: PAGE_ROWS };
        let mut page = Vec::new();
        rows.scan(scan, &mut page)?;
        check_page(&page, scan);
        let bytes = page.iter().map(|(key, row)| key.len() + row.len()).sum();
        rows.steps(weight::of_bytes(bytes))?;
        if page.len() == PAGE_ROWS {
            self.from = page.last().map(|(last, _)| [last, &[0][..]].concat());
        }
        Ok(Some(page))
    }
}

/// What the search takes for granted of a page: it goes on behind the last row, and ends it by the
/// number of rows.
fn check_page(page: &[Entry], scan: Scan<'_>) {
    assert!(page.len() <= scan.rows_max, "a scan gives no more rows than was asked for");
    assert!(
        page.is_sorted_by(|left, right| left.0 < right.0),
        "a scan gives each key once, sorted"
    );
    if let (Some((first, _)), Some((last, _))) = (page.first(), page.last()) {
        assert!(&first[..] >= scan.from, "a scan begins at its first key");
        assert!(scan.to.is_none_or(|to| &last[..] < to), "a scan ends before its last key");
    }
}
