//! EXISTS of rows with values equal to those of the row around it: where no key finds such rows,
//! the query is computed once, and its values are a set in which each row's are looked for.

use super::access::Choice;
use super::binder::Binder;
use super::coerce::Bound;
use super::conditions::Conjunct;
use super::expression::call;
use super::items::{Bounded, Filtered};
use super::key_order::OrderWish;
use super::shape::{has_column, is_of_row};
use crate::ir::{Expression, Function, Input, Kind, Op, Query as Plan, Select, Use};
use values::{Result, Type};

/// The conditions of a query: values that equal those of the row around it, and the others.
#[derive(Default)]
struct Split {
    /// Values of the query's rows.
    own: Vec<Vec<Op>>,
    /// What they equal, over the row around it.
    other: Vec<Vec<Op>>,
    rest: Vec<Conjunct>,
}

impl Binder<'_> {
    /// Whether there are rows, as a look into a set of values; `None` where a key finds the rows,
    /// or where they depend on the row around it in another way.
    pub(super) fn exists_in_set(&mut self, bound: &Bounded) -> Result<Option<Bound>> {
        let select = &bound.plan.select;
        let Some(table) = &bound.table else { return Ok(None) };
        let is_plain = self.choice != Choice::Loop
            && bound.plan.input == Input::Source
            && select.output.is_empty()
            && !has_equal_outer(&select.source.access.equal);
        let Some(split) = is_plain.then(|| self.split(table)).flatten() else { return Ok(None) };
        let Split { own, other, mut rest } = split;
        // A NULL equals nothing, and would be looked at for each row.
        rest.extend(own.iter().map(|value| {
            let value = Bound::new(value.clone(), Kind::plain(Type::Bool));
            let bound = call(Function::IsNotNull, vec![value], Type::Bool);
            Conjunct { bound, notes: Vec::new() }
        }));
        let (source, _) = self.source(&table.relation, rest, OrderWish::default());
        let output = own.into_iter().map(|code| Expression { code }).collect();
        let select = Select { source, distinct: true, ..Select::of(output) };
        let (depth, is_correlated) = (bound.plan.depth, false);
        let count = other.len() as u16;
        let plan = Plan { depth, is_correlated, input: Input::Source, select };
        let number = self.push_query(plan)?;
        let mut code = other.concat();
        code.push(Op::Query(Use::Any(Function::Equal, count), number));
        let found = Bound::new(code, Kind::plain(Type::Bool));
        Ok(Some(call(Function::IsTrue, vec![found], Type::Bool)))
    }

    /// Adds to the conditions of a query of one table that its columns equal values of the row
    /// around it. Returns false, and changes nothing, if it is another query or needs no such row.
    pub(super) fn equal_to_row_around(&self, bound: &mut Bounded, values: &[Bound]) -> bool {
        let Some(table) = &mut bound.table else { return false };
        let select = &mut bound.plan.select;
        let is_plain = self.choice != Choice::Loop
            && bound.plan.input == Input::Source
            && bound.plan.is_correlated
            && select.output.iter().all(|column| is_of_row(&column.code));
        let around = self.levels.len() as u16;
        let over = |op: &Op| match op {
            Op::Column(column) => Some(Op::Outer(around, *column)),
            Op::Constant(_) | Op::Parameter(_) | Op::Outer(..) | Op::Call(..) | Op::Cast(..) => {
                Some(op.clone())
            }
            _ => None,
        };
        let over = |value: &Bound| value.code.iter().map(over).collect::<Option<Vec<Op>>>();
        let Some(values) = values.iter().map(over).collect::<Option<Vec<_>>>() else {
            return false;
        };
        if !is_plain {
            return false;
        }
        for (column, value) in select.output.iter().zip(values) {
            let ty = Kind::plain(Type::Bool);
            let both = [column.code.clone(), value].map(|code| Bound::new(code, ty));
            table.conditions.push(self.compared(Function::Equal, both.to_vec()));
        }
        let conditions = table.conditions.clone();
        select.source = self.source(&table.relation, conditions, OrderWish::default()).0;
        true
    }

    /// The conditions of a table; `None` if the row around it decides more than what values equal.
    fn split(&self, table: &Filtered) -> Option<Split> {
        let mut split = Split::default();
        for conjunct in &table.conditions {
            if is_alone(&conjunct.bound.code) {
                split.rest.push(conjunct.clone());
                continue;
            }
            let equal = conjunct.notes.iter().find(|note| {
                note.function == Function::Equal
                    && has_column(&note.subject)
                    && is_of_row(&note.subject)
                    && !has_column(&note.value.code)
            })?;
            split.own.push(equal.subject.clone());
            split.other.push(self.of_row_around(&equal.value.code)?);
        }
        (!split.own.is_empty()).then_some(split)
    }

    /// A value of a query as one over the row around it.
    fn of_row_around(&self, code: &[Op]) -> Option<Vec<Op>> {
        let around = self.levels.len();
        let over = |op: &Op| match op {
            Op::Outer(depth, column) if usize::from(*depth) == around => Some(Op::Column(*column)),
            Op::Constant(_) | Op::Parameter(_) | Op::Outer(..) | Op::Call(..) | Op::Cast(..) => {
                Some(op.clone())
            }
            _ => None,
        };
        code.iter().map(over).collect()
    }
}

/// Whether a condition depends on no row around its query, and needs no other query.
fn is_alone(code: &[Op]) -> bool {
    !code.iter().any(|op| {
        matches!(op, Op::Outer(..) | Op::Query(..) | Op::Next(_) | Op::Random(_) | Op::System(..))
    })
}

/// Whether a key finds rows by values of rows around them.
fn has_equal_outer(equal: &[Expression]) -> bool {
    let is_outer = |op: &Op| matches!(op, Op::Outer(..));
    equal.iter().any(|value| value.code.iter().any(is_outer))
}
