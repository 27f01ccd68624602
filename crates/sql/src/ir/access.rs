//! How the rows of a table are found: ranges of one key, in its order or the opposite one.

use super::expression::Expression;
use super::number::QueryNumber;
use serde::{Deserialize, Serialize};

/// The parts of a key's order that cover the rows that count. Equal columns come first, then those
/// of which several values count, then a range of the next one. Nothing at all is the whole
/// relation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Access {
    /// The place of the index among the relation's; `None` is the primary key.
    pub index: Option<u16>,
    /// Values of the key's first columns.
    pub equal: Vec<Expression>,
    /// Values of the columns behind these, each of which is a range of its own.
    pub among: Option<Box<Among>>,
    /// The smaller value of the next column.
    pub lower: Option<Bound>,
    /// The larger value of the next column.
    pub upper: Option<Bound>,
    /// What stands behind these values, if rows of values are the ends of the range.
    pub rest: Option<Box<RangeRest>>,
    /// The order in which rows come; `None` is that of the primary key.
    pub order: Option<KeyOrder>,
}

/// The end of a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The value; if it is NULL there are no rows.
    pub value: Expression,
    /// Whether the value itself belongs to the range.
    pub inclusive: bool,
}

/// Values of the columns behind that of a range, for which rows of values are its ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeRest {
    /// Those behind the smaller value.
    pub lower: Vec<Expression>,
    /// Those behind the larger value.
    pub upper: Vec<Expression>,
}

/// Several values of columns of a key. What is NULL equals nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Among {
    /// The values.
    pub members: Members,
    /// Values of the key's columns behind them.
    pub equal: Vec<Expression>,
    /// The condition that the values are from, if the filter does not have it. It is looked at
    /// where keys are too long to tell rows apart.
    pub condition: Option<Expression>,
}

/// Where several values of columns of a key come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Members {
    /// Rows of values, one for each column.
    Listed(Vec<Vec<Expression>>),
    /// The items of an array, for one column.
    Array(Expression),
    /// The rows of a query that is computed once. Its columns are these, for one column of the key
    /// each.
    Query(QueryNumber, Vec<u16>),
}

/// Rows in the order of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyOrder {
    /// The number of the key's columns that are the order, from the first one on; those of the
    /// primary key stand behind those of an index. Rows that are equal in these come in the order
    /// of the primary key.
    pub columns: u16,
    /// Whether the order is the opposite one.
    pub is_backward: bool,
    /// Whether rows count that have NULL in the first column behind the equal ones.
    pub has_nulls: bool,
}

/// The bytes of an access: those of before there was more than equal columns and a range.
#[derive(Serialize, Deserialize)]
struct Stored {
    way: Way,
    equal: Vec<Expression>,
    lower: Option<Bound>,
    upper: Option<Bound>,
}

/// The key of an access, in the place of an `Option<u16>`, whose bytes the first two have.
#[derive(Serialize, Deserialize)]
enum Way {
    Primary,
    Index(u16),
    More(Box<More>),
}

/// What else an access has.
#[derive(Serialize, Deserialize)]
struct More {
    index: Option<u16>,
    among: Option<Box<Among>>,
    rest: Option<Box<RangeRest>>,
    order: Option<KeyOrder>,
}

impl From<Stored> for Access {
    fn from(stored: Stored) -> Access {
        let Stored { way, equal, lower, upper } = stored;
        let plain = |index| Access { index, equal, lower, upper, ..Access::default() };
        match way {
            Way::Primary => plain(None),
            Way::Index(index) => plain(Some(index)),
            Way::More(more) => {
                let More { index, among, rest, order } = *more;
                Access { among, rest, order, ..plain(index) }
            }
        }
    }
}

impl From<Access> for Stored {
    fn from(access: Access) -> Stored {
        let Access { index, equal, among, lower, upper, rest, order } = access;
        let has_more = among.is_some() || rest.is_some() || order.is_some();
        let way = match index {
            _ if has_more => Way::More(Box::new(More { index, among, rest, order })),
            None => Way::Primary,
            Some(index) => Way::Index(index),
        };
        Stored { way, equal, lower, upper }
    }
}

