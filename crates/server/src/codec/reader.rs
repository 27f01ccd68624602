//! The half of a client's socket that is read: what has come is noted for cancel requests, and
//! whether the client has closed its side is seen though it has sent more than was read.

use crate::cancel::Requests;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, Interest, ReadBuf, Ready};
use tokio::net::{tcp, unix};

/// How often a socket is looked at that has unread bytes.
const LOOK: Duration = Duration::from_millis(100);

/// The half of a socket that is read.
pub(crate) trait Half: Send + Sync + 'static {
    /// Waits until there is something to read, or nothing will come any more.
    fn readiness(&self) -> impl Future<Output = io::Result<Ready>> + Send;
    /// The same for the task of `context`, which alone is woken.
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Reads what is there.
    ///
    /// # Errors
    /// That nothing is there, or what is wrong with the socket.
    fn try_read(&self, room: &mut [u8]) -> io::Result<usize>;
    /// Whether the system has bytes that were not read.
    fn has_unread(&self) -> bool;
}

macro_rules! half {
    ($half:ty) => {
        impl Half for $half {
            async fn readiness(&self) -> io::Result<Ready> {
                self.ready(Interest::READABLE).await
            }

            fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.as_ref().poll_read_ready(context)
            }

            fn try_read(&self, room: &mut [u8]) -> io::Result<usize> {
                <$half>::try_read(self, room)
            }

            fn has_unread(&self) -> bool {
                rustix::io::ioctl_fionread(self.as_ref()).is_ok_and(|bytes| bytes > 0)
            }
        }
    };
}

half!(tcp::OwnedReadHalf);
half!(unix::OwnedReadHalf);

/// Reads from a client, and tells the session's cancel requests what has come.
pub(crate) struct Reader<H> {
    half: Arc<H>,
    requests: Arc<Requests>,
}

impl<H: Half> Reader<H> {
    pub(crate) fn new(half: H) -> Reader<H> {
        let half = Arc::new(half);
        let seen = Arc::clone(&half);
        Reader { half, requests: Arc::new(Requests::new(move || seen.has_unread())) }
    }

    /// Returns the cancel requests of the session.
    pub(crate) fn requests(&self) -> Arc<Requests> {
        Arc::clone(&self.requests)
    }
}

impl<H: Half> AsyncRead for Reader<H> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.half.poll_readable(context))?;
            let room = buffer.initialize_unfilled();
            let read = self.requests.reading(|| {
                let read = self.half.try_read(room);
                let has_come = read.as_ref().is_ok_and(|bytes| *bytes > 0);
                (read, has_come)
            });
            match read {
                Ok(bytes) => {
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// A side of a connection that tells when the other side has closed.
pub(crate) trait Closing {
    /// Waits until the other side has closed. What it sent before stays to be read.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

impl<H: Half> Closing for Reader<H> {
    async fn closed(&self) {
        while let Ok(ready) = self.half.readiness().await {
            if ready.is_read_closed() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
