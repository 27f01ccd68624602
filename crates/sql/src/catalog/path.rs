//! Names as statements write them, and the schemas in which they are looked for.

use crate::ir::SchemaId;
use std::fmt;
use std::sync::Arc;
use values::{Error, Result, SqlState};

/// The name of the one user, and of the database unless there are others.
pub const NAME: &str = "nvcaracal";
/// The schemas of the system catalog.
pub const SYSTEM_SCHEMAS: [&str; 2] = ["pg_catalog", "information_schema"];
/// The schema that is searched first unless the path states its place.
pub(super) const PG_CATALOG: &str = SYSTEM_SCHEMAS[0];
/// Stands in a name or path for the schema of temporary objects of the session.
pub(super) const PG_TEMP: &str = "pg_temp";
/// Stands in a path for the schema named after the user.
const USER: &str = "$user";

/// The name of a relation or type as a statement writes it, perhaps after a schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    /// The database, if one is stated; names resolve in the session's own one alone.
    pub database: Option<String>,
    /// The schema, if one is stated.
    pub schema: Option<String>,
    /// The name itself.
    pub own: String,
}

impl Written {
    /// A name without a schema.
    pub fn plain(own: impl Into<String>) -> Written {
        Written { database: None, schema: None, own: own.into() }
    }

    /// Reads the parts of a name: `own`, `schema.own` or `database.schema.own`.
    ///
    /// # Errors
    /// There are more parts.
    pub fn of_parts(parts: &[String]) -> Result<Written> {
        let (database, schema, own) = match parts {
            [own] => (None, None, own),
            [schema, own] => (None, Some(schema.clone()), own),
            [database, schema, own] => (Some(database.clone()), Some(schema.clone()), own),
            all => {
                let shown = all.join(".");
                let message = format!("improper qualified name (too many dotted names): {shown}");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        };
        Ok(Written { database, schema, own: own.clone() })
    }

    /// The error of a relation that does not exist.
    pub fn missing(&self) -> Error {
        let message = format!("relation \"{self}\" does not exist");
        Error::new(SqlState::UNDEFINED_TABLE, message)
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.own),
            None => f.write_str(&self.own),
        }
    }
}

/// `search_path`: the names of the schemas in which a session looks up unqualified names.
/// `"$user", public` unless the session sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(Names);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Names {
    /// The initial path of each session.
    #[default]
    Default,
    /// Schema 2200 alone, whatever its name.
    Public,
    Stated(Arc<[String]>),
}

impl Path {
    /// Parses a value of `search_path`; `None` if it is not a list of names.
    pub fn parse(text: &str) -> Option<Path> {
        let names = names_of(text)?;
        let is_default = names == [USER, "public"];
        Some(Path(if is_default { Names::Default } else { Names::Stated(names.into()) }))
    }

    /// The path for texts of views: schema 2200 alone, whatever its name.
    pub(super) fn public() -> Path {
        Path(Names::Public)
    }

    /// Returns true for the path of views.
    pub(super) fn is_public(&self) -> bool {
        self.0 == Names::Public
    }

    /// Returns the names in order, with the user for `$user`.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let (stated, default): (&[String], &[&str]) = match &self.0 {
            Names::Default => (&[], &[NAME, "public"]),
            Names::Public => (&[], &[]),
            Names::Stated(names) => (names, &[]),
        };
        let stated = stated.iter().map(|name| match name.as_str() {
            USER => NAME,
            name => name,
        });
        stated.chain(default.iter().copied())
    }
}

/// An existing schema of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A schema of user objects.
    Made(SchemaId),
    /// A schema of the system catalog, by name.
    System(&'static str),
}

/// Splits a list at its commas. Names without quotes become lower case.
fn names_of(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => until_quote(quoted)?,
            None => {
                let end = rest.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(rest.len());
                (rest[..end].to_ascii_lowercase(), &rest[end..])
            }
        };
        names.push(name);
        match behind.trim_start().strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None if behind.trim().is_empty() => return Some(names),
            None => return None,
        }
    }
}

/// Splits a text at the quote that ends a name.
fn until_quote(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_lists_of_names() {
        let names = |text: &str| -> Option<Vec<String>> {
            Some(Path::parse(text)?.names().map(str::to_owned).collect())
        };
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(names(text).unwrap(), expected, "{text}");
        };
        check("", &[]);
        check("\"\"", &[""]);
        check("a", &["a"]);
        check(" App ,\"B c\", \"d\"\"e\"", &["app", "B c", "d\"e"]);
        check("\"$user\", public", &[NAME, "public"]);
        assert_eq!(Path::parse("\"$user\",public").unwrap(), Path::default());
        for text in ["a b", "\"a", "a,\"b\" c"] {
            assert_eq!(names(text), None, "{text}");
        }
    }
}
