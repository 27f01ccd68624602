//! What FROM may have beside tables and queries: relations of the system catalog, and functions
//! whose results are rows. Those may stand among the columns of a query, too.

use super::binder::{Binder, Level, name_of, unsupported};
use super::copies::check_copies;
use super::door::check_call;
use super::from::{FromItem, FromRows};
use super::functions::no_function;
use super::items::identity;
use super::json_paths::with_defaults;
use super::kinds::Willing;
use super::row_calls::take_calls;
use super::scope::AMONG_COLUMNS;
use crate::ir::{Input, JoinKind, Kind, Query, RowsCall, RowsFunction, Select};
use crate::system::{Known, TABLE_ID};
use sqlparser::ast::{
    Expr, Function as Call, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, SelectItem, TableAlias, TableFactor, Value as SqlValue,
};
use std::borrow::Cow;
use values::{Error, Modifier, Result, SqlState, Type};

/// A call of a function whose results are rows.
struct Called<'e> {
    name: String,
    function: RowsFunction,
    arguments: Vec<Cow<'e, Expr>>,
}

/// The function with this name, which may have its schema before it.
pub(super) fn function_named(name: &ObjectName) -> Option<(String, RowsFunction)> {
    let parts = name.0.iter().map(|part| part.as_ident().map(name_of));
    let own = match &parts.collect::<Option<Vec<_>>>()?[..] {
        [own] => own.clone(),
        [schema, own] if schema == "pg_catalog" => own.clone(),
        [schema, own] if schema == "information_schema" && own == "_pg_expandarray" => {
            return Some((own.clone(), RowsFunction::Expanded));
        }
        _ => return None,
    };
    let function = match own.as_str() {
        "generate_series" => RowsFunction::Series,
        "unnest" => RowsFunction::Unnest,
        "generate_subscripts" => RowsFunction::Subscripts,
        "pg_partition_ancestors" | "pg_options_to_table" => RowsFunction::Nothing,
        "jsonb_array_elements" => RowsFunction::JsonItems,
        "jsonb_array_elements_text" => RowsFunction::JsonItemsText,
        "jsonb_object_keys" => RowsFunction::JsonKeys,
        "jsonb_path_query" => RowsFunction::JsonQuery,
        "regexp_matches" => RowsFunction::RegexMatches,
        "regexp_split_to_table" => RowsFunction::RegexParts,
        "string_to_table" => RowsFunction::TextParts,
        "pg_listening_channels" => RowsFunction::ListeningChannels,
        _ => return None,
    };
    Some((own, function))
}

/// The calls side by side that a function in FROM is, and the names of their columns if those are
/// not its own.
fn calls_in_from<'e>(
    name: &ObjectName,
    arguments: &'e [FunctionArg],
) -> Result<(Vec<Called<'e>>, &'static [&'static str])> {
    let own = name.to_string().to_ascii_lowercase();
    let own = own.strip_prefix("pg_catalog.").unwrap_or(&own);
    let values = match own {
        "jsonb_each" => RowsFunction::JsonValues,
        "jsonb_each_text" => RowsFunction::JsonValuesText,
        "pg_options_to_table" => {
            let call = || called(name, arguments);
            return Ok((vec![call()?, call()?], &["option_name", "option_value"]));
        }
        "jsonb_array_elements" | "jsonb_array_elements_text" => {
            return Ok((vec![called(name, arguments)?], &["value"]));
        }
        "information_schema._pg_expandarray" => {
            return Ok((expanded_array(arguments)?, &["x", "n"]));
        }
        _ => return Ok((vec![called(name, arguments)?], &[])),
    };
    let call = |function| {
        let arguments = arguments_of(arguments)?;
        Ok(Called { name: own.to_owned(), function, arguments })
    };
    let both = [RowsFunction::JsonKeys, values].map(call);
    Ok((both.into_iter().collect::<Result<_>>()?, &["key", "value"]))
}

/// The items of an array, and their places from 1 on.
fn expanded_array(arguments: &[FunctionArg]) -> Result<Vec<Called<'_>>> {
    const NAME: &str = "_pg_expandarray";
    arguments.iter().try_for_each(|argument| check_copies(argument, 1))?;
    let cardinality = ObjectName::from(vec![Ident::new("cardinality")]);
    let one = Expr::value(SqlValue::Number("1".to_owned(), false));
    let places = vec![Cow::Owned(one), Cow::Owned(call_of(cardinality, arguments))];
    Ok(vec![
        Called {
            name: NAME.to_owned(),
            function: RowsFunction::Unnest,
            arguments: arguments_of(arguments)?,
        },
        Called { name: NAME.to_owned(), function: RowsFunction::Series, arguments: places },
    ])
}

