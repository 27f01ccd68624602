//! Answers of the library, kept in the workloads' words.

use nvcaracal::Data;
use workloads::Answer;

use crate::library::Output;

/// Answers in the order of their calls.
#[derive(Default)]
pub(super) struct Answers {
    /// How each ended, and the end of its bytes.
    ends: Vec<(Ending, usize)>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Ending {
    Committed,
    Aborted(u32),
    Failed,
}

impl Answers {
    pub(super) fn push(&mut self, answer: &nvcaracal::Result<Output>) {
        let ending = match answer {
            Ok(output) => {
                output.with_bytes(|bytes| self.bytes.extend_from_slice(bytes));
                Ending::Committed
            }
            Err(error) => error.abort().map_or(Ending::Failed, |abort| Ending::Aborted(abort.code)),
        };
        self.ends.push((ending, self.bytes.len()));
    }

    /// Bytes that they take.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len() + size_of_val(self.ends.as_slice())
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Answer<'_>> {
        let mut from = 0;
        self.ends.iter().map(move |&(ending, end)| {
            let bytes = &self.bytes[from..end];
            from = end;
            match ending {
                Ending::Committed => Answer::Committed(bytes),
                Ending::Aborted(code) => Answer::Aborted(code),
                Ending::Failed => Answer::Failed,
            }
        })
    }

    /// Forgets them, and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}
