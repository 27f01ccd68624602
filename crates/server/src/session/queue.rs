//! What is to be sent to a client, in order: bounded by entries and by bytes, so a client that does
//! not read is not read from.

use crate::cancel::Unanswered;
use crate::codec::{Format, Messages};
use crate::limits::{UNSENT_BYTES_MAX, UNSENT_MAX};
use crate::store::{Answer, OutputColumn, Pending};
use sql::Grant;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use values::{Result, Zone};

/// The client has disconnected: nothing more can be sent.
#[derive(Debug)]
pub(super) struct Disconnected;

/// An answer, or the place where it comes.
pub(super) enum Outcome {
    /// It comes.
    Pending(Pending),
    /// It is here.
    Ready(Result<Answer>),
}

/// How an answer is sent.
#[derive(Clone)]
pub(super) struct Shape {
    pub(super) columns: Arc<[OutputColumn]>,
    /// One for each column, one for all, or none: text.
    pub(super) formats: Arc<[Format]>,
    pub(super) zone: Arc<Zone>,
    /// Whether the rows are described first, as in the simple protocol.
    pub(super) is_described: bool,
    pub(super) wants_notices: bool,
    pub(super) wants_warnings: bool,
}

/// A statement whose answer is sent when its turn comes.
pub(super) struct Execution {
    pub(super) outcome: Outcome,
    pub(super) shape: Shape,
    /// How long it may take, from when those before it are answered.
    pub(super) patience: Option<Duration>,
    /// That it has no answer; `None` if it has one, or is not in the queue.
    pub(super) unanswered: Option<Unanswered>,
    /// Whether rows are left in a portal.
    pub(super) is_suspended: bool,
    /// The memory of its parameters, if they are long.
    pub(super) _memory: Option<Arc<Grant>>,
    /// What is sent before the answer.
    pub(super) before: Messages,
    /// What is sent behind it, if it is no error.
    pub(super) then: Messages,
    /// What is sent last.
    pub(super) after: Messages,
    /// Learns how many bytes the answer has.
    pub(super) cost: Arc<AtomicUsize>,
}

impl Shape {
    /// The form of a column.
    pub(super) fn format(&self, at: usize) -> Format {
        match &self.formats[..] {
            [] => Format::Text,
            [format] => *format,
            formats => formats.get(at).copied().unwrap_or(Format::Text),
        }
    }
}

impl Execution {
    /// An execution with nothing before or behind it.
    pub(super) fn new(outcome: Outcome, shape: Shape, cost: Arc<AtomicUsize>) -> Execution {
        let (before, then, after) = Default::default();
        let (is_suspended, patience, unanswered, _memory) = (false, None, None, None);
        Execution {
            outcome,
            shape,
            patience,
            unanswered,
            is_suspended,
            _memory,
            before,
            then,
            after,
            cost,
        }
    }

    /// Remembers what an answer takes, for the next one of the statement.
    pub(super) fn learn(cost: &AtomicUsize, bytes: usize) {
        cost.store(bytes, Ordering::Relaxed);
    }
}

/// One entry.
pub(super) enum Entry {
    Said(Messages),
    Execution(Box<Execution>),
}

/// An entry, and the bytes that it holds of the queue's until it is sent.
pub(super) struct Queued {
    pub(super) entry: Entry,
    pub(super) _room: Room,
}

/// Bytes of the queue.
pub(super) type Room = OwnedSemaphorePermit;

/// The end that is filled.
pub(super) struct Queue {
    entries: Sender<Queued>,
    bytes: Arc<Semaphore>,
}

/// A queue of nothing.
pub(super) fn queue() -> (Queue, Receiver<Queued>) {
    let (entries, receiver) = channel(UNSENT_MAX);
    (Queue { entries, bytes: Arc::new(Semaphore::new(UNSENT_BYTES_MAX)) }, receiver)
}

impl Queue {
    /// Waits until there is room for so many bytes; for more than all, until nothing else is there.
    pub(super) async fn room(&self, bytes: usize) -> Result<Room, Disconnected> {
        let bytes = u32::try_from(bytes.min(UNSENT_BYTES_MAX)).expect("the limit is small");
        // Without this a wait would not end when the client goes.
        tokio::select! {
            room = Arc::clone(&self.bytes).acquire_many_owned(bytes) => {
                room.map_err(|_| Disconnected)
            }
            () = self.entries.closed() => Err(Disconnected),
        }
    }

    pub(super) async fn push(&self, entry: Entry, room: Room) -> Result<(), Disconnected> {
        self.entries.send(Queued { entry, _room: room }).await.map_err(|_| Disconnected)
    }

    /// Messages that are complete.
    pub(super) async fn say(&self, messages: Messages) -> Result<(), Disconnected> {
        let room = self.room(messages.len()).await?;
        self.push(Entry::Said(messages), room).await
    }
}
