//! Addresses of the internet: values of `inet` and `cidr`.

use crate::{Error, Result, SqlState};
use std::cmp::Ordering;
use std::fmt;
use std::net::Ipv6Addr;

/// An address with the length of its network's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Whether it is a `cidr`, which has nothing behind the network's part.
    is_cidr: bool,
    is_v6: bool,
    bits: u8,
    /// Of version 4 the first four.
    bytes: [u8; 16],
}

const V6_BIT: u8 = 1;
const CIDR_BIT: u8 = 2;
/// What PostgreSQL's binary form says of an address.
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 3;

impl Network {
    fn checked(is_cidr: bool, is_v6: bool, bits: u8, bytes: &[u8]) -> Option<Network> {
        let length = if is_v6 { 16 } else { 4 };
        if bytes.len() != length || usize::from(bits) > length * 8 {
            return None;
        }
        let mut all = [0; 16];
        all[..length].copy_from_slice(bytes);
        let network = Network { is_cidr, is_v6, bits, bytes: all };
        (!is_cidr || network.masked() == all).then_some(network)
    }

    /// The value with this form in rows; `None` if none has it.
    pub fn of_stored(bytes: &[u8]) -> Option<Network> {
        let [flags @ 0..=3, bits, rest @ ..] = bytes else { return None };
        Network::checked(flags & CIDR_BIT != 0, flags & V6_BIT != 0, *bits, rest)
    }

    /// Appends the form in rows.
    pub fn push_stored(&self, bytes: &mut Vec<u8>) {
        let flags = u8::from(self.is_v6) * V6_BIT + u8::from(self.is_cidr) * CIDR_BIT;
        bytes.extend_from_slice(&[flags, self.bits]);
        bytes.extend_from_slice(self.own_bytes());
    }

    /// The value with PostgreSQL's binary form.
    pub fn of_binary(bytes: &[u8], is_cidr: bool) -> Option<Network> {
        let [family @ (FAMILY_V4 | FAMILY_V6), bits, _, length, rest @ ..] = bytes else {
            return None;
        };
        let is_whole = usize::from(*length) == rest.len();
        Network::checked(is_cidr, *family == FAMILY_V6, *bits, rest).filter(|_| is_whole)
    }

    /// Appends PostgreSQL's binary form.
    pub fn push_binary(&self, bytes: &mut Vec<u8>) {
        let family = if self.is_v6 { FAMILY_V6 } else { FAMILY_V4 };
        let own = self.own_bytes();
        bytes.extend_from_slice(&[family, self.bits, u8::from(self.is_cidr), own.len() as u8]);
        bytes.extend_from_slice(own);
    }

    /// Appends bytes in whose order the values are.
    pub fn push_key(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self.is_v6));
        bytes.extend_from_slice(&self.masked()[..self.own_bytes().len()]);
        bytes.push(self.bits);
        bytes.extend_from_slice(self.own_bytes());
    }

    /// The number of the bytes that [`Network::push_key`] has made, by the first of them.
    pub fn key_bytes(first: u8) -> Option<usize> {
        match first {
            0 => Some(2 + 2 * 4),
            1 => Some(2 + 2 * 16),
            _ => None,
        }
    }

    fn own_bytes(&self) -> &[u8] {
        &self.bytes[..if self.is_v6 { 16 } else { 4 }]
    }

    /// The address with zeros behind the network's part.
    fn masked(&self) -> [u8; 16] {
        let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
        (u128::from_be_bytes(self.bytes) & mask).to_be_bytes()
    }

    /// Whether it is a `cidr`.
    pub fn is_cidr(&self) -> bool {
        self.is_cidr
    }

    /// The version of its protocol: 4 or 6.
    pub fn family(&self) -> i32 {
        if self.is_v6 { 6 } else { 4 }
    }

    /// The length of the network's part, in bits.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// The same as an `inet`.
    #[must_use]
    pub fn to_inet(self) -> Network {
        Network { is_cidr: false, ..self }
    }

    /// The network that it is in.
    #[must_use]
    pub fn to_cidr(self) -> Network {
        Network { is_cidr: true, bytes: self.masked(), ..self }
    }

    /// Whether the first bits of both are the same.
    fn agrees(&self, other: &Network, bits: u8) -> bool {
        let (own, other) = (Network { bits, ..*self }, Network { bits, ..*other });
        own.is_v6 == other.is_v6 && own.masked() == other.masked()
    }

    /// Whether it is within another network, and not all of it.
    pub fn is_within(&self, other: &Network) -> bool {
        self.bits > other.bits && self.agrees(other, other.bits)
    }

    /// Whether one of both is within the other, or they are the same.
    pub fn overlaps(&self, other: &Network) -> bool {
        self.agrees(other, self.bits.min(other.bits))
    }

    /// The order of PostgreSQL: by version, network, length and address.
    pub fn compare(&self, other: &Network) -> Ordering {
        let key = |own: &Network| (own.is_v6, own.masked(), own.bits, own.bytes);
        key(self).cmp(&key(other))
    }

    /// The value of a text.
    pub fn parse(text: &str, is_cidr: bool) -> Result<Network> {
        let name = if is_cidr { "cidr" } else { "inet" };
        let invalid = || {
            let message = format!("invalid input syntax for type {name}: \"{text}\"");
            Error::new(SqlState::INVALID_TEXT, message)
        };
        let found = if text.contains(':') { v6(text) } else { v4(text, is_cidr) };
        let (bits, bytes) = found.ok_or_else(invalid)?;
        let inet = Network::checked(false, bytes.len() == 16, bits, &bytes).ok_or_else(invalid)?;
        if !is_cidr {
            return Ok(inet);
        }
        if inet.masked() != inet.bytes {
            let message = format!("invalid cidr value: \"{text}\"");
            let detail = "Value has bits set to right of mask.";
            return Err(Error::new(SqlState::INVALID_TEXT, message).with_detail(detail));
        }
        Ok(inet.to_cidr())
    }

    /// The address alone.
    pub fn host(&self) -> String {
        if let [a, b, c, d] = *self.own_bytes() {
            return format!("{a}.{b}.{c}.{d}");
        }
        let address = Ipv6Addr::from(self.bytes);
        // PostgreSQL shows an address of version 4 at the end also without `ffff` before it.
        let words = address.segments();
        match words {
            [0, 0, 0, 0, 0, 0, high, low] if high != 0 => {
                let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                format!("::{a}.{b}.{c}.{d}")
            }
            _ => address.to_string(),
        }
    }

    /// The address with the length of the network's part, whatever it is.
    pub fn whole(&self) -> String {
        format!("{}/{}", self.host(), self.bits)
    }
}

