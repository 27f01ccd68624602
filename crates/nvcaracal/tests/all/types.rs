//! Types that derive `Data` and `Key`: how they are written, in what order, and in which words.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use nvcaracal::{
    Abort, Data, Database, DeviceSpec, HashTable, Key, KeyBuffer, Procedure, Serde, Stop, Table,
    Transaction,
};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Data, Key)]
struct UserId(u64);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Data, Key)]
struct Name(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Data, Key)]
struct SeatKey {
    event: u32,
    r#row: i16,
    seat: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Data, Key)]
enum Class {
    First,
    Second,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Data, Key)]
enum Owner {
    Nobody,
    User(UserId),
    Group { name: String, of: UserId },
    Pair(UserId, UserId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Data, Key)]
struct Nothing;

/// A type of another crate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Foreign {
    map: BTreeMap<String, Option<f64>>,
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Page<T> {
    items: Vec<T>,
    children: Vec<Page<T>>,
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Seat {
    key: SeatKey,
    class: Class,
    owner: Owner,
    price: Decimal,
    order: Uuid,
    until: Option<SystemTime>,
    held: Result<Duration, Name>,
    members: [UserId; 3],
    #[data(serde)]
    foreign: Foreign,
    page: Page<u8>,
}

fn seat(owner: Owner) -> Seat {
    Seat {
        key: SeatKey { event: 1, row: -2, seat: 3 },
        class: Class::Second,
        owner,
        price: Decimal::new(1999, 2),
        order: Uuid::from_bytes([7; 16]),
        until: Some(SystemTime::UNIX_EPOCH + Duration::new(5, 6)),
        held: Err(Name("Ada".into())),
        members: [1, 2, 3].map(UserId),
        foreign: Foreign { map: BTreeMap::from([("half".into(), Some(0.5)), ("no".into(), None)]) },
        page: Page { items: vec![1, 2], children: vec![Page { items: vec![3], children: vec![] }] },
    }
}

fn owners() -> [Owner; 5] {
    [
        Owner::Nobody,
        Owner::User(UserId(3)),
        Owner::Group { name: "a".into(), of: UserId(9) },
        Owner::Group { name: "ab".into(), of: UserId(0) },
        Owner::Pair(UserId(0), UserId(0)),
    ]
}

fn check_value<T: Data + PartialEq + Debug>(value: &T) {
    let whole = value.with_bytes(<[u8]>::to_vec);
    assert_eq!(T::from_bytes(&whole).as_ref(), Some(value));
    if let Some(bytes) = T::BYTES {
        assert_eq!(whole.len(), bytes);
    }
    let mut inside = Vec::new();
    value.encode(&mut inside);
    for end in 0..inside.len() {
        assert_eq!(T::decode(&mut &inside[..end]), None, "{end} bytes of {value:?}");
    }
    inside.push(9);
    let mut rest = inside.as_slice();
    assert_eq!(T::decode(&mut rest).as_ref(), Some(value));
    assert_eq!(rest, [9]);
}

#[test]
fn derived_values_are_read_as_they_were_written() {
    owners().map(seat).iter().for_each(check_value);
    owners().iter().for_each(check_value);
    check_value(&Class::First);
    check_value(&Nothing);
    check_value(&Serde(vec![1.5, -2.5]));
    assert_eq!(Class::from_bytes(&[2]), None, "there is no third variant");
}

#[test]
fn a_type_of_fixed_fields_has_a_fixed_length() {
    assert_eq!(<UserId as Data>::BYTES, Some(8));
    assert_eq!(<SeatKey as Data>::BYTES, Some(8));
    assert_eq!(<Class as Data>::BYTES, Some(1));
    assert_eq!(<Nothing as Data>::BYTES, Some(0));
    assert_eq!(<Owner as Data>::BYTES, None);
    assert_eq!(Seat::BYTES, None);
    // As the field that it is made of, so that it can take its place.
    assert_eq!(Name("x".into()).with_bytes(<[u8]>::to_vec), b"x");
}

#[test]
fn words_name_fields_and_variants() {
    assert_eq!(<UserId as Data>::describe(), "u64");
    assert_eq!(<Name as Key>::describe(), "String");
    assert_eq!(<Nothing as Data>::describe(), "()");
    assert_eq!(<SeatKey as Key>::describe(), "SeatKey { event: u32, row: i16, seat: u16 }");
    assert_eq!(<Class as Data>::describe(), "enum Class { First, Second }");
    let owner = "enum Owner { Nobody, User(u64), Group(name: String, of: u64), Pair(u64, u64) }";
    assert_eq!(
        (<Owner as Data>::describe(), <Owner as Key>::describe()),
        (owner.into(), owner.into())
    );
    assert_eq!(
        Seat::describe(),
        format!(
            "Seat {{ key: SeatKey {{ event: u32, row: i16, seat: u16 }}, class: enum Class \
             {{ First, Second }}, owner: {owner}, price: Decimal, order: Uuid, until: \
             Option<SystemTime>, held: Result<Duration, String>, members: [u64; 3], foreign: \
             serde Foreign, page: Page {{ items: Vec<u8>, children: Vec<Page<u8>> }} }}"
        )
    );
}

fn key_bytes<K: Key>(key: &K) -> Vec<u8> {
    key.with_key(<[u8]>::to_vec)
}

fn check_keys<K: Key<Owned = K> + Ord + Clone>(ascending: &[K]) {
    for key in ascending {
        assert_eq!(K::from_key(&key_bytes(key)).as_ref(), Some(key));
        let mut inside = KeyBuffer::default();
        key.encode(&mut inside);
        inside.push(&[9]);
        let mut rest = inside.bytes();
        assert_eq!(K::decode(&mut rest).as_ref(), Some(key));
        assert_eq!(rest, [9]);
    }
    for pair in ascending.windows(2) {
        assert!(pair[0] < pair[1]);
        assert!(key_bytes(&pair[0]) < key_bytes(&pair[1]), "{:?} is before {:?}", pair[0], pair[1]);
    }
}

#[test]
fn derived_keys_are_in_the_order_that_ord_derives() {
    check_keys(&owners());
    check_keys(&[Class::First, Class::Second]);
    check_keys(&[Nothing]);
    check_keys(&["a", "a\0", "ab"].map(|name| Name(name.into())));
    let seat = |event, row, seat| SeatKey { event, row, seat };
    check_keys(&[seat(0, i16::MIN, 9), seat(0, -1, 9), seat(0, 0, 0), seat(1, -5, 0)]);
    check_keys(&[Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16])]);
    assert_eq!(key_bytes(&seat(1, 0, 2)).len(), 8, "a word to the engine");
}

