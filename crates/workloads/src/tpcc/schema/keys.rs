//! Keys, which sort as their parts do.

use crate::api::TableId;
use crate::tpcc::schema::{
    CUSTOMERS, CUSTOMERS_BY_NAME, DELIVERIES, DELIVERY_IDS, NEW_ORDERS, ORDER_LINES, ORDERS,
    ORDERS_BY_CUSTOMER, STOCK, WAREHOUSES,
};

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

/// The code of the district that a row belongs to; one with district 0 for rows that belong to a
/// warehouse, and any number for items and for history, which nothing else is used together with.
pub(crate) fn district_of(table: TableId, key: &[u8]) -> u64 {
    if table == CUSTOMERS_BY_NAME {
        return key[..4].iter().fold(0, |code, byte| code << 8 | u64::from(*byte));
    }
    let key = key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match table {
        WAREHOUSES => key << 4,
        STOCK => key >> 32 << 4,
        DELIVERIES | DELIVERY_IDS => key >> 44 << 4,
        CUSTOMERS | ORDERS | NEW_ORDERS => key >> 32,
        ORDERS_BY_CUSTOMER | ORDER_LINES => key >> 40,
        _ => key,
    }
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
}
