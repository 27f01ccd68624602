//! What PostgreSQL documents of the text of values: what it accepts, what it shows, and the codes
//! with which it refuses.

use values::{Datum, Modifier, Numeric, Strictness, Timestamp, Type, Zone, fit, text};

fn shown(ty: Type, input: &str) -> Result<String, String> {
    let zone = Zone::named("Europe/Berlin").unwrap();
    match text::parse(ty, input, &zone) {
        Ok(datum) => Ok(text::print(&datum, &zone)),
        Err(error) => Err(error.state().code().to_owned()),
    }
}

fn check(ty: Type, table: &[(&str, &str)]) {
    for (input, expected) in table {
        let found = shown(ty, input).unwrap_or_else(|state| state);
        assert_eq!(&found, expected, "{ty:?} {input:?}");
    }
}

#[test]
fn small_types() {
    check(
        Type::Bool,
        &[("t", "t"), (" TRUE ", "t"), ("y", "t"), ("of", "f"), ("0", "f"), ("o", "22P02")],
    );
    check(
        Type::Int2,
        &[("32767", "32767"), ("-32768", "-32768"), ("32768", "22003"), ("", "22P02")],
    );
    check(
        Type::Int4,
        &[("+7", "7"), ("1 2", "22P02"), ("99999999999999999999999999999999999999999", "22003")],
    );
    check(
        Type::Bytea,
        &[
            ("\\xDEad", "\\xdead"),
            ("a\\\\b\\001", "\\x615c6201"),
            ("\\x1", "22023"),
            ("\\9", "22P02"),
        ],
    );
    let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    check(
        Type::Uuid,
        &[
            ("{A0EEBC999C0B4EF8BB6D6BB9BD380A11}", uuid),
            (uuid, uuid),
            ("a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", uuid),
            ("a0eebc99", "22P02"),
            ("g", "22P02"),
        ],
    );
    check(Type::Text, &[("a\0", "22021"), (" a", " a")]);
}

#[test]
fn numbers() {
    check(
        Type::Numeric,
        &[
            ("1.50", "1.50"),
            ("-0.00", "0.00"),
            (".5", "0.5"),
            ("5.", "5"),
            ("1e5", "100000"),
            ("1.5E-3", "0.0015"),
            ("nan", "NaN"),
            ("-Inf", "-Infinity"),
            ("1e2000", "22003"),
            ("1.1.1", "22P02"),
            ("0x1", "22P02"),
            ("00012", "12"),
            ("1e", "22P02"),
            (
                "170141183460469231731687303715884105728.5",
                "170141183460469231731687303715884105728.5",
            ),
        ],
    );
    let number = |text: &str| text.parse::<Numeric>().unwrap();
    let quotient = |a: &str, b: &str| number(a).divide(&number(b)).unwrap().to_string();
    assert_eq!(quotient("1", "3"), "0.33333333333333333333");
    assert_eq!(quotient("10", "3"), "3.3333333333333333");
    assert_eq!(quotient("1.000", "8"), "0.12500000000000000000");
    assert_eq!(quotient("100000", "7"), "14285.714285714286");
    assert_eq!(quotient("-2", "3"), "-0.66666666666666666667");
    assert_eq!(number("2.50").multiply(&number("1.5")).unwrap().to_string(), "3.750");
    assert_eq!(number("2.5").round(0).unwrap().to_string(), "3");
    assert_eq!(number("-2.5").round(0).unwrap().to_string(), "-3");
    assert_eq!(number("1250").round(-2).unwrap().to_string(), "1300");
    assert_eq!(number("-1.5").floor().unwrap().to_string(), "-2");
    assert_eq!(number("-1.5").ceiling().unwrap().to_string(), "-1");
    assert_eq!(number("-7.5").remainder(&number("2")).unwrap().to_string(), "-1.5");
    assert_eq!(number("2").sqrt().unwrap().to_string(), "1.414213562373095");
    assert_eq!(number("1.5").power(3).unwrap().to_string(), "3.375");
    assert_eq!(number("1").divide(&Numeric::ZERO).unwrap_err().state().code(), "22012");
    let huge = number(&"9".repeat(1_000));
    assert_eq!(huge.add(&Numeric::ONE).unwrap_err().state().code(), "22003");
    assert_eq!(number("2.5").to_i32().unwrap(), 3);
    assert_eq!(number("40000").to_i16().unwrap_err().state().code(), "22003");
    assert_eq!(Numeric::from_f64(0.1).unwrap().to_string(), "0.1");
}

