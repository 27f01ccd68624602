//! Views: their text is bound where they are named, and what it names is noted when they are made.

use super::binder::{Binder, unsupported};
use super::items::{Bounded, Item, Untyped};
use super::scope::{NamedPlace, Noted, Origin, Resolved, TypePlace};
use crate::catalog::{Catalog, Sequence, Used, View, ViewColumn};
use crate::ir::{Kind, Name, ObjectId};
use crate::parse::{Stars, parse, with_words};
use sqlparser::ast::{
    ArrayElemTypeDef, DataType, ObjectName, Query, Statement as Tree, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::Location;
use std::collections::{BTreeMap, BTreeSet};
use values::{Error, Result, SqlState, Type, Zone};

/// The query of a view that is made.
pub(crate) struct NewView {
    pub(crate) columns: Vec<ViewColumn>,
    pub(crate) stars: Stars,
    pub(crate) uses: Vec<Used>,
    /// Where its text names relations, by the last part of a name.
    pub(crate) places: BTreeMap<Location, NamedPlace>,
    pub(crate) types: BTreeMap<Location, TypePlace>,
}

/// How deep views may be in views.
const VIEWS_MAX: usize = 32;

impl Binder<'_> {
    /// Binds the query of a new view.
    pub(crate) fn new_view(&mut self, query: &Query) -> Result<NewView> {
        self.no_queries = None;
        self.noted = Some(Noted::default());
        let bound = self.query(query, Untyped::Text)?;
        if !self.parameters.is_empty() {
            return Err(Error::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        let noted = self.noted.take().unwrap_or_default();
        let uses = noted.relations.iter().filter_map(|id| self.used(*id, &noted.columns));
        let uses = uses.collect();
        let columns = bound.items.iter().map(column_of).collect();
        Ok(NewView { columns, stars: noted.stars, uses, places: noted.places, types: noted.types })
    }

    /// The names of a relation and its columns among these.
    fn used(&self, id: ObjectId, columns: &BTreeSet<Origin>) -> Option<Used> {
        let own = columns.iter().filter(|origin| origin.relation == id);
        let places: Vec<usize> = own.map(|origin| usize::from(origin.column)).collect();
        let tables = self.catalog.tables().find(|table| table.relation.id == id);
        let (relation, names): (_, Vec<String>) = match tables {
            Some(table) => {
                let all = &table.relation.columns;
                let names = places.iter().filter_map(|at| all.get(*at));
                (&table.relation.name, names.map(|column| column.name.clone()).collect())
            }
            None => {
                let view = self.catalog.views().find(|view| view.id == id)?;
                let names = places.iter().filter_map(|at| view.columns.get(*at));
                (&view.name, names.map(|column| column.name.clone()).collect())
            }
        };
        Some(Used { relation: relation.clone(), columns: names })
    }

    /// Binds the query of a view by itself: it sees nothing of the statement.
    pub(super) fn view(&mut self, view: &View) -> Result<Bounded> {
        if self.view_depth >= VIEWS_MAX {
            let message = format!("views are in views deeper than {VIEWS_MAX} levels");
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        let damaged = || Error::corrupted(format!("view \"{}\" is damaged", view.name));
        let statement = parse(&view.text)?.pop().ok_or_else(damaged)?;
        let Tree::Query(query) = &statement.tree else { return Err(damaged()) };
        let zone = zone_of(view)?;
        let levels = std::mem::take(&mut self.levels);
        let named = std::mem::take(&mut self.named);
        let beside = std::mem::take(&mut self.beside);
        let noted = self.noted.take();
        let literal_zone = self.literal_zone.replace(zone);
        let catalog = self.catalog;
        self.catalog = catalog.along_public();
        self.view_depth += 1;
        let bound = self.query(query, Untyped::Text);
        self.view_depth -= 1;
        self.catalog = catalog;
        (self.levels, self.named, self.beside) = (levels, named, beside);
        (self.noted, self.literal_zone) = (noted, literal_zone);
        let mut bound = bound?;
        let kinds = bound.items.iter().map(|item| column_of(item).kind);
        if !kinds.eq(view.columns.iter().map(|column| column.kind)) {
            return Err(damaged());
        }
        for (item, column) in bound.items.iter_mut().zip(&view.columns) {
            item.name.clone_from(&column.name);
        }
        Ok(bound)
    }

    /// The one row of a sequence in FROM, as a view of it would have it.
    pub(super) fn sequence_row(&mut self, sequence: &Sequence) -> Result<Bounded> {
        if self.noted.is_some() {
            return Err(unsupported("a view of a sequence"));
        }
        let (id, last) = (sequence.id.number(), sequence.last);
        let column = |name: &str, ty| ViewColumn { name: name.to_owned(), kind: Kind::plain(ty) };
        self.view(&View {
            id: sequence.id,
            name: sequence.name.clone(),
            columns: vec![
                column("last_value", Type::Int8),
                column("log_cnt", Type::Int8),
                column("is_called", Type::Bool),
            ],
            text: format!(
                "SELECT coalesce(last, {last}::bigint), 0::bigint, last IS NOT NULL \
                 FROM (SELECT pg_catalog.pg_sequence_last_value({id}::oid) AS last) AS sequence"
            ),
            zone: "UTC".to_owned(),
            zone_seconds: None,
            uses: Vec::new(),
        })
    }

    /// Whether a view's text comes to its columns.
    pub(crate) fn check_view(&mut self, view: &View) -> Result<()> {
        self.no_queries = None;
        self.view(view).map(|_| ())
    }

    pub(super) fn note_relation(&mut self, id: ObjectId) {
        if let Some(noted) = &mut self.noted {
            noted.relations.insert(id);
        }
    }

    /// Notes where a relation is named.
    pub(super) fn note_place(&mut self, name: &ObjectName, relation: ObjectId, has_alias: bool) {
        if let (Some(noted), Some((own, schema))) = (&mut self.noted, locations(name)) {
            noted.places.insert(own, NamedPlace { relation, has_alias, schema });
        }
    }

    /// Notes where a type is named that a statement has made.
    pub(super) fn note_type(&mut self, data_type: &DataType, ty: Type) {
        let Some(noted) = &mut self.noted else { return };
        let mut named = data_type;
        while let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = named {
            named = element;
        }
        let element = ty.element().unwrap_or(ty);
        if let (DataType::Custom(name, _), Type::Enum(ty)) = (named, element)
            && let Some((own, schema)) = locations(name)
        {
            noted.types.insert(own, TypePlace { ty, schema });
        }
    }

    pub(super) fn note_column(&mut self, column: &Resolved) {
        if let Some(noted) = &mut self.noted {
            noted.columns.extend(column.origin);
        }
    }

    /// Notes the columns of a `*`, which stands behind a table's name or alone.
    pub(super) fn note_star(
        &mut self,
        star: &WildcardAdditionalOptions,
        table: Option<&str>,
        columns: &[Resolved],
    ) -> Result<()> {
        if self.noted.is_none() {
            return Ok(());
        }
        let mut shown = String::new();
        for (at, column) in columns.iter().enumerate() {
            let name = quoted(&column.name);
            if at > 0 {
                shown.push_str(", ");
            }
            let is_same = |other: &&Resolved| other.name == column.name;
            let prefix = match table {
                Some(table) if at > 0 => Some(table),
                Some(_) => None,
                None if columns.iter().filter(is_same).count() == 1 => None,
                None => {
                    let named = self.scope.resolve(Some(&column.table), &column.name)?;
                    if named.is_none_or(|named| named.code != column.code) {
                        return Err(unsupported("* of such columns in a view"));
                    }
                    Some(column.table.as_str())
                }
            };
            if let Some(prefix) = prefix {
                shown.push_str(&quoted(prefix));
                shown.push('.');
            }
            shown.push_str(&name);
        }
        let location = star.wildcard_token.0.span.start;
        if let Some(noted) = &mut self.noted {
            noted.stars.insert(location, shown);
        }
        Ok(())
    }
}

/// The text of a view as it is bound, with the places of names.
pub(crate) fn bound_again(catalog: &Catalog, view: &View) -> Result<NewView> {
    let statement = parse(&view.text)?.pop().ok_or_else(|| damaged(view))?;
    let Tree::Query(query) = &statement.tree else { return Err(damaged(view)) };
    let (zone, public) = (zone_of(view)?, catalog.along_public());
    Binder::without_parameters(public, &statement.lines, &zone).new_view(query)
}

/// The error of a view whose text does not come to what the catalog has.
pub(crate) fn damaged(view: &View) -> Error {
    Error::corrupted(format!("view \"{}\" is damaged", view.name))
}

/// The name of a table or view.
pub(crate) fn name_of_relation(catalog: &Catalog, id: ObjectId) -> Option<Name> {
    let table = catalog.tables().find(|table| table.relation.id == id);
    let view = || catalog.views().find(|view| view.id == id);
    table.map(|table| table.relation.name.clone()).or_else(|| view().map(|view| view.name.clone()))
}

/// The text of a view with schemas before the names that are not found by themselves; `None` if
/// it is the text that is kept.
pub(crate) fn shown_text(catalog: &Catalog, view: &View) -> Option<String> {
    let bound = bound_again(catalog, view).ok()?;
    let plain = bound.places.iter().filter(|(_, place)| place.schema.is_none());
    let relations = plain.filter_map(|(at, place)| {
        let name = name_of_relation(catalog, place.relation)?;
        (!catalog.is_visible(&name)).then(|| (*at, catalog.shown_if(&name, false)))
    });
    let plain = bound.types.iter().filter(|(_, place)| place.schema.is_none());
    let types = plain.filter_map(|(at, place)| {
        let name = catalog.name_of_type(place.ty);
        (!catalog.is_visible_type(place.ty)).then(|| (*at, catalog.shown_if(&name, false)))
    });
    let words: Stars = relations.chain(types).collect();
    if words.is_empty() { None } else { with_words(&view.text, &words) }
}

/// Where a name begins, and its schema.
fn locations(name: &ObjectName) -> Option<(Location, Option<Location>)> {
    let mut parts = name.0.iter().rev().map(|part| part.as_ident());
    let own = parts.next()??.span.start;
    Some((own, parts.next().flatten().map(|schema| schema.span.start)))
}

/// The time zone of the literals in a view's text.
fn zone_of(view: &View) -> Result<Zone> {
    match view.zone_seconds {
        Some(0) => Ok(Zone::utc()),
        Some(seconds) => Zone::fixed(seconds)
            .ok_or_else(|| Error::corrupted(format!("view \"{}\" is damaged", view.name))),
        None => Zone::named(&view.zone),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn column_of(item: &Item) -> ViewColumn {
    let kind = item.bound.kind.unwrap_or(Kind::plain(Type::Text));
    ViewColumn { name: item.name.clone(), kind }
}
