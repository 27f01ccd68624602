//! Rows of warehouses, districts and customers.

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Longest text of `C_DATA`.
pub const CUSTOMER_DATA_BYTES: usize = 500;

/// A row of WAREHOUSE or of DISTRICT, which have the same columns.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Site {
    /// `W_NAME`, `D_NAME`.
    pub name: [u8; 10],
    /// Where it is.
    pub address: Address,
    /// `W_TAX`, `D_TAX`.
    pub tax: U32,
    /// `W_YTD`, `D_YTD`.
    pub ytd: I64,
}

/// An address.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Address {
    /// First line of the street.
    pub street_1: [u8; 20],
    /// Second line of the street.
    pub street_2: [u8; 20],
    /// City.
    pub city: [u8; 20],
    /// State.
    pub state: [u8; 2],
    /// Zip code.
    pub zip: [u8; 9],
}

/// A row of CUSTOMER.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Customer {
    /// `C_FIRST`.
    pub first: [u8; 16],
    /// `C_MIDDLE`.
    pub middle: [u8; 2],
    /// `C_LAST`.
    pub last: [u8; 16],
    /// Where the customer is.
    pub address: Address,
    /// `C_PHONE`.
    pub phone: [u8; 16],
    /// `C_SINCE`.
    pub since: U64,
    /// `C_CREDIT`: `GC` or `BC`.
    pub credit: [u8; 2],
    /// `C_CREDIT_LIM`.
    pub credit_limit: I64,
    /// `C_DISCOUNT`.
    pub discount: U32,
    /// What payments and deliveries change.
    pub account: Account,
    /// `C_DATA`.
    pub data: [u8; CUSTOMER_DATA_BYTES],
}

/// The columns of CUSTOMER that change.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Account {
    /// `C_BALANCE`.
    pub balance: I64,
    /// `C_YTD_PAYMENT`.
    pub ytd_payment: I64,
    /// `C_PAYMENT_CNT`.
    pub payment_count: U32,
    /// `C_DELIVERY_CNT`.
    pub delivery_count: U32,
}

impl Account {
    /// Books a payment.
    pub(crate) fn pay(&mut self, amount: i64) {
        self.balance -= amount;
        self.ytd_payment += amount;
        self.payment_count += 1;
    }
}

/// A row of HISTORY.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct History {
    /// `H_C_W_ID` and `H_C_D_ID` as the code of the customer's district.
    pub customer_district: U32,
    /// `H_C_ID`.
    pub customer: U32,
    /// `H_W_ID` and `H_D_ID` as the code of the paying district.
    pub district: U32,
    /// `H_DATE`.
    pub date: U64,
    /// `H_AMOUNT`.
    pub amount: U32,
    /// `H_DATA`.
    pub data: [u8; 24],
}

// Logs and images depend on these sizes; padding would store bytes that were never written.
const _: () = {
    assert!(size_of::<Site>() == 93);
    assert!(size_of::<Customer>() == 667);
    assert!(size_of::<History>() == 48);
};
