//! Expressions of the catalog as text again: their programs in PostgreSQL's spelling.

use super::families;
use super::names::{literal, quoted};
use crate::catalog::Catalog;
use crate::ir::{Expression, Function, Kind, Op, PatternFunction, Random, Relation};
use values::{Datum, Type, Zone, text};

/// How tight an expression holds together; more is looser.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Bond {
    Whole,
    Cast,
    Times,
    Plus,
    Other,
    Compare,
    Is,
    Not,
    And,
    Or,
    /// A comparison with any of a list.
    Listed,
}

/// A part that is written already.
#[derive(Clone)]
struct Part {
    text: String,
    bond: Bond,
    ty: Option<Type>,
}

/// Writes programs.
pub(crate) struct Writer<'c> {
    /// Where sequences have their names.
    pub(crate) catalog: &'c Catalog,
    /// The table whose columns they name.
    pub(crate) relation: &'c Relation,
    /// Brackets only where they are needed.
    pub(crate) pretty: bool,
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
        && matches!(value.0, Datum::Text(_))
    {
        part = writer.constant(&value.0, ty);
    }
    Some(part.text)
}

/// An expression over the rows of a table as EXPLAIN shows it.
pub(crate) fn expression_text(
    catalog: &Catalog,
    relation: &Relation,
    expression: &Expression,
) -> Option<String> {
    let writer = Writer { catalog, relation, pretty: false };
    writer.program(&expression.code).map(|part| part.text)
}

