//! Rows in the order of a key, or in the opposite one. Rows that are equal by it form a run, which
//! comes in the order of the primary key, as after a stable sort of all rows.

use super::entries::{key_values, order};
use super::evaluate::Evaluator;
use super::path::Path;
use super::range::Range;
use super::rows::Entry;
use super::scan::{Each, Found, Scanned, columns_bytes_max, primary_of};
use crate::ir::{Index, KeyColumn, KeyOrder, ObjectId};
use std::ops::ControlFlow;
use values::{Error, Result, Type, key};

/// Entries that are equal in the columns of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// No other entry is: it stands where its row belongs.
    Alone,
    /// Those with this many first bytes in common are.
    Prefix(usize),
    /// Those with the same first bytes may be: their keys were cut.
    Cut,
}

/// The rows of a path while they are put into the order of its key.
struct Ordered<'t, 'p> {
    table: &'t Scanned<'p>,
    columns: Vec<&'p KeyColumn>,
    order: KeyOrder,
    /// Whether entries that are not cut come as their rows do.
    is_exact: bool,
    /// The most bytes of the primary key behind the columns of the order, if nothing else is there
    /// and there is a most.
    behind_bytes_max: Option<usize>,
    /// Whether the entries of a run are in one span of the path.
    spans_have_runs: bool,
}

/// Gives the rows of a path that count, in the order of its key.
pub(super) fn visit_ordered(
    table: &Scanned<'_>,
    order: KeyOrder,
    path: Path,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Found>,
) -> Result<()> {
    let own = table.key.columns();
    let primary = table.key.primary_behind();
    let all = own.len() + primary.len();
    let count = usize::from(order.columns);
    let columns = own.iter().chain(primary).take(count).collect();
    let is_whole = count >= all && !(table.key.index.is_some() && primary.is_empty());
    let rest = own.get(count..).unwrap_or_default();
    let runs_are_in_order = is_beginning(rest, &table.key.relation.primary);
    let is_exact = if order.is_backward { is_whole } else { runs_are_in_order };
    let behind = rest.iter().chain(&table.key.relation.primary);
    let types: Option<Vec<Type>> =
        behind.map(|column| table.key.relation.key_type(None, column)).collect();
    let behind_bytes_max =
        types.filter(|_| runs_are_in_order).and_then(|types| columns_bytes_max(&types));
    let spans_have_runs = count >= path.columns_count;
    let ordered = Ordered { table, columns, order, is_exact, behind_bytes_max, spans_have_runs };
    ordered.visit(path, evaluator, each)
}

