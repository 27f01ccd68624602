//! Expressions of the catalog as text again: their programs in PostgreSQL's spelling.

use super::names::quoted;
use super::shown_calls::{Bond, Part, function_call};
use crate::catalog::Catalog;
use crate::ir::{Expression, Function, Kind, Op, QueryNumber, Random, Relation, Use};
use std::collections::BTreeMap;
use values::{Datum, Type, Zone, text};

/// Writes programs.
pub(crate) struct Writer<'c> {
    /// Where sequences have their names.
    pub(crate) catalog: &'c Catalog,
    /// The columns that they name.
    pub(crate) columns: Columns<'c>,
    /// Brackets only where they are needed.
    pub(crate) pretty: bool,
    /// The expression as it was written, which says what a program does not: `now()` or
    /// `CURRENT_TIMESTAMP`.
    pub(crate) source: Option<&'c str>,
}

/// The columns that a program names.
#[derive(Clone, Copy)]
pub(crate) enum Columns<'c> {
    /// Those of a table.
    Of(&'c Relation),
    /// Those of the rows of a query, and of the rows around it.
    Named(Names<'c>),
}

/// What the columns of rows are called.
#[derive(Clone, Copy)]
pub(crate) struct Names<'c> {
    /// Those of the row itself.
    pub(crate) own: &'c [ColumnName],
    /// Those of the rows in which its query is computed, by the depths of their queries.
    pub(crate) outer: &'c BTreeMap<u16, Vec<ColumnName>>,
}

/// What a column is called.
#[derive(Clone, Default)]
pub(crate) struct ColumnName {
    /// Its text; `None` if it has none.
    pub(crate) text: Option<String>,
    /// Its type, if that is known.
    pub(crate) ty: Option<Type>,
}

/// An expression over the rows of a table; `own` is the type that its value gets by itself, whose
/// cast is not shown. `None` of a program that no text was for.
pub(super) fn expression(
    writer: &Writer<'_>,
    expression: &Expression,
    own: Option<Kind>,
) -> Option<String> {
    let mut code = &expression.code[..];
    let mut untyped = own.map(|own| own.ty);
    while let (Some(_), [before @ .., Op::Cast(to, true)]) = (own, code) {
        code = before;
        untyped = Some(to.ty);
    }
    let mut part = writer.program(code)?;
    if let (Some(ty), [Op::Constant(value)]) = (untyped, code)
        && matches!(value.0, Datum::Text(_) | Datum::Null)
    {
        part = writer.constant(&value.0, ty);
    }
    Some(part.text)
}

/// An expression over rows as EXPLAIN shows it, without brackets around it.
pub(crate) fn expression_text(
    catalog: &Catalog,
    columns: Columns<'_>,
    expression: &Expression,
) -> Option<String> {
    let writer = Writer { catalog, columns, pretty: false, source: None };
    writer.program(&expression.code).map(|part| writer.bare(&part).to_owned())
}

/// An expression as a part of an index's key: in brackets unless it looks like the call of a
/// function.
pub(crate) fn key_text(writer: &Writer<'_>, expression: &Expression) -> String {
    let part = match &expression.code[..] {
        // The type of a key is shown where a cast to another whole number would not be.
        [inner @ .., Op::Cast(kind, _)] => writer.program(inner).map(|part| {
            let is_whole = writer.pretty && part.bond <= Bond::Cast;
            let text = if is_whole { part.text } else { writer.in_brackets(&part) };
            let text = format!("{text}::{}", writer.kind_name(kind));
            Part::new(text, Bond::Cast, Some(kind.ty))
        }),
        code => writer.program(code),
    };
    let Some(part) = part else { return "?".to_owned() };
    let is_call = match expression.code.last() {
        Some(Op::Call(function, _)) => part.bond == Bond::Whole && *function != Function::MakeArray,
        _ => part.text.starts_with("COALESCE("),
    };
    if is_call { part.text } else { format!("({})", part.text) }
}

