//! StockLevel (clause 2.8): how many items of the last 20 orders of a district are short in stock.
//!
//! The district row does not hold the next order id, so the transaction looks at the district's
//! order sequence, which tells what the id is at its serial position.

use std::ops::ControlFlow;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Allocate, Declare, Procedure, Tx};
use crate::common::{BAD_ARGUMENTS, MISSING_ROW};
use crate::tpcc::schema::{
    Key, LINES_MAX, ORDER_IDS, ORDER_LINES, OrderLine, STOCK, Stock, district_code, district_key,
    line_key, stock_key,
};

/// The arguments.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct StockLevelArgs {
    pub(crate) warehouse: U32,
    pub(crate) district: u8,
    pub(crate) threshold: U32,
    /// The order id that the first call that allocates gets.
    pub(crate) first_order: U32,
}

impl StockLevelArgs {
    fn parse(args: &[u8]) -> Result<&Self, Abort> {
        Self::ref_from_bytes(args).map_err(|_| BAD_ARGUMENTS)
    }

    fn district_code(&self) -> u32 {
        district_code(self.warehouse.get(), self.district)
    }

    /// Where the lines of the last orders are; `orders` is how many came after the initial ones.
    fn line_range(&self, orders: u64) -> (Key, Key) {
        let (code, next) = (self.district_code(), self.first_order.get() + orders as u32);
        // Up to the next order only: beyond it are lines of orders that come later in the epoch.
        (line_key(code, next.saturating_sub(ORDERS_MAX), 0), line_key(code, next, 0))
    }
}

const ORDERS_MAX: u32 = 20;
const ITEMS_MAX: usize = ORDERS_MAX as usize * LINES_MAX as usize;
/// Rows of STOCK that are read together.
const GROUP: usize = 32;

/// The procedure. Answers the number of items (4 bytes).
pub(crate) enum StockLevel {}

impl Procedure for StockLevel {
    const NAME: &'static str = "tpcc_stock_level";
    const SEQUENCES: bool = true;

    fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
        allocate.peek(ORDER_IDS, &district_key(StockLevelArgs::parse(args)?.district_code()));
        Ok(())
    }

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let args = StockLevelArgs::parse(args)?;
        let (low, high) = args.line_range(declare.sequence_number(0));
        declare.will_scan(ORDER_LINES, &low, &high);
        // Which items the lines name is not known yet.
        let warehouse = args.warehouse.get();
        declare.will_scan(
            STOCK,
            &stock_key(warehouse, 0),
            &stock_key(warehouse.saturating_add(1), 0),
        );
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let args = StockLevelArgs::parse(args)?;
        let warehouse = args.warehouse.get();
        let mut items = Items::default();
        last_items(tx, args, &mut items)?;
        let mut short = 0_u32;
        for group in items.distinct().chunks(GROUP) {
            let mut keys = [Key::default(); GROUP];
            for (key, &item) in keys.iter_mut().zip(group) {
                *key = stock_key(warehouse, item);
            }
            let keys = keys[..group.len()].iter().map(<[u8; 8]>::as_slice);
            let mut missing = false;
            tx.get_many(STOCK, keys, |stock| match stock.map(Stock::ref_from_bytes) {
                Some(Ok(stock)) => {
                    let quantity = i64::from(stock.level.quantity.get());
                    short += u32::from(quantity < i64::from(args.threshold.get()));
                }
                _ => missing = true,
            })?;
            if missing {
                return Err(MISSING_ROW.into());
            }
        }
        tx.output().extend_from_slice(&short.to_le_bytes());
        Ok(())
    }
}

/// A set of items: the distinct ones in the order in which they came, and where each of them is in
/// a table with open addressing.
struct Items {
    distinct: [u32; ITEMS_MAX],
    count: usize,
    /// Items; 0 where there is none, as no item has that number.
    places: [u32; PLACES],
}

/// A power of two, so large that less than a third of the places are used.
const PLACES: usize = (3 * ITEMS_MAX).next_power_of_two();

impl Default for Items {
    fn default() -> Self {
        Self { distinct: [0; ITEMS_MAX], count: 0, places: [0; PLACES] }
    }
}

impl Items {
    /// Adds an item; false if there is no room for more.
    fn add(&mut self, item: u32) -> bool {
        let mut place = item.wrapping_mul(0x9e37_79b9) as usize >> (32 - PLACES.ilog2());
        while self.places[place] != 0 {
            if self.places[place] == item {
                return true;
            }
            place = (place + 1) % PLACES;
        }
        let Some(next) = self.distinct.get_mut(self.count) else { return false };
        (*next, self.places[place]) = (item, item);
        self.count += 1;
        true
    }

    fn distinct(&self) -> &[u32] {
        &self.distinct[..self.count]
    }
}

/// Gathers the items of the last orders of a district.
fn last_items<T: Tx>(tx: &mut T, args: &StockLevelArgs, items: &mut Items) -> Result<(), T::Error> {
    let (low, high) = args.line_range(tx.sequence_number(0));
    tx.scan(ORDER_LINES, &low, &high, false, &mut |_, value| match OrderLine::ref_from_bytes(value)
    {
        Ok(line) if items.add(line.item.get()) => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_count_once() {
        let mut items = Items::default();
        let numbers = (1..=ITEMS_MAX as u32).map(|i| i * 1024);
        for item in numbers.clone().chain(numbers.clone()) {
            assert!(items.add(item));
        }
        assert!(items.distinct().iter().copied().eq(numbers));
        assert!(!items.add(7));
    }
}
