//! Views: their text is bound where they are named, and what it names is noted when they are made.

use super::binder::{Binder, unsupported};
use super::items::{Bounded, Item, Untyped};
use super::scope::{NamedPlace, Noted, Origin, Resolved};
use crate::catalog::{Used, View, ViewColumn};
use crate::ir::{Kind, ObjectId};
use crate::parse::{Stars, parse};
use sqlparser::ast::{ObjectName, Query, Statement as Tree, WildcardAdditionalOptions};
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
        Ok(NewView { columns, stars: noted.stars, uses, places: noted.places })
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
        self.view_depth += 1;
        let bound = self.query(query, Untyped::Text);
        self.view_depth -= 1;
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
        let own = name.0.last().and_then(|part| part.as_ident());
        if let (Some(noted), Some(own)) = (&mut self.noted, own) {
            noted.places.insert(own.span.start, NamedPlace { relation, has_alias });
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

/// The time zone of the literals in a view's text.
pub(crate) fn zone_of(view: &View) -> Result<Zone> {
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