impl Ordered<'_, '_> {
    /// Visits the entries of the path, and gives the rows of each run when it has ended.
    fn visit(
        &self,
        mut path: Path,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<()> {
        let (mut run, mut held) = (Vec::new(), 0);
        while let Some(page) = path.next_page(evaluator.rows)? {
            let entries = page.len();
            for entry in page {
                let kind = self.run_of(&entry)?;
                if !is_next(&run, &entry, kind) {
                    let flow = self.give(std::mem::take(&mut run), evaluator, each)?;
                    evaluator.memory.subtract(std::mem::take(&mut held));
                    if flow.is_break() {
                        return Ok(());
                    }
                }
                if kind != Run::Alone {
                    let bytes = bytes_of(&entry);
                    evaluator.memory.add_bytes(bytes)?;
                    held += bytes;
                    run.push(entry);
                } else if self.table.give(entry, evaluator, each)?.is_break() {
                    return Ok(());
                }
            }
            let is_long = self.order.is_backward && run.len() >= entries && path.has_more();
            if is_long && let Some(prefix) = self.ordered_run(&run)? {
                // None of it is kept: it is read again, up to its last key.
                let end = [&run[0].0[..], &[0]].concat();
                let flow = self.give_range(path.within(&prefix, end), evaluator, each)?;
                evaluator.memory.subtract(std::mem::take(&mut held));
                if flow.is_break() {
                    return Ok(());
                }
                run.clear();
                path.go_on_before(prefix);
            }
        }
        let _ = self.give(run, evaluator, each)?;
        evaluator.memory.subtract(held);
        Ok(())
    }

    /// The first bytes of the keys of a run, if it need not be kept: none of it is in another span,
    /// and its entries are in the order of the primary key, which stands behind these bytes and is
    /// not cut.
    fn ordered_run(&self, run: &[Entry]) -> Result<Option<Vec<u8>>> {
        let Some(first) = run.first().filter(|_| self.spans_have_runs) else { return Ok(None) };
        let Run::Prefix(length) = self.run_of(first)? else { return Ok(None) };
        let fits = |most: &usize| length + most < key::KEY_HEAD_BYTES;
        let is_in_order = self.behind_bytes_max.as_ref().is_some_and(fits);
        Ok(is_in_order.then(|| first.0[..length].to_vec()))
    }

    /// Gives the rows of a range, in the order of its keys.
    fn give_range(
        &self,
        mut range: Range,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<ControlFlow<()>> {
        while let Some(page) = range.next_page(evaluator.rows)? {
            for entry in page {
                if self.table.give(entry, evaluator, each)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn run_of(&self, entry: &Entry) -> Result<Run> {
        let (own, _) = entry;
        let is_cut = own.len() >= key::KEY_HEAD_BYTES;
        if !is_cut && self.is_exact {
            return Ok(Run::Alone);
        }
        let head = if is_cut { &own[..key::KEY_HEAD_BYTES] } else { &own[..] };
        let relation = self.table.key.relation;
        let mut rest = head.get(ObjectId::BYTES..).ok_or_else(damaged)?;
        for column in &self.columns {
            let ty = relation.key_type(self.table.key.index, column).ok_or_else(damaged)?;
            rest = match key::skip(rest, ty, order(relation, column)) {
                Ok(rest) => rest,
                Err(_) if is_cut => return Ok(Run::Cut),
                Err(error) => return Err(error),
            };
        }
        Ok(Run::Prefix(head.len() - rest.len()))
    }

    /// Gives the rows of a run that count.
    fn give(
        &self,
        run: Vec<Entry>,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<ControlFlow<()>> {
        let is_cut = match &run[..] {
            [first, _, ..] => self.run_of(first)? == Run::Cut,
            _ => false,
        };
        if is_cut {
            return self.give_cut(run, evaluator, each);
        }
        for entry in self.sorted(run, evaluator)? {
            if self.table.give(entry, evaluator, each)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The entries of a run in the order of the primary key.
    fn sorted(&self, mut run: Vec<Entry>, evaluator: &mut Evaluator<'_>) -> Result<Vec<Entry>> {
        if run.len() <= 1 {
            return Ok(run);
        }
        evaluator.count_sort(run.iter().map(bytes_of).sum(), run.len())?;
        let Some(index) = self.table.key.index else {
            run.sort_by(|left, right| left.0.cmp(&right.0));
            return Ok(run);
        };
        let keyed = run.into_iter().map(|entry| Ok((self.primary(index, &entry)?, entry)));
        let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
        keyed.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(keyed.into_iter().map(|(_, entry)| entry).collect())
    }

    fn primary(&self, index: &Index, entry: &Entry) -> Result<Vec<u8>> {
        primary_of(self.table.key.relation, index, entry)
    }

    /// Gives the rows of keys that were cut: only their values tell in which order they are.
    fn give_cut(
        &self,
        run: Vec<Entry>,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<ControlFlow<()>> {
        let (before, mut all) = (evaluator.memory.mark(), Vec::with_capacity(run.len()));
        for entry in run {
            let found = self.table.found(entry, evaluator)?;
            evaluator.memory.add(&found.row)?;
            let values = key_values(self.table.key, &self.columns, &found.row, evaluator)?;
            all.push((values, found));
        }
        let bytes = all.iter().map(|(values, _)| values.len()).sum();
        evaluator.count_sort(bytes, all.len())?;
        all.sort_by(|left, right| {
            let by_values = left.0.cmp(&right.0);
            let by_values = if self.order.is_backward { by_values.reverse() } else { by_values };
            by_values.then_with(|| left.1.key.cmp(&right.1.key))
        });
        let held = evaluator.memory.mark() - before;
        for (_, found) in all {
            if self.table.give_found(found, evaluator, each)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        evaluator.memory.subtract(held);
        Ok(ControlFlow::Continue(()))
    }
}

/// Whether columns of a key are the first ones of the primary key.
fn is_beginning(columns: &[KeyColumn], primary: &[KeyColumn]) -> bool {
    let is_same = |(own, other): (&KeyColumn, &KeyColumn)| {
        own.column == other.column && own.descending == other.descending
    };
    columns.len() <= primary.len() && columns.iter().zip(primary).all(is_same)
}

/// Whether an entry, which is of a run of this kind, belongs to these. Any belongs to none.
fn is_next(run: &[Entry], entry: &Entry, kind: Run) -> bool {
    let Some((first, _)) = run.first() else { return true };
    match kind {
        Run::Alone => false,
        Run::Prefix(length) => first.get(..length) == entry.0.get(..length),
        Run::Cut => first.get(..key::KEY_HEAD_BYTES) == entry.0.get(..key::KEY_HEAD_BYTES),
    }
}

fn bytes_of(entry: &Entry) -> usize {
    let (key, value) = entry;
    size_of::<Entry>() + key.len() + value.len()
}

fn damaged() -> Error {
    Error::corrupted("entry of an index is damaged")
}
