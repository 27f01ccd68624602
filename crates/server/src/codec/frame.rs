//! Messages as they come from a socket: the type and length first, then as many bytes as arrive.

use super::reader::Closing;
use sql::{FREE_BYTES, Grant, MemoryPool};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, BufReader};
use values::{Error, SqlState};

/// What is read from a socket at once.
const PART_BYTES: usize = FREE_BYTES;
/// How long a part of a long message may take to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest body of messages that have neither statements nor values, as in PostgreSQL.
pub(super) const SMALL_BYTES_MAX: usize = 10_000;
/// What a length counts of itself.
const LENGTH_BYTES: usize = 4;

/// A message: its type and its body.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The type's letter; 0 of the first message, which has none.
    pub(crate) kind: u8,
    /// What follows the length.
    pub(crate) body: Vec<u8>,
    /// The memory of the body and of what is made of it.
    pub(crate) memory: Option<Arc<Grant>>,
    /// Why there was no memory for the body, which was skipped.
    pub(crate) refused: Option<Error>,
}

impl Frame {
    pub(super) fn new(kind: u8, body: Vec<u8>) -> Frame {
        Frame { kind, body, memory: None, refused: None }
    }
}

/// Why there is no further message.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The client has disconnected, in the middle of a message or between two.
    Disconnected,
    /// What it sent cannot be followed any more: say why, then close.
    Refused(Error),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Ended {
        Ended::Disconnected
    }
}

/// The messages of one client.
pub(crate) struct Frames<R> {
    socket: BufReader<R>,
    statement_bytes_max: usize,
    /// How long a part of a long message may take to come.
    patience: Duration,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(socket: R, statement_bytes_max: usize) -> Frames<R> {
        let socket = BufReader::with_capacity(16 << 10, socket);
        Frames { socket, statement_bytes_max, patience: PATIENCE }
    }

    /// The first message, which has a length and no type.
    pub(crate) async fn opening(&mut self) -> Result<Frame, Ended> {
        Ok(Frame::new(0, self.body(0, SMALL_BYTES_MAX).await?))
    }

    /// A message before the client is known.
    pub(crate) async fn small(&mut self, kind: u8) -> Result<Frame, Ended> {
        let found = self.socket.read_u8().await?;
        if found != kind {
            let message = format!("expected a message of type {}, got {found}", char::from(kind));
            return Err(Ended::Refused(Error::new(SqlState::PROTOCOL_VIOLATION, message)));
        }
        Ok(Frame::new(kind, self.body(kind, SMALL_BYTES_MAX).await?))
    }

    /// The next message. A body for which the `pool` has no memory is skipped, as it comes.
    pub(crate) async fn next(&mut self, pool: &Arc<MemoryPool>) -> Result<Frame, Ended> {
        let kind = self.socket.read_u8().await?;
        let limit = match kind {
            b'Q' | b'P' | b'B' | b'd' => self.statement_bytes_max,
            b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'F' | b'c' | b'f' | b'p' => SMALL_BYTES_MAX,
            _ => {
                let message = format!("invalid frontend message type {kind}");
                return Err(Ended::Refused(Error::new(SqlState::PROTOCOL_VIOLATION, message)));
            }
        };
        let bytes = self.length(kind, limit).await?;
        if bytes <= FREE_BYTES {
            return Ok(Frame::new(kind, self.bytes(bytes).await?));
        }
        let memory = pool.grant();
        // The body, and the text or values that are made of it.
        match memory.grow(2 * bytes) {
            Ok(()) => {
                let body = self.long_bytes(bytes).await?;
                Ok(Frame { memory: Some(memory), ..Frame::new(kind, body) })
            }
            Err(error) => {
                self.skip(bytes).await?;
                Ok(Frame { refused: Some(error), ..Frame::new(kind, Vec::new()) })
            }
        }
    }

    /// Waits until the client has closed its side, whatever of it is unread.
    pub(crate) async fn closed(&self)
    where
        R: Closing,
    {
        self.socket.get_ref().closed().await;
    }

    /// Whether all of the next message has arrived, and was received from the system.
    pub(crate) fn has_message(&self) -> bool {
        let buffer = self.socket.buffer();
        let length = buffer.get(1..).and_then(|behind| behind.first_chunk());
        length.is_some_and(|length| buffer.len() > u32::from_be_bytes(*length) as usize)
    }

    /// Whether more than the messages that were read has arrived.
    pub(crate) fn has_more(&self) -> bool {
        !self.socket.buffer().is_empty()
    }

    async fn body(&mut self, kind: u8, limit: usize) -> Result<Vec<u8>, Ended> {
        let bytes = self.length(kind, limit).await?;
        self.bytes(bytes).await
    }

    /// The length of the body that comes.
    async fn length(&mut self, kind: u8, limit: usize) -> Result<usize, Ended> {
        let length = self.socket.read_u32().await? as usize;
        let bytes = length.checked_sub(LENGTH_BYTES).filter(|bytes| *bytes <= limit);
        bytes.ok_or_else(|| Ended::Refused(too_long(kind, length, limit)))
    }

    /// Reads `bytes` and keeps none of them.
    async fn skip(&mut self, bytes: usize) -> Result<(), Ended> {
        let mut part = (&mut self.socket).take(bytes as u64);
        match tokio::io::copy_buf(&mut part, &mut tokio::io::sink()).await? == bytes as u64 {
            true => Ok(()),
            false => Err(Ended::Disconnected),
        }
    }

