//! Which foreign keys a statement that writes may touch.

use crate::catalog::{Catalog, ForeignKey as Known, Table};
use crate::ir::{
    Action, Assignment, ColumnNumber, Expression, ForeignKey, Guarded, Index, Insert, KeyColumn,
    Main, Part, Plan, Referential, Relation, Value,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::{Datum, Error, Result};

/// What a statement does with the rows of its table.
#[derive(Default)]
struct Touch {
    inserts: bool,
    deletes: bool,
    /// The columns that it assigns to.
    updates: BTreeSet<ColumnNumber>,
}

impl Touch {
    fn of(plan: &Plan) -> Touch {
        match plan {
            Plan::Insert(insert) => Touch::of_insert(insert),
            Plan::Update(update) => Touch::of_assignments(&update.assignments),
            Plan::Delete(_) => Touch::of_removal(),
            Plan::Composed(plan) => Touch::of_main(&plan.main),
            Plan::Select(_) | Plan::Guarded(_) | Plan::Writing(_) | Plan::Merge(_) => {
                Touch::default()
            }
        }
    }

    fn of_main(main: &Main) -> Touch {
        match main {
            Main::Query(_) => Touch::default(),
            Main::Insert(insert) => Touch::of_insert(insert),
            Main::Update(update) => Touch::of_assignments(&update.assignments),
            Main::Delete(_) => Touch::of_removal(),
            Main::Change(change) => match &change.assignments {
                Some(assignments) => Touch::of_assignments(assignments),
                None => Touch::of_removal(),
            },
        }
    }

    fn of_insert(insert: &Insert) -> Touch {
        let touch = match insert.conflict.as_ref().map(|conflict| &conflict.action) {
            Some(Action::Update { assignments, .. }) => Touch::of_assignments(assignments),
            _ => Touch::default(),
        };
        Touch { inserts: true, ..touch }
    }

    fn of_assignments(list: &[Assignment]) -> Touch {
        Touch { updates: list.iter().map(|each| each.column).collect(), ..Touch::default() }
    }

    fn of_removal() -> Touch {
        Touch { deletes: true, ..Touch::default() }
    }

    /// Whether rows may refer to others behind it.
    fn moves_children(&self, key: &Known) -> bool {
        self.inserts || key.columns.iter().any(|column| self.updates.contains(column))
    }

    /// Whether rows may be referred to that are no more.
    fn moves_parents(&self, key: &Known) -> bool {
        self.deletes || key.referred.iter().any(|column| self.updates.contains(column))
    }
}

/// The plan with the foreign keys that it may touch; as it is if there are none.
pub(super) fn guarded(catalog: &Catalog, plan: Plan) -> Result<Plan> {
    let Some(relation) = plan.written() else { return Ok(plan) };
    let Guard { relations, keys, .. } = touched(catalog, relation, &Touch::of(&plan))?;
    if keys.is_empty() {
        return Ok(plan);
    }
    Ok(Plan::Guarded(Box::new(Guarded { plan, relations, keys })))
}

/// A part of a statement with the foreign keys that it may touch.
pub(super) fn part(catalog: &Catalog, main: Main) -> Result<Part> {
    let guard = match main.written() {
        Some(relation) => Some(touched(catalog, relation, &Touch::of_main(&main))?),
        None => None,
    };
    let guard = guard.filter(|guard| !guard.keys.is_empty());
    let (relations, keys) = guard.map(|guard| (guard.relations, guard.keys)).unwrap_or_default();
    Ok(Part { main, relations, keys })
}

/// The foreign keys that a write of a table may touch; the table is the first of theirs.
fn touched<'a>(catalog: &'a Catalog, relation: &Relation, touch: &Touch) -> Result<Guard<'a>> {
    let touch = &Touch { updates: relation.changed_by(&touch.updates), ..*touch };
    let name = &relation.name;
    let mut guard = Guard { catalog, relations: vec![relation.clone()], keys: Vec::new() };
    let mut cascades = Vec::new();
    for key in catalog.foreign_keys() {
        let moves_parents = key.parent == *name && touch.moves_parents(key);
        if (key.child == *name && touch.moves_children(key)) || moves_parents {
            guard.add(key)?;
        }
        if moves_parents && (key.on_delete.writes() || key.on_update.writes()) {
            cascades.push(key.child.clone());
        }
    }
    // Rows that follow are parents and children themselves.
    let mut seen = BTreeSet::new();
    while let Some(table) = cascades.pop() {
        if !seen.insert(table.clone()) {
            continue;
        }
        for key in catalog.foreign_keys() {
            if key.child == table || key.parent == table {
                guard.add(key)?;
            }
            if key.parent == table && (key.on_delete.writes() || key.on_update.writes()) {
                cascades.push(key.child.clone());
            }
        }
    }
    Ok(guard)
}

