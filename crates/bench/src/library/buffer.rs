//! Arguments and answers of workloads, which are bytes.
//!
//! Those of most programs are of fixed types, which allocate nothing and are copied by registers.
//! Allocations and copies of bytes would be measured as if they were the library's work, so short
//! arguments lie where they are used, and an answer stays in memory that its thread uses again.

use std::cell::RefCell;
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
    const READS_BACK: bool = true;

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

thread_local! {
    /// The bytes of the answer that this thread put out or decoded last.
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The answer that this thread put out or decoded last.
#[derive(Debug)]
pub struct Output(());

impl Output {
    /// An answer that `put` adds to or changes, which starts as none.
    #[inline]
    pub(crate) fn put<E>(put: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Self, E> {
        OUTPUT.with_borrow_mut(|bytes| {
            bytes.clear();
            put(bytes)
        })?;
        Ok(Self(()))
    }

    /// The answer, once `change` has changed it.
    pub(crate) fn changed(self, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        OUTPUT.with_borrow_mut(change);
        self
    }
}

/// Stored as a `Vec<u8>` is.
impl Data for Output {
    const IS_OPEN: bool = true;
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        true
    }

    fn encode(&self, into: &mut Vec<u8>) {
        self.with_bytes(<[u8]>::to_vec).encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Self::from_bytes(&Vec::decode(from)?)
    }

    fn describe() -> String {
        Vec::<u8>::describe()
    }

    #[inline]
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        OUTPUT.with_borrow(|bytes| then(bytes))
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        OUTPUT.with_borrow_mut(|output| {
            output.clear();
            output.extend_from_slice(bytes);
        });
        Some(Self(()))
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
            let mut as_output = Vec::new();
            Output::from_bytes(&bytes).unwrap().encode(&mut as_output);
            assert_eq!(as_output, as_bytes);
            let decoded = Output::decode(&mut &as_output[..]).unwrap();
            assert!(decoded.with_bytes(|output| output == bytes));
        }
    }

    #[test]
    fn an_output_has_what_was_put_out_last() {
        let put = |bytes: &'static [u8]| {
            Output::put(|output| -> Result<(), ()> {
                output.extend_from_slice(bytes);
                if bytes.is_empty() { Err(()) } else { Ok(()) }
            })
        };
        assert!(put(b"first").unwrap().with_bytes(|bytes| bytes == b"first"));
        assert!(put(b"").is_err());
        let changed = put(b"next").unwrap().changed(|bytes| bytes.push(b'!'));
        assert!(changed.with_bytes(|bytes| bytes == b"next!"));
    }
}
