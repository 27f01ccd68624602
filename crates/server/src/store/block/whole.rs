//! Queries of tables together with the system catalog, whose COMMIT cannot run them again: a call
//! knows no catalog. The block commits on the version of the catalog that they read or not at all,
//! and instead of the answer the whole content of their tables is compared.

use super::super::pending::Watch;
use super::super::pipeline::Pipeline;
use super::super::rows::Reads;
use super::super::statement::{Environment, Planned, Statement};
use super::operation::Run;
use super::reads::{Below, Tried};
use super::state::BlockState;
use nvcaracal::Snapshot;
use sql::catalog::Catalog;
use std::sync::Arc;
use values::{Result, Zone};

impl BlockState {
    /// Whether a statement reads tables together with temporary ones, the system catalog or the
    /// session, of which a call knows nothing, and what it reads is compared at COMMIT.
    pub(super) fn reads_beside_tables(&self, statement: &Statement) -> bool {
        let is_of_tables = statement.planned.as_ref().is_some_and(Planned::needs_rows);
        let is_compared = self.is_given(statement);
        statement.is_of_session() && is_of_tables && !self.only_reads() && !is_compared
    }

    /// Whether it reads the system catalog or the session so, whose values stand in its plan then.
    pub(super) fn reads_system_beside_tables(&self, statement: &Statement) -> bool {
        statement.needs_system() && self.reads_beside_tables(statement)
    }
}

impl Pipeline {
    /// Queries of the tables of a statement that reads the system catalog, too; none if it does not
    /// or if nothing is compared.
    pub(super) async fn queries_of_tables(
        &self,
        block: &BlockState,
        catalog: &Arc<Catalog>,
        statement: &Statement,
        run: &Run,
    ) -> Result<Vec<Run>> {
        if !block.reads_beside_tables(statement) {
            return Ok(Vec::new());
        }
        let planned = statement.planned.as_ref().expect("it is no definition");
        let ids = planned.plan.tables();
        let tables = catalog.tables().filter(|table| ids.contains(&table.relation.id));
        let mut runs = Vec::new();
        for table in tables {
            let text = format!("SELECT * FROM {}", catalog.shown_if(&table.relation.name, false));
            let parsed = self.shared.parse(&text).await?.remove(0);
            let catalog = Arc::clone(catalog);
            let query =
                self.shared.plan_for(catalog, &parsed, &[], &Environment::default()).await?;
            runs.push(Run::new(query, Vec::new(), Zone::utc(), Arc::clone(&run.session), None));
        }
        Ok(runs)
    }

    /// Reads whole tables at the snapshot of a statement, so that COMMIT compares them.
    pub(super) fn read_whole(
        &self,
        block: &mut BlockState,
        queries: &[Run],
        snapshot: Option<&Snapshot>,
        watch: &Watch,
    ) -> Result<()> {
        for query in queries {
            let reads = Reads::of(snapshot);
            let below = Below { reads, gets_max: None, watch: Some(watch.clone()), since: 0 };
            match block.attempt(&self.shared, &query.statement, query, below) {
                Tried::Done(result) => result.map(drop)?,
                _ => unreachable!("a snapshot has everything at once, and it claims nothing"),
            }
        }
        Ok(())
    }
}
