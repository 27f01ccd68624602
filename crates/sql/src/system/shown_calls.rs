//! Operators and calls of functions as text.

use super::families;
use super::shown::{Writer, function_name, sign};
use crate::ir::{ArrayFunction, Function, PatternFunction, TimeFunction};
use values::{Datum, Type};

/// How tight an expression holds together; more is looser.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Bond {
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

/// A part that is written already. What is looser than a cast has its brackets, unless they are
/// only written where they are needed.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) bond: Bond,
    pub(super) ty: Option<Type>,
    /// What is cast, if it is a cast.
    pub(super) uncast: Option<Box<Part>>,
    /// What NOT of it is, where that is no NOT.
    pub(super) opposite: Option<(String, Bond)>,
    /// The sides of a comparison.
    pub(super) sides: Option<(Function, String, String)>,
    /// Whether it is the time of the statement.
    pub(super) is_clock: bool,
    /// Whether it is NULL.
    pub(super) is_null: bool,
}

impl Part {
    pub(super) fn new(text: String, bond: Bond, ty: Option<Type>) -> Part {
        let (uncast, opposite, sides) = (None, None, None);
        Part { text, bond, ty, uncast, opposite, sides, is_clock: false, is_null: false }
    }
}

/// An operator between two operands, and the type of its value.
#[derive(Clone, Copy)]
struct Infix<'a> {
    sign: &'a str,
    bond: Bond,
    ty: Type,
}

/// A call without arguments that matter.
pub(super) fn function_call(text: &str, ty: Type) -> Part {
    Part::new(text.to_owned(), Bond::Whole, Some(ty))
}

/// Whether a value is a whole number, or a parameter that may be one.
fn is_whole(ty: Option<Type>) -> bool {
    matches!(ty, None | Some(Type::Int2 | Type::Int4 | Type::Int8))
}

/// Whether a value is a date or a point in time, or a parameter that may be one.
fn is_day_or_time(ty: Option<Type>) -> bool {
    matches!(ty, None | Some(Type::Date | Type::Timestamp | Type::Timestamptz))
}

