//! Paths of JSON: values of `jsonpath`. What they find is computed elsewhere.

mod lexer;
mod parse;
mod print;

use crate::Numeric;

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    /// Whether it is strict: an array is no items, and what is not there is an error.
    pub is_strict: bool,
    /// What it computes.
    pub expr: PathExpr,
}

/// A value, and the steps that lead from it to others.
#[derive(Clone, Debug, PartialEq)]
pub struct PathExpr {
    /// Where the steps begin.
    pub head: Head,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// Where steps begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Head {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Numeric),
    /// A text.
    String(Box<str>),
    /// `$name`
    Variable(Box<str>),
    /// An operator with two operands.
    Binary(Arithmetic, Box<PathExpr>, Box<PathExpr>),
    /// A sign before an operand; whether it is a minus.
    Signed(bool, Box<PathExpr>),
    /// A condition, whose value is a truth value.
    Condition(Box<Condition>),
}

/// An operator of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the operators")]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// A step from a value to others.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `.key`
    Key(Box<str>),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyItem,
    /// `[1, 2 to 3]`
    Items(Vec<Subscript>),
    /// `.**`, to values this deep; [`DEEPEST`] stands for `last`.
    Descend(u32, u32),
    /// `?(condition)`
    Filter(Box<Condition>),
    /// `.method()`
    Method(Method),
}

/// The level that stands for `last`.
pub const DEEPEST: u32 = u32::MAX;

/// An index, or a range of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscript {
    /// The first one.
    pub from: PathExpr,
    /// The last one, of a range.
    pub to: Option<PathExpr>,
}

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the methods")]
pub enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
    KeyValue,
}

/// A condition: true, false or unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `&&`
    And(Box<Condition>, Box<Condition>),
    /// `||`
    Or(Box<Condition>, Box<Condition>),
    /// `!(condition)`
    Not(Box<Condition>),
    /// `(condition) is unknown`
    IsUnknown(Box<Condition>),
    /// A comparison.
    Compare(Comparison, PathExpr, PathExpr),
    /// `starts with`
    StartsWith(PathExpr, PathExpr),
    /// `like_regex`
    LikeRegex(PathExpr, Box<Pattern>),
    /// `exists (path)`
    Exists(PathExpr),
}

/// A regular expression with its flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The expression.
    pub text: Box<str>,
    /// `i`: upper and lower case are equal.
    pub any_case: bool,
    /// `s`: a period is any character.
    pub dot_all: bool,
    /// `m`: lines have beginnings and ends.
    pub multi_line: bool,
    /// `q`: it is text.
    pub is_text: bool,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the operators")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Arithmetic {
    /// The operator's sign.
    pub fn sign(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Modulo => "%",
        }
    }
}

impl Method {
    const ALL: [(&'static str, Method); 7] = [
        ("type", Method::Type),
        ("size", Method::Size),
        ("abs", Method::Abs),
        ("floor", Method::Floor),
        ("ceiling", Method::Ceiling),
        ("double", Method::Double),
        ("keyvalue", Method::KeyValue),
    ];

    fn named(name: &str) -> Option<Method> {
        Method::ALL.iter().find(|own| own.0.eq_ignore_ascii_case(name)).map(|own| own.1)
    }

    /// The method's name.
    pub fn name(self) -> &'static str {
        Method::ALL.iter().find(|own| own.1 == self).map_or("", |own| own.0)
    }
}

impl Comparison {
    const ALL: [(&'static str, Comparison); 7] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<>", Comparison::NotEqual),
        ("<=", Comparison::LessEqual),
        (">=", Comparison::GreaterEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];

    fn of_sign(sign: &str) -> Option<Comparison> {
        Comparison::ALL.iter().find(|own| own.0 == sign).map(|own| own.1)
    }

    fn sign(self) -> &'static str {
        Comparison::ALL.iter().find(|own| own.1 == self).map_or("", |own| own.0)
    }
}