/// An expression as a part of an index's key: in brackets unless it looks like the call of a
/// function.
pub(crate) fn key_text(writer: &Writer<'_>, expression: &Expression) -> String {
    let part = match &expression.code[..] {
        // The type of a key is shown where a cast to another whole number would not be.
        [inner @ .., Op::Cast(kind, _)] => writer.program(inner).map(|part| {
            let is_whole = writer.pretty && part.bond <= Bond::Cast;
            let inner = if is_whole { part.text } else { format!("({})", part.text) };
            let text = format!("{inner}::{}", kind.modifier.name(kind.ty));
            Part { text, bond: Bond::Cast, ty: Some(kind.ty) }
        }),
        code => writer.program(code),
    };
    let Some(part) = part else { return "?".to_owned() };
    let is_call = match expression.code.last() {
        Some(Op::Call(function, _)) => part.bond == Bond::Whole && *function != Function::MakeArray,
        _ => part.text.starts_with("COALESCE("),
    };
    match is_call {
        true => part.text,
        false if part.bond > Bond::Cast && !writer.pretty => format!("(({}))", part.text),
        false => format!("({})", part.text),
    }
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
                    Part { text: format!("${}", u32::from(*at) + 1), bond: Bond::Whole, ty: None }
                }
                Op::Next(_) => self.sequence_number(op, code, &mut at)?,
                Op::Random(Random::Fraction) => function_call("random()", Type::Float8),
                Op::Random(Random::Uuid) => function_call("gen_random_uuid()", Type::Uuid),
                Op::Column(column) => {
                    let column = self.relation.columns.get(usize::from(*column))?;
                    let (text, ty) = (quoted(&column.name), Some(column.kind.ty));
                    Part { text, bond: Bond::Whole, ty }
                }
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
                    coalesce(&first, &rest)
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

    /// `nextval(...)`, whose program begins with this operation.
    fn sequence_number(&self, op: &Op, code: &[Op], at: &mut usize) -> Option<Part> {
        let Op::Next(id) = op else { return None };
        let is_call = |op: &Op| {
            use Function::{SequenceNumber, SequenceNumberAfter};
            matches!(op, Op::Call(SequenceNumber | SequenceNumberAfter, _))
        };
        let call = code[*at..].iter().position(is_call)?;
        *at += call + 1;
        let name = quoted(&self.catalog.sequence_by_id(*id)?.name);
        let text = format!("nextval({}::regclass)", literal(&name));
        Some(Part { text, bond: Bond::Whole, ty: Some(Type::Int8) })
    }

    /// CASE: tests with their results, each jumping to the next one.
    fn case(&self, first: Part, code: &[Op], jump: usize) -> Option<(Part, usize)> {
        let mut shown = "CASE".to_owned();
        let (mut test, mut jump) = (first, jump);
        let mut ty = None;
        loop {
            let Op::JumpUnless(count) = code.get(jump)? else { return None };
            let behind = jump + 1 + *count as usize;
            let Op::Jump(rest) = code.get(behind - 1)? else { return None };
            let result = self.program(code.get(jump + 1..behind - 1)?)?;
            shown += &format!(" WHEN {} THEN {}", test.text, result.text);
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
                    let last = self.program(others)?;
                    shown += &format!(" ELSE {} END", last.text);
                    return Some((Part { text: shown, bond: Bond::Whole, ty }, end));
                }
            }
        }
    }

    fn constant(&self, value: &Datum, ty: Type) -> Part {
        let plain = |text| Part { text, bond: Bond::Whole, ty: Some(ty) };
        match value {
            Datum::Null => plain(format!("NULL::{}", ty.name())),
            Datum::Bool(value) => plain(value.to_string()),
            Datum::Int2(_) | Datum::Int4(_) | Datum::Numeric(_)
                if !text::print(value, &Zone::utc()).starts_with('-') =>
            {
                plain(text::print(value, &Zone::utc()))
            }
            value => {
                let name = if ty == Type::Char { "bpchar".to_owned() } else { ty.name() };
                let text = literal(&text::print(value, &Zone::utc()));
                Part { text: format!("{text}::{name}"), bond: Bond::Cast, ty: Some(ty) }
            }
        }
    }

    fn cast(&self, part: Part, kind: Kind) -> Part {
        let word = match (part.text.as_str(), kind.ty) {
            ("now()", Type::Date) => Some("CURRENT_DATE"),
            ("now()", Type::Timestamp) => Some("LOCALTIMESTAMP"),
            _ => None,
        };
        if let Some(word) = word.filter(|_| kind.modifier == values::Modifier::NONE) {
            return function_call(word, kind.ty);
        }
        let whole = |ty: Type| matches!(ty, Type::Int2 | Type::Int4 | Type::Int8);
        // Whole numbers are compared as they are in PostgreSQL.
        if whole(kind.ty) && part.ty.is_some_and(whole) {
            return Part { ty: Some(kind.ty), ..part };
        }
        let inner = if self.pretty && part.bond <= Bond::Cast {
            part.text
        } else {
            format!("({})", part.text)
        };
        let text = format!("{inner}::{}", kind.modifier.name(kind.ty));
        Part { text, bond: Bond::Cast, ty: Some(kind.ty) }
    }

    /// The text as an operand of what holds so tight.
    fn operand(&self, part: &Part, outer: Bond) -> String {
        let is_loose = if self.pretty { part.bond >= outer } else { part.bond > Bond::Cast };
        let is_chain = matches!(outer, Bond::And | Bond::Or) && part.bond == outer;
        if is_loose && !(self.pretty && is_chain) {
            format!("({})", part.text)
        } else {
            part.text.clone()
        }
    }

    fn infix(&self, sign: &str, bond: Bond, arguments: &[Part], ty: Type) -> Option<Part> {
        let [left, right] = arguments else { return None };
        let text = format!("{} {sign} {}", self.operand(left, bond), self.operand(right, bond));
        Some(Part { text, bond, ty: Some(ty) })
    }

    fn call(&self, function: Function, arguments: &[Part]) -> Option<Part> {
        let own = arguments.first().and_then(|part| part.ty).unwrap_or(Type::Text);
        if let Some((sign, bond)) = sign(function) {
            let ty = if bond >= Bond::Compare { Type::Bool } else { own };
            return self.infix(sign, bond, arguments, ty);
        }
        let one = |bond| arguments.first().map(|part| self.operand(part, bond));
        let (text, bond, ty) = match function {
            Function::Not => (format!("NOT {}", one(Bond::Not)?), Bond::Not, Type::Bool),
            Function::Negate => (format!("- {}", one(Bond::Cast)?), Bond::Other, own),
            Function::IsNull => (format!("{} IS NULL", one(Bond::Is)?), Bond::Is, Type::Bool),
            Function::IsNotNull => {
                (format!("{} IS NOT NULL", one(Bond::Is)?), Bond::Is, Type::Bool)
            }
            Function::IsTrue => (format!("{} IS TRUE", one(Bond::Is)?), Bond::Is, Type::Bool),
            Function::IsFalse => (format!("{} IS FALSE", one(Bond::Is)?), Bond::Is, Type::Bool),
            Function::In => {
                let items = arguments[1..].iter().map(|part| part.text.clone());
                let items = items.collect::<Vec<_>>().join(", ");
                let text = format!("{} = ANY (ARRAY[{items}])", one(Bond::Compare)?);
                (text, Bond::Listed, Type::Bool)
            }
            Function::MakeArray => {
                let items = arguments[1..].iter().map(|part| part.text.clone());
                let text = format!("ARRAY[{}]", items.collect::<Vec<_>>().join(", "));
                (text, Bond::Whole, own)
            }
            Function::Extract => {
                let [field, value] = arguments else { return None };
                let field = field.text.split('\'').nth(1)?.to_owned();
                let text = format!("EXTRACT({field} FROM {})", value.text);
                (text, Bond::Whole, Type::Numeric)
            }
            Function::Pattern(PatternFunction::Matches) => {
                let [both @ .., any_case] = arguments else { return None };
                let sign = if any_case.text == "true" { "~*" } else { "~" };
                return self.infix(sign, Bond::Other, both, Type::Bool);
            }
            other => {
                let items = arguments.iter().map(|part| part.text.clone());
                let items = items.collect::<Vec<_>>().join(", ");
                let name = function_name(other).or_else(|| families::name(other))?;
                (format!("{name}({items})"), Bond::Whole, families::result(other).unwrap_or(own))
            }
        };
        Some(Part { text, bond, ty: Some(ty) })
    }
}

fn function_call(text: &str, ty: Type) -> Part {
    Part { text: text.to_owned(), bond: Bond::Whole, ty: Some(ty) }
}

fn coalesce(first: &Part, rest: &Part) -> Part {
    let rest_text = match rest.text.strip_prefix("COALESCE(") {
        Some(inner) if rest.bond == Bond::Whole => inner.to_owned(),
        _ => format!("{})", rest.text),
    };
    let text = format!("COALESCE({}, {rest_text}", first.text);
    Part { text, bond: Bond::Whole, ty: first.ty.or(rest.ty) }
}

/// The sign of an operator with two operands.
fn sign(function: Function) -> Option<(&'static str, Bond)> {
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
fn function_name(function: Function) -> Option<&'static str> {
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