fn called<'e>(name: &ObjectName, arguments: &'e [FunctionArg]) -> Result<Called<'e>> {
    let Some((own, function)) = function_named(name) else {
        return of_value(name, arguments);
    };
    Ok(Called { name: own, function, arguments: arguments_of(arguments)? })
}

/// A function that has a value: one row of one column.
fn of_value<'e>(name: &ObjectName, arguments: &[FunctionArg]) -> Result<Called<'e>> {
    arguments.iter().try_for_each(|argument| check_copies(argument, 1))?;
    let own = name.0.last().and_then(|part| part.as_ident()).map(name_of).unwrap_or_default();
    let arguments = vec![Cow::Owned(call_of(name.clone(), arguments))];
    Ok(Called { name: own, function: RowsFunction::Value, arguments })
}

/// A call of a function.
fn call_of(name: ObjectName, arguments: &[FunctionArg]) -> Expr {
    let list = FunctionArgumentList {
        duplicate_treatment: None,
        args: arguments.to_vec(),
        clauses: Vec::new(),
    };
    Expr::Function(Call {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        within_group: Vec::new(),
        filter: None,
        null_treatment: None,
        over: None,
    })
}

fn arguments_of(arguments: &[FunctionArg]) -> Result<Vec<Cow<'_, Expr>>> {
    let argument = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Ok(Cow::Borrowed(expr)),
        _ => Err(unsupported("this form of argument")),
    };
    arguments.iter().map(argument).collect()
}

