//! Bytes of arguments and answers whose memory is used again.
//!
//! Arguments and answers of most programs are of fixed types, which allocate nothing. Those of
//! workloads are bytes; an allocation for each would be measured as if it were the library's work.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use nvcaracal::Data;

/// Buffers that a thread keeps: the arguments and the answer of a call, and one in passing.
const KEPT: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes, in memory that an earlier buffer of the thread left where there is any.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self(SPARE.with_borrow_mut(Vec::pop).unwrap_or_default())
    }
}

impl From<&[u8]> for Buffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::new();
        buffer.extend_from_slice(bytes);
        buffer
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0);
        bytes.clear();
        // Nothing is kept by a thread that ends.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(bytes);
            }
        });
    }
}

/// Stored as a `Vec<u8>` is.
impl Data for Buffer {
    const IS_OPEN: bool = true;

    fn encode(&self, into: &mut Vec<u8>) {
        self.0.encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Vec::decode(from).map(Self)
    }

    fn describe() -> String {
        Vec::<u8>::describe()
    }

    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(&self.0)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_bytes_are_not() {
        let long = Buffer::from(&[1; 1000][..]);
        let at = long.as_ptr();
        drop(long);
        let short = Buffer::from(&[2; 10][..]);
        assert_eq!((short.as_ptr(), &short[..]), (at, &[2; 10][..]));
        let other = Buffer::new();
        assert!(other.is_empty() && other.capacity() == 0);
        assert_eq!(Buffer::from_bytes(&short).unwrap()[..], short[..]);
        let (mut own, mut bytes) = (Vec::new(), Vec::new());
        short.encode(&mut own);
        short.to_vec().encode(&mut bytes);
        assert_eq!(own, bytes);
        assert_eq!(Buffer::decode(&mut &own[..]).unwrap()[..], short[..]);
    }
}
