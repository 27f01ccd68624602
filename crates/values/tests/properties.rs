//! Bytes of keys sort as the values do, and all forms of a value read back as the same value.

use proptest::prelude::*;
use values::row::Layout;
use values::{
    Array, Date, Datum, EnumType, Interval, Json, Numeric, Oid, Time, Timestamp, Type, Zone,
    binary, key, text,
};

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
        Type::Text | Type::Varchar | Type::Char | Type::Name | Type::Letter => {
            prop_oneof!["[a-c\u{1}]{0,4}", "\\PC{0,20}"].prop_map(Datum::text).boxed()
        }
        Type::Bytea => prop_oneof![
            prop::collection::vec(prop_oneof![Just(0_u8), Just(255), any::<u8>()], 0..6),
            prop::collection::vec(any::<u8>(), 0..40),
        ]
        .prop_map(|bytes| Datum::Bytea(bytes.into()))
        .boxed(),
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

fn key_type() -> impl Strategy<Value = Type> {
    prop::sample::select(scalars().filter(|ty| ty.may_be_key()).collect::<Vec<_>>())
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
