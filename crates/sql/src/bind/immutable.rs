//! Whether an expression comes to the same for the same row at any time and in any session, by the
//! rules of PostgreSQL: only such ones may be in indexes.

use crate::ir::{Function, Kind, Op, Relation, TextFunction, TimeFunction};
use std::collections::BTreeMap;
use values::Type;

/// Whether a program over rows of a table is immutable. Regular expressions are where what they
/// come to is kept in rows alone: entries of an index would be those of other rules.
pub(super) fn is_immutable(code: &[Op], relation: &Relation, is_of_rows: bool) -> bool {
    let mut entered: BTreeMap<usize, Vec<Option<Type>>> = BTreeMap::new(); // at targets of jumps
    let mut types: Vec<Option<Type>> = Vec::new();
    for (at, op) in code.iter().enumerate() {
        if let Some(stack) = entered.remove(&at) {
            types = stack;
        }
        let target = |count: &u32| at + 1 + *count as usize;
        match op {
            Op::Constant(value) => types.push(value.0.kind()),
            Op::Column(column) => {
                let column = relation.columns.get(usize::from(*column));
                types.push(column.map(|column| column.kind.ty));
            }
            Op::Call(function, count) => {
                let begin = types.len().saturating_sub(*count as usize);
                let arguments = types.split_off(begin);
                let is_pattern = is_of_rows && matches!(function, Function::Pattern(_));
                if !is_pattern && !is_call_immutable(*function, &arguments) {
                    return false;
                }
                types.push(result(*function, &arguments));
            }
            Op::Cast(kind, _) => {
                let from = types.pop().flatten();
                if !is_cast_immutable(from, *kind) {
                    return false;
                }
                types.push(Some(kind.ty));
            }
            Op::Jump(count) => drop(entered.insert(target(count), types.clone())),
            Op::JumpIf(_, count) | Op::JumpIfNotNull(count) => {
                entered.insert(target(count), types.clone());
            }
            Op::Unclaimed(_) | Op::Claim(_) => return false,
            Op::JumpUnless(count) => {
                types.pop();
                entered.insert(target(count), types.clone());
            }
            Op::Pop => drop(types.pop()),
            Op::Parameter(_)
            | Op::Next(_)
            | Op::Outer(..)
            | Op::Query(..)
            | Op::System(..)
            | Op::Random(_) => return false,
        }
    }
    true
}

/// The type, or that of its elements.
fn element(ty: Type) -> Type {
    ty.element().unwrap_or(ty)
}

fn is_zoned(ty: Option<Type>) -> bool {
    ty.is_some_and(|ty| element(ty) == Type::Timestamptz)
}

/// Settings of the session decide what text of times is, and a catalog what that of enums is.
fn is_cast_immutable(from: Option<Type>, to: Kind) -> bool {
    let is_text = |ty: Type| ty.is_text() || matches!(ty, Type::Json | Type::Jsonb);
    let to = element(to.ty);
    let Some(from) = from.map(element) else {
        return !matches!(to, Type::Timestamptz | Type::Timestamp | Type::Date | Type::Enum(_));
    };
    if (from == Type::Timestamptz) != (to == Type::Timestamptz) {
        return false;
    }
    let is_shown = |ty| matches!(ty, Type::Date | Type::Timestamp | Type::Enum(_));
    let is_read = |ty| matches!(ty, Type::Time | Type::Interval);
    !(is_shown(from) && is_text(to) || is_text(from) && (is_shown(to) || is_read(to)))
}

fn is_call_immutable(function: Function, arguments: &[Option<Type>]) -> bool {
    match function {
        Function::Now
        | Function::ConcatAll
        | Function::ConcatSeparated
        | Function::ArrayToString
        | Function::TimeText
        | Function::NumberText
        | Function::ToJson
        | Function::ToJsonText
        | Function::JsonBuildObject
        | Function::JsonBuildArray
        | Function::JsonTextBuildObject
        | Function::JsonTextBuildArray
        | Function::JsonRow
        | Function::MakeRecord
        | Function::TableRow
        | Function::EnumRange
        | Function::Pattern(_)
        | Function::Time(TimeFunction::ToDate | TimeFunction::ToTimestamp)
        | Function::Time(TimeFunction::MakeZoned)
        | Function::Text(TextFunction::Format) => false,
        Function::Text(TextFunction::QuoteLiteral | TextFunction::QuoteNullable) => {
            arguments.iter().all(|ty| ty.is_some_and(|ty| ty.is_text() || ty.is_integer()))
        }
        Function::Equal
        | Function::NotEqual
        | Function::Less
        | Function::LessEqual
        | Function::Greater
        | Function::GreaterEqual
        | Function::IsNull
        | Function::IsNotNull
        | Function::IsDistinct
        | Function::Text(TextFunction::CountNulls | TextFunction::CountValues)
        | Function::In
        | Function::EqualAny
        | Function::Greatest
        | Function::Least
        | Function::NullIf
        | Function::MakeArray
        | Function::Subscript
        | Function::IsFinite
        | Function::DateBin
        | Function::AtTimeZone => true,
        Function::Subtract if arguments.iter().all(|ty| is_zoned(*ty)) => true,
        _ => !arguments.iter().any(|ty| is_zoned(*ty)),
    }
}

/// The type of a result, where it matters: whether it is a time, an enum or an array of these.
fn result(function: Function, arguments: &[Option<Type>]) -> Option<Type> {
    let has = |ty: Type| arguments.contains(&Some(ty));
    match function {
        Function::Add | Function::Subtract => {
            let times = [Type::Timestamptz, Type::Timestamp, Type::Date];
            let is_difference = arguments.first() == arguments.last();
            times.into_iter().find(|ty| has(*ty) && !is_difference)
        }
        Function::Greatest | Function::Least | Function::NullIf => *arguments.first()?,
        Function::DateTrunc | Function::DateBin | Function::MakeArray => *arguments.get(1)?,
        Function::AtTimeZone => match has(Type::Timestamptz) {
            true => Some(Type::Timestamp),
            false => Some(Type::Timestamptz),
        },
        Function::Subscript => (*arguments.first()?).map(element),
        Function::MakeDate => Some(Type::Date),
        Function::MakeTimestamp => Some(Type::Timestamp),
        Function::MakeTime => Some(Type::Time),
        Function::FromEpoch => Some(Type::Timestamptz),
        _ => None,
    }
}
