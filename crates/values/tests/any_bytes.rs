//! Nothing that is read from outside panics: seeded bytes and changed bytes of good values go
//! through every reader.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use values::row::Layout;
use values::{Datum, Type, Zone, binary, key, text};

const ROUNDS: u64 = 40_000;

fn types() -> Vec<Type> {
    Type::scalars().chain([Type::Record]).flat_map(|ty| [Some(ty), ty.array()]).flatten().collect()
}

/// Bytes that are likely to go far: digits, signs and punctuation of all forms.
fn random_text(random: &mut ChaCha8Rng) -> String {
    const PARTS: [&str; 40] = [
        "1",
        "0",
        "9",
        "12",
        "2024",
        "-",
        "+",
        ".",
        ":",
        "e",
        "E5",
        "T",
        "Z",
        " ",
        ",",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\\u00e9",
        "\\ud83d",
        "null",
        "true",
        "jan",
        "BC",
        "am",
        "P",
        "Y",
        "D",
        "day",
        "ago",
        "\\x",
        "ff",
        "/",
        "Europe/Berlin",
        "\u{e9}",
        "=",
        "99999999999",
    ];
    (0..random.random_range(0..12)).map(|_| PARTS[random.random_range(0..PARTS.len())]).collect()
}

#[test]
fn any_text_is_read_or_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (types, zone) = (types(), Zone::named("America/New_York").unwrap());
    for round in 0..ROUNDS {
        let input = random_text(&mut random);
        let ty = types[random.random_range(0..types.len())];
        if let Ok(value) = text::parse(ty, &input, &zone) {
            let shown = text::print(&value, &zone);
            let again = text::parse(ty, &shown, &zone);
            assert!(
                again.is_ok_and(|again| again == value),
                "round {round}: {ty:?} {input:?} {shown:?}"
            );
        }
    }
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let types = types();
    for _ in 0..ROUNDS {
        let mut bytes: Vec<u8> =
            (0..random.random_range(0..40)).map(|_| random.random::<u8>() >> 3).collect();
        if random.random_bool(0.5) {
            bytes.iter_mut().for_each(|byte| *byte >>= random.random_range(0..6));
        }
        let ty = types[random.random_range(0..types.len())];
        if let Ok(value) = binary::decode(ty, &bytes) {
            text::print(&value, &Zone::utc());
        }
        let columns =
            (0..random.random_range(0..5)).map(|_| types[random.random_range(0..types.len())]);
        let layout = Layout::new(columns.collect());
        let _ = layout.decode(&bytes);
        let order = key::Order {
            descending: random.random(),
            nulls_first: false,
            nullable: random.random(),
        };
        let _ = key::skip(&bytes, ty, order);
    }
}

#[test]
fn changed_rows_are_read_or_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let layout = Layout::new(vec![
        Type::Int4,
        Type::Text,
        Type::Numeric,
        Type::Jsonb,
        Type::Int4.array().unwrap(),
    ]);
    let parse = |ty, input| text::parse(ty, input, &Zone::utc()).unwrap();
    let row: Vec<Datum> = layout
        .types()
        .iter()
        .zip(["7", "abc", "12.50", "{\"a\": [1]}", "{1,NULL,3}"])
        .map(|(ty, input)| parse(*ty, input))
        .collect();
    let good = layout.encode(&row);
    for _ in 0..ROUNDS {
        let mut bytes = good.clone();
        let at = random.random_range(0..bytes.len());
        bytes[at] = random.random();
        if random.random_bool(0.2) {
            bytes.truncate(random.random_range(0..=bytes.len()));
        }
        let _ = layout.decode(&bytes);
    }
}
