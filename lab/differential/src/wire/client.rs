//! The connection: bytes out, events in.

use super::Event;
use bytes::BytesMut;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a server may be silent before its answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A connection as user and database `nvcaracal`.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    received: BytesMut,
}

impl Client {
    /// Connects to the server at `address`, without a password.
    pub(crate) fn connect(address: &Address) -> io::Result<Client> {
        let stream: Box<dyn Stream> = match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
        };
        let mut client = Client { stream, received: BytesMut::new() };
        let mut hello = BytesMut::new();
        let who = [("user", "nvcaracal"), ("database", "nvcaracal"), ("TimeZone", "UTC")];
        frontend::startup_message(who, &mut hello)?;
        match client.exchange(&hello, 1).last() {
            Some(Event::Ready(_)) => Ok(client),
            other => Err(io::Error::other(format!("the server does not greet: {other:?}"))),
        }
    }

    /// Sends messages and collects the events up to the ReadyForQuery whose number is `readies`.
    pub(crate) fn exchange(&mut self, messages: &[u8], readies: usize) -> Vec<Event> {
        let mut events = Vec::new();
        if let Err(error) = self.stream.write_all(messages) {
            events.push(Event::Lost(error.to_string()));
            return events;
        }
        let mut seen = 0;
        while seen < readies {
            match self.message() {
                Ok(message) => {
                    let event = Event::of(&message);
                    seen += usize::from(matches!(event, Some(Event::Ready(_))));
                    events.extend(event);
                }
                Err(error) => {
                    events.push(Event::Lost(error.to_string()));
                    break;
                }
            }
        }
        events
    }

    /// Runs texts by the simple protocol and returns the events.
    pub(crate) fn simple(&mut self, text: &str) -> Vec<Event> {
        let mut messages = BytesMut::new();
        match frontend::query(text, &mut messages) {
            Ok(()) => self.exchange(&messages, 1),
            Err(error) => vec![Event::Lost(error.to_string())],
        }
    }

    fn message(&mut self) -> io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.received)? {
                return Ok(message);
            }
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes)? {
                0 => return Err(io::Error::other("the connection ended")),
                count => self.received.extend_from_slice(&bytes[..count]),
            }
        }
    }
}
