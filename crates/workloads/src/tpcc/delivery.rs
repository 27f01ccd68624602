//! Delivery (clause 2.7): delivers the oldest undelivered order of each district of a warehouse.
//!
//! What it writes depends on which orders these are, and on who ordered them. A deterministic
//! engine must know both before the first body of the epoch runs, and looking at NEW-ORDER at the
//! end of the previous epoch would make all deliveries of a warehouse in one epoch want the same
//! orders, so all but one would be deferred. Instead:
//!
//! 1. Each delivery allocates from a sequence of its warehouse. The sequence also tells where this
//!    epoch began, so a delivery knows its rank: how many deliveries of its warehouse come before
//!    it in the epoch.
//! 2. Each delivery inserts a row under its number, which names the oldest order that it left
//!    undelivered in each district, and never changes. The delivery of rank r looks up the row of
//!    the last one before the epoch. In each district its order is the one r after the oldest
//!    undelivered there, if that was there when the epoch began, which the district's order
//!    sequence tells, since order ids are dense. If not, the district is skipped.
//! 3. It looks up that order for its customer. Only its own delivery changes an order, so this
//!    lookup always holds, as does that of 2: a delivery is never deferred, two deliveries
//!    never want the same order, and the orders are delivered in the order of their ids without
//!    holes.
//!
//! So an order can be delivered from the epoch on that follows its own: the one thing that differs
//! from the specification, which itself lets deliveries wait in a queue. As long as fewer
//! deliveries come in an epoch than there are undelivered orders (900 at the start, and more with
//! every epoch, for 9 orders come for 8 deliveries), no district is skipped. Only with one or two
//! warehouses and the papers' epochs of 100,000 transactions is that not so at first.

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Allocate, Declare, Procedure, Tx};
use crate::common::{BAD_ARGUMENTS, MISSING_ROW};
use crate::tpcc::schema::{
    Account, CUSTOMERS, Customer, DELIVERIES, DELIVERY_IDS, DISTRICTS, Delivery as Row, NEW_ORDERS,
    ORDER_IDS, ORDER_LINES, ORDERS, Order, OrderLine, change, change_columns, customer_key,
    delivery_key, district_code, district_key, line_key, order_key, read, warehouse_key,
};

/// The arguments.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct DeliveryArgs {
    pub(crate) date: U64,
    pub(crate) warehouse: U32,
    /// The order id that the first call that allocates from a district's order sequence gets.
    pub(crate) first_order: U32,
    pub(crate) carrier: u8,
}

impl DeliveryArgs {
    pub(crate) fn parse(args: &[u8]) -> Result<&Self, Abort> {
        Self::ref_from_bytes(args).map_err(|_| BAD_ARGUMENTS)
    }

    /// The codes of the districts.
    fn districts(&self) -> impl Iterator<Item = u32> + use<> {
        let warehouse = self.warehouse.get();
        (1..=DISTRICTS).map(move |district| district_code(warehouse, district))
    }
}

/// Which order is delivered in each district (0: none), and which is the next.
pub(super) struct Plan {
    delivered: [u32; DISTRICTS as usize],
    next: [u32; DISTRICTS as usize],
}

impl Plan {
    /// `before` is the row of the last delivery before the epoch; `end` tells the first order id of
    /// a district that was not there when the epoch began.
    fn new(before: &Row, rank: u64, end: impl Fn(usize) -> u32) -> Self {
        let mut plan = Self { delivered: [0; 10], next: [0; 10] };
        for (i, oldest) in before.next.iter().enumerate() {
            let order = u64::from(oldest.get()) + rank;
            let end = end(i);
            if order < u64::from(end) {
                plan.delivered[i] = order as u32;
                plan.next[i] = order as u32 + 1;
            } else {
                plan.next[i] = end;
            }
        }
        plan
    }

    /// The plan of a delivery; `start` tells where the sequence of a district's orders started.
    pub(super) fn of(
        delivery: &DeliveryArgs,
        before: &Row,
        rank: u64,
        start: impl Fn(u32) -> u64,
    ) -> Self {
        let warehouse = delivery.warehouse.get();
        Self::new(before, rank, |i| {
            delivery.first_order.get() + start(district_code(warehouse, i as u8 + 1)) as u32
        })
    }

    /// The orders that are delivered, with the codes of their districts.
    pub(super) fn orders(&self, delivery: &DeliveryArgs) -> impl Iterator<Item = (u32, u32)> {
        delivery.districts().zip(self.delivered).filter(|&(_, order)| order != 0)
    }

    /// The delivery's row.
    pub(super) fn row(&self, delivery: &DeliveryArgs) -> Row {
        Row {
            date: delivery.date,
            carrier: delivery.carrier,
            delivered: self.delivered.map(U32::new),
            next: self.next.map(U32::new),
        }
    }
}

/// The procedure. Answers the order delivered in each district, 4 bytes each, 0 if none.
pub(crate) enum Delivery<const EARLY: bool> {}

impl<const EARLY: bool> Procedure for Delivery<EARLY> {
    const NAME: &'static str = "tpcc_delivery";
    const SEQUENCES: bool = true;

    fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
        sequences(args, allocate)
    }

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let delivery = DeliveryArgs::parse(args)?;
        let plan = declared_plan(delivery, declare)?;
        for (code, order) in plan.orders(delivery) {
            let key = order_key(code, order);
            let row = declare.lookup(ORDERS, &key)?.ok_or(MISSING_ROW)?;
            let customer = Order::ref_from_bytes(row).map_err(|_| MISSING_ROW)?.customer.get();
            declare.delete(NEW_ORDERS, &key);
            declare.update(ORDERS, &key);
            let (low, high) = (line_key(code, order, 0), line_key(code, order + 1, 0));
            declare.update_range(ORDER_LINES, &low, &high);
            declare.update(CUSTOMERS, &customer_key(code, customer));
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let delivery = DeliveryArgs::parse(args)?;
        let plan = running_plan(tx, delivery)?;
        if EARLY {
            check_orders(tx, delivery, &plan)?;
            tx.commit_point()?;
        }
        for (code, order) in plan.orders(delivery) {
            deliver(tx, delivery, code, order)?;
        }
        end(tx, delivery, &plan)
    }
}

/// Allocates the delivery's number.
pub(super) fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
    let delivery = DeliveryArgs::parse(args)?;
    allocate.allocate(DELIVERY_IDS, &warehouse_key(delivery.warehouse.get()));
    Ok(())
}

/// What a delivery that runs delivers.
pub(super) fn running_plan<T: Tx>(tx: &mut T, delivery: &DeliveryArgs) -> Result<Plan, T::Error> {
    let warehouse = delivery.warehouse.get();
    let base = tx.sequence_start(DELIVERY_IDS, &warehouse_key(warehouse));
    let before = *read::<T, Row>(tx, DELIVERIES, &delivery_key(warehouse, base))?;
    let start = |code| tx.sequence_start(ORDER_IDS, &district_key(code));
    Ok(Plan::of(delivery, &before, tx.sequence_number(0) - base, start))
}

/// Inserts the delivery's row, and answers.
pub(super) fn end<T: Tx>(tx: &mut T, delivery: &DeliveryArgs, plan: &Plan) -> Result<(), T::Error> {
    let row = plan.row(delivery);
    let key = delivery_key(delivery.warehouse.get(), tx.sequence_number(0) + 1);
    tx.insert(DELIVERIES, &key, row.as_bytes())?;
    tx.output().extend_from_slice(row.delivered.as_bytes());
    Ok(())
}

/// Declares the delivery's own row and tells what it delivers.
pub(super) fn declared_plan<D: Declare>(
    delivery: &DeliveryArgs,
    declare: &mut D,
) -> Result<Plan, D::Error> {
    let warehouse = delivery.warehouse.get();
    let number = declare.sequence_number(0);
    declare.insert(DELIVERIES, &delivery_key(warehouse, number + 1));
    let base = declare.sequence_start(DELIVERY_IDS, &warehouse_key(warehouse));
    let before = declare.lookup(DELIVERIES, &delivery_key(warehouse, base))?.ok_or(MISSING_ROW)?;
    let before = *Row::ref_from_bytes(before).map_err(|_| MISSING_ROW)?;
    let start = |code| declare.sequence_start(ORDER_IDS, &district_key(code));
    Ok(Plan::of(delivery, &before, number - base, start))
}

/// That the orders are there which a delivery takes. An order has its lines and its customer.
fn check_orders<T: Tx>(tx: &mut T, delivery: &DeliveryArgs, plan: &Plan) -> Result<(), T::Error> {
    for (code, order) in plan.orders(delivery) {
        let key = order_key(code, order);
        tx.get(NEW_ORDERS, &key)?.ok_or(MISSING_ROW)?;
        read::<T, Order>(tx, ORDERS, &key)?;
    }
    Ok(())
}

/// Delivers one order.
fn deliver<T: Tx>(
    tx: &mut T,
    delivery: &DeliveryArgs,
    code: u32,
    order: u32,
) -> Result<(), T::Error> {
    let key = order_key(code, order);
    if !tx.delete(NEW_ORDERS, &key)? {
        return Err(MISSING_ROW.into());
    }
    let (mut customer, mut lines) = (0, 0);
    change(tx, ORDERS, &key, |row: &mut Order| {
        row.carrier = delivery.carrier;
        customer = row.customer.get();
        lines = row.line_count;
    })?;
    let mut total = 0_i64;
    for line in 1..=lines {
        change(tx, ORDER_LINES, &line_key(code, order, line), |row: &mut OrderLine| {
            row.delivery_date = delivery.date;
            total += i64::from(row.amount.get());
        })?;
    }
    let (key, at) = (customer_key(code, customer), offset_of!(Customer, account));
    change_columns(tx, CUSTOMERS, &key, at, |_: &Customer, account: &mut Account| {
        account.balance += total;
        account.delivery_count += 1;
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn ranks_deliver_in_order_and_stop_at_the_end() {
        let mut before = Row::new_zeroed();
        before.next = [U32::new(71); 10];
        let plan = |rank| {
            let plan = Plan::new(&before, rank, |i| if i == 3 { 71 } else { 73 });
            (plan.delivered[0], plan.next[0], plan.delivered[3], plan.next[3])
        };
        assert_eq!(plan(0), (71, 72, 0, 71));
        assert_eq!(plan(1), (72, 73, 0, 71));
        assert_eq!(plan(2), (0, 73, 0, 71));
        assert_eq!(plan(900), (0, 73, 0, 71));
    }
}
