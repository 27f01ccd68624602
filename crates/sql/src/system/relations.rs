//! The relations of the system catalog with their columns, as PostgreSQL 15 has them.

use crate::ir::Kind;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use values::{Modifier, Type};

/// A relation of the system catalog.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) id: i32,
    /// Its name with its schema.
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<(&'static str, Kind)>,
}

/// The column behind those of `*`: the object id of the relation itself.
pub(crate) const TABLE_ID: &str = "tableoid";

/// A line for each relation, with its object id; lines that begin with blanks go on with columns.
const TEXT: &str = include_str!("relations.txt");

static ALL: LazyLock<BTreeMap<&'static str, Known>> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    let mut last = "";
    for line in TEXT.lines() {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            let id = words.next().and_then(|id| id.parse().ok()).expect("a relation has an id");
            last = words.next().expect("a relation has a name");
            all.insert(last, Known { id, name: last, columns: Vec::new() });
        }
        let known = all.get_mut(last).expect("a relation comes before its columns");
        known.columns.extend(words.map(column));
    }
    all
});

fn column(word: &'static str) -> (&'static str, Kind) {
    let (name, ty) = word.split_once(':').expect("a column has a type");
    if let Some(element) = ty.strip_suffix("vector") {
        let element = scalar(element).expect("the type is known");
        let ty = element.array().expect("it is no array");
        return (name, Kind { ty, modifier: Modifier::VECTOR });
    }
    let element = ty.strip_suffix("[]");
    let own = scalar(element.unwrap_or(ty)).expect("the type is known");
    let ty = if element.is_some() { own.array().expect("it is no array") } else { own };
    (name, Kind::plain(ty))
}

fn scalar(name: &str) -> Option<Type> {
    match name {
        "letter" => Some(Type::Letter),
        name => super::type_names::named(name),
    }
}

/// The relation with this name, which has its schema before it.
pub(crate) fn known(name: &str) -> Option<&'static Known> {
    ALL.get(name)
}

/// All of them, by name.
pub(super) fn all() -> impl Iterator<Item = &'static Known> {
    ALL.values()
}

impl Known {
    /// Its schema and its own name.
    pub(super) fn parts(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').expect("a name has a schema")
    }

    /// Whether it is a view in PostgreSQL.
    pub(super) fn is_view(&self) -> bool {
        let first = self.columns.first().map_or("", |column| column.0);
        self.name.starts_with("information_schema.")
            || matches!(first, "schemaname" | "rolname" | "name" | "usename" | "relid" | "datid")
    }
}
