//! Payment with a piece for the warehouse and one for the district.

use std::mem::offset_of;

use zerocopy::IntoBytes;
use zerocopy::little_endian::I64;

use crate::api::{Declare, PieceResult, PieceTx, Procedure, Tx};
use crate::common::MISSING_ROW;
use crate::tpcc::payment::{PaymentArgs, pay, pay_in_one_write};
use crate::tpcc::schema::{
    CUSTOMERS, CUSTOMERS_BY_NAME, Customer, DISTRICT, HISTORY, Site, WAREHOUSES,
    change_columns_of_first, customer_key, district_key, read, warehouse_key,
};

/// The procedure. Its answer is that of the whole one, which the body puts out.
pub(crate) enum Payment<const EARLY: bool> {}

/// The pieces, by their numbers.
const WAREHOUSE: usize = 0;

impl<const EARLY: bool> Procedure for Payment<EARLY> {
    const NAME: &'static str = "tpcc_payment_pieces";
    const PIECES: bool = true;

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let payment = PaymentArgs::parse(args)?;
        let customer = payment
            .customer
            .find(|low, high, each| declare.lookup_scan(CUSTOMERS_BY_NAME, low, high, each))?;
        declare.update(CUSTOMERS, &customer_key(payment.customer.district_code(), customer));
        declare.update_piece(WAREHOUSES, &warehouse_key(payment.warehouse.get()), 1);
        declare.update_piece(DISTRICT, &district_key(payment.district_code()), 2);
        declare.insert_in_piece(HISTORY, &payment.history_key());
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let payment = PaymentArgs::parse(args)?;
        let customer = payment
            .customer
            .find(|low, high, each| tx.scan(CUSTOMERS_BY_NAME, low, high, false, each))?;
        let key = customer_key(payment.customer.district_code(), customer);
        let balance = match EARLY {
            false => pay(tx, &key, payment, customer)?,
            true => {
                read::<T, Customer>(tx, CUSTOMERS, &key)?;
                tx.commit_point()?;
                pay_in_one_write(tx, &key, payment, customer)?
            }
        };
        tx.output().extend_from_slice(&customer.to_le_bytes());
        tx.output().extend_from_slice(&balance.to_le_bytes());
        Ok(())
    }

    fn piece<P: PieceTx>(
        args: &[u8],
        number: usize,
        piece: &mut P,
    ) -> Result<PieceResult, P::Error> {
        let payment = PaymentArgs::parse(args)?;
        let name = receive(piece, payment.amount.get())?;
        if number == WAREHOUSE {
            return Ok(in_words(name));
        }
        let customer = payment
            .customer
            .find(|low, high, each| piece.scan(CUSTOMERS_BY_NAME, low, high, each))?;
        let warehouse = of_words(piece.result(WAREHOUSE)?);
        let history = payment.history(customer, warehouse, name);
        piece.insert_row(HISTORY, &payment.history_key(), history.as_bytes())?;
        Ok([0; 2])
    }
}

/// Books a payment on a warehouse or a district; its name.
fn receive<P: PieceTx>(piece: &mut P, amount: u32) -> Result<[u8; 10], P::Error> {
    let mut name = None;
    change_columns_of_first(piece, offset_of!(Site, ytd), |site: &Site, ytd: &mut I64| {
        *ytd += i64::from(amount);
        name = Some(site.name);
    })?;
    Ok(name.ok_or(MISSING_ROW)?)
}

fn in_words(name: [u8; 10]) -> PieceResult {
    let mut words = [0; 2];
    words.as_mut_bytes()[..10].copy_from_slice(&name);
    words
}

fn of_words(words: PieceResult) -> [u8; 10] {
    let mut name = [0; 10];
    name.copy_from_slice(&words.as_bytes()[..10]);
    name
}
