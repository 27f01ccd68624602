//! The rows of a table page by page, for what reads more than memory has.

use super::evaluate::malformed;
use super::range::Range;
use super::rows::{Entry, Rows};
use super::scan::{decode, layout};
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
}

impl Pages {
    /// Before the first row; these columns are wanted.
    pub fn of(relation: &Relation, targets: &[ColumnNumber]) -> Pages {
        let first = relation.id.to_bytes();
        Pages {
            range: Range::new(relation.space, first.to_vec(), key::after_prefix(&first)),
            layout: layout(relation),
            relation: relation.clone(),
            targets: targets.to_vec(),
        }
    }

    /// The next rows; none behind the last.
    ///
    /// # Errors
    /// Of reading, or a damaged row.
    pub fn next_page(&mut self, rows: &mut dyn Rows) -> Result<Vec<Vec<Datum>>> {
        let page = self.range.next_page(rows)?.unwrap_or_default();
        let row = |(_, bytes): &Entry| {
            let row = decode(&self.relation, &self.layout, bytes)?;
            let value = |target: &ColumnNumber| row.get(usize::from(*target)).cloned();
            self.targets.iter().map(|target| value(target).ok_or_else(malformed)).collect()
        };
        page.iter().map(row).collect()
    }
}
