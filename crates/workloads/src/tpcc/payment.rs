//! Payment (clause 2.5): books an amount on warehouse, district and customer, and writes history.
//!
//! A customer given by last name is found in the index by name while declaring (reconnaissance, as
//! CA 5.4 suggests), and again in the body. Names never change, so that never leads to a
//! re-submission.

use std::io::Write;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Declare, Procedure, Tx};
use crate::common::BAD_ARGUMENTS;
use crate::tpcc::customer::Choice;
use crate::tpcc::schema::{
    CUSTOMER_DATA_BYTES, CUSTOMERS, CUSTOMERS_BY_NAME, Customer, DISTRICT, HISTORY, History, Site,
    WAREHOUSES, change, customer_key, district_code, district_key, warehouse_key,
};

/// The arguments.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct PaymentArgs {
    /// Also the key of the history row: no two payments have the same.
    pub(crate) date: U64,
    pub(crate) warehouse: U32,
    pub(crate) district: u8,
    pub(crate) amount: U32,
    pub(crate) customer: Choice,
}

impl PaymentArgs {
    pub(crate) fn parse(args: &[u8]) -> Result<&Self, Abort> {
        Self::ref_from_bytes(args).map_err(|_| BAD_ARGUMENTS)
    }

    /// The code of the district that is paid to.
    pub(crate) fn district_code(&self) -> u32 {
        district_code(self.warehouse.get(), self.district)
    }

    fn history_key(&self) -> [u8; 8] {
        self.date.get().to_be_bytes()
    }
}

/// The procedure. Answers the customer's id (4 bytes) and new balance (8 bytes).
pub(crate) enum Payment {}

impl Procedure for Payment {
    const NAME: &'static str = "tpcc_payment";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let payment = PaymentArgs::parse(args)?;
        let customer = payment
            .customer
            .find(|low, high, each| declare.lookup_scan(CUSTOMERS_BY_NAME, low, high, each))?;
        declare.update(WAREHOUSES, &warehouse_key(payment.warehouse.get()));
        declare.update(DISTRICT, &district_key(payment.district_code()));
        declare.update(CUSTOMERS, &customer_key(payment.customer.district_code(), customer));
        declare.insert(HISTORY, &payment.history_key());
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let payment = PaymentArgs::parse(args)?;
        let amount = payment.amount.get();
        let customer = payment
            .customer
            .find(|low, high, each| tx.scan(CUSTOMERS_BY_NAME, low, high, false, each))?;
        // Warehouse name, four blanks, district name.
        let mut data = [b' '; 24];
        change(tx, WAREHOUSES, &warehouse_key(payment.warehouse.get()), |site: &mut Site| {
            site.ytd += i64::from(amount);
            data[..10].copy_from_slice(&site.name);
        })?;
        change(tx, DISTRICT, &district_key(payment.district_code()), |site: &mut Site| {
            site.ytd += i64::from(amount);
            data[14..].copy_from_slice(&site.name);
        })?;
        let key = customer_key(payment.customer.district_code(), customer);
        let mut balance = 0;
        change(tx, CUSTOMERS, &key, |row: &mut Customer| {
            pay(row, payment, customer);
            balance = row.balance.get();
        })?;
        let history = History {
            customer_district: payment.customer.district_code().into(),
            customer: customer.into(),
            district: payment.district_code().into(),
            date: payment.date,
            amount: payment.amount,
            data,
        };
        tx.insert(HISTORY, &payment.history_key(), history.as_bytes())?;
        tx.output().extend_from_slice(&customer.to_le_bytes());
        tx.output().extend_from_slice(&balance.to_le_bytes());
        Ok(())
    }
}

/// Books a payment on the customer; one with bad credit gets a note in front of the data.
fn pay(row: &mut Customer, payment: &PaymentArgs, customer: u32) {
    row.balance -= i64::from(payment.amount.get());
    row.ytd_payment += i64::from(payment.amount.get());
    row.payment_count += 1;
    if row.credit != *b"BC" {
        return;
    }
    let mut note = [0_u8; 80];
    let mut rest = note.as_mut_slice();
    let written = write!(
        rest,
        "{} {} {} {} {} {}|",
        customer,
        payment.customer.district,
        payment.customer.warehouse,
        payment.district,
        payment.warehouse,
        payment.amount
    );
    assert!(written.is_ok(), "six numbers of at most ten digits fit into the note");
    let length = 80 - rest.len();
    row.data.copy_within(..CUSTOMER_DATA_BYTES - length, length);
    row.data[..length].copy_from_slice(&note[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn bad_credit_gets_a_note() {
        let mut args = PaymentArgs::new_zeroed();
        args.amount = u32::MAX.into();
        args.warehouse = u32::MAX.into();
        args.district = 255;
        args.customer.warehouse = u32::MAX.into();
        args.customer.district = 255;
        let mut row = Customer::new_zeroed();
        row.data.fill(b'x');
        pay(&mut row, &args, u32::MAX);
        assert_eq!(row.data, [b'x'; 500]);
        row.credit = *b"BC";
        pay(&mut row, &args, u32::MAX);
        assert!(row.data.starts_with(b"4294967295 255 4294967295 255 4294967295 4294967295|xx"));
        assert_eq!((row.balance.get(), row.payment_count.get()), (-2 * i64::from(u32::MAX), 2));
    }
}
