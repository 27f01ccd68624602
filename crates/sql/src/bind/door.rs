//! Refuses what the parser takes and nothing here uses: parts of other dialects, and parts of
//! PostgreSQL that are not supported.
//!
//! Each function names all fields of a part of the tree, without `..`: a field that a later parser
//! adds does not compile until it is used, or refused.

use super::binder::unsupported;
use sqlparser::ast::{
    Cte, Delete, Fetch, Function, FunctionArguments, Insert, Join, LimitClause, OrderBy,
    OrderByExpr, OrderByOptions, Query, Select, SelectFlavor, TableAlias, TableAliasColumnDef,
    TableFactor, TableFunctionArgs, Update, Values, WildcardAdditionalOptions,
};
use values::{Error, Result, SqlState};

/// Refuses the first of these that is present.
pub(crate) fn refuse(parts: &[(bool, &str)]) -> Result<()> {
    match parts.iter().find(|(is_present, _)| *is_present) {
        Some((_, name)) => Err(unsupported(name)),
        None => Ok(()),
    }
}

fn syntax(message: &str) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

pub(super) fn check_query(query: &Query) -> Result<()> {
    let Query {
        with: _,
        body: _,
        order_by,
        limit_clause,
        fetch,
        // Nothing locks: a block whose rows others change is refused when it commits.
        locks: _,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    let interpolates = match order_by {
        Some(OrderBy { kind: _, interpolate }) => interpolate.is_some(),
        None => false,
    };
    if let (Some(LimitClause::LimitOffset { limit: Some(_), .. }), Some(_)) = (limit_clause, fetch)
    {
        return Err(syntax("multiple LIMIT clauses not allowed"));
    }
    if let Some(Fetch { with_ties: _, percent, quantity: _ }) = fetch {
        refuse(&[(*percent, "FETCH PERCENT")])?;
    }
    refuse(&[
        (interpolates, "INTERPOLATE"),
        (for_clause.is_some(), "FOR XML, JSON or BROWSE"),
        (settings.is_some(), "SETTINGS"),
        (format_clause.is_some(), "FORMAT of a query"),
        (!pipe_operators.is_empty(), "a pipe operator"),
    ])
}

/// Whether a query is nothing but its body.
pub(crate) fn is_only_body(query: &Query) -> bool {
    let Query {
        with,
        body: _,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    let is_plain = with.is_none() && order_by.is_none() && limit_clause.is_none();
    let is_postgres = for_clause.is_none() && settings.is_none() && format_clause.is_none();
    is_plain && fetch.is_none() && locks.is_empty() && is_postgres && pipe_operators.is_empty()
}

pub(crate) fn check_select(tree: &Select) -> Result<()> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection: _,
        exclude,
        into,
        from: _,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by: _,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window: _,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = tree;
    refuse(&[
        (into.is_some(), "SELECT INTO"),
        (top.is_some(), "TOP"),
        (!lateral_views.is_empty(), "LATERAL VIEW"),
        (qualify.is_some(), "QUALIFY"),
        (prewhere.is_some(), "PREWHERE"),
        (!connect_by.is_empty(), "CONNECT BY"),
        (!sort_by.is_empty() || !cluster_by.is_empty(), "SORT BY"),
        (!distribute_by.is_empty(), "DISTRIBUTE BY"),
        (exclude.is_some() || value_table_mode.is_some(), "this form of SELECT"),
        (select_modifiers.is_some() || *flavor != SelectFlavor::Standard, "this form of SELECT"),
    ])
}

pub(super) fn check_values(tree: &Values) -> Result<()> {
    let Values { explicit_row, value_keyword, rows: _ } = tree;
    refuse(&[(*explicit_row || *value_keyword, "this form of VALUES")])
}

pub(super) fn check_wildcard(tree: &WildcardAdditionalOptions) -> Result<()> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = tree;
    refuse(&[
        (opt_ilike.is_some() || opt_exclude.is_some() || opt_except.is_some(), "a part of *"),
        (opt_replace.is_some() || opt_rename.is_some(), "another form of *"),
        (opt_alias.is_some(), "a name for *"),
    ])
}

pub(super) fn check_order(each: &OrderByExpr) -> Result<()> {
    let OrderByExpr { expr: _, options: OrderByOptions { sort: _, nulls_first: _ }, with_fill } =
        each;
    refuse(&[(with_fill.is_some(), "WITH FILL")])
}

pub(super) fn check_part(tree: &Cte) -> Result<()> {
    // A part of WITH has the same rows, whenever it runs.
    let Cte { alias, query: _, from, materialized: _, closing_paren_token: _ } = tree;
    refuse(&[(from.is_some(), "FROM behind a query of WITH")])?;
    check_alias(Some(alias))
}

