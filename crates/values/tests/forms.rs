//! What PostgreSQL documents of the text of values: what it accepts, what it shows, and the codes
//! with which it refuses.

use values::{
    Array, Datum, Dimension, Json, Modifier, Numeric, Strictness, Timestamp, Type, Zone, binary,
    fit, text,
};

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
            ("\\123\\377\\010", "\\x53ff08"),
            ("\\400", "22P02"),
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
    let bits = [("01", "01"), ("x1F", "00011111"), ("B10", "10"), ("", ""), ("2", "22P02")];
    check(Type::Bit, &bits);
    check(Type::Varbit, &bits);
    check(
        Type::Jsonpath,
        &[
            ("lax $.a[*]", "$.\"a\"[*]"),
            ("strict  $ . a ?(@>1)", "strict $.\"a\"?(@ > 1)"),
            ("", "22P02"),
            ("$.", "42601"),
            ("@", "42601"),
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
            ("2024-01-01 12:00+25", "22009"),
            ("20000-07-01 12:00", "20000-07-01 12:00:00+02"),
            ("1880-01-01 00:00", "1880-01-01 00:00:00+00:53:28"),
            ("2024-01-01 12:00+05:30", "2024-01-01 07:30:00+01"),
            ("2024-01-01 12:00-00:45:15", "2024-01-01 13:45:15+01"),
        ],
    );
    let kolkata = Zone::named("Asia/Kolkata").unwrap();
    let noon = Timestamp::parse_zoned("2024-01-01 12:00", &kolkata).unwrap();
    assert_eq!(noon.print_zoned(&kolkata), "2024-01-01 12:00:00+05:30");
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
fn a_fixed_zone_is_less_than_16_hours_from_utc() {
    for seconds in [16 * 3_600, -16 * 3_600] {
        assert!(Zone::fixed(seconds).is_none());
        let nearest = Zone::fixed(seconds - seconds.signum()).unwrap();
        assert_eq!(nearest.fixed_seconds(), Some(seconds - seconds.signum()));
    }
}

#[test]
fn intervals_of_years_and_months() {
    check(
        Type::Interval,
        &[
            ("1-2", "1 year 2 mons"),
            ("-1-2", "-1 years -2 mons"),
            ("+1-2", "1 year 2 mons"),
            ("0-11", "11 mons"),
            ("-0-11", "-11 mons"),
        ],
    );
}

/// JSON may be nested so deep, and no level deeper.
#[test]
fn the_depth_of_json_is_limited() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert!(Json::parse(&nested(100)).is_ok());
    let error = Json::parse(&nested(101)).unwrap_err();
    assert_eq!(error.state().code(), "54001", "{error:?}");
}

/// The binary form of a number says how many digits there are, each below 10,000.
#[test]
fn numbers_in_binary_have_the_digits_that_they_say() {
    let decoded = |words: &[u16]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let found =
            binary::decode(Type::Numeric, &bytes).map_err(|error| error.state().code().to_owned());
        found.map(|datum| text::print(&datum, &Zone::utc()))
    };
    assert_eq!(decoded(&[2, 0, 0, 2, 12, 5_000]).unwrap(), "12.50");
    for wrong in [&[1, 0, 0, 0, 10_000][..], &[2, 0, 0, 0, 1], &[1, 0, 0, 0, 1, 1]] {
        assert_eq!(decoded(wrong).unwrap_err(), "22P03", "{wrong:?}");
    }
}

/// The dimensions of an array have its items, and as many as they say.
#[test]
fn an_array_has_the_items_of_its_dimensions() {
    let made = |lengths: &[u32], items: i32| {
        let dimension = |length: &u32| Dimension { length: *length, lower: 1 };
        let dimensions = lengths.iter().map(dimension).collect();
        let made =
            Array::with_dimensions(Type::Int4, dimensions, (0..items).map(Datum::Int4).collect());
        made.map(|array| array.items().len()).map_err(|error| error.state().code().to_owned())
    };
    assert_eq!(made(&[2, 3], 6).unwrap(), 6);
    assert_eq!(made(&[], 0).unwrap(), 0);
    for (lengths, items) in [(&[2, 3][..], 5), (&[2, 3], 7), (&[], 1), (&[0], 0)] {
        assert_eq!(made(lengths, items).unwrap_err(), "2202E", "{lengths:?}");
    }
    assert_eq!(made(&[1; 6], 1).unwrap(), 1);
    assert_eq!(made(&[1; 7], 1).unwrap_err(), "54000");
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
            ("[1:2]={1,2,3}", "22P02"),
            ("[1:2][1:2]={{1,2,3},{4,5,6}}", "22P02"),
            ("{{{{{{7}}}}}}", "{{{{{{7}}}}}}"),
            ("{{{{{{{7}}}}}}}", "54000"),
        ],
    );
    check(
        Type::Text.array().unwrap(),
        &[("{a,\"b c\",\"\",\"NULL\",\"q\\\"\"}", "{a,\"b c\",\"\",\"NULL\",\"q\\\"\"}")],
    );
}
