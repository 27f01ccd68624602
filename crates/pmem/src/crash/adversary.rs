//! Who decides what a power cut leaves of the stores that were not durable.

/// Which of the two spaces of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpaceKind {
    /// The image.
    Image,
    /// The log space.
    Log,
}

/// A cache line with stores that are not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndurableLine {
    /// Which space it is in.
    pub space: SpaceKind,
    /// Where it starts.
    pub offset: u64,
    /// Its number among the lines that are not durable: image before log, by offset, from zero.
    pub ordinal: u64,
    /// Ordinary stores, in 8-byte words, that are not durable.
    pub ordinary: usize,
    /// Non-temporal stores, in 8-byte words, that are not durable.
    pub past_cache: usize,
}

/// Chooses what arrived on the device. It is asked once for each line, in the order of
/// [`UndurableLine::ordinal`], and then once for each non-temporal store in that line.
pub trait Adversary {
    /// How many of the line's ordinary stores arrived, oldest first: from 0 to `line.ordinary`.
    fn prefix(&mut self, line: &UndurableLine) -> usize;

    /// Whether the `nth` of the line's non-temporal stores arrived.
    fn past_cache(&mut self, line: &UndurableLine, nth: usize) -> bool;
}

/// Nothing arrived that had not to.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllOldest;

/// Everything arrived.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllNewest;

/// Everything arrived except the stores to one line, given by its ordinal.
#[derive(Debug, Clone, Copy)]
pub struct OneLineLate(pub u64);

/// Nothing arrived except the stores to one line, given by its ordinal.
#[derive(Debug, Clone, Copy)]
pub struct OneLineEarly(pub u64);

/// Anything may have arrived: the same choices for the same seed.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    state: u64,
}

impl Random {
    /// An adversary with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The splitmix64 generator.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// An adversary that takes whole lines or nothing of them.
macro_rules! whole_lines {
    ($name:ty, $arrived:expr) => {
        impl Adversary for $name {
            fn prefix(&mut self, line: &UndurableLine) -> usize {
                let arrived: fn(&$name, u64) -> bool = $arrived;
                if arrived(self, line.ordinal) { line.ordinary } else { 0 }
            }

            fn past_cache(&mut self, line: &UndurableLine, _: usize) -> bool {
                let arrived: fn(&$name, u64) -> bool = $arrived;
                arrived(self, line.ordinal)
            }
        }
    };
}

whole_lines!(AllOldest, |_, _| false);
whole_lines!(AllNewest, |_, _| true);
whole_lines!(OneLineLate, |late, ordinal| ordinal != late.0);
whole_lines!(OneLineEarly, |early, ordinal| ordinal == early.0);

/// One of all the ways to choose, by its number: the numbers from 0 to one less than the number of
/// ways give each of them once, 0 what [`AllOldest`] gives.
#[derive(Debug, Clone, Copy)]
pub struct Numbered(pub u64);

impl Numbered {
    fn digit(&mut self, base: u64) -> u64 {
        let digit = self.0 % base;
        self.0 /= base;
        digit
    }
}

impl Adversary for Numbered {
    fn prefix(&mut self, line: &UndurableLine) -> usize {
        self.digit(line.ordinary as u64 + 1) as usize
    }

    fn past_cache(&mut self, _: &UndurableLine, _: usize) -> bool {
        self.digit(2) == 1
    }
}

impl Adversary for Random {
    fn prefix(&mut self, line: &UndurableLine) -> usize {
        (self.next() % (line.ordinary as u64 + 1)) as usize
    }

    fn past_cache(&mut self, _: &UndurableLine, _: usize) -> bool {
        self.next().is_multiple_of(2)
    }
}
