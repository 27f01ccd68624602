//! `SELECT setval(...)`: it says how a sequence goes on, as ALTER SEQUENCE does, and its arguments
//! may be of tables.

use super::statement::Statement;
use crate::bind::name_of;
use sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart,
    SelectItem, SetExpr, Statement as Tree, Value,
};

/// The arguments of the one function `setval` of a query, and the name of its column.
fn arguments(item: &SelectItem) -> Option<(Vec<&Expr>, Option<String>)> {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(name_of(alias))),
        _ => return None,
    };
    let Expr::Function(call) = expr else { return None };
    let parts = call.name.0.iter().map(|part| match part {
        ObjectNamePart::Identifier(name) => name_of(name),
        ObjectNamePart::Function(_) => String::new(),
    });
    let name = parts.collect::<Vec<_>>().join(".");
    let FunctionArguments::List(list) = &call.args else { return None };
    let is_plain = call.filter.is_none() && call.over.is_none() && list.clauses.is_empty();
    if !matches!(name.as_str(), "setval" | "pg_catalog.setval") || !is_plain {
        return None;
    }
    let argument = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    let all = list.args.iter().map(argument).collect::<Option<Vec<_>>>()?;
    matches!(all.len(), 2 | 3).then_some((all, alias))
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    let (kind, expr) = (CastKind::DoubleColon, Box::new(expr));
    Expr::Cast { kind, expr, data_type, format: None }
}

impl Statement {
    /// The call of `setval` that is the only column of a query.
    fn set_value(&self) -> Option<(Vec<&Expr>, Option<String>)> {
        let Tree::Query(query) = &self.tree else { return None };
        let SetExpr::Select(select) = &*query.body else { return None };
        let [item] = &select.projection[..] else { return None };
        arguments(item)
    }

    /// Whether it says how a sequence goes on.
    pub(crate) fn sets_value(&self) -> bool {
        self.declared().is_none() && self.set_value().is_some()
    }

    /// The query of the arguments of `setval`: a name, a number, and whether the number was given;
    /// and the name of the column that it has itself.
    pub(crate) fn value_query(&self) -> Option<(Statement, String)> {
        let (arguments, alias) = self.set_value()?;
        let mut all: Vec<Expr> = arguments.into_iter().cloned().collect();
        if all.len() == 2 {
            all.push(Expr::Value(Value::Boolean(true).into()));
        }
        let types = [DataType::Text, DataType::BigInt(None), DataType::Boolean];
        if matches!(&all[0], Expr::Value(value) if value.value.clone().into_string().is_some()) {
            // A name that there is not is found where it stands.
            all[0] = cast(all[0].clone(), DataType::Regclass);
        }
        let item = |(expr, data_type)| SelectItem::UnnamedExpr(cast(expr, data_type));
        let mut next = self.clone();
        let Tree::Query(query) = &mut next.tree else { return None };
        let SetExpr::Select(select) = &mut *query.body else { return None };
        select.projection = all.into_iter().zip(types).map(item).collect();
        Some((next, alias.unwrap_or_else(|| "setval".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    #[test]
    fn a_query_of_nothing_else_sets_a_value() {
        let sets = |text: &str| {
            let statement = parse(text).unwrap().remove(0);
            assert_eq!(statement.is_definition(), statement.sets_value(), "{text}");
            assert!(statement.sets_value() || statement.is_query(), "{text}");
            statement.sets_value()
        };
        assert!(sets("SELECT setval('s', 1)"));
        assert!(sets("SELECT pg_catalog.setval('s', max(a), false) AS x FROM t WHERE a < $1"));
        assert!(!sets("SELECT setval('s', 1), 2"));
        assert!(!sets("SELECT setval('s', 1) + 1"));
        assert!(!sets("SELECT other('s', 1)"));
        assert!(!sets("SELECT setval('s')"));
    }
}
