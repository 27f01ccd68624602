//! Changes of files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::history::Random;

const PAGE_BYTES: usize = 4096;
/// Files are extended by so much at most.
const EXTENSION_BYTES_MAX: u64 = 64 << 10;

/// Files by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files(pub(crate) BTreeMap<&'static str, Vec<u8>>);

impl Files {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.values().map(|bytes| bytes.len() as u64).sum()
    }

    /// Writes them into a directory; pages of zeros become holes.
    pub(crate) fn write_to(&self, dir: &Path) -> io::Result<()> {
        for (name, bytes) in &self.0 {
            let file = fs::File::create(dir.join(name))?;
            file.set_len(bytes.len() as u64)?;
            for (number, page) in bytes.chunks(PAGE_BYTES).enumerate() {
                if page.iter().any(|byte| *byte != 0) {
                    file.write_all_at(page, (number * PAGE_BYTES) as u64)?;
                }
            }
        }
        Ok(())
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// One bit is another one.
    Flip { file: &'static str, at: usize, bit: u8 },
    /// Other bytes.
    Put { file: &'static str, at: usize, bytes: Vec<u8> },
    /// The same byte over a range.
    Fill { file: &'static str, at: usize, len: usize, byte: u8 },
    /// A block from another place, perhaps of another file.
    Copy { from: &'static str, source: usize, file: &'static str, at: usize, len: usize },
    /// Two blocks of a file change places.
    Swap { file: &'static str, at: usize, other: usize, len: usize },
    /// The file ends early.
    Truncate { file: &'static str, len: usize },
    /// The file goes on.
    Extend { file: &'static str, bytes: usize, byte: u8 },
    /// The file as it was at an earlier moment.
    Earlier { file: &'static str, bytes: Vec<u8> },
    /// The file is no longer there.
    Remove { file: &'static str },
}

impl Edit {
    /// The file that is changed.
    pub(crate) fn file(&self) -> &'static str {
        match self {
            Self::Flip { file, .. }
            | Self::Put { file, .. }
            | Self::Fill { file, .. }
            | Self::Copy { file, .. }
            | Self::Swap { file, .. }
            | Self::Truncate { file, .. }
            | Self::Extend { file, .. }
            | Self::Earlier { file, .. }
            | Self::Remove { file } => file,
        }
    }

    /// Where in it the change begins, if it is at a place.
    pub(crate) fn place(&self) -> Option<usize> {
        match self {
            Self::Flip { at, .. }
            | Self::Put { at, .. }
            | Self::Fill { at, .. }
            | Self::Copy { at, .. }
            | Self::Swap { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// Makes the change. What lies beyond the end is not changed.
    pub(crate) fn apply(&self, files: &mut Files) {
        let block = |files: &Files, file: &str, at: usize, len: usize| -> Vec<u8> {
            let bytes = files.0.get(file).map_or(&[][..], Vec::as_slice);
            bytes.get(at..bytes.len().min(at + len)).unwrap_or(&[]).to_vec()
        };
        let copied = match self {
            Self::Copy { from, source, len, .. } => block(files, from, *source, *len),
            Self::Swap { file, at, other, len } => {
                let (one, two) = (block(files, file, *at, *len), block(files, file, *other, *len));
                let Some(bytes) = files.0.get_mut(file) else { return };
                put(bytes, *other, &one);
                two
            }
            _ => Vec::new(),
        };
        if let Self::Remove { file } = self {
            files.0.remove(file);
            return;
        }
        let Some(bytes) = files.0.get_mut(self.file()) else { return };
        match self {
            Self::Flip { at, bit, .. } => {
                if let Some(byte) = bytes.get_mut(*at) {
                    *byte ^= 1 << bit;
                }
            }
            Self::Put { at, bytes: new, .. } => put(bytes, *at, new),
            Self::Fill { at, len, byte, .. } => put(bytes, *at, &vec![*byte; *len]),
            Self::Copy { at, .. } | Self::Swap { at, .. } => put(bytes, *at, &copied),
            Self::Truncate { len, .. } => bytes.truncate(*len),
            Self::Extend { bytes: more, byte, .. } => bytes.resize(bytes.len() + more, *byte),
            Self::Earlier { bytes: earlier, .. } => bytes.clone_from(earlier),
            Self::Remove { .. } => unreachable!("handled above"),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if at < bytes.len() {
        let len = new.len().min(bytes.len() - at);
        bytes[at..at + len].copy_from_slice(&new[..len]);
    }
}

/// Words that break sums, sizes and signs.
fn word(random: &mut Random) -> u64 {
    let base: u64 = random.pick(&[
        0,
        1,
        2,
        8,
        63,
        64,
        4096,
        1 << 16,
        1 << 20,
        1 << 31,
        1 << 32,
        1 << 40,
        1 << 44,
        1 << 62,
        1 << 63,
        u64::MAX,
        u32::MAX as u64,
        i64::MAX as u64,
    ]);
    match random.below(4) {
        0 => base.wrapping_sub(1),
        1 => base.wrapping_add(random.below(16)),
        2 => random.word(),
        _ => base,
    }
}

/// Chooses changes for files, at places where something is.
#[derive(Debug)]
pub(crate) struct Editor {
    /// For each file, its length and the pages that are not zero.
    used: Vec<(&'static str, usize, Vec<usize>)>,
    earlier: Files,
}

impl Editor {
    pub(crate) fn new(files: &Files, earlier: Files) -> Self {
        let used = files.0.iter().map(|(name, bytes)| {
            let pages = bytes.chunks(PAGE_BYTES).enumerate();
            let used = pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0));
            (*name, bytes.len(), used.map(|(number, _)| number).collect())
        });
        Self { used: used.collect(), earlier }
    }

    /// One to four changes, mostly one.
    pub(crate) fn edits(&self, files: &Files, random: &mut Random) -> Vec<Edit> {
        let count = random.pick(&[1, 1, 1, 1, 2, 2, 3, 4]);
        (0..count).map(|_| self.edit(files, random)).collect()
    }

    /// A place in a file where something is, or just behind.
    fn place(&self, file: usize, files: &Files, random: &mut Random) -> usize {
        let (name, len, pages) = &self.used[file];
        if *len == 0 || pages.is_empty() || random.percent(3) {
            return random.below(*len as u64 + 1) as usize;
        }
        let page = pages[random.below(pages.len() as u64) as usize];
        let start = page * PAGE_BYTES;
        let bytes = &files.0[name][start..(*len).min(start + PAGE_BYTES)];
        for _ in 0..30 {
            let at = random.below(bytes.len() as u64) as usize;
            if bytes[at] != 0 {
                return start + at;
            }
        }
        // The beginning of a page is where headers are.
        start + random.below(64) as usize
    }

    fn edit(&self, files: &Files, random: &mut Random) -> Edit {
        let number = random.below(self.used.len() as u64) as usize;
        let (file, len, _) = self.used[number];
        let at = self.place(number, files, random);
        let size = random.pick(&[8, 64, 512, 4096, 65536]);
        let aligned = at / size * size;
        match random.below(20) {
            0..5 => Edit::Flip { file, at, bit: random.byte(8) },
            5..8 => Edit::Put { file, at, bytes: vec![random.byte(255)] },
            8..11 => Edit::Put { file, at: at / 8 * 8, bytes: word(random).to_le_bytes().into() },
            11 => {
                let bytes = (word(random) as u32).to_le_bytes().to_vec();
                Edit::Put { file, at: at / 4 * 4, bytes }
            }
            12 => Edit::Put { file, at: at / 2 * 2, bytes: vec![random.byte(255); 2] },
            13 => Edit::Fill { file, at: aligned, len: size, byte: random.pick(&[0, 0, 0xff, 7]) },
            14 => {
                let source = self.place(number, files, random) / size * size;
                Edit::Copy { from: file, source, file, at: aligned, len: size }
            }
            15 => {
                let other = random.below(self.used.len() as u64) as usize;
                let source = self.place(other, files, random) / size * size;
                let from = self.used[other].0;
                Edit::Copy { from, source, file, at: aligned, len: size }
            }
            16 => {
                let other = self.place(number, files, random) / size * size;
                Edit::Swap { file, at: aligned, other, len: size }
            }
            17 => {
                let end = random.pick(&[at, aligned, 0, len.saturating_sub(1)]);
                Edit::Truncate { file, len: end }
            }
            18 => {
                let any = random.below(EXTENSION_BYTES_MAX);
                let bytes = random.pick(&[1, 4096, any]) as usize;
                Edit::Extend { file, bytes, byte: random.pick(&[0, 0xff]) }
            }
            _ => match self.earlier.0.get(file) {
                Some(bytes) if random.percent(80) => Edit::Earlier { file, bytes: bytes.clone() },
                _ => Edit::Remove { file },
            },
        }
    }
}

/// Short, for people: long bytes are only counted.
pub(crate) fn describe(edits: &[Edit]) -> String {
    let one = |edit: &Edit| match edit {
        Edit::Earlier { file, bytes } => format!("Earlier {{ {file}, {} bytes }}", bytes.len()),
        other => format!("{other:?}"),
    };
    edits.iter().map(one).collect::<Vec<_>>().join(", ")
}
