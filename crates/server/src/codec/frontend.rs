//! What clients say once they are known.

use super::body::{Body, malformed};
use super::frame::Frame;
use values::{Error, Oid, Result};

/// The form of a value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
    /// The text of an `int2vector` or `oidvector`: numbers with blanks between.
    Vector,
}

/// What is described or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement,
    Portal,
}

/// A message of a client.
#[derive(Debug)]
pub(crate) enum Message {
    Query(String),
    Parse {
        name: String,
        text: String,
        types: Vec<Oid>,
    },
    Bind(Bind),
    Describe(Target, String),
    Close(Target, String),
    Execute {
        portal: String,
        rows_max: usize,
    },
    Flush,
    Sync,
    Terminate,
    /// Data for a COPY that is not running: clients send it when they have not yet seen that the
    /// statement failed.
    StrayCopy,
}

/// Values for a statement.
#[derive(Debug)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    pub(crate) formats: Vec<Format>,
    pub(crate) values: Vec<Option<Vec<u8>>>,
    pub(crate) result_formats: Vec<Format>,
}

impl Message {
    /// The message of a frame; its bytes are all looked at, and no others.
    pub(crate) fn decode(frame: &Frame) -> Result<Message> {
        if let Some(error) = &frame.refused {
            return Err(error.clone());
        }
        let mut body = Body::new(&frame.body);
        let message = match frame.kind {
            b'Q' => Message::Query(body.text()?.to_owned()),
            b'P' => {
                let (name, text) = (body.text()?.to_owned(), body.text()?.to_owned());
                let count = body.count(4)?;
                let types = (0..count).map(|_| body.u32().map(Oid::new)).collect::<Result<_>>()?;
                Message::Parse { name, text, types }
            }
            b'B' => Message::Bind(bind(&mut body)?),
            b'D' => Message::Describe(target(&mut body)?, body.text()?.to_owned()),
            b'C' => Message::Close(target(&mut body)?, body.text()?.to_owned()),
            b'E' => {
                let portal = body.text()?.to_owned();
                // 0 is all; so is a negative number, as in PostgreSQL.
                let rows_max = usize::try_from(body.i32()?).unwrap_or(0);
                Message::Execute { portal, rows_max }
            }
            b'H' => Message::Flush,
            b'S' => Message::Sync,
            b'X' => Message::Terminate,
            b'd' | b'c' | b'f' => {
                body.rest();
                Message::StrayCopy
            }
            b'F' => {
                let message = "function calls by a message of their own are not supported";
                return Err(Error::unsupported(message, "Call the function in a SELECT."));
            }
            _ => return Err(malformed("it does not fit the state of the connection")),
        };
        body.end()?;
        Ok(message)
    }
}

fn target(body: &mut Body<'_>) -> Result<Target> {
    match body.byte()? {
        b'S' => Ok(Target::Statement),
        b'P' => Ok(Target::Portal),
        _ => Err(malformed("neither a statement nor a portal")),
    }
}

fn bind(body: &mut Body<'_>) -> Result<Bind> {
    let (portal, statement) = (body.text()?.to_owned(), body.text()?.to_owned());
    let formats = formats(body)?;
    let mut values = Vec::new();
    for _ in 0..body.count(4)? {
        values.push(match body.i32()? {
            -1 => None,
            length => {
                let length = usize::try_from(length).map_err(|_| malformed("negative length"))?;
                Some(body.bytes(length)?.to_vec())
            }
        });
    }
    let result_formats = self::formats(body)?;
    Ok(Bind { portal, statement, formats, values, result_formats })
}

fn formats(body: &mut Body<'_>) -> Result<Vec<Format>> {
    let count = body.count(2)?;
    let format = |body: &mut Body<'_>| match body.i16()? {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        _ => Err(malformed("unknown format")),
    };
    (0..count).map(|_| format(body)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(kind: u8, body: &[u8]) -> Result<Message> {
        Message::decode(&Frame::new(kind, body.to_vec()))
    }

    #[test]
    fn bodies_are_read_within_their_own_bytes() {
        for kind in *b"QPBDCEHSXFdcfp?" {
            for length in 0..40 {
                for byte in [0, 1, b'S', 0x7f, 0xff] {
                    // Whatever it is, it is a message or an error.
                    let _ = decode(kind, &vec![byte; length]);
                }
            }
        }
        assert!(decode(b'C', b"").is_err());
        assert!(decode(b'Q', b"SELECT 1").is_err());
        assert!(decode(b'S', b"x").is_err());
        assert!(decode(b'B', b"\0\0\xff\xff").is_err());
    }

    #[test]
    fn text_is_utf8() {
        let error = decode(b'Q', b"SELECT '\xff'\0").unwrap_err();
        assert_eq!(error.state().code(), "22021");
    }

    #[test]
    fn values_and_formats_are_read() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
        let Ok(Message::Bind(bind)) = decode(b'B', body) else { panic!("a Bind") };
        assert_eq!((&bind.portal[..], &bind.statement[..]), ("p", "s"));
        assert_eq!(bind.formats, [Format::Binary]);
        assert_eq!(bind.values, [Some(b"ab".to_vec()), None]);
        assert!(bind.result_formats.is_empty());
    }
}
