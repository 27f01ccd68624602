//! Enum types. A table has the definition of each of its types in itself, so that plans and replays
//! need no catalog: a type that changes is changed in all that names it.

use super::alter;
use super::definition::{Definition, Dropping, already_there, move_target, refuse_owner};
use super::views::{self, dependent, drop_dependents};
use crate::bind::{Binder, name_of, new_name, unsupported, written_name};
use crate::catalog::{Cast, Catalog, Delta, Table, View};
use crate::ir::{
    ColumnForm, ColumnNumber, Expression, Index, Kind, Name, ObjectId, Op, SchemaId, Value,
    to_bytes,
};
use crate::parse::{Statement, TypeMove, TypePlace};
use crate::run::{Context, Rows};
use crate::system::quoted;
use sqlparser::ast::{
    AlterTable, AlterType, AlterTypeAddValue, AlterTypeAddValuePosition, AlterTypeOperation, Ident,
    ObjectName, UserDefinedTypeRepresentation,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::{Array, Datum, EnumType, Error, Oid, Place, Result, SqlState, Type};

/// CREATE TYPE
pub(super) fn create(
    catalog: &Catalog,
    name: &ObjectName,
    representation: Option<&UserDefinedTypeRepresentation>,
) -> Result<Definition> {
    let Some(UserDefinedTypeRepresentation::Enum { labels }) = representation else {
        return Err(unsupported("a type that is no enum"));
    };
    let own = new_name(catalog, name)?;
    refuse_existing(catalog, &own)?;
    let labels = labels.iter().map(label).collect::<Result<Vec<&str>>>()?;
    let id = catalog.next_id();
    let ty = EnumType::new(Oid::new(id.number()), &own, &quoted(&own), &labels)?;
    let mut delta = Delta::default();
    delta.put_enum(ty);
    if own.schema != SchemaId::PUBLIC {
        delta.put_type_schema(ty, own.schema);
    }
    // The next id is that of its arrays.
    delta.set_next_id(id.next().next());
    Ok(Definition::new("CREATE TYPE", delta))
}

/// The text of a label, which must be in quotes.
fn label(ident: &Ident) -> Result<&str> {
    if ident.quote_style == Some('\'') {
        return Ok(&ident.value);
    }
    Err(Error::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{ident}\"")))
}

/// Refuses the name of a type that there is; rows of tables and views are types, too.
fn refuse_existing(catalog: &Catalog, name: &Name) -> Result<()> {
    let has_rows = catalog.table(name).is_some() || catalog.view(name).is_some();
    if has_rows || catalog.type_named(name).is_some() {
        return Err(Error::new(
            SqlState::DUPLICATE_OBJECT,
            format!("type \"{name}\" already exists"),
        ));
    }
    Ok(())
}

fn found(catalog: &Catalog, name: &ObjectName) -> Result<EnumType> {
    let written = written_name(name)?;
    catalog.enum_named(&catalog.type_of(&written)?).ok_or_else(|| {
        Error::new(SqlState::UNDEFINED_OBJECT, format!("type \"{written}\" does not exist"))
    })
}

/// ALTER TYPE
pub(super) fn alter(
    catalog: &Catalog,
    statement: &Statement,
    tree: &AlterType,
    context: &Context,
) -> Result<Definition> {
    let mut definition = Definition::new("ALTER TYPE", Delta::default());
    let old = found(catalog, &tree.name)?;
    let new = match &tree.operation {
        AlterTypeOperation::AddValue(value) => match added(old, value)? {
            Some(new) => new,
            None => {
                let text = label(&value.value)?;
                definition.notice = Some(format!("enum label \"{text}\" already exists, skipping"));
                return Ok(definition);
            }
        },
        AlterTypeOperation::RenameValue(value) => {
            old.with_renamed_label(label(&value.from)?, label(&value.to)?)?
        }
        AlterTypeOperation::Rename(rename) => {
            let name = name_of(&rename.new_name);
            refuse_existing(catalog, &catalog.name_of_type(old).beside(&*name))?;
            old.with_name(&name, &quoted(&name))?
        }
    };
    definition.delta.put_enum(new);
    for table in catalog.tables() {
        if let Some(changed) = changed_table(table, new)? {
            definition.delta.put_table(&changed);
        }
    }
    for view in catalog.views().filter(|view| view_has(view, new)) {
        let mut view = View::clone(view);
        view.columns.iter_mut().for_each(|column| change_kind(&mut column.kind, new));
        definition.delta.put_view(&view);
    }
    refuse_broken(catalog, &definition.delta, statement, context)?;
    Ok(definition)
}

