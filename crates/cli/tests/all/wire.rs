//! A client that says exactly what it is told to, message by message.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use crate::served::Server;
use crate::support::PATIENCE;

/// What came of one statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// Its rows, as text or as lines of COPY, and its tag.
    Done(Vec<Vec<String>>, String),
    /// The code of its error.
    Failed(String),
}

pub(crate) struct Wire {
    socket: TcpStream,
    said: BufReader<TcpStream>,
}

impl Wire {
    pub(crate) fn connect(server: &Server) -> Wire {
        let socket = TcpStream::connect(server.address()).expect("a server");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket.set_nodelay(true).expect("a socket");
        let said = BufReader::new(socket.try_clone().expect("a socket"));
        let mut wire = Wire { socket, said };
        let body = [&(3_u32 << 16).to_be_bytes()[..], b"user\0nvcaracal\0\0"].concat();
        let length = (body.len() as u32 + 4).to_be_bytes();
        wire.send(&[&length[..], &body].concat());
        wire.until(b'Z');
        wire
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("a server");
    }

    fn next(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 5];
        self.said.read_exact(&mut head).expect("a message");
        let length = u32::from_be_bytes(head[1..].try_into().expect("four bytes"));
        let mut body = vec![0; length as usize - 4];
        self.said.read_exact(&mut body).expect("a message");
        (head[0], body)
    }

    /// The answers of all statements up to a message of this kind, or to the end of one statement.
    pub(crate) fn until(&mut self, last: u8) -> Vec<Answer> {
        let (mut all, mut rows) = (Vec::new(), Vec::new());
        loop {
            let (kind, body) = self.next();
            match kind {
                b'D' => rows.push(values(&body)),
                b'd' => {
                    let line = String::from_utf8_lossy(&body);
                    rows.push(line.trim_end_matches('\n').split('\t').map(str::to_owned).collect());
                }
                b'C' => {
                    let tag = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
                    all.push(Answer::Done(std::mem::take(&mut rows), tag));
                }
                b's' => all.push(Answer::Done(std::mem::take(&mut rows), "suspended".to_owned())),
                b'E' => all.push(Answer::Failed(code(&body))),
                _ => {}
            }
            if kind == last || kind == b'Z' || last == b'C' && matches!(kind, b'E' | b's') {
                return all;
            }
        }
    }

    /// One text, by the simple protocol.
    pub(crate) fn text(&mut self, text: &str) -> Vec<Answer> {
        self.send(&message(b'Q', format!("{text}\0").as_bytes()));
        self.until(b'Z')
    }

    /// A text that must succeed.
    #[track_caller]
    pub(crate) fn done(&mut self, text: &str) -> Vec<Answer> {
        let all = self.text(text);
        assert!(!all.iter().any(|one| matches!(one, Answer::Failed(_))), "{text}: {all:?}");
        all
    }

    /// A COPY FROM STDIN, by the simple protocol, of one part.
    pub(crate) fn copy(&mut self, text: &str, rows: &str) -> Vec<Answer> {
        self.send(&message(b'Q', format!("{text}\0").as_bytes()));
        let refused = self.until(b'G');
        if !refused.is_empty() {
            return refused;
        }
        self.send(&[message(b'd', rows.as_bytes()), message(b'c', b"")].concat());
        self.until(b'Z')
    }
}

fn code(body: &[u8]) -> String {
    let mut fields = body.split(|byte| *byte == 0);
    let code = fields.find_map(|field| field.strip_prefix(b"C")).expect("a code");
    String::from_utf8_lossy(code).into_owned()
}

fn values(body: &[u8]) -> Vec<String> {
    let (mut rest, mut values) = (&body[2..], Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length).max(0) as usize;
        let (value, after) = after.split_at(length);
        values.push(String::from_utf8_lossy(value).into_owned());
        rest = after;
    }
    values
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// Parse, Bind and Execute of a statement without parameters; a limit of rows, or 0 for all.
pub(crate) fn run(text: &str, rows_max: u32) -> Vec<u8> {
    let parse = message(b'P', format!("\0{text}\0\0\0").as_bytes());
    let bind = message(b'B', b"\0\0\0\0\0\0\0\0");
    let execute = [&[0][..], &rows_max.to_be_bytes()].concat();
    [parse, bind, message(b'E', &execute)].concat()
}

pub(crate) fn flush() -> Vec<u8> {
    message(b'H', b"")
}

pub(crate) fn sync() -> Vec<u8> {
    message(b'S', b"")
}
