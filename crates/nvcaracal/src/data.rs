//! Data as bytes: arguments, values of rows, answers.
//!
//! Fixed-layout types ([`Plain`]) are their own bytes: they are logged as they are and read in
//! place. All others ([`Data`]) are written field by field. Both forms are the same on every
//! machine of one byte order, which is what replay needs; neither contains an address.

use zerocopy::{FromZeros, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::Before;

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
pub trait Plain: Sized + TryFromBytes + IntoBytes + Immutable + KnownLayout {
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
/// Implemented for all [`Plain`] types, `String`, and `Vec`, `Option` and tuples of these. For
/// other types, [`data!`](crate::data) writes it field by field; or write the first two functions
/// by hand:
///
/// ```
/// use nvcaracal::Data;
///
/// struct Note {
///     id: u64,
///     text: String,
/// }
///
/// impl Data for Note {
///     fn encode(&self, into: &mut Vec<u8>) {
///         self.id.encode(into);
///         self.text.encode(into);
///     }
///     fn decode(from: &mut &[u8]) -> Option<Self> {
///         Some(Self { id: Data::decode(from)?, text: Data::decode(from)? })
///     }
/// }
/// ```
pub trait Data: Sized {
    /// Bytes of every value of this type, if all have the same.
    const BYTES: Option<usize> = None;

    /// What values of this type were before, if tables may have such: the type whose versions they
    /// are reads them all, and writes its own. By default there was nothing before.
    ///
    /// [`plain!`](crate::plain) and [`data!`](crate::data) take it as `was`, and the conversion is
    /// that of `From`. It is for types of whole values: those of their fields, of arguments and of
    /// answers are read as what they are. Keep the types of before, under other names, for as long
    /// as there may be databases that had them.
    ///
    /// ```
    /// use nvcaracal::{Database, HashTable, Procedure, Stop, Table, Transaction, data};
    ///
    /// data! {
    ///     struct SeatV1 { cents: u64 } // `Seat` in the program that created the database
    ///     struct Seat was SeatV1 { cents: u64, holder: Option<String> }
    ///     struct Take { seat: u32, holder: String }
    /// }
    ///
    /// impl From<SeatV1> for Seat {
    ///     fn from(SeatV1 { cents }: SeatV1) -> Self {
    ///         Self { cents, holder: None }
    ///     }
    /// }
    ///
    /// # const BEFORE: HashTable<u32, SeatV1> = Table::hash("seats");
    /// # data! { struct Build { seat: u32 } }
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

    /// Appends many, without their number.
    fn encode_all(items: &[Self], into: &mut Vec<u8>) {
        items.iter().for_each(|item| item.encode(into));
    }

    /// Calls `then` with the bytes of this value alone, as they are logged or stored.
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        then(&bytes)
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
    const BEFORE: Option<Before<Self>> = <T as Plain>::BEFORE;

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

fn encode_len(len: usize, into: &mut Vec<u8>) {
    let len = u32::try_from(len).expect("arguments, values and answers are shorter than 4 GiB");
    into.extend_from_slice(&len.to_le_bytes());
}

fn decode_len(from: &mut &[u8]) -> Option<usize> {
    let (len, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u32::from_le_bytes(*len) as usize)
}

impl Data for String {
    fn encode(&self, into: &mut Vec<u8>) {
        encode_len(self.len(), into);
        into.extend_from_slice(self.as_bytes());
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let len = decode_len(from)?;
        let (bytes, rest) = from.split_at_checked(len)?;
        *from = rest;
        Self::from_bytes(bytes)
    }

    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self.as_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

/// A `Vec` stands in a row or in the log without its length; items of no bytes are refused.
impl<T: Data> Data for Vec<T> {
    const IS_OPEN: bool = true;

    fn describe() -> String {
        format!("Vec<{}>", T::describe())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        encode_len(self.len(), into);
        T::encode_all(self, into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let len = decode_len(from)?;
        // A wrong length must neither reserve more memory than there are bytes, nor count items of
        // no bytes for ever.
        let mut items = Vec::with_capacity(len.min(from.len() / size_of::<T>().max(1)));
        for _ in 0..len {
            let before = from.len();
            items.push(T::decode(from)?);
            if from.len() == before {
                return None;
            }
        }
        Some(items)
    }

    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        let mut bytes = Vec::new();
        T::encode_all(self, &mut bytes);
        then(&bytes)
    }

    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut items = Vec::with_capacity(bytes.len() / T::BYTES.unwrap_or(8).max(1));
        while !bytes.is_empty() {
            let before = bytes.len();
            items.push(T::decode(&mut bytes)?);
            if bytes.len() == before {
                return None;
            }
        }
        Some(items)
    }
}

impl<T: Data> Data for Option<T> {
    fn describe() -> String {
        format!("Option<{}>", T::describe())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        into.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.encode(into);
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        match u8::decode(from)? {
            0 => Some(None),
            1 => T::decode(from).map(Some),
            _ => None,
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident)+))*) => { $(
        impl<$($name: Data),+> Data for ($($name,)+) {
            fn describe() -> String {
                format!("({})", [$($name::describe()),+].join(", "))
            }

            #[expect(non_snake_case, reason = "one name for type and field")]
            fn encode(&self, into: &mut Vec<u8>) {
                let ($($name,)+) = self;
                $($name.encode(into);)+
            }

            fn decode(from: &mut &[u8]) -> Option<Self> {
                Some(($($name::decode(from)?,)+))
            }
        }
    )* };
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

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

/// A struct in words: what [`plain!`](crate::plain) and [`data!`](crate::data) give as
/// [`Data::describe`].
#[doc(hidden)]
#[must_use]
pub fn describe_struct(name: &str, fields: &[(&str, String)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(field, types)| format!("{field}: {types}")).collect();
    format!("{name} {{ {} }}", fields.join(", "))
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
                $crate::describe_struct(
                    stringify!($name),
                    &[$((stringify!($field), <$type as $crate::Data>::describe())),*],
                )
            }
        }
    )+ };
}

