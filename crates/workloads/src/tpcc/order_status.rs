//! OrderStatus (clause 2.6): the last order of a customer. Writes nothing, and finds a customer
//! given by last name in the body alone. Which order it reads is known no earlier, so for engines
//! that must know reads it declares all orders of the district.

use std::ops::ControlFlow;

use zerocopy::FromBytes;

use crate::api::{Abort, Declare, Procedure, Tx};
use crate::common::{BAD_ARGUMENTS, MISSING_ROW};
use crate::tpcc::customer::Choice;
use crate::tpcc::schema::{
    CUSTOMERS, CUSTOMERS_BY_NAME, Customer, ORDER_LINES, ORDERS, ORDERS_BY_CUSTOMER, Order,
    OrderLine, customer_key, line_key, order_by_customer_key, order_key, read,
};

/// No customer of a district has a greater number: one more fills the bits of a key.
const CUSTOMERS_MAX: u32 = (1 << 12) - 2;

fn parse(args: &[u8]) -> Result<&Choice, Abort> {
    Choice::ref_from_bytes(args).map_err(|_| BAD_ARGUMENTS)
}

/// The procedure. Answers the customer's id (4 bytes) and balance (8 bytes), the order's id (4
/// bytes, 0 if there is none), entry date (8 bytes) and carrier (1 byte), and for each line item,
/// supplier, quantity, amount and delivery date (4, 4, 1, 4 and 8 bytes).
pub(crate) enum OrderStatus {}

impl Procedure for OrderStatus {
    const NAME: &'static str = "tpcc_order_status";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let choice = parse(args)?;
        let (code, customer) = (choice.district_code(), choice.customer.get());
        let (first, last) = match customer {
            0 => {
                let (low, high) = choice.name_range();
                declare.will_scan(CUSTOMERS_BY_NAME, &low, &high);
                declare.will_scan(
                    CUSTOMERS,
                    &customer_key(code, 0),
                    &customer_key(code.saturating_add(1), 0),
                );
                (0, CUSTOMERS_MAX)
            }
            customer => {
                declare.will_read(CUSTOMERS, &customer_key(code, customer));
                (customer, customer)
            }
        };
        let (low, high) = (
            order_by_customer_key(code, first, 0),
            order_by_customer_key(code, last.saturating_add(1), 0),
        );
        declare.will_scan(ORDERS_BY_CUSTOMER, &low, &high);
        declare.will_scan(ORDERS, &order_key(code, 0), &order_key(code.saturating_add(1), 0));
        declare.will_scan(
            ORDER_LINES,
            &line_key(code, 0, 0),
            &line_key(code.saturating_add(1), 0, 0),
        );
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let choice = parse(args)?;
        let code = choice.district_code();
        let customer =
            choice.find(|low, high, each| tx.scan(CUSTOMERS_BY_NAME, low, high, false, each))?;
        let row = read::<T, Customer>(tx, CUSTOMERS, &customer_key(code, customer))?;
        let balance = row.account.balance;
        let number = last_order(tx, code, customer)?;
        let output = tx.output();
        output.extend_from_slice(&customer.to_le_bytes());
        output.extend_from_slice(&balance.to_bytes());
        output.extend_from_slice(&number.to_le_bytes());
        if number == 0 {
            return Ok(());
        }
        let order = *read::<T, Order>(tx, ORDERS, &order_key(code, number))?;
        tx.output().extend_from_slice(&order.entry_date.to_bytes());
        tx.output().push(order.carrier);
        put_lines(tx, code, number)
    }
}

/// The greatest order id of a customer; 0 if there is none.
fn last_order<T: Tx>(tx: &mut T, code: u32, customer: u32) -> Result<u32, T::Error> {
    let low = order_by_customer_key(code, customer, 0);
    let high = order_by_customer_key(code, customer + 1, 0);
    let mut number = 0;
    tx.scan(ORDERS_BY_CUSTOMER, &low, &high, true, &mut |_, value| {
        number = value.try_into().map_or(0, u32::from_le_bytes);
        ControlFlow::Break(())
    })?;
    Ok(number)
}

fn put_lines<T: Tx>(tx: &mut T, code: u32, number: u32) -> Result<(), T::Error> {
    // The scan borrows the transaction and so does the output: gather in between.
    const LINE_BYTES: usize = 21;
    let mut gathered = [0_u8; 15 * LINE_BYTES];
    let (mut used, mut readable) = (0, true);
    let (low, high) = (line_key(code, number, 0), line_key(code, number + 1, 0));
    tx.scan(ORDER_LINES, &low, &high, false, &mut |_, value| {
        let place = gathered.get_mut(used..used + LINE_BYTES);
        let (Ok(line), Some(place)) = (OrderLine::ref_from_bytes(value), place) else {
            readable = false;
            return ControlFlow::Break(());
        };
        place[..4].copy_from_slice(&line.item.to_bytes());
        place[4..8].copy_from_slice(&line.supply_warehouse.to_bytes());
        place[8] = line.quantity;
        place[9..13].copy_from_slice(&line.amount.to_bytes());
        place[13..].copy_from_slice(&line.delivery_date.to_bytes());
        used += LINE_BYTES;
        ControlFlow::Continue(())
    })?;
    if !readable {
        return Err(MISSING_ROW.into());
    }
    tx.output().extend_from_slice(&gathered[..used]);
    Ok(())
}
