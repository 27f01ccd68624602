//! What the workloads share: abort codes, the error of wrong settings, argument parsing, lists of
//! complaints.

use std::fmt;

use crate::api::Abort;

/// The codes that the procedures of this crate abort with.
pub mod code {
    /// The arguments do not have the layout of the procedure.
    pub const BAD_ARGUMENTS: u32 = 1;
    /// A row that the data set must hold is not there.
    pub const MISSING_ROW: u32 = 2;
    /// SmallBank: the savings balance would become negative.
    pub const INSUFFICIENT_FUNDS: u32 = 3;
    /// SmallBank: a deposit of a negative amount.
    pub const NEGATIVE_AMOUNT: u32 = 4;
    /// TPC-C: an order names an item that does not exist (the rolled-back NewOrder).
    pub const UNUSED_ITEM: u32 = 5;
    /// TPC-C: no customer of the district has this last name.
    pub const UNKNOWN_CUSTOMER: u32 = 6;
}

/// Arguments that the procedure cannot read.
pub(crate) const BAD_ARGUMENTS: Abort = Abort(code::BAD_ARGUMENTS);
/// A row that the loader inserted and no transaction deletes is missing.
pub(crate) const MISSING_ROW: Abort = Abort(code::MISSING_ROW);

/// Settings that make no workload; the text says which and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError(String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Fails with `message` unless `holds`.
pub(crate) fn require(holds: bool, message: impl FnOnce() -> String) -> Result<(), SettingsError> {
    if holds { Ok(()) } else { Err(SettingsError(message())) }
}

/// The 8-byte little-endian word at byte `at`; `None` past the end.
#[inline]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

/// How many complaints of one kind are spelt out; the others are only counted.
const SPELT_OUT_MAX: usize = 10;

/// A value of a state, or of the answers, with what it is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<T> {
    name: &'static str,
    value: T,
}

pub(crate) fn named<T>(name: &'static str, value: T) -> Named<T> {
    Named { name, value }
}

impl<T: fmt::Display> fmt::Display for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.name, self.value)
    }
}

/// The lines of a consistency check: a broken state may be wrong in a million rows, the report
/// stays short.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    lines: Vec<String>,
    kinds: Vec<(&'static str, usize)>,
}

impl Complaints {
    /// Adds a complaint of one kind; `line` is only made if it will be shown.
    pub(crate) fn add(&mut self, kind: &'static str, line: impl FnOnce() -> String) {
        let index = self.kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.kinds.push((kind, 0));
            self.kinds.len() - 1
        });
        self.kinds[index].1 += 1;
        if self.kinds[index].1 <= SPELT_OUT_MAX {
            self.lines.push(format!("{kind}: {}", line()));
        }
    }

    /// Adds a complaint if two numbers that must be equal are not.
    pub(crate) fn equal<T: PartialEq + fmt::Display>(
        &mut self,
        kind: &'static str,
        left: Named<T>,
        right: Named<T>,
        place: impl FnOnce() -> String,
    ) {
        if left.value != right.value {
            self.add(kind, || format!("{}: {left}, {right}", place()));
        }
    }

    /// The report; empty if nothing was wrong.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        for (kind, count) in self.kinds {
            if count > SPELT_OUT_MAX {
                self.lines.push(format!("{kind}: {} more of these", count - SPELT_OUT_MAX));
            }
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reports_are_cut() {
        let mut complaints = Complaints::default();
        for i in 0..25 {
            complaints.equal("kind", named("left", i), named("right", -1), || format!("row {i}"));
        }
        let lines = complaints.into_lines();
        assert_eq!(lines.len(), SPELT_OUT_MAX + 1);
        assert_eq!(lines[0], "kind: row 0: left is 0, right is -1");
        assert_eq!(lines[SPELT_OUT_MAX], "kind: 15 more of these");
    }
}
