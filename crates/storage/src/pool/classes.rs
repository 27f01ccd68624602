//! Classes of values that lie beside their rows: by length, each with a pool (O-42).

use crate::format::{CLASS_BYTES_MAX, CLASS_BYTES_MIN, CLASSES, TABLES_MAX};

/// Pool of the values of a class.
pub fn class_pool(class: usize) -> u16 {
    debug_assert!(class < CLASSES, "there is no class {class}");
    (TABLES_MAX + class) as u16
}

/// Class of values of a length: the smallest power of two from 128 that holds it.
pub fn class_of(len: u64) -> usize {
    debug_assert!(len <= CLASS_BYTES_MAX, "no class has values of {len} bytes");
    let bytes = len.max(CLASS_BYTES_MIN).next_power_of_two();
    (bytes.trailing_zeros() - CLASS_BYTES_MIN.trailing_zeros()) as usize
}

/// Bytes of a slot of a class.
pub fn class_bytes(class: usize) -> u64 {
    CLASS_BYTES_MIN << class
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{POOLS, VALUE_BYTES_MAX};

    #[test]
    fn a_class_is_the_smallest_that_holds_a_value() {
        for (len, class) in [(0, 0), (1, 0), (128, 0), (129, 1), (256, 1), (257, 2), (4096, 5)] {
            assert_eq!(class_of(len), class, "{len}");
        }
        assert_eq!(class_of(u64::from(VALUE_BYTES_MAX)), CLASSES - 1);
        for class in 0..CLASSES {
            assert_eq!(class_of(class_bytes(class)), class);
            assert_eq!(usize::from(class_pool(class)), TABLES_MAX + class);
        }
        assert_eq!(usize::from(class_pool(CLASSES - 1)), POOLS - 1);
    }
}
