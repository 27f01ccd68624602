//! What a definition changes: rows of the catalog, and keys that nothing leads to any more.

use super::casts::Cast;
use super::comments::Comment;
use super::schema::{ForeignKey, Sequence, Table, View};
use super::snapshot::Catalog;
use crate::ir::{ObjectId, Op, Relation, SchemaId, Space, to_bytes};
use std::collections::BTreeSet;
use values::EnumType;

/// A change from one version of the catalog to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    pub(super) rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(super) cleared: Vec<(Space, Vec<u8>)>,
    pub(super) counters: Vec<ObjectId>,
    /// Whether what all sessions see takes numbers of a temporary sequence, or is in the schema of
    /// temporary objects.
    pub(super) names_temporary: bool,
}

pub(super) const TABLE: u8 = b't';
pub(super) const SEQUENCE: u8 = b's';
pub(super) const FOREIGN_KEY: u8 = b'f';
pub(super) const VIEW: u8 = b'v';
pub(super) const ENUM: u8 = b'e';
pub(super) const COMMENT: u8 = b'c';
pub(super) const SCHEMA: u8 = b'm';
pub(super) const TYPE_SCHEMA: u8 = b'p';
pub(super) const CAST: u8 = b'k';
pub(super) const NEXT_ID: u8 = b'n';
pub(super) const IN_PIECES: u8 = b'w';

/// The key of the row of a catalog whose tables may have rows in pieces. A program that does not
/// know such rows does not know this one either, and opens no such store.
pub fn in_pieces_key() -> Vec<u8> {
    key(IN_PIECES, ObjectId::new(0))
}

/// The key of an object's row.
pub(super) fn key(kind: u8, id: ObjectId) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&id.to_bytes());
    key
}

/// The beginning of the keys of a relation's rows or an index's entries.
pub fn prefix(id: ObjectId) -> Vec<u8> {
    id.to_bytes().to_vec()
}

impl Delta {
    /// Makes or replaces a table.
    pub fn put_table(&mut self, table: &Table) {
        let relation = &table.relation;
        assert_eq!(table.columns.len(), relation.columns.len(), "each column has both its halves");
        assert!(relation.check().is_ok(), "the catalog can be opened again");
        let defaults = table.columns.iter().filter_map(|column| column.default.as_ref());
        let is_temporary = |op: &Op| matches!(op, Op::Next(id) if id.is_temporary());
        self.names_temporary |= !relation.id.is_temporary()
            && defaults.flat_map(|default| &default.code).any(is_temporary);
        self.rows.push((key(TABLE, table.relation.id), Some(table.to_row())));
    }

    /// Removes a table; the keys of its rows and entries lead nowhere.
    pub fn drop_table(&mut self, table: &Table) {
        self.rows.push((key(TABLE, table.relation.id), None));
        self.clear(table.relation.space, table.relation.id);
        for index in &table.relation.indexes {
            self.clear(index.space, index.id);
        }
    }

    /// The keys that begin with this id lead nowhere.
    pub fn clear(&mut self, space: Space, id: ObjectId) {
        self.cleared.push((space, prefix(id)));
    }

    /// Makes or replaces a foreign key.
    pub fn put_foreign_key(&mut self, key: &ForeignKey) {
        assert_eq!(key.columns.len(), key.referred.len(), "each column refers to one");
        self.rows.push((self::key(FOREIGN_KEY, key.id), Some(to_bytes(key))));
    }

    /// Removes a foreign key.
    pub fn drop_foreign_key(&mut self, id: ObjectId) {
        self.rows.push((key(FOREIGN_KEY, id), None));
    }

    /// Makes or replaces a view.
    pub fn put_view(&mut self, view: &View) {
        self.rows.push((key(VIEW, view.id), Some(to_bytes(view))));
    }

    /// Removes a view.
    pub fn drop_view(&mut self, id: ObjectId) {
        self.rows.push((key(VIEW, id), None));
    }

    /// Makes a schema, or gives it another name.
    pub fn put_schema(&mut self, id: SchemaId, name: &str) {
        assert!(!name.is_empty(), "a schema has a name");
        self.rows.push((key(SCHEMA, id.object()), Some(to_bytes(&name))));
    }

    /// Removes a schema. `public` is there without a row, so it gets one without a name.
    pub fn drop_schema(&mut self, id: SchemaId) {
        let row = (id == SchemaId::PUBLIC).then(|| to_bytes(&""));
        self.rows.push((key(SCHEMA, id.object()), row));
    }

