//! Bytes of keys sort as the values do, and all forms of a value read back as the same value.

use proptest::prelude::*;
use std::cmp::Ordering;
use values::row::Layout;
use values::{
    Array, Bits, Date, Datum, EnumType, Interval, Json, Network, Numeric, Oid, Time, Timestamp,
    Type, Zone, binary, identity, key, text,
};

fn bytes() -> impl Strategy<Value = Datum> {
    prop_oneof![
        prop::collection::vec(prop_oneof![Just(0_u8), Just(255), any::<u8>()], 0..6),
        prop::collection::vec(any::<u8>(), 0..40),
    ]
    .prop_map(|bytes| Datum::Bytea(bytes.into()))
}

fn bits() -> impl Strategy<Value = Datum> {
    "[01]{0,20}".prop_map(|digits| Datum::Bits(Bits::parse(&digits).unwrap()))
}

fn network(is_cidr: bool) -> impl Strategy<Value = Datum> {
    let v4 = (any::<[u8; 4]>(), 0..=32_u8)
        .prop_map(|([a, b, c, d], bits)| format!("{a}.{b}.{c}.{d}/{bits}"));
    let v6 = (any::<u128>(), 0..=128_u8)
        .prop_map(|(address, bits)| format!("{}/{bits}", std::net::Ipv6Addr::from(address)));
    prop_oneof![v4, v6].prop_map(move |text| {
        let inet = Network::parse(&text, false).unwrap();
        Datum::Network(Box::new(if is_cidr { inet.to_cidr() } else { inet }))
    })
}

fn path() -> impl Strategy<Value = Datum> {
    prop::sample::select(vec![
        "$",
        "strict $.a[*].**{2 to last} ? (@.b > 1 && !(exists (@.c)))",
        "(-$.a[last - 1] + 2) % $v",
        "$ ? ((@ like_regex \"a\" flag \"iq\") is unknown).keyvalue()",
    ])
    .prop_map(|path| text::parse(Type::Jsonpath, path, &Zone::utc()).unwrap())
}

fn numeric() -> impl Strategy<Value = Numeric> {
    prop_oneof![
        1 => prop::sample::select(vec![
            Numeric::NAN,
            Numeric::INFINITY,
            Numeric::NEGATIVE_INFINITY,
        ]),
        5 => (any::<i64>(), 0..30_u16).prop_map(|(units, scale)| {
            Numeric::from_units(units.into(), scale).unwrap()
        }),
        5 => (-1_000..1_000_i128, 0..5_u16)
            .prop_map(|(units, scale)| Numeric::from_units(units, scale).unwrap()),
        3 => "-?[1-9][0-9]{30,60}(\\.[0-9]{1,40})?".prop_map(|text| text.parse().unwrap()),
    ]
}

