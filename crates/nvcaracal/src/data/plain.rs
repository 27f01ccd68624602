//! Types of fixed layout: they are their own bytes.

use zerocopy::{FromZeros, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::data::before::Before;
use crate::data::text::short_name;

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
    /// What values of this type were before: see [`Data::BEFORE`](crate::Data::BEFORE).
    const BEFORE: Option<Before<Self>> = None;

    /// The type in words, fields included: see [`Data::describe`](crate::Data::describe). By
    /// default its name and size.
    fn describe() -> String {
        format!("{} of {} bytes", short_name::<Self>(), size_of::<Self>())
    }
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
/// in tables says `struct New was Old { ... }`; see [`Data::BEFORE`](crate::Data::BEFORE).
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
