//! SCRAM-SHA-256 (RFC 5802 and 7677), the server's side, without channel binding.

use super::hash::{Hash, equal, hmac, pbkdf2, sha256, xor};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use values::{Error, Result, SqlState};

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";

const ITERATIONS: u32 = 4096;

/// What is kept of a password: enough to verify a proof, not enough to make one.
#[derive(Clone)]
pub(crate) struct Verifier {
    salt: [u8; 16],
    iterations: u32,
    stored_key: Hash,
    server_key: Hash,
}

impl Verifier {
    /// The verifier of a password of printable ASCII, for which SASLprep changes nothing.
    pub(crate) fn new(password: &str, salt: [u8; 16]) -> Verifier {
        Verifier::with_iterations(password, salt, ITERATIONS)
    }

    fn with_iterations(password: &str, salt: [u8; 16], iterations: u32) -> Verifier {
        let salted = pbkdf2(password.as_bytes(), &salt, iterations);
        let stored_key = sha256(&hmac(&salted, b"Client Key"));
        let server_key = hmac(&salted, b"Server Key");
        Verifier { salt, iterations, stored_key, server_key }
    }
}

/// A client that proves its password.
pub(crate) struct Exchange {
    verifier: Verifier,
    /// What the client's last message must say of its first one.
    header: String,
    nonce: String,
    /// The first messages of both sides, which the proof covers.
    so_far: String,
}

fn malformed(what: &str) -> Error {
    Error::new(SqlState::PROTOCOL_VIOLATION, format!("malformed SCRAM message: {what}"))
}

impl Exchange {
    /// Takes the client's first message; gives the answer. `own_nonce` is new for each exchange.
    pub(crate) fn begin(
        verifier: Verifier,
        first: &str,
        own_nonce: &str,
    ) -> Result<(Exchange, String)> {
        // The user is that of the startup message; what is said here is not looked at.
        let mut parts = first.splitn(3, ',');
        let mut part = || parts.next().ok_or_else(|| malformed("it ends too early"));
        let (binding, identity, bare) = (part()?, part()?, part()?);
        match binding {
            "n" | "y" => {}
            _ => return Err(malformed("channel binding was not offered")),
        }
        if !identity.is_empty() {
            return Err(malformed("no other identity can be asked for"));
        }
        let mut attributes = bare.split(',');
        let user = attributes.next().filter(|part| part.starts_with("n="));
        user.ok_or_else(|| malformed("no user"))?;
        let nonce = attributes.next().and_then(|part| part.strip_prefix("r="));
        let nonce = nonce.filter(|nonce| !nonce.is_empty() && nonce.is_ascii());
        let nonce = nonce.ok_or_else(|| malformed("no nonce"))?;
        let nonce = format!("{nonce}{own_nonce}");
        let salt = BASE64.encode(verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let header = BASE64.encode(format!("{binding},,"));
        let so_far = format!("{bare},{answer}");
        Ok((Exchange { verifier, header, nonce, so_far }, answer))
    }

    /// Takes the client's last message; gives the server's proof, or `None` if the client's is
    /// wrong.
    pub(crate) fn end(self, last: &str) -> Result<Option<String>> {
        let (covered, proof) = last.rsplit_once(",p=").ok_or_else(|| malformed("no proof"))?;
        let proof = BASE64.decode(proof).ok().and_then(|bytes| Hash::try_from(bytes).ok());
        let proof = proof.ok_or_else(|| malformed("the proof is not 32 bytes of base64"))?;
        if covered != format!("c={},r={}", self.header, self.nonce) {
            return Err(malformed("it does not belong to the first one"));
        }
        let message = format!("{},{covered}", self.so_far);
        let signature = hmac(&self.verifier.stored_key, message.as_bytes());
        let is_right = equal(&sha256(&xor(proof, signature)), &self.verifier.stored_key);
        let own = hmac(&self.verifier.server_key, message.as_bytes());
        Ok(is_right.then(|| format!("v={}", BASE64.encode(own))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const OWN: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn begun(password: &str) -> Exchange {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap().try_into().unwrap();
        let verifier = Verifier::with_iterations(password, salt, 4096);
        let (exchange, answer) = Exchange::begin(verifier, FIRST, OWN).unwrap();
        assert_eq!(
            answer,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        exchange
    }

    #[test]
    fn the_exchange_is_that_of_rfc_7677() {
        let own = begun("pencil").end(LAST).unwrap();
        assert_eq!(own.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    }

    #[test]
    fn another_password_proves_nothing() {
        assert_eq!(begun("pencil ").end(LAST).unwrap(), None);
    }

    #[test]
    fn nothing_may_be_added_or_left_out() {
        for last in [
            LAST.replace("c=biws", "c=eSws"),
            LAST.replace("k0,", "k1,"),
            LAST.replace("k0,", "k0,x=1,"),
            format!("{LAST}AAAA"),
            format!("{LAST},x=1"),
            LAST.replace(",p=", ",q="),
            String::new(),
        ] {
            assert!(begun("pencil").end(&last).is_err(), "{last}");
        }
        for first in
            ["", "n", "n,,", "p=tls-unique,,n=,r=a", "n,a=eve,n=,r=a", "n,,n=,r=", "n,,r=a"]
        {
            let verifier = Verifier::new("pencil", [0; 16]);
            assert!(Exchange::begin(verifier, first, OWN).is_err(), "{first}");
        }
    }
}
