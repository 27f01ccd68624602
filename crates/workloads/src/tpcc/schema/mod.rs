//! Tables, keys and rows of TPC-C.
//!
//! All keys but those of the last-name index are 8 big-endian bytes. A district has a code of 24
//! bits (20 bits warehouse, 4 bits district 1..=10); what belongs to it follows: 32 bits order id,
//! or 12 bits customer and 28 bits order id, or 32 bits order id and 8 bits line. Key columns are
//! not repeated in rows.
//!
//! Money is in cents, rates are in hundredths of a percent, texts are padded with zero bytes, and
//! "null" is 0.

mod access;
mod customers;
mod keys;
mod orders;

use zerocopy::little_endian::U32;

use crate::api::{IndexKind, TableId, TableSpec};

pub(crate) use access::{
    Row, change, change_columns, change_columns_in_piece, change_columns_of_first, read,
    read_in_piece,
};
pub use customers::{Account, Address, CUSTOMER_DATA_BYTES, Customer, History, Site};
pub(crate) use keys::district_of;
pub use keys::{
    Key, NAME_KEY_BYTES, customer_key, delivery_key, district_code, district_key,
    initial_history_key, item_key, line_key, name_key, order_by_customer_key, order_key, stock_key,
    warehouse_key,
};
pub use orders::{Delivery, Item, Level, Order, OrderLine, Stock};

/// Districts of a warehouse; a constant of the specification.
pub const DISTRICTS: u8 = 10;
/// Most lines of an order.
pub const LINES_MAX: u8 = 15;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_every_table_is_named_once() {
        let mut names: Vec<_> = tables().iter().map(|table| table.name).collect();
        assert_eq!(names.len(), 14);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 14);
    }
}
