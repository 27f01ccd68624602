//! Indexes: which rows they have entries of, and what the keys of these are.

use super::expression::{Expression, Op};
use super::number::{ColumnNumber, ObjectId};
use super::relation::{KeyColumn, Relation, Space};
use super::value::Kind;
use serde::{Deserialize, Serialize};
use values::Type;
use values::row::COLUMNS_MAX;

/// Numbers of key columns from this one on are not those of columns of the table, but count the
/// expressions of the index.
const COMPUTED_BEGIN: usize = 1 << 15;
const _: () = assert!(COLUMNS_MAX < COMPUTED_BEGIN);

/// An index; its entries are rows of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// The beginning of its entries' keys, and its object id.
    pub id: ObjectId,
    /// Its name, and that of its constraint.
    pub name: String,
    /// Where its entries are.
    pub space: Space,
    /// What entries it has.
    pub form: IndexForm,
    /// What its keys are of.
    pub columns: Vec<KeyColumn>,
}

/// What entries an index has. The first two forms have the bytes of the truth value that says in
/// older plans and catalogs whether an index is unique.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum IndexForm {
    /// One of each row, by its columns.
    Plain,
    /// The same, and no two rows may have the same values.
    Unique,
    /// Of rows that a predicate holds for, or by expressions.
    Special(Box<SpecialIndex>),
    /// As a plain one, for a foreign key: no statement asked for it, and none can name it.
    OfKey,
    /// One with INCLUDE or NULLS NOT DISTINCT.
    Extended(Box<ExtendedIndex>),
}

/// An index that has what few have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtendedIndex {
    /// What it has entries of.
    pub special: SpecialIndex,
    /// Whether it is the index of a constraint.
    pub is_constraint: bool,
    /// NULLS NOT DISTINCT: whether NULL is a value as others, of which there is one.
    pub nulls_are_equal: bool,
    /// The columns of INCLUDE, which are only shown: a row is found by its entry.
    pub included: Vec<ColumnNumber>,
}

impl ExtendedIndex {
    /// The form of an index of columns.
    pub fn form(self) -> IndexForm {
        if self.nulls_are_equal || !self.included.is_empty() {
            return IndexForm::Extended(Box::new(self));
        }
        if self.is_constraint { IndexForm::Unique } else { self.special.form() }
    }
}

/// An index of a part of the rows, or over expressions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpecialIndex {
    /// Whether no two of its rows may have the same values.
    pub unique: bool,
    /// The conditions over a row that must all be true for it to have an entry.
    pub predicate: Vec<Expression>,
    /// Its expressions, which key columns refer to.
    pub computed: Vec<Computed>,
}

/// An expression over the row that an index has in its keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// Its value.
    pub value: Expression,
    /// The type of the value.
    pub kind: Kind,
}

impl IndexForm {
    /// The form of an index of all rows, by columns.
    pub fn of_columns(unique: bool) -> IndexForm {
        if unique { IndexForm::Unique } else { IndexForm::Plain }
    }

    /// What it is beside a plain one, to be changed.
    pub(crate) fn special_mut(&mut self) -> Option<&mut SpecialIndex> {
        match self {
            IndexForm::Special(special) => Some(special),
            IndexForm::Extended(extended) => Some(&mut extended.special),
            IndexForm::Plain | IndexForm::Unique | IndexForm::OfKey => None,
        }
    }
}

impl SpecialIndex {
    /// Whether it has entries of all rows, by columns.
    fn is_empty(&self) -> bool {
        self.predicate.is_empty() && self.computed.is_empty()
    }

    /// The form of CREATE INDEX. A unique index of all rows, by columns, keeps this form: it is no
    /// constraint, and goes with DROP INDEX.
    pub fn form(self) -> IndexForm {
        match self.is_empty() && !self.unique {
            true => IndexForm::Plain,
            false => IndexForm::Special(Box::new(self)),
        }
    }
}

impl Index {
    /// Whether no two of its rows may have the same values.
    pub fn is_unique(&self) -> bool {
        match &self.form {
            IndexForm::Plain | IndexForm::OfKey => false,
            IndexForm::Unique => true,
            IndexForm::Special(special) => special.unique,
            IndexForm::Extended(extended) => extended.special.unique,
        }
    }