/// ALTER TYPE ... OWNER TO and SET SCHEMA: there is one owner.
pub(super) fn move_to(catalog: &Catalog, tree: &TypeMove) -> Result<Definition> {
    let ty = found(catalog, &tree.name)?;
    let mut delta = Delta::default();
    match &tree.to {
        TypePlace::Owner(owner) => {
            refuse_owner(owner)?;
        }
        TypePlace::Schema(schema) => {
            let schema = move_target(catalog, schema)?;
            if schema != catalog.schema_of_type(ty) {
                let new = Name::new(schema, ty.name());
                if catalog.type_named(&new).is_some() {
                    return Err(already_there("type", &new, catalog));
                }
                delta.put_type_schema(ty, schema);
                views::move_type_in_users(catalog, ty, schema, &mut delta)?;
            }
        }
    }
    Ok(Definition::new("ALTER TYPE", delta))
}

/// The type with another label; `None` if it has it already and the statement lets that pass.
fn added(old: EnumType, tree: &AlterTypeAddValue) -> Result<Option<EnumType>> {
    let text = label(&tree.value)?;
    if old.has(text) {
        if tree.if_not_exists {
            return Ok(None);
        }
        let message = format!("enum label \"{text}\" already exists");
        return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
    }
    let place = match &tree.position {
        None => Place::Last,
        Some(AlterTypeAddValuePosition::Before(other)) => Place::Before(label(other)?),
        Some(AlterTypeAddValuePosition::After(other)) => Place::After(label(other)?),
    };
    old.with_label(text, place).map(Some)
}

/// Refuses a change after which a view's text does not mean what it did.
fn refuse_broken(
    catalog: &Catalog,
    delta: &Delta,
    statement: &Statement,
    context: &Context,
) -> Result<()> {
    let next = catalog.with(delta)?;
    match broken_view(&next, statement, context) {
        None => Ok(()),
        Some(view) => {
            let message = format!(
                "another name for what view \"{}\" names of a type is not supported",
                view.name
            );
            Err(Error::unsupported(message, "Drop the view, and create it again after that."))
        }
    }
}

/// The first view that cannot be bound.
fn broken_view<'c>(
    catalog: &'c Catalog,
    statement: &Statement,
    context: &Context,
) -> Option<&'c Arc<View>> {
    catalog.views().find(|view| {
        Binder::new(catalog, &statement.lines, &context.zone, &[]).check_view(view).is_err()
    })
}

/// DROP TYPE
pub(super) fn drop(
    catalog: &Catalog,
    statement: &Statement,
    dropping: &Dropping<'_>,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    let mut definition = Definition::new("DROP TYPE", Delta::default());
    let mut current = catalog.clone();
    for name in dropping.names {
        let ty = match found(&current, name) {
            Ok(ty) => ty,
            Err(error) => {
                definition.skip_missing(error, dropping.if_exists)?;
                continue;
            }
        };
        let columns = columns_of(&current, ty);
        let casts: Vec<_> =
            current.casts().filter(|cast| cast.names(Type::Enum(ty))).cloned().collect();
        refuse_expressions(&current, ty)?;
        let shown = |cast: &Arc<Cast>| shown_cast(&current, cast);
        let shown_casts: Vec<String> = casts.iter().map(shown).collect();
        if !(dropping.cascade || columns.is_empty() && casts.is_empty()) {
            // What was made first is told first.
            let of = current.shown_type(Type::Enum(ty));
            let line = |cast: &String| format!("{cast} depends on type {of}");
            let casts = casts.iter().map(|cast| cast.id).zip(shown_casts.iter().map(line));
            let mut lines: Vec<_> = columns.iter().map(|it| (it.id, it.line())).collect();
            lines.extend(casts);
            lines.sort_by_key(|(id, _)| *id);
            return Err(depended_on(&current, ty, lines.into_iter().map(|(_, line)| line)));
        }
        let mut notices = Vec::new();
        for (cast, shown) in casts.iter().zip(&shown_casts) {
            notices.push(format!("drop cascades to {shown}"));
            definition.delta.drop_cast(cast.id);
        }
        for column in &columns {
            let tree = column.drop();
            let part = alter::alter(&current, statement, &tree, context, rows)?;
            notices.extend(part.notice);
            notices
                .push(format!("drop cascades to column {} of table {}", column.name, column.shown));
            current = current.with(&part.delta)?;
            definition.delta.append(part.delta);
        }
        let mut dropped = Definition::new(definition.tag, Delta::default());
        dropped.delta.drop_enum(ty);
        drop_views(&current, ty, statement, context, dropping.cascade, &mut dropped)?;
        notices.extend(dropped.notice);
        current = current.with(&dropped.delta)?;
        definition.delta.append(dropped.delta);
        if !notices.is_empty() {
            definition.add_notice(&notices.join("\n"));
        }
    }
    Ok(definition)
}