impl Binder<'_> {
    /// A relation of the system catalog.
    pub(super) fn system_item(
        &mut self,
        known: &'static Known,
        alias: Option<&TableAlias>,
        kind: JoinKind,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        let (begin, width) = (self.scope.width(), known.columns.len() + 1);
        let plan = self.apart(|binder| {
            let input = Input::System(known.name.to_owned());
            Ok(binder.plan(input, Select::of(identity(width))))
        })?;
        let rows = FromRows::Query(self.push_query(plan)?);
        let own = known.name.rsplit('.').next().unwrap_or_default();
        let columns = known.columns.iter().enumerate();
        let columns = columns.map(|(at, (name, kind))| (at, (*name).to_owned(), *kind)).collect();
        self.add_table(own, alias, width, columns)?;
        self.scope.add_unshown(begin + width - 1, TABLE_ID, Kind::plain(Type::Oid));
        self.add_item(FromItem { kind, begin, width, rows, on: Vec::new() }, items)
    }

    /// A function in FROM, if the factor is one. It sees the items before it.
    pub(super) fn function_item(
        &mut self,
        factor: &TableFactor,
        kind: JoinKind,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        let ((calls, names), numbered, alias) = match factor {
            TableFactor::Table { name, alias, args: None, with_ordinality, .. } => {
                ((vec![of_value(name, &[])?], &[][..]), *with_ordinality, alias)
            }
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                (calls_in_from(name, &args.args)?, *with_ordinality, alias)
            }
            TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                (calls_in_from(name, args)?, *with_ordinality, alias)
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_offset: false, with_ordinality, ..
            } => {
                let call = |expr| Called {
                    name: "unnest".to_owned(),
                    function: RowsFunction::Unnest,
                    arguments: vec![Cow::Borrowed(expr)],
                };
                let calls: Vec<_> = array_exprs.iter().map(call).collect();
                ((calls, &[][..]), *with_ordinality, alias)
            }
            _ => return Err(unsupported("this form of table in FROM")),
        };
        let is_only = calls.len() == 1;
        let own = calls.first().map(|call| call.name.clone()).unwrap_or_default();
        let position = self.position(factor);
        let of_calls = self.rows_query(calls, numbered);
        let (query, kinds) = of_calls.map_err(|error| error.at(position))?;
        // A function's only column is called as the alias is.
        let column = alias.as_ref().filter(|_| is_only).map(|alias| name_of(&alias.name));
        let column = column.unwrap_or_else(|| own.clone());
        // The row, which is its value, is called as the alias is.
        let is_whole = names.len() == 1 && alias.is_some();
        let named = |at: usize| match names.get(at) {
            Some(name) => (*name).to_owned(),
            None => column.clone(),
        };
        let mut columns: Vec<_> =
            kinds.iter().enumerate().map(|(at, kind)| (at, named(at), *kind)).collect();
        if numbered && let Some(last) = columns.last_mut() {
            last.1 = "ordinality".to_owned();
        }
        let (begin, width) = (self.scope.width(), columns.len());
        let rows = self.rows_of_query(query, kind)?;
        self.add_table(&own, alias.as_ref(), width, columns)?;
        if let (Some(first), true) = (kinds.first(), is_whole) {
            self.scope.add_unshown(begin, &column, *first);
        }
        self.add_item(FromItem { kind, begin, width, rows, on: Vec::new() }, items)
    }

    /// Refuses what only calls of aggregates and of window functions are written with.
    fn refuse_parts_of_aggregates(&self, name: &str, function: &Call) -> Result<()> {
        check_call(function)?;
        let message = match self.written(function)?.only_of_aggregates() {
            Some(what) => format!("{what} specified, but {name} is not an aggregate function"),
            None if function.over.is_some() => format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            ),
            None => return Ok(()),
        };
        Err(Error::new(SqlState::WRONG_OBJECT, message).at(self.position(&function.name)))
    }

    /// The columns of a query with its functions of rows in FROM. Several go side by side.
    pub(super) fn rows_among_columns(
        &mut self,
        projection: &[SelectItem],
        items: &mut Vec<FromItem>,
    ) -> Result<Vec<SelectItem>> {
        let mut projection = projection.to_vec();
        let mut found = Vec::new();
        for item in &mut projection {
            let taken = take_calls(item, &mut found);
            let last = found.last().and_then(|call| self.position(&call.name));
            taken.map_err(|error| error.at(last))?;
        }
        let mut calls = Vec::new();
        for function in &found {
            let arguments = match &function.args {
                FunctionArguments::List(list) => &list.args[..],
                _ => &[],
            };
            let call = called(&function.name, arguments)?;
            self.refuse_parts_of_aggregates(&call.name, function)?;
            calls.push(call);
        }
        if calls.is_empty() {
            return Ok(projection);
        }
        let clause = std::mem::replace(&mut self.clause, AMONG_COLUMNS);
        let of_calls = self.rows_query(calls, false);
        self.clause = clause;
        let (query, kinds) = of_calls?;
        let (begin, width) = (self.scope.width(), kinds.len());
        let rows = self.rows_of_query(query, JoinKind::Inner)?;
        let columns = kinds.iter().enumerate().map(|(at, kind)| (at, at.to_string(), *kind));
        self.scope.add_qualified(AMONG_COLUMNS, width, columns);
        let item = FromItem { kind: JoinKind::Inner, begin, width, rows, on: Vec::new() };
        self.add_item(item, items)?;
        Ok(projection)
    }

    /// The query of functions side by side, and the types of its columns.
    fn rows_query(&mut self, calls: Vec<Called<'_>>, numbered: bool) -> Result<(Query, Vec<Kind>)> {
        let scope = std::mem::take(&mut self.scope);
        let grouping = self.grouping.take();
        self.levels.push(Level { scope, grouping });
        let result = self.apart(|binder| {
            let (mut all, mut kinds) = (Vec::new(), Vec::new());
            for call in calls {
                let (call, ty) = binder.rows_call(call)?;
                let modifier = match call.function {
                    RowsFunction::Expanded => Modifier::PAIR,
                    _ => Modifier::NONE,
                };
                all.push(call);
                kinds.push(Kind { ty, modifier });
            }
            if numbered {
                kinds.push(Kind::plain(Type::Int8));
            }
            let width = kinds.len();
            let plan = binder.plan(Input::Functions(all, numbered), Select::of(identity(width)));
            Ok((plan, kinds))
        });
        let Level { scope, grouping } = self.levels.pop().expect("it was pushed");
        (self.scope, self.grouping) = (scope, grouping);
        result
    }

    fn rows_of_query(&mut self, query: Query, kind: JoinKind) -> Result<FromRows> {
        let is_correlated = query.is_correlated;
        if is_correlated && kind.keeps_own() {
            return Err(unsupported("LATERAL on the right side of RIGHT or FULL JOIN"));
        }
        let number = self.push_query(query)?;
        Ok(if is_correlated { FromRows::Lateral(number) } else { FromRows::Query(number) })
    }

    fn rows_call(&mut self, call: Called<'_>) -> Result<(RowsCall, Type)> {
        let Called { name, function, arguments } = call;
        let all = arguments.iter().map(|expr| self.expression(expr));
        let mut all = all.collect::<Result<Vec<_>>>()?;
        let is_pattern = matches!(function, RowsFunction::RegexMatches | RowsFunction::RegexParts);
        if is_pattern && all.len() == 2 {
            all.push(super::expression::word(""));
        }
        if function == RowsFunction::JsonQuery && matches!(all.len(), 2 | 3) {
            all = with_defaults(all, false);
        }
        let count = all.len();
        let types: Vec<Option<Type>> = all.iter().map(|bound| bound.ty()).collect();
        let shown: Vec<String> = all.iter().map(|bound| bound.type_name()).collect();
        let element = types.first().copied().flatten().and_then(Type::element);
        let (wanted, result) = match (function, element) {
            (RowsFunction::Unnest, Some(element)) if count == 1 => (vec![types[0]], element),
            (RowsFunction::Expanded, Some(Type::Int2 | Type::Int4)) if count == 1 => {
                (vec![types[0]], array_of(Type::Int4))
            }
            (RowsFunction::Subscripts, Some(_)) if count == 2 => {
                (vec![types[0], Some(Type::Int4)], Type::Int4)
            }
            (RowsFunction::Series, None) if count == 3 && is_of_times(&types) => {
                let zoned = |ty: &Option<Type>| matches!(ty, Some(Type::Timestamptz | Type::Date));
                let own = if types.iter().any(zoned) { Type::Timestamptz } else { Type::Timestamp };
                (vec![Some(own), Some(own), Some(Type::Interval)], own)
            }
            (function, None) if of_json(function, count).is_some() => {
                of_json(function, count).expect("it was looked at")
            }
            (RowsFunction::Series, None) if count == 2 || count == 3 => {
                let is_long = types.contains(&Some(Type::Int8));
                let own = if is_long { Type::Int8 } else { Type::Int4 };
                (vec![Some(own); count], own)
            }
            (RowsFunction::Value, _) if count == 1 => {
                (types.clone(), types[0].unwrap_or(Type::Text))
            }
            (RowsFunction::RegexMatches | RowsFunction::RegexParts, _) if count == 3 => {
                (vec![Some(Type::Text); count], part_of_text(function))
            }
            (RowsFunction::TextParts, _) if count == 2 || count == 3 => {
                (vec![Some(Type::Text); count], part_of_text(function))
            }
            (RowsFunction::Nothing, _) if count == 1 && name == "pg_options_to_table" => {
                (vec![Type::Text.array()], Type::Text)
            }
            (RowsFunction::ListeningChannels, _) if count == 0 => (Vec::new(), Type::Text),
            (RowsFunction::Nothing, _) if count == 1 => {
                (vec![Some(Type::Regclass)], Type::Regclass)
            }
            _ => return Err(no_function(&name, &shown)),
        };
        let pairs = all.into_iter().zip(wanted);
        let arguments = pairs.map(|(bound, ty)| {
            let bound = self.coerce(bound, ty.unwrap_or(Type::Text), Willing::Implicit)?;
            Ok(bound.expression())
        });
        Ok((RowsCall { function, arguments: arguments.collect::<Result<_>>()? }, result))
    }
}

