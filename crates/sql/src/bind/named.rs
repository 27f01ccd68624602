//! Functions of text, times, JSON and arrays whose arguments have stated types, and those that
//! PostgreSQL has and this does not.

use super::binder::Binder;
use super::coerce::{Bound, Form};
use super::described::{Described, described};
use super::expression::{call, word};
use super::functions::is_field_of_date;
use super::kinds::Willing;
use crate::ir::{Function, Kind, Op, PathQuery, Random, TimeFunction};
use values::{Datum, Error, Result, Type};

fn function_named(name: &str, count: usize) -> Option<Described<Function>> {
    use Function as F;
    use Type::{Bool, Date, Float8, Int4, Interval, Jsonb, Numeric, Text, Timestamp, Timestamptz};
    match (name, count) {
        ("split_part", 3) => described(F::SplitPart, &[Text, Text, Int4], Text),
        ("lpad", 3) => described(F::PadLeft, &[Text, Int4, Text], Text),
        ("rpad", 3) => described(F::PadRight, &[Text, Int4, Text], Text),
        ("initcap", 1) => described(F::InitCap, &[Text], Text),
        ("like_escape", 2) => described(F::EscapedPattern, &[Text, Text], Text),
        ("chr", 1) => described(F::CharOf, &[Int4], Text),
        ("ascii", 1) => described(F::CodeOf, &[Text], Int4),
        ("translate", 3) => described(F::Translate, &[Text, Text, Text], Text),
        ("overlay", 3 | 4) => described(F::Overlay, &[Text, Text, Int4, Int4], Text),
        ("starts_with", 2) => described(F::StartsWith, &[Text, Text], Bool),
        ("div", 2) => described(F::DivideWhole, &[Numeric, Numeric], Numeric),
        ("make_date", 3) => described(F::MakeDate, &[Int4, Int4, Int4], Date),
        ("make_time", 3) => described(F::MakeTime, &[Int4, Int4, Float8], Type::Time),
        ("make_timestamp", 6) => {
            described(F::MakeTimestamp, &[Int4, Int4, Int4, Int4, Int4, Float8], Timestamp)
        }
        ("to_timestamp", 2) => {
            described(F::Time(TimeFunction::ToTimestamp), &[Text, Text], Timestamptz)
        }
        ("to_date", 2) => described(F::Time(TimeFunction::ToDate), &[Text, Text], Date),
        ("justify_days", 1) => described(F::Time(TimeFunction::JustifyDays), &[Interval], Interval),
        ("justify_hours", 1) => {
            described(F::Time(TimeFunction::JustifyHours), &[Interval], Interval)
        }
        ("justify_interval", 1) => {
            described(F::Time(TimeFunction::JustifyInterval), &[Interval], Interval)
        }
        ("to_timestamp", 1) => described(F::FromEpoch, &[Float8], Timestamptz),
        ("jsonb_typeof" | "json_typeof", 1) => described(F::JsonType, &[Jsonb], Text),
        ("jsonb_array_length" | "json_array_length", 1) => {
            described(F::JsonArrayLength, &[Jsonb], Int4)
        }
        ("jsonb_strip_nulls", 1) => described(F::JsonStripNulls, &[Jsonb], Jsonb),
        _ => None,
    }
}

/// Functions of PostgreSQL that are not here, each with what to do instead.
const REFUSED: &[(&[&str], &str)] = &[
    (&["hashtext", "hashtextextended"], "Compute a hash in the application."),
    (&["currval", "lastval"], "Use RETURNING."),
    (&["timeofday"], "Use now()::text."),
    (&["setseed"], "Compute it in the application."),
    (
        &["digest", "hmac", "crypt", "gen_salt", "gen_random_bytes"],
        "There are md5, sha224, sha256, sha384 and sha512.",
    ),
    (
        &[
            "to_ascii",
            "normalize",
            "to_number",
            "array_fill",
            "json_object",
            "jsonb_object",
            "jsonb_pretty",
            "jsonb_insert",
            "jsonb_set_lax",
            "jsonb_path_query",
            "jsonb_path_query_first",
            "jsonb_path_query_array",
            "jsonb_path_exists",
            "jsonb_path_match",
            "to_tsvector",
            "to_tsquery",
            "plainto_tsquery",
            "websearch_to_tsquery",
            "ts_rank",
            "similarity",
            "txid_current",
            "pg_current_xact_id",
            "xmlelement",
        ],
        "",
    ),
    (&["range_agg", "xmlagg"], "There are no ranges and no XML."),
];

