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
        let ends = dimensions.iter().all(|dimension| {
            let last = i64::from(dimension.lower) + i64::from(dimension.length);
            dimension.length > 0 && last <= i64::from(i32::MAX)
        });
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

    /// PostgreSQL's order: item by item (NULL last), then the number of items, then the dimensions.
    pub fn compare(&self, other: &Array) -> Ordering {
        let pairs = self.items.iter().zip(&other.items);
        pairs
            .map(|(left, right)| left.compare(right))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
            .then_with(|| self.items.len().cmp(&other.items.len()))
            .then_with(|| self.dimensions.len().cmp(&other.dimensions.len()))
            .then_with(|| {
                let key = |array: &Array| -> Vec<(u32, i32)> {
                    array.dimensions.iter().map(|each| (each.length, each.lower)).collect()
                };
                key(self).cmp(&key(other))
            })
    }
}
