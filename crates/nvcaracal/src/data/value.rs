//! What can be an argument, a value of a row or an answer.

use std::any::{Any, TypeId};

use zerocopy::IntoBytes;

use crate::data::before::Before;
use crate::data::plain::Plain;
use crate::data::scratch::with_scratch;
use crate::data::text::short_name;
use crate::data::unreadable::note;

/// What can be an argument, a value or an answer.
///
/// Structs and enums derive it:
///
/// ```
/// use std::collections::BTreeMap;
/// use std::time::SystemTime;
///
/// use nvcaracal::{Data, Key};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Data, Key)] // a value and a key
/// struct UserId(u64);
///
/// #[derive(Debug, Clone, PartialEq, Data)]
/// enum State {
///     Free,
///     Held { by: UserId, until: SystemTime },
///     Sold(UserId),
/// }
///
/// #[derive(Debug, Clone, PartialEq, Data)]
/// struct Seat {
///     cents: u64,
///     state: State,
///     notes: BTreeMap<String, String>,
/// }
/// ```
///
/// | type | written as |
/// |---|---|
/// | numbers, `bool`, `char`, arrays of these, [`plain!`](crate::plain) | their bytes in memory |
/// | `String`, `Vec` | 4 bytes with the length (not if it is the whole value), its items |
/// | `Option`, `Result` | 1 byte, then what is in it |
/// | `BTreeMap`, `BTreeSet` | 4 bytes with the length, its items in order |
/// | `Duration`, `SystemTime` | 8 bytes with the seconds (since 1970), 4 with the nanoseconds |
/// | tuples of up to 12, structs | their fields; `struct Id(u64)` is the same as `u64` |
/// | enums | 1 byte with the number of the variant, then its fields |
/// | `Decimal`, `Uuid` | 16 bytes; features `decimal` and `uuid` |
/// | `Serde`, fields with `#[data(serde)]` | 4 bytes with the length, `postcard`; feature `serde` |
///
/// There is no `HashMap`: its order differs from run to run, and a procedure must do the same each
/// time. In fields, arrays may be of any of these types.
///
/// A type whose versions change says what it was: `#[data(was = TypeBefore)]`, see
/// [`Data::BEFORE`]. For a form of your own, write [`Data::encode`] and [`Data::decode`]. A value
/// that does not read back, as one of an untagged enum or with skipped fields in `Serde`, is a
/// mistake of the call that writes it: nothing is written then.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored or sent: it is no `nvcaracal::Data`",
    label = "this is no `Data`",
    note = "if the type is yours, add `#[derive(nvcaracal::Data)]` to it",
    note = "a type of another crate that has `serde`'s traits goes into a field with \
            `#[data(serde)]`, or into `nvcaracal::Serde` (feature `serde`)",
    note = "a map is a `BTreeMap`, a set a `BTreeSet`: the order of others differs from run to run",
    note = "for `usize` and `isize`, whose length differs between machines, take `u64` and `i64`"
)]
pub trait Data: Sized {
    /// Bytes of every value of this type, if all have the same.
    const BYTES: Option<usize> = None;