impl ColumnName {
    fn part(&self) -> Option<Part> {
        Some(Part::new(self.text.clone()?, Bond::Whole, self.ty))
    }
}

/// A constant's text in quotes, as PostgreSQL shows expressions: backslashes are themselves.
fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Writer<'_> {
    fn program(&self, code: &[Op]) -> Option<Part> {
        let mut stack: Vec<Part> = Vec::new();
        let mut at = 0;
        while let Some(op) = code.get(at) {
            at += 1;
            let part = match op {
                Op::Constant(value) => match self.sequence_number(op, code, &mut at) {
                    Some(part) => part,
                    None => self.constant(&value.0, value.0.kind().unwrap_or(Type::Text)),
                },
                Op::Parameter(at) => {
                    Part::new(format!("${}", u32::from(*at) + 1), Bond::Whole, None)
                }
                Op::Next(_) => self.sequence_number(op, code, &mut at)?,
                Op::Random(Random::Fraction) => function_call("random()", Type::Float8),
                Op::Random(Random::Uuid) => function_call("gen_random_uuid()", Type::Uuid),
                Op::Column(column) => self.column(usize::from(*column))?,
                Op::Outer(depth, column) => match self.columns {
                    Columns::Of(_) => return None,
                    Columns::Named(names) => {
                        names.outer.get(depth)?.get(usize::from(*column))?.part()?
                    }
                },
                Op::Query(of, number) => self.query(*of, *number, &mut stack)?,
                Op::Cast(kind, _) => self.cast(stack.pop()?, *kind),
                Op::Call(function, count) => {
                    let begin = stack.len().checked_sub(*count as usize)?;
                    let arguments = stack.split_off(begin);
                    self.call(*function, &arguments)?
                }
                // The right side of AND and OR is behind its jump, with the call at its end.
                Op::JumpIf(_, count) => {
                    let end = at + *count as usize;
                    let right = self.program(code.get(at..end - 1)?)?;
                    let left = stack.pop()?;
                    let Op::Call(function, 2) = code.get(end - 1)? else { return None };
                    at = end;
                    self.call(*function, &[left, right])?
                }
                Op::JumpIfNotNull(count) => {
                    let end = at + *count as usize;
                    let rest = self.program(code.get(at + 1..end)?)?;
                    let first = stack.pop()?;
                    at = end;
                    match (first.ty, rest.is_null) {
                        (Some(ty), true) => coalesce(&first, &self.constant(&Datum::Null, ty)),
                        _ => coalesce(&first, &rest),
                    }
                }
                Op::JumpUnless(_) => {
                    let (part, end) = self.case(stack.pop()?, code, at - 1)?;
                    at = end;
                    part
                }
                _ => return None,
            };
            stack.push(part);
        }
        let part = stack.pop()?;
        stack.is_empty().then_some(part)
    }

    fn column(&self, at: usize) -> Option<Part> {
        match self.columns {
            Columns::Of(relation) => {
                let column = relation.columns.get(at)?;
                Some(Part::new(quoted(&column.name), Bond::Whole, Some(column.kind.ty)))
            }
            Columns::Named(names) => names.own.get(at)?.part(),
        }
    }

    /// What is made of the rows of a query, which EXPLAIN shows below.
    fn query(&self, of: Use, number: QueryNumber, stack: &mut Vec<Part>) -> Option<Part> {
        if let Columns::Of(_) = self.columns {
            return None;
        }
        let query = format!("SubPlan {}", usize::from(number) + 1);
        let mut operands = |count: u16| {
            let begin = stack.len().checked_sub(usize::from(count))?;
            let texts: Vec<String> = stack.drain(begin..).map(|part| part.text).collect();
            Some(if count == 1 { texts.concat() } else { format!("({})", texts.join(", ")) })
        };
        let (text, bond) = match of {
            Use::Value => (format!("({query})"), Bond::Whole),
            Use::Exists => (format!("EXISTS({query})"), Bond::Whole),
            Use::Array(_) | Use::ArrayOf(_) => (format!("ARRAY({query})"), Bond::Whole),
            Use::Any(Function::Equal, count) => {
                (format!("({} = ANY ({query}))", operands(count)?), Bond::Other)
            }
            Use::All(Function::NotEqual, count) => {
                (format!("({} <> ALL ({query}))", operands(count)?), Bond::Other)
            }
            Use::Any(..) | Use::All(..) => return None,
        };
        Some(Part::new(text, bond, None))
    }

    /// `nextval(...)`, whose program begins with this operation.
    fn sequence_number(&self, op: &Op, code: &[Op], at: &mut usize) -> Option<Part> {
        let Op::Next(id) = op else { return None };
        let is_call = |op: &Op| {
            use Function::{SequenceNumber, SequenceNumberAfter};
            matches!(op, Op::Call(SequenceNumber | SequenceNumberAfter, _))
        };
        let call = code[*at..].iter().position(is_call)?;
        *at += call + 1;
        let name = self.catalog.shown(&self.catalog.sequence_by_id(*id)?.name);
        Some(function_call(&format!("nextval({}::regclass)", in_quotes(&name)), Type::Int8))
    }

    /// CASE: tests with their results, each jumping to the next one. It stands on lines of its own.
    fn case(&self, first: Part, code: &[Op], jump: usize) -> Option<(Part, usize)> {
        let mut shown = "\nCASE".to_owned();
        let inner = |part: &Part| part.text.replace('\n', "\n    ");
        let (mut test, mut jump) = (first, jump);
        let mut ty = None;
        loop {
            let Op::JumpUnless(count) = code.get(jump)? else { return None };
            let behind = jump + 1 + *count as usize;
            let Op::Jump(rest) = code.get(behind - 1)? else { return None };
            let result = self.program(code.get(jump + 1..behind - 1)?)?;
            shown += &format!("\n    WHEN {} THEN {}", inner(&test), inner(&result));
            ty = ty.or(result.ty);
            let end = behind + *rest as usize;
            let others = code.get(behind..end)?;
            // Another test is a program up to a jump that reaches the end.
            let next = others.iter().enumerate().find_map(|(at, op)| match op {
                Op::JumpUnless(count) => {
                    let target = behind + at + *count as usize;
                    let leads = |rest: &u32| target + 1 + *rest as usize == end;
                    match code.get(target) {
                        Some(Op::Jump(rest)) if leads(rest) => Some(at),
                        _ => None,
                    }
                }
                _ => None,
            });
            match next.and_then(|at| Some((self.program(&others[..at])?, behind + at))) {
                Some((part, at)) => (test, jump) = (part, at),
                None => {
                    let last = match (others, ty) {
                        ([Op::Constant(value)], Some(ty)) if value.0.is_null() => {
                            self.constant(&value.0, ty)
                        }
                        _ => self.program(others)?,
                    };
                    shown += &format!("\n    ELSE {}\nEND", inner(&last));
                    return Some((Part::new(shown, Bond::Whole, ty), end));
                }
            }
        }
    }

    pub(super) fn constant(&self, value: &Datum, ty: Type) -> Part {
        let plain = |text| Part::new(text, Bond::Whole, Some(ty));
        let is_array_written =
            || self.source.is_some_and(|source| source.to_ascii_uppercase().contains("ARRAY["));
        match value {
            Datum::Null => {
                Part { is_null: true, ..plain(format!("NULL::{}", self.catalog.shown_type(ty))) }
            }
            Datum::Bool(value) => plain(value.to_string()),
            Datum::Array(array) if array.items().is_empty() && is_array_written() => {
                plain(format!("ARRAY[]::{}", self.catalog.shown_type(ty)))
            }
            Datum::Int2(_) | Datum::Int4(_) | Datum::Numeric(_) if is_plain_number(value) => {
                plain(text::print(value, &Zone::utc()))
            }
            value => {
                let name = match ty {
                    Type::Char => "bpchar".to_owned(),
                    // Without quotes it is one bit.
                    Type::Bit | Type::Varbit => "\"bit\"".to_owned(),
                    ty => self.catalog.shown_type(ty),
                };
                let text = in_quotes(&text::print(value, &Zone::utc()));
                Part::new(format!("{text}::{name}"), Bond::Cast, Some(ty))
            }
        }
    }

    /// The name of a type with its modifier, after its schema if that is needed.
    fn kind_name(&self, kind: &Kind) -> String {
        match kind.ty.enum_type() {
            Some(_) => self.catalog.shown_type(kind.ty),
            None => kind.modifier.name(kind.ty),
        }
    }

    fn cast(&self, part: Part, kind: Kind) -> Part {
        if let Some(word) = self.clock_word(&part, kind) {
            return function_call(word, kind.ty);
        }
        let text = if self.pretty && part.bond <= Bond::Cast {
            part.text.clone()
        } else {
            self.in_brackets(&part)
        };
        let text = format!("{text}::{}", self.kind_name(&kind));
        Part { uncast: Some(Box::new(part)), ..Part::new(text, Bond::Cast, Some(kind.ty)) }
    }

    /// The word for a cast of the clock, if it was written so, or nothing says how.
    fn clock_word(&self, part: &Part, kind: Kind) -> Option<&'static str> {
        let word = match kind.ty {
            _ if !part.is_clock || kind.modifier != values::Modifier::NONE => return None,
            Type::Date => "CURRENT_DATE",
            Type::Timestamp => "LOCALTIMESTAMP",
            Type::Time => "LOCALTIME",
            _ => return None,
        };
        self.source.is_none_or(|source| source.to_ascii_uppercase().contains(word)).then_some(word)
    }
}