const SEATS: Table<SeatKey, Seat> = Table::ordered("seats").with_value_bytes(500);
const BY_OWNER: nvcaracal::Index<Owner, SeatKey, Seat> =
    SEATS.index("by owner", |_, seat| Some(seat.owner.clone()));
const CLASSES: HashTable<Name, Class> = Table::hash("classes");

#[derive(Data)]
struct Sell {
    key: SeatKey,
    to: Owner,
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Sold {
    before: Option<Owner>,
    class: Class,
}

impl Procedure for Sell {
    const NAME: &'static str = "sell";
    type Output = Sold;

    fn run(&self, tx: &mut Transaction) -> Result<Sold, Stop> {
        let class = tx.get(CLASSES, Name("seats".into()))?.ok_or(Abort::new("no class"))?;
        let before = tx.get(SEATS, self.key)?.map(|seat| seat.owner);
        tx.insert(SEATS, self.key, &Seat { key: self.key, class, ..seat(self.to.clone()) })?;
        Ok(Sold { before, class })
    }
}

#[derive(Data)]
struct Classify(Name, Class);

impl Procedure for Classify {
    const NAME: &'static str = "classify";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        tx.insert(CLASSES, self.0.clone(), &self.1)
    }
}

#[test]
fn derived_types_are_arguments_answers_keys_values_and_keys_of_indexes() {
    let options = Database::options().table(SEATS).table(CLASSES).index(BY_OWNER);
    let options = options.procedure::<Sell>().procedure::<Classify>();
    let db = options.open_device(DeviceSpec::Dram).unwrap();
    db.call(Classify(Name("seats".into()), Class::First)).unwrap();
    let key = |seat| SeatKey { event: 4, row: -1, seat };
    for (number, to) in owners().into_iter().enumerate() {
        let sold = db.call(Sell { key: key(number as u16), to }).unwrap();
        assert_eq!(sold, Sold { before: None, class: Class::First });
    }
    let again = db.call(Sell { key: key(0), to: Owner::User(UserId(3)) }).unwrap();
    assert_eq!(again.before, Some(Owner::Nobody));
    assert_eq!(db.get(SEATS, key(2)).unwrap().unwrap().owner, owners()[2]);
    let snapshot = db.snapshot().unwrap();
    let of_user: Vec<_> = snapshot
        .range_by(BY_OWNER, Owner::User(UserId(3))..=Owner::User(UserId(3)))
        .map(|row| row.unwrap().0.seat)
        .collect();
    assert_eq!(of_user, [0, 1]);
}

#[test]
fn the_readme_shows_an_example_that_compiles() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("../../README.md")).unwrap();
    let example = std::fs::read_to_string(root.join("examples/account.rs")).unwrap();
    let (_, code) = example.split_once("\n\n").unwrap();
    assert!(readme.contains(&format!("```rust\n{code}```\n")), "it is examples/account.rs");
}
