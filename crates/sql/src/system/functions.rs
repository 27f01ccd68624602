//! Functions that look at the system catalog or the session.

use super::definitions::{of_constraint, of_index, of_index_column, of_view, with_few_brackets};
use super::names::{ROLES, class_name, find, shown};
use super::objects::{UTF8, constraints, indexes, number, table, view};
use super::session::System;
use super::{classes, comments, type_names};
use crate::catalog::Catalog;
use crate::ir::SystemFunction;
use crate::run::last_number;
use values::{Array, Datum, Error, Oid, Result, SqlState, Type};

/// The type whose code an argument is.
fn type_of(datum: &Datum) -> Result<Type> {
    match datum {
        Datum::Int2(code) => u8::try_from(*code).ok().and_then(Type::from_code),
        _ => None,
    }
    .ok_or_else(malformed)
}

fn malformed() -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "plan calls a function with other types")
}

fn user_name(id: i32) -> String {
    let found = ROLES.iter().find(|role| role.0 == id);
    found.map_or_else(|| format!("unknown (OID={id})"), |role| role.1.to_owned())
}

fn optional(text: Option<String>) -> Datum {
    text.map_or(Datum::Null, Datum::text)
}

impl System {
    /// The result of a function. NULL in gives NULL out but for the few that ask for it.
    pub(crate) fn call(&self, function: SystemFunction, arguments: &[Datum]) -> Result<Datum> {
        if let Some(result) = with_nulls(&self.catalog, function, arguments) {
            return result;
        }
        if arguments.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        if let Some(result) = of_values(function, arguments) {
            return result;
        }
        self.of_catalog(function, arguments)
    }

    /// The objects that texts name, as an array of this type.
    fn objects(&self, ty: Type, names: &Array) -> Result<Datum> {
        let Some(element) = ty.element() else { return Ok(Datum::Null) };
        let items = names.items().iter().map(|name| match name {
            Datum::Text(name) => find(&self.catalog, element, name).map(Datum::Int4),
            _ => Ok(Datum::Null),
        });
        let items = items.collect::<Result<Vec<_>>>()?;
        let array = Array::with_dimensions(element, names.dimensions().to_vec(), items)?;
        Ok(Datum::Array(Box::new(array)))
    }

