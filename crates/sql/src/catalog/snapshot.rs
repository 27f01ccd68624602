//! One version of the catalog.

use super::casts::Cast;
use super::comments::{Comment, Commented};
use super::delta::{
    CAST, COMMENT, Delta, ENUM, FOREIGN_KEY, IN_PIECES, NEXT_ID, SCHEMA, SEQUENCE, TABLE,
    TYPE_SCHEMA, VIEW,
};
use super::path::{NAME, Path, Place};
use super::schema::{ForeignKey, Sequence, Table, View};
use crate::ir::{Name, ObjectId, SchemaId, from_bytes};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use values::{EnumType, Error, Oid, Result, Type};

/// The first id of an object that a statement makes; smaller ones are PostgreSQL's own.
const FIRST_ID: ObjectId = ObjectId::new(16_384);

/// All objects, and where a session looks for them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog {
    version: u64,
    next_id: ObjectId,
    /// The name of the database.
    database: Arc<str>,
    objects: Arc<Objects>,
    pub(super) path: Path,
    /// The schemas of the path that exist, and the system's own.
    pub(super) places: Vec<Place>,
    /// The same along the path that has `public` only.
    pub(super) public: OnceLock<Box<Catalog>>,
}

/// All objects.
#[derive(Clone, Debug)]
pub struct Objects {
    tables: BTreeMap<ObjectId, Arc<Table>>,
    sequences: BTreeMap<ObjectId, Arc<Sequence>>,
    foreign_keys: BTreeMap<ObjectId, Arc<ForeignKey>>,
    views: BTreeMap<ObjectId, Arc<View>>,
    enums: BTreeMap<ObjectId, EnumType>,
    comments: BTreeMap<ObjectId, Arc<Comment>>,
    /// Schemas by their ids, and by their names.
    pub(super) schemas: BTreeMap<SchemaId, Arc<str>>,
    pub(super) schemas_by_name: BTreeMap<Arc<str>, SchemaId>,
    /// The schemas of types that are not in `public`.
    pub(super) type_schemas: BTreeMap<ObjectId, SchemaId>,
    casts: BTreeMap<ObjectId, Arc<Cast>>,
    /// Tables, views, indexes and sequences of a schema share their names, as in PostgreSQL.
    /// Hidden keys, their sequences, and the indexes of foreign keys have none.
    names: BTreeMap<SchemaId, BTreeMap<String, ObjectId>>,
}

