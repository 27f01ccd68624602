//! The one place that finds what names mean.

use super::path::{PG_CATALOG, Path, Place, SYSTEM_SCHEMAS, Written};
use super::snapshot::Catalog;
use crate::ir::{Name, SchemaId};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use values::{EnumType, Error, Result, SqlState};

impl Catalog {
    /// The same catalog, in which names are looked for along this path.
    pub fn along(&self, path: &Path) -> Cow<'_, Catalog> {
        match *path == self.path {
            true => Cow::Borrowed(self),
            false => Cow::Owned(self.along_path(path.clone())),
        }
    }

    /// The same of a catalog that is shared.
    #[must_use]
    pub fn shared_along(self: &Arc<Catalog>, path: &Path) -> Arc<Catalog> {
        match self.along(path) {
            Cow::Borrowed(_) => Arc::clone(self),
            Cow::Owned(catalog) => Arc::new(catalog),
        }
    }

    /// The same catalog along the path of definitions that are kept, which has `public` only.
    pub fn along_public(&self) -> &Catalog {
        if self.path.is_public() {
            return self;
        }
        self.public.get_or_init(|| Box::new(self.along_path(Path::public())))
    }

    fn along_path(&self, path: Path) -> Catalog {
        let mut next = self.clone();
        next.path = path;
        next.find_places();
        next
    }

    /// The schema with this name.
    pub fn schema_named(&self, name: &str) -> Option<SchemaId> {
        self.schemas_by_name.get(name).copied()
    }

    /// The name of a schema.
    pub fn schema_name(&self, id: SchemaId) -> &str {
        self.schemas.get(&id).map_or("", |name| name)
    }

    /// All schemas that statements can make relations in, by id.
    pub fn schemas(&self) -> impl Iterator<Item = (SchemaId, &str)> {
        self.schemas.iter().map(|(id, name)| (*id, &**name))
    }

    /// The schemas in which names without one are looked for, in order.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The names of the schemas of the path that exist; the system's own, too, if `implicit`.
    pub fn searched(&self, implicit: bool) -> Vec<&str> {
        let names: Vec<&str> = self.path.names().collect();
        let is_stated = |name: &str| names.contains(&name);
        let name = |place: &Place| match *place {
            Place::Made(id) => Some(self.schema_name(id)),
            Place::System(name) if implicit || is_stated(name) => Some(name),
            Place::System(_) => None,
        };
        self.places.iter().filter_map(name).collect()
    }

    /// Looks up which schemas of the path exist.
    pub(super) fn find_places(&mut self) {
        self.public = OnceLock::new();
        let place = |name: &str| {
            let system = SYSTEM_SCHEMAS.iter().find(|own| **own == name);
            let made = || self.schema_named(name).map(Place::Made);
            system.map(|own| Place::System(own)).or_else(made)
        };
        let mut places: Vec<Place> = Vec::new();
        if self.path.is_public() {
            places.push(Place::Made(SchemaId::PUBLIC));
        }
        for place in self.path.names().filter_map(place) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let catalog = Place::System(PG_CATALOG);
        if !places.contains(&catalog) {
            places.insert(0, catalog);
        }
        self.places = places;
    }

    /// The schema that a name states.
    ///
    /// # Errors
    /// That there is no such schema.
    fn stated(&self, schema: &str) -> Result<SchemaId> {
        match self.schema_named(schema) {
            Some(id) => Ok(id),
            // Its relations are found before those that statements make.
            None if SYSTEM_SCHEMAS.contains(&schema) => Ok(SchemaId::NOWHERE),
            None => Err(missing_schema(schema)),
        }
    }

    /// The name of the relation that a statement means: in the schema that it states, or in the
    /// first one of the path that has such a relation. Nothing has the name if there is none.
    ///
    /// # Errors
    /// That the schema does not exist.
    pub fn relation(&self, written: &Written) -> Result<Name> {
        self.found(written, |schema| self.is_named_in(schema, &written.own))
    }

    /// The name of the type that a statement has made and another one means, as of a relation.
    ///
    /// # Errors
    /// That the schema does not exist.
    pub fn type_of(&self, written: &Written) -> Result<Name> {
        self.found(written, |schema| self.has_type(schema, &written.own))
    }

    fn found(&self, written: &Written, has: impl Fn(SchemaId) -> bool) -> Result<Name> {
        let schema = match &written.schema {
            Some(schema) => self.stated(schema)?,
            None => {
                let has = |place: &Place| match *place {
                    Place::Made(schema) => has(schema).then_some(schema),
                    Place::System(_) => None,
                };
                self.places.iter().find_map(has).unwrap_or(SchemaId::NOWHERE)
            }
        };
        Ok(Name::new(schema, &*written.own))
    }

    /// The name that a statement gives what it makes.
    ///
    /// # Errors
    /// That the schema does not exist, or is none for what statements make.
    pub fn new_name(&self, written: &Written) -> Result<Name> {
        let schema = match &written.schema {
            Some(schema) => self.stated(schema)?,
            None => match self.places.iter().find(|place| !self.is_implicit(place)) {
                Some(Place::Made(schema)) => *schema,
                Some(Place::System(_)) => SchemaId::NOWHERE,
                None => {
                    let message = "no schema has been selected to create in";
                    return Err(Error::new(SqlState::UNDEFINED_SCHEMA, message));
                }
            },
        };
        if schema == SchemaId::NOWHERE {
            let system = written.schema.as_deref().unwrap_or(PG_CATALOG);
            let message = format!("permission denied to create \"{system}.{}\"", written.own);
            return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
                .with_detail("System catalog modifications are currently disallowed."));
        }
        Ok(Name::new(schema, &*written.own))
    }

    /// Whether a schema is searched although the path does not state it.
    fn is_implicit(&self, place: &Place) -> bool {
        *place == Place::System(PG_CATALOG) && self.path.names().all(|name| name != PG_CATALOG)
    }

    /// The schema of a type that a statement has made.
    pub fn schema_of_type(&self, ty: EnumType) -> SchemaId {
        let id = crate::ir::ObjectId::new(ty.oid().number());
        self.type_schemas.get(&id).copied().unwrap_or(SchemaId::PUBLIC)
    }

    /// The name of a type that a statement has made.
    pub fn name_of_type(&self, ty: EnumType) -> Name {
        Name::new(self.schema_of_type(ty), ty.name())
    }

    /// Whether a relation is found by its name alone.
    pub fn is_visible(&self, name: &Name) -> bool {
        let written = Written::plain(&*name.own);
        self.relation(&written).is_ok_and(|found| found.schema == name.schema)
    }

    /// Whether a type that a statement has made is found by its name alone.
    pub fn is_visible_type(&self, ty: EnumType) -> bool {
        let found = self.type_of(&Written::plain(ty.name()));
        found.is_ok_and(|found| found.schema == self.schema_of_type(ty))
    }
}

/// The error of a schema that does not exist.
pub fn missing_schema(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_SCHEMA, format!("schema \"{name}\" does not exist"))
}
