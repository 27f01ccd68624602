//! The result of a definition.

use crate::bind::name_of;
use crate::catalog::{Catalog, Delta, SYSTEM_SCHEMAS, Written, missing_schema};
use crate::ir::{Name, SchemaId};
use crate::system::NAME;
use sqlparser::ast::{Ident, ObjectName};
use values::{Datum, Error, Result, SqlState};

/// The changes and the answer of a definition. The catalog and the store apply them together.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The command tag.
    pub tag: &'static str,
    /// The changes of the catalog.
    pub delta: Delta,
    /// The rows of the answer.
    pub rows: Vec<Vec<Datum>>,
    /// The number of rows in the command tag.
    pub(super) count: Option<usize>,
    /// The notices, one a line.
    pub notice: Option<String>,
}

impl Definition {
    pub(super) fn new(tag: &'static str, delta: Delta) -> Definition {
        Definition { tag, delta, rows: Vec::new(), count: None, notice: None }
    }

    /// Returns the command tag, with the number of rows if there is one.
    pub fn shown_tag(&self) -> String {
        match self.count {
            Some(count) => format!("{} {count}", self.tag),
            None => self.tag.to_owned(),
        }
    }

    /// Returns the result of CREATE for a name that exists: a notice with `skipped` (IF NOT
    /// EXISTS), else an error.
    pub(super) fn existing(tag: &'static str, name: &str, skipped: bool) -> Result<Definition> {
        let message = format!("relation \"{name}\" already exists");
        if !skipped {
            return Err(Error::new(SqlState::DUPLICATE_TABLE, message));
        }
        let notice = Some(format!("{message}, skipping"));
        Ok(Definition { notice, ..Definition::new(tag, Delta::default()) })
    }

    /// Unwraps a name. An error becomes a notice and `None` with `skipped` (IF EXISTS).
    pub(super) fn found(&mut self, name: Result<Name>, skipped: bool) -> Result<Option<Name>> {
        match name {
            Ok(name) => Ok(Some(name)),
            Err(error) => self.skip_missing(error, skipped).map(|()| None),
        }
    }

    /// Resolves the relation of ALTER. A missing one becomes a notice and `None` with `skipped`
    /// (IF EXISTS).
    pub(super) fn altered(
        &mut self,
        catalog: &Catalog,
        written: &Written,
        skipped: bool,
    ) -> Result<Option<Name>> {
        catalog.check_database(written)?;
        let found = catalog.relation(written);
        let is_there = found.as_ref().is_ok_and(|name| catalog.is_named(name));
        if is_there || !skipped {
            let missing = || Err(written.missing());
            return found.and_then(|own| if is_there { Ok(Some(own)) } else { missing() });
        }
        self.skip_missing(Written::plain(&*written.own).missing(), skipped)?;
        Ok(None)
    }

    /// Turns the error of a missing object into a notice with `skipped` (IF EXISTS).
    pub(super) fn skip_missing(&mut self, error: Error, skipped: bool) -> Result<()> {
        // A name that is not supported, such as one of another database, is always an error.
        if !skipped || error.state() == SqlState::FEATURE_NOT_SUPPORTED {
            return Err(error);
        }
        self.add_notice(&format!("{}, skipping", error.message()));
        Ok(())
    }

    /// Appends a notice.
    pub(super) fn add_notice(&mut self, notice: &str) {
        let before = self.notice.take().map(|before| before + "\n").unwrap_or_default();
        self.notice = Some(before + notice);
    }
}

/// Refuses the name of a type for a table or view.
pub(super) fn refuse_name_of_type(catalog: &Catalog, name: &Name) -> Result<()> {
    if catalog.type_named(name).is_none() {
        return Ok(());
    }
    let message = format!("type \"{name}\" already exists");
    Err(Error::new(SqlState::DUPLICATE_OBJECT, message).with_hint(
        "A relation has an associated type of the same name, so you must use a name that doesn't \
         conflict with any existing type.",
    ))
}

/// The objects and options of DROP TYPE or DROP INDEX.
pub(super) struct Dropping<'a> {
    pub(super) names: &'a [ObjectName],
    pub(super) if_exists: bool,
    pub(super) cascade: bool,
}

/// Checks that an owner is the only user.
pub(super) fn refuse_owner(owner: &Ident) -> Result<()> {
    let name = name_of(owner);
    let is_own = owner.quote_style.is_none()
        && ["current_user", "current_role", "session_user"].contains(&name.as_str());
    if is_own || name == NAME {
        return Ok(());
    }
    Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist")))
}

/// Returns the result of CREATE for an existing object: a notice with `skipped` (IF NOT EXISTS),
/// else an error.
pub(super) fn existing(
    tag: &'static str,
    what: &str,
    state: SqlState,
    skipped: bool,
) -> Result<Definition> {
    let message = format!("{what} already exists");
    if !skipped {
        return Err(Error::new(state, message));
    }
    let notice = Some(format!("{message}, skipping"));
    Ok(Definition { notice, ..Definition::new(tag, Delta::default()) })
}

/// The schema that SET SCHEMA names.
pub(super) fn move_target(catalog: &Catalog, schema: &Ident) -> Result<SchemaId> {
    let name = name_of(schema);
    if SYSTEM_SCHEMAS.contains(&name.as_str()) {
        let message = format!("permission denied for schema {name}");
        return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    catalog.schema_named(&name).ok_or_else(|| missing_schema(&name))
}

/// The error of a name that something in another schema has already.
pub(super) fn already_there(kind: &str, name: &Name, catalog: &Catalog) -> Error {
    let schema = catalog.schema_name(name.schema);
    let message = format!("{kind} \"{name}\" already exists in schema \"{schema}\"");
    let state = match kind {
        "type" => SqlState::DUPLICATE_OBJECT,
        _ => SqlState::DUPLICATE_TABLE,
    };
    Error::new(state, message)
}
