//! Bytes of arguments and answers, which lie where they are used if they are short.
//!
//! Arguments and answers of most programs are of fixed types, which allocate nothing. Those of
//! workloads are bytes; an allocation for each would be measured as if it were the library's work.

use std::ops::Deref;

use nvcaracal::Data;
use smallvec::SmallVec;

/// Bytes that are not allocated: SmallBank has no longer arguments or answers.
const SHORT: usize = 32;

/// Bytes.
#[derive(Debug)]
pub(crate) struct Buffer(SmallVec<[u8; SHORT]>);

impl From<&[u8]> for Buffer {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        Self(SmallVec::from_slice(bytes))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Stored as a `Vec<u8>` is.
impl Data for Buffer {
    const IS_OPEN: bool = true;

    fn encode(&self, into: &mut Vec<u8>) {
        self.to_vec().encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Vec::decode(from).map(|bytes| Self(SmallVec::from_vec(bytes)))
    }

    fn describe() -> String {
        Vec::<u8>::describe()
    }

    #[inline]
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_stored_as_bytes_are() {
        for len in [0, 1, SHORT, SHORT + 1, 1000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let buffer = Buffer::from_bytes(&bytes).unwrap();
            assert_eq!(buffer[..], bytes);
            assert_eq!(buffer.with_bytes(<[u8]>::to_vec), bytes);
            let (mut as_buffer, mut as_bytes) = (Vec::new(), Vec::new());
            buffer.encode(&mut as_buffer);
            bytes.encode(&mut as_bytes);
            assert_eq!(as_buffer, as_bytes);
            assert_eq!(Buffer::decode(&mut &as_buffer[..]).unwrap()[..], bytes);
        }
    }
}
