//! The rows of a table page by page, for what reads more than memory has.

use super::evaluate::malformed;
use super::range::Range;
use super::rows::{Entry, Rows};
use super::scan::{decode, layout, whole};
use crate::ir::{ColumnNumber, Relation};
use values::row::Layout;
use values::{Datum, Result, key};

/// Goes through a table in the order of its primary key.
#[derive(Debug)]
pub struct Pages {
    relation: Relation,
    targets: Vec<ColumnNumber>,
    layout: Layout,
    range: Range,
    /// Entries of the range that were not given yet.
    found: std::vec::IntoIter<Entry>,
}

/// A page ends behind so many bytes of rows.
const PAGE_BYTES: usize = 4 << 20;

impl Pages {
    /// Before the first row; these columns are wanted.
    pub fn of(relation: &Relation, targets: &[ColumnNumber]) -> Pages {
        let first = relation.id.to_bytes();
        Pages {
            range: Range::new(relation.space, first.to_vec(), key::after_prefix(&first)),
            layout: layout(relation),
            relation: relation.clone(),
            targets: targets.to_vec(),
            found: Vec::new().into_iter(),
        }
    }

    /// The next rows; none behind the last.
    ///
    /// # Errors
    /// Of reading, or a damaged row.
    pub fn next_page(&mut self, rows: &mut dyn Rows) -> Result<Vec<Vec<Datum>>> {
        if self.found.len() == 0 {
            self.found = self.range.next_page(rows)?.unwrap_or_default().into_iter();
        }
        let (mut page, mut bytes_found) = (Vec::with_capacity(self.found.len()), 0);
        while bytes_found < PAGE_BYTES
            && let Some(entry) = self.found.next()
        {
            let (_, bytes) = whole(&self.relation, entry, rows)?;
            bytes_found += bytes.len();
            let row = decode(&self.relation, &self.layout, &bytes)?;
            let value = |target: &ColumnNumber| row.get(usize::from(*target)).cloned();
            let row = self.targets.iter().map(|target| value(target).ok_or_else(malformed));
            page.push(row.collect::<Result<Vec<Datum>>>()?);
        }
        Ok(page)
    }
}
