//! The bytes of an answer with what its call tells listeners.

use serde::{Deserialize, Serialize};
use sql::run::Notice;
use std::collections::BTreeSet;
use values::{Error, Result, SqlState};

/// The most bytes of what one call tells.
const NOTICES_BYTES_MAX: usize = 16 << 20;

/// An answer of a call that may tell something.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct Noticed {
    /// The place of the call in the serial order.
    pub(in super::super) serial: u64,
    /// Channels and payloads, each pair once.
    pub(in super::super) notices: Vec<Notice>,
    #[serde(with = "serde_bytes")]
    pub(in super::super) answer: Vec<u8>,
}

impl Noticed {
    pub(in super::super) fn encode(serial: u64, notices: Vec<Notice>, answer: Vec<u8>) -> Vec<u8> {
        let noticed = Noticed { serial, notices: once(notices), answer };
        postcard::to_allocvec(&noticed).expect("a vector takes all")
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Noticed> {
        postcard::from_bytes(bytes).map_err(|_| Error::corrupted("answer of a call is damaged"))
    }
}

/// The first of equal ones.
pub(in super::super) fn once(mut notices: Vec<Notice>) -> Vec<Notice> {
    let mut seen = BTreeSet::new();
    notices.retain(|notice| seen.insert(notice.clone()));
    notices
}

/// What a call tells, while it runs.
#[derive(Default)]
pub(in super::super) struct Notices {
    all: Vec<Notice>,
    bytes: usize,
}

impl Notices {
    /// Adds what the call tells.
    ///
    /// # Errors
    /// That it would tell too much.
    pub(in super::super) fn add(&mut self, channel: &str, payload: &str) -> Result<()> {
        self.bytes += channel.len() + payload.len() + size_of::<Notice>();
        if self.bytes > NOTICES_BYTES_MAX {
            let message = format!("notifications have more than {NOTICES_BYTES_MAX} bytes");
            let hint = "Notify listeners of fewer things at a time.";
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint));
        }
        self.all.push((channel.to_owned(), payload.to_owned()));
        Ok(())
    }

    pub(in super::super) fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_reads_back_and_equal_ones_are_told_once() {
        let pair = |channel: &str, payload: &str| (channel.to_owned(), payload.to_owned());
        let all = vec![pair("b", ""), pair("a", "1"), pair("b", ""), pair("a", "2")];
        let bytes = Noticed::encode(7, all, b"answer".to_vec());
        let again = Noticed::decode(&bytes).unwrap();
        assert_eq!((again.serial, &again.answer[..]), (7, &b"answer"[..]));
        assert_eq!(again.notices, [pair("b", ""), pair("a", "1"), pair("a", "2")]);
        assert!((0..bytes.len()).all(|len| Noticed::decode(&bytes[..len]).is_err()));
    }

    #[test]
    fn what_one_call_tells_is_bounded() {
        let (mut notices, payload) = (Notices::default(), "x".repeat(7_999));
        let told = (0..10_000).take_while(|_| notices.add("a", &payload).is_ok());
        assert!((1_000..5_000).contains(&told.count()));
    }
}