/// Whether a number is of its type without being told: a `numeric` has a point.
fn is_plain_number(value: &Datum) -> bool {
    let shown = text::print(value, &Zone::utc());
    !shown.starts_with('-') && (!matches!(value, Datum::Numeric(_)) || shown.contains('.'))
}

fn coalesce(first: &Part, rest: &Part) -> Part {
    let typed = |text: &str| match (first.ty, text.strip_suffix("::text")) {
        (Some(Type::Varchar), Some(constant)) if constant.starts_with('\'') => {
            format!("{constant}::character varying")
        }
        _ => text.to_owned(),
    };
    let rest_text = match rest.text.strip_prefix("COALESCE(") {
        Some(inner) if rest.bond == Bond::Whole => inner.to_owned(),
        _ => format!("{})", typed(&rest.text)),
    };
    let text = format!("COALESCE({}, {rest_text}", typed(&first.text));
    Part::new(text, Bond::Whole, first.ty.or(rest.ty))
}

/// The sign of an operator with two operands.
pub(super) fn sign(function: Function) -> Option<(&'static str, Bond)> {
    Some(match function {
        Function::Add => ("+", Bond::Plus),
        Function::Subtract => ("-", Bond::Plus),
        Function::Multiply => ("*", Bond::Times),
        Function::Divide => ("/", Bond::Times),
        Function::Modulo => ("%", Bond::Times),
        Function::Equal => ("=", Bond::Compare),
        Function::NotEqual => ("<>", Bond::Compare),
        Function::Less => ("<", Bond::Compare),
        Function::LessEqual => ("<=", Bond::Compare),
        Function::Greater => (">", Bond::Compare),
        Function::GreaterEqual => (">=", Bond::Compare),
        Function::And => ("AND", Bond::And),
        Function::Or => ("OR", Bond::Or),
        Function::IsDistinct => ("IS DISTINCT FROM", Bond::Is),
        Function::Concat => ("||", Bond::Other),
        Function::Like => ("~~", Bond::Other),
        Function::ILike => ("~~*", Bond::Other),
        Function::BitAnd => ("&", Bond::Other),
        Function::BitOr => ("|", Bond::Other),
        Function::JsonField => ("->", Bond::Other),
        Function::JsonFieldText => ("->>", Bond::Other),
        Function::JsonPath => ("#>", Bond::Other),
        Function::JsonPathText => ("#>>", Bond::Other),
        Function::JsonContains | Function::ArrayContains => ("@>", Bond::Other),
        Function::ArrayOverlaps => ("&&", Bond::Other),
        Function::JsonHasKey => ("?", Bond::Other),
        Function::JsonHasAny => ("?|", Bond::Other),
        Function::JsonHasAll => ("?&", Bond::Other),
        Function::JsonConcat | Function::ArrayConcat => ("||", Bond::Other),
        Function::JsonDelete => ("-", Bond::Plus),
        Function::JsonDeletePath => ("#-", Bond::Other),
        Function::BitXor => ("#", Bond::Other),
        Function::ShiftLeft => ("<<", Bond::Other),
        Function::ShiftRight => (">>", Bond::Other),
        Function::Scale => ("*", Bond::Times),
        Function::ScaleDown => ("/", Bond::Times),
        _ => return None,
    })
}