fn datum(ty: Type) -> BoxedStrategy<Datum> {
    match ty {
        Type::Bool => any::<bool>().prop_map(Datum::Bool).boxed(),
        Type::Int2 => any::<i16>().prop_map(Datum::Int2).boxed(),
        Type::Int4 => any::<i32>().prop_map(Datum::Int4).boxed(),
        Type::Oid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regnamespace
        | Type::Regrole => (0..i32::MAX).prop_map(Datum::Int4).boxed(),
        Type::Int8 => any::<i64>().prop_map(Datum::Int8).boxed(),
        Type::Float4 => any::<u32>().prop_map(|bits| Datum::Float4(f32::from_bits(bits))).boxed(),
        Type::Float8 => prop_oneof![
            any::<u64>().prop_map(|bits| Datum::Float8(f64::from_bits(bits))),
            Just(Datum::Float8(-0.0)),
            Just(Datum::Float8(0.0)),
        ]
        .boxed(),
        Type::Numeric => numeric().prop_map(Datum::Numeric).boxed(),
        Type::Text | Type::Varchar | Type::Name | Type::Letter => {
            prop_oneof!["[a-c\u{1}]{0,4}", "\\PC{0,20}"].prop_map(Datum::text).boxed()
        }
        Type::Char => prop_oneof!["[a-c\u{1}]{0,4} {0,2}", "\\PC{0,20}"]
            .prop_map(|text| Datum::Char(text.into()))
            .boxed(),
        Type::Bytea => bytes().boxed(),
        Type::Record => unreachable!("no column has it"),
        Type::Bit | Type::Varbit => bits().boxed(),
        Type::Jsonpath => path().boxed(),
        Type::Inet | Type::Cidr => network(ty == Type::Cidr).boxed(),
        Type::Uuid => any::<[u8; 16]>().prop_map(Datum::Uuid).boxed(),
        Type::Date => prop_oneof![
            Just(Datum::Date(Date::INFINITY)),
            (-2_451_545..2_145_031_948_i64)
                .prop_map(|days| Datum::Date(Date::from_days(days).unwrap())),
        ]
        .boxed(),
        Type::Timestamp => timestamp().prop_map(Datum::Timestamp).boxed(),
        Type::Timestamptz => timestamp().prop_map(Datum::Timestamptz).boxed(),
        Type::Interval => (any::<i32>(), any::<i32>(), any::<i64>())
            .prop_map(|(months, days, microseconds)| {
                Datum::Interval(Interval { months, days, microseconds })
            })
            .boxed(),
        Type::Jsonb => json().prop_map(|json| Datum::Jsonb(Box::new(json))).boxed(),
        Type::Json => {
            let given = (json(), " {0,2}").prop_map(|(json, blanks)| format!("{blanks}{json} "));
            given.prop_map(|given| Datum::Json(given.into())).boxed()
        }
        Type::Time => {
            let time = |at| Datum::Time(Time::from_microseconds(at).unwrap());
            (0..=86_400_000_000_i64).prop_map(time).boxed()
        }
        Type::Enum(ty) => {
            let values: Vec<Datum> = ty.values().map(Datum::Enum).collect();
            prop::sample::select(values).boxed()
        }
        Type::Array(_) => {
            let element = ty.element().unwrap();
            prop::collection::vec(prop_oneof![1 => Just(Datum::Null), 4 => datum(element)], 0..5)
                .prop_map(move |items| Datum::Array(Box::new(Array::new(element, items).unwrap())))
                .boxed()
        }
    }
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        1 => Just(Timestamp::NEGATIVE_INFINITY),
        9 => (-211_813_400_000_000_000..9_223_371_331_100_000_000_i64)
            .prop_map(|at| Timestamp::from_bits(at).unwrap()),
    ]
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (any::<i64>(), 0..9_u16).prop_map(|(units, scale)| Json::Number(
            Numeric::from_units(units.into(), scale).unwrap()
        )),
        "[^\u{0}]{0,8}".prop_map(|text| Json::String(text.into())),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::vec(("[a-c\"\\\\]{0,2}", inner), 0..4).prop_map(|members| {
                Json::object(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
            }),
        ]
    })
}

/// An enum whose labels are not in the order of the alphabet.
fn mood() -> Type {
    let labels = ["sad", "ok", "so, so", "NULL", "happy"];
    Type::Enum(EnumType::new(Oid::new(70_000), "mood", "mood", &labels).unwrap())
}

fn scalars() -> impl Iterator<Item = Type> {
    Type::scalars().chain([mood()])
}

fn scalar() -> impl Strategy<Value = Type> {
    prop::sample::select(scalars().collect::<Vec<_>>())
}

/// The types whose keys have the order of their values: not those of `character`, as blanks are in
/// them.
fn key_type() -> impl Strategy<Value = Type> {
    let sorts = |ty: &Type| ty.may_be_key() && *ty != Type::Char;
    prop::sample::select(scalars().filter(sorts).collect::<Vec<_>>())
}

fn nullable(ty: Type) -> impl Strategy<Value = Datum> {
    prop_oneof![1 => Just(Datum::Null), 8 => datum(ty)]
}

fn any_type() -> impl Strategy<Value = Type> {
    (scalar(), any::<bool>()).prop_map(|(ty, array)| if array { ty.array().unwrap() } else { ty })
}

/// The same value to the bit: equal ones of a numeric or a float may differ in what is shown.
fn same(left: &Datum, right: &Datum) -> bool {
    left == right && text::print(left, &Zone::utc()) == text::print(right, &Zone::utc())
}