/// The refusal of a function that PostgreSQL has.
pub(super) fn refused(name: &str) -> Option<Error> {
    let (_, instead) = REFUSED.iter().find(|(names, _)| names.contains(&name))?;
    Some(Error::unsupported(format!("function {name} is not supported"), instead))
}

fn text_array() -> Type {
    Type::Text.array().expect("there are arrays of text")
}

impl Binder<'_> {
    /// A function of stated types; `None` if there is none of this name and number of arguments.
    pub(super) fn named_function(&mut self, name: &str, all: Vec<Bound>) -> Result<Option<Bound>> {
        if let Some(found) = self.math_function(name, &all)? {
            return Ok(Some(found));
        }
        if let Some(found) = function_named(name, all.len()) {
            let all = self.coerced(all, found.arguments)?;
            return Ok(Some(call(found.function, all, found.result)));
        }
        self.text_function(name, all)
    }

    /// Functions of text, random values, and all others.
    fn text_function(&mut self, name: &str, mut all: Vec<Bound>) -> Result<Option<Bound>> {
        let random = |what, ty| Bound::new(vec![Op::Random(what)], Kind::plain(ty));
        Ok(Some(match (name, all.len()) {
            ("random", 0) => random(Random::Fraction, Type::Float8),
            ("gen_random_uuid" | "uuid_generate_v4", 0) => random(Random::Uuid, Type::Uuid),
            ("pi", 0) => Bound::constant(Datum::Float8(std::f64::consts::PI), Type::Float8),
            ("lpad" | "rpad", 2) => {
                let function = if name == "lpad" { Function::PadLeft } else { Function::PadRight };
                all.push(word(" "));
                let all = self.coerced(all, &[Type::Text, Type::Int4, Type::Text])?;
                call(function, all, Type::Text)
            }
            ("jsonb_path_exists", 2..=4) => self.json_query(PathQuery::Exists, all, false)?,
            ("jsonb_path_match", 2..=4) => self.json_query(PathQuery::Match, all, false)?,
            ("jsonb_path_query_array", 2..=4) => self.json_query(PathQuery::All, all, false)?,
            ("jsonb_path_query_first", 2..=4) => self.json_query(PathQuery::First, all, false)?,
            ("bit_length", 1) => {
                let ty = if all[0].ty() == Some(Type::Bytea) { Type::Bytea } else { Type::Text };
                let bytes = call(Function::OctetLength, self.coerced(all, &[ty])?, Type::Int4);
                let eight = Bound::constant(Datum::Int4(8), Type::Int4);
                call(Function::Multiply, vec![bytes, eight], Type::Int4)
            }
            ("to_hex", 1) => {
                let is_long = all[0].ty() == Some(Type::Int8);
                let ty = if is_long { Type::Int8 } else { Type::Int4 };
                call(Function::ToHex, self.coerced(all, &[ty])?, Type::Text)
            }
            ("concat_ws", 2..) => {
                let between = self.coerce(all.remove(0), Type::Text, Willing::Implicit)?;
                let rest = all.into_iter().map(|bound| self.settle(bound));
                let rest = rest.collect::<Result<Vec<_>>>()?;
                let all = [between].into_iter().chain(rest).collect();
                call(Function::ConcatSeparated, all, Type::Text)
            }
            ("string_to_array", 2 | 3) => {
                let all = self.coerced(all, &[Type::Text, Type::Text, Type::Text])?;
                call(Function::StringToArray, all, text_array())
            }
            ("pg_typeof", 1) if all[0].ty().is_none() => word("unknown"),
            ("pg_typeof", 1) => {
                let name = Form::Literal(all[0].type_name());
                self.coerce(Bound::untyped(name, None), Type::Regtype, Willing::Explicit)?
            }
            ("enum_first" | "enum_last" | "enum_range", 1 | 2) => {
                return self.enum_function(name, all);
            }
            _ => return self.time_function(name, all),
        }))
    }

    /// Functions of dates and times, and all others.
    fn time_function(&mut self, name: &str, mut all: Vec<Bound>) -> Result<Option<Bound>> {
        use Type::{Date, Float8, Interval, Text, Timestamp, Timestamptz};
        Ok(Some(match (name, all.len()) {
            ("current_date", 0) => self.now_as(Date)?,
            ("localtimestamp", 0) => self.now_as(Timestamp)?,
            ("localtime", 0) => self.now_as(Type::Time)?,
            ("current_time", 0) => {
                return Err(Error::unsupported(
                    format!("{name} is not supported"),
                    "There is no time with time zone: use LOCALTIME or CURRENT_TIMESTAMP.",
                ));
            }
            ("date_part", 2) => {
                let value = all.pop().unwrap_or_else(|| word(""));
                let field = match &all[0].form {
                    Form::Literal(field) => field.clone(),
                    _ => return Err(Error::unsupported("date_part of what is no literal", "")),
                };
                let value = match value.ty() {
                    // Other than EXTRACT it takes the hour of a date, which is that of midnight.
                    Some(Date) if !is_field_of_date(&field) => {
                        self.coerce(value, Timestamp, Willing::Implicit)?
                    }
                    _ => value,
                };
                let part = self.extract(&field, value)?;
                self.coerce(part, Float8, Willing::Explicit)?
            }
            ("date_trunc", 3) => {
                let all = self.coerced(all, &[Text, Timestamptz, Text])?;
                call(Function::DateTrunc, all, Timestamptz)
            }
            ("age", 1) => {
                let value = self.coerce(all.swap_remove(0), Timestamp, Willing::Assignment)?;
                let today = self.now_as(Date)?;
                let today = self.coerce(today, Timestamp, Willing::Implicit)?;
                call(Function::Age, vec![today, value], Interval)
            }
            ("age", 2) => {
                let is_local = all.iter().all(|bound| bound.ty() == Some(Timestamp));
                let ty = if is_local { Timestamp } else { Timestamptz };
                call(Function::Age, self.coerced(all, &[ty, ty])?, Interval)
            }
            ("date_bin", 3) => {
                let is_local = all[1].ty() == Some(Timestamp);
                let ty = if is_local { Timestamp } else { Timestamptz };
                call(Function::DateBin, self.coerced(all, &[Interval, ty, ty])?, ty)
            }
            ("isfinite", 1) if all[0].ty() == Some(Interval) => {
                call(Function::Time(TimeFunction::IsFiniteInterval), all, Type::Bool)
            }
            ("isfinite", 1) => {
                let ty = all[0].ty().unwrap_or(Timestamptz);
                let ty = if matches!(ty, Date | Timestamp) { ty } else { Timestamptz };
                call(Function::IsFinite, self.coerced(all, &[ty])?, Type::Bool)
            }
            ("to_char", 2) if all[0].ty().is_some_and(Type::is_number) => {
                let ty = match all[0].ty() {
                    Some(ty @ (Type::Float4 | Float8)) => ty,
                    _ => Type::Numeric,
                };
                call(Function::NumberText, self.coerced(all, &[ty, Text])?, Text)
            }
            ("to_char", 2) => self.time_text(all)?,
            _ => return self.made_time(name, all),
        }))
    }

    /// Functions that make times and intervals of numbers, and all others.
    fn made_time(&mut self, name: &str, mut all: Vec<Bound>) -> Result<Option<Bound>> {
        use Type::{Float8, Int4, Interval, Text, Timestamp, Timestamptz};
        Ok(Some(match (name, all.len()) {
            ("make_interval", _) => {
                let types = [Int4, Int4, Int4, Int4, Int4, Int4, Float8];
                let missing = types.iter().skip(all.len());
                all.extend(missing.map(|_| Bound::untyped(Form::Literal("0".to_owned()), None)));
                if all.len() > types.len() {
                    return Ok(None);
                }
                let all = self.coerced(all, &types)?;
                call(Function::Time(TimeFunction::MakeInterval), all, Interval)
            }
            ("make_timestamptz", 6 | 7) => {
                let zone = all.get(6).cloned();
                all.truncate(6);
                let all = self.coerced(all, &[Int4, Int4, Int4, Int4, Int4, Float8])?;
                let local = call(Function::MakeTimestamp, all, Timestamp);
                match zone {
                    Some(zone) => {
                        let zone = self.coerce(zone, Text, Willing::Implicit)?;
                        call(Function::AtTimeZone, vec![zone, local], Timestamptz)
                    }
                    None => call(Function::Time(TimeFunction::MakeZoned), vec![local], Timestamptz),
                }
            }
            ("similar_to_escape", 1 | 2) => {
                if all.len() == 1 {
                    all.push(word("\\"));
                }
                return self.pattern_function(name, all);
            }
            _ if name.starts_with("regexp_") => return self.pattern_function(name, all),
            _ => return self.jsonb_function(name, all),
        }))
    }

    /// The text of a point in time or a time of the day by a pattern.
    fn time_text(&mut self, mut all: Vec<Bound>) -> Result<Bound> {
        let ty = match all[0].ty() {
            Some(Type::Time) => {
                // The day of a time is never shown.
                let day = Datum::Timestamp(values::Timestamp::from_microseconds(0)?);
                let day = Bound::constant(day, Type::Timestamp);
                let time = self.coerce(all.remove(0), Type::Interval, Willing::Implicit)?;
                all.insert(0, call(Function::Add, vec![day, time], Type::Timestamp));
                Type::Timestamp
            }
            Some(Type::Timestamp) => Type::Timestamp,
            Some(Type::Timestamptz | Type::Date) => Type::Timestamptz,
            _ => {
                let message = format!("to_char of {}", all[0].type_name());
                return Err(Error::unsupported(message, "Use ::text."));
            }
        };
        let all = self.coerced(all, &[ty, Type::Text])?;
        Ok(call(Function::TimeText, all, Type::Text))
    }

    /// What is now as another type, on the clocks of the session.
    fn now_as(&mut self, ty: Type) -> Result<Bound> {
        let now = call(Function::Now, Vec::new(), Type::Timestamptz);
        self.coerce(now, ty, Willing::Explicit)
    }

    /// Functions that make other JSON of JSON, and all others.
    fn jsonb_function(&mut self, name: &str, mut all: Vec<Bound>) -> Result<Option<Bound>> {
        Ok(Some(match (name, all.len()) {
            ("jsonb_set", 3 | 4) => {
                if all.len() == 3 {
                    all.push(Bound::constant(Datum::Bool(true), Type::Bool));
                }
                let types = [Type::Jsonb, text_array(), Type::Jsonb, Type::Bool];
                call(Function::JsonSet, self.coerced(all, &types)?, Type::Jsonb)
            }
            ("jsonb_extract_path" | "jsonb_extract_path_text", 2..) => {
                let json = self.coerce(all.remove(0), Type::Jsonb, Willing::Implicit)?;
                let path = vec![Type::Text; all.len()];
                let path = self.coerced(all, &path)?;
                let code = Datum::Int4(i32::from(Type::Text.code()));
                let path = [Bound::constant(code, Type::Int4)].into_iter().chain(path).collect();
                let path = call(Function::MakeArray, path, text_array());
                match name.ends_with("_text") {
                    true => call(Function::JsonPathText, vec![json, path], Type::Text),
                    false => call(Function::JsonPath, vec![json, path], Type::Jsonb),
                }
            }
            _ => return self.system_function(name, all),
        }))
    }
}