    fn of_catalog(&self, function: SystemFunction, arguments: &[Datum]) -> Result<Datum> {
        let catalog = &self.catalog;
        Ok(match (function, arguments) {
            (SystemFunction::ProcessId, []) => Datum::Int4(self.session.process),
            (SystemFunction::CurrentSetting, [Datum::Text(name), rest @ ..]) => {
                self.session.setting(name, rest.first())?
            }
            (SystemFunction::ToObject, [ty, Datum::Text(text)]) => {
                Datum::Int4(find(catalog, type_of(ty)?, text)?)
            }
            (SystemFunction::ToObject, [ty, Datum::Array(names)]) => {
                self.objects(type_of(ty)?, names)?
            }
            (SystemFunction::FindObject, [ty, Datum::Text(text)]) => {
                find(catalog, type_of(ty)?, text).map_or(Datum::Null, Datum::Int4)
            }
            (SystemFunction::ObjectName, [ty, Datum::Int4(id)]) => {
                Datum::text(shown(catalog, type_of(ty)?, *id))
            }
            (SystemFunction::IndexDefinition, [Datum::Int4(id), rest @ ..]) => {
                optional(self.index_definition(*id, rest))
            }
            (SystemFunction::ConstraintDefinition, [Datum::Int4(id), rest @ ..]) => {
                let pretty = matches!(rest, [Datum::Bool(true)]);
                let all = constraints(catalog);
                let found = all.iter().find(|each| each.id == *id);
                optional(found.and_then(|each| of_constraint(catalog, each, pretty)))
            }
            (SystemFunction::ViewDefinition, [Datum::Int4(id), ..]) => {
                optional(view(catalog, *id).map(|view| of_view(catalog, view)))
            }
            (
                SystemFunction::ExpressionText,
                [Datum::Text(text), Datum::Int4(id), Datum::Bool(pretty)],
            ) => {
                let own = table(catalog, *id).filter(|_| *pretty);
                let found = own.and_then(|table| with_few_brackets(catalog, table, text));
                Datum::text(found.unwrap_or_else(|| text.to_string()))
            }
            (SystemFunction::Description, [Datum::Int4(id), rest @ ..]) => {
                let of = match rest {
                    [Datum::Text(of)] => Some(&**of),
                    _ => None,
                };
                optional(comments::of_object(catalog, *id, of))
            }
            (SystemFunction::ColumnDescription, [Datum::Int4(id), Datum::Int4(at)]) => {
                optional(comments::of_column(catalog, *id, *at))
            }
            (SystemFunction::SharedDescription, [Datum::Int4(id), Datum::Text(of)]) => {
                optional(comments::of_shared(catalog, *id, of))
            }
            (SystemFunction::UserName, [Datum::Int4(id)]) => Datum::text(user_name(*id)),
            (SystemFunction::IsVisible, [Datum::Int4(id)]) => {
                let class = class_name(catalog, *id).map(|(_, visible)| visible);
                let ty = || is_visible_type(catalog, *id);
                Datum::Bool(class.or_else(ty).unwrap_or(true))
            }
            (SystemFunction::SerialSequence, [Datum::Text(table), Datum::Text(column)]) => {
                let table = find(catalog, Type::Regclass, table)?;
                optional(classes::serial_sequence(catalog, table, column))
            }
            (SystemFunction::SequenceLast, [Datum::Int4(id)]) => self.last_of_sequence(*id)?,
            (function, _) if function.has_effect() => self.services()?.call(function, arguments)?,
            _ => return Err(malformed()),
        })
    }

    /// The number that a sequence gave last; NULL if it gave none yet.
    pub(super) fn last_of_sequence(&self, id: i32) -> Result<Datum> {
        let mut sequences = self.catalog.sequences();
        let Some(sequence) = sequences.find(|sequence| number(sequence.id) == id) else {
            let message = format!("could not open relation with OID {id}");
            return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
        };
        let Some(services) = self.services.as_deref() else {
            let message = "numbers of sequences are read by queries of their own";
            return Err(Error::unsupported(message, "Read them before."));
        };
        Ok(match services.given(sequence.id)?.checked_sub(1) {
            Some(before) => Datum::Int8(last_number(sequence, before)),
            None if sequence.is_called => Datum::Int8(sequence.last),
            None => Datum::Null,
        })
    }

    fn index_definition(&self, id: i32, rest: &[Datum]) -> Option<String> {
        let mut all = self.catalog.tables().flat_map(|table| indexes(table));
        let index = all.find(|index| index.id == id)?;
        match rest {
            [Datum::Int4(0), Datum::Bool(pretty)] => Some(of_index(&self.catalog, &index, *pretty)),
            [Datum::Int4(at), pretty] => {
                let at = usize::try_from(*at).ok()?.checked_sub(1)?;
                of_index_column(&self.catalog, &index, at, *pretty == Datum::Bool(true))
            }
            _ => Some(of_index(&self.catalog, &index, false)),
        }
    }
}

/// Whether a type that a statement has made is found by its name alone.
fn is_visible_type(catalog: &Catalog, id: i32) -> Option<bool> {
    let ty = catalog.type_by_oid(Oid::new(id as u32))?;
    let own = ty.enum_type().or_else(|| ty.element()?.enum_type())?;
    Some(catalog.is_visible_type(own))
}

