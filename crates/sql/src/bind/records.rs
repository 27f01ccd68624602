//! Records of JSON in FROM: `json_to_recordset` and its kin, with a list of columns and types.

use super::binder::name_of;
use super::copies::check_copies;
use sqlparser::ast::{
    DataType, Expr, FunctionArg, FunctionArgExpr, ObjectName, Query, SetExpr, Statement,
    TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use values::{Error, Result, SqlState};

/// The records of JSON of a function in FROM.
pub(super) struct Records {
    /// The query that makes them.
    pub(super) query: Query,
    /// Their name, and those of their columns.
    pub(super) alias: TableAlias,
}

fn syntax(message: &str) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

/// The records of a function that an item of FROM is; `None` of another one.
pub(super) fn records_of(factor: &TableFactor) -> Result<Option<Records>> {
    let (name, alias, arguments) = match factor {
        TableFactor::Table { name, alias, args: Some(TableFunctionArgs { args, .. }), .. } => {
            (name, alias, args)
        }
        TableFactor::Function { name, alias, args, .. } => (name, alias, args),
        _ => return Ok(None),
    };
    let is_set = match own_name(name).as_str() {
        "json_to_recordset" | "jsonb_to_recordset" => true,
        "json_to_record" | "jsonb_to_record" => false,
        _ => return Ok(None),
    };
    let has_types = |alias: &&TableAlias| {
        !alias.columns.is_empty() && alias.columns.iter().all(|column| column.data_type.is_some())
    };
    let Some(alias) = alias.as_ref().filter(has_types) else {
        let message = "a column definition list is required for functions returning \"record\"";
        return Err(syntax(message));
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = &arguments[..] else {
        let message = format!("function {name} has other arguments");
        return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
    };
    check_copies(argument, 1)?;
    let query = query_of(argument, &alias.columns, is_set)?;
    let mut alias = alias.clone();
    for column in &mut alias.columns {
        column.data_type = None;
    }
    Ok(Some(Records { query, alias }))
}

fn own_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(name_of).unwrap_or_default()
}

/// The query of the records: its text has NULL for the argument, which is put in its place.
fn query_of(argument: &Expr, columns: &[TableAliasColumnDef], is_set: bool) -> Result<Query> {
    let columns = columns.iter().map(column).collect::<Result<Vec<_>>>()?;
    let rows = match is_set {
        true => "jsonb_array_elements(CAST(NULL AS jsonb)) AS q (v)",
        false => "(SELECT CAST(NULL AS jsonb) AS v) AS q",
    };
    let text = format!("SELECT {} FROM {rows}", columns.join(", "));
    let bug = || Error::new(SqlState::INTERNAL, "a query of records is none");
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, &text).map_err(|_| bug())?.pop();
    let Some(Statement::Query(mut query)) = parsed else { return Err(bug()) };
    let place = argument_of(&mut query).ok_or_else(bug)?;
    *place = argument.clone();
    Ok(*query)
}

/// The text of a column: of JSON as it is, of another type by its text.
fn column(column: &TableAliasColumnDef) -> Result<String> {
    let key = name_of(&column.name).replace('\'', "''");
    match &column.data_type {
        Some(DataType::Array(_)) => Err(Error::unsupported(
            "a column of arrays of a record of JSON",
            "Make it of jsonb, and read it with jsonb_array_elements_text.",
        )),
        Some(ty @ (DataType::JSON | DataType::JSONB)) => {
            Ok(format!("CAST(q.v -> '{key}' AS {ty})"))
        }
        Some(ty) => Ok(format!("CAST(q.v ->> '{key}' AS {ty})")),
        None => Err(syntax("a column of a record has no type")),
    }
}

/// The NULL that stands for the argument.
fn argument_of(query: &mut Query) -> Option<&mut Expr> {
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let cast = match &mut select.from.first_mut()?.relation {
        TableFactor::Table { args: Some(TableFunctionArgs { args, .. }), .. }
        | TableFactor::Function { args, .. } => match args.first_mut()? {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(cast)) => cast,
            _ => return None,
        },
        TableFactor::Derived { subquery, .. } => {
            let SetExpr::Select(inner) = &mut *subquery.body else { return None };
            match inner.projection.first_mut()? {
                sqlparser::ast::SelectItem::ExprWithAlias { expr, .. } => expr,
                _ => return None,
            }
        }
        _ => return None,
    };
    match cast {
        Expr::Cast { expr, .. } => Some(expr),
        _ => None,
    }
}
