//! What pieces come to, with types.

use std::any::type_name;

use crate::data::readable::with_readable;
use crate::data::value::Data;

/// What a piece came to: a value of up to [`PieceResult::BYTES_MAX`] bytes.
///
/// Numbers convert by `into()`; [`PieceResult::of`] takes any [`Data`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceResult(pub(crate) engine::PieceResult);

impl PieceResult {
    /// Most bytes that it is written as.
    pub const BYTES_MAX: usize = engine::PieceResult::BYTES_MAX;

    /// Nothing.
    pub const NONE: Self = Self(engine::PieceResult::NONE);

    /// A value.
    ///
    /// # Panics
    /// If it is written as more bytes, or does not read back, which **stops the database** as any
    /// failure of a piece does.
    #[must_use]
    pub fn of<V: Data>(value: &V) -> Self {
        let made = with_readable(value, |bytes| {
            let most = Self::BYTES_MAX;
            engine::PieceResult::of_bytes(bytes)
                .ok_or_else(|| format!("{} bytes, of {most} at most", bytes.len()))
        });
        let made = made.unwrap_or_else(Err).map(Self);
        made.unwrap_or_else(|what| panic!("the result of a piece: {what}"))
    }

    /// The value of which it was made; `None` if it is no `V`.
    pub(crate) fn read<V: Data>(self) -> Option<V> {
        self.0.with_bytes(V::from_bytes)
    }
}

impl From<u64> for PieceResult {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

/// What the pieces of a transaction came to, numbered from 0 in the order of their declaration.
#[derive(Debug, Clone, Copy)]
pub struct PieceResults<'a>(pub(crate) &'a [engine::PieceResult]);

impl PieceResults<'_> {
    /// How many pieces there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there were none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a piece came to.
    ///
    /// # Panics
    /// If there is no such piece, or it came to something else than a `V`: that **stops the
    /// database**.
    #[must_use]
    pub fn get<V: Data>(&self, number: usize) -> V {
        let count = self.len();
        assert!(number < count, "the result of piece {number} of {count}");
        PieceResult(self.0[number]).read().unwrap_or_else(|| panic!("{}", other_type::<V>(number)))
    }
}

/// Why a result cannot be read.
pub(crate) fn other_type<V>(number: usize) -> String {
    format!("the result of piece {number} is no {}", type_name::<V>())
}
