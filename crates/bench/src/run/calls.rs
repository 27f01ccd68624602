//! The calls of an epoch, end to end in memory.

use workloads::ProcedureId;

use crate::{Job, Result};

/// Calls in order.
#[derive(Default)]
pub(super) struct Calls {
    /// Procedures, and the ends of their arguments.
    ends: Vec<(ProcedureId, usize)>,
    arguments: Vec<u8>,
}

impl Calls {
    /// Becomes those of an epoch of a job.
    pub(super) fn fill(&mut self, job: &Job, epoch: u64) -> Result<()> {
        self.ends.clear();
        self.arguments.clear();
        job.each_call(epoch, |procedure, arguments| {
            self.arguments.extend_from_slice(arguments);
            self.ends.push((procedure, self.arguments.len()));
            Ok(())
        })
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ProcedureId, &[u8])> {
        let mut from = 0;
        self.ends.iter().map(move |&(procedure, end)| {
            let arguments = &self.arguments[from..end];
            from = end;
            (procedure, arguments)
        })
    }
}
