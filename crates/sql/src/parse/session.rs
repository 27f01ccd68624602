//! Queries about the session, which drivers ask at first and which no table answers.

use super::configs::{ConfigValue, SetConfig};
use super::statement::Statement;
use crate::bind::{check_call, check_select, has_parts, is_only_body, name_of};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, ObjectNamePart, Query,
    SelectItem, SetExpr, Statement as Tree, Value,
};

/// A column of a query about the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionColumn {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub function: SessionFunction,
}

/// A function of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFunction {
    /// `version()`
    Version,
    /// `current_database()`, `current_catalog`
    Database,
    /// `current_user`, `session_user`, `user`, `current_role`
    User,
    /// `pg_backend_pid()`
    ProcessId,
    /// `pg_is_in_recovery()`
    IsInRecovery,
    /// `current_setting(name)`
    Setting(String),
    /// `set_config`
    Set(SetConfig),
}

impl SessionColumn {
    /// How many parameters these columns have.
    pub fn parameters(columns: &[SessionColumn]) -> usize {
        let number = |column: &SessionColumn| match &column.function {
            SessionFunction::Set(SetConfig { value: ConfigValue::Parameter(at), .. }) => at + 1,
            _ => 0,
        };
        columns.iter().map(number).max().unwrap_or_default()
    }
}

impl Statement {
    /// The columns, if it is a query of functions of the session and of nothing else.
    pub fn session_columns(&self) -> Option<Vec<SessionColumn>> {
        let Tree::Query(query) = &self.tree else { return None };
        let SetExpr::Select(select) = &*query.body else { return None };
        let is_grouped = !matches!(&select.group_by,
            GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty());
        let is_plain = select.from.is_empty()
            && select.selection.is_none()
            && select.having.is_none()
            && select.distinct.is_none()
            && select.named_window.is_empty();
        let is_sound = is_only_body(query) && check_select(select).is_ok();
        if !is_plain || !is_sound || is_grouped || select.projection.is_empty() {
            return None;
        }
        select.projection.iter().map(column).collect()
    }

    /// Whether it is a query, which may write only through functions.
    pub fn is_query(&self) -> bool {
        let writes = |body: &SetExpr| {
            matches!(body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_))
        };
        let is_query = |query: &Query| !writes(&query.body) && !has_parts(query.with.as_ref());
        let is_of_rows = matches!(&self.tree, Tree::Query(query) if is_query(query));
        is_of_rows && !self.sets_value() && !self.is_notify()
    }
}

fn column(item: &SelectItem) -> Option<SessionColumn> {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(name_of(alias))),
        _ => return None,
    };
    let (name, function) = function(expr)?;
    Some(SessionColumn { name: alias.unwrap_or(name), function })
}

fn function(expr: &Expr) -> Option<(String, SessionFunction)> {
    let Expr::Function(call) = expr else { return None };
    if check_call(call).is_err() || call.filter.is_some() || call.over.is_some() {
        return None;
    }
    let parts = call.name.0.iter().map(|part| match part {
        ObjectNamePart::Identifier(name) => Some(name_of(name)),
        ObjectNamePart::Function(_) => None,
    });
    let parts = parts.collect::<Option<Vec<_>>>()?;
    let name = match &parts[..] {
        [schema, name] if schema == "pg_catalog" => name.clone(),
        [name] => name.clone(),
        _ => return None,
    };
    if let Some(config) = (name == "set_config").then(|| config_of(&call.args)) {
        return config.map(|config| (name, SessionFunction::Set(config)));
    }
    let arguments = arguments(&call.args)?;
    let arguments: Vec<Option<&str>> = arguments.iter().map(Option::as_deref).collect();
    let function = match (name.as_str(), &arguments[..]) {
        ("version", []) => SessionFunction::Version,
        ("current_database" | "current_catalog", []) => SessionFunction::Database,
        ("current_user" | "session_user" | "user" | "current_role", []) => SessionFunction::User,
        ("pg_backend_pid", []) => SessionFunction::ProcessId,
        ("pg_is_in_recovery", []) => SessionFunction::IsInRecovery,
        ("current_setting", [Some(name)]) => SessionFunction::Setting((*name).to_owned()),
        _ => return None,
    };
    Some((name, function))
}