/// Functions for which NULL is an argument as others are.
fn with_nulls(
    catalog: &Catalog,
    function: SystemFunction,
    arguments: &[Datum],
) -> Option<Result<Datum>> {
    let result = match (function, arguments) {
        (SystemFunction::FormatType, [Datum::Null, _]) => Ok(Datum::Null),
        (SystemFunction::FormatType, [Datum::Int4(id), modifier]) => {
            let modifier = match modifier {
                Datum::Int4(modifier) => Some(*modifier),
                _ => None,
            };
            Ok(Datum::text(type_names::formatted(catalog, *id, modifier)))
        }
        (SystemFunction::FormatTypes, [Datum::Array(ids)]) => {
            let name = |id: &Datum| match id {
                Datum::Int4(id) => type_names::formatted(catalog, *id, None),
                _ => type_names::formatted(catalog, 0, None),
            };
            let names: Vec<String> = ids.items().iter().map(name).collect();
            Ok(Datum::text(names.join(", ")))
        }
        _ => return None,
    };
    Some(result)
}

/// A length, precision or scale of a type by its object id, as `information_schema` defines them;
/// `None` if the type has none, or its `modifier` says nothing.
fn type_measure(function: SystemFunction, id: i32, modifier: i32) -> Option<i32> {
    use SystemFunction as F;
    let ty = Type::scalars().find(|ty| ty.oid().number() as i32 == id)?;
    let stated = (modifier != -1).then_some(modifier - 4);
    match (function, ty) {
        (F::CharMaxLength, Type::Bit | Type::Varbit) if modifier >= 0 => Some(modifier),
        (F::CharMaxLength, Type::Char | Type::Varchar) => stated,
        (F::NumericPrecision, Type::Int2) => Some(16),
        (F::NumericPrecision, Type::Int4) => Some(32),
        (F::NumericPrecision, Type::Int8) => Some(64),
        (F::NumericPrecision, Type::Float4) => Some(24),
        (F::NumericPrecision, Type::Float8) => Some(53),
        (F::NumericPrecision, Type::Numeric) => stated.map(|digits| digits >> 16 & 0xffff),
        (F::NumericScale, Type::Int2 | Type::Int4 | Type::Int8) => Some(0),
        (F::NumericScale, Type::Numeric) => stated.map(|digits| digits & 0xffff),
        (F::DatetimePrecision, Type::Date) => Some(0),
        (F::DatetimePrecision, Type::Time | Type::Timestamp | Type::Timestamptz) => {
            Some(if modifier < 0 { 6 } else { modifier })
        }
        (F::DatetimePrecision, Type::Interval) => {
            let digits = modifier & 0xffff;
            Some(if modifier < 0 || digits == 0xffff { 6 } else { digits })
        }
        _ => None,
    }
}

/// Functions of their arguments only.
fn of_values(function: SystemFunction, arguments: &[Datum]) -> Option<Result<Datum>> {
    Some(Ok(match (function, arguments) {
        (SystemFunction::EncodingName, [Datum::Int4(encoding)]) => {
            Datum::text(if *encoding == UTF8 { "UTF8" } else { "" })
        }
        (SystemFunction::EncodingNumber, [Datum::Text(name)]) => {
            let is_utf8 = name.eq_ignore_ascii_case("utf8") || name.eq_ignore_ascii_case("utf-8");
            Datum::Int4(if is_utf8 { UTF8 } else { -1 })
        }
        (
            function @ (SystemFunction::CharMaxLength
            | SystemFunction::NumericPrecision
            | SystemFunction::NumericScale
            | SystemFunction::DatetimePrecision),
            [Datum::Int4(ty), Datum::Int4(modifier)],
        ) => type_measure(function, *ty, *modifier).map_or(Datum::Null, Datum::Int4),
        (SystemFunction::SizePretty, [Datum::Int8(size)]) => Datum::text(pretty_size(*size)),
        _ => return None,
    }))
}

/// Bytes, or the largest unit of which there are at least ten.
fn pretty_size(size: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (size, 0);
    while value.unsigned_abs() >= 10_240 && unit + 1 < UNITS.len() {
        value = (value + value.signum() * 512) / 1_024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}
