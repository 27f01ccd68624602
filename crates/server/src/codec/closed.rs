//! Whether a client has closed its side of a connection, though it has sent more than was read.

use std::io;
use std::time::Duration;
use tokio::io::{Interest, Ready};
use tokio::net::{tcp, unix};

/// How often a socket is looked at that has unread bytes.
const LOOK: Duration = Duration::from_millis(100);

/// A side of a connection that tells when the other side has closed.
pub(crate) trait Closing {
    /// Waits until there is something to read, or nothing will come any more.
    fn readiness(&self) -> impl Future<Output = io::Result<Ready>> + Send;
}

impl Closing for tcp::OwnedReadHalf {
    async fn readiness(&self) -> io::Result<Ready> {
        self.ready(Interest::READABLE).await
    }
}

impl Closing for unix::OwnedReadHalf {
    async fn readiness(&self) -> io::Result<Ready> {
        self.ready(Interest::READABLE).await
    }
}

/// Waits until the other side has closed. What it sent before stays to be read.
pub(super) async fn closed(socket: &impl Closing) {
    while let Ok(ready) = socket.readiness().await {
        if ready.is_read_closed() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}
