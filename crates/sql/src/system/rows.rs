//! Rows of the system catalog, column by column.

use super::relations::{Known, TABLE_ID};
use values::{Array, Datum, Type};

/// A row, of which the columns that are not set have PostgreSQL's usual value for nothing.
pub(super) struct Row {
    relation: &'static Known,
    values: Vec<Datum>,
}

impl Row {
    pub(super) fn of(relation: &'static Known) -> Row {
        let is_standard = relation.name.starts_with("information_schema.");
        let nothing = |ty| match ty {
            _ if is_standard => Datum::Null,
            Type::Bool => Datum::Bool(false),
            Type::Int2 => Datum::Int2(0),
            Type::Int4 => Datum::Int4(0),
            Type::Float4 => Datum::Float4(0.0),
            Type::Letter => Datum::text(""),
            ty if ty.is_object_id() => Datum::Int4(0),
            _ => Datum::Null,
        };
        let values = relation.columns.iter().map(|(_, kind)| nothing(kind.ty)).collect();
        Row { relation, values }
    }

    /// Sets a column that the relation has.
    pub(super) fn set(mut self, name: &str, value: impl Into<Cell>) -> Row {
        let at = self.relation.columns.iter().position(|(own, _)| *own == name);
        let at = at.unwrap_or_else(|| panic!("{} has no column {name}", self.relation.name));
        let Cell(value) = value.into();
        let ty = self.relation.columns[at].1.ty;
        assert!(value.fits(ty), "{}.{name} is {}", self.relation.name, ty.name());
        self.values[at] = value;
        self
    }

    /// Sets several columns to the same text.
    pub(super) fn all(self, names: &[&str], value: &str) -> Row {
        names.iter().fold(self, |row, name| row.set(name, value))
    }

    /// The values, and behind them what [`TABLE_ID`] shows.
    pub(super) fn done(mut self) -> Vec<Datum> {
        assert!(self.relation.columns.iter().all(|(name, _)| *name != TABLE_ID));
        self.values.push(Datum::Int4(self.relation.id));
        self.values
    }
}

/// What a column may be set to.
pub(super) struct Cell(Datum);

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell(Datum::text(text))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell(Datum::text(text))
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell(Datum::Bool(value))
    }
}

impl From<i16> for Cell {
    fn from(value: i16) -> Cell {
        Cell(Datum::Int2(value))
    }
}

impl From<i32> for Cell {
    fn from(value: i32) -> Cell {
        Cell(Datum::Int4(value))
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell(Datum::Int8(value))
    }
}

impl From<f32> for Cell {
    fn from(value: f32) -> Cell {
        Cell(Datum::Float4(value))
    }
}

impl From<Datum> for Cell {
    fn from(value: Datum) -> Cell {
        Cell(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell(Datum::Null), Into::into)
    }
}

/// An array of one dimension.
pub(super) fn array(element: Type, items: impl IntoIterator<Item = Datum>) -> Datum {
    let items = Array::new(element, items.into_iter().collect());
    Datum::Array(Box::new(items.expect("the items are few and of the type")))
}

/// An array of small numbers, such as those of columns.
pub(super) fn numbers(items: impl IntoIterator<Item = i16>) -> Datum {
    array(Type::Int2, items.into_iter().map(Datum::Int2))
}

/// The same as an `int2vector`, whose first place is 0.
pub(super) fn vector(element: Type, items: Vec<Datum>) -> Datum {
    let dimension = values::Dimension { length: items.len() as u32, lower: 0 };
    let dimensions = if items.is_empty() { Vec::new() } else { vec![dimension] };
    let array = Array::with_dimensions(element, dimensions, items);
    Datum::Array(Box::new(array.expect("the items are few and of the type")))
}
