//! What a run did to a device, in order, with all bytes.

use super::adversary::SpaceKind;
use super::contents::Contents;
use super::history::History;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// An ordinary store.
    Store,
    /// A non-temporal store, or a write to the log.
    StorePastCache,
    /// A port flushed a range.
    Flush,
    /// A port fenced.
    Fence,
    /// A space grew: it has `len` usable bytes from here on.
    Grow,
    /// The program said where it is, by a number that is in `offset`.
    Mark,
}

/// One event of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// In which space; of no meaning for fences and marks.
    pub space: SpaceKind,
    /// By which port; of no meaning for growth and marks.
    pub port: u32,
    /// Where.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
    /// Where the bytes of a store begin in the trace.
    pub(super) bytes_at: usize,
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, space, port, offset, len, .. } = self;
        let space = format!("{space:?}").to_lowercase();
        match kind {
            EventKind::Store => write!(f, "store of {len} bytes at {offset} of the {space}"),
            EventKind::StorePastCache => {
                write!(f, "non-temporal store of {len} bytes at {offset} of the {space}")
            }
            EventKind::Flush => write!(f, "flush of {len} bytes at {offset} of the {space}"),
            EventKind::Fence => write!(f, "fence of port {port}"),
            EventKind::Grow => write!(f, "growth of the {space} to {len} bytes"),
            EventKind::Mark => write!(f, "mark {offset:#x}"),
        }
    }
}

/// What was visible and not durable when a process was killed: see [`super::Replay::killed`].
#[derive(Debug, Clone)]
pub struct Killed(pub(super) History);

/// All events of a run, and what the device held before it.
#[derive(Debug, Default, Clone)]
pub struct Trace {
    pub(super) start: Contents,
    /// What of the start is not durable: stores of a process that was killed.
    pub(super) inherited: History,
    pub(super) events: Vec<Event>,
    pub(super) bytes: Vec<u8>,
}

impl Trace {
    /// The events, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The same run, begun on what a killed process left: the start is as visible as it was, and
    /// what was not durable then is not durable here, until a flush and a fence make it so.
    #[must_use]
    pub fn after_kill(self, killed: Killed) -> Self {
        Self { inherited: killed.0, ..self }
    }

    /// The bytes of a store of this trace.
    pub(super) fn bytes_of(&self, event: &Event) -> &[u8] {
        &self.bytes[event.bytes_at..event.bytes_at + event.len as usize]
    }

    pub(super) fn push(&mut self, event: Event, bytes: &[u8]) {
        self.events.push(Event { bytes_at: self.bytes.len(), ..event });
        self.bytes.extend_from_slice(bytes);
    }
}
