//! `random()` and `gen_random_uuid()`: made of a seed that comes with the statement, so that a
//! replay makes the same ones.

use super::context::Context;
use crate::ir::Random;
use sha2::{Digest as _, Sha256};
use values::{Datum, Error, Result};

/// The bytes of a seed.
pub const SEED_BYTES: usize = 16;

/// The random value with this number.
pub(super) fn value(what: Random, context: &Context, number: u64) -> Result<Datum> {
    let seed = match context.parameters.last() {
        Some(Datum::Bytea(seed)) if seed.len() == SEED_BYTES => seed,
        _ => {
            let message = "there is no seed for random values";
            return Err(Error::unsupported(message, "Run the statement again, by itself."));
        }
    };
    let mut hash = Sha256::new();
    hash.update(seed);
    hash.update(number.to_le_bytes());
    let hash = hash.finalize();
    let mut bytes: [u8; 16] = *hash.first_chunk().expect("it has 32 bytes");
    Ok(match what {
        Random::Fraction => {
            // As many bits as a fraction below 1 has.
            let bits = u128::from_le_bytes(bytes) as u64 >> 11;
            Datum::Float8(bits as f64 / (1_u64 << 53) as f64)
        }
        Random::Uuid => {
            bytes[6] = bytes[6] & 0x0f | 0x40; // version 4
            bytes[8] = bytes[8] & 0x3f | 0x80; // of RFC 4122
            Datum::Uuid(bytes)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::Timestamp;

    #[test]
    fn values_differ_and_are_the_same_again() {
        let mut context = Context::at(Timestamp::from_bits(0).unwrap());
        assert!(value(Random::Uuid, &context, 1).is_err());
        context.parameters = vec![Datum::Int4(1), Datum::Bytea([7; SEED_BYTES].into())];
        let made = |what, number| value(what, &context, number).unwrap();
        let (first, second) = (made(Random::Uuid, 1), made(Random::Uuid, 2));
        assert_ne!(first, second);
        assert_eq!(first, made(Random::Uuid, 1));
        let Datum::Uuid(bytes) = first else { panic!("it is no uuid") };
        assert_eq!((bytes[6] >> 4, bytes[8] >> 6), (4, 2));
        for number in 1..1_000 {
            let Datum::Float8(made) = made(Random::Fraction, number) else { panic!("no fraction") };
            assert!((0.0..1.0).contains(&made));
        }
    }
}