#[test]
fn numeric_columns() {
    let fitted = |text: &str, precision: i64, scale: i64| {
        let modifier = Modifier::of(Type::Numeric, &[precision, scale]).unwrap();
        let number = Datum::Numeric(text.parse().unwrap());
        match fit(number, Type::Numeric, modifier, Strictness::Assignment) {
            Ok(datum) => text::print(&datum, &Zone::utc()),
            Err(error) => error.state().code().to_owned(),
        }
    };
    assert_eq!(fitted("1.005", 5, 2), "1.01");
    assert_eq!(fitted("999.995", 5, 2), "22003");
    assert_eq!(fitted("12345", 3, -2), "12300");
    assert_eq!(fitted("0.0123", 2, 4), "22003");
    assert_eq!(fitted("0.0012", 2, 4), "0.0012");
    assert_eq!(fitted("NaN", 2, 0), "NaN");
    assert_eq!(fitted("Infinity", 2, 0), "22003");
}

#[test]
fn dates_and_times() {
    check(
        Type::Date,
        &[
            ("1999-01-08", "1999-01-08"),
            ("January 8, 1999", "1999-01-08"),
            ("1/8/1999", "1999-01-08"),
            ("19990108", "1999-01-08"),
            ("8-Jan-1999", "1999-01-08"),
            ("0044-03-15 BC", "0044-03-15 BC"),
            ("infinity", "infinity"),
            ("2023-02-29", "22008"),
            ("5874897-12-31", "5874897-12-31"),
            ("epoch", "1970-01-01"),
            ("x", "22007"),
            ("", "22007"),
            ("2024-13-01", "22008"),
            ("0000-01-01", "22008"),
        ],
    );
    check(
        Type::Timestamp,
        &[
            ("2024-02-29 12:34:56.7891234", "2024-02-29 12:34:56.789123"),
            ("2024-01-01T00:00:00Z", "2024-01-01 00:00:00"),
            ("2024-01-01 24:00", "2024-01-02 00:00:00"),
            ("2024-01-01 12:30 AM", "2024-01-01 00:30:00"),
            ("2024-01-01 25:00", "22008"),
            ("294276-12-31 23:59:59.999999", "294276-12-31 23:59:59.999999"),
            ("294277-01-01", "22008"),
            ("-infinity", "-infinity"),
            ("Sat Feb 16 20:38:40 2001", "2001-02-16 20:38:40"),
        ],
    );
    check(
        Type::Timestamptz,
        &[
            ("2024-07-01 12:00", "2024-07-01 12:00:00+02"),
            ("2024-01-01 12:00+00", "2024-01-01 13:00:00+01"),
            ("2024-01-01 12:00 America/New_York", "2024-01-01 18:00:00+01"),
            ("2024-03-31 02:30", "2024-03-31 03:30:00+02"),
            ("2024-10-27 02:30", "2024-10-27 02:30:00+01"),
            ("2024-01-01 12:00 Europe/Nowhere", "22023"),
            ("2024-01-01 12:00+25", "22008"),
            ("20000-07-01 12:00", "20000-07-01 12:00:00+02"),
            ("1880-01-01 00:00", "1880-01-01 00:00:00+00:53:28"),
        ],
    );
    let at = Timestamp::parse("2024-01-31").unwrap();
    let month = values::Interval::parse("1 mon").unwrap();
    assert_eq!(at.add_interval(month).unwrap().print(), "2024-02-29 00:00:00");
    let berlin = Zone::named("europe/berlin").unwrap();
    let before = Timestamp::parse_zoned("2024-03-30 12:00", &berlin).unwrap();
    let day = values::Interval::parse("1 day").unwrap();
    let after = before.add_zoned(day, &berlin).unwrap();
    assert_eq!(after.since(before).unwrap().to_string(), "23:00:00");
    assert_eq!(after.print_zoned(&berlin), "2024-03-31 12:00:00+02");
}

#[test]
fn arrays() {
    let ints = Type::Int4.array().unwrap();
    check(
        ints,
        &[
            ("{1,2, NULL }", "{1,2,NULL}"),
            ("{{1,2},{3,4}}", "{{1,2},{3,4}}"),
            ("{}", "{}"),
            ("[0:1]={5,6}", "[0:1]={5,6}"),
            ("{1,{2}}", "22P02"),
            ("{{1},{2,3}}", "22P02"),
            ("{1", "22P02"),
            ("{1,}", "22P02"),
            ("1", "22P02"),
            ("{a}", "22P02"),
            ("[2:1]={1}", "2202E"),
        ],
    );
    check(
        Type::Text.array().unwrap(),
        &[("{a,\"b c\",\"\",\"NULL\",\"q\\\"\"}", "{a,\"b c\",\"\",\"NULL\",\"q\\\"\"}")],
    );
}
