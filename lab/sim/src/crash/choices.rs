//! Which adversaries are asked at a crash point.

use std::fmt;

use pmem::{Adversary, AllNewest, AllOldest, Numbered, OneLineEarly, OneLineLate, Replay};

use super::case::Size;
use crate::history::Random;

/// An adversary, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// No power cut: the process was killed, and every store stays visible.
    Killed,
    /// Nothing arrived that had not to.
    AllOldest,
    /// Everything arrived.
    AllNewest,
    /// Everything arrived but the stores to one line.
    OneLineLate(u64),
    /// Only the stores to one line arrived.
    OneLineEarly(u64),
    /// One of all the ways to choose.
    Numbered(u64),
    /// Anything, by a seed.
    Random(u64),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed => f.write_str("killed: every store stays visible, durable or not"),
            Self::AllOldest => f.write_str("nothing arrived that had not to"),
            Self::AllNewest => f.write_str("everything arrived"),
            Self::OneLineLate(line) => write!(f, "everything but undurable line {line} arrived"),
            Self::OneLineEarly(line) => write!(f, "only undurable line {line} arrived"),
            Self::Numbered(number) => write!(f, "choice {number} of all"),
            Self::Random(seed) => write!(f, "random prefixes by seed {seed}"),
        }
    }
}

impl Choice {
    /// The adversary itself.
    #[must_use]
    pub fn adversary(self) -> Box<dyn Adversary> {
        match self {
            Self::AllOldest => Box::new(AllOldest),
            Self::Killed | Self::AllNewest => Box::new(AllNewest),
            Self::OneLineLate(line) => Box::new(OneLineLate(line)),
            Self::OneLineEarly(line) => Box::new(OneLineEarly(line)),
            Self::Numbered(number) => Box::new(Numbered(number)),
            Self::Random(seed) => Box::new(pmem::Random::new(seed)),
        }
    }
}

/// Where the choices of `replay` stand; the simplest first.
pub(super) fn choices(replay: &Replay<'_>, size: Size, random: &mut Random) -> Vec<Choice> {
    let (all_up_to, lines_up_to, seeds) = match size {
        Size::Tiny => (96, 48, 12),
        Size::Small => (16, 6, 4),
        Size::Large => (8, 3, 3),
    };
    let (ways, lines) = (replay.choices(), replay.undurable_lines());
    let mut list = vec![Choice::AllOldest, Choice::AllNewest];
    if ways <= all_up_to {
        // The first and the last are the two above.
        list.extend((1..ways.saturating_sub(1)).map(Choice::Numbered));
        return list;
    }
    for nth in 0..lines.min(lines_up_to) {
        let line = if lines <= lines_up_to { nth } else { random.below(lines) };
        list.push(Choice::OneLineLate(line));
        list.push(Choice::OneLineEarly(line));
    }
    list.extend((0..seeds).map(|_| Choice::Random(random.word() >> 32)));
    list
}
