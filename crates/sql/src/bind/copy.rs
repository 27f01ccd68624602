//! COPY.

use super::binder::{Binder, unsupported, written_name};
use super::change::default_of;
use super::copied::{CopiedTable, Copy, Direction};
use super::output::OutputColumn;
use super::written::WrittenTable;
use crate::catalog::Catalog;
use crate::copy::Form;
use crate::ir::{ColumnNumber, Expression, Insert, InsertRows, Op, Plan};
use sqlparser::ast::{CopySource, CopyTarget, Ident, ObjectName, Query, Statement as Tree};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use values::{Error, Result, SqlState, Type};

/// The query of the table's rows.
fn all_of(catalog: &Catalog, table: &CopiedTable) -> Result<Query> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> = table.columns().map(|column| quoted(&column.name)).collect();
    let name = catalog.shown_if(&table.relation.name, false);
    let text = format!("SELECT {} FROM {name}", columns.join(", "));
    let query = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_query());
    query.map(|query| *query).map_err(|_| unsupported("COPY of a table without columns"))
}

impl Binder<'_> {
    /// The plan, the columns of its answer, and how rows are written.
    pub(super) fn copy(&mut self, tree: &Tree) -> Result<(Plan, Vec<OutputColumn>, Copy)> {
        let Tree::Copy { source, to, target, options, legacy_options, payload } = tree else {
            return Err(unsupported("this form of COPY"));
        };
        if payload.as_ref().is_some_and(|payload| !payload.data.trim().is_empty()) {
            let message = "nothing can follow COPY in the same text";
            return Err(Error::unsupported(message, "Send each statement by itself."));
        }
        let direction = if *to { Direction::To } else { Direction::From };
        if !matches!(target, CopyTarget::Stdin | CopyTarget::Stdout) {
            let message = "COPY with files or programs of the server is not supported";
            let instead = "Use COPY ... FROM STDIN or TO STDOUT, or psql's \\copy.";
            return Err(Error::unsupported(message, instead));
        }
        let (plan, columns, table) = match source {
            CopySource::Table { table_name, columns } => {
                let table = self.copied(table_name, columns)?;
                let plan = match direction {
                    Direction::From => self.copy_from(table_name, &table)?,
                    Direction::To => self.copy_query(&all_of(self.catalog, &table)?)?.0,
                };
                let columns = table.columns().collect();
                (plan, columns, Some(table))
            }
            CopySource::Query(query) => {
                let (plan, columns) = self.copy_query(query)?;
                (plan, columns, None)
            }
        };
        let names: Vec<String> =
            columns.iter().map(|column: &OutputColumn| column.name.clone()).collect();
        let form = Form::of(options, legacy_options, &names)?;
        let output = match direction {
            Direction::From => Vec::new(),
            Direction::To => columns.clone(),
        };
        Ok((plan, output, Copy { direction, form, columns, table }))
    }

    fn copied(&mut self, name: &ObjectName, columns: &[Ident]) -> Result<CopiedTable> {
        // PostgreSQL says no place of what is wrong with these names.
        let placeless = |error: Error| Error::new(error.state(), error.message());
        self.catalog.relation(&written_name(name)?)?;
        let table = self.table(name).map_err(placeless)?;
        let table = WrittenTable::plain(table);
        let names: Vec<ObjectName> =
            columns.iter().map(|column| ObjectName::from(vec![column.clone()])).collect();
        let mut targets = self.targets(&table, &names).map_err(placeless)?;
        let generated = |target: &ColumnNumber| {
            table.table.relation.columns[usize::from(*target)].generated().is_some()
        };
        match targets.iter().find(|target| generated(target)) {
            Some(target) if !names.is_empty() => {
                let name = &table.table.relation.columns[usize::from(*target)].name;
                let message = format!("column \"{name}\" is a generated column");
                return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
                    .with_detail("Generated columns cannot be used in COPY."));
            }
            _ => targets.retain(|target| !generated(target)),
        }
        Ok(CopiedTable { relation: table.table.relation.clone(), targets })
    }

    fn copy_from(&mut self, name: &ObjectName, copied: &CopiedTable) -> Result<Plan> {
        let table = self.table(name)?;
        let all = (0..copied.relation.columns.len()).map(ColumnNumber::at);
        let mut row: Vec<Expression> = all.map(|column| default_of(&table, column)).collect();
        for (at, target) in copied.targets.iter().enumerate() {
            row[usize::from(*target)] = Expression::of(Op::Column(ColumnNumber::at(at)));
        }
        self.parameters = vec![Some(Type::Bytea)];
        Ok(Plan::Insert(Insert {
            relation: copied.relation.clone(),
            rows: InsertRows::Copied(copied.targets.clone(), row),
            conflict: None,
            returning: Vec::new(),
        }))
    }

    fn copy_query(&mut self, query: &Query) -> Result<(Plan, Vec<OutputColumn>)> {
        let (plan, columns) = self.whole_query(query)?;
        if !self.parameters.is_empty() {
            let message = "there is no parameter $1";
            return Err(Error::new(SqlState::UNDEFINED_PARAMETER, message));
        }
        Ok((plan, columns))
    }
}