impl Writer<'_> {
    /// A part of this bond, from its text without brackets.
    fn bonded(&self, text: String, bond: Bond, ty: Type) -> Part {
        let is_plain = self.pretty || bond <= Bond::Cast;
        let text = if is_plain { text } else { format!("({text})") };
        Part::new(text, bond, Some(ty))
    }

    /// The text without the brackets that it has by its bond.
    pub(super) fn bare<'p>(&self, part: &'p Part) -> &'p str {
        let inner = part.text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        match inner {
            Some(inner) if !self.pretty && part.bond > Bond::Cast => inner,
            _ => &part.text,
        }
    }

    /// The text in brackets.
    pub(super) fn in_brackets(&self, part: &Part) -> String {
        format!("({})", self.bare(part))
    }

    /// The text as an operand of what holds so tight.
    fn operand(&self, part: &Part, outer: Bond, is_left: bool) -> String {
        let is_chain = matches!(outer, Bond::And | Bond::Or) && part.bond == outer;
        if !self.pretty {
            // What may be a BETWEEN stays together.
            let is_joined = is_chain && is_left && part.opposite.is_none();
            return if is_joined { self.bare(part).to_owned() } else { part.text.clone() };
        }
        let is_loose = match outer {
            Bond::Times | Bond::Plus if is_left => part.bond > outer,
            Bond::Compare | Bond::Other | Bond::Listed => part.bond > Bond::Cast,
            _ => part.bond >= outer,
        };
        if is_loose && !is_chain { format!("({})", part.text) } else { part.text.clone() }
    }

    /// A value of `varchar` as the text that operators and functions take.
    fn as_text(&self, part: &Part) -> Part {
        if part.ty != Some(Type::Varchar) {
            return part.clone();
        }
        let is_plain = self.pretty && part.bond <= Bond::Cast;
        let text = if is_plain { part.text.clone() } else { self.in_brackets(part) };
        Part::new(format!("{text}::text"), Bond::Cast, Some(Type::Text))
    }

    /// The sides of an operator as PostgreSQL has operators: whole numbers and times of several
    /// types are not cast.
    fn sides(&self, function: Function, bond: Bond, left: &Part, right: &Part) -> [Part; 2] {
        let inner = |part: &Part| part.uncast.as_deref().map_or(part.ty, |inner| inner.ty);
        let are = |is: fn(Option<Type>) -> bool| is(inner(left)) && is(inner(right));
        let is_uncast = are(is_whole) || bond == Bond::Compare && are(is_day_or_time);
        let uncast = |part: &Part| match &part.uncast {
            Some(inner) if is_uncast => (**inner).clone(),
            _ => part.clone(),
        };
        let is_of_text = bond == Bond::Compare
            || matches!(function, Function::Concat | Function::Like | Function::ILike);
        match is_of_text {
            true => [self.as_text(&uncast(left)), self.as_text(&uncast(right))],
            false => [uncast(left), uncast(right)],
        }
    }

    fn infix(&self, function: Function, operator: &Infix<'_>, arguments: &[Part]) -> Option<Part> {
        let Infix { sign, bond, ty } = *operator;
        let [left, right] = arguments else { return None };
        let [left, right] = self.sides(function, bond, left, right);
        let ends = [self.operand(&left, bond, true), self.operand(&right, bond, false)];
        let [first, last] = ends;
        let mut part = self.bonded(format!("{first} {sign} {last}"), bond, ty);
        part.opposite = match function {
            Function::Like => Some((format!("{first} !~~ {last}"), bond)),
            Function::ILike => Some((format!("{first} !~~* {last}"), bond)),
            Function::And => self.not_between(&left, &right),
            _ => None,
        };
        part.sides = Some((function, first, last));
        Some(part)
    }

    /// NOT BETWEEN, which is two comparisons.
    fn not_between(&self, left: &Part, right: &Part) -> Option<(String, Bond)> {
        let (Some((Function::GreaterEqual, own, low)), Some((Function::LessEqual, same, high))) =
            (&left.sides, &right.sides)
        else {
            return None;
        };
        let compared = |sign: &str, end: &str| {
            self.bonded(format!("{own} {sign} {end}"), Bond::Compare, Type::Bool).text
        };
        let text = format!("{} OR {}", compared("<", low), compared(">", high));
        (own == same).then_some((text, Bond::Or))
    }

    /// Values of which all have one type: a NULL is shown with that of the others.
    fn of_one_type(&self, function: Function, arguments: &[Part]) -> Vec<Part> {
        let is_alike = sign(function).is_some()
            || matches!(function, Function::Greatest | Function::Least | Function::NullIf)
            || matches!(function, Function::In | Function::MakeArray);
        let known = arguments.iter().filter(|part| !part.is_null).find_map(|part| part.ty);
        let retyped = |part: &Part| match known.filter(|_| part.is_null) {
            Some(ty) if is_alike => self.constant(&Datum::Null, ty),
            None if is_alike => part.clone(),
            _ if part.is_null => Part { text: "NULL".to_owned(), ..part.clone() },
            _ => part.clone(),
        };
        arguments.iter().map(retyped).collect()
    }

    pub(super) fn call(&self, function: Function, arguments: &[Part]) -> Option<Part> {
        let arguments = &self.of_one_type(function, arguments)[..];
        let own = arguments.first().and_then(|part| part.ty).unwrap_or(Type::Text);
        if let Some((sign, bond)) = sign(function) {
            let is_truth = bond >= Bond::Compare || is_test(function);
            let ty = if is_truth { Type::Bool } else { own };
            // What is within an array stands before it.
            if let (Function::ArrayContains, [all, part]) = (function, arguments)
                && all.text.starts_with("ARRAY[")
            {
                let turned = [part.clone(), all.clone()];
                return self.infix(function, &Infix { sign: "<@", bond, ty: Type::Bool }, &turned);
            }
            return self.infix(function, &Infix { sign, bond, ty }, arguments);
        }
        let one = |bond| arguments.first().map(|part| self.operand(part, bond, true));
        let is = |words: &str| {
            Some(self.bonded(format!("{} {words}", one(Bond::Is)?), Bond::Is, Type::Bool))
        };
        let is_or_not = |words: &str, opposite: &str| {
            let opposite = Some((format!("{} {opposite}", one(Bond::Is)?), Bond::Is));
            Some(Part { opposite, ..is(words)? })
        };
        Some(match function {
            Function::Not => match arguments.first()?.opposite.clone() {
                Some((text, bond)) => self.bonded(text, bond, Type::Bool),
                None => self.bonded(format!("NOT {}", one(Bond::Not)?), Bond::Not, Type::Bool),
            },
            Function::Negate => self.bonded(format!("- {}", one(Bond::Cast)?), Bond::Other, own),
            Function::IsNull => is("IS NULL")?,
            Function::IsNotNull => is("IS NOT NULL")?,
            Function::IsTrue => is_or_not("IS TRUE", "IS NOT TRUE")?,
            Function::IsFalse => is_or_not("IS FALSE", "IS NOT FALSE")?,
            Function::In => self.in_list(arguments)?,
            Function::EqualAny => self.equal_any(arguments)?,
            Function::MakeArray => {
                let items = list(&arguments[1..]);
                Part::new(format!("ARRAY[{items}]"), Bond::Whole, Some(own))
            }
            Function::Extract => {
                let [field, value] = arguments else { return None };
                let field = field.text.split('\'').nth(1)?;
                let value = value.uncast.as_deref().filter(|own| own.ty == Some(Type::Date));
                let value = value.unwrap_or(&arguments[1]);
                function_call(&format!("EXTRACT({field} FROM {})", value.text), Type::Numeric)
            }
            Function::AtTimeZone => {
                let [zone, value] = arguments else { return None };
                let (value, zone) = (&value.text, &zone.text);
                // It has its brackets in any case.
                function_call(&format!("({value} AT TIME ZONE {zone})"), own)
            }
            Function::Trim if is_of_blanks(arguments) => {
                function_call(&format!("TRIM(BOTH FROM {})", arguments[0].text), Type::Text)
            }
            Function::Now => {
                Part { is_clock: true, ..function_call(self.clock(), Type::Timestamptz) }
            }
            Function::Pattern(PatternFunction::Matches) => {
                let [both @ .., any_case] = arguments else { return None };
                let sign = if any_case.text == "true" { "~*" } else { "~" };
                self.infix(function, &Infix { sign, bond: Bond::Other, ty: Type::Bool }, both)?
            }
            other => self
                .of_parts(other, arguments, own)
                .or_else(|| self.named_call(other, arguments, own))?,
        })
    }

    /// Parts of arrays, comparisons with their items, and regular expressions with groups.
    fn of_parts(&self, function: Function, arguments: &[Part], own: Type) -> Option<Part> {
        match function {
            Function::MakeRecord | Function::TableRow => {
                Some(function_call(&format!("ROW({})", list(arguments)), Type::Record))
            }
            Function::Array(ArrayFunction::CompareAny) => self.compared_items(arguments, "ANY"),
            Function::Array(ArrayFunction::CompareAll) => self.compared_items(arguments, "ALL"),
            Function::Subscript | Function::Array(ArrayFunction::Item) => {
                let (array, places) = arguments.split_first()?;
                let places: String = places.iter().map(|one| format!("[{}]", one.text)).collect();
                let item = array.ty.and_then(Type::element).unwrap_or(own);
                let text = format!("{}{places}", self.subscripted(array));
                Some(Part::new(text, Bond::Whole, Some(item)))
            }
            Function::Array(ArrayFunction::Slice) => self.slice(arguments),
            Function::Time(TimeFunction::MakeZoned) => {
                let rest = arguments.first()?.text.strip_prefix("make_timestamp(")?;
                Some(function_call(&format!("make_timestamptz({rest}"), Type::Timestamptz))
            }
            Function::Pattern(PatternFunction::Position | PatternFunction::Substring) => {
                self.of_group(function, arguments)
            }
            _ => None,
        }
    }

    /// The call of a function by its name.
    fn named_call(&self, function: Function, arguments: &[Part], own: Type) -> Option<Part> {
        let is_any = matches!(function, Function::Greatest | Function::Least | Function::ConcatAll);
        let taken = match function {
            Function::TrimLeft | Function::TrimRight if is_of_blanks(arguments) => &arguments[..1],
            _ => arguments,
        };
        let all: Vec<Part> = match is_any {
            true => taken.to_vec(),
            false => taken.iter().map(|part| self.as_text(part)).collect(),
        };
        let name = function_name(function).or_else(|| families::name(function))?;
        let ty = families::result(function).unwrap_or_else(|| result(function, own));
        Some(Part::new(format!("{name}({})", list(&all)), Bond::Whole, Some(ty)))
    }

    /// IN of a list.
    fn in_list(&self, arguments: &[Part]) -> Option<Part> {
        let (value, items) = arguments.split_first()?;
        let is_varchar = value.ty == Some(Type::Varchar);
        let value = self.operand(&self.as_text(value), Bond::Compare, true);
        if let [item] = items {
            let item = self.operand(item, Bond::Compare, false);
            return Some(self.bonded(format!("{value} = {item}"), Bond::Compare, Type::Bool));
        }
        let array = match is_varchar {
            false => format!("ARRAY[{}]", list(items)),
            true => {
                let typed = |part: &Part| match part.text.strip_suffix("::text") {
                    Some(text) => format!("{text}::character varying"),
                    None => part.text.clone(),
                };
                let items: Vec<String> = items.iter().map(typed).collect();
                let array = format!("ARRAY[{}]", items.join(", "));
                if self.pretty { format!("{array}::text[]") } else { format!("({array})::text[]") }
            }
        };
        let opposite = Some((format!("{value} <> ALL ({array})"), Bond::Listed));
        let part = self.bonded(format!("{value} = ANY ({array})"), Bond::Listed, Type::Bool);
        Some(Part { opposite, ..part })
    }

    /// A comparison with any item of an array, or with all.
    fn compared_items(&self, arguments: &[Part], quantifier: &str) -> Option<Part> {
        const SIGNS: [&str; 10] = ["<", "<=", "=", "<>", ">=", ">", "~~", "~~*", "!~~", "!~~*"];
        let [value, number, array] = arguments else { return None };
        let sign = SIGNS.get(number.text.parse::<usize>().ok()?)?;
        let value = self.operand(&self.as_text(value), Bond::Compare, true);
        let text = format!("{value} {sign} {quantifier} ({})", array.text);
        Some(self.bonded(text, Bond::Listed, Type::Bool))
    }

    /// What a subscript stands behind.
    fn subscripted(&self, array: &Part) -> String {
        let is_column = !array.text.contains(['(', ':', '[', ' ']);
        if is_column { array.text.clone() } else { format!("({})", self.bare(array)) }
    }

    /// A part of an array. A bound that is left out is false.
    fn slice(&self, arguments: &[Part]) -> Option<Part> {
        let (array, bounds) = arguments.split_first()?;
        let bound = |part: &Part| match part.text.as_str() {
            "false" => String::new(),
            text => text.to_owned(),
        };
        let places =
            bounds.chunks_exact(2).map(|both| format!("[{}:{}]", bound(&both[0]), bound(&both[1])));
        let places: String = places.collect();
        Some(Part::new(format!("{}{places}", self.subscripted(array)), Bond::Whole, array.ty))
    }

    /// `regexp_instr` and `regexp_substr`, whose group stands before the flags in programs. What
    /// is as if it was left out is not shown.
    fn of_group(&self, function: Function, arguments: &[Part]) -> Option<Part> {
        let (name, defaults, ty): (_, &[&str], _) = match function {
            Function::Pattern(PatternFunction::Position) => {
                ("regexp_instr", &["1", "1", "0", "''::text", "0"], Type::Int4)
            }
            _ => ("regexp_substr", &["1", "1", "''::text", "0"], Type::Text),
        };
        let mut all: Vec<Part> = arguments.iter().map(|part| self.as_text(part)).collect();
        let flags = all.len().checked_sub(2)?;
        all.swap(flags, flags + 1);
        let mut own = all.get(2..)?.iter().zip(defaults);
        let kept = own.rposition(|(part, default)| part.text != *default);
        all.truncate(kept.map_or(2, |last| last + 3));
        Some(function_call(&format!("{name}({})", list(&all)), ty))
    }

    fn equal_any(&self, arguments: &[Part]) -> Option<Part> {
        let [value, array] = arguments else { return None };
        let value = self.operand(&self.as_text(value), Bond::Compare, true);
        let array = &array.text;
        let opposite = Some((format!("{value} <> ALL ({array})"), Bond::Listed));
        let part = self.bonded(format!("{value} = ANY ({array})"), Bond::Listed, Type::Bool);
        Some(Part { opposite, ..part })
    }

    /// How the time of the statement was written.
    fn clock(&self) -> &'static str {
        let source = self.source.unwrap_or_default().to_ascii_lowercase();
        match () {
            () if source.contains("current_timestamp") => "CURRENT_TIMESTAMP",
            () if source.contains("transaction_timestamp") => "transaction_timestamp()",
            () => "now()",
        }
    }
}

fn list(parts: &[Part]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(", ")
}

/// Whether TRIM and its kin were given nothing to trim but blanks.
fn is_of_blanks(arguments: &[Part]) -> bool {
    matches!(arguments, [_, blanks] if blanks.text == "' '::text")
}

/// Whether an operator that is no comparison is true or false.
fn is_test(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::Like
            | F::ILike
            | F::JsonContains
            | F::ArrayContains
            | F::ArrayOverlaps
            | F::JsonHasKey
            | F::JsonHasAny
            | F::JsonHasAll
    )
}

/// The type of a function's value, where it is another than that of the first argument.
fn result(function: Function, own: Type) -> Type {
    use Function as F;
    match function {
        F::Length | F::OctetLength | F::Position | F::CodeOf | F::ArrayLength => Type::Int4,
        F::ArrayUpper | F::ArrayLower | F::ArrayPosition | F::ArrayCount => Type::Int4,
        F::JsonArrayLength => Type::Int4,
        F::JsonType | F::ArrayToString | F::CharOf | F::ToHex => Type::Text,
        F::StartsWith | F::IsFinite => Type::Bool,
        _ if own == Type::Varchar && !matches!(function, F::Greatest | F::Least) => Type::Text,
        _ => own,
    }
}
