//! Who a client is: SCRAM-SHA-256 where a password is set, else trust, which [`crate::config`]
//! allows only to clients of this machine.

mod failures;
mod hash;
mod scram;

pub(crate) use failures::Failures;
pub(crate) use scram::{Exchange, MECHANISM, Verifier};

/// Random bytes as text that a message of SCRAM can have.
pub(crate) fn text(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD_NO_PAD.encode(bytes)
}
