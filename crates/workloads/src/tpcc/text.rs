//! Random texts and names by the rules of TPC-C (clause 4.3.2), and the constants of its NURand.

use crate::random::{Random, mix};
use crate::tpcc::schema::Address;

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const SYLLABLES: [&[u8]; 10] =
    [b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING"];

/// A random alphanumeric text of `length_min..=N` bytes, padded with zero bytes.
pub(crate) fn text<const N: usize>(random: &mut Random, length_min: usize) -> [u8; N] {
    let mut bytes = [0; N];
    let length = random.between(length_min as u64, N as u64) as usize;
    for byte in &mut bytes[..length] {
        *byte = LETTERS[random.below(LETTERS.len() as u64) as usize];
    }
    bytes
}

/// A random text of digits.
pub(crate) fn digits<const N: usize>(random: &mut Random) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.fill_with(|| b'0' + random.below(10) as u8);
    bytes
}

/// `I_DATA` or `S_DATA`: one in ten contains `ORIGINAL`.
pub(crate) fn data(random: &mut Random) -> [u8; 50] {
    let mut bytes: [u8; 50] = text(random, 26);
    if random.percent(10) {
        let at = random.between(0, 26 - 8) as usize;
        bytes[at..at + 8].copy_from_slice(b"ORIGINAL");
    }
    bytes
}

/// Whether a text of [`data`] is an original.
pub(crate) fn is_original(data: &[u8; 50]) -> bool {
    // Few others have these two letters anywhere, which is one comparison of whole vectors.
    let pairs = data[..48].iter().zip(&data[1..49]);
    let begins =
        pairs.fold(0, |begins, (a, b)| begins | u8::from(*a == b'O') & u8::from(*b == b'R'));
    begins != 0 && data.windows(8).any(|part| part == b"ORIGINAL")
}

/// A random address; its zip code is four digits and `11111`.
pub(crate) fn address(random: &mut Random) -> Address {
    let mut zip = *b"000011111";
    zip[..4].copy_from_slice(&digits::<4>(random));
    Address {
        street_1: text(random, 10),
        street_2: text(random, 10),
        city: text(random, 10),
        state: text(random, 2),
        zip,
    }
}

/// The last name with this number below 1000: a syllable for each digit. At most 15 bytes, so the
/// last of the 16 is always 0.
pub(crate) fn last_name(number: u32) -> [u8; 16] {
    let mut name = [0; 16];
    let mut at = 0;
    for digit in [number / 100, number / 10 % 10, number % 10] {
        let syllable = SYLLABLES[digit as usize];
        name[at..at + syllable.len()].copy_from_slice(syllable);
        at += syllable.len();
    }
    name
}

/// The constants C of NURand (clause 2.1.6), chosen once from the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Constants {
    /// For last names while loading.
    pub(crate) last_load: u64,
    /// For last names while running; its distance from `last_load` is in 65..=119, but not 96 or
    /// 112.
    pub(crate) last_run: u64,
    /// For customer ids.
    pub(crate) customer: u64,
    /// For item ids.
    pub(crate) item: u64,
}

impl Constants {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(mix(seed), 0, 0);
        let distance = loop {
            let distance = random.between(65, 119);
            if distance != 96 && distance != 112 {
                break distance;
            }
        };
        let low = random.between(0, 255 - distance);
        let (last_load, last_run) =
            if random.percent(50) { (low, low + distance) } else { (low + distance, low) };
        let (customer, item) = (random.between(0, 1023), random.between(0, 8191));
        Self { last_load, last_run, customer, item }
    }
}

/// NURand's A for a choice of `count` numbers: that of the specification for the standard counts
/// (3,000 customers: 1023; 100,000 items: 8191), less for fewer, so that small data sets are skewed
/// alike.
pub(crate) fn nurand_a(count: u32, standard: u64) -> u64 {
    let half = u64::from(count / 2).max(1);
    (((half + 1).next_power_of_two() / 2).max(2) - 1).min(standard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_syllables() {
        assert_eq!(&last_name(371)[..13], b"PRICALLYOUGHT");
        assert_eq!(&last_name(40)[..10], b"BARPRESBAR");
        assert_eq!(&last_name(777), b"CALLYCALLYCALLY\0");
    }

    #[test]
    fn constants_keep_their_distance() {
        for seed in 0..500 {
            let constants = Constants::new(seed);
            let distance = constants.last_load.abs_diff(constants.last_run);
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112);
            assert!(constants.last_load <= 255 && constants.last_run <= 255);
        }
    }

    #[test]
    fn standard_counts_get_the_constants_of_the_specification() {
        assert_eq!(nurand_a(3_000, 1023), 1023);
        assert_eq!(nurand_a(100_000, 8191), 8191);
        assert_eq!(nurand_a(100, 1023), 31);
        assert_eq!(nurand_a(10, 1023), 3);
    }

    #[test]
    fn the_word_counts_wherever_it_is() {
        for at in 0..=50 - 8 {
            let mut data = [b'O'; 50];
            assert!(!is_original(&data));
            data[at..at + 8].copy_from_slice(b"ORIGINAL");
            assert!(is_original(&data), "at {at}");
            data[at + 7] = b'l';
            assert!(!is_original(&data), "at {at}");
        }
    }

    #[test]
    fn one_in_ten_is_original() {
        let mut random = Random::new(1, 0, 0);
        let count = (0..10_000).filter(|_| is_original(&data(&mut random))).count();
        assert!((900..1100).contains(&count), "{count}");
    }

    #[test]
    fn texts_have_their_lengths() {
        let mut random = Random::new(1, 0, 0);
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let bytes: [u8; 14] = text(&mut random, 10);
            lengths.insert(bytes.iter().position(|&b| b == 0).unwrap_or(14));
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [10, 11, 12, 13, 14]);
        assert_eq!(&address(&mut random).zip[4..], b"11111");
    }
}