impl Access {
    /// Whether it is the whole relation in the order of the primary key.
    pub fn is_whole(&self) -> bool {
        *self == Access::default()
    }

    /// The number of the key's columns that have a value, before any range.
    pub fn columns_count(&self) -> usize {
        let among = self.among.as_ref().map_or(0, |among| among.width() + among.equal.len());
        self.equal.len() + among
    }

    /// What stands behind the smaller value of a range, and behind the larger one.
    pub(crate) fn rest(&self) -> (&[Expression], &[Expression]) {
        self.rest.as_ref().map_or((&[], &[]), |rest| (&rest.lower, &rest.upper))
    }

    /// The query whose rows are values of it.
    pub(crate) fn query(&self) -> Option<QueryNumber> {
        match self.among.as_ref().map(|among| &among.members) {
            Some(Members::Query(number, _)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        self.equal.iter().for_each(&mut *each);
        if let Some(among) = &self.among {
            match &among.members {
                Members::Listed(rows) => rows.iter().flatten().for_each(&mut *each),
                Members::Array(array) => each(array),
                Members::Query(..) => {}
            }
            among.equal.iter().chain(&among.condition).for_each(&mut *each);
        }
        for bound in [&self.lower, &self.upper].into_iter().flatten() {
            each(&bound.value);
        }
        let (lower, upper) = self.rest();
        lower.iter().chain(upper).for_each(each);
    }
}

impl Among {
    /// The number of the key's columns that each member has values of.
    pub fn width(&self) -> usize {
        match &self.members {
            Members::Listed(rows) => rows.first().map_or(0, Vec::len),
            Members::Array(_) => 1,
            Members::Query(_, columns) => columns.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{from_bytes, to_bytes};
    use super::*;
    use crate::ir::Value;
    use values::Datum;

    /// The form of before there was more than equal columns and a range.
    #[derive(Serialize)]
    struct Before {
        index: Option<u16>,
        equal: Vec<Expression>,
        lower: Option<Bound>,
        upper: Option<Bound>,
    }

    #[test]
    fn accesses_of_equal_columns_and_a_range_have_the_bytes_of_before() {
        let value = |number| Expression::constant(Value(Datum::Int4(number)));
        let bound = |number| Some(Bound { value: value(number), inclusive: true });
        for index in [None, Some(0), Some(300)] {
            let (equal, lower, upper) = (vec![value(1)], bound(2), bound(3));
            let access = Access { index, equal, lower, upper, ..Access::default() };
            let Access { equal, lower, upper, .. } = access.clone();
            let before = Before { index, equal, lower, upper };
            assert_eq!(to_bytes(&access), to_bytes(&before));
            assert_eq!(from_bytes::<Access>(&to_bytes(&before), "access").unwrap(), access);
        }
    }

    #[test]
    fn accesses_of_all_forms_come_back() {
        let value = |number| Expression::constant(Value(Datum::Int4(number)));
        let members = Members::Listed(vec![vec![value(1), value(2)]]);
        let among = Among { members, equal: vec![value(3)], condition: Some(value(4)) };
        let order = KeyOrder { columns: 2, is_backward: true, has_nulls: false };
        let rest = RangeRest { lower: vec![value(5)], upper: Vec::new() };
        for index in [None, Some(7)] {
            let all = Access {
                index,
                among: Some(Box::new(among.clone())),
                rest: Some(Box::new(rest.clone())),
                order: Some(order),
                ..Access::default()
            };
            for access in [
                Access { order: None, rest: None, ..all.clone() },
                Access { among: None, order: None, ..all.clone() },
                Access { among: None, rest: None, ..all.clone() },
                all,
            ] {
                assert_eq!(from_bytes::<Access>(&to_bytes(&access), "access").unwrap(), access);
            }
        }
    }
}