/// What `set_config` is called with: constants, and perhaps a parameter as the value.
fn config_of(written: &FunctionArguments) -> Option<SetConfig> {
    let FunctionArguments::List(list) = written else { return None };
    let mut all = written.clone();
    let mut parameter = None;
    if let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), _] = &list.args[..]
        && let Some(number) = parameter_number(value)
        && let FunctionArguments::List(list) = &mut all
    {
        parameter = Some(number);
        list.args.remove(1);
    }
    let arguments = arguments(&all)?;
    let (name, value, is_local) = match (&arguments[..], parameter) {
        ([Some(name), Some(is_local)], Some(at)) => (name, ConfigValue::Parameter(at), is_local),
        ([Some(name), value, Some(is_local)], None) => {
            (name, ConfigValue::Constant(value.clone()), is_local)
        }
        _ => return None,
    };
    let is_local = match is_local.as_str() {
        "true" => true,
        "false" => false,
        _ => return None,
    };
    Some(SetConfig { name: name.clone(), value, is_local, if_exists: false })
}

/// The number of a parameter, from 0, perhaps with a cast to text.
fn parameter_number(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => {
                name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
            }
            _ => None,
        },
        Expr::Cast { expr, .. } => parameter_number(expr),
        _ => None,
    }
}

/// The constants that a function is called with; `None` of NULL.
fn arguments(written: &FunctionArguments) -> Option<Vec<Option<String>>> {
    let list = match written {
        FunctionArguments::None => return Some(Vec::new()),
        FunctionArguments::List(list)
            if list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
        {
            list
        }
        FunctionArguments::List(_) => return None,
        FunctionArguments::Subquery(_) => return None,
    };
    let constant = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match &value.value {
            Value::SingleQuotedString(text) => Some(Some(text.clone())),
            Value::Boolean(value) => Some(Some(value.to_string())),
            Value::Null => Some(None),
            _ => None,
        },
        _ => None,
    };
    list.args.iter().map(constant).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn asked(text: &str) -> Option<Vec<(String, SessionFunction)>> {
        let columns = parse(text).unwrap()[0].session_columns()?;
        Some(columns.into_iter().map(|column| (column.name, column.function)).collect())
    }

    #[test]
    fn queries_about_the_session_are_told_apart() {
        let one = |name: &str, function| Some(vec![(name.to_owned(), function)]);
        assert_eq!(asked("SELECT version()"), one("version", SessionFunction::Version));
        assert_eq!(asked("select pg_catalog.version()"), one("version", SessionFunction::Version));
        assert_eq!(asked("SELECT current_user AS me"), one("me", SessionFunction::User));
        assert_eq!(
            asked("SELECT current_setting('x')"),
            one("current_setting", SessionFunction::Setting("x".to_owned()))
        );
        let set = |value: Option<&str>| {
            let value = ConfigValue::Constant(value.map(str::to_owned));
            SessionFunction::Set(SetConfig {
                name: "x".to_owned(),
                value,
                is_local: true,
                if_exists: false,
            })
        };
        assert_eq!(asked("SELECT set_config('x', 'y', true)"), one("set_config", set(Some("y"))));
        assert_eq!(asked("SELECT set_config('x', NULL, true)"), one("set_config", set(None)));
        assert_eq!(asked("SELECT set_config(NULL, 'y', true)"), None);
        let both = asked("SELECT current_user, current_database()").unwrap();
        assert_eq!(both.len(), 2);
        for other in [
            "SELECT 1",
            "SELECT version(), 1",
            "SELECT version() FROM t",
            "SELECT now()",
            "SELECT version() FILTER (WHERE false)",
            "SELECT version() OVER ()",
            "SELECT current_setting(DISTINCT 'x')",
            "SELECT version() GROUP BY 1",
            "SELECT version() FETCH FIRST 0 ROWS ONLY",
        ] {
            assert_eq!(asked(other), None, "{other}");
        }
        assert!(parse("SELECT 1").unwrap()[0].is_query());
        assert!(!parse("DELETE FROM a").unwrap()[0].is_query());
    }
}