impl Deref for Catalog {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

impl Default for Catalog {
    fn default() -> Catalog {
        let (objects, path, places) = (Arc::default(), Path::default(), Vec::new());
        let mut catalog = Catalog {
            version: 0,
            next_id: FIRST_ID,
            database: NAME.into(),
            objects,
            path,
            places,
            public: OnceLock::new(),
        };
        catalog.find_places();
        catalog
    }
}

impl Default for Objects {
    fn default() -> Objects {
        let public: Arc<str> = "public".into();
        Objects {
            schemas: BTreeMap::from([(SchemaId::PUBLIC, Arc::clone(&public))]),
            schemas_by_name: BTreeMap::from([(public, SchemaId::PUBLIC)]),
            type_schemas: BTreeMap::new(),
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
        let objects = Arc::make_mut(&mut catalog.objects);
        for (key, row) in rows {
            objects.apply(key, Some(row), &mut catalog.next_id)?;
        }
        objects.index_names();
        catalog.find_places();
        Ok(catalog)
    }

    /// The next version.
    pub fn with(&self, delta: &Delta) -> Result<Catalog> {
        let mut next = self.clone();
        let objects = Arc::make_mut(&mut next.objects);
        for (key, row) in delta.rows() {
            objects.apply(key, row.as_deref(), &mut next.next_id)?;
        }
        objects.index_names();
        next.version += 1;
        next.find_places();
        Ok(next)
    }

    /// The same with the temporary objects of a session.
    pub(super) fn with_temporary<'a>(
        &self,
        schema: &Arc<str>,
        rows: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Catalog> {
        let mut next = self.clone();
        let objects = Arc::make_mut(&mut next.objects);
        objects.schemas.insert(SchemaId::TEMPORARY, Arc::clone(schema));
        objects.schemas_by_name.insert(Arc::clone(schema), SchemaId::TEMPORARY);
        for (key, row) in rows {
            objects.apply(key, Some(row), &mut ObjectId::new(0))?;
        }
        objects.index_names();
        next.find_places();
        Ok(next)
    }

    /// The same under another version.
    #[must_use]
    pub fn at_version(self, version: u64) -> Catalog {
        Catalog { version, ..self }
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

    /// Names the database, which has the default name otherwise.
    #[must_use]
    pub fn of_database(self, name: &Arc<str>) -> Catalog {
        Catalog { database: Arc::clone(name), ..self }
    }

    /// Returns the name of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The first id that no object has had.
    pub fn next_id(&self) -> ObjectId {
        self.next_id
    }
}

impl Objects {
    fn apply(&mut self, key: &[u8], row: Option<&[u8]>, next_id: &mut ObjectId) -> Result<()> {
        let (kind, id) = match *key {
            [kind, a, b, c, d] => (kind, ObjectId::from_bytes([a, b, c, d])),
            _ => return Err(Error::corrupted("key of the catalog is damaged")),
        };
        match (kind, row) {
            (TABLE, Some(row)) => {
                let table = Table::read(row)?;
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
            (SCHEMA, row) => self.apply_schema(SchemaId::from(id), row)?,
            (TYPE_SCHEMA, row) => self.apply_type_schema(id, row)?,
            (CAST, row) => self.apply_cast(id, row)?,
            (NEXT_ID, Some(row)) => *next_id = from_bytes(row, "next id of the catalog")?,
            (IN_PIECES, _) => {}
            _ => return Err(Error::corrupted("key of the catalog is unknown")),
        }
        Ok(())
    }

    fn apply_comment(&mut self, id: ObjectId, row: Option<&[u8]>) -> Result<()> {
        let Some(row) = row else {
            self.comments.remove(&id);
            return Ok(());
        };
        let comment: Comment = object(row, id, "comment", |comment: &Comment| comment.id)?;
        self.comments.insert(id, Arc::new(comment));
        Ok(())
    }

    /// A schema without a name has gone: `public`, which is there without a row.
    fn apply_schema(&mut self, id: SchemaId, row: Option<&[u8]>) -> Result<()> {
        let name = match row {
            Some(row) => from_bytes::<String>(row, "schema of the catalog")?,
            None => String::new(),
        };
        if let Some(before) = self.schemas.remove(&id) {
            self.schemas_by_name.remove(&before);
        }
        if !name.is_empty() {
            let name: Arc<str> = name.into();
            self.schemas.insert(id, Arc::clone(&name));
            self.schemas_by_name.insert(name, id);
        }
        Ok(())
    }

    fn apply_type_schema(&mut self, id: ObjectId, row: Option<&[u8]>) -> Result<()> {
        match row {
            Some(row) => {
                let schema = from_bytes(row, "schema of a type of the catalog")?;
                self.type_schemas.insert(id, schema);
            }
            None => drop(self.type_schemas.remove(&id)),
        }
        Ok(())
    }

    fn apply_cast(&mut self, id: ObjectId, row: Option<&[u8]>) -> Result<()> {
        let Some(row) = row else {
            self.casts.remove(&id);
            return Ok(());
        };
        let cast: Cast = object(row, id, "cast", |cast: &Cast| cast.id)?;
        self.casts.insert(id, Arc::new(cast));
        Ok(())
    }

    fn index_names(&mut self) {
        let mut names = BTreeMap::<SchemaId, BTreeMap<String, ObjectId>>::new();
        let mut add = |name: &Name, own: &str, id: ObjectId| {
            names.entry(name.schema).or_default().insert(own.to_owned(), id);
        };
        let mut hidden = BTreeSet::new();
        for table in self.tables.values() {
            let relation = &table.relation;
            add(&relation.name, &relation.name, relation.id);
            if !relation.has_hidden_key() {
                add(&relation.name, &relation.primary_name, relation.id);
            }
            for index in relation.indexes.iter().filter(|index| !index.is_hidden()) {
                add(&relation.name, &index.name, index.id);
            }
            let both = relation.columns.iter().zip(&table.columns);
            hidden
                .extend(both.filter(|both| both.0.is_hidden()).filter_map(|both| both.1.sequence));
        }
        for view in self.views.values() {
            add(&view.name, &view.name, view.id);
        }
        for sequence in self.sequences.values().filter(|own| !hidden.contains(&own.id)) {
            add(&sequence.name, &sequence.name, sequence.id);
        }
        self.names = names;
    }

    fn id(&self, name: &Name) -> Option<&ObjectId> {
        self.names.get(&name.schema)?.get(&name.own)
    }

    /// The table with this name.
    pub fn table(&self, name: &Name) -> Option<&Arc<Table>> {
        let id = self.id(name)?;
        self.tables.get(id).filter(|table| table.relation.name == *name)
    }

    /// The table with an index of this name, and the place of the index.
    pub fn index(&self, name: &Name) -> Option<(&Arc<Table>, usize)> {
        let id = self.id(name)?;
        self.tables.values().find_map(|table| {
            let at = table.relation.indexes.iter().position(|index| index.id == *id)?;
            Some((table, at))
        })
    }

    /// The table whose primary key is called so.
    pub fn table_of_primary(&self, name: &Name) -> Option<&Arc<Table>> {
        let found = self.tables.get(self.id(name)?)?;
        let relation = &found.relation;
        (relation.primary_name == name.own && !relation.has_hidden_key()).then_some(found)
    }

    /// The view with this name.
    pub fn view(&self, name: &Name) -> Option<&Arc<View>> {
        self.views.get(self.id(name)?)
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
    pub fn enum_named(&self, name: &Name) -> Option<EnumType> {
        self.enum_in(name.schema, &name.own)
    }

    fn enum_in(&self, schema: SchemaId, own: &str) -> Option<EnumType> {
        let has_place = |id: &ObjectId| {
            let place = self.type_schemas.get(id).copied().unwrap_or(SchemaId::PUBLIC);
            place == schema
        };
        let found = self.enums.iter().find(|(id, ty)| ty.name() == own && has_place(id));
        found.map(|(_, ty)| *ty)
    }

    /// The type that a statement has made with this name: an enum, or its arrays, which have a `_`
    /// before it.
    pub fn type_named(&self, name: &Name) -> Option<Type> {
        let array = || {
            let element = self.enum_in(name.schema, name.own.strip_prefix('_')?)?;
            Type::Enum(element).array()
        };
        self.enum_named(name).map(Type::Enum).or_else(array)
    }

    /// Whether a schema has a type with this name, or its arrays.
    pub(super) fn has_type(&self, schema: SchemaId, own: &str) -> bool {
        !self.enums.is_empty() && self.type_named(&Name::new(schema, own)).is_some()
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
    pub fn sequence(&self, name: &Name) -> Option<&Arc<Sequence>> {
        self.sequences.get(self.id(name)?)
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
    pub fn is_named(&self, name: &Name) -> bool {
        self.id(name).is_some()
    }

    /// Whether a table, view, index or sequence of a schema has this name.
    pub(super) fn is_named_in(&self, schema: SchemaId, own: &str) -> bool {
        self.names.get(&schema).is_some_and(|names| names.contains_key(own))
    }

    /// All tables, by id.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }
}

/// Decodes the row of an object of the catalog, whose id must be that of the row's key.
fn object<T: DeserializeOwned>(
    row: &[u8],
    id: ObjectId,
    what: &str,
    id_of: impl Fn(&T) -> ObjectId,
) -> Result<T> {
    let object: T = from_bytes(row, &format!("{what} of the catalog"))?;
    if id_of(&object) != id {
        return Err(Error::corrupted(format!("{what} of the catalog is damaged")));
    }
    Ok(object)
}
