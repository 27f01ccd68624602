//! SHA-256, and HMAC and PBKDF2 with it, as SCRAM takes them.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A hash.
pub(super) type Hash = [u8; 32];

pub(super) fn sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

pub(super) fn hmac(key: &[u8], message: &[u8]) -> Hash {
    let keyed = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    keyed.chain_update(message).finalize().into_bytes().into()
}

/// One block, as long as the hash, which is all that SCRAM wants.
pub(super) fn pbkdf2(password: &[u8], salt: &[u8], iterations: u32) -> Hash {
    pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations)
}

pub(super) fn xor(left: Hash, right: Hash) -> Hash {
    std::array::from_fn(|at| left[at] ^ right[at])
}

/// Whether hashes are equal; takes the same time whichever byte differs.
pub(super) fn equal(left: &Hash, right: &Hash) -> bool {
    let different = left.iter().zip(right).fold(0, |sum, (left, right)| sum | (left ^ right));
    std::hint::black_box(different) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        assert_eq!(
            hex(&hmac(&[0x0b; 20], b"Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            hex(&hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn pbkdf2_is_that_of_rfc_7914() {
        assert_eq!(
            hex(&pbkdf2(b"passwd", b"salt", 1)),
            "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
        );
    }

    #[test]
    fn equal_looks_at_all_bytes() {
        let hash = sha256(b"a");
        assert!(equal(&hash, &sha256(b"a")));
        for at in 0..32 {
            let mut other = hash;
            other[at] ^= 0x80;
            assert!(!equal(&hash, &other));
        }
    }
}
