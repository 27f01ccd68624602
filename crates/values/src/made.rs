//! Estimates of the bytes of memory that a value takes which is read of a text or of bytes. They
//! are made before the value is, so that its memory can be taken first. Only JSON and arrays have
//! much more than their text.

use crate::{DIMENSIONS_MAX, Type};

/// About how many bytes a part of JSON or an item of an array has while the whole is made, beside
/// its text.
pub const PART_BYTES: usize = 96;
/// The fewest bytes of an item in an array's binary form: its length.
const ITEM_BYTES_MIN: usize = 4;

/// The memory of a value of type `ty` that is read of the text `text`, in bytes.
///
/// ```
/// use values::{Type, made};
/// assert_eq!(made::of_text(Type::Text, b"[1,2]"), 5);
/// assert!(made::of_text(Type::Jsonb, b"[1,2]") > 2 * made::PART_BYTES);
/// ```
#[must_use]
pub fn of_text(ty: Type, text: &[u8]) -> usize {
    match ty {
        Type::Json | Type::Jsonb | Type::Array(_) => of_tree(text),
        _ => text.len(),
    }
}

/// The memory of a value of type `ty` that is read of its binary form `bytes`, in bytes.
#[must_use]
pub fn of_binary(ty: Type, bytes: &[u8]) -> usize {
    match ty {
        Type::Json | Type::Jsonb => of_tree(bytes),
        Type::Array(_) => 2 * bytes.len() + PART_BYTES.saturating_mul(items_of(bytes)),
        _ => bytes.len(),
    }
}

/// About how many bytes the tree of a text of JSON or an array has: its parts end with a comma, and
/// members have a name besides.
#[must_use]
pub fn of_tree(text: &[u8]) -> usize {
    let parts = text.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
    (2 * text.len()).saturating_add(parts.saturating_mul(PART_BYTES))
}

/// How many items an array's binary form says it has, as far as it is long enough for them.
fn items_of(bytes: &[u8]) -> usize {
    let number = |at: usize| {
        let bytes = bytes.get(4 * at..4 * at + 4).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize)
    };
    // Count of dimensions, whether there are NULLs, type; length and first subscript of each.
    let lengths = (0..number(0).min(DIMENSIONS_MAX)).map(|dimension| number(3 + 2 * dimension));
    lengths.fold(1, usize::saturating_mul).min(bytes.len() / ITEM_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, Datum, binary};

    #[test]
    fn items_of_a_binary_array_are_counted_by_its_head() {
        let ty = Type::Text.array().unwrap();
        for (count, length) in [(0, 0), (1, 1), (3, 1_000), (1_000, 1)] {
            let items = (0..count).map(|_| Datum::text("x".repeat(length))).collect();
            let array = Datum::Array(Box::new(Array::new(Type::Text, items).unwrap()));
            let mut bytes = Vec::new();
            binary::encode(&array, &mut bytes);
            let expected = 2 * bytes.len() + count.max(1).min(bytes.len() / 4) * PART_BYTES;
            assert_eq!(of_binary(ty, &bytes), expected, "{count} items of {length} bytes");
            assert!(of_binary(ty, &bytes) >= array.heap_bytes());
            for end in 0..bytes.len().min(40) {
                let cut = of_binary(ty, &bytes[..end]);
                assert!(cut <= end * (2 + PART_BYTES), "{end} bytes: {cut}");
            }
        }
        let lies = [[0, 0, 0, 1], [0; 4], [0; 4], [0xff; 4], [0; 4]].concat();
        assert_eq!(items_of(&lies), lies.len() / 4);
    }
}
