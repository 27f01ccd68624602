//! Types of values: their names, and constants at their edges.

use super::Tree;

/// A type of values. Some have a modifier, so that its rules are met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Bool,
    Short,
    Int,
    Long,
    Real,
    Double,
    Numeric,
    /// numeric(10,2)
    Fixed,
    Text,
    /// varchar(6)
    Varchar,
    /// char(4)
    Char,
    Bytea,
    Uuid,
    Date,
    Time,
    Timestamp,
    Zoned,
    Interval,
    Json,
    Jsonb,
    /// The enum that each scenario makes.
    Mood,
    Array(&'static Kind),
}

/// The labels of the enum, in their order.
pub(crate) const MOODS: &str = "'sad', 'ok', 'happy', 'Very happy'";

impl Kind {
    /// All types that are no arrays.
    pub(crate) const SCALARS: &[Kind] = &[
        Kind::Bool,
        Kind::Short,
        Kind::Int,
        Kind::Long,
        Kind::Real,
        Kind::Double,
        Kind::Numeric,
        Kind::Fixed,
        Kind::Text,
        Kind::Varchar,
        Kind::Char,
        Kind::Bytea,
        Kind::Uuid,
        Kind::Date,
        Kind::Time,
        Kind::Timestamp,
        Kind::Zoned,
        Kind::Interval,
        Kind::Json,
        Kind::Jsonb,
        Kind::Mood,
    ];

    /// Arrays that columns and expressions have.
    pub(crate) const ARRAYS: &[Kind] = &[
        Kind::Array(&Kind::Int),
        Kind::Array(&Kind::Long),
        Kind::Array(&Kind::Numeric),
        Kind::Array(&Kind::Double),
        Kind::Array(&Kind::Text),
        Kind::Array(&Kind::Date),
        Kind::Array(&Kind::Timestamp),
        Kind::Array(&Kind::Interval),
        Kind::Array(&Kind::Jsonb),
        Kind::Array(&Kind::Char),
        Kind::Array(&Kind::Mood),
        Kind::Array(&Kind::Bool),
    ];

    /// The type as SQL names it.
    pub(crate) fn name(self) -> String {
        match self {
            Kind::Bool => "boolean",
            Kind::Short => "smallint",
            Kind::Int => "integer",
            Kind::Long => "bigint",
            Kind::Real => "real",
            Kind::Double => "double precision",
            Kind::Numeric => "numeric",
            Kind::Fixed => "numeric(10,2)",
            Kind::Text => "text",
            Kind::Varchar => "varchar(6)",
            Kind::Char => "char(4)",
            Kind::Bytea => "bytea",
            Kind::Uuid => "uuid",
            Kind::Date => "date",
            Kind::Time => "time",
            Kind::Timestamp => "timestamp",
            Kind::Zoned => "timestamptz",
            Kind::Interval => "interval",
            Kind::Json => "json",
            Kind::Jsonb => "jsonb",
            Kind::Mood => "mood",
            Kind::Array(element) => return format!("{}[]", element.name()),
        }
        .to_owned()
    }

    /// Whether `=` and `<` compare two values of the type.
    pub(crate) fn is_ordered(self) -> bool {
        match self {
            Kind::Json => false,
            Kind::Array(element) => element.is_ordered(),
            _ => true,
        }
    }

    /// Whether keys and indexes may have the type.
    pub(crate) fn is_keyable(self) -> bool {
        self.is_ordered() && !matches!(self, Kind::Jsonb | Kind::Array(_))
    }

