//! The first message of a connection.

use super::body::{Body, malformed};
use values::{Error, Result, SqlState};

const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSSAPI: u32 = 80_877_104;
const MAJOR: u32 = 3;

/// What a client wants first.
#[derive(Debug)]
pub(crate) enum Opening {
    /// An encrypted connection: it goes on in plain text if the answer is no.
    Encryption,
    /// That a statement of another connection ends.
    Cancel { process: i32, secret: i32 },
    /// A session.
    Startup(Startup),
}

/// What a client says of itself.
#[derive(Debug, Default)]
pub(crate) struct Startup {
    /// Whether it speaks a newer minor version, which it must be told is not spoken here.
    pub(crate) newer: bool,
    /// Names and values, in their order.
    pub(crate) parameters: Vec<(String, String)>,
}

impl Startup {
    /// The last value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().rev().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Parameters of the protocol, which begin with `_pq_.`.
    pub(crate) fn of_protocol(&self) -> Vec<&str> {
        let names = self.parameters.iter().map(|(name, _)| name.as_str());
        names.filter(|name| name.starts_with("_pq_.")).collect()
    }
}

impl Opening {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Opening> {
        let mut body = Body::new(bytes);
        let code = body.u32()?;
        let opening = match code {
            TLS | GSSAPI => Opening::Encryption,
            CANCEL => Opening::Cancel { process: body.i32()?, secret: body.i32()? },
            _ if code >> 16 == MAJOR => {
                let newer = code & 0xffff != 0;
                Opening::Startup(Startup { newer, parameters: parameters(&mut body)? })
            }
            _ => {
                let message = format!(
                    "unsupported frontend protocol {}.{}: server supports 3.0",
                    code >> 16,
                    code & 0xffff
                );
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        };
        body.end()?;
        Ok(opening)
    }
}

fn parameters(body: &mut Body<'_>) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    while !body.is_empty() {
        let name = body.text()?;
        if name.is_empty() {
            return Ok(all);
        }
        all.push((name.to_owned(), body.text()?.to_owned()));
    }
    Err(malformed("startup parameters have no end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_an_end() {
        let good = b"\0\x03\0\0user\0ada\0user\0eve\0_pq_.x\x001\0\0";
        let Ok(Opening::Startup(startup)) = Opening::decode(good) else { panic!("a startup") };
        assert_eq!((startup.get("user"), startup.newer), (Some("eve"), false));
        assert_eq!(startup.of_protocol(), ["_pq_.x"]);
        for length in 0..good.len() {
            assert!(Opening::decode(&good[..length]).is_err(), "{length}");
        }
        let old = Opening::decode(b"\0\x02\0\0").unwrap_err();
        assert_eq!(old.state().code(), "0A000");
    }
}
