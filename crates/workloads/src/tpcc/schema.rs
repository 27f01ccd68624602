//! Tables, keys and rows of TPC-C.
//!
//! All keys but those of the last-name index are 8 big-endian bytes. A district has a code of 24
//! bits (20 bits warehouse, 4 bits district 1..=10); what belongs to it follows: 32 bits order id,
//! or 12 bits customer and 28 bits order id, or 32 bits order id and 8 bits line. Key columns are
//! not repeated in rows.
//!
//! Money is in cents, rates are in hundredths of a percent, texts are padded with zero bytes, and
//! "null" is 0.

use zerocopy::little_endian::{I32, I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{IndexKind, TableId, TableSpec, Tx};
use crate::common::MISSING_ROW;

/// Districts of a warehouse; a constant of the specification.
pub const DISTRICTS: u8 = 10;
/// Most lines of an order.
pub const LINES_MAX: u8 = 15;
/// Longest text of `C_DATA`.
pub const CUSTOMER_DATA_BYTES: usize = 500;

/// WAREHOUSE.
pub const WAREHOUSES: TableId = TableId(0);
/// DISTRICT, without `D_NEXT_O_ID`, which is the sequence in [`ORDER_IDS`].
pub const DISTRICT: TableId = TableId(1);
/// CUSTOMER.
pub const CUSTOMERS: TableId = TableId(2);
/// Customers by district, last name and first name.
pub const CUSTOMERS_BY_NAME: TableId = TableId(3);
/// HISTORY.
pub const HISTORY: TableId = TableId(4);
/// NEW-ORDER.
pub const NEW_ORDERS: TableId = TableId(5);
/// ORDER.
pub const ORDERS: TableId = TableId(6);
/// Orders by customer.
pub const ORDERS_BY_CUSTOMER: TableId = TableId(7);
/// ORDER-LINE.
pub const ORDER_LINES: TableId = TableId(8);
/// ITEM; never written after loading.
pub const ITEMS: TableId = TableId(9);
/// STOCK.
pub const STOCK: TableId = TableId(10);
/// What each delivery did (the result file of clause 2.7.2.2), by warehouse and number.
pub const DELIVERIES: TableId = TableId(11);
/// One sequence per district: how many orders came after the initial ones.
pub const ORDER_IDS: TableId = TableId(12);
/// One sequence per warehouse: how many deliveries there were.
pub const DELIVERY_IDS: TableId = TableId(13);

/// All tables, in the order of their ids.
pub(crate) fn tables() -> Vec<TableSpec> {
    use IndexKind::{Hash, Ordered, Sequence};
    let table = |name, index, key_bytes_max, value_bytes: usize| TableSpec {
        name,
        index,
        key_bytes_max,
        value_bytes_max: value_bytes as u32,
    };
    vec![
        table("warehouse", Hash, 8, size_of::<Site>()),
        table("district", Hash, 8, size_of::<Site>()),
        table("customer", Hash, 8, size_of::<Customer>()),
        table("customer_by_name", Ordered, NAME_KEY_BYTES as u32, size_of::<U32>()),
        table("history", Hash, 8, size_of::<History>()),
        table("new_order", Ordered, 8, size_of::<U32>()),
        table("orders", Ordered, 8, size_of::<Order>()),
        table("order_by_customer", Ordered, 8, size_of::<U32>()),
        table("order_line", Ordered, 8, size_of::<OrderLine>()),
        table("item", Hash, 8, size_of::<Item>()),
        table("stock", Hash, 8, size_of::<Stock>()),
        table("delivery", Hash, 8, size_of::<Delivery>()),
        table("order_id", Sequence, 8, 8),
        table("delivery_id", Sequence, 8, 8),
    ]
}

/// A key of 8 bytes.
pub type Key = [u8; 8];

/// The 24-bit code of a district.
#[must_use]
pub fn district_code(warehouse: u32, district: u8) -> u32 {
    warehouse << 4 | u32::from(district)
}

/// Key of a warehouse, and of its delivery sequence.
#[must_use]
pub fn warehouse_key(warehouse: u32) -> Key {
    u64::from(warehouse).to_be_bytes()
}

/// Key of a district, and of its order sequence.
#[must_use]
pub fn district_key(code: u32) -> Key {
    u64::from(code).to_be_bytes()
}

/// Key of a customer.
#[must_use]
pub fn customer_key(code: u32, customer: u32) -> Key {
    (u64::from(code) << 32 | u64::from(customer)).to_be_bytes()
}

/// Key of an order, in ORDER and in NEW-ORDER.
#[must_use]
pub fn order_key(code: u32, order: u32) -> Key {
    (u64::from(code) << 32 | u64::from(order)).to_be_bytes()
}

/// Key of a line of an order; line 0 is below all lines.
#[must_use]
pub fn line_key(code: u32, order: u32, line: u8) -> Key {
    (u64::from(code) << 40 | u64::from(order) << 8 | u64::from(line)).to_be_bytes()
}

/// Key of an order in the index by customer.
#[must_use]
pub fn order_by_customer_key(code: u32, customer: u32, order: u32) -> Key {
    (u64::from(code) << 40 | u64::from(customer) << 28 | u64::from(order)).to_be_bytes()
}

/// Key of an item.
#[must_use]
pub fn item_key(item: u32) -> Key {
    u64::from(item).to_be_bytes()
}

/// Key of an item's stock in a warehouse.
#[must_use]
pub fn stock_key(warehouse: u32, item: u32) -> Key {
    (u64::from(warehouse) << 32 | u64::from(item)).to_be_bytes()
}

/// Key of what a delivery left behind. Number 0 is the loader's; the call that got `k` has
/// number `k + 1`.
#[must_use]
pub fn delivery_key(warehouse: u32, number: u64) -> Key {
    (u64::from(warehouse) << 44 | number).to_be_bytes()
}

/// Key of an initial history row, apart from those of payments by its top bit.
#[must_use]
pub fn initial_history_key(code: u32, customer: u32) -> Key {
    (1 << 63 | u64::from(code) << 32 | u64::from(customer)).to_be_bytes()
}

/// Bytes of a key of the last-name index.
pub const NAME_KEY_BYTES: usize = 40;

/// Key of a customer in the index by name.
#[must_use]
pub fn name_key(code: u32, last: &[u8; 16], first: &[u8; 16], customer: u32) -> [u8; 40] {
    let mut key = [0; NAME_KEY_BYTES];
    key[..4].copy_from_slice(&code.to_be_bytes());
    key[4..20].copy_from_slice(last);
    key[20..36].copy_from_slice(first);
    key[36..].copy_from_slice(&customer.to_be_bytes());
    key
}

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

/// A row of ORDER.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Order {
    /// `O_C_ID`; never changes.
    pub customer: U32,
    /// `O_ENTRY_D`.
    pub entry_date: U64,
    /// `O_CARRIER_ID`; 0 until delivered.
    pub carrier: u8,
    /// `O_OL_CNT`; never changes.
    pub line_count: u8,
    /// `O_ALL_LOCAL`.
    pub all_local: u8,
}