    /// Types whose values are compared with those of this one, itself included.
    pub(crate) fn comparable(self) -> &'static [Kind] {
        use Kind::{Char, Date, Double, Fixed, Int, Long, Numeric, Real, Short, Text, Timestamp};
        match self {
            Short | Int | Long => &[Short, Int, Long, Numeric, Double, Real, Fixed],
            Numeric | Fixed => &[Numeric, Fixed, Int, Long, Double],
            Real | Double => &[Real, Double, Int, Numeric],
            Text | Kind::Varchar | Char => &[Text, Kind::Varchar, Char],
            Date | Timestamp | Kind::Zoned => &[Date, Timestamp, Kind::Zoned],
            _ => &[],
        }
    }

    /// A constant as a literal, NULL included.
    pub(crate) fn literal(self, text: Option<&str>) -> String {
        match text {
            None => format!("NULL::{}", self.name()),
            Some(text) => format!("'{}'::{}", text.replace('\'', "''"), self.name()),
        }
    }

    /// The constant that tells least.
    pub(crate) fn simplest(self) -> Tree {
        let text = match self {
            Kind::Array(_) => Some("{}".to_owned()),
            _ => self.edges().first().map(|text| (*text).to_owned()),
        };
        Tree::Constant { kind: self, text }
    }

    /// Constants that tell mistakes: equal ones that look different, extremes, and ordinary ones.
    pub(crate) fn edges(self) -> &'static [&'static str] {
        match self {
            Kind::Bool => &["t", "f"],
            Kind::Short => &["1", "0", "2", "3", "-1", "32767", "-32768"],
            Kind::Int => &["1", "0", "2", "3", "7", "-1", "2147483647", "-2147483648"],
            Kind::Long => &["1", "0", "2", "3", "40", "-5", "4294967296", "9223372036854775807"],
            Kind::Real => &["1", "0", "-0", "1.5", "2.5", "-2.25", "NaN", "Infinity", "-Infinity"],
            Kind::Double => {
                &["1", "0", "-0", "0.5", "2.5", "-2.25", "3", "NaN", "Infinity", "-Infinity"]
            }
            Kind::Numeric => &[
                "1",
                "1.0",
                "1.00",
                "0",
                "0.00",
                "2.5",
                "2.50",
                "-2.25",
                "3",
                "NaN",
                "12345678901234567.89",
                "0.000001",
                "Infinity",
                "-Infinity",
            ],
            Kind::Fixed => &["1", "1.00", "0", "2.5", "2.50", "-2.25", "3", "99999999.99", "NaN"],
            Kind::Text => &["a", "", "b", "a ", "A", "ab", "a  ", "Zed", "a,b", "0", "x_y%"],
            Kind::Varchar => &["a", "", "b", "a ", "ab", "B", "abcdef"],
            Kind::Char => &["a", "", "b", "a ", "ab", "B", "abcd"],
            Kind::Bytea => &["\\x01", "\\x", "\\x00", "\\xff00", "\\x0100"],
            Kind::Uuid => &[
                "00000000-0000-0000-0000-000000000001",
                "00000000-0000-0000-0000-000000000000",
                "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ],
            Kind::Mood => &["sad", "ok", "happy", "Very happy"],
            _ => self.edges_of_times_and_json(),
        }
    }

    fn edges_of_times_and_json(self) -> &'static [&'static str] {
        match self {
            Kind::Date => &[
                "2024-01-02",
                "2024-02-29",
                "1999-12-31",
                "0001-01-01",
                "infinity",
                "-infinity",
                "2023-11-05",
                "2023-03-12",
            ],
            Kind::Time => &["12:00:00", "00:00:00", "23:59:59.999999", "24:00:00", "01:40:00"],
            Kind::Timestamp => &[
                "2024-01-02 00:00:00",
                "2024-01-02 12:00:00",
                "1999-12-31 23:59:59.999999",
                "infinity",
                "-infinity",
                "2023-11-05 01:30:00",
                "2023-03-12 02:30:00",
            ],
            Kind::Zoned => &[
                "2024-01-02 00:00:00+00",
                "2024-01-02 02:00:00+02",
                "2023-11-05 01:40:00-07",
                "2023-11-05 01:40:00-08",
                "infinity",
                "-infinity",
                "2023-03-12 09:30:00+00",
            ],
            Kind::Interval => &[
                "1 month",
                "30 days",
                "720:00:00",
                "0",
                "1 day",
                "24:00:00",
                "-1 day",
                "1 year",
                "12 months",
                "360 days",
                "00:00:00.5",
                "1 mon -1 days",
            ],
            Kind::Json => &["1", "{\"a\": 1,\"a\":2}", "[1, 2]", "null", "\"x\""],
            Kind::Jsonb => &[
                "1",
                "1.0",
                "{\"a\":1}",
                "{\"a\":1.0}",
                "{\"a\":1,\"b\":[1,null]}",
                "{\"b\":1}",
                "{\"aa\":1}",
                "[]",
                "[1]",
                "[[]]",
                "[null]",
                "null",
                "{}",
                "\"a\"",
                "true",
                "12345678901234567.89",
                "{\"n\":12345678901234567890}",
                "[1,2.50,\"x\"]",
            ],
            _ => &[],
        }
    }
}
