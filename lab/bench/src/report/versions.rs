//! How long values are, and how many of them lie in their rows: of the rows at the end of a run, or
//! of all versions that epochs wrote.

use bench::report::Named;
use engine::Engine;
use storage::{EpochNumber, IndexKind, TableId};

/// Classes of lengths of values, as the last one each has.
const LENGTHS: [usize; 7] = [8, 16, 30, 64, 128, 256, 1024];

/// Versions by place and length; those of sequences are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Versions {
    all: u64,
    inline: u64,
    up_to: [u64; LENGTHS.len()],
}

impl Versions {
    /// Adds the newest version of each row, if it was written in an epoch or after it.
    pub(crate) fn add_since(&mut self, engine: &Engine, since: EpochNumber) {
        let tables = engine.store().tables().iter().enumerate();
        let rows = tables.filter(|(_, t)| t.is_used() && t.definition.index != IndexKind::Sequence);
        for (number, _) in rows {
            let table = TableId(number as u16);
            let counted = engine.for_each_version(table, since, &mut |len, is_inline| {
                self.all += 1;
                self.inline += u64::from(is_inline);
                for (count, length) in self.up_to.iter_mut().zip(LENGTHS) {
                    *count += u64::from(len <= length);
                }
            });
            counted.expect("the table exists");
        }
    }

    /// For reports.
    pub(crate) fn named(&self) -> Named {
        let mut named = Named::default();
        named.count("all", self.all);
        named.count("inline", self.inline);
        for (count, length) in self.up_to.iter().zip(LENGTHS) {
            named.count(&format!("up_to_{length}_bytes"), *count);
        }
        named
    }
}
