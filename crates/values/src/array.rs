//! Arrays: items of one type in up to six dimensions. They are values of expressions and may be
//! stored in rows, not in keys.

use crate::{Datum, Error, Result, SqlState, Type};
use std::cmp::Ordering;

/// The most dimensions.
pub const DIMENSIONS_MAX: usize = 6;
/// The most items.
pub const ITEMS_MAX: usize = 1 << 20;

/// How long a dimension is, and its first subscript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// The number of items.
    pub length: u32,
    /// The first subscript, 1 unless stated.
    pub lower: i32,
}

/// An array. An empty one has no dimensions.
#[derive(Clone, Debug)]
pub struct Array {
    element: Type,
    dimensions: Vec<Dimension>,
    items: Vec<Datum>,
}

impl Array {
    /// An array of one dimension, which begins at 1.
    pub fn new(element: Type, items: Vec<Datum>) -> Result<Array> {
        let dimensions = match u32::try_from(items.len()) {
            Ok(0) => Vec::new(),
            Ok(length) => vec![Dimension { length, lower: 1 }],
            Err(_) => return Err(Array::too_large()),
        };
        Array::with_dimensions(element, dimensions, items)
    }

    /// An array of these dimensions, items row by row.
    pub fn with_dimensions(
        element: Type,
        dimensions: Vec<Dimension>,
        items: Vec<Datum>,
    ) -> Result<Array> {
        if dimensions.len() > DIMENSIONS_MAX || items.len() > ITEMS_MAX {
            return Err(Array::too_large());
        }
        let count = dimensions
            .iter()
            .try_fold(1_u64, |product, dimension| product.checked_mul(u64::from(dimension.length)));
        let count = if dimensions.is_empty() { Some(0) } else { count };
        let is_beyond = |dimension: &&Dimension| {
            i64::from(dimension.lower) + i64::from(dimension.length) > i64::from(i32::MAX)
        };
        if let Some(Dimension { lower, .. }) = dimensions.iter().find(is_beyond) {
            let message = format!("array lower bound is too large: {lower}");
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        let ends = dimensions.iter().all(|dimension| dimension.length > 0);
        let typed = items.iter().all(|item| item.fits(element));
        if count != Some(items.len() as u64) || !ends || !typed || element.array().is_none() {
            return Err(Error::new(
                SqlState::ARRAY_SUBSCRIPT,
                "array dimensions do not match its items",
            ));
        }
        Ok(Array { element, dimensions, items })
    }

    fn too_large() -> Error {
        let message =
            format!("array has more than {DIMENSIONS_MAX} dimensions or {ITEMS_MAX} items");
        Error::new(SqlState::LIMIT_EXCEEDED, message)
    }

    /// The type of the items.
    pub fn element(&self) -> Type {
        self.element
    }

    /// The dimensions, outermost first.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// All items, row by row.
    pub fn items(&self) -> &[Datum] {
        &self.items
    }

    /// The item of a one-dimensional array at a subscript; NULL beyond it.
    pub fn at(&self, subscript: i32) -> Datum {
        let [dimension] = self.dimensions[..] else { return Datum::Null };
        let index = i64::from(subscript) - i64::from(dimension.lower);
        let item = usize::try_from(index).ok().and_then(|index| self.items.get(index));
        item.cloned().unwrap_or(Datum::Null)
    }

    /// The array with another item, behind so many of its own; its first subscript stays.
    pub fn extended(&self, item: Datum, at: usize) -> Result<Array> {
        let dimensions = match self.dimensions[..] {
            [] => vec![Dimension { length: 1, lower: 1 }],
            [Dimension { length, lower }] => vec![Dimension { length: length + 1, lower }],
            _ => {
                let message = "argument must be empty or one-dimensional array";
                return Err(Error::new(SqlState::DATA_EXCEPTION, message));
            }
        };
        let mut items = self.items.clone();
        items.insert(at, item);
        Array::with_dimensions(self.element, dimensions, items)
    }

    /// The array of the items that stay, of one dimension; its first subscript stays.
    pub fn filtered(&self, stays: impl Fn(&Datum) -> bool) -> Result<Array> {
        let [Dimension { lower, .. }] = self.dimensions[..] else {
            if self.dimensions.is_empty() {
                return Ok(self.clone());
            }
            let message = "removing elements from multidimensional arrays is not supported";
            return Err(Error::unsupported(message, ""));
        };
        let items: Vec<Datum> = self.items.iter().filter(|item| stays(item)).cloned().collect();
        let length = items.len() as u32;
        let dimensions = match length {
            0 => Vec::new(),
            length => vec![Dimension { length, lower }],
        };
        Array::with_dimensions(self.element, dimensions, items)
    }

    /// One array behind the other. Their inner dimensions are the same, or one of them is an item
    /// of the other's outer dimension.
    pub fn concat(&self, other: &Array) -> Result<Array> {
        let (left, right) = (&self.dimensions[..], &other.dimensions[..]);
        let with_outer = |own: &[Dimension], more: u32| {
            let mut dimensions = own.to_vec();
            dimensions[0].length += more;
            dimensions
        };
        let dimensions = match (left, right) {
            ([], _) => right.to_vec(),
            (_, []) => left.to_vec(),
            ([first, inner @ ..], [second, other @ ..]) if inner == other => {
                let mut dimensions = left.to_vec();
                dimensions[0].length = first.length + second.length;
                dimensions
            }
            ([_, inner @ ..], right) if inner == right => with_outer(left, 1),
            (left, [_, inner @ ..]) if left == inner => with_outer(right, 1),
            (left, right) => return Err(incompatible(left.len(), right.len())),
        };
        let items = self.items.iter().chain(&other.items).cloned().collect();
        Array::with_dimensions(self.element, dimensions, items)
    }

    /// PostgreSQL's order: item by item (NULL last), then the number of items, that of dimensions,
    /// their lengths, their first subscripts.
    pub fn compare(&self, other: &Array) -> Ordering {
        let pairs = self.items.iter().zip(&other.items);
        pairs
            .map(|(left, right)| left.compare(right))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
            .then_with(|| self.items.len().cmp(&other.items.len()))
            .then_with(|| self.dimensions.len().cmp(&other.dimensions.len()))
            .then_with(|| {
                let lengths = |array: &Array| -> Vec<u32> {
                    array.dimensions.iter().map(|each| each.length).collect()
                };
                lengths(self).cmp(&lengths(other))
            })
            .then_with(|| {
                let lowers = |array: &Array| -> Vec<i32> {
                    array.dimensions.iter().map(|each| each.lower).collect()
                };
                lowers(self).cmp(&lowers(other))
            })
    }
}

/// The error of arrays of so many dimensions that cannot be one behind the other.
fn incompatible(left: usize, right: usize) -> Error {
    let what = match left.abs_diff(right) {
        0 => "Arrays with differing element dimensions".to_owned(),
        1 => "Arrays with differing dimensions".to_owned(),
        _ => format!("Arrays of {left} and {right} dimensions"),
    };
    Error::new(SqlState::ARRAY_SUBSCRIPT, "cannot concatenate incompatible arrays")
        .with_detail(format!("{what} are not compatible for concatenation."))
}