/// The name of a function that is written as one.
pub(super) fn function_name(function: Function) -> Option<&'static str> {
    Some(match function {
        Function::Abs => "abs",
        Function::Sign => "sign",
        Function::Floor => "floor",
        Function::Ceiling => "ceil",
        Function::Round => "round",
        Function::Truncate => "trunc",
        Function::SquareRoot => "sqrt",
        Function::Power => "power",
        Function::Length => "length",
        Function::OctetLength => "octet_length",
        Function::Lower => "lower",
        Function::Upper => "upper",
        Function::Trim => "btrim",
        Function::TrimLeft => "ltrim",
        Function::TrimRight => "rtrim",
        Function::Substring => "substr",
        Function::Position => "strpos",
        Function::Replace => "replace",
        Function::Left => "left",
        Function::Right => "right",
        Function::Repeat => "repeat",
        Function::Reverse => "reverse",
        Function::ConcatAll => "concat",
        Function::Greatest => "GREATEST",
        Function::Least => "LEAST",
        Function::NullIf => "NULLIF",
        Function::Now => "now",
        Function::DateTrunc => "date_trunc",
        Function::AtTimeZone => "timezone",
        Function::SplitPart => "split_part",
        Function::PadLeft => "lpad",
        Function::PadRight => "rpad",
        Function::InitCap => "initcap",
        Function::ConcatSeparated => "concat_ws",
        Function::EscapedPattern => "like_escape",
        Function::CharOf => "chr",
        Function::CodeOf => "ascii",
        Function::Translate => "translate",
        Function::Overlay => "overlay",
        Function::StartsWith => "starts_with",
        Function::ToHex => "to_hex",
        Function::StringToArray => "string_to_array",
        Function::ArrayToString => "array_to_string",
        Function::ArrayLength => "array_length",
        Function::ArrayUpper => "array_upper",
        Function::ArrayLower => "array_lower",
        Function::ArrayPosition => "array_position",
        Function::ArrayAppend => "array_append",
        Function::ArrayPrepend => "array_prepend",
        Function::ArrayRemove => "array_remove",
        Function::ArrayCount => "cardinality",
        Function::JsonSet => "jsonb_set",
        Function::JsonType => "jsonb_typeof",
        Function::JsonArrayLength => "jsonb_array_length",
        Function::JsonStripNulls => "jsonb_strip_nulls",
        Function::DivideWhole => "div",
        Function::Age => "age",
        Function::MakeDate => "make_date",
        Function::MakeTimestamp => "make_timestamp",
        Function::MakeTime => "make_time",
        Function::DateBin => "date_bin",
        Function::IsFinite => "isfinite",
        Function::FromEpoch => "to_timestamp",
        Function::TimeText | Function::NumberText => "to_char",
        _ => return None,
    })
}