fn shown_cast(catalog: &Catalog, cast: &Cast) -> String {
    let name = |oid| catalog.type_by_oid(Oid::new(oid)).map(Type::name).unwrap_or_default();
    format!("cast from {} to {}", name(cast.from), name(cast.to))
}

/// A column of the type.
struct DependentColumn {
    /// The table's id.
    id: ObjectId,
    table: Name,
    schema: String,
    shown: String,
    name: String,
    ty: String,
}

impl DependentColumn {
    fn line(&self) -> String {
        format!("column {} of table {} depends on type {}", self.name, self.shown, self.ty)
    }

    /// The statement that drops it.
    fn drop(&self) -> AlterTable {
        use sqlparser::ast::helpers::attached_token::AttachedToken;
        use sqlparser::ast::{AlterTableOperation, DropBehavior};
        let ident = |name: &str| Ident::with_quote('"', name);
        AlterTable {
            name: ObjectName::from(vec![ident(&self.schema), ident(&self.table)]),
            if_exists: false,
            only: false,
            operations: vec![AlterTableOperation::DropColumn {
                has_column_keyword: true,
                column_names: vec![ident(&self.name)],
                if_exists: false,
                drop_behavior: Some(DropBehavior::Cascade),
            }],
            location: None,
            on_cluster: None,
            table_type: None,
            end_token: AttachedToken::empty(),
        }
    }
}

fn columns_of(catalog: &Catalog, ty: EnumType) -> Vec<DependentColumn> {
    let mut all = Vec::new();
    for table in catalog.tables() {
        for column in &table.relation.columns {
            // Rows still have values of dropped columns, by the definition in the table.
            if column.kind.ty.enum_type() == Some(ty) && !column.is_hidden() {
                let id = table.relation.id;
                let (table, name) = (table.relation.name.clone(), column.name.clone());
                let schema = catalog.schema_name(table.schema).to_owned();
                let (shown, ty) = (catalog.shown(&table), catalog.shown_type(column.kind.ty));
                all.push(DependentColumn { id, table, schema, shown, name, ty });
            }
        }
    }
    all
}

fn depended_on(catalog: &Catalog, ty: EnumType, lines: impl Iterator<Item = String>) -> Error {
    let shown = catalog.shown_type(Type::Enum(ty));
    let message = format!("cannot drop type {shown} because other objects depend on it");
    dependent(message, lines.collect::<Vec<_>>().join("\n"))
}

/// Refuses to drop a type that defaults, checks or indexes of other columns name.
fn refuse_expressions(catalog: &Catalog, ty: EnumType) -> Result<()> {
    let mut lines = Vec::new();
    let shown = catalog.shown_type(Type::Enum(ty));
    for Table { relation, columns, .. } in catalog.tables().map(|table| &**table) {
        let own = catalog.shown(&relation.name);
        for (column, info) in relation.columns.iter().zip(columns) {
            let is_own = column.kind.ty.enum_type() == Some(ty) || column.is_hidden();
            if !is_own && info.default.as_ref().is_some_and(|default| has(default, ty)) {
                let name = &column.name;
                lines.push(format!(
                    "default value for column {name} of table {own} depends on type {shown}"
                ));
            }
        }
        let is_of_type = |column: ColumnNumber| {
            relation.columns[usize::from(column)].kind.ty.enum_type() == Some(ty)
        };
        for index in &relation.indexes {
            // An index of a column of the type goes with the column, as a check does.
            let goes = index.columns_used().any(is_of_type);
            if !goes && index.expressions().any(|each| has(each, ty)) {
                let name = catalog.shown(&relation.name.beside(&*index.name));
                lines.push(format!("index {name} depends on type {shown}"));
            }
        }
        for check in &relation.checks {
            let of_column = |op: &Op| matches!(op, Op::Column(column) if is_of_type(*column));
            let goes = check.condition.code.iter().any(of_column);
            if !goes && has(&check.condition, ty) {
                let name = &check.name;
                lines.push(format!("constraint {name} on table {own} depends on type {shown}"));
            }
        }
    }
    if lines.is_empty() { Ok(()) } else { Err(depended_on(catalog, ty, lines.into_iter())) }
}