/// A row of ORDER-LINE.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct OrderLine {
    /// `OL_I_ID`.
    pub item: U32,
    /// `OL_SUPPLY_W_ID`.
    pub supply_warehouse: U32,
    /// `OL_DELIVERY_D`; 0 until delivered.
    pub delivery_date: U64,
    /// `OL_QUANTITY`.
    pub quantity: u8,
    /// `OL_AMOUNT`.
    pub amount: U32,
    /// `OL_DIST_INFO`.
    pub district_info: [u8; 24],
}

/// A row of ITEM.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Item {
    /// `I_IM_ID`.
    pub image: U32,
    /// `I_NAME`.
    pub name: [u8; 24],
    /// `I_PRICE`.
    pub price: U32,
    /// `I_DATA`.
    pub data: [u8; 50],
}

/// A row of STOCK.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Stock {
    /// What orders change.
    pub level: Level,
    /// `S_DIST_01` to `S_DIST_10`.
    pub district_info: [[u8; 24]; 10],
    /// `S_DATA`.
    pub data: [u8; 50],
}

/// The columns of STOCK that change, which are one line of the row.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Level {
    /// `S_QUANTITY`.
    pub quantity: I32,
    /// `S_YTD`.
    pub ytd: U64,
    /// `S_ORDER_CNT`.
    pub order_count: U32,
    /// `S_REMOTE_CNT`.
    pub remote_count: U32,
}

/// What a delivery left behind.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Delivery {
    /// When it ran.
    pub date: U64,
    /// By which carrier.
    pub carrier: u8,
    /// The order that it delivered in each district; 0 if none.
    pub delivered: [U32; 10],
    /// The oldest order that it left undelivered in each district.
    pub next: [U32; 10],
}

// Logs and images depend on these sizes; padding would store bytes that were never written.
const _: () = {
    assert!(size_of::<Site>() == 93);
    assert!(size_of::<Customer>() == 667);
    assert!(size_of::<History>() == 48);
    assert!(size_of::<Order>() == 15);
    assert!(size_of::<OrderLine>() == 45);
    assert!(size_of::<Item>() == 82);
    assert!(size_of::<Stock>() == 310);
    assert!(size_of::<Delivery>() == 89);
};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_parts() {
        let code = district_code(3, 10);
        assert!(district_code(3, 10) < district_code(4, 1));
        assert!(order_key(code, 255) < order_key(code, 256));
        assert!(order_key(code, u32::MAX) < order_key(code + 1, 0));
        assert!(line_key(code, 7, 15) < line_key(code, 8, 0));
        assert!(line_key(code, u32::MAX, 255) < line_key(code + 1, 0, 0));
        let by_customer = order_by_customer_key;
        assert!(by_customer(code, 9, (1 << 28) - 1) < by_customer(code, 10, 0));
        assert!(by_customer(code, 4095, (1 << 28) - 1) < by_customer(code + 1, 0, 0));
        assert!(delivery_key(1, (1 << 44) - 1) < delivery_key(2, 0));
    }

    #[test]
    fn names_sort_before_numbers() {
        let (ab, b) = (*b"AB\0\0\0\0\0\0\0\0\0\0\0\0\0\0", *b"B\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        assert!(name_key(1, &ab, &b, 9) < name_key(1, &b, &ab, 1));
        assert!(name_key(1, &ab, &ab, 9) < name_key(1, &ab, &b, 1));
        assert!(name_key(1, &ab, &ab, 1) < name_key(1, &ab, &ab, 9));
    }

    #[test]
    fn a_value_of_every_table_is_named_once() {
        let mut names: Vec<_> = tables().iter().map(|table| table.name).collect();
        assert_eq!(names.len(), 14);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 14);
    }
}
