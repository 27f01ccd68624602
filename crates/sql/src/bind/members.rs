//! Conditions by which values of a row are one of several, or beyond a row of values: each leads to
//! ranges of a key.

use super::shape::{Compared, Shape, alternatives, compared, is_subject, parts, shape};
use crate::ir::{
    ColumnNumber, Expression, Function, Index, KeyColumn, Kind, Members, Op, QueryNumber, Relation,
};
use values::{Modifier, Type};

/// A value of a row in a condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Subject {
    code: Vec<Op>,
    /// The types that a column becomes of where it is compared.
    casts: Vec<Kind>,
}

/// A condition by which values of a row are one of several.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// The place of the condition among those that are known.
    pub(super) place: usize,
    subjects: Vec<Subject>,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    Listed(Vec<Vec<Vec<Op>>>),
    Array(Vec<Op>),
    Query(QueryNumber),
}

/// A condition by which a row of values is smaller or larger than another one.
#[derive(Clone, Debug)]
pub(super) struct RowRange {
    pub(super) function: Function,
    pub(super) subjects: Vec<Vec<Op>>,
    pub(super) values: Vec<Expression>,
}

/// What is known of the values in conditions.
pub(super) trait Fixed {
    /// Whether a value can be computed before there is a row, and once.
    fn is_fixed(&self, code: &[Op]) -> bool;
    /// Whether the rows of a query are the same for all rows.
    fn is_once(&self, number: QueryNumber) -> bool;
}

impl Subject {
    fn of(code: &[Op]) -> Subject {
        match code {
            [column @ Op::Column(_), Op::Cast(kind, _)] => {
                Subject { code: vec![column.clone()], casts: vec![*kind] }
            }
            code => Subject { code: code.to_vec(), casts: Vec::new() },
        }
    }

    /// Whether it is this column of a key, or what equals a value of the column just when the
    /// column does.
    fn is_of(&self, relation: &Relation, index: Option<&Index>, column: &KeyColumn) -> bool {
        if let Some(computed) = index.and_then(|index| index.expression_of(column)) {
            return self.casts.is_empty() && computed.value.code == self.code;
        }
        let own = relation.key_type(index, column).and_then(width);
        let is_wider = |kind: &Kind| {
            kind.modifier == Modifier::NONE
                && own.zip(width(kind.ty)).is_some_and(|(own, other)| own <= other)
        };
        self.code == [Op::Column(column.column)] && self.casts.iter().all(is_wider)
    }
}

/// Where a type stands among those that whole numbers fit.
fn width(ty: Type) -> Option<u8> {
    match ty {
        Type::Int2 => Some(0),
        Type::Int4 => Some(1),
        Type::Int8 => Some(2),
        Type::Numeric => Some(3),
        _ => None,
    }
}

impl Membership {
    /// What a condition says, if it says that values of a row are one of several.
    pub(super) fn of(code: &[Op], place: usize, fixed: &dyn Fixed) -> Option<Membership> {
        let code = match code {
            [is_true @ .., Op::Call(Function::IsTrue, 1)] => is_true,
            code => code,
        };
        let (subjects, values) = match shape(code) {
            Shape::Call(Function::EqualAny, operands) => match operands[..] {
                [subject, array] if is_subject(subject) && fixed.is_fixed(array) => {
                    (vec![Subject::of(subject)], Values::Array(array.to_vec()))
                }
                _ => return None,
            },
            Shape::InQuery(operands, number)
                if fixed.is_once(number) && operands.iter().all(|each| is_subject(each)) =>
            {
                let subjects = operands.into_iter().map(Subject::of).collect();
                (subjects, Values::Query(number))
            }
            Shape::InQuery(..) => return None,
            _ => listed(code, fixed)?,
        };
        Some(Membership { place, subjects, values })
    }

    /// The condition over a row of the table alone, whose columns begin at `begin` here.
    pub(super) fn at_beginning(mut self, begin: usize) -> Membership {
        for op in self.subjects.iter_mut().flat_map(|subject| &mut subject.code) {
            if let Op::Column(column) = op {
                *column = ColumnNumber::at(usize::from(*column) - begin);
            }
        }
        self
    }

    /// The places of the subjects that are the first of these columns of a key, one after the
    /// other.
    pub(super) fn places(
        &self,
        relation: &Relation,
        index: Option<&Index>,
        columns: &[KeyColumn],
    ) -> Vec<usize> {
        let mut places = Vec::new();
        for column in columns {
            let is_it = |subject: &Subject| subject.is_of(relation, index, column);
            match self.subjects.iter().position(is_it) {
                Some(place) if !places.contains(&place) => places.push(place),
                _ => break,
            }
        }
        places
    }

    /// Whether nothing else is in the condition.
    pub(super) fn is_all(&self, places: &[usize]) -> bool {
        places.len() == self.subjects.len()
    }

    /// Whether its values are rows of a query, whose number nothing limits.
    pub(super) fn is_query(&self) -> bool {
        matches!(self.values, Values::Query(_))
    }

