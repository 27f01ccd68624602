//! One version of the catalog.

use super::casts::Cast;
use super::comments::{Comment, Commented};
use super::delta::{CAST, COMMENT, Delta, ENUM, FOREIGN_KEY, NEXT_ID, SEQUENCE, TABLE, VIEW};
use super::schema::{ForeignKey, Sequence, Table, View};
use crate::ir::{ObjectId, Relation, from_bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use values::{EnumType, Error, Oid, Result, Type};

/// The first id of an object that a statement makes; smaller ones are PostgreSQL's own.
const FIRST_ID: ObjectId = ObjectId::new(16_384);

/// All objects. Cheap to clone; share it behind an `Arc`.
#[derive(Clone, Debug)]
pub struct Catalog {
    version: u64,
    next_id: ObjectId,
    tables: BTreeMap<ObjectId, Arc<Table>>,
    sequences: BTreeMap<ObjectId, Arc<Sequence>>,
    foreign_keys: BTreeMap<ObjectId, Arc<ForeignKey>>,
    views: BTreeMap<ObjectId, Arc<View>>,
    enums: BTreeMap<ObjectId, EnumType>,
    comments: BTreeMap<ObjectId, Arc<Comment>>,
    casts: BTreeMap<ObjectId, Arc<Cast>>,
    /// Tables, views, indexes and sequences share their names, as in PostgreSQL. Hidden keys,
    /// their sequences, and the indexes of foreign keys have none.
    names: BTreeMap<String, ObjectId>,
}

impl Default for Catalog {
    fn default() -> Catalog {
        Catalog {
            version: 0,
            next_id: FIRST_ID,
            tables: BTreeMap::new(),
            sequences: BTreeMap::new(),
            foreign_keys: BTreeMap::new(),
            views: BTreeMap::new(),
            enums: BTreeMap::new(),
            comments: BTreeMap::new(),
            casts: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }
}

impl Catalog {
    /// The catalog of the rows that a store has in space `catalog`.
    pub fn open<'a>(rows: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        for (key, row) in rows {
            catalog.apply(key, Some(row))?;
        }
        catalog.index_names();
        Ok(catalog)
    }

    /// The next version.
    pub fn with(&self, delta: &Delta) -> Result<Catalog> {
        let mut next = self.clone();
        for (key, row) in delta.rows() {
            next.apply(key, row.as_deref())?;
        }
        next.version += 1;
        next.index_names();
        Ok(next)
    }

    /// The same under another version.
    #[must_use]
    pub fn at_version(self, version: u64) -> Catalog {
        Catalog { version, ..self }
    }

    fn apply(&mut self, key: &[u8], row: Option<&[u8]>) -> Result<()> {
        let (kind, id) = match *key {
            [kind, a, b, c, d] => (kind, ObjectId::from_bytes([a, b, c, d])),
            _ => return Err(Error::corrupted("key of the catalog is damaged")),
        };
        match (kind, row) {
            (TABLE, Some(row)) => {
                let table: Table = from_bytes(row, "table of the catalog")?;
                table.relation.check()?;
                if table.relation.id != id || table.columns.len() != table.relation.columns.len() {
                    return Err(Error::corrupted("table of the catalog is damaged"));
                }
                self.tables.insert(id, Arc::new(table));
            }
            (TABLE, None) => {
                self.tables.remove(&id);
            }
            (SEQUENCE, Some(row)) => {
                let sequence = Sequence::read(row)?;
                if sequence.id != id {
                    return Err(Error::corrupted("sequence of the catalog is damaged"));
                }
                self.sequences.insert(id, Arc::new(sequence));
            }
            (SEQUENCE, None) => {
                self.sequences.remove(&id);
            }
            (FOREIGN_KEY, Some(row)) => {
                let key: ForeignKey = from_bytes(row, "foreign key of the catalog")?;
                if key.id != id || key.columns.len() != key.referred.len() {
                    return Err(Error::corrupted("foreign key of the catalog is damaged"));
                }
                self.foreign_keys.insert(id, Arc::new(key));
            }
            (FOREIGN_KEY, None) => {
                self.foreign_keys.remove(&id);
            }
            (VIEW, Some(row)) => {
                let view: View = from_bytes(row, "view of the catalog")?;
                if view.id != id {
                    return Err(Error::corrupted("view of the catalog is damaged"));
                }
                self.views.insert(id, Arc::new(view));
            }
            (VIEW, None) => {
                self.views.remove(&id);
            }
            (ENUM, Some(row)) => {
                let definition: Vec<u8> = from_bytes(row, "enum type of the catalog")?;
                let ty = EnumType::from_bytes(&definition)?;
                if ty.oid().number() != id.number() {
                    return Err(Error::corrupted("enum type of the catalog is damaged"));
                }
                self.enums.insert(id, ty);
            }
            (ENUM, None) => {
                self.enums.remove(&id);
            }
            (COMMENT, row) => self.apply_comment(id, row)?,
            (CAST, row) => self.apply_cast(id, row)?,
            (NEXT_ID, Some(row)) => self.next_id = from_bytes(row, "next id of the catalog")?,
            _ => return Err(Error::corrupted("key of the catalog is unknown")),
        }
        Ok(())
    }

    fn apply_comment(&mut self, id: ObjectId, row: Option<&[u8]>) -> Result<()> {
        let Some(row) = row else {
            self.comments.remove(&id);
            return Ok(());
        };
        let comment: Comment = from_bytes(row, "comment of the catalog")?;
        if comment.id != id {
            return Err(Error::corrupted("comment of the catalog is damaged"));
        }
        self.comments.insert(id, Arc::new(comment));
        Ok(())
    }

    fn apply_cast(&mut self, id: ObjectId, row: Option<&[u8]>) -> Result<()> {
        let Some(row) = row else {
            self.casts.remove(&id);
            return Ok(());
        };
        let cast: Cast = from_bytes(row, "cast of the catalog")?;
        if cast.id != id {
            return Err(Error::corrupted("cast of the catalog is damaged"));
        }
        self.casts.insert(id, Arc::new(cast));
        Ok(())
    }

    fn index_names(&mut self) {
        self.names.clear();
        let mut hidden = BTreeSet::new();
        for table in self.tables.values() {
            let relation = &table.relation;
            self.names.insert(relation.name.clone(), relation.id);
            if !relation.has_hidden_key() {
                self.names.insert(relation.primary_name.clone(), relation.id);
            }
            for index in relation.indexes.iter().filter(|index| !index.is_hidden()) {
                self.names.insert(index.name.clone(), index.id);
            }
            let both = relation.columns.iter().zip(&table.columns);
            hidden
                .extend(both.filter(|both| both.0.is_hidden()).filter_map(|both| both.1.sequence));
        }
        for view in self.views.values() {
            self.names.insert(view.name.clone(), view.id);
        }
        for sequence in self.sequences.values().filter(|own| !hidden.contains(&own.id)) {
            self.names.insert(sequence.name.clone(), sequence.id);
        }
    }

    /// Changes with each delta.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The same, of which new objects get ids from here on, which were reserved.
    #[must_use]
    pub fn at_next_id(self, next_id: ObjectId) -> Catalog {
        Catalog { next_id, ..self }
    }

    /// The first id that no object has had.
    pub fn next_id(&self) -> ObjectId {
        self.next_id
    }

    /// The table with this name.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        let id = self.names.get(name)?;
        self.tables.get(id).filter(|table| table.relation.name == name)
    }

    /// The table with an index of this name, and the place of the index.
    pub fn index(&self, name: &str) -> Option<(&Arc<Table>, usize)> {
        let id = self.names.get(name)?;
        self.tables.values().find_map(|table| {
            let at = table.relation.indexes.iter().position(|index| index.id == *id)?;
            Some((table, at))
        })
    }

    /// The table whose primary key is called so.
    pub fn table_of_primary(&self, name: &str) -> Option<&Arc<Table>> {
        let is_own = |relation: &Relation| relation.primary_name == name;
        self.tables().find(|table| is_own(&table.relation) && !table.relation.has_hidden_key())
    }

    /// The view with this name.
    pub fn view(&self, name: &str) -> Option<&Arc<View>> {
        self.views.get(self.names.get(name)?)
    }

    /// All views, by id.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.views.values()
    }

    /// All enum types, by id.
    pub fn enums(&self) -> impl Iterator<Item = EnumType> {
        self.enums.values().copied()
    }

    /// The enum type with this name.
    pub fn enum_named(&self, name: &str) -> Option<EnumType> {
        self.enums().find(|ty| ty.name() == name)
    }

    /// The type that a statement has made with this name: an enum, or its arrays, which have a `_`
    /// before it.
    pub fn type_named(&self, name: &str) -> Option<Type> {
        let own = self.enum_named(name).map(Type::Enum);
        own.or_else(|| Type::Enum(self.enum_named(name.strip_prefix('_')?)?).array())
    }

    /// The type with this object id, also of those that statements have made.
    pub fn type_by_oid(&self, oid: Oid) -> Option<Type> {
        let made = self.enums().map(Type::Enum).flat_map(|ty| [Some(ty), ty.array()]);
        Type::from_oid(oid).or_else(|| made.flatten().find(|ty| ty.oid() == oid))
    }

    /// The type with the labels that it has now, of one that may have been known before.
    pub fn current(&self, ty: Type) -> Type {
        self.type_by_oid(ty.oid()).unwrap_or(ty)
    }

    /// The sequence with this name.
    pub fn sequence(&self, name: &str) -> Option<&Arc<Sequence>> {
        self.sequences.get(self.names.get(name)?)
    }

    /// The sequence with this id.
    pub fn sequence_by_id(&self, id: ObjectId) -> Option<&Arc<Sequence>> {
        self.sequences.get(&id)
    }

    /// All sequences, by id.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.sequences.values()
    }

    /// All foreign keys, by id.
    pub fn foreign_keys(&self) -> impl Iterator<Item = &Arc<ForeignKey>> {
        self.foreign_keys.values()
    }

    /// All comments, by id.
    pub fn comments(&self) -> impl Iterator<Item = &Arc<Comment>> {
        self.comments.values()
    }

    /// All casts that statements have made, by id.
    pub fn casts(&self) -> impl Iterator<Item = &Arc<Cast>> {
        self.casts.values()
    }

    /// The cast between two types that a statement has made.
    pub fn cast(&self, from: Type, to: Type) -> Option<&Arc<Cast>> {
        self.casts().find(|cast| cast.is_of(from, to))
    }

    /// The comment on an object.
    pub fn comment_on(&self, on: &Commented) -> Option<&Arc<Comment>> {
        self.comments().find(|comment| comment.on == *on)
    }

    /// Whether a table, view, index or sequence has this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// All tables, by id.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }
}
