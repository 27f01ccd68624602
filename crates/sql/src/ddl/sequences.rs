//! Sequences.

use super::counting::Options;
use super::definition::Definition;
use super::relation_kind::RelationKind;
use super::views::dependent;
use crate::bind::{name_of, own_name, written_name};
use crate::catalog::{Catalog, ColumnInfo, Delta, Sequence, Table};
use crate::ir::{ColumnNumber, Function, Name, ObjectId, Op, Value};
use crate::parse::{AlterSequence, SequenceChange};
use crate::run::{Rows, last_number};
use sqlparser::ast::{ObjectName, ObjectNamePart, SequenceOptions};
use std::collections::BTreeMap;
use values::{Datum, Error, Result, SqlState, Type};

const TAG_OF_ALTER: &str = "ALTER SEQUENCE";

/// The operations of [`next_value`].
pub(super) const NUMBER_CODE: usize = 7;

/// The code of the sequence's next number.
pub(crate) fn next_value(sequence: &Sequence) -> Vec<Op> {
    let constant = |value: i64| Op::Constant(Value(Datum::Int8(value)));
    let function = match sequence.is_called {
        false => Function::SequenceNumber,
        true => Function::SequenceNumberAfter,
    };
    vec![
        Op::Next(sequence.id),
        constant(sequence.last),
        constant(sequence.increment),
        constant(sequence.minimum),
        constant(sequence.maximum),
        Op::Constant(Value(Datum::Bool(sequence.cycle))),
        Op::Call(function, 6),
    ]
}

pub(super) fn create(
    catalog: &Catalog,
    own: Name,
    if_not_exists: bool,
    options: &[SequenceOptions],
) -> Result<Definition> {
    const TAG: &str = "CREATE SEQUENCE";
    if catalog.is_named(&own) {
        return Definition::existing(TAG, &own, if_not_exists);
    }
    let id = catalog.next_id();
    let mut delta = Delta::default();
    let options = Options::read(options)?;
    let sequence = options.sequence(id, &own, Type::Int8)?;
    delta.put_sequence(&sequence);
    if let Some(owner) = &options.owner {
        let mut changed = BTreeMap::new();
        own_by(catalog, &sequence, owner.as_ref(), &mut changed)?;
        changed.values().for_each(|table| delta.put_table(table));
    }
    delta.set_next_id(id.next());
    Ok(Definition::new(TAG, delta))
}

