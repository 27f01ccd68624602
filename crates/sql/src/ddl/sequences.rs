//! Sequences.

use super::definition::Definition;
use crate::bind::table_name;
use crate::catalog::{Catalog, ColumnInfo, Delta, Sequence, Table};
use crate::ir::{Function, ObjectId, Op, Value};
use sqlparser::ast::{
    DataType, Expr, ObjectName, SequenceOptions, UnaryOperator, Value as Literal,
};
use values::{Datum, Error, Result, SqlState, Type};

/// The code of the sequence's next number.
pub(crate) fn next_value(sequence: &Sequence) -> Vec<Op> {
    let constant = |value: i64| Op::Constant(Value(Datum::Int8(value)));
    vec![
        Op::Next(sequence.id),
        constant(sequence.start),
        constant(sequence.increment),
        constant(sequence.minimum),
        constant(sequence.maximum),
        Op::Constant(Value(Datum::Bool(sequence.cycle))),
        Op::Call(Function::SequenceNumber, 6),
    ]
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, message)
}

/// A whole number, perhaps with a sign.
fn whole(expr: &Expr) -> Result<i64> {
    let refused = || Error::new(SqlState::SYNTAX_ERROR, format!("{expr} is no whole number"));
    let digits = |expr: &Expr| match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        _ => None,
    };
    let text = match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            digits(expr).map(|text| format!("-{text}"))
        }
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => digits(expr),
        expr => digits(expr),
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(refused)
}

/// A sequence with these options; its numbers fit `ty`.
pub(super) fn from_options(
    id: ObjectId,
    name: &str,
    ty: Type,
    options: &[SequenceOptions],
) -> Result<Sequence> {
    let mut ty = ty;
    let (mut increment, mut cycle) = (1, false);
    let (mut start, mut minimum, mut maximum) = (None, None, None);
    for option in options {
        match option {
            SequenceOptions::IncrementBy(expr, _) => increment = whole(expr)?,
            SequenceOptions::MinValue(expr) => minimum = expr.as_ref().map(whole).transpose()?,
            SequenceOptions::MaxValue(expr) => maximum = expr.as_ref().map(whole).transpose()?,
            SequenceOptions::StartWith(expr, _) => start = Some(whole(expr)?),
            SequenceOptions::Cycle(no) => cycle = !no,
            // Numbers are given one by one, whatever a cache of them would be.
            SequenceOptions::Cache(expr) if whole(expr)? > 0 => {}
            SequenceOptions::Cache(_) => {
                return Err(invalid("CACHE must be greater than zero".into()));
            }
            SequenceOptions::DataType(DataType::SmallInt(None)) => ty = Type::Int2,
            SequenceOptions::DataType(DataType::Integer(None) | DataType::Int(None)) => {
                ty = Type::Int4
            }
            SequenceOptions::DataType(DataType::BigInt(None)) => ty = Type::Int8,
            SequenceOptions::OwnedBy(None) => {}
            other => {
                return Err(Error::unsupported(
                    format!("sequence option{other} is not supported"),
                    "",
                ));
            }
        }
    }
    let (low, high) = match ty {
        Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero".to_owned()));
    }
    let (minimum, maximum) = match increment {
        1.. => (minimum.unwrap_or(1), maximum.unwrap_or(high)),
        _ => (minimum.unwrap_or(low), maximum.unwrap_or(-1)),
    };
    let start = start.unwrap_or(if increment > 0 { minimum } else { maximum });
    if minimum >= maximum {
        let message = format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})");
        return Err(invalid(message));
    }
    if minimum < low || maximum > high {
        return Err(invalid(format!(
            "MINVALUE or MAXVALUE is out of range for type {}",
            ty.name()
        )));
    }
    if !(minimum..=maximum).contains(&start) {
        let message = format!("START value ({start}) is not between MINVALUE and MAXVALUE");
        return Err(invalid(message));
    }
    Ok(Sequence { id, name: name.to_owned(), start, increment, minimum, maximum, cycle })
}

pub(super) fn create(
    catalog: &Catalog,
    name: &ObjectName,
    if_not_exists: bool,
    options: &[SequenceOptions],
) -> Result<Definition> {
    const TAG: &str = "CREATE SEQUENCE";
    let own = table_name(name)?;
    if catalog.is_named(&own) {
        return Definition::existing(TAG, &own, if_not_exists);
    }
    let id = catalog.next_id();
    let mut delta = Delta::default();
    delta.put_sequence(&from_options(id, &own, Type::Int8, options)?);
    delta.set_next_id(id.next());
    Ok(Definition::new(TAG, delta))
}

/// ALTER SEQUENCE ... RENAME TO
pub(super) fn rename(catalog: &Catalog, own: &Sequence, new: &str) -> Result<Definition> {
    const TAG: &str = "ALTER SEQUENCE";
    if catalog.is_named(new) {
        return Definition::existing(TAG, new, false);
    }
    let mut delta = Delta::default();
    delta.put_sequence(&Sequence { name: new.to_owned(), ..own.clone() });
    for table in catalog.tables() {
        let takes = |info: &ColumnInfo| {
            let default = info.default.as_ref();
            info.default_text.is_some()
                && default.is_some_and(|default| default.code.contains(&Op::Next(own.id)))
        };
        if !table.columns.iter().any(takes) {
            continue;
        }
        let mut next = Table::clone(table);
        for info in next.columns.iter_mut().filter(|info| takes(info)) {
            info.default_text = Some(format!("nextval('{new}'::regclass)"));
        }
        delta.put_table(&next);
    }
    Ok(Definition::new(TAG, delta))
}

pub(super) fn drop(
    catalog: &Catalog,
    names: &[ObjectName],
    if_exists: bool,
    cascade: bool,
) -> Result<Definition> {
    let mut definition = Definition::new("DROP SEQUENCE", Delta::default());
    for name in names {
        let own = table_name(name)?;
        let Some(sequence) = catalog.sequence(&own) else {
            let message = format!("sequence \"{own}\" does not exist");
            let error = Error::new(SqlState::UNDEFINED_TABLE, message);
            definition.skip_missing(error, if_exists)?;
            continue;
        };
        let needed = catalog.tables().find(|table| {
            table.columns.iter().any(|column| {
                let default = column.default.as_ref();
                default.is_some_and(|default| default.code.contains(&Op::Next(sequence.id)))
            })
        });
        if let Some(table) = needed {
            let what = format!("cannot drop sequence {own} because other objects depend on it");
            let hint = if cascade {
                "Drop the default or the table first: CASCADE is not supported for sequences."
            } else {
                "Drop the default or the table first."
            };
            return Err(Error::new(SqlState::DEPENDENT_OBJECTS, what)
                .with_detail(format!("table {} depends on sequence {own}", table.relation.name))
                .with_hint(hint));
        }
        definition.delta.drop_sequence(sequence.id);
    }
    Ok(definition)
}