    /// What it is beside a plain one.
    pub fn special(&self) -> Option<&SpecialIndex> {
        match &self.form {
            IndexForm::Special(special) => Some(&**special).filter(|special| !special.is_empty()),
            IndexForm::Extended(own) => Some(&own.special).filter(|special| !special.is_empty()),
            IndexForm::Plain | IndexForm::Unique | IndexForm::OfKey => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn special_mut(&mut self) -> Option<&mut SpecialIndex> {
        self.form.special_mut()
    }

    /// Whether it is the index of a constraint of the table. Catalogs of before have unique
    /// indexes of all rows that are none, too.
    pub fn is_constraint(&self) -> bool {
        let is_own = |own: &ExtendedIndex| own.is_constraint;
        self.form == IndexForm::Unique || self.extended().is_some_and(is_own)
    }

    fn extended(&self) -> Option<&ExtendedIndex> {
        match &self.form {
            IndexForm::Extended(extended) => Some(extended),
            _ => None,
        }
    }

    /// Whether NULL is a value as others in its keys.
    pub fn are_nulls_equal(&self) -> bool {
        self.extended().is_some_and(|own| own.nulls_are_equal)
    }

    /// The columns of INCLUDE.
    pub fn included(&self) -> &[ColumnNumber] {
        self.extended().map_or(&[], |own| &own.included)
    }

    /// Whether no statement can name it.
    pub fn is_hidden(&self) -> bool {
        self.form == IndexForm::OfKey
    }

    /// The conditions of its rows; none if it has all.
    pub fn predicate(&self) -> &[Expression] {
        self.special().map_or(&[], |special| &special.predicate)
    }

    /// Its expressions.
    pub fn computed(&self) -> &[Computed] {
        self.special().map_or(&[], |special| &special.computed)
    }

    /// Its predicate and the values of its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.predicate().iter().chain(self.computed().iter().map(|computed| &computed.value))
    }

    /// The columns of the table that its entries depend on, and those that it includes.
    pub(crate) fn columns_used(&self) -> impl Iterator<Item = ColumnNumber> {
        let of_op = |op: &Op| match op {
            Op::Column(column) => Some(*column),
            _ => None,
        };
        let own = self.columns.iter().filter(|key| key.computed().is_none()).map(|key| key.column);
        let own = own.chain(self.included().iter().copied());
        own.chain(self.expressions().flat_map(move |each| each.code.iter().filter_map(of_op)))
    }

    /// The expression that a key column is, of one that is none of the table's.
    pub(crate) fn expression_of(&self, key: &KeyColumn) -> Option<&Computed> {
        self.computed().get(key.computed()?)
    }
}

impl KeyColumn {
    /// The number of a key column that is the expression at this place.
    pub(crate) fn of_expression(place: usize) -> ColumnNumber {
        ColumnNumber::at(COMPUTED_BEGIN + place)
    }

    /// The place among the index's expressions, of one that is no column of the table.
    pub(crate) fn computed(&self) -> Option<usize> {
        usize::from(self.column).checked_sub(COMPUTED_BEGIN)
    }
}

impl Relation {
    /// The type of a column of a key: of this index, or of the primary key.
    pub(crate) fn key_type(&self, index: Option<&Index>, key: &KeyColumn) -> Option<Type> {
        self.key_kind(index, key).map(|kind| kind.ty)
    }

    /// The same with its length.
    pub(crate) fn key_kind(&self, index: Option<&Index>, key: &KeyColumn) -> Option<Kind> {
        match index.and_then(|index| index.expression_of(key)) {
            Some(computed) => Some(computed.kind),
            None => self.columns.get(usize::from(key.column)).map(|column| column.kind),
        }
    }

    /// Whether a column of a key may be NULL; an expression always may.
    pub(crate) fn is_nullable(&self, key: &KeyColumn) -> bool {
        self.columns.get(usize::from(key.column)).is_none_or(|column| column.nullable)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{from_bytes, to_bytes};
    use super::*;

    /// The bytes that indexes have in logs and catalogs of before there were other forms.
    #[test]
    fn indexes_of_columns_have_the_bytes_of_a_truth_value() {
        #[derive(Serialize)]
        struct Before {
            id: ObjectId,
            name: String,
            space: Space,
            unique: bool,
            columns: Vec<KeyColumn>,
        }
        let column = ColumnNumber::at(3);
        for unique in [false, true] {
            let columns = vec![KeyColumn { column, descending: true, nulls_first: false }];
            let (id, name, space) = (ObjectId::new(20_000), "i".to_owned(), Space::Short);
            let before = Before { id, name: name.clone(), space, unique, columns: columns.clone() };
            let index = Index { id, name, space, form: IndexForm::of_columns(unique), columns };
            assert_eq!(to_bytes(&index), to_bytes(&before));
            let read: Index = from_bytes(&to_bytes(&before), "index").unwrap();
            assert_eq!((read.is_unique(), read), (unique, index));
        }
    }

    #[test]
    fn unique_indexes_of_all_rows_are_constraints_only_where_the_table_says_so() {
        let of = |unique| SpecialIndex { unique, ..SpecialIndex::default() }.form();
        assert_eq!(of(false), IndexForm::Plain);
        let columns = Vec::new();
        let (id, name, space) = (ObjectId::new(20_000), "i".to_owned(), Space::Short);
        let mut index = Index { id, name, space, form: of(true), columns };
        assert!(index.is_unique() && !index.is_constraint() && index.special().is_none());
        assert_eq!(from_bytes::<Index>(&to_bytes(&index), "index").unwrap(), index);
        index.form = IndexForm::of_columns(true);
        assert!(index.is_unique() && index.is_constraint());
    }
}
