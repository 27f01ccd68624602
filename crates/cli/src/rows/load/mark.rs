//! What the mark of a load says: what is loaded into what, so that the same can be loaded again.

use super::first_pass::Checked;
use crate::output::{Done, Failure};

/// What is loaded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A store that the load makes.
    New,
    /// One that was there.
    Into,
}

#[derive(Debug)]
pub(super) struct Mark {
    pub(super) kind: Kind,
    pub(super) checked: Checked,
}

/// The first line.
const HEADING: &str = "nvcaracal load, version 1";
const NAMES: [(Kind, &str); 2] = [(Kind::New, "a new store"), (Kind::Into, "an older store")];

impl Mark {
    pub(super) fn text(&self) -> String {
        let name = NAMES.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, name)| name);
        let rows: Vec<String> = self.checked.rows.iter().map(u64::to_string).collect();
        format!("{HEADING}\n{name}\n{}\n{:032x}\n", rows.join(" "), self.checked.hash.0)
    }

    /// Reads a mark. One that was not written whole says as little as none: nothing is changed
    /// before it is durable.
    pub(super) fn parse(text: Option<String>) -> Result<Option<Self>, Failure> {
        let Some(text) = text else { return Ok(None) };
        if !text.ends_with('\n') || text.contains('\0') {
            return Ok(None);
        }
        let lines: Vec<&str> = text.lines().collect();
        let read = || {
            let [HEADING, name, rows, hash] = lines.as_slice() else { return None };
            let (kind, _) = NAMES.iter().find(|(_, of)| of == name)?;
            let rows = rows.split_whitespace().map(|rows| rows.parse().ok());
            let hash = storage::StateHash(u128::from_str_radix(hash, 16).ok()?);
            Some(Self {
                kind: *kind,
                checked: Checked { rows: rows.collect::<Option<_>>()?, hash },
            })
        };
        read().map(Some).ok_or_else(|| {
            Failure::new(format!(
                "the mark of the load that was cut short makes no sense: {text:?}; it is of \
                 another version of this program, or damaged"
            ))
        })
    }

    /// Whether this load, which was cut short, loaded the same.
    pub(super) fn check_same(&self, now: &Self) -> Done {
        if self.checked == now.checked {
            return Ok(());
        }
        let rows = |mark: &Self| mark.checked.rows.iter().sum::<u64>();
        Err(Failure::new(format!(
            "a load of {} rows was cut short there, and these are {} other rows: finish it with \
             the files that it was for{}",
            rows(self),
            rows(now),
            match self.kind {
                Kind::New => ", or remove the store, which it had made",
                Kind::Into => ", or put back a copy of the store",
            }
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_and_half_of_one_is_none() {
        for kind in [Kind::New, Kind::Into] {
            let checked = Checked { rows: vec![3, 0, 9], hash: storage::StateHash(u128::MAX - 5) };
            let mark = Mark { kind, checked };
            let text = mark.text();
            let read = Mark::parse(Some(text.clone())).expect("a mark").expect("a whole one");
            assert_eq!((read.kind, &read.checked), (mark.kind, &mark.checked));
            assert!(read.check_same(&mark).is_ok());
            for len in (0..text.len()).filter(|&len| !text[..len].ends_with('\n') || len == 0) {
                let half = Mark::parse(Some(text[..len].to_string())).expect("no error");
                assert!(half.is_none(), "{len}");
            }
            assert!(Mark::parse(Some(text.replace("version 1", "version 2"))).is_err());
        }
        assert!(Mark::parse(None).expect("no error").is_none());
    }
}
