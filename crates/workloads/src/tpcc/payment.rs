//! Payment (clause 2.5): books an amount on warehouse, district and customer, and writes history.
//!
//! A customer given by last name is found in the index by name while declaring (reconnaissance, as
//! CA 5.4 suggests), and again in the body. Names never change, so that never defers
//! it.

use std::io::Write;
use std::mem::offset_of;

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Declare, Procedure, TableId, Tx};
use crate::common::BAD_ARGUMENTS;
use crate::tpcc::customer::Choice;
use crate::tpcc::schema::{
    Account, CUSTOMER_DATA_BYTES, CUSTOMERS, CUSTOMERS_BY_NAME, Customer, DISTRICT, HISTORY,
    History, Site, WAREHOUSES, change, change_columns, customer_key, district_code, district_key,
    read, warehouse_key,
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

    pub(super) fn history_key(&self) -> [u8; 8] {
        self.date.get().to_be_bytes()
    }

    /// The row of HISTORY, with the names of warehouse and district.
    pub(super) fn history(
        &self,
        customer: u32,
        warehouse: [u8; 10],
        district: [u8; 10],
    ) -> History {
        // Warehouse name, four blanks, district name.
        let mut data = [b' '; 24];
        data[..10].copy_from_slice(&warehouse);
        data[14..].copy_from_slice(&district);
        History {
            customer_district: self.customer.district_code().into(),
            customer: customer.into(),
            district: self.district_code().into(),
            date: self.date,
            amount: self.amount,
            data,
        }
    }
}

/// The procedure. Answers the customer's id (4 bytes) and new balance (8 bytes).
pub(crate) enum Payment<const EARLY: bool> {}

impl<const EARLY: bool> Procedure for Payment<EARLY> {
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
        let warehouse = warehouse_key(payment.warehouse.get());
        let key = customer_key(payment.customer.district_code(), customer);
        if EARLY {
            check_rows(tx, payment, &key)?;
            tx.commit_point()?;
        }
        let warehouse = receive(tx, WAREHOUSES, &warehouse, amount)?;
        let district = district_key(payment.district_code());
        let district = receive(tx, DISTRICT, &district, amount)?;
        let balance = match EARLY {
            false => pay(tx, &key, payment, customer)?,
            true => pay_in_one_write(tx, &key, payment, customer)?,
        };
        let history = payment.history(customer, warehouse, district);
        tx.insert(HISTORY, &payment.history_key(), history.as_bytes())?;
        tx.output().extend_from_slice(&customer.to_le_bytes());
        tx.output().extend_from_slice(&balance.to_le_bytes());
        Ok(())
    }
}

/// That the rows are there which a payment updates; the one that most others wait for comes last.
fn check_rows<T: Tx>(tx: &mut T, payment: &PaymentArgs, customer: &[u8]) -> Result<(), T::Error> {
    read::<T, Customer>(tx, CUSTOMERS, customer)?;
    read::<T, Site>(tx, DISTRICT, &district_key(payment.district_code()))?;
    read::<T, Site>(tx, WAREHOUSES, &warehouse_key(payment.warehouse.get()))?;
    Ok(())
}

/// Books a payment on a warehouse or a district; its name.
fn receive<T: Tx>(
    tx: &mut T,
    table: TableId,
    key: &[u8],
    amount: u32,
) -> Result<[u8; 10], T::Error> {
    let mut name = [0; 10];
    change_columns(tx, table, key, offset_of!(Site, ytd), |site: &Site, ytd: &mut I64| {
        *ytd += i64::from(amount);
        name = site.name;
    })?;
    Ok(name)
}

/// Books a payment on the customer; one with bad credit gets a note in front of the data. The
/// balance.
pub(super) fn pay<T: Tx>(
    tx: &mut T,
    key: &[u8],
    payment: &PaymentArgs,
    customer: u32,
) -> Result<i64, T::Error> {
    let amount = i64::from(payment.amount.get());
    let (mut balance, mut credit) = (0, [0; 2]);
    let at = offset_of!(Customer, account);
    change_columns(tx, CUSTOMERS, key, at, |row: &Customer, account: &mut Account| {
        account.pay(amount);
        (balance, credit) = (account.balance.get(), row.credit);
    })?;
    if credit == *b"BC" {
        change(tx, CUSTOMERS, key, |row: &mut Customer| note(&mut row.data, payment, customer))?;
    }
    Ok(balance)
}

/// The same behind a commit point, where no row is written twice: the credit is read beforehand.
pub(super) fn pay_in_one_write<T: Tx>(
    tx: &mut T,
    key: &[u8],
    payment: &PaymentArgs,
    customer: u32,
) -> Result<i64, T::Error> {
    if read::<T, Customer>(tx, CUSTOMERS, key)?.credit != *b"BC" {
        return pay(tx, key, payment, customer);
    }
    let mut balance = 0;
    change(tx, CUSTOMERS, key, |row: &mut Customer| {
        row.account.pay(i64::from(payment.amount.get()));
        balance = row.account.balance.get();
        note(&mut row.data, payment, customer);
    })?;
    Ok(balance)
}

/// Puts a note in front of the data.
fn note(data: &mut [u8; CUSTOMER_DATA_BYTES], payment: &PaymentArgs, customer: u32) {
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
    data.copy_within(..CUSTOMER_DATA_BYTES - length, length);
    data[..length].copy_from_slice(&note[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn a_note_goes_in_front_of_the_data() {
        let mut args = PaymentArgs::new_zeroed();
        args.amount = u32::MAX.into();
        args.warehouse = u32::MAX.into();
        args.district = 255;
        args.customer.warehouse = u32::MAX.into();
        args.customer.district = 255;
        let mut data = [b'x'; CUSTOMER_DATA_BYTES];
        note(&mut data, &args, u32::MAX);
        assert!(data.starts_with(b"4294967295 255 4294967295 255 4294967295 4294967295|xx"));
        assert!(data.ends_with(b"xx"));
    }
}