    /// Moves a type that a statement has made into a schema.
    pub fn put_type_schema(&mut self, ty: EnumType, schema: SchemaId) {
        self.names_temporary |= schema == SchemaId::TEMPORARY;
        let id = ObjectId::new(ty.oid().number());
        let row = (schema != SchemaId::PUBLIC).then(|| to_bytes(&schema));
        self.rows.push((key(TYPE_SCHEMA, id), row));
    }

    /// Makes or replaces an enum type.
    pub fn put_enum(&mut self, ty: EnumType) {
        let id = ObjectId::new(ty.oid().number());
        self.rows.push((key(ENUM, id), Some(to_bytes(&ty.to_bytes()))));
    }

    /// Removes an enum type.
    pub fn drop_enum(&mut self, ty: EnumType) {
        let id = ObjectId::new(ty.oid().number());
        self.rows.extend([(key(ENUM, id), None), (key(TYPE_SCHEMA, id), None)]);
    }

    /// Makes or replaces a comment.
    pub fn put_comment(&mut self, comment: &Comment) {
        self.rows.push((key(COMMENT, comment.id), Some(to_bytes(comment))));
    }

    /// Removes a comment.
    pub fn drop_comment(&mut self, id: ObjectId) {
        self.rows.push((key(COMMENT, id), None));
    }

    /// Makes a cast.
    pub fn put_cast(&mut self, cast: &Cast) {
        self.rows.push((key(CAST, cast.id), Some(to_bytes(cast))));
    }

    /// Removes a cast.
    pub fn drop_cast(&mut self, id: ObjectId) {
        self.rows.push((key(CAST, id), None));
    }

    /// Adds what another delta changes after it.
    pub fn append(&mut self, next: Delta) {
        self.rows.extend(next.rows);
        self.cleared.extend(next.cleared);
        self.counters.extend(next.counters);
        self.names_temporary |= next.names_temporary;
    }

    /// Whether it removes this foreign key.
    pub(crate) fn drops_foreign_key(&self, id: ObjectId) -> bool {
        self.rows.contains(&(key(FOREIGN_KEY, id), None))
    }

    /// Makes or replaces a sequence.
    pub fn put_sequence(&mut self, sequence: &Sequence) {
        assert!(sequence.increment != 0, "a sequence counts");
        let numbers = sequence.minimum..=sequence.maximum;
        assert!(numbers.contains(&sequence.start), "the first number is one of the sequence");
        assert!(numbers.contains(&sequence.last), "the last number is one of the sequence");
        self.rows.push((key(SEQUENCE, sequence.id), Some(to_bytes(sequence))));
    }

    /// Removes a sequence.
    pub fn drop_sequence(&mut self, id: ObjectId) {
        self.rows.push((key(SEQUENCE, id), None));
        self.counters.push(id);
    }

    /// Gives a table and its indexes ids that no object has had.
    pub fn renew_ids(&mut self, catalog: &Catalog, relation: &mut Relation) {
        let mut id = catalog.next_id();
        relation.id = id;
        for index in &mut relation.indexes {
            id = id.next();
            index.id = id;
        }
        self.set_next_id(id.next());
    }

    /// The next id that no object has had.
    pub fn set_next_id(&mut self, id: ObjectId) {
        self.rows.push((key(NEXT_ID, ObjectId::new(0)), Some(to_bytes(&id))));
    }

    /// Rows of space `catalog` to write, or to delete where there is none.
    pub fn rows(&self) -> &[(Vec<u8>, Option<Vec<u8>>)] {
        &self.rows
    }

    /// Keys to delete, at once or later, by their beginnings. Their ids are never used again.
    pub fn cleared(&self) -> &[(Space, Vec<u8>)] {
        &self.cleared
    }

    /// Sequences that count no more. Their ids are never used again.
    pub fn counters(&self) -> &[ObjectId] {
        &self.counters
    }

    /// The tables that it makes, changes or removes, by their ids.
    pub fn tables(&self) -> BTreeSet<ObjectId> {
        let id = |(key, _): &(Vec<u8>, Option<Vec<u8>>)| match &key[..] {
            [TABLE, id @ ..] => id.first_chunk().map(|id| ObjectId::from_bytes(*id)),
            _ => None,
        };
        self.rows.iter().filter_map(id).collect()
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.cleared.is_empty() && self.counters.is_empty()
    }
}