    /// Reads a body of few `bytes`.
    async fn bytes(&mut self, bytes: usize) -> Result<Vec<u8>, Ended> {
        let mut body = Vec::with_capacity(bytes);
        self.part(bytes, &mut body).await?;
        Ok(body)
    }

    /// Reads a body of many `bytes`, whose parts must come in time: they have memory. Room grows
    /// with what arrives, not with what the length promises.
    async fn long_bytes(&mut self, bytes: usize) -> Result<Vec<u8>, Ended> {
        let mut body = Vec::with_capacity(PART_BYTES);
        while body.len() < bytes {
            let come = tokio::time::timeout(self.patience, self.part(bytes, &mut body)).await;
            come.unwrap_or_else(|_| Err(Ended::Refused(too_slow(bytes, self.patience))))?;
        }
        Ok(body)
    }

    /// Reads the next part of a `body` of so many `bytes`.
    async fn part(&mut self, bytes: usize, body: &mut Vec<u8>) -> Result<(), Ended> {
        let wanted = (bytes - body.len()).min(PART_BYTES) as u64;
        match (&mut self.socket).take(wanted).read_to_end(body).await? as u64 == wanted {
            true => Ok(()),
            false => Err(Ended::Disconnected),
        }
    }
}

fn too_slow(bytes: usize, patience: Duration) -> Error {
    let message = format!(
        "a message of {bytes} bytes does not go on: {PART_BYTES} of them took more than {} s",
        patience.as_secs()
    );
    Error::new(SqlState::PROTOCOL_VIOLATION, message)
        .with_hint("Its memory is that of all statements. Send smaller messages.")
}

fn too_long(kind: u8, length: usize, limit: usize) -> Error {
    let what = match kind {
        0 => "startup message".to_owned(),
        kind => format!("message of type {}", char::from(kind)),
    };
    let message = format!("{what} has length {length}, at most {} is accepted", limit + 4);
    let error = Error::new(SqlState::PROTOCOL_VIOLATION, message);
    match kind {
        b'Q' | b'P' | b'B' => error.with_hint("Send the rows in several statements."),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn first(bytes: &[u8]) -> Result<Frame, Ended> {
        Frames::new(bytes, 1 << 20).next(&MemoryPool::new(1 << 20)).await
    }

    #[tokio::test]
    async fn lengths_are_looked_at_before_anything_is_kept() {
        for bytes in [&b"Q\x40\0\0\0"[..], b"Q\0\0\0\x03", b"Q\xff\xff\xff\xff", b"S\0\0\x40\0"] {
            assert!(matches!(first(bytes).await, Err(Ended::Refused(_))), "{bytes:?}");
        }
        assert!(matches!(first(b"?\0\0\0\x04").await, Err(Ended::Refused(_))));
    }

    #[tokio::test]
    async fn half_a_message_is_an_end() {
        for bytes in [&b""[..], b"Q", b"Q\0\0", b"Q\0\0\0\x08abc"] {
            assert!(matches!(first(bytes).await, Err(Ended::Disconnected)), "{bytes:?}");
        }
        let frame = first(b"Q\0\0\0\x06a\0").await.unwrap();
        assert_eq!((frame.kind, &frame.body[..]), (b'Q', &b"a\0"[..]));
    }

    /// A message that stays in the middle gives its memory back.
    #[tokio::test]
    async fn a_long_message_that_does_not_go_on_is_refused() {
        let pool = MemoryPool::new(1 << 20);
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let mut frames = Frames::new(server, 1 << 20);
        frames.patience = Duration::from_millis(10);
        let half = [&b"Q\0\x03\0\0"[..], &[b'x'; 100_000]].concat();
        tokio::io::AsyncWriteExt::write_all(&mut client, &half).await.unwrap();
        let Err(Ended::Refused(error)) = frames.next(&pool).await else { panic!("it was read") };
        assert_eq!(error.state(), SqlState::PROTOCOL_VIOLATION);
        assert_eq!(pool.bytes(), 0);
    }

    /// What is skipped leaves the next message where it is.
    #[tokio::test]
    async fn a_body_without_memory_is_skipped() {
        let pool = MemoryPool::new(300_000);
        let message = |bytes: usize| {
            let length = (bytes as u32 + 4).to_be_bytes();
            [b"Q", &length[..], &vec![b'x'; bytes]].concat()
        };
        let all = [message(100_000), message(100_000), message(10), message(100_000)].concat();
        let mut frames = Frames::new(&all[..], 1 << 20);
        let first = frames.next(&pool).await.unwrap();
        assert_eq!((first.body.len(), pool.bytes()), (100_000, 200_000));
        let second = frames.next(&pool).await.unwrap();
        assert_eq!(second.refused.unwrap().state(), SqlState::OUT_OF_MEMORY);
        assert!(second.body.is_empty());
        assert_eq!(frames.next(&pool).await.unwrap().body, b"xxxxxxxxxx");
        drop(first);
        assert_eq!(frames.next(&pool).await.unwrap().body.len(), 100_000);
        assert_eq!(pool.bytes(), 0);
        assert!(matches!(frames.next(&pool).await, Err(Ended::Disconnected)));
    }
}