/// An equal value with other bytes, of types that have such.
fn respelled(value: &Datum) -> Datum {
    match value {
        Datum::Float4(value) if *value == 0.0 => Datum::Float4(-value),
        Datum::Float8(value) if *value == 0.0 => Datum::Float8(-value),
        Datum::Float4(value) if value.is_nan() => Datum::Float4(f32::from_bits(0xffc0_0001)),
        Datum::Float8(value) if value.is_nan() => Datum::Float8(-f64::NAN),
        Datum::Numeric(value) => Datum::Numeric(longer(value)),
        Datum::Interval(own) => {
            let (moved, rest) = (own.days / 30, own.days % 30);
            match own.months.checked_add(moved) {
                Some(months) => Datum::Interval(Interval { months, days: rest, ..*own }),
                None => value.clone(),
            }
        }
        Datum::Jsonb(json) => Datum::Jsonb(Box::new(respelled_json(json))),
        Datum::Array(array) => {
            let items = array.items().iter().map(respelled).collect();
            let dimensions = array.dimensions().to_vec();
            let array = Array::with_dimensions(array.element(), dimensions, items).unwrap();
            Datum::Array(Box::new(array))
        }
        Datum::Char(text) => match text.strip_suffix(' ') {
            Some(shorter) => Datum::Char(shorter.into()),
            None => Datum::Char(format!("{text}  ").into()),
        },
        other => other.clone(),
    }
}

fn longer(number: &Numeric) -> Numeric {
    match number.to_big() {
        Some((units, scale)) => Numeric::from_big(units * 100, scale + 2).unwrap(),
        None => number.clone(),
    }
}

