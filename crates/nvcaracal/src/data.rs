//! Data as bytes: arguments, values of rows, answers.
//!
//! Fixed-layout types ([`Plain`]) are their own bytes: they are logged as they are and read in
//! place. All others ([`Data`]) are written field by field. Both forms are the same on every
//! machine of one byte order, which is what replay needs; neither contains an address.

mod foreign;
mod readable;
mod types;

use std::any::{Any, TypeId};
use std::cell::Cell;

use zerocopy::{FromZeros, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::Before;
#[cfg(feature = "serde")]
pub use foreign::Serde;
#[cfg(feature = "serde")]
pub(crate) use foreign::encode_by_serde;
pub(crate) use readable::with_readable;

/// A type without pointers and padding: its bytes in memory are its bytes in the log and in rows.
///
/// The compiler checks this by the four traits from `zerocopy`, which are derived.
/// [`plain!`](crate::plain) writes all of it.
///
/// ```
/// use nvcaracal::Plain;
/// use nvcaracal::zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};
///
/// #[derive(TryFromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[zerocopy(crate = "nvcaracal::zerocopy")] // unless zerocopy is a dependency
/// #[repr(C)]
/// struct Account {
///     cents: i64,
/// }
///
/// impl Plain for Account {}
/// ```
pub trait Plain: Sized + TryFromBytes + IntoBytes + Immutable + KnownLayout + 'static {
    /// What values of this type were before: see [`Data::BEFORE`].
    const BEFORE: Option<Before<Self>> = None;

    /// The type in words, fields included: see [`Data::describe`]. By default its name and size.
    fn describe() -> String {
        format!("{} of {} bytes", short_name::<Self>(), size_of::<Self>())
    }
}

/// The name of a type without the modules that it is in.
pub(crate) fn short_name<T: ?Sized>() -> String {
    let mut short = String::new();
    for part in std::any::type_name::<T>().split_inclusive(['<', '>', '(', ')', ',', ';', '[', ' '])
    {
        short.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    short
}

/// Most bytes that a thread keeps for the next value.
const SCRATCH_BYTES: usize = 1 << 16;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `then` with an empty vector, which a thread allocates once.
pub(crate) fn with_scratch<R>(then: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut bytes = SCRATCH.take();
    bytes.clear();
    let result = then(&mut bytes);
    if bytes.capacity() <= SCRATCH_BYTES {
        SCRATCH.set(bytes);
    }
    result
}

macro_rules! plain_types {
    ($($type:ty),*) => { $(
        impl Plain for $type {
            fn describe() -> String {
                stringify!($type).to_string()
            }
        }
    )* };
}

plain_types!((), bool, char, u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

impl<T: Plain, const N: usize> Plain for [T; N] {
    fn describe() -> String {
        format!("[{}; {N}]", <T as Plain>::describe())
    }
}

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
    /// calls nor rows are taken for something else by another program; names of structs do not
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
        if !Self::READS_BACK {
            readable::check_part::<Self>(&into[start..]);
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

/// A zeroed value: for fields that are filled later.
///
/// ```
/// let zero: [u64; 4] = nvcaracal::zeroed();
/// assert_eq!(zero, [0; 4]);
/// ```
#[must_use]
pub fn zeroed<T: FromZeros>() -> T {
    T::new_zeroed()
}

/// Defines fixed-layout structs: [`Plain`], `Debug`, `Clone`, `Copy`, `PartialEq`.
///
/// A struct with padding between or after its fields does not compile: put the larger fields first,
/// and add a field such as `reserved: [u8; 4]` at the end. For types that need other derives, or
/// enums, write what this macro writes; see [`Plain`]. A struct that takes the place of another one
/// in tables says `struct New was Old { ... }`; see [`Data::BEFORE`].
///
/// ```
/// nvcaracal::plain! {
///     /// An account.
///     pub struct Account {
///         /// What is in it.
///         pub cents: i64,
///     }
///
///     struct Transfer { from: u64, to: u64, cents: i64 }
/// }
/// assert_eq!(Account { cents: 5 }, Account { cents: 5 });
/// # let Transfer { from, to, cents } = Transfer { from: 1, to: 2, cents: 3 };
/// # assert_eq!((from, to, cents), (1, 2, 3));
/// ```
#[macro_export]
macro_rules! plain {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident $(was $before:ty)? {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident : $type:ty),* $(,)?
    })+) => { $(
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq,
            $crate::zerocopy::TryFromBytes, $crate::zerocopy::IntoBytes,
            $crate::zerocopy::Immutable, $crate::zerocopy::KnownLayout,
        )]
        #[zerocopy(crate = "nvcaracal::zerocopy")]
        #[repr(C)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type),*
        }

        impl $crate::Plain for $name {
            $(
                const BEFORE: Option<$crate::Before<Self>> =
                    Some($crate::Before::new::<$before>());
            )?

            fn describe() -> String {
                $crate::derived::describe_struct(
                    stringify!($name),
                    &[$((stringify!($field), <$type as $crate::Data>::describe())),*],
                )
            }
        }
    )+ };
}
