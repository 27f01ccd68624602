//! The hash by difference is that of the whole, whatever the way.

use super::*;
use crate::digest::sums::portable_gain_of;
use crate::value::lines::padded_line;
use crate::value::lines_around;

/// O-102: a line that changed and is missing in the mask would be neither stored nor hashed.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "the mask has all lines that differ")]
fn o_102_a_line_missing_in_the_mask_is_noticed() {
    let (old, mut new) = ([1; 200], [1; 200]);
    (new[0], new[190]) = (2, 2);
    row_change(TableId(3), b"key", &old, &NewValue::with_lines(&new, 0, &new[..64], 0));
}

/// O-48: maintaining the hash by difference is the same as hashing both values whole.
#[test]
fn o_48_a_change_is_the_difference_of_two_hashes() {
    let value = |len: usize, salt: usize| -> Vec<u8> {
        (0..len).map(|i| if i == salt { 7 } else { i as u8 }).collect()
    };
    let lengths = [0, 1, 8, 9, 16, 63, 64, 65, 127, 128, 129, 300, 1000, 1024, 1025, 2500];
    for old_len in lengths {
        for new_len in lengths {
            for salt in [0, 64, 200, 1024, 5000] {
                let (old, new) = (value(old_len, 9999), value(new_len, salt));
                let whole = StateHash(row_hash(TableId(3), b"key", &new))
                    .less(row_hash(TableId(3), b"key", &old))
                    .0;
                let change = row_change(TableId(3), b"key", &old, &NewValue::whole(&new));
                assert_eq!(change.hash, whole);
                assert_eq!(whole == 0, old == new, "{old_len} to {new_len}, {salt}");
                let differing = match old_len == new_len {
                    true if salt < new_len => 1 << (salt / 64),
                    true => 0,
                    false => u64::MAX,
                };
                assert_eq!(change.lines, differing, "{old_len} to {new_len}, {salt}");
                assert_eq!(changed_lines(&old, &NewValue::whole(&new)), differing);
                if old_len == new_len && salt < new_len {
                    let lines = lines_around(&(salt..salt + 1), new_len);
                    let by_lines = NewValue::with_lines(&old, lines.start, &new[lines], 0);
                    assert_eq!(row_change(TableId(3), b"key", &old, &by_lines), change);
                    assert_eq!(changed_lines(&old, &by_lines), differing);
                }
            }
        }
    }
}

/// O-48: lines that are replaced in several blocks at once, by which a value may end.
#[test]
fn o_48_a_part_of_several_blocks_is_the_difference_of_two_hashes() {
    let old: Vec<u8> = (0..2500_u32).map(|i| i.wrapping_mul(37) as u8).collect();
    for range in [0..64, 960..1024, 960..1088, 1024..2048, 64..2112, 960..2500, 0..2500] {
        let mut new = old.clone();
        new[range.clone()].iter_mut().for_each(|byte| *byte = !*byte);
        let whole = StateHash(row_hash(TableId(3), b"key", &new))
            .less(row_hash(TableId(3), b"key", &old))
            .0;
        let (part, at) = (&new[range.clone()], range.start);
        assert_eq!(
            lines_gain(TableId(3), b"key", at, &old[range.clone()], part),
            whole,
            "{range:?}"
        );
    }
}

/// O-48: the hash is the same on every processor.
#[test]
fn o_48_all_processors_come_to_the_same_sums() {
    let bytes: Vec<u8> = (0..64 * 32_u32).map(|i| (i * i / 7) as u8).collect();
    let (lines, _) = bytes.as_chunks::<LINE>();
    for first in 0..BLOCK_LINES {
        for count in 0..=BLOCK_LINES - first {
            let keys = &KEYS[first * WORDS..];
            let (old, new) = (&lines[..count], &lines[16..16 + count]);
            assert_eq!(gain_of(keys, old, new), portable_gain_of(keys, old, new));
        }
    }
    let line = padded_line(&bytes[..45]);
    assert_eq!(
        only_line_hash(TableId(3), b"key", &line, 45),
        row_hash(TableId(3), b"key", &bytes[..45])
    );
    let old = padded_line(&bytes[100..145]);
    let whole = StateHash(row_hash(TableId(3), b"key", &bytes[..45]))
        .less(row_hash(TableId(3), b"key", &old[..45]))
        .0;
    assert_eq!(only_line_gain(TableId(3), b"key", &old, &line), whole);
}

#[test]
fn o_48_a_word_changes_the_hash_as_any_value_does() {
    for (old, new) in [(0, 0), (0, 1), (1, 0), (5, u64::MAX), (u64::MAX, 5), (1 << 63, 7)] {
        for key in [&b"12345678"[..], b"a longer key"] {
            let [old_hash, new_hash] =
                [old, new].map(|word: u64| row_hash(TableId(3), key, &word.to_le_bytes()));
            assert_eq!(word_gain(TableId(3), key, old, new), StateHash(new_hash).less(old_hash).0);
        }
    }
}

/// The state hash lies in checkpoints, and a store is refused if its rows come to another one:
/// so these numbers change with the format version only.
#[test]
fn o_48_the_hash_is_that_of_stores_that_exist() {
    let value: Vec<u8> = (0..2500_u32).map(|i| i.wrapping_mul(37) as u8).collect();
    let cases = [
        (0, &b"12345678"[..], 0),
        (7, b"12345678", 64),
        (7, b"12345678", 65),
        (511, b"a longer key", 150),
        (511, b"a longer key", 2500),
    ];
    let hashes = cases.map(|(table, key, len)| row_hash(TableId(table), key, &value[..len]));
    let expected = [
        186414165196754903755489565197836752685,
        63346337345599246649122842456429340881,
        21939730740152698004042829657255875997,
        14672094887396754684586537588090547419,
        92767222042554826147781990632323312069,
    ];
    assert_eq!(hashes, expected);
    assert_eq!(StateHash(0xab << 96).to_string(), "000000ab000000000000000000000000");
}

/// O-48: every bit of a value, of its key and of its length counts.
#[test]
fn o_48_every_bit_counts() {
    let value: Vec<u8> = (0..150_u8).map(|i| i.wrapping_mul(37)).collect();
    for key in [&b"12345678"[..], b"a longer key"] {
        let mut seen = std::collections::BTreeSet::new();
        let mut is_new = |hash: u128| seen.insert(hash);
        assert!(is_new(row_hash(TableId(1), key, &value)));
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(is_new(row_hash(TableId(1), key, &flipped)), "bit {bit} of the value");
        }
        for bit in 0..key.len() * 8 {
            let mut flipped = key.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(is_new(row_hash(TableId(1), &flipped, &value)), "bit {bit} of the key");
        }
        for zeros in 1..100 {
            let longer = [&value[..], &vec![0; zeros]].concat();
            assert!(is_new(row_hash(TableId(1), key, &longer)), "{zeros} zeros more");
        }
    }
}

/// O-48: values that hold the same blocks at other places, or swap rows, hash differently.
#[test]
fn o_48_places_and_rows_count() {
    let (a, b) = ([1_u8; 64], [2_u8; 64]);
    assert_ne!(
        row_hash(TableId(0), b"k", &[a, b].concat()),
        row_hash(TableId(0), b"k", &[b, a].concat())
    );
    let straight = sum_of(row_hash(TableId(0), b"k", &a), row_hash(TableId(0), b"l", &b));
    assert_ne!(straight, sum_of(row_hash(TableId(0), b"k", &b), row_hash(TableId(0), b"l", &a)));
    assert_ne!(row_hash(TableId(0), b"k", &a), row_hash(TableId(1), b"k", &a));
}
