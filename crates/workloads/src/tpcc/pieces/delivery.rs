//! Delivery with a piece for each order that is delivered.

use std::mem::offset_of;

use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

use crate::api::{Allocate, Declare, PieceResult, PieceTx, Procedure, Tx};
use crate::common::{BAD_ARGUMENTS, MISSING_ROW};
use crate::tpcc::delivery::{DeliveryArgs, Plan, declared_plan, end, running_plan, sequences};
use crate::tpcc::schema::{
    Account, CUSTOMERS, Customer, DELIVERIES, DELIVERY_IDS, Delivery as Row, NEW_ORDERS, ORDER_IDS,
    ORDER_LINES, ORDERS, Order, OrderLine, change_columns_in_piece, change_columns_of_first,
    customer_key, delivery_key, district_key, line_key, order_key, read_in_piece, warehouse_key,
};

/// The procedure. Its answer is that of the whole one, which the body puts out.
pub(crate) enum Delivery<const EARLY: bool> {}

/// Rows that a piece writes besides the order's lines.
const WEIGHT: u32 = 3;

impl<const EARLY: bool> Procedure for Delivery<EARLY> {
    const NAME: &'static str = "tpcc_delivery_pieces";
    const SEQUENCES: bool = true;
    const PIECES: bool = true;

    fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
        sequences(args, allocate)
    }

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let delivery = DeliveryArgs::parse(args)?;
        let plan = declared_plan(delivery, declare)?;
        for (code, order) in plan.orders(delivery) {
            let key = order_key(code, order);
            let row = declare.lookup(ORDERS, &key)?.ok_or(MISSING_ROW)?;
            let row = Order::ref_from_bytes(row).map_err(|_| MISSING_ROW)?;
            let (customer, lines) = (row.customer.get(), u32::from(row.line_count));
            declare.update_piece(CUSTOMERS, &customer_key(code, customer), WEIGHT + lines);
            declare.update_in_piece(NEW_ORDERS, &key);
            declare.update_in_piece(ORDERS, &key);
            let (low, high) = (line_key(code, order, 0), line_key(code, order + 1, 0));
            declare.update_range_in_piece(ORDER_LINES, &low, &high);
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let delivery = DeliveryArgs::parse(args)?;
        let plan = running_plan(tx, delivery)?;
        if EARLY {
            tx.commit_point()?;
        }
        end(tx, delivery, &plan)
    }

    fn piece<P: PieceTx>(
        args: &[u8],
        number: usize,
        piece: &mut P,
    ) -> Result<PieceResult, P::Error> {
        let delivery = DeliveryArgs::parse(args)?;
        let warehouse = delivery.warehouse.get();
        let base = piece.sequence_start(DELIVERY_IDS, &warehouse_key(warehouse));
        let rank = piece.sequence_number(0) - base;
        let key = delivery_key(warehouse, base);
        let before = *read_in_piece::<P, Row>(piece, DELIVERIES, &key)?;
        let start = |code| piece.sequence_start(ORDER_IDS, &district_key(code));
        let plan = Plan::of(delivery, &before, rank, start);
        let (code, order) = plan.orders(delivery).nth(number).ok_or(BAD_ARGUMENTS)?;
        deliver(piece, delivery, code, order)?;
        Ok([0; 2])
    }
}

/// Delivers one order.
fn deliver<P: PieceTx>(
    piece: &mut P,
    delivery: &DeliveryArgs,
    code: u32,
    order: u32,
) -> Result<(), P::Error> {
    let key = order_key(code, order);
    if !piece.delete_row(NEW_ORDERS, &key)? {
        return Err(MISSING_ROW.into());
    }
    let mut lines = 0;
    let at = offset_of!(Order, carrier);
    change_columns_in_piece(piece, ORDERS, &key, at, |row: &Order, carrier: &mut u8| {
        *carrier = delivery.carrier;
        lines = row.line_count;
    })?;
    let mut total = 0_i64;
    let at = offset_of!(OrderLine, delivery_date);
    for line in 1..=lines {
        let key = line_key(code, order, line);
        let change = |row: &OrderLine, date: &mut U64| {
            *date = delivery.date;
            total += i64::from(U32::get(row.amount));
        };
        change_columns_in_piece(piece, ORDER_LINES, &key, at, change)?;
    }
    let at = offset_of!(Customer, account);
    change_columns_of_first(piece, at, |_: &Customer, account: &mut Account| {
        account.balance += total;
        account.delivery_count += 1;
    })
}