    /// The values of the subjects at these places.
    pub(super) fn members(&self, places: &[usize]) -> Members {
        match &self.values {
            Values::Listed(rows) => {
                let of = |row: &Vec<Vec<Op>>, at: &usize| Expression { code: row[*at].clone() };
                let row = |row| places.iter().map(|at| of(row, at)).collect();
                Members::Listed(rows.iter().map(row).collect())
            }
            Values::Array(code) => Members::Array(Expression { code: code.clone() }),
            Values::Query(number) => {
                Members::Query(*number, places.iter().map(|place| *place as u16).collect())
            }
        }
    }
}

/// Values in lists and in alternatives: all of the same subjects.
fn listed(code: &[Op], fixed: &dyn Fixed) -> Option<(Vec<Subject>, Values)> {
    let mut subjects: Vec<Subject> = Vec::new();
    let mut rows = Vec::new();
    for alternative in alternatives(code) {
        if let Shape::Call(Function::In, operands) = shape(alternative) {
            let (subject, items) = operands.split_first()?;
            if !is_subject(subject) || !items.iter().all(|item| fixed.is_fixed(item)) {
                return None;
            }
            let order = order_of(&mut subjects, vec![Subject::of(subject)])?;
            assert_eq!(order, [0], "one subject has one place");
            rows.extend(items.iter().map(|item| vec![item.to_vec()]));
            continue;
        }
        let (mut own, mut values) = (Vec::new(), Vec::new());
        for part in parts(alternative) {
            let Compared { function, subject, value } = compared(part)?;
            if function != Function::Equal || !fixed.is_fixed(value) {
                return None;
            }
            own.push(Subject::of(subject));
            values.push(value.to_vec());
        }
        let order = order_of(&mut subjects, own)?;
        rows.push(order.into_iter().map(|at| values[at].clone()).collect());
    }
    Some((subjects, Values::Listed(rows)))
}

/// The places of these subjects in the order of the first alternative's.
fn order_of(known: &mut Vec<Subject>, own: Vec<Subject>) -> Option<Vec<usize>> {
    let is_same = |left: &Subject, right: &Subject| left.code == right.code;
    let is_once = |at: usize| !own[..at].iter().any(|other| is_same(other, &own[at]));
    if !(0..own.len()).all(is_once) {
        return None;
    }
    if known.is_empty() {
        *known = own;
        return Some((0..known.len()).collect());
    }
    if known.len() != own.len() {
        return None;
    }
    let mut order = Vec::with_capacity(own.len());
    for subject in known {
        let at = own.iter().position(|other| is_same(other, subject))?;
        let casts = own[at].casts.iter().filter(|cast| !subject.casts.contains(cast));
        let casts: Vec<Kind> = casts.copied().collect();
        subject.casts.extend(casts);
        order.push(at);
    }
    Some(order)
}

impl RowRange {
    /// What a condition says, if it compares rows: `a > 1 OR a = 1 AND b > 2`.
    pub(super) fn of(code: &[Op], fixed: &dyn Fixed) -> Option<RowRange> {
        let (mut subjects, mut values) = (Vec::new(), Vec::new());
        let mut rest = code;
        while let Shape::Or(first, others) = shape(rest) {
            let Shape::And(same, behind) = shape(others) else { return None };
            let (first, same) = (compared(first)?, compared(same)?);
            let is_one = same.function == Function::Equal
                && first.subject == same.subject
                && first.value == same.value;
            if !is_one || !is_strict(first.function) || !fixed.is_fixed(first.value) {
                return None;
            }
            subjects.push((first.function, first.subject.to_vec()));
            values.push(Expression { code: first.value.to_vec() });
            rest = behind;
        }
        let last = compared(rest)?;
        let strict = strict(last.function)?;
        let is_alike = subjects.iter().all(|(function, _)| *function == strict);
        if subjects.is_empty() || !is_alike || !fixed.is_fixed(last.value) {
            return None;
        }
        subjects.push((strict, last.subject.to_vec()));
        values.push(Expression { code: last.value.to_vec() });
        let subjects = subjects.into_iter().map(|(_, subject)| subject).collect();
        Some(RowRange { function: last.function, subjects, values })
    }

    /// The condition over a row of the table alone, whose columns begin at `begin` here.
    pub(super) fn at_beginning(mut self, begin: usize) -> RowRange {
        for op in self.subjects.iter_mut().flatten() {
            if let Op::Column(column) = op {
                *column = ColumnNumber::at(usize::from(*column) - begin);
            }
        }
        self
    }
}

fn is_strict(function: Function) -> bool {
    matches!(function, Function::Less | Function::Greater)
}

fn strict(function: Function) -> Option<Function> {
    match function {
        Function::Less | Function::LessEqual => Some(Function::Less),
        Function::Greater | Function::GreaterEqual => Some(Function::Greater),
        _ => None,
    }
}
