//! Damage from outside: bits, zeros, cuts and shifts in the files of a store, and files of other
//! stores and of other moments in their place.
//!
//! A damaged store may end in three ways and no other: it is *refused*, with every byte of every
//! file as it was; it is *recovered* to the last epoch that was answered; or it is recovered to an
//! *older* one where docs/recovery.md says that this loss cannot be told, because no end mark names
//! the lost epochs any more. Everything else is a violation.

mod case;
mod edit;
mod family;

mod campaign;

pub use campaign::{DamageCounts, DamageViolation, damage_campaign};
pub use case::End;
pub use edit::Kind as DamageKind;