fn respelled_json(json: &Json) -> Json {
    match json {
        Json::Number(number) => Json::Number(longer(number)),
        Json::Array(items) => Json::Array(items.iter().map(respelled_json).collect()),
        Json::Object(members) => {
            let members = members.iter().map(|(key, it)| (key.clone(), respelled_json(it)));
            Json::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// Values of few kinds, so that two of them are often equal.
fn near(ty: Type) -> BoxedStrategy<Datum> {
    let texts = |texts: &'static [&'static str]| {
        let read = move |text: &&str| text::parse(ty, text, &Zone::utc()).unwrap();
        prop::sample::select(texts.iter().map(read).collect::<Vec<_>>()).boxed()
    };
    match ty {
        Type::Float4 | Type::Float8 => texts(&["0", "-0", "NaN", "1", "-1", "Infinity"]),
        Type::Numeric => texts(&["0", "0.0", "1", "1.00", "-1", "-1.0", "NaN", "1e30", "1e-30"]),
        Type::Interval => texts(&["1 month", "30 days", "720 hours", "0", "-1 day", "-24 hours"]),
        Type::Jsonb => texts(&[
            "0",
            "0.0",
            "1",
            "[]",
            "[[]]",
            "[1]",
            "[1.0]",
            "{}",
            "{\"a\": 1}",
            "{\"a\": 1.0}",
            "{\"aa\": 1}",
            "{\"b\": []}",
            "null",
            "[null]",
            "\"a\"",
            "true",
            "[1, 2]",
        ]),
        Type::Array(_) => {
            let element = ty.element().unwrap();
            let shape = (-1..=1_i32, prop::bool::ANY);
            let items = prop::collection::vec(
                prop_oneof![1 => Just(Datum::Null), 4 => near(element)],
                0..3,
            );
            (items, shape)
                .prop_map(move |(items, (lower, deep))| {
                    let length = items.len() as u32;
                    let own = values::Dimension { length, lower };
                    let dimensions = match (items.is_empty(), deep) {
                        (true, _) => Vec::new(),
                        (false, false) => vec![own],
                        (false, true) => vec![values::Dimension { length: 1, lower: 1 }, own],
                    };
                    let array = Array::with_dimensions(element, dimensions, items).unwrap();
                    Datum::Array(Box::new(array))
                })
                .boxed()
        }
        ty => datum(ty),
    }
}

fn one(value: &Datum) -> Vec<u8> {
    identity::of(std::slice::from_ref(value))
}

fn either(ty: Type) -> impl Strategy<Value = Datum> {
    prop_oneof![1 => Just(Datum::Null), 4 => near(ty), 4 => datum(ty)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn equality_order_and_identity_are_one(
        (ty, all) in any_type().prop_flat_map(|ty| (Just(ty), prop::array::uniform3(either(ty))))
    ) {
        for value in &all {
            let other = respelled(value);
            prop_assert_eq!(value.compare(&other), Ordering::Equal, "{:?} {:?}", value, other);
            prop_assert_eq!(one(value), one(&other));
        }
        for (left, right) in [(0, 1), (1, 2), (0, 2)].map(|(a, b)| (&all[a], &all[b])) {
            let order = left.compare(right);
            prop_assert_eq!(right.compare(left), order.reverse());
            prop_assert_eq!(left == right, order.is_eq());
            let same = one(left) == one(right);
            prop_assert_eq!(same, order.is_eq(), "{:?} of {:?} and {:?}", ty, left, right);
            // A list of values is no other list.
            let joined = identity::of(&[left.clone(), right.clone()]);
            prop_assert_eq!(joined, [left, right].map(one).concat());
            prop_assert!(!one(left).is_empty());
        }
        let [a, b, c] = &all;
        prop_assert!(!(a.compare(b).is_le() && b.compare(c).is_le()) || a.compare(c).is_le());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn keys_sort_as_values(
        (ty, left, right) in key_type().prop_flat_map(|ty| (Just(ty), nullable(ty), nullable(ty))),
        descending: bool,
        nulls_first: bool,
    ) {
        let order = key::Order { descending, nulls_first, nullable: true };
        let bytes = |datum: &Datum| {
            let mut bytes = Vec::new();
            key::push(&mut bytes, datum, order);
            bytes
        };
        let expected = match (left.is_null(), right.is_null()) {
            (false, false) if descending => right.compare(&left),
            (false, false) => left.compare(&right),
            (left, right) if nulls_first => right.cmp(&left),
            (left, right) => left.cmp(&right),
        };
        prop_assert_eq!(bytes(&left).cmp(&bytes(&right)), expected);
        // Nothing of a column is a beginning of another value's bytes, and each can be skipped.
        let joined = [bytes(&left), bytes(&right)].concat();
        prop_assert_eq!(key::skip(&joined, ty, order).unwrap(), &bytes(&right)[..]);
        // What is said of the lengths of a type's keys decides where they are stored.
        if let (Some(length), false) = (key::fixed_bytes(ty), left.is_null()) {
            prop_assert_eq!(bytes(&left).len(), length + 1);
        }
    }

    #[test]
    fn text_reads_back((ty, value) in any_type().prop_flat_map(|ty| (Just(ty), datum(ty)))) {
        let zone = Zone::utc();
        let shown = text::print(&value, &zone);
        let read = text::parse(ty, &shown, &zone).unwrap();
        prop_assert!(same(&read, &value), "{shown:?} was read as {read:?}");
    }

    #[test]
    fn binary_reads_back((ty, value) in any_type().prop_flat_map(|ty| (Just(ty), datum(ty)))) {
        let mut bytes = Vec::new();
        binary::encode(&value, &mut bytes);
        prop_assert!(same(&binary::decode(ty, &bytes).unwrap(), &value));
    }

    #[test]
    fn rows_read_back(
        columns in prop::collection::vec(
            any_type().prop_flat_map(|ty| (Just(ty), nullable(ty))), 0..12
        )
    ) {
        let (types, row): (Vec<Type>, Vec<Datum>) = columns.into_iter().unzip();
        let layout = Layout::new(types);
        let read = layout.decode(&layout.encode(&row)).unwrap();
        prop_assert_eq!(read.len(), row.len());
        prop_assert!(read.iter().zip(&row).all(|(left, right)| same(left, right)));
    }

    #[test]
    fn sums_and_products_are_those_of_integers(
        left in any::<i64>(), right in any::<i64>(), a in 0..8_u16, b in 0..8_u16
    ) {
        let (left, right) = (i128::from(left), i128::from(right));
        let number = |units: i128, scale: u16| Numeric::from_units(units, scale).unwrap();
        let product = number(left, a).multiply(&number(right, b)).unwrap();
        prop_assert_eq!(product, number(left * right, a + b));
        let scale = a.max(b);
        let up = |units: i128, own: u16| units * 10_i128.pow(u32::from(scale - own));
        let sum = number(left, a).add(&number(right, b)).unwrap();
        prop_assert_eq!(sum, number(up(left, a) + up(right, b), scale));
        prop_assert_eq!(number(left, a).cmp(&number(right, b)), up(left, a).cmp(&up(right, b)));
        if right != 0 {
            let quotient = number(left, a).divide(&number(right, b)).unwrap();
            let back = quotient.multiply(&number(right, b)).unwrap();
            let error = back.subtract(&number(left, a)).unwrap().abs();
            // Half a unit of the quotient's last digit, times the divisor.
            let bound = number(1, quotient.scale()).multiply(&number(right.abs(), b)).unwrap();
            prop_assert!(error.add(&error).unwrap() <= bound);
        }
    }
}
