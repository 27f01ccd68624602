//! Reads the parts of a message's body. What is missing is an error, never a panic.

use values::{Error, Result, SqlState};

/// The rest of a body.
pub(super) struct Body<'a>(&'a [u8]);

/// A message that is not what its type says.
pub(super) fn malformed(what: &str) -> Error {
    Error::new(SqlState::PROTOCOL_VIOLATION, format!("invalid message format: {what}"))
}

impl<'a> Body<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Body<'a> {
        Body(bytes)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (first, rest) =
            self.0.split_at_checked(count).ok_or_else(|| malformed("it ends too early"))?;
        self.0 = rest;
        Ok(first)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (first, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.fixed::<1>().map(|[byte]| byte)
    }

    pub(super) fn i16(&mut self) -> Result<i16> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// A count of things that follow, of which each has at least this many bytes.
    pub(super) fn count(&mut self, bytes_each: usize) -> Result<usize> {
        let count = usize::from(self.fixed().map(u16::from_be_bytes)?);
        if count * bytes_each > self.0.len() {
            return Err(malformed("it ends too early"));
        }
        Ok(count)
    }

    /// Text that ends with a zero byte.
    pub(super) fn text(&mut self) -> Result<&'a str> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| malformed("text has no end"))?;
        let text = self.bytes(end)?;
        self.byte()?;
        utf8(text)
    }

    /// The rest.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Nothing may follow.
    pub(super) fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(malformed("something follows its end")) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Text of a client; 22021 of what is no UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let wrong = bytes[error.valid_up_to()..].iter().take(4);
        let shown: Vec<String> = wrong.map(|byte| format!("0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
        Error::new(SqlState::INVALID_ENCODING, message)
    })
}
