//! StockLevel (clause 2.8): how many items of the last 20 orders of a district are short in stock.
//!
//! The district row does not hold the next order id, so the transaction looks at the district's
//! order sequence, which tells what the id is at its serial position.

use std::ops::ControlFlow;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Declare, Draw, Procedure, Tx};
use crate::common::BAD_ARGUMENTS;
use crate::tpcc::schema::{
    Key, LINES_MAX, ORDER_IDS, ORDER_LINES, OrderLine, STOCK, Stock, district_code, district_key,
    line_key, read, stock_key,
};

/// The arguments.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct StockLevelArgs {
    pub(crate) warehouse: U32,
    pub(crate) district: u8,
    pub(crate) threshold: U32,
    /// The order id that the first drawer gets.
    pub(crate) first_order: U32,
}

impl StockLevelArgs {
    fn parse(args: &[u8]) -> Result<&Self, Abort> {
        Self::ref_from_bytes(args).map_err(|_| BAD_ARGUMENTS)
    }

    fn district_code(&self) -> u32 {
        district_code(self.warehouse.get(), self.district)
    }
}

const ORDERS_MAX: u32 = 20;
const ITEMS_MAX: usize = ORDERS_MAX as usize * LINES_MAX as usize;

/// The procedure. Answers the number of items (4 bytes).
pub(crate) enum StockLevel {}

impl Procedure for StockLevel {
    const NAME: &'static str = "tpcc_stock_level";
    const DRAWS: bool = true;

    fn draws<D: Draw>(args: &[u8], draw: &mut D) -> Result<(), D::Error> {
        draw.peek(ORDER_IDS, &district_key(StockLevelArgs::parse(args)?.district_code()));
        Ok(())
    }

    fn write_set<D: Declare>(_: &[u8], _: &mut D) -> Result<(), D::Error> {
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let args = StockLevelArgs::parse(args)?;
        let warehouse = args.warehouse.get();
        let mut items = [0_u32; ITEMS_MAX];
        let used = last_items(tx, args, &mut items)?;
        let items = &mut items[..used];
        items.sort_unstable();
        let mut keys = [Key::default(); ITEMS_MAX];
        let mut distinct = 0;
        for group in items.chunk_by(|a, b| a == b) {
            keys[distinct] = stock_key(warehouse, group[0]);
            distinct += 1;
        }
        let keys = &keys[..distinct];
        tx.will_get(STOCK, keys.iter().map(<[u8; 8]>::as_slice))?;
        let mut short = 0_u32;
        for key in keys {
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
    args: &StockLevelArgs,
    items: &mut [u32; ITEMS_MAX],
) -> Result<usize, T::Error> {
    let code = args.district_code();
    let next = args.first_order.get() + tx.drawn(0) as u32;
    // Up to the next order only: beyond it are lines of orders that come later in the epoch.
    let (low, high) = (line_key(code, next.saturating_sub(ORDERS_MAX), 0), line_key(code, next, 0));
    let mut used = 0;
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