/// Splits the length of the network's part off.
fn split_bits(text: &str) -> Option<(&str, Option<u8>)> {
    let Some((address, digits)) = text.split_once('/') else { return Some((text, None)) };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = digits.len() <= 3 && (digits.len() == 1 || !digits.starts_with('0'));
    let bits = digits.parse().ok().filter(|_| is_number && is_short)?;
    Some((address, Some(bits)))
}

fn v6(text: &str) -> Option<(u8, Vec<u8>)> {
    let (address, bits) = split_bits(text)?;
    let address: Ipv6Addr = address.parse().ok()?;
    Some((bits.unwrap_or(128), address.octets().to_vec()))
}

/// Octets that are left out are 0. Without a length an `inet` has all, and the network of a `cidr`
/// has that of its class.
fn v4(text: &str, is_cidr: bool) -> Option<(u8, Vec<u8>)> {
    let (address, bits) = split_bits(text)?;
    let octet = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u16>().ok().filter(|_| is_number).and_then(|octet| u8::try_from(octet).ok())
    };
    let mut octets = address.split('.').map(octet).collect::<Option<Vec<u8>>>()?;
    let count = octets.len();
    if count > 4 {
        return None;
    }
    let bits = match bits {
        Some(bits) if is_cidr || usize::from(bits).div_ceil(8) <= count => bits,
        Some(_) => return None,
        None if !is_cidr => (count == 4).then_some(32)?,
        None => {
            let of_class = match octets[0] {
                240.. => 32,
                224.. => 8,
                192.. => 24,
                128.. => 16,
                _ => 8,
            };
            of_class.max(8 * count as u8)
        }
    };
    octets.resize(4, 0);
    Some((bits, octets))
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_whole = usize::from(self.bits) == self.own_bytes().len() * 8;
        let shown = if is_whole && !self.is_cidr { self.host() } else { self.whole() };
        f.write_str(&shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_value_read_back_and_sort_as_it_does() {
        let texts = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.0/16",
            "10.0.0.1/16",
            "10.0.0.0",
            "10.1.0.0/16",
            "192.168.1.5/24",
            "255.255.255.255",
            "::/0",
            "::1",
            "::1.2.3.4",
            "2001:db8::/32",
            "2001:db8::1/32",
            "fe80::1/64",
        ];
        let all = texts.map(|text| Network::parse(text, false).unwrap());
        for (at, own) in all.iter().enumerate() {
            assert_eq!(own.to_string(), texts[at]);
            let (mut stored, mut binary, mut key) = (Vec::new(), Vec::new(), Vec::new());
            own.push_stored(&mut stored);
            own.push_binary(&mut binary);
            own.push_key(&mut key);
            assert_eq!(Network::of_stored(&stored), Some(*own));
            assert_eq!(Network::of_binary(&binary, false), Some(*own));
            assert_eq!(Network::key_bytes(key[0]), Some(key.len()));
            for (before, other) in all[..at].iter().enumerate() {
                let mut other_key = Vec::new();
                other.push_key(&mut other_key);
                assert!(
                    other.compare(own).is_lt() && other_key < key,
                    "{} {}",
                    texts[before],
                    texts[at]
                );
            }
        }
        assert_eq!(Network::of_stored(&[CIDR_BIT, 8, 10, 1, 0, 0]), None);
    }
}
