//! The damages.

use std::fmt;

use super::family::{Family, Files};
use crate::history::Random;

/// The files that damage is done to.
const NAMES: [&str; 4] = ["meta", "data", "table", "log"];

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A bit is flipped.
    Bit,
    /// A range becomes zeros, or all of the file.
    Zeros,
    /// A range becomes random bytes.
    Noise,
    /// The end is cut off, perhaps all of it.
    Cut,
    /// Bytes are put in front, or removed there.
    Shift,
    /// The file is that of another store.
    OtherStore,
    /// The file is that of another moment of the same store.
    OtherMoment,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Bit,
        Self::Zeros,
        Self::Noise,
        Self::Cut,
        Self::Shift,
        Self::OtherStore,
        Self::OtherMoment,
    ];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bit => "bit flipped",
            Self::Zeros => "zeroed",
            Self::Noise => "noise",
            Self::Cut => "cut off",
            Self::Shift => "shifted",
            Self::OtherStore => "file of another store",
            Self::OtherMoment => "file of another moment",
        }
    }
}

/// One damage, with words for a person who looks into it.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) kind: Kind,
    what: String,
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Does a random damage to the files of a moment of the first store.
pub(super) fn damage(files: &mut Files, family: &Family, random: &mut Random) -> Edit {
    let kind = random.pick(&Kind::ALL);
    let name = random.pick(&NAMES);
    let bytes = files.get_mut(name).expect("every store has these files");
    let what = match kind {
        Kind::Bit => flip(bytes, random),
        Kind::Zeros => fill(bytes, random, |_| 0),
        Kind::Noise => fill(bytes, random, |random| random.word() as u8),
        Kind::Cut => cut(bytes, random),
        Kind::Shift => shift(bytes, random),
        Kind::OtherStore | Kind::OtherMoment => {
            let life = &family.lives[usize::from(kind == Kind::OtherStore)];
            let number = random.below(life.moments.len() as u64) as usize;
            let moment = &life.moments[number];
            bytes.clone_from(&moment.files[name]);
            format!("of moment {number} (epoch {}, closed: {})", moment.epoch, moment.closed)
        }
    };
    Edit { kind, what: format!("{name}: {} {what}", kind.name()) }
}

/// A place in a file, more often where something is.
fn place(bytes: &[u8], random: &mut Random) -> usize {
    let anywhere = |random: &mut Random| random.below(bytes.len().max(1) as u64) as usize;
    let tries = (0..20).map(|_| anywhere(random)).collect::<Vec<_>>();
    let used = tries.iter().find(|&&at| bytes.get(at).is_some_and(|byte| *byte != 0));
    used.copied().unwrap_or(tries[0])
}

fn flip(bytes: &mut [u8], random: &mut Random) -> String {
    let (at, bit) = (place(bytes, random), random.below(8));
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
    format!("at {at}, bit {bit}")
}

fn fill(bytes: &mut [u8], random: &mut Random, byte: impl Fn(&mut Random) -> u8) -> String {
    let at = if random.percent(20) { 0 } else { place(bytes, random) };
    let len = match random.below(5) {
        0 => bytes.len(),
        1 => 4096,
        2 => 512,
        3 => 64,
        _ => 1 + random.below(20_000) as usize,
    };
    let end = bytes.len().min(at.saturating_add(len));
    bytes[at.min(end)..end].iter_mut().for_each(|b| *b = byte(random));
    format!("from {at} to {end}")
}

fn cut(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    let len = match random.below(4) {
        0 => 0,
        1 => bytes.len().saturating_sub(1 + random.below(5000) as usize),
        // What is in use is mostly much shorter than the file.
        2 => random.below(bytes.len().clamp(1, 12 << 10) as u64) as usize,
        _ => random.below(bytes.len().max(1) as u64) as usize,
    };
    bytes.truncate(len);
    format!("at {len}")
}

fn shift(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    let by = random.pick(&[1, 8, 64, 512, 4096, 65_536]);
    if random.percent(50) {
        bytes.splice(0..0, vec![0; by]);
        format!("by {by} bytes towards the end")
    } else {
        bytes.drain(..by.min(bytes.len()));
        format!("by {by} bytes towards the beginning")
    }
}
