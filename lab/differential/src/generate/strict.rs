//! Single expressions of constants, whose errors count, too; dates as people write them.

use super::dice::Dice;
use super::expressions::Maker;
use super::statement::Statement;
use crate::tree::{Kind, Tree};

/// A query of one expression of constants.
pub(crate) fn expression(dice: &mut Dice) -> Statement {
    let depth = dice.between(0, 1);
    let mut maker = Maker { dice, tables: &[], scope: Vec::new(), may_query: false };
    maker.may_query = maker.dice.one_in(4);
    let kind = maker.kind();
    let tree = match maker.dice.one_in(3) {
        true => maker.condition(depth),
        false => Tree::value(kind, maker.call(kind, depth)),
    };
    let mut statement = Statement::new(Tree::form("SELECT {}", vec![tree]));
    // Operands may be evaluated or not.
    statement.is_strict = depth == 0;
    statement
}

const YEARS: &[&str] = &["99", "08", "1999", "2024", "69", "70", "100"];
const MONTHS: &[&str] = &["Jan", "February", "01", "12", "2", "sept"];
const DAYS: &[&str] = &["08", "1", "29", "31", "30"];

/// A date or a point in time in one of the forms that people write.
pub(crate) fn date(dice: &mut Dice) -> Statement {
    let (year, month, day) = (dice.word(YEARS), dice.word(MONTHS), dice.word(DAYS));
    let form = dice.word(&[
        "Y-M-D", "D M Y", "M D, Y", "M D Y", "Y M D", "D-M-Y", "M/D/Y", "Y/M/D", "M-D-Y", "Y-D-M",
    ]);
    let clock = dice.word(&["", "", " 10:00", " 23:59:60", " 04:05:06.789", " 4:05 PM", " 24:00"]);
    let zone = dice.word(&["", "", "+02", " UTC", " US/Pacific", "-07:30"]);
    let mut text = String::new();
    for letter in form.chars() {
        match letter {
            'Y' => text.push_str(year),
            'M' => text.push_str(month),
            'D' => text.push_str(day),
            other => text.push(other),
        }
    }
    let (kind, text) = match dice.between(0, 2) {
        0 => (Kind::Date, text),
        1 => (Kind::Timestamp, format!("{text}{clock}")),
        _ => (Kind::Zoned, format!("{text}{clock}{}", if clock.is_empty() { "" } else { zone })),
    };
    Statement::text(format!("SELECT {}", kind.literal(Some(&text))))
}

/// Texts of values that a type takes or refuses.
pub(crate) fn input(dice: &mut Dice) -> Statement {
    let (kind, texts): (Kind, &[&str]) = match dice.between(0, 9) {
        0 => (Kind::Bool, &["yes", "on", "of", "off", "tr", "TRUE", " t ", "2", "", "n"]),
        1 => (Kind::Int, &["0x1F", " 12 ", "1_000", "12.0", "2147483648", "+5", "--5", ""]),
        2 => (Kind::Numeric, &["1e5", "1e-5", ".5", "5.", "+1.50", "nan", "inf", "1e400", "e5"]),
        3 => (Kind::Double, &["1e308", "1e309", "1e-400", "-0.0", "inf", " NaN ", "0.1", "1e23"]),
        4 => (Kind::Real, &["1e38", "1e39", "0.1", "16777217", "1e-46", "-inf"]),
        5 => (
            Kind::Interval,
            &[
                "1 day 2 hours",
                "1-2",
                "P1Y2M3DT4H5M6S",
                "1.5 months",
                "-1 day +02:03",
                "1 week ago",
                "3 4:05:06",
                "@ 1 minute",
                "1y 2mon",
                "1e1 days",
                "5",
                "0.1 years",
            ],
        ),
        6 => (Kind::Time, &["4:05", "04:05:06 PM", "040506", "24:00:01", "4:5:6", "allballs"]),
        7 => (
            Kind::Uuid,
            &[
                "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
                "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            ],
        ),
        8 => (
            Kind::Jsonb,
            &[
                "[1,]",
                "{\"a\":1,\"a\":2}",
                "1e2",
                "-0",
                "\"\\u0041\"",
                "01",
                " null ",
                "1.10",
                "{\"b\":1,\"a\":2,\"aa\":3}",
                "\"\\u0000\"",
                "1E-2",
                "NaN",
            ],
        ),
        _ => (
            Kind::Array(&Kind::Int),
            &[
                "{1,2}",
                "{}",
                "{ 1 , 2 }",
                "{1,}",
                "[2:3]={1,2}",
                "{{1,2},{3,4}}",
                "{\"1\"}",
                "{null}",
                "{1,2",
                "[1:1]={1,2}",
            ],
        ),
    };
    let text = dice.pick(texts);
    Statement::text(format!("SELECT {}", kind.literal(Some(text))))
}