/// The types of the arguments of a function of JSON, and that of its results.
fn of_json(function: RowsFunction, count: usize) -> Option<(Vec<Option<Type>>, Type)> {
    let result = match function {
        RowsFunction::JsonItems | RowsFunction::JsonValues => Type::Jsonb,
        RowsFunction::JsonItemsText | RowsFunction::JsonKeys | RowsFunction::JsonValuesText => {
            Type::Text
        }
        RowsFunction::JsonQuery if count == 4 => {
            let all = [Type::Jsonb, Type::Jsonpath, Type::Jsonb, Type::Bool];
            return Some((all.map(Some).to_vec(), Type::Jsonb));
        }
        _ => return None,
    };
    (count == 1).then(|| (vec![Some(Type::Jsonb)], result))
}

/// The type of what a function makes of a text.
fn part_of_text(function: RowsFunction) -> Type {
    if function == RowsFunction::RegexMatches { array_of(Type::Text) } else { Type::Text }
}

fn array_of(element: Type) -> Type {
    element.array().expect("it is no array")
}

/// Whether a series is one of points in time.
fn is_of_times(types: &[Option<Type>]) -> bool {
    let of_time = |ty: &Option<Type>| {
        matches!(ty, Some(Type::Date | Type::Timestamp | Type::Timestamptz | Type::Interval))
    };
    types.iter().any(of_time)
}