    /// What values of this type were before, if tables may have such: the type whose versions they
    /// are reads them all, and writes its own. By default there was nothing before.
    ///
    /// The derive takes it as `#[data(was = Old)]`, [`plain!`](crate::plain) as `was Old`, and the
    /// conversion is that of `From`. It is for types of whole values: those of their fields, of
    /// arguments and of answers are read as what they are. Keep the types of before, under other
    /// names, for as long as there may be databases that had them.
    ///
    /// ```
    /// use nvcaracal::{Data, Database, HashTable, Procedure, Stop, Table, Transaction};
    ///
    /// #[derive(Debug, Clone, PartialEq, Data)]
    /// struct SeatV1 {
    ///     cents: u64,
    /// }
    ///
    /// #[derive(Debug, Clone, PartialEq, Data)]
    /// #[data(was = SeatV1)]
    /// struct Seat {
    ///     cents: u64,
    ///     holder: Option<String>,
    /// }
    ///
    /// #[derive(Debug, Clone, PartialEq, Data)]
    /// struct Take {
    ///     seat: u32,
    ///     holder: String,
    /// }
    ///
    /// impl From<SeatV1> for Seat {
    ///     fn from(SeatV1 { cents }: SeatV1) -> Self {
    ///         Self { cents, holder: None }
    ///     }
    /// }
    ///
    /// # const BEFORE: HashTable<u32, SeatV1> = Table::hash("seats");
    /// # #[derive(Debug, Clone, PartialEq, Data)]
    /// # struct Build {
    /// #     seat: u32,
    /// # }
    /// # impl Procedure for Build {
    /// #     const NAME: &'static str = "build";
    /// #     type Output = ();
    /// #     fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
    /// #         tx.insert(BEFORE, self.seat, &SeatV1 { cents: 100 })
    /// #     }
    /// # }
    /// const SEATS: HashTable<u32, Seat> = Table::hash("seats");
    ///
    /// impl Procedure for Take {
    ///     const NAME: &'static str = "take";
    ///     type Output = ();
    ///
    ///     fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
    ///         if let Some(seat) = tx.get(SEATS, self.seat)? {
    ///             let holder = Some(self.holder.clone());
    ///             tx.update(SEATS, self.seat, &Seat { holder, ..seat })?; // written anew
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// # let directory = tempfile::tempdir().expect("a directory");
    /// # let path = directory.path().join("seats");
    /// # let db = Database::options().table(BEFORE).procedure::<Build>().open(&path)?;
    /// # db.call(Build { seat: 7 })?;
    /// # db.close()?;
    ///
    /// let db = Database::options().table(SEATS).procedure::<Take>().open(path)?;
    /// let seat = db.get(SEATS, 7)?; // read as what it was
    /// assert_eq!(seat, Some(Seat { cents: 100, holder: None }));
    /// db.call(Take { seat: 7, holder: "Ada".into() })?;
    /// # assert_eq!(db.get(SEATS, 7)?, Some(Seat { cents: 100, holder: Some("Ada".into()) }));
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    const BEFORE: Option<Before<Self>> = None;

    /// Whether the bytes of a value may go on after it, so that more bytes may be a value, too, as
    /// those of a `Vec` alone. Such a type can have no other version.
    const IS_OPEN: bool = false;

    /// Whether [`Data::decode`] is known to read whatever [`Data::encode`] writes, or `encode` has
    /// seen to it itself. By default it is not known: then the library reads each value back once
    /// when it writes it, and what does not read back fails before anything is written.
    const READS_BACK: bool = false;

    /// Whether every value reads back, those of its parts included, so that none fails where it is
    /// written. By default it is not known. The answers of a procedure with pieces that may fail
    /// make its calls run alone ([`Procedure::finish`](crate::Procedure::finish)).
    #[must_use]
    fn always_reads_back() -> bool {
        false
    }

    /// Whether a value is its bytes in memory.
    #[doc(hidden)]
    const IS_PLAIN: bool = false;

    /// Appends the bytes, in a form that says where it ends.
    fn encode(&self, into: &mut Vec<u8>);

    /// Reads what [`Data::encode`] wrote and moves past it. `None` if the bytes are no value of
    /// this type.
    fn decode(from: &mut &[u8]) -> Option<Self>;

    /// The type in words, with the types of its fields. Log and catalog keep them, so that neither
    /// calls nor rows are read as something else by another program; names of structs do not
    /// count for rows. By default the name of the type.
    fn describe() -> String {
        short_name::<Self>()
    }

    /// Appends the bytes of a value that is a part of another one.
    #[doc(hidden)]
    #[inline]
    fn encode_part(&self, into: &mut Vec<u8>) {
        let start = into.len();
        self.encode(into);
        if !Self::READS_BACK && !is_part::<Self>(&into[start..]) {
            note::<Self>();
        }
    }

    /// Appends many, without their number.
    fn encode_all(items: &[Self], into: &mut Vec<u8>) {
        items.iter().for_each(|item| item.encode_part(into));
    }

