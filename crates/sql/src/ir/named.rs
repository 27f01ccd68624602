//! The tables that a plan names.

use super::change::{Insert, InsertRows};
use super::composed::{Input, Main, Query};
use super::join::ItemRows;
use super::number::ObjectId;
use super::plan::Plan;
use super::query::Source;
use std::collections::BTreeSet;

type Ids = BTreeSet<ObjectId>;

impl Plan {
    /// The tables that it reads or writes, by their ids.
    pub fn tables(&self) -> BTreeSet<ObjectId> {
        let mut ids = self.writes();
        self.add_tables(&mut ids);
        ids
    }

    /// Whether it reads or writes rows of a temporary table.
    pub fn reads_temporary(&self) -> bool {
        self.tables().into_iter().any(ObjectId::is_temporary)
    }

    fn add_tables(&self, ids: &mut Ids) {
        match self {
            Plan::Select(plan) => of_source(&plan.source, ids),
            Plan::Insert(plan) => of_insert(plan, ids),
            Plan::Update(plan) => of_source(&plan.source, ids),
            Plan::Delete(plan) => of_source(&plan.source, ids),
            Plan::Composed(plan) => {
                of_queries(&plan.queries, ids);
                of_main(&plan.main, ids);
            }
            Plan::Guarded(guarded) => {
                ids.extend(guarded.relations.iter().map(|relation| relation.id));
                guarded.plan.add_tables(ids);
            }
            Plan::Writing(plan) | Plan::Merge(plan) => {
                of_queries(&plan.queries, ids);
                for part in &plan.parts {
                    ids.extend(part.relations.iter().map(|relation| relation.id));
                    of_main(&part.main, ids);
                }
            }
        }
    }
}

fn of_source(source: &Source, ids: &mut Ids) {
    ids.extend(source.relation.as_ref().map(|relation| relation.id));
}

fn of_insert(insert: &Insert, ids: &mut Ids) {
    ids.insert(insert.relation.id);
    if let InsertRows::Queried(query, _) = &insert.rows {
        of_source(&query.source, ids);
    }
}

fn of_main(main: &Main, ids: &mut Ids) {
    match main {
        Main::Query(_) => {}
        Main::Insert(plan) => of_insert(plan, ids),
        Main::Update(plan) => of_source(&plan.source, ids),
        Main::Delete(plan) => of_source(&plan.source, ids),
        Main::Change(plan) => {
            ids.insert(plan.relation.id);
        }
    }
}

fn of_queries(queries: &[Query], ids: &mut Ids) {
    for query in queries {
        of_source(&query.select.source, ids);
        let Input::Joins(joins) = &query.input else { continue };
        for item in &joins.items {
            if let ItemRows::Table(source) = &item.rows {
                of_source(source, ids);
            }
        }
    }
}