/// Foreign keys, and the tables that they are between.
pub(crate) fn keys_of(
    catalog: &Catalog,
    known: &[Known],
) -> Result<(Vec<Relation>, Vec<ForeignKey>)> {
    let mut guard = Guard { catalog, relations: Vec::new(), keys: Vec::new() };
    known.iter().try_for_each(|key| guard.add(key))?;
    Ok((guard.relations, guard.keys))
}

struct Guard<'a> {
    catalog: &'a Catalog,
    relations: Vec<Relation>,
    keys: Vec<ForeignKey>,
}

fn missing(key: &Known) -> Error {
    Error::corrupted(format!("foreign key \"{}\" is damaged", key.name))
}

impl Guard<'_> {
    fn add(&mut self, key: &Known) -> Result<()> {
        if self.keys.iter().any(|own| own.name == key.name && self.is_child(own, key)) {
            return Ok(());
        }
        let child = self.catalog.table(&key.child).ok_or_else(|| missing(key))?;
        let parent = self.catalog.table(&key.parent).ok_or_else(|| missing(key))?;
        let own = ForeignKey {
            name: key.name.clone(),
            child: self.place(child),
            parent: self.place(parent),
            columns: key.columns.clone(),
            referred: key.referred.clone(),
            parent_index: unique_index(&parent.relation, &key.referred)
                .ok_or_else(|| missing(key))?,
            child_index: leading_index(&child.relation, &key.columns)
                .ok_or_else(|| missing(key))?,
            on_delete: key.on_delete,
            on_update: key.on_update,
            defaults: defaults(child, key),
            deferral: key.deferral,
        };
        self.keys.push(own);
        Ok(())
    }

    fn is_child(&self, own: &ForeignKey, key: &Known) -> bool {
        self.relations[usize::from(own.child)].name == key.child
    }

    fn place(&mut self, table: &Arc<Table>) -> u16 {
        let named = |relation: &Relation| relation.id == table.relation.id;
        let place = self.relations.iter().position(named).unwrap_or_else(|| {
            self.relations.push(table.relation.clone());
            self.relations.len() - 1
        });
        u16::try_from(place).expect("definitions keep tables with keys between them few")
    }
}

/// What SET DEFAULT sets.
fn defaults(child: &Table, key: &Known) -> Vec<Expression> {
    let sets = [key.on_delete, key.on_update].contains(&Referential::SetDefault);
    let default = |column: &ColumnNumber| {
        let stated = child.columns[usize::from(*column)].default.clone().filter(|_| sets);
        stated.unwrap_or_else(|| Expression::constant(Value(Datum::Null)))
    };
    key.columns.iter().map(default).collect()
}

fn is_set(key: &[KeyColumn], columns: &[ColumnNumber]) -> bool {
    key.iter().all(|each| columns.contains(&each.column))
}

/// The unique index of just these columns, or the primary key (`None`).
pub(crate) fn unique_index(relation: &Relation, columns: &[ColumnNumber]) -> Option<Option<u16>> {
    let fits = |key: &[KeyColumn]| key.len() == columns.len() && is_set(key, columns);
    if fits(&relation.primary) {
        return Some(None);
    }
    let is_whole = |index: &Index| index.is_unique() && index.special().is_none();
    let fits = |index: &Index| is_whole(index) && fits(&index.columns);
    relation.indexes.iter().position(fits).map(|at| Some(at as u16))
}

/// The index that begins with these columns, or the primary key (`None`).
pub(crate) fn leading_index(relation: &Relation, columns: &[ColumnNumber]) -> Option<Option<u16>> {
    let fits =
        |key: &[KeyColumn]| key.len() >= columns.len() && is_set(&key[..columns.len()], columns);
    if fits(&relation.primary) {
        return Some(None);
    }
    let fits = |index: &Index| index.special().is_none() && fits(&index.columns);
    relation.indexes.iter().position(fits).map(|at| Some(at as u16))
}