/// ALTER SEQUENCE
pub(super) fn alter(
    catalog: &Catalog,
    tree: &AlterSequence,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    let mut definition = Definition::new(TAG_OF_ALTER, Delta::default());
    let written = written_name(&tree.name)?;
    let Some(own) = definition.altered(catalog, &written, tree.if_exists)? else {
        return Ok(definition);
    };
    let Some(sequence) = catalog.sequence(&own) else {
        if catalog.is_named(&own) {
            let message = format!("\"{own}\" is not a sequence");
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
        return Err(written.missing());
    };
    let counting = match &tree.change {
        SequenceChange::Rename(new) => {
            return rename(catalog, sequence, &own.beside(own_name(new)?));
        }
        SequenceChange::Owner => return Ok(definition),
        SequenceChange::Counting(counting) => Options::of(counting)?,
    };
    let (mut changed, delta) = (BTreeMap::new(), &mut definition.delta);
    if let Some(owner) = &counting.owner {
        own_by(catalog, sequence, owner.as_ref(), &mut changed)?;
    }
    if !counting.counts_the_same() {
        let id = catalog.next_id();
        let next = Sequence { id, ..counting.change(&counted(sequence, &counting, rows)?)? };
        replace(catalog, sequence.id, &next, &mut changed);
        delta.drop_sequence(sequence.id);
        delta.put_sequence(&next);
        delta.set_next_id(id.next());
    }
    changed.values().for_each(|table| delta.put_table(table));
    Ok(definition)
}

/// The sequence with the number that it gave last, if the options do not say another one.
pub(super) fn counted(
    sequence: &Sequence,
    options: &Options,
    rows: &mut dyn Rows,
) -> Result<Sequence> {
    if options.restart.is_some() {
        return Ok(sequence.clone());
    }
    let given = rows.given(sequence.id)?;
    let mut counted = sequence.clone();
    if let Some(before) = given.checked_sub(1) {
        counted.last = last_number(sequence, before);
        counted.is_called = true;
    }
    Ok(counted)
}

/// What a column's default takes its numbers from goes on with another sequence.
pub(super) fn replace(
    catalog: &Catalog,
    old: ObjectId,
    next: &Sequence,
    changed: &mut BTreeMap<ObjectId, Table>,
) {
    for table in catalog.tables() {
        if table.columns.iter().any(|info| takes(info, old) || info.sequence == Some(old)) {
            let id = table.relation.id;
            let table = changed.entry(id).or_insert_with(|| Table::clone(table));
            replace_in(table, old, next);
        }
    }
}

/// The same in one table.
pub(super) fn replace_in(table: &mut Table, old: ObjectId, next: &Sequence) {
    let code = next_value(next);
    for info in &mut table.columns {
        if info.sequence == Some(old) {
            info.sequence = Some(next.id);
        }
        let Some(default) = &mut info.default else { continue };
        for at in 0..default.code.len() {
            if default.code[at] == Op::Next(old) {
                default.code[at..at + code.len()].clone_from_slice(&code);
            }
        }
    }
}

/// Whether a column's default takes numbers of a sequence.
fn takes(info: &ColumnInfo, sequence: ObjectId) -> bool {
    info.default.as_ref().is_some_and(|default| default.code.contains(&Op::Next(sequence)))
}

/// Removes the defaults of a table that use a sequence.
pub(super) fn release(table: &mut Table, sequence: ObjectId) {
    for info in table.columns.iter_mut().filter(|info| takes(info, sequence)) {
        (info.default, info.default_text) = (None, None);
    }
}

/// The defaults that depend on sequences to drop.
pub(super) struct DependentDefaults {
    /// Copies of their tables without these defaults.
    pub(super) changed: Vec<Table>,
    /// Descriptions of the defaults, each with the name of its sequence.
    lines: Vec<(String, String)>,
}

impl DependentDefaults {
    /// Finds the defaults that use `sequences`. `is_dropped` excludes columns, by table and place,
    /// that are dropped themselves.
    pub(super) fn of(
        catalog: &Catalog,
        sequences: &[ObjectId],
        is_dropped: impl Fn(&Table, usize) -> bool,
    ) -> DependentDefaults {
        let mut defaults = DependentDefaults { changed: Vec::new(), lines: Vec::new() };
        for table in catalog.tables() {
            let before = defaults.lines.len();
            for (at, info) in table.columns.iter().enumerate() {
                let sequence = sequences.iter().find(|sequence| takes(info, **sequence));
                let sequence = sequence.and_then(|id| catalog.sequence_by_id(*id));
                let Some(sequence) = sequence.filter(|_| !is_dropped(table, at)) else { continue };
                let (own, column) = (&table.relation.name, &table.relation.columns[at].name);
                let shown = catalog.shown(own);
                let line = format!("default value for column {column} of table {shown}");
                defaults.lines.push((line, catalog.shown(&sequence.name)));
            }
            if defaults.lines.len() > before {
                let mut changed = Table::clone(table);
                sequences.iter().for_each(|sequence| release(&mut changed, *sequence));
                defaults.changed.push(changed);
            }
        }
        defaults
    }

    /// Returns the notices of dropping `what` with `cascade`, one for each default.
    ///
    /// # Errors
    /// `DEPENDENT_OBJECTS`, if there are defaults and `cascade` is false.
    pub(super) fn dropped(&self, what: &str, cascade: bool) -> Result<Vec<String>> {
        if !self.lines.is_empty() && !cascade {
            let message = format!("cannot drop {what} because other objects depend on it");
            let line = |(default, sequence): &(String, String)| {
                format!("{default} depends on sequence {sequence}")
            };
            let lines: Vec<String> = self.lines.iter().map(line).collect();
            return Err(dependent(message, lines.join("\n")));
        }
        Ok(self.lines.iter().map(|(default, _)| format!("drop cascades to {default}")).collect())
    }
}

/// Gives a sequence to a column, with which it goes, or to none.
fn own_by(
    catalog: &Catalog,
    sequence: &Sequence,
    owner: Option<&ObjectName>,
    changed: &mut BTreeMap<ObjectId, Table>,
) -> Result<()> {
    let owns = |info: &ColumnInfo| info.sequence == Some(sequence.id);
    if let Some(before) = catalog.tables().find(|table| table.columns.iter().any(owns)) {
        let id = before.relation.id;
        let mut table = changed.remove(&id).unwrap_or_else(|| Table::clone(before));
        for info in table.columns.iter_mut().filter(|info| owns(info)) {
            if info.identity.is_some() {
                let message = "cannot change ownership of identity sequence";
                let name = &*sequence.name;
                let table = &before.relation.name;
                let detail = format!("Sequence \"{name}\" is linked to table \"{table}\".");
                return Err(Error::unsupported(message, "").with_detail(detail));
            }
            info.sequence = None;
        }
        changed.insert(table.relation.id, table);
    }
    let Some(owner) = owner else { return Ok(()) };
    let (table, column) = owner_of(catalog, owner)?;
    if table.relation.name.schema != sequence.name.schema {
        let message = "sequence must be in same schema as table it is linked to";
        return Err(Error::new(SqlState::WRONG_STATE, message));
    }
    let table = changed.entry(table.relation.id).or_insert_with(|| Table::clone(table));
    let info = &mut table.columns[usize::from(column)];
    if info.sequence.is_some() {
        let message = "a second sequence of one column is not supported";
        return Err(Error::unsupported(message, "Give the first one to no column before."));
    }
    info.sequence = Some(sequence.id);
    Ok(())
}

/// The table and column of OWNED BY.
fn owner_of<'c>(catalog: &'c Catalog, owner: &ObjectName) -> Result<(&'c Table, ColumnNumber)> {
    let (table, column) = match &owner.0[..] {
        [table @ .., ObjectNamePart::Identifier(column)] if !table.is_empty() => {
            (written_name(&ObjectName(table.to_vec()))?, name_of(column))
        }
        _ => {
            let error = Error::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option");
            return Err(error.with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
        }
    };
    let own = catalog.relation(&table)?;
    let Some(found) = catalog.table(&own) else {
        return Err(match catalog.is_named(&own) {
            true => {
                let message = format!("sequence cannot be owned by relation \"{table}\"");
                Error::new(SqlState::WRONG_OBJECT, message)
            }
            false => table.missing(),
        });
    };
    let column = found.column(&column).ok_or_else(|| {
        let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
        Error::new(SqlState::UNDEFINED_COLUMN, message)
    })?;
    Ok((found, column))
}

/// ALTER SEQUENCE ... RENAME TO
pub(super) fn rename(catalog: &Catalog, own: &Sequence, new: &Name) -> Result<Definition> {
    if catalog.is_named(new) {
        return Definition::existing(TAG_OF_ALTER, new, false);
    }
    let mut delta = Delta::default();
    delta.put_sequence(&Sequence { name: new.clone(), ..own.clone() });
    for table in catalog.tables() {
        let is_shown = |info: &ColumnInfo| info.default_text.is_some() && takes(info, own.id);
        if !table.columns.iter().any(is_shown) {
            continue;
        }
        let mut next = Table::clone(table);
        for info in next.columns.iter_mut().filter(|info| is_shown(info)) {
            info.default_text = Some(format!("nextval('{new}'::regclass)"));
        }
        delta.put_table(&next);
    }
    Ok(Definition::new(TAG_OF_ALTER, delta))
}

pub(super) fn drop(
    catalog: &Catalog,
    names: &[ObjectName],
    if_exists: bool,
    cascade: bool,
) -> Result<Definition> {
    let mut definition = Definition::new("DROP SEQUENCE", Delta::default());
    for name in names {
        let written = written_name(name)?;
        let Some(own) = definition.found(catalog.relation(&written), if_exists)? else { continue };
        // Defaults may take numbers of several of them.
        let current = catalog.with(&definition.delta)?;
        let Some(sequence) = current.sequence(&own) else {
            definition.not_of_kind(&current, &own, RelationKind::Sequence, if_exists)?;
            continue;
        };
        drop_one(&current, sequence, cascade, &mut definition)?;
    }
    Ok(definition)
}

/// Drops a sequence, which its column has no more, with the defaults that take numbers of it if
/// `cascade`.
///
/// # Errors
/// Of the defaults that depend on it, and that it belongs to an identity column.
pub(super) fn drop_one(
    catalog: &Catalog,
    sequence: &Sequence,
    cascade: bool,
    definition: &mut Definition,
) -> Result<()> {
    let shown = format!("sequence {}", catalog.shown(&sequence.name));
    refuse_identity(catalog, sequence, &shown)?;
    let defaults = DependentDefaults::of(catalog, &[sequence.id], |_, _| false);
    for notice in defaults.dropped(&shown, cascade)? {
        definition.add_notice(&notice);
    }
    let tables = defaults.changed.into_iter();
    let mut changed = tables.map(|table| (table.relation.id, table)).collect();
    own_by(catalog, sequence, None, &mut changed)?;
    changed.values().for_each(|table| definition.delta.put_table(table));
    definition.delta.drop_sequence(sequence.id);
    Ok(())
}

/// Refuses to drop the sequence of an identity column.
fn refuse_identity(catalog: &Catalog, sequence: &Sequence, shown: &str) -> Result<()> {
    for table in catalog.tables() {
        let mut columns = table.relation.columns.iter().zip(&table.columns);
        let is_of =
            |info: &ColumnInfo| info.identity.is_some() && info.sequence == Some(sequence.id);
        if let Some((column, _)) = columns.find(|(_, info)| is_of(info)) {
            let (column, own) = (&column.name, catalog.shown(&table.relation.name));
            let column = format!("column {column} of table {own}");
            let message = format!("cannot drop {shown} because {column} requires it");
            return Err(Error::new(SqlState::DEPENDENT_OBJECTS, message)
                .with_hint(format!("You can drop {column} instead.")));
        }
    }
    Ok(())
}
