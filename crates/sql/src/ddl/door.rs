//! Refuses what definitions may say and nothing here uses, field by field; see `bind::door`.

use crate::bind::{refuse, unsupported};
use sqlparser::ast::{
    AlterTable, BinaryOperator, CheckConstraint, CreateIndex, CreateTable, CreateTableOptions,
    CreateView, Expr, HiveDistributionStyle, IndexColumn, IndexType, KeyOrIndexDisplay,
    OrderByExpr, OrderByOptions, PrimaryKeyConstraint, SqlOption, Truncate, TruncateTableTarget,
    UniqueConstraint, ViewColumnDef,
};
use values::Result;

/// Whether a setting is only about how PostgreSQL stores rows.
fn is_of_storage(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "fillfactor" || name.starts_with("autovacuum_")
}

fn has_no_effect(options: &CreateTableOptions) -> bool {
    let is_storage = |option: &SqlOption| match option {
        SqlOption::KeyValue { key, value: _ } => is_of_storage(&key.to_string()),
        _ => false,
    };
    match options {
        CreateTableOptions::None => true,
        CreateTableOptions::With(options) => options.iter().all(is_storage),
        _ => false,
    }
}

/// Names the fields of a tree that has too many of them for lines of their own.
macro_rules! all_of {
    ($pattern:pat = $tree:expr) => {
        let $pattern = $tree;
    };
}

pub(super) fn check_table(tree: &CreateTable) -> Result<()> {
    // PostgreSQL may lose the rows of an unlogged table; here they stay.
    all_of! { CreateTable {
        or_replace, temporary, unlogged: _, external, dynamic, global, if_not_exists: _,
        transient, volatile, iceberg, snapshot, name: _, columns: _, constraints: _,
        hive_distribution, hive_formats, table_options, file_format, location, query,
        sqlite_table_options, like, clone, version, comment, on_commit: _, on_cluster, primary_key,
        order_by, partition_by, cluster_by, clustered_by, inherits, partition_of, for_values,
        copy_grants, enable_schema_evolution, change_tracking, data_retention_time_in_days,
        max_data_extension_time_in_days, default_ddl_collation, with_aggregation_policy,
        with_row_access_policy, with_storage_lifecycle_policy, with_tags, external_volume,
        with_connection, base_location, catalog, catalog_sync, storage_serialization_policy,
        target_lag, warehouse, refresh_mode, initialize, require_user, diststyle, distkey,
        sortkey, backup, multiset, fallback, with_data,
    } = tree }
    let is_other = [
        *or_replace || *external || *dynamic || *transient || *volatile || *iceberg || *snapshot,
        clone.is_some() || version.is_some() || comment.is_some() || on_cluster.is_some(),
        *hive_distribution != HiveDistributionStyle::NONE || hive_formats.is_some(),
        file_format.is_some() || location.is_some(),
        sqlite_table_options.leading_comma || !sqlite_table_options.options.is_empty(),
        primary_key.is_some() || order_by.is_some(),
        cluster_by.is_some() || clustered_by.is_some(),
        *copy_grants || enable_schema_evolution.is_some() || change_tracking.is_some(),
        data_retention_time_in_days.is_some() || max_data_extension_time_in_days.is_some(),
        default_ddl_collation.is_some() || with_tags.is_some(),
        with_aggregation_policy.is_some() || with_row_access_policy.is_some(),
        with_storage_lifecycle_policy.is_some() || external_volume.is_some(),
        with_connection.is_some() || base_location.is_some() || catalog.is_some(),
        catalog_sync.is_some() || storage_serialization_policy.is_some(),
        target_lag.is_some() || warehouse.is_some() || refresh_mode.is_some(),
        initialize.is_some() || *require_user || diststyle.is_some() || distkey.is_some(),
        sortkey.is_some() || backup.is_some() || multiset.is_some() || fallback.is_some(),
    ];
    refuse(&[
        (global.is_some() && !*temporary, "LOCAL or GLOBAL"),
        (query.is_some() || with_data.is_some(), "CREATE TABLE AS"),
        (like.is_some(), "LIKE"),
        (inherits.is_some(), "INHERITS"),
        (
            partition_by.is_some() || partition_of.is_some() || for_values.is_some(),
            "a partitioned table",
        ),
        (!has_no_effect(table_options), "an option of a table"),
        (is_other.contains(&true), "this form of CREATE TABLE"),
    ])
}