fn check_alias(alias: Option<&TableAlias>) -> Result<()> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return Ok(()) };
    let is_typed =
        |TableAliasColumnDef { name: _, data_type }: &TableAliasColumnDef| data_type.is_some();
    refuse(&[
        (columns.iter().any(is_typed), "a list of columns with types"),
        (at.is_some(), "AT behind a name"),
    ])
}

pub(super) fn check_join(join: &Join) -> Result<()> {
    let Join { relation: _, global, join_operator: _ } = join;
    refuse(&[(*global, "a global join")])
}

/// Checks a table, a query or a function of FROM; other forms are refused where they are bound.
pub(super) fn check_factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_directives,
            // No table inherits rows.
            inheritance: _,
        } => {
            let settings = match args {
                Some(TableFunctionArgs { args: _, settings }) => settings.is_some(),
                None => false,
            };
            if *with_ordinality && args.is_none() {
                return Err(syntax("WITH ORDINALITY is of functions"));
            }
            refuse(&[
                (sample.is_some(), "TABLESAMPLE"),
                (settings || !with_hints.is_empty(), "an option of a table in FROM"),
                (version.is_some(), "a version of a table"),
                (!partitions.is_empty() || json_path.is_some(), "a part of a table"),
                (!index_directives.is_empty(), "the index of a table in FROM"),
            ])?;
            check_alias(alias.as_ref())
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            refuse(&[(sample.is_some(), "TABLESAMPLE")])?;
            check_alias(alias.as_ref())
        }
        TableFactor::Function { lateral: _, name: _, args: _, with_ordinality: _, alias } => {
            check_alias(alias.as_ref())
        }
        TableFactor::UNNEST {
            alias,
            array_exprs: _,
            with_offset,
            with_offset_alias,
            with_ordinality: _,
        } => {
            refuse(&[(*with_offset || with_offset_alias.is_some(), "WITH OFFSET")])?;
            check_alias(alias.as_ref())
        }
        _ => Ok(()),
    }
}

/// Checks a call that is none of an aggregate.
pub(crate) fn check_call(call: &Function) -> Result<()> {
    check_any_call(call)?;
    refuse(&[(!call.within_group.is_empty(), "WITHIN GROUP")])
}

/// Checks a call that may be one of an aggregate.
pub(super) fn check_any_call(call: &Function) -> Result<()> {
    let Function {
        name: _,
        uses_odbc_syntax,
        parameters,
        args: _,
        within_group: _,
        filter: _,
        null_treatment,
        over: _,
    } = call;
    refuse(&[
        (*uses_odbc_syntax, "this form of a call"),
        (!matches!(parameters, FunctionArguments::None), "a call with parameters"),
        (null_treatment.is_some(), "IGNORE NULLS or RESPECT NULLS"),
    ])
}

pub(super) fn check_insert(tree: &Insert) -> Result<()> {
    let Insert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore,
        into,
        table: _,
        table_alias: _,
        columns: _,
        by_name,
        overwrite,
        source: _,
        assignments,
        partitioned,
        after_columns,
        overriding: _,
        has_table_keyword,
        on: _,
        returning: _,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = tree;
    let is_multiple = multi_table_insert_type.is_some()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
        || multi_table_else_clause.is_some();
    if !into || *has_table_keyword {
        return Err(syntax("INSERT needs INTO and the name of a table"));
    }
    refuse(&[
        (or.is_some() || *ignore || *replace_into || priority.is_some(), "this form of INSERT"),
        (*by_name || *overwrite || is_multiple, "this form of INSERT"),
        (!assignments.is_empty(), "INSERT ... SET"),
        (partitioned.is_some() || !after_columns.is_empty(), "PARTITION"),
        (output.is_some(), "OUTPUT"),
        (insert_alias.is_some(), "a name for the new row"),
        (settings.is_some() || format_clause.is_some(), "an option of INSERT"),
    ])
}

pub(super) fn check_update(tree: &Update) -> Result<()> {
    let Update {
        update_token: _,
        optimizer_hints: _,
        table: _,
        on_cluster,
        assignments: _,
        from: _,
        selection: _,
        returning: _,
        output,
        or,
        order_by,
        limit,
        settings,
    } = tree;
    refuse(&[
        (!order_by.is_empty() || limit.is_some(), "UPDATE with ORDER BY or LIMIT"),
        (output.is_some(), "OUTPUT"),
        (or.is_some() || on_cluster.is_some() || settings.is_some(), "this form of UPDATE"),
    ])
}

pub(super) fn check_delete(tree: &Delete) -> Result<()> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from: _,
        on_cluster,
        using: _,
        selection: _,
        returning: _,
        output,
        order_by,
        limit,
        settings,
    } = tree;
    refuse(&[
        (!tables.is_empty(), "DELETE from several tables"),
        (!order_by.is_empty() || limit.is_some(), "DELETE with ORDER BY or LIMIT"),
        (output.is_some(), "OUTPUT"),
        (on_cluster.is_some() || settings.is_some(), "this form of DELETE"),
    ])
}