    /// Reads items up to the end of the bytes.
    fn decode_all(mut bytes: &[u8]) -> Option<Vec<Self>> {
        let mut items = Vec::with_capacity(bytes.len() / Self::BYTES.unwrap_or(8).max(1));
        while !bytes.is_empty() {
            let before = bytes.len();
            items.push(Self::decode(&mut bytes)?);
            if bytes.len() == before {
                return None;
            }
        }
        Some(items)
    }

    /// The bytes of many as [`Data::encode_all`] writes them, if they lie in memory like that.
    #[doc(hidden)]
    fn bytes_of(items: &[Self]) -> Option<&[u8]> {
        let _ = items;
        None
    }

    /// Whether these are the bytes of many, as [`Data::encode_all`] writes them.
    #[doc(hidden)]
    fn are_items(bytes: &[u8]) -> bool {
        Self::decode_all(bytes).is_some()
    }

    /// Whether these are all the bytes of a value.
    fn is_value(bytes: &[u8]) -> bool {
        Self::from_bytes(bytes).is_some()
    }

    /// Calls `then` with the bytes of this value alone, as they are logged or stored.
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        with_scratch(|bytes| {
            self.encode(bytes);
            then(bytes)
        })
    }

    /// Reads a value from all of `bytes`. `None` if they are no value of this type.
    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        Self::decode(&mut bytes).filter(|_| bytes.is_empty())
    }

    /// Calls `then` with the value in `bytes`, in place where that is possible. `None` if the bytes
    /// are no value of this type.
    fn with_value<R>(bytes: &[u8], then: impl FnOnce(&Self) -> R) -> Option<R> {
        Self::from_bytes(bytes).map(|value| then(&value))
    }
}

impl<T: Plain> Data for T {
    const BYTES: Option<usize> = Some(size_of::<T>());
    const READS_BACK: bool = true;
    const IS_PLAIN: bool = true;
    const BEFORE: Option<Before<Self>> = <T as Plain>::BEFORE;

    fn always_reads_back() -> bool {
        true
    }

    fn describe() -> String {
        <T as Plain>::describe()
    }

    #[inline]
    fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.as_bytes());
    }

    #[inline]
    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = from.split_at_checked(size_of::<T>())?;
        *from = rest;
        Self::from_bytes(bytes)
    }

    fn encode_all(items: &[Self], into: &mut Vec<u8>) {
        into.extend_from_slice(items.as_bytes());
    }

    fn decode_all(bytes: &[u8]) -> Option<Vec<Self>> {
        let len = size_of::<T>();
        if TypeId::of::<T>() == TypeId::of::<u8>() {
            // Copied at once.
            let mut items: Option<Vec<u8>> = Some(bytes.to_vec());
            let items: &mut dyn Any = &mut items;
            return items.downcast_mut::<Option<Vec<T>>>()?.take();
        }
        if len == 0 || !bytes.len().is_multiple_of(len) {
            return bytes.is_empty().then(Vec::new);
        }
        let mut items = Vec::with_capacity(bytes.len() / len);
        for item in bytes.chunks_exact(len) {
            items.push(Self::from_bytes(item)?);
        }
        Some(items)
    }

    #[inline]
    fn bytes_of(items: &[Self]) -> Option<&[u8]> {
        Some(items.as_bytes())
    }

    fn are_items(bytes: &[u8]) -> bool {
        let len = size_of::<T>();
        match len {
            0 => bytes.is_empty(),
            1 if TypeId::of::<T>() == TypeId::of::<u8>() => true,
            _ => bytes.len().is_multiple_of(len) && bytes.chunks_exact(len).all(Self::is_value),
        }
    }

    #[inline]
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self.as_bytes())
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::try_read_from_bytes(bytes).ok()
    }

    #[inline]
    fn with_value<R>(bytes: &[u8], then: impl FnOnce(&Self) -> R) -> Option<R> {
        match Self::try_ref_from_bytes(bytes) {
            Ok(value) => Some(then(value)),
            // Not aligned for this type, or not a value at all.
            Err(_) => Self::from_bytes(bytes).map(|value| then(&value)),
        }
    }
}

/// Whether the bytes of a part are a value.
fn is_part<T: Data>(mut bytes: &[u8]) -> bool {
    T::decode(&mut bytes).is_some() && bytes.is_empty()
}
