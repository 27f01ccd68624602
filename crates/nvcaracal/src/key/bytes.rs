//! Keys as bytes whose order is the keys' order.
//!
//! Keys of up to 8 bytes are padded in front to exactly 8, which the engine indexes as one word:
//! integers and pairs of small ones are the fast case.

use std::fmt::Debug;

use storage::format::KEY_BYTES_MAX;

use crate::data::text::short_name;

/// Longest key of text or bytes if the table does not say otherwise.
pub(crate) const KEY_BYTES_DEFAULT: u32 = 64;
/// Keys of this length are words to the engine.
pub(crate) const WORD_BYTES: usize = 8;

const BUFFER_BYTES: usize = KEY_BYTES_MAX as usize + WORD_BYTES;

/// Where the parts of a key are put together.
#[derive(Debug)]
pub struct KeyBuffer {
    bytes: [u8; BUFFER_BYTES],
    len: usize,
}

impl Default for KeyBuffer {
    fn default() -> Self {
        Self { bytes: [0; BUFFER_BYTES], len: 0 }
    }
}

impl KeyBuffer {
    /// Appends bytes. What is beyond the longest key of any table is dropped: such a key is refused
    /// anyway.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(BUFFER_BYTES - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&bytes[..fits]);
        self.len += fits;
    }

    /// What was appended.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// What can be a key.
///
/// Implemented for integers, `bool`, `char`, `str`, `[u8]`, `String`, `Vec<u8>`, byte arrays,
/// `Duration`, `SystemTime`, `Uuid` (feature `uuid`), `Option` of these, and tuples of two to six
/// of these that are sized. A table with text as its key is a `Table<str, V>`: its keys are given
/// as `&str` and come out of scans as `String`. Inside tuples, use `String`.
///
/// Structs and enums derive it; their order is that of their fields and variants, as `Ord` derives
/// it:
///
/// ```
/// use nvcaracal::{Key, Table};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
/// struct SeatKey {
///     event: u32,
///     row: u16,
///     seat: u16,
/// }
///
/// const SEATS: Table<SeatKey, String> = Table::ordered("seats");
/// ```
///
/// For a form of your own, encode to bytes that compare as the values do, and that say where they
/// end. A key of at most 8 bytes is a word to the engine, which is fastest.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key: it is no `nvcaracal::Key`",
    label = "this is no `Key`",
    note = "if the type is yours, add `#[derive(Debug, nvcaracal::Key)]` to it",
    note = "keys have an order that is the same everywhere: integers, text, bytes, times, and \
            tuples, structs and enums of these; no floats, no maps",
    note = "for a number with a fraction, take an integer of its smallest unit, such as cents; for \
            several keys of one row, `Table::multi_index` with the type of one of them; without a \
            key, `None`"
)]
pub trait Key: Debug {
    /// What a scan returns.
    type Owned: Debug + Send + 'static;

    /// Bytes of every key of this type, if all have the same.
    const BYTES: Option<usize>;

    /// Whether [`Key::decode`] is known to read whatever [`Key::encode`] writes. By default it is
    /// not known: then a key is read back once when a row is inserted under it, and one that does
    /// not read back is a mistake.
    const READS_BACK: bool = false;

    /// The type in words, with those of its fields, as
    /// [`Data::describe`](crate::Data::describe). By default its name.
    fn describe() -> String {
        short_name::<Self>()
    }

    /// Appends the bytes of the key as a part of a longer one.
    fn encode(&self, into: &mut KeyBuffer);

    /// Reads what [`Key::encode`] wrote and moves past it. `None` if the bytes are no key of this
    /// type.
    fn decode(from: &mut &[u8]) -> Option<Self::Owned>;

    /// Calls `then` with the bytes of the key as the engine gets them.
    #[inline]
    fn with_key<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        let mut buffer = KeyBuffer::default();
        buffer.push(&[0; WORD_BYTES][..padding::<Self>()]);
        self.encode(&mut buffer);
        then(buffer.bytes())
    }

    /// Reads a whole key. `None` if the bytes are no key of this type.
    fn from_key(bytes: &[u8]) -> Option<Self::Owned> {
        let mut rest = bytes.get(padding::<Self>()..)?;
        Self::decode(&mut rest).filter(|_| rest.is_empty())
    }
}

/// Checks that a key can be read back from its bytes. Those that are too long are refused
/// elsewhere.
///
/// # Errors
/// What is wrong otherwise.
#[inline]
pub(crate) fn check_readable<K: Key + ?Sized>(key: &K) -> Result<(), String> {
    let is_readable =
        |bytes: &[u8]| bytes.len() > KEY_BYTES_MAX as usize || K::from_key(bytes).is_some();
    if K::READS_BACK || key.with_key(is_readable) {
        return Ok(());
    }
    let of = std::any::type_name::<K>();
    Err(format!("the key {key:?}, a {of}, cannot be read back from what is written of it"))
}

/// Zeros in front of a key, so that it has 8 bytes.
const fn padding<K: Key + ?Sized>() -> usize {
    match K::BYTES {
        Some(bytes) if bytes < WORD_BYTES => WORD_BYTES - bytes,
        _ => 0,
    }
}

/// Longest key of a table, unless it says otherwise.
pub(crate) const fn key_bytes_max<K: Key + ?Sized>() -> u32 {
    match K::BYTES {
        Some(bytes) if bytes < WORD_BYTES => WORD_BYTES as u32,
        Some(bytes) => bytes as u32,
        None => KEY_BYTES_DEFAULT,
    }
}
