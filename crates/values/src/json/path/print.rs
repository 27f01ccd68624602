//! From a path to its text, in PostgreSQL's form.

use super::{Arithmetic, Condition, DEEPEST, Head, JsonPath, PathExpr, Pattern, Step, Subscript};
use crate::Json;
use std::fmt::{self, Display, Formatter};

/// How strongly operators bind.
const OR: u8 = 0;
const AND: u8 = 1;
const COMPARED: u8 = 2;
const SUM: u8 = 3;
const PRODUCT: u8 = 4;
const SIGN: u8 = 5;
const WHOLE: u8 = 6;

impl Display for JsonPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_strict { "strict " } else { "" })?;
        self.expr.print(f, true)
    }
}

fn in_quotes(text: &str) -> String {
    Json::String(text.into()).to_string()
}

/// A pair of brackets, if they are needed.
fn brackets(has: bool) -> (&'static str, &'static str) {
    if has { ("(", ")") } else { ("", "") }
}

impl PathExpr {
    fn bond(&self) -> u8 {
        match &self.head {
            Head::Binary(Arithmetic::Add | Arithmetic::Subtract, ..) => SUM,
            Head::Binary(..) => PRODUCT,
            Head::Signed(..) => SIGN,
            Head::Condition(condition) => condition.bond(),
            _ => WHOLE,
        }
    }

    fn print(&self, f: &mut Formatter<'_>, has_brackets: bool) -> fmt::Result {
        let (open, close) = brackets(has_brackets);
        match &self.head {
            Head::Root => f.write_str("$")?,
            Head::Current => f.write_str("@")?,
            Head::Last => f.write_str("last")?,
            Head::Null => f.write_str("null")?,
            Head::Bool(value) => write!(f, "{value}")?,
            Head::Number(number) => {
                let (open, close) = brackets(!self.steps.is_empty());
                write!(f, "{open}{number}{close}")?;
            }
            Head::String(text) => f.write_str(&in_quotes(text))?,
            Head::Variable(name) => write!(f, "${}", in_quotes(name))?,
            Head::Binary(operator, left, right) => {
                f.write_str(open)?;
                left.print(f, left.bond() <= self.bond())?;
                write!(f, " {} ", operator.sign())?;
                right.print(f, right.bond() <= self.bond())?;
                f.write_str(close)?;
            }
            Head::Signed(is_minus, inner) => {
                write!(f, "{open}{}", if *is_minus { "-" } else { "+" })?;
                inner.print(f, inner.bond() <= SIGN)?;
                f.write_str(close)?;
            }
            Head::Condition(condition) => condition.print(f, has_brackets)?,
        }
        self.steps.iter().try_for_each(|step| step.print(f))
    }
}

impl Step {
    fn print(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Step::Key(key) => write!(f, ".{}", in_quotes(key)),
            Step::AnyKey => f.write_str(".*"),
            Step::AnyItem => f.write_str("[*]"),
            Step::Items(all) => {
                for (at, Subscript { from, to }) in all.iter().enumerate() {
                    f.write_str(if at == 0 { "[" } else { "," })?;
                    from.print(f, false)?;
                    if let Some(to) = to {
                        f.write_str(" to ")?;
                        to.print(f, false)?;
                    }
                }
                f.write_str("]")
            }
            Step::Descend(0, DEEPEST) => f.write_str(".**"),
            Step::Descend(first, last) => {
                let level = |level: u32| match level {
                    DEEPEST => "last".to_owned(),
                    level => level.to_string(),
                };
                match first == last {
                    true => write!(f, ".**{{{}}}", level(*first)),
                    false => write!(f, ".**{{{} to {}}}", level(*first), level(*last)),
                }
            }
            Step::Filter(condition) => {
                f.write_str("?(")?;
                condition.print(f, false)?;
                f.write_str(")")
            }
            Step::Method(method) => write!(f, ".{}()", method.name()),
        }
    }
}

impl Condition {
    fn bond(&self) -> u8 {
        match self {
            Condition::Or(..) => OR,
            Condition::And(..) => AND,
            Condition::Compare(..) | Condition::StartsWith(..) => COMPARED,
            _ => WHOLE,
        }
    }

    fn print(&self, f: &mut Formatter<'_>, has_brackets: bool) -> fmt::Result {
        let (open, close) = brackets(has_brackets);
        let own = self.bond();
        match self {
            Condition::And(left, right) | Condition::Or(left, right) => {
                let sign = if own == AND { "&&" } else { "||" };
                f.write_str(open)?;
                left.print(f, left.bond() <= own)?;
                write!(f, " {sign} ")?;
                right.print(f, right.bond() <= own)?;
                f.write_str(close)
            }
            Condition::Not(inner) => {
                f.write_str("!(")?;
                inner.print(f, false)?;
                f.write_str(")")
            }
            Condition::IsUnknown(inner) => {
                f.write_str("(")?;
                inner.print(f, false)?;
                f.write_str(") is unknown")
            }
            Condition::Compare(_, left, right) | Condition::StartsWith(left, right) => {
                let sign = match self {
                    Condition::Compare(comparison, ..) => comparison.sign(),
                    _ => "starts with",
                };
                f.write_str(open)?;
                left.print(f, left.bond() <= own)?;
                write!(f, " {sign} ")?;
                right.print(f, right.bond() <= own)?;
                f.write_str(close)
            }
            Condition::LikeRegex(expr, pattern) => {
                f.write_str(open)?;
                expr.print(f, expr.bond() <= own)?;
                pattern.print(f)?;
                f.write_str(close)
            }
            Condition::Exists(inner) => {
                f.write_str("exists (")?;
                inner.print(f, false)?;
                f.write_str(")")
            }
        }
    }
}

impl Pattern {
    fn print(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " like_regex {}", in_quotes(&self.text))?;
        let flags = [
            (self.any_case, 'i'),
            (self.dot_all, 's'),
            (self.multi_line, 'm'),
            (self.is_text, 'q'),
        ];
        let flags: String = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
        if flags.is_empty() { Ok(()) } else { write!(f, " flag \"{flags}\"") }
    }
}
