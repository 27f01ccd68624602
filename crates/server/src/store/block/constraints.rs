//! SET CONSTRAINTS in a block, and the check of deferred constraints at its COMMIT.

use super::super::pending::Watch;
use super::super::pipeline::Pipeline;
use super::super::rows::{ReadRows, Reads, Steps};
use super::super::shared::Shared;
use super::form::Constraints;
use super::state::{BlockState, comes_again};
use nvcaracal::Snapshot;
use sql::ir::Name;
use sql::parse::SetConstraints;
use sql::run::{Buffer, Context, Rows, check_constraints};
use values::{Error, Result, SqlState};

impl Constraints {
    /// Runs SET CONSTRAINTS on a block's writes over these rows. If a constraint does not hold,
    /// nothing changes.
    pub(super) fn run(
        &self,
        buffer: &mut Buffer,
        rows: &mut dyn Rows,
        context: &Context,
    ) -> Result<()> {
        let mark = buffer.savepoint();
        buffer.set_constraints(&self.names, self.is_deferred);
        let result = check_constraints(buffer, rows, context, false);
        if result.is_err() {
            buffer.roll_back(mark);
        }
        result
    }
}

impl Pipeline {
    /// Runs SET CONSTRAINTS in a block.
    pub(super) async fn set_constraints(
        &self,
        block: &mut BlockState,
        set: SetConstraints,
        watch: &Watch,
    ) -> Result<()> {
        let shared = &self.shared;
        self.all_answered().await;
        let (_, snapshot) = self.catalog_and_snapshot(block, watch).await?;
        block.set_constraints(shared, set, &snapshot, watch)
    }
}

impl BlockState {
    fn set_constraints(
        &mut self,
        shared: &Shared,
        set: SetConstraints,
        snapshot: &Snapshot,
        watch: &Watch,
    ) -> Result<()> {
        let SetConstraints { names, is_deferred } = set;
        let names = names.into_iter().map(|name| name.own).collect();
        let mut constraints = Constraints { names, is_deferred, holds: true };
        let steps_max = self.steps_left(&shared.options);
        let steps = Steps::watched(steps_max, &shared.pool, watch.clone());
        let mut rows = ReadRows::new(&shared.spaces, Reads::Snapshot(snapshot), steps);
        let context = self.context_of(Vec::new(), &values::Zone::utc(), &shared.options);
        let result = constraints.run(&mut self.buffer, &mut rows, &context);
        if rows.steps.is_ended() {
            // It says nothing about rows.
            return result;
        }
        self.count_work(rows.steps.done());
        if let Err(error) = &result
            && (rows.steps.is_over() || !comes_again(error))
        {
            self.bar_commit(error);
        }
        constraints.holds = result.is_ok();
        self.record_constraints(constraints);
        result
    }

    /// Refuses a definition that changes tables of which checks wait; else they may change.
    pub(super) fn check_waiting(
        buffer: &mut Buffer,
        next: &sql::catalog::Catalog,
        tag: &str,
    ) -> Result<()> {
        let is_there = |name: &str, child: &Name| {
            next.foreign_keys().any(|key| key.name == name && key.child == *child)
        };
        for (name, tables) in buffer.waiting() {
            let changes = tables.iter().find(|relation| {
                next.table(&relation.name).is_none_or(|table| table.relation != **relation)
            });
            let changed = changes.or_else(|| {
                let child = &tables[0];
                (!is_there(name, &child.name)).then_some(child)
            });
            if let Some(relation) = changed {
                let table = &relation.name;
                let message =
                    format!("cannot {tag} \"{table}\" because it has pending trigger events");
                return Err(Error::new(SqlState::OBJECT_IN_USE, message));
            }
        }
        buffer.tables_change();
        Ok(())
    }
}
