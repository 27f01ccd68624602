//! Reads and changes rows in place.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{PieceTx, TableId, Tx};
use crate::common::MISSING_ROW;

/// A type that can be read from and written to a row in place.
pub(crate) trait Row: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned {}
impl<R: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned> Row for R {}

/// Reads a row that must exist.
#[inline]
pub(crate) fn read<'a, T: Tx, R: Row + 'a>(
    tx: &'a mut T,
    table: TableId,
    key: &[u8],
) -> Result<&'a R, T::Error> {
    let bytes = tx.get(table, key)?.ok_or(MISSING_ROW)?;
    R::ref_from_bytes(bytes).map_err(|_| MISSING_ROW.into())
}

/// [`read`] of a piece.
pub(crate) fn read_in_piece<'a, P: PieceTx, R: Row + 'a>(
    piece: &'a mut P,
    table: TableId,
    key: &[u8],
) -> Result<&'a R, P::Error> {
    let bytes = piece.get(table, key)?.ok_or(MISSING_ROW)?;
    R::ref_from_bytes(bytes).map_err(|_| MISSING_ROW.into())
}

/// [`change_columns`] of a row that was declared for a piece.
pub(crate) fn change_columns_in_piece<P: PieceTx, R: Row, C: Row, F: FnOnce(&R, &mut C)>(
    piece: &mut P,
    table: TableId,
    key: &[u8],
    at: usize,
    change: F,
) -> Result<(), P::Error> {
    let mut fits = false;
    let part = at..at + size_of::<C>();
    let found = piece.modify_row(table, key, part, |row, columns| {
        fits = change_of(row, columns, change);
    })?;
    if found && fits { Ok(()) } else { Err(MISSING_ROW.into()) }
}

/// [`change_columns`] of the row of a piece that may be contended.
pub(crate) fn change_columns_of_first<P: PieceTx, R: Row, C: Row, F: FnOnce(&R, &mut C)>(
    piece: &mut P,
    at: usize,
    change: F,
) -> Result<(), P::Error> {
    let mut fits = false;
    let found = piece.modify_part(at..at + size_of::<C>(), |row, columns| {
        fits = change_of(row, columns, change);
    })?;
    if found && fits { Ok(()) } else { Err(MISSING_ROW.into()) }
}

/// Changes columns of a row that was seen; whether both have the right lengths.
fn change_of<R: Row, C: Row>(
    row: &[u8],
    columns: &mut [u8],
    change: impl FnOnce(&R, &mut C),
) -> bool {
    let (Ok(row), Ok(columns)) = (R::ref_from_bytes(row), C::mut_from_bytes(columns)) else {
        return false;
    };
    change(row, columns);
    true
}

/// Changes a row that must exist, in place.
#[inline]
pub(crate) fn change<T: Tx, R: Row, F: FnOnce(&mut R)>(
    tx: &mut T,
    table: TableId,
    key: &[u8],
    change: F,
) -> Result<(), T::Error> {
    let mut fits = false;
    let found = tx.modify(table, key, |bytes| {
        if let Ok(row) = R::mut_from_bytes(bytes) {
            change(row);
            fits = true;
        }
    })?;
    if found && fits { Ok(()) } else { Err(MISSING_ROW.into()) }
}

/// Changes some columns, which lie together from a byte of the row on, of a row that must exist:
/// `change` gets the row as it was, and a copy of these columns.
#[inline]
pub(crate) fn change_columns<T: Tx, R: Row, C: Row, F: FnOnce(&R, &mut C)>(
    tx: &mut T,
    table: TableId,
    key: &[u8],
    at: usize,
    change: F,
) -> Result<(), T::Error> {
    let mut fits = false;
    let found = tx.modify_part(table, key, at..at + size_of::<C>(), |row, columns| {
        if let (Ok(row), Ok(columns)) = (R::ref_from_bytes(row), C::mut_from_bytes(columns)) {
            change(row, columns);
            fits = true;
        }
    })?;
    if found && fits { Ok(()) } else { Err(MISSING_ROW.into()) }
}
