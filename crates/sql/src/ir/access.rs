//! Access paths: ranges of a primary key or an index, scanned forwards or backwards.

use super::expression::Expression;
use super::number::QueryNumber;
use serde::{Deserialize, Serialize};

/// An access path: key columns with one value, then columns with several values, then a range of
/// the next column. The default is a full scan by primary key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Access {
    /// Position of the index in the relation's list; `None`: the primary key.
    pub index: Option<u16>,
    /// Values of the first key columns.
    pub equal: Vec<Expression>,
    /// Several values of the following columns, each a separate range.
    pub among: Option<Box<Among>>,
    /// Lower bound of the next column.
    pub lower: Option<Bound>,
    /// Upper bound of the next column.
    pub upper: Option<Bound>,
    /// Further columns of the bounds, for row comparisons such as `(a, b) > (1, 2)`.
    pub rest: Option<Box<RangeRest>>,
    /// Output order; `None`: by primary key.
    pub order: Option<KeyOrder>,
}

/// A bound of a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The value. NULL makes the range empty.
    pub value: Expression,
    /// Whether the range includes the value.
    pub inclusive: bool,
}

/// Values of the columns after the range column, from row comparisons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeRest {
    /// Values after the lower bound.
    pub lower: Vec<Expression>,
    /// Values after the upper bound.
    pub upper: Vec<Expression>,
}

/// Several values of key columns, as in `IN`. NULL matches nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Among {
    /// The values.
    pub members: Members,
    /// Values of the key columns after the members.
    pub equal: Vec<Expression>,
    /// The original condition, if the filter omits it. Evaluated only where keys are truncated
    /// ([`values::key::KEY_HEAD_BYTES`]).
    pub condition: Option<Expression>,
}

/// Source of the values of an [`Among`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Members {
    /// Rows of expressions, one expression per key column.
    Listed(Vec<Vec<Expression>>),
    /// Items of an array, for one key column.
    Array(Expression),
    /// Rows of an uncorrelated query, with its output column for each key column.
    Query(QueryNumber, Vec<u16>),
}

/// Scan order along a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyOrder {
    /// Number of leading key columns that define the order; primary key columns follow those of
    /// an index. Ties are ordered by primary key.
    pub columns: u16,
    /// Whether the scan goes backwards.
    pub is_backward: bool,
    /// Whether rows with NULL in the first column after the equal ones are included.
    pub has_nulls: bool,
}

/// Serialized form of an [`Access`]. Plans without `More` keep the encoding of earlier releases.
#[derive(Serialize, Deserialize)]
struct Stored {
    way: Way,
    equal: Vec<Expression>,
    lower: Option<Bound>,
    upper: Option<Bound>,
}

/// The key. The first two variants are encoded as `Option<u16>`.
#[derive(Serialize, Deserialize)]
enum Way {
    Primary,
    Index(u16),
    More(Box<More>),
}

/// Fields added to an [`Access`] since.
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
    /// Whether it is a full scan by primary key.
    pub fn is_whole(&self) -> bool {
        *self == Access::default()
    }

    /// Number of key columns with values, without the range column.
    pub fn columns_count(&self) -> usize {
        let among = self.among.as_ref().map_or(0, |among| among.width() + among.equal.len());
        self.equal.len() + among
    }

    /// Further columns of the lower and the upper bound.
    pub(crate) fn rest(&self) -> (&[Expression], &[Expression]) {
        self.rest.as_ref().map_or((&[], &[]), |rest| (&rest.lower, &rest.upper))
    }

    /// The query that supplies its members, if one does.
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
    /// Number of key columns per member.
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
