//! What calls of a round read and wrote: the log of one worker.

use super::super::footprint::{Access, Mode, Target};
use super::super::rows::RowId;
use super::super::tables::Tables;
use crate::run::procedure::Outcome;

/// Accesses that are compared with a new one.
const FEW: usize = 4;

/// An access, and the row where it is announced: the row itself, or that of a granule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted {
    pub(super) access: Access,
    pub(super) row: RowId,
}

/// A write: the whole new value, as words of the log; `None` if the row is deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write {
    pub(super) row: RowId,
    pub(super) bytes: Option<usize>,
    pub(super) at: usize,
}

/// Where what a call noted and wrote begins in the log.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Start {
    pub(super) noted: usize,
    pub(super) writes: usize,
}

/// A call that has run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub(super) call: usize,
    pub(super) outcome: Outcome,
    noted: (usize, usize),
    writes: (usize, usize),
    output: (usize, usize),
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) ran: Vec<Ran>,
    pub(super) noted: Vec<Noted>,
    pub(super) writes: Vec<Write>,
    pub(super) words: Vec<u64>,
    outputs: Vec<u8>,
}

impl Log {
    pub(super) fn clear(&mut self) {
        self.ran.clear();
        self.noted.clear();
        self.writes.clear();
        self.words.clear();
        self.outputs.clear();
    }

    /// Notes an access of the running call, which began at `start`, unless it was noted just now.
    /// To note it twice does no harm.
    pub(super) fn note(&mut self, start: usize, target: Target, mode: Mode, row: RowId) {
        let access = Access { target, mode };
        let just_now = self.noted[start..].iter().rev().take(FEW);
        if !just_now.into_iter().any(|noted| noted.access == access) {
            self.noted.push(Noted { access, row });
        }
    }

    /// Where the next call begins.
    pub(super) fn start(&self) -> Start {
        Start { noted: self.noted.len(), writes: self.writes.len() }
    }

    /// A call has ended. Of one that gave up only what it read counts.
    pub(super) fn end(&mut self, call: usize, start: Start, outcome: Outcome, output: &[u8]) {
        let Start { noted, writes } = start;
        let output_start = self.outputs.len();
        match outcome {
            Outcome::Committed => self.outputs.extend_from_slice(output),
            Outcome::Aborted(_) => {
                self.writes.truncate(writes);
                let end = (noted..self.noted.len())
                    .filter(|i| matches!(self.noted[*i].access.mode, Mode::Read | Mode::Scan))
                    .collect::<Vec<_>>();
                for (to, from) in end.iter().enumerate() {
                    self.noted[noted + to] = self.noted[*from];
                }
                self.noted.truncate(noted + end.len());
            }
        }
        self.ran.push(Ran {
            call,
            outcome,
            noted: (noted, self.noted.len()),
            writes: (writes, self.writes.len()),
            output: (output_start, self.outputs.len()),
        });
    }

    /// What a call accessed.
    pub(super) fn noted(&self, ran: &Ran) -> &[Noted] {
        &self.noted[ran.noted.0..ran.noted.1]
    }

    /// What a call put out.
    pub(super) fn output(&self, ran: &Ran) -> &[u8] {
        &self.outputs[ran.output.0..ran.output.1]
    }

    /// Stores what a call wrote.
    pub(super) fn store(&self, tables: &Tables, ran: &Ran) {
        for Write { row, bytes, at } in &self.writes[ran.writes.0..ran.writes.1] {
            match bytes {
                Some(bytes) => tables.row(*row).set_whole(&self.words[*at..], *bytes),
                None => tables.row(*row).set_absent(),
            }
        }
    }
}
