//! Generated columns.

use super::draft::{Draft, kept};
use crate::ir::{ColumnForm, ColumnNumber, Expression, Op, Relation};
use values::{Error, Result, SqlState};

impl Draft<'_> {
    /// Binds the expressions of generated columns, now that all columns are there.
    pub(super) fn bind_generated(&mut self) -> Result<()> {
        let later = std::mem::take(&mut self.later_generated);
        let own = self.table.relation.name.clone();
        for (name, expr) in later {
            let column = self.column(&name)?;
            let at = usize::from(column);
            self.refuse_both(&name, at)?;
            let kind = self.table.relation.columns[at].kind;
            let mut binder = self.binder();
            binder.over(&own, &self.table.relation);
            let bound = binder.generation(&expr, kind)?;
            let value = kept(bound.expression(), "a generated column")?;
            if value.takes_number() || value.needs_seed() {
                return Err(not_immutable());
            }
            if !binder.is_lasting(&value, &self.table.relation) {
                return Err(not_immutable());
            }
            refuse_generated(&self.table.relation, &value, column)?;
            self.table.relation.columns[at].form = ColumnForm::Generated(Box::new(value));
            self.table.columns[at].default_text = Some(expr.to_string());
        }
        Ok(())
    }

    /// Refuses a column that has a default or an identity, too.
    fn refuse_both(&self, name: &str, at: usize) -> Result<()> {
        let info = &self.table.columns[at];
        let what = match (info.identity, &info.default) {
            (Some(_), _) => "identity",
            (None, Some(_)) => "default",
            (None, None) if self.table.relation.columns[at].generated().is_some() => {
                let message = "multiple generation clauses specified for column";
                let table = &self.table.relation.name;
                let message = format!("{message} \"{name}\" of table \"{table}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            (None, None) => return Ok(()),
        };
        let table = &self.table.relation.name;
        let message = format!(
            "both {what} and generation expression specified for column \"{name}\" of table \
             \"{table}\""
        );
        Err(Error::new(SqlState::SYNTAX_ERROR, message))
    }
}

fn not_immutable() -> Error {
    let message = "generation expression is not immutable";
    Error::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

/// Refuses an expression over a generated column; they are computed in no order.
fn refuse_generated(relation: &Relation, value: &Expression, own: ColumnNumber) -> Result<()> {
    for op in &value.code {
        let Op::Column(column) = op else { continue };
        let used = &relation.columns[usize::from(*column)];
        if *column == own || used.generated().is_some() {
            let name = &used.name;
            let message =
                format!("cannot use generated column \"{name}\" in column generation expression");
            return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message)
                .with_detail("A generated column cannot reference another generated column."));
        }
    }
    Ok(())
}
