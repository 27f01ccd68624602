//! Resolves names along the path of a session.

use super::path::{PG_CATALOG, PG_TEMP, Path, Place, SYSTEM_SCHEMAS, Written};
use super::snapshot::Catalog;
use crate::ir::{Name, SchemaId};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use values::{EnumType, Error, Result, SqlState};

impl Catalog {
    /// Returns a view of the catalog that resolves names along `path`.
    pub fn along(&self, path: &Path) -> Cow<'_, Catalog> {
        match *path == self.path {
            true => Cow::Borrowed(self),
            false => Cow::Owned(self.along_path(path.clone())),
        }
    }

    /// [`Catalog::along`] for a shared catalog.
    #[must_use]
    pub fn shared_along(self: &Arc<Catalog>, path: &Path) -> Arc<Catalog> {
        match self.along(path) {
            Cow::Borrowed(_) => Arc::clone(self),
            Cow::Owned(catalog) => Arc::new(catalog),
        }
    }

    /// Returns a view of the catalog for texts of views, along `public` alone.
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

    /// Finds a schema by its name.
    pub fn schema_named(&self, name: &str) -> Option<SchemaId> {
        if name == PG_TEMP {
            return self.has_temporary().then_some(SchemaId::TEMPORARY);
        }
        self.schemas_by_name.get(name).copied()
    }

    /// Whether the session has had temporary objects.
    pub fn has_temporary(&self) -> bool {
        self.schemas.contains_key(&SchemaId::TEMPORARY)
    }

    /// Returns the name of a schema.
    pub fn schema_name(&self, id: SchemaId) -> &str {
        self.schemas.get(&id).map_or("", |name| name)
    }

    /// Iterates over the schemas of user objects, by id.
    pub fn schemas(&self) -> impl Iterator<Item = (SchemaId, &str)> {
        self.schemas.iter().map(|(id, name)| (*id, &**name))
    }

    /// Returns the schemas in which unqualified names are looked up, in order.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns the names of the existing schemas of the path, with `pg_catalog` if `implicit`.
    pub fn searched(&self, implicit: bool) -> Vec<&str> {
        let names: Vec<&str> = self.path.names().collect();
        let is_stated = |name: &str| names.contains(&name);
        let name = |place: &Place| match *place {
            Place::Made(SchemaId::TEMPORARY) if !implicit && self.is_implicit(place) => None,
            Place::Made(id) => Some(self.schema_name(id)),
            Place::System(name) if implicit || is_stated(name) => Some(name),
            Place::System(_) => None,
        };
        self.places.iter().filter_map(name).collect()
    }

    /// Resolves the names of the path to schemas.
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
        let temporary = Place::Made(SchemaId::TEMPORARY);
        let is_first = self.has_temporary() && !self.path.is_public();
        if is_first && !places.contains(&temporary) {
            places.insert(0, temporary);
        }
        self.places = places;
    }

    /// Finds the schema of a qualified name.
    ///
    /// # Errors
    /// The schema does not exist.
    fn stated(&self, schema: &str) -> Result<SchemaId> {
        match self.schema_named(schema) {
            Some(id) => Ok(id),
            // Its relations are found before those that statements make.
            None if SYSTEM_SCHEMAS.contains(&schema) => Ok(SchemaId::NOWHERE),
            None => Err(missing_schema(schema)),
        }
    }

    /// Resolves the name of a relation: in the stated schema, or in the first schema of the path
    /// with such a relation. If no schema has one, the result names no relation.
    ///
    /// # Errors
    /// The stated schema does not exist.
    pub fn relation(&self, written: &Written) -> Result<Name> {
        self.found(written, |schema| self.is_named_in(schema, &written.own))
    }

    /// Resolves the name of a user type, as [`Catalog::relation`] does.
    ///
    /// # Errors
    /// The stated schema does not exist.
    pub fn type_of(&self, written: &Written) -> Result<Name> {
        self.found(written, |schema| self.has_type(schema, &written.own))
    }

    /// Refuses a name of another database.
    ///
    /// # Errors
    /// The name states another database.
    pub(crate) fn check_database(&self, written: &Written) -> Result<()> {
        match &written.database {
            Some(database) if database != self.database() => {
                let message =
                    format!("cross-database references are not implemented: {database}.{written}");
                Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
            _ => Ok(()),
        }
    }

    fn found(&self, written: &Written, has: impl Fn(SchemaId) -> bool) -> Result<Name> {
        self.check_database(written)?;
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

    /// Resolves the name of a new object: in the stated schema, or in the first one of the path.
    ///
    /// # Errors
    /// The schema does not exist, the path is empty, or the schema is one of the system.
    pub fn new_name(&self, written: &Written) -> Result<Name> {
        self.check_database(written)?;
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

    /// Resolves the name of a new temporary object.
    ///
    /// # Errors
    /// The name states another schema.
    pub fn new_temporary_name(&self, written: &Written) -> Result<Name> {
        self.check_database(written)?;
        match &written.schema {
            Some(schema) if self.stated(schema)? != SchemaId::TEMPORARY => {
                let message = "cannot create temporary relation in non-temporary schema";
                Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message))
            }
            _ => Ok(Name::new(SchemaId::TEMPORARY, &*written.own)),
        }
    }

    /// Returns true for `pg_catalog`, or the schema of temporary objects, if the path does not
    /// state it.
    fn is_implicit(&self, place: &Place) -> bool {
        let is_stated = |own: &str| self.path.names().any(|name| name == own);
        match *place {
            Place::System(name) => name == PG_CATALOG && !is_stated(PG_CATALOG),
            Place::Made(id) => {
                let is_own = id == SchemaId::TEMPORARY;
                is_own && !is_stated(PG_TEMP) && !is_stated(self.schema_name(id))
            }
        }
    }

    /// Returns the schema of a user type.
    pub fn schema_of_type(&self, ty: EnumType) -> SchemaId {
        let id = crate::ir::ObjectId::new(ty.oid().number());
        self.type_schemas.get(&id).copied().unwrap_or(SchemaId::PUBLIC)
    }

    /// Returns the qualified name of a user type.
    pub fn name_of_type(&self, ty: EnumType) -> Name {
        Name::new(self.schema_of_type(ty), ty.name())
    }

    /// Returns true if the unqualified name resolves to this relation.
    pub fn is_visible(&self, name: &Name) -> bool {
        let written = Written::plain(&*name.own);
        self.relation(&written).is_ok_and(|found| found.schema == name.schema)
    }

    /// Returns true if the unqualified name resolves to this type.
    pub fn is_visible_type(&self, ty: EnumType) -> bool {
        let found = self.type_of(&Written::plain(ty.name()));
        found.is_ok_and(|found| found.schema == self.schema_of_type(ty))
    }
}

/// The error of a schema that does not exist.
pub fn missing_schema(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_SCHEMA, format!("schema \"{name}\" does not exist"))
}