pub(super) fn check_view(tree: &CreateView) -> Result<()> {
    let CreateView {
        or_alter,
        or_replace: _,
        materialized,
        secure,
        name: _,
        name_before_not_exists: _,
        columns,
        query: _,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists,
        temporary: _,
        copy_grants,
        to,
        params,
    } = tree;
    let is_more = |ViewColumnDef { name: _, data_type, options }: &ViewColumnDef| {
        data_type.is_some() || options.is_some()
    };
    let is_other = [
        *if_not_exists || *or_alter || *secure,
        to.is_some() || params.is_some() || comment.is_some() || !cluster_by.is_empty(),
        *with_no_schema_binding || *copy_grants,
        columns.iter().any(is_more),
    ];
    refuse(&[
        (*materialized, "a materialized view"),
        (*options != CreateTableOptions::None, "an option of a view"),
        (is_other.contains(&true), "this form of CREATE VIEW"),
    ])
}

pub(super) fn check_index(tree: &CreateIndex) -> Result<()> {
    let CreateIndex {
        name: _,
        table_name: _,
        using,
        columns,
        unique: _,
        concurrently: _,
        r#async,
        if_not_exists: _,
        include: _,
        nulls_distinct: _,
        with,
        predicate: _,
        index_options,
        alter_options,
    } = tree;
    let is_storage = |option: &Expr| match option {
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right: _ } => {
            matches!(&**left, Expr::Identifier(name) if is_of_storage(&name.value))
        }
        _ => false,
    };
    refuse(&[
        (!matches!(using, None | Some(IndexType::BTree)), "an index that is no btree"),
        (!with.iter().all(is_storage), "an option of an index"),
        (*r#async || !index_options.is_empty() || !alter_options.is_empty(), "this form of index"),
    ])?;
    columns.iter().try_for_each(check_key)
}

/// Checks a column of a key.
pub(super) fn check_key(element: &IndexColumn) -> Result<()> {
    let IndexColumn { column, operator_class } = element;
    let OrderByExpr { expr: _, options: OrderByOptions { sort: _, nulls_first: _ }, with_fill } =
        column;
    // In collation C all operator classes of text are the same; keys of other types have one.
    let class = operator_class.as_ref().map(|name| name.to_string().to_ascii_lowercase());
    let is_known = class.as_deref().is_none_or(|class| class.ends_with("_ops"));
    refuse(&[(with_fill.is_some(), "WITH FILL"), (!is_known, "this operator class")])
}

pub(super) fn check_unique(tree: &UniqueConstraint) -> Result<()> {
    let UniqueConstraint {
        name: _,
        index_name,
        index_type_display,
        index_type,
        columns,
        include: _,
        index_options,
        characteristics,
        nulls_distinct: _,
    } = tree;
    refuse(&[
        (characteristics.is_some(), "DEFERRABLE"),
        (index_name.is_some() || index_type.is_some(), "the index of a constraint"),
        (*index_type_display != KeyOrIndexDisplay::None, "the index of a constraint"),
        (!index_options.is_empty(), "an option of an index"),
    ])?;
    columns.iter().try_for_each(check_key)
}

pub(super) fn check_primary(tree: &PrimaryKeyConstraint) -> Result<()> {
    let PrimaryKeyConstraint {
        name: _,
        index_name,
        index_type,
        columns,
        include,
        index_options,
        characteristics,
    } = tree;
    refuse(&[
        (characteristics.is_some(), "DEFERRABLE"),
        (!include.is_empty(), "a primary key with INCLUDE"),
        (index_name.is_some() || index_type.is_some(), "the index of a constraint"),
        (!index_options.is_empty(), "an option of an index"),
    ])?;
    columns.iter().try_for_each(check_key)
}

pub(super) fn check_check(tree: &CheckConstraint) -> Result<()> {
    // No table inherits constraints.
    let CheckConstraint { name: _, expr: _, no_inherit: _, enforced } = tree;
    refuse(&[(enforced.is_some(), "ENFORCED")])
}

pub(super) fn check_alter(tree: &AlterTable) -> Result<()> {
    // Nothing inherits from a table.
    let AlterTable {
        name: _,
        if_exists: _,
        only: _,
        operations: _,
        location,
        on_cluster,
        table_type,
        end_token: _,
    } = tree;
    refuse(&[(
        table_type.is_some() || location.is_some() || on_cluster.is_some(),
        "this form of ALTER TABLE",
    )])
}

pub(super) fn check_truncate(tree: &Truncate) -> Result<()> {
    let Truncate {
        table_names,
        partitions,
        table: _,
        if_exists,
        identity: _,
        cascade: _,
        on_cluster,
    } = tree;
    for TruncateTableTarget { name: _, only: _, has_asterisk: _ } in table_names {}
    let is_other = partitions.is_some() || on_cluster.is_some();
    refuse(&[(*if_exists, "TRUNCATE IF EXISTS"), (is_other, "this form of TRUNCATE")])
}

/// Refuses DROP of another dialect.
pub(super) fn check_drop(purge: bool, temporary: bool, table: bool) -> Result<()> {
    if purge || temporary || table { Err(unsupported("this form of DROP")) } else { Ok(()) }
}
