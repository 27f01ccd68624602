//! The temporary objects of a session, which are in a catalog of its own over that of all.

use super::delta::{Delta, NEXT_ID};
use super::snapshot::Catalog;
use crate::ir::{ObjectId, Relation, SchemaId, from_bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use values::{Error, Result, SqlState};

/// What becomes of a temporary table at the end of a transaction, if it does not stay as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCommit {
    /// It loses its rows.
    DeleteRows,
    /// It is dropped.
    Drop,
}

/// One version of the temporary objects of a session.
#[derive(Debug)]
pub struct Temporary {
    /// Different from that of any other version of any session.
    version: u64,
    schema: Arc<str>,
    /// Rows as the catalog of all has them, by their keys.
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    next_id: ObjectId,
    /// By the ids of tables.
    on_commit: BTreeMap<ObjectId, OnCommit>,
    /// The catalog with these objects, of the last catalog of all that it was asked for.
    over: Mutex<Option<(u64, ObjectId, Arc<Catalog>)>>,
}

impl Temporary {
    /// No objects yet; the schema is named after the number of the session.
    #[must_use]
    pub fn new(session: u64, version: u64) -> Temporary {
        Temporary {
            version,
            schema: format!("pg_temp_{session}").into(),
            rows: BTreeMap::new(),
            next_id: SchemaId::TEMPORARY.object().next(),
            on_commit: BTreeMap::new(),
            over: Mutex::default(),
        }
    }

    /// Changes with each change of the objects.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The first id that no temporary object has had.
    pub fn next_id(&self) -> ObjectId {
        self.next_id
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What becomes of tables at the end of a transaction, by their ids.
    pub fn on_commit(&self) -> &BTreeMap<ObjectId, OnCommit> {
        &self.on_commit
    }

    /// The same schema without objects.
    #[must_use]
    pub fn emptied(&self, version: u64) -> Temporary {
        self.changed(BTreeMap::new(), version)
    }

    /// No id below this one is given again.
    #[must_use]
    pub fn at_next_id(self, next_id: ObjectId) -> Temporary {
        Temporary { next_id: self.next_id.max(next_id), ..self }
    }

    fn changed(&self, rows: BTreeMap<Vec<u8>, Vec<u8>>, version: u64) -> Temporary {
        let (schema, next_id) = (Arc::clone(&self.schema), self.next_id);
        let (on_commit, over) = Default::default();
        Temporary { version, schema, rows, next_id, on_commit, over }
    }

    /// The objects behind a definition of temporary ones. A table keeps what becomes of it at the
    /// end of a transaction, also under another id or name.
    ///
    /// # Errors
    /// That the definition changes other objects, too, or that an object is damaged.
    pub fn with(&self, delta: &Delta, made: Option<OnCommit>, version: u64) -> Result<Temporary> {
        let mut rows = self.rows.clone();
        let mut next_id = self.next_id;
        for (key, row) in delta.rows() {
            match (key.first(), row) {
                (Some(&NEXT_ID), Some(row)) => next_id = from_bytes(row, "next id")?,
                _ if !is_temporary(key) => return Err(mixed()),
                (_, Some(row)) => drop(rows.insert(key.clone(), row.clone())),
                (_, None) => drop(rows.remove(key)),
            }
        }
        let next = self.changed(rows, version).at_next_id(next_id);
        let on_commit = self.followed(&next, made)?;
        Ok(Temporary { on_commit, ..next })
    }

    fn followed(
        &self,
        next: &Temporary,
        made: Option<OnCommit>,
    ) -> Result<BTreeMap<ObjectId, OnCommit>> {
        let (before, after) = (self.alone()?, next.alone()?);
        let mut on_commit = BTreeMap::new();
        for table in after.tables() {
            let (id, name) = (table.relation.id, &table.relation.name);
            let old = before.tables().find(|old| old.relation.id == id);
            let found = match old.or_else(|| before.table(name)) {
                Some(old) => self.on_commit.get(&old.relation.id).copied(),
                None => made,
            };
            found.into_iter().for_each(|found| {
                on_commit.insert(id, found);
            });
        }
        Ok(on_commit)
    }

    /// A catalog of nothing else.
    fn alone(&self) -> Result<Catalog> {
        Catalog::open(self.rows.iter().map(|(key, row)| (&key[..], &row[..])))
    }

    /// The tables and indexes whose rows stay at the end of a transaction.
    pub fn ids_kept(&self) -> BTreeSet<ObjectId> {
        let alone = self.alone().expect("objects that were made are whole");
        let tables = alone.tables().map(|table| &table.relation);
        let kept = tables.filter(|own| !self.on_commit.contains_key(&own.id));
        let of = |own: &Relation| {
            let indexes = own.indexes.iter().map(|index| index.id);
            std::iter::once(own.id).chain(indexes).collect::<Vec<_>>()
        };
        kept.flat_map(of).collect()
    }

    /// The catalog of all with these objects.
    pub fn over(&self, all: &Catalog) -> Arc<Catalog> {
        let mut kept = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, next_id, over)) = &*kept
            && (*version, *next_id) == (all.version(), all.next_id())
        {
            return Arc::clone(over);
        }
        let rows = self.rows.iter().map(|(key, row)| (&key[..], &row[..]));
        let over = all.with_temporary(&self.schema, rows);
        let over = Arc::new(over.expect("objects that were made are whole"));
        *kept = Some((all.version(), all.next_id(), Arc::clone(&over)));
        over
    }
}

fn is_temporary(key: &[u8]) -> bool {
    let id = key.get(1..).and_then(|id| id.first_chunk());
    id.is_some_and(|id| ObjectId::from_bytes(*id).is_temporary())
}

impl Delta {
    /// Whether it changes temporary objects, or depends on them.
    pub fn is_of_temporary(&self) -> bool {
        self.names_temporary || self.rows().iter().any(|(key, _)| is_temporary(key))
    }
}

/// The error of a definition of objects of both kinds.
pub fn mixed() -> Error {
    let message = "a definition of temporary and other objects at once is not supported";
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint("Use a statement for each kind.")
}
