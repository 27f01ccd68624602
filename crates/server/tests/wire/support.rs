//! A server of one test, and a client that says exactly what it is told to.

use server::store::{Store, StoreOptions};
use server::{ServerOptions, serve};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long something may take that takes much less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that ends when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServerOptions)) -> Server {
        let mut options = ServerOptions::at("127.0.0.1:0");
        change(&mut options);
        Server::on(options, StoreOptions::memory())
    }

    /// A server on a store of its own.
    pub(crate) fn on(options: ServerOptions, store: StoreOptions) -> Server {
        let opened = Store::open(store).unwrap();
        let store = opened.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, ready) = mpsc::channel();
        let stops = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let listens = |listening: &server::Listening| {
                sender.send(listening.addresses[0]).unwrap();
            };
            serve(&options, opened, listens, || stops.load(Ordering::Relaxed)).unwrap();
        });
        let address = ready.recv_timeout(PATIENCE).unwrap();
        Server { address, store, stop, thread: Some(thread) }
    }

    /// A connection that has said nothing yet.
    pub(crate) fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// A client that is ready for statements.
    pub(crate) fn client(&self) -> Client {
        self.keyed_client().0
    }

    /// The same with what a request to cancel its statement needs.
    pub(crate) fn keyed_client(&self) -> (Client, Vec<u8>) {
        let mut client = Client(self.socket());
        client.send(&startup(&[("user", "nvcaracal")]));
        let said = client.until_ready();
        let key = said.into_iter().find(|message| message.kind == b'K').expect("a key");
        (client, key.body)
    }

    /// Asks to cancel the statement of a client, and waits until the server has seen it.
    pub(crate) fn cancel(&self, key: &[u8]) {
        let mut socket = self.socket();
        let request = [&[0, 0, 0, 16, 4, 210, 22, 46], key].concat();
        socket.write_all(&request).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    }

    /// The server answers a new client, whatever others did.
    pub(crate) fn works(&self) {
        assert_eq!(self.client().query("SELECT 1"), ["row 1", "SELECT 1", "ready"]);
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it has come to its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let ended = self.thread.take().expect("it ends once").join();
        if !std::thread::panicking() {
            ended.expect("the server ends well");
        }
    }
}

/// A server with the empty table `a (id int PRIMARY KEY)`, and a client of it.
pub(crate) fn with_table_a() -> (Server, Client) {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(client.query("CREATE TABLE a (id int PRIMARY KEY)"), ["CREATE TABLE", "ready"]);
    (server, client)
}

/// A message of the server.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) kind: u8,
    pub(crate) body: Vec<u8>,
}

impl Said {
    /// The field of an error or a notice.
    pub(crate) fn field(&self, letter: u8) -> Option<String> {
        let mut fields = self.body.split(|byte| *byte == 0);
        let field = fields.find(|field| field.first() == Some(&letter))?;
        Some(String::from_utf8_lossy(&field[1..]).into_owned())
    }

    fn values(&self) -> Vec<String> {
        let mut rest = &self.body[2..];
        let mut values = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = i32::from_be_bytes(*length);
            let (value, after) = after.split_at(length.max(0) as usize);
            rest = after;
            values.push(match length {
                -1 => "NULL".to_owned(),
                _ => String::from_utf8_lossy(value).into_owned(),
            });
        }
        values
    }

    /// What it says, in short; `None` of what goes without saying.
    pub(crate) fn short(&self) -> Option<String> {
        Some(match self.kind {
            b'D' => format!("row {}", self.values().join("|")),
            b'C' => String::from_utf8_lossy(&self.body[..self.body.len() - 1]).into_owned(),
            b'E' => format!("error {}", self.field(b'C').unwrap()),
            b'N' => format!("notice {}", self.field(b'C').unwrap()),
            b'Z' => match self.body[0] {
                b'I' => "ready".to_owned(),
                standing => format!("ready {}", char::from(standing)),
            },
            b'1' => "parsed".to_owned(),
            b'2' => "bound".to_owned(),
            b'3' => "closed".to_owned(),
            b's' => "suspended".to_owned(),
            b'n' => "no data".to_owned(),
            b'I' => "empty".to_owned(),
            b't' => "parameters".to_owned(),
            b'T' | b'S' => return None,
            kind => format!("message {}", char::from(kind)),
        })
    }
}

/// A connection, byte by byte.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// The next message; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Said> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        self.0.read_exact(&mut body).ok()?;
        Some(Said { kind: head[0], body })
    }

    /// All messages up to ReadyForQuery, or the end.
    pub(crate) fn until_ready(&mut self) -> Vec<Said> {
        let mut all = Vec::new();
        while let Some(said) = self.next() {
            let is_last = said.kind == b'Z';
            all.push(said);
            if is_last {
                break;
            }
        }
        all
    }

    /// The same in short.
    pub(crate) fn answers(&mut self) -> Vec<String> {
        self.until_ready().iter().filter_map(Said::short).collect()
    }

    pub(crate) fn query(&mut self, text: &str) -> Vec<String> {
        self.send(&query(text));
        self.answers()
    }

    /// Sends the messages, a Sync behind them, and takes the answers.
    pub(crate) fn segment(&mut self, messages: &[Vec<u8>]) -> Vec<String> {
        self.send(&messages.concat());
        self.send(&sync());
        self.answers()
    }
}

/// A message of any type.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = (3_u32 << 16).to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
    }
    body.push(0);
    let mut bytes = (body.len() as u32 + 4).to_be_bytes().to_vec();
    bytes.extend_from_slice(&body);
    bytes
}

pub(crate) fn flush() -> Vec<u8> {
    message(b'H', b"")
}

pub(crate) fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

pub(crate) fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

/// Values as text, results as text.
pub(crate) fn bind(portal: &str, name: &str, values: &[Option<&str>]) -> Vec<u8> {
    let mut body = format!("{portal}\0{name}\0\0\0").into_bytes();
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        match value {
            None => body.extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(value) => {
                body.extend_from_slice(&(value.len() as u32).to_be_bytes());
                body.extend_from_slice(value.as_bytes());
            }
        }
    }
    body.extend_from_slice(&[0, 0]);
    message(b'B', &body)
}

pub(crate) fn execute(portal: &str, rows_max: u32) -> Vec<u8> {
    let mut body = format!("{portal}\0").into_bytes();
    body.extend_from_slice(&rows_max.to_be_bytes());
    message(b'E', &body)
}

pub(crate) fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// Parse, Bind and Execute of a statement without values.
pub(crate) fn run(text: &str) -> Vec<u8> {
    [parse("", text), bind("", "", &[]), execute("", 0)].concat()
}