/// Drops the views that name a type that is dropped, or refuses to drop it.
fn drop_views(
    catalog: &Catalog,
    ty: EnumType,
    statement: &Statement,
    context: &Context,
    cascade: bool,
    definition: &mut Definition,
) -> Result<()> {
    let mut views = BTreeSet::new();
    let mut notices = Vec::new();
    let by_column = catalog.views().filter(|view| view_has(view, ty)).cloned();
    let mut next: Vec<Arc<View>> = by_column.collect();
    let mut delta = definition.delta.clone();
    loop {
        for view in std::mem::take(&mut next) {
            if views.insert(view.name.clone()) {
                notices.push(format!("drop cascades to view {}", catalog.shown(&view.name)));
                delta.drop_view(view.id);
            }
        }
        match broken_view(&catalog.with(&delta)?, statement, context) {
            Some(view) => next.push(Arc::clone(view)),
            None => break,
        }
    }
    if views.is_empty() {
        return Ok(());
    }
    if !cascade {
        let shown = catalog.shown_type(Type::Enum(ty));
        let line = |name: &Name| format!("view {} depends on type {shown}", catalog.shown(name));
        return Err(depended_on(catalog, ty, views.iter().map(line)));
    }
    for name in &views {
        if let Some(view) = catalog.view(name) {
            definition.delta.drop_view(view.id);
        }
    }
    drop_dependents(catalog, "view", &views, true, definition)?;
    notices.extend(definition.notice.take());
    definition.notice = Some(notices.join("\n"));
    Ok(())
}

fn view_has(view: &View, ty: EnumType) -> bool {
    view.columns.iter().any(|column| column.kind.ty.enum_type() == Some(ty))
}

/// Whether a program has values of a type, or makes them.
fn has(expression: &Expression, ty: EnumType) -> bool {
    expression.code.iter().any(|op| match op {
        Op::Cast(kind, _) => kind.ty.enum_type() == Some(ty),
        Op::Constant(value) => value.0.kind().and_then(Type::enum_type) == Some(ty),
        _ => false,
    })
}

/// A table with the definition of a type as it is now; `None` if it has nothing of the type.
fn changed_table(table: &Table, ty: EnumType) -> Result<Option<Table>> {
    let mut changed = table.clone();
    let relation = &mut changed.relation;
    for column in &mut relation.columns {
        change_kind(&mut column.kind, ty);
        change_value(&mut column.missing, ty)?;
        if let ColumnForm::Generated(value) = &mut column.form {
            change_expression(value, ty)?;
        }
    }
    for check in &mut relation.checks {
        change_expression(&mut check.condition, ty)?;
    }
    for special in relation.indexes.iter_mut().filter_map(Index::special_mut) {
        for condition in &mut special.predicate {
            change_expression(condition, ty)?;
        }
        for computed in &mut special.computed {
            change_kind(&mut computed.kind, ty);
            change_expression(&mut computed.value, ty)?;
        }
    }
    for info in &mut changed.columns {
        info.default.iter_mut().try_for_each(|default| change_expression(default, ty))?;
    }
    // Types are compared by their ids: what has one is what is written in other bytes.
    let is_same = to_bytes(&changed) == to_bytes(table);
    Ok((!is_same).then_some(changed))
}

fn change_kind(kind: &mut Kind, ty: EnumType) {
    if kind.ty == Type::Enum(ty) {
        kind.ty = Type::Enum(ty);
    } else if Some(kind.ty) == Type::Enum(ty).array() {
        kind.ty = Type::Enum(ty).array().unwrap_or(kind.ty);
    }
}

fn change_expression(expression: &mut Expression, ty: EnumType) -> Result<()> {
    expression.code.iter_mut().try_for_each(|op| match op {
        Op::Cast(kind, _) => {
            change_kind(kind, ty);
            Ok(())
        }
        Op::Constant(value) => change_value(value, ty),
        _ => Ok(()),
    })
}

fn change_value(value: &mut Value, ty: EnumType) -> Result<()> {
    let same = |datum: &Datum| match datum {
        Datum::Enum(own) => {
            let own = ty.value(own.number()).ok_or_else(|| {
                Error::corrupted(format!("a value of type {} is damaged", ty.shown()))
            })?;
            Ok(Datum::Enum(own))
        }
        other => Ok(other.clone()),
    };
    match &value.0 {
        own @ Datum::Enum(_) if own.kind() == Some(Type::Enum(ty)) => value.0 = same(own)?,
        Datum::Array(array) if array.element() == Type::Enum(ty) => {
            let items = array.items().iter().map(same).collect::<Result<Vec<_>>>()?;
            let dimensions = array.dimensions().to_vec();
            let array = Array::with_dimensions(Type::Enum(ty), dimensions, items)?;
            value.0 = Datum::Array(Box::new(array));
        }
        _ => {}
    }
    Ok(())
}
