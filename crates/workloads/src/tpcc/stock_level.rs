//! StockLevel (clause 2.8): how many items of the last 20 orders of a district are short in stock.
//!
//! The district row does not hold the next order id, so the last orders are found by a descending
//! scan.

use std::ops::ControlFlow;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Declare, Procedure, Tx};
use crate::common::BAD_ARGUMENTS;
use crate::tpcc::schema::{
    Key, LINES_MAX, ORDER_LINES, ORDERS, OrderLine, STOCK, Stock, district_code, line_key,
    order_key, read, stock_key,
};

/// The arguments.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct StockLevelArgs {
    pub(crate) warehouse: U32,
    pub(crate) district: u8,
    pub(crate) threshold: U32,
}

impl StockLevelArgs {
    fn parse(args: &[u8]) -> Result<&Self, Abort> {
        Self::ref_from_bytes(args).map_err(|_| BAD_ARGUMENTS)
    }
}

const ORDERS_MAX: usize = 20;
const ITEMS_MAX: usize = ORDERS_MAX * LINES_MAX as usize;

/// The procedure. Answers the number of items (4 bytes).
pub(crate) enum StockLevel {}

impl Procedure for StockLevel {
    const NAME: &'static str = "tpcc_stock_level";

    fn write_set<D: Declare>(args: &[u8], _: &mut D) -> Result<(), D::Error> {
        StockLevelArgs::parse(args)?;
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let args = StockLevelArgs::parse(args)?;
        let warehouse = args.warehouse.get();
        let mut items = [0_u32; ITEMS_MAX];
        let used = last_items(tx, district_code(warehouse, args.district), &mut items)?;
        let mut keys: Vec<Key> =
            items[..used].iter().map(|&item| stock_key(warehouse, item)).collect();
        keys.sort_unstable();
        keys.dedup();
        tx.will_get(STOCK, keys.iter().map(<[u8; 8]>::as_slice))?;
        let mut short = 0_u32;
        for key in &keys {
            let stock = read::<T, Stock>(tx, STOCK, key)?;
            short += u32::from(i64::from(stock.quantity.get()) < i64::from(args.threshold.get()));
        }
        tx.output().extend_from_slice(&short.to_le_bytes());
        Ok(())
    }
}

/// Gathers the items of the last orders of a district, with repetitions; how many they are.
fn last_items<T: Tx>(
    tx: &mut T,
    code: u32,
    items: &mut [u32; ITEMS_MAX],
) -> Result<usize, T::Error> {
    let mut seen = 0;
    let (mut oldest, mut newest) = (order_key(code + 1, 0), order_key(code, 0));
    tx.scan(ORDERS, &order_key(code, 0), &order_key(code + 1, 0), true, &mut |key, _| {
        if let Ok(key) = key.try_into() {
            oldest = key;
            if seen == 0 {
                newest = key;
            }
        }
        seen += 1;
        if seen == ORDERS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if seen == 0 {
        return Ok(0);
    }
    let (oldest, newest) = (u64::from_be_bytes(oldest) as u32, u64::from_be_bytes(newest) as u32);
    let mut used = 0;
    // Up to the newest order only: beyond it are lines of orders that come later in the epoch.
    let (low, high) = (line_key(code, oldest, 0), line_key(code, newest + 1, 0));
    tx.scan(ORDER_LINES, &low, &high, false, &mut |_, value| {
        let (Ok(line), Some(place)) = (OrderLine::ref_from_bytes(value), items.get_mut(used))
        else {
            return ControlFlow::Break(());
        };
        *place = line.item.get();
        used += 1;
        ControlFlow::Continue(())
    })?;
    Ok(used)
}