/// Defines structs with fields of any [`Data`], such as `String`: `Data`, `Debug`, `Clone`,
/// `PartialEq`. A struct that takes the place of another one in tables says
/// `struct New was Old { ... }`; see [`Data::BEFORE`].
///
/// ```
/// nvcaracal::data! {
///     struct Rename { account: u64, name: String }
/// }
/// # let rename = Rename { account: 1, name: "Ada".into() };
/// # assert_eq!((rename.account, rename.name.as_str()), (1, "Ada"));
/// ```
#[macro_export]
macro_rules! data {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident $(was $before:ty)? {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident : $type:ty),* $(,)?
    })+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type),*
        }

        impl $crate::Data for $name {
            $(
                const BEFORE: Option<$crate::Before<Self>> =
                    Some($crate::Before::new::<$before>());
            )?

            fn describe() -> String {
                $crate::describe_struct(
                    stringify!($name),
                    &[$((stringify!($field), <$type as $crate::Data>::describe())),*],
                )
            }

            fn encode(&self, into: &mut Vec<u8>) {
                $($crate::Data::encode(&self.$field, into);)*
            }

            fn decode(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::Data::decode(from)?),* })
            }
        }
    )+ };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Data + PartialEq + std::fmt::Debug>(value: T) {
        let mut nested = Vec::new();
        value.encode(&mut nested);
        nested.push(7);
        let mut rest = nested.as_slice();
        assert_eq!(T::decode(&mut rest).as_ref(), Some(&value));
        assert_eq!(rest, [7], "{value:?} says where it ends");
        let whole = value.with_bytes(<[u8]>::to_vec);
        assert_eq!(T::from_bytes(&whole).as_ref(), Some(&value));
        assert_eq!(T::with_value(&whole, |v| *v == value), Some(true));
        if let Some(bytes) = T::BYTES {
            assert_eq!(whole.len(), bytes);
        }
    }

    #[test]
    fn every_kind_of_data_is_read_as_it_was_written() {
        check(());
        check(true);
        check('x');
        check([1u32, 2, 3]);
        check(String::new());
        check("gr\u{fc}n".to_string());
        check(vec![1u8, 2, 3]);
        check(vec!["a".to_string(), String::new()]);
        check(Some(5i64));
        check(None::<String>);
        check((1u8, "b".to_string(), vec![Some(2u16), None]));
    }

    #[test]
    fn damaged_bytes_are_no_value() {
        assert_eq!(bool::from_bytes(&[2]), None);
        assert_eq!(u64::from_bytes(&[0; 7]), None);
        assert_eq!(String::from_bytes(&[0xff]), None);
        assert_eq!(Vec::<u64>::from_bytes(&[0; 9]), None);
        assert_eq!(Vec::<String>::decode(&mut [0xff; 4].as_slice()), None);
        // Found by fuzzing: four thousand million items of no bytes.
        assert_eq!(<(Vec<()>, u8)>::from_bytes(&[0xff, 0xff, 0xff, 0xff, 1]), None);
        // And room for so many large items as there are bytes.
        assert_eq!(Vec::<[u64; 4096]>::decode(&mut [0xff; 30_000].as_slice()), None);
        assert_eq!(Option::<u8>::from_bytes(&[2, 0]), None);
    }
}
