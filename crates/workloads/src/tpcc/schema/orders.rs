//! Rows of orders, items and what there is of them.

use zerocopy::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

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
    assert!(size_of::<Order>() == 15);
    assert!(size_of::<OrderLine>() == 45);
    assert!(size_of::<Item>() == 82);
    assert!(size_of::<Stock>() == 310);
    assert!(size_of::<Delivery>() == 89);
};
