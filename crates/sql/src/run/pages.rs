//! The rows of a table page by page, for what reads more than memory has.

use super::evaluate::malformed;
use super::rows::{Rows, Scan};
use super::scan::{decode, layout};
use crate::ir::{ColumnNumber, Relation};
use values::row::Layout;
use values::{Datum, Result, key};

/// Rows of a page.
const PAGE_ROWS: usize = 256;

/// Goes through a table in the order of its primary key.
#[derive(Debug)]
pub struct Pages {
    relation: Relation,
    targets: Vec<ColumnNumber>,
    layout: Layout,
    /// The first key of the next page; `None` behind the last.
    from: Option<Vec<u8>>,
}

impl Pages {
    /// Before the first row; these columns are wanted.
    pub fn of(relation: &Relation, targets: &[ColumnNumber]) -> Pages {
        Pages {
            layout: layout(relation),
            relation: relation.clone(),
            targets: targets.to_vec(),
            from: Some(relation.id.to_bytes().to_vec()),
        }
    }

    /// The next rows; none behind the last.
    ///
    /// # Errors
    /// Of reading, or a damaged row.
    pub fn next_page(&mut self, rows: &mut dyn Rows) -> Result<Vec<Vec<Datum>>> {
        let Some(from) = self.from.take() else { return Ok(Vec::new()) };
        let to = key::after_prefix(&self.relation.id.to_bytes());
        let scan = Scan {
            space: self.relation.space,
            from: &from,
            to: to.as_deref(),
            rows_max: PAGE_ROWS,
        };
        let mut found = Vec::new();
        rows.scan(scan, &mut found)?;
        if found.len() == PAGE_ROWS {
            self.from = found.last().map(|(key, _)| [&key[..], &[0]].concat());
        }
        let row = |(_, bytes): &(Vec<u8>, Vec<u8>)| {
            let row = decode(&self.relation, &self.layout, bytes)?;
            let value = |target: &ColumnNumber| row.get(usize::from(*target)).cloned();
            self.targets.iter().map(|target| value(target).ok_or_else(malformed)).collect()
        };
        found.iter().map(row).collect()
    }
}
