//! NewOrder with a piece for each line.

use std::mem::size_of;

use zerocopy::little_endian::{I64, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Allocate, Declare, PieceResult, PieceTx, Procedure, Tx};
use crate::common::BAD_ARGUMENTS;
use crate::tpcc::new_order::{
    Header, Line, Picked, declare_order, declare_sites, discount, insert_order, new_line, parse,
    sequences, taxes, total,
};
use crate::tpcc::schema::{
    ITEMS, Item, ORDER_LINES, STOCK, Stock, change_columns_of_first, item_key, line_key,
    read_in_piece, stock_key,
};

/// The procedure. Its answer is that of the whole one.
pub(crate) enum NewOrder<const EARLY: bool> {}

/// What the body puts out, of which the answer is made.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Begun {
    order: U32,
    discount: I64,
    tax: I64,
}

/// Rows that a piece writes.
const WEIGHT: u32 = 2;

impl<const EARLY: bool> Procedure for NewOrder<EARLY> {
    const NAME: &'static str = "tpcc_new_order_pieces";
    const SEQUENCES: bool = true;
    const PIECES: bool = true;

    fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
        sequences(args, allocate)
    }

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let (header, lines) = parse(args)?;
        let (code, order) = (header.district_code(), header.order(declare.sequence_number(0)));
        declare_sites(declare, header);
        declare_order(declare, header, order);
        for (i, line) in lines.iter().enumerate() {
            let item = line.item.get();
            declare.will_read(ITEMS, &item_key(item));
            declare.update_piece(STOCK, &stock_key(line.supply_warehouse.get(), item), WEIGHT);
            declare.insert_in_piece(ORDER_LINES, &line_key(code, order, i as u8 + 1));
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let (header, lines) = parse(args)?;
        let order = header.order(tx.sequence_number(0));
        let (tax, discount) = (taxes(tx, header)?, discount(tx, header)?);
        if EARLY {
            tx.commit_point()?;
        }
        insert_order(tx, header, lines, order)?;
        let begun = Begun { order: order.into(), discount: discount.into(), tax: tax.into() };
        tx.output().extend_from_slice(begun.as_bytes());
        Ok(())
    }

    fn piece<P: PieceTx>(
        args: &[u8],
        number: usize,
        piece: &mut P,
    ) -> Result<PieceResult, P::Error> {
        let (header, lines) = parse(args)?;
        let line = lines.get(number).ok_or(BAD_ARGUMENTS)?;
        let order = header.order(piece.sequence_number(0));
        let key = line_key(header.district_code(), order, number as u8 + 1);
        take_line(piece, header, line, &key)
    }

    fn finish(_: &[u8], results: &mut dyn Iterator<Item = PieceResult>, output: &mut Vec<u8>) {
        let Ok(begun) = Begun::read_from_bytes(output) else { return };
        output.clear();
        output.extend_from_slice(begun.order.as_bytes());
        let (total_at, mut sum) = (output.len(), 0);
        output.extend_from_slice(&[0; size_of::<i64>()]);
        for [amount, left] in results {
            sum += amount as i64;
            output.extend_from_slice(&left.to_le_bytes()[..3]);
        }
        let total = total(sum, begun.discount.get(), begun.tax.get());
        output[total_at..][..size_of::<i64>()].copy_from_slice(&total.to_le_bytes());
    }
}

/// Takes one item from stock and inserts its line; the amount, and in three bytes what the answer
/// says of the line.
fn take_line<P: PieceTx>(
    piece: &mut P,
    header: &Header,
    line: &Line,
    key: &[u8],
) -> Result<PieceResult, P::Error> {
    let item = *read_in_piece::<P, Item>(piece, ITEMS, &item_key(line.item.get()))?;
    let mut picked = Picked::default();
    change_columns_of_first(piece, 0, |stock: &Stock, level| {
        picked = Picked::of(stock, level, header, line, &item);
    })?;
    let (amount, row) = new_line(line, &item, &picked);
    piece.insert_row(ORDER_LINES, key, row.as_bytes())?;
    let [low, high] = picked.left().to_le_bytes();
    let told = u64::from_le_bytes([low, high, picked.brand, 0, 0, 0, 0, 0]);
    Ok([amount.into(), told])
}
