//! NewOrder (clause 2.4): allocates the order id, inserts the order and its lines, takes the items
//! from stock.
//!
//! In the full mix the arguments ask for the items to be looked up before anything is allocated. An
//! order that names an unused item (1 %) aborts there, so it leaves no gap in the order ids. Items
//! never change, so these lookups always hold.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Allocate, Declare, Procedure, Tx};
use crate::common::{BAD_ARGUMENTS, MISSING_ROW, code};
use crate::tpcc::schema::{
    CUSTOMERS, Customer, DISTRICT, ITEMS, Item, Level, NEW_ORDERS, ORDER_IDS, ORDER_LINES, ORDERS,
    ORDERS_BY_CUSTOMER, Order, OrderLine, STOCK, Site, Stock, WAREHOUSES, change_columns,
    customer_key, district_code, district_key, item_key, line_key, order_by_customer_key,
    order_key, read, stock_key, warehouse_key,
};
use crate::tpcc::text::is_original;

/// The fixed part of the arguments; the lines follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) date: U64,
    pub(crate) warehouse: U32,
    pub(crate) customer: U32,
    /// The order id that the first call that allocates gets.
    pub(crate) first_order: U32,
    pub(crate) district: u8,
    /// Not 0: look all items up before allocating.
    pub(crate) check_items: u8,
}

/// One item that is ordered.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Line {
    pub(crate) item: U32,
    pub(crate) supply_warehouse: U32,
    pub(crate) quantity: u8,
}

/// The arguments, in place.
pub(crate) fn parse(args: &[u8]) -> Result<(&Header, &[Line]), Abort> {
    let (header, rest) = Header::ref_from_prefix(args).map_err(|_| BAD_ARGUMENTS)?;
    let lines = <[Line]>::ref_from_bytes(rest).map_err(|_| BAD_ARGUMENTS)?;
    Ok((header, lines))
}

impl Header {
    pub(crate) fn district_code(&self) -> u32 {
        district_code(self.warehouse.get(), self.district)
    }

    pub(super) fn order(&self, allocation: u64) -> u32 {
        self.first_order.get() + allocation as u32
    }
}

/// The procedure. Answers the order id (4 bytes), the total (8 bytes), and for each line the
/// quantity left in stock (2 bytes) and `B` or `G` for brand or generic.
pub(crate) enum NewOrder<const EARLY: bool> {}

impl<const EARLY: bool> Procedure for NewOrder<EARLY> {
    const NAME: &'static str = "tpcc_new_order";
    const SEQUENCES: bool = true;

    fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
        sequences(args, allocate)
    }

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let (header, lines) = parse(args)?;
        let (code, order) = (header.district_code(), header.order(declare.sequence_number(0)));
        // In the order in which the body needs them.
        declare_sites(declare, header);
        declare_order(declare, header, order);
        for (i, line) in lines.iter().enumerate() {
            let item = line.item.get();
            declare.will_read(ITEMS, &item_key(item));
            declare.update(STOCK, &stock_key(line.supply_warehouse.get(), item));
            declare.insert(ORDER_LINES, &line_key(code, order, i as u8 + 1));
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let (header, lines) = parse(args)?;
        let code = header.district_code();
        let order = header.order(tx.sequence_number(0));
        let tax = taxes(tx, header)?;
        let discount = discount(tx, header)?;
        if EARLY && are_distinct(tx, lines)? {
            tx.commit_point()?;
        }
        insert_order(tx, header, lines, order)?;
        // The total's place comes before the lines in the answer, but is known after them.
        let output = tx.output();
        let total_at = output.len() + 4;
        output.extend_from_slice(&order.to_le_bytes());
        output.extend_from_slice(&[0; 8]);
        let mut sum = 0_i64;
        for (i, line) in lines.iter().enumerate() {
            sum += i64::from(order_line(tx, header, line, line_key(code, order, i as u8 + 1))?);
        }
        let total = total(sum, discount, tax);
        tx.output()[total_at..total_at + 8].copy_from_slice(&total.to_le_bytes());
        Ok(())
    }
}

/// Allocates the order's id, if its items are there.
pub(super) fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
    let (header, lines) = parse(args)?;
    if header.check_items != 0 {
        for line in lines {
            if allocate.lookup(ITEMS, &item_key(line.item.get()))?.is_none() {
                return Err(Abort(code::UNUSED_ITEM).into());
            }
        }
    }
    allocate.allocate(ORDER_IDS, &district_key(header.district_code()));
    Ok(())
}

/// Declares what is read of warehouse, district and customer.
pub(super) fn declare_sites<D: Declare>(declare: &mut D, header: &Header) {
    let code = header.district_code();
    declare.will_read(WAREHOUSES, &warehouse_key(header.warehouse.get()));
    declare.will_read(DISTRICT, &district_key(code));
    declare.will_read(CUSTOMERS, &customer_key(code, header.customer.get()));
}

/// Declares what [`insert_order`] inserts.
pub(super) fn declare_order<D: Declare>(declare: &mut D, header: &Header, order: u32) {
    let (code, customer) = (header.district_code(), header.customer.get());
    declare.insert(ORDERS, &order_key(code, order));
    declare.insert(ORDERS_BY_CUSTOMER, &order_by_customer_key(code, customer, order));
    declare.insert(NEW_ORDERS, &order_key(code, order));
}

/// What an order costs whose lines cost this.
pub(super) fn total(sum: i64, discount: i64, tax: i64) -> i64 {
    sum * (10_000 - discount) / 10_000 * (10_000 + tax) / 10_000
}

/// The customer's discount.
pub(super) fn discount<T: Tx>(tx: &mut T, header: &Header) -> Result<i64, T::Error> {
    let key = customer_key(header.district_code(), header.customer.get());
    Ok(read::<T, Customer>(tx, CUSTOMERS, &key)?.discount.get().into())
}

/// Whether the items of an order differ, as in all that are generated, so that no row of stock is
/// written twice. They must be there; where an item is, it is in stock.
fn are_distinct<T: Tx>(tx: &mut T, lines: &[Line]) -> Result<bool, T::Error> {
    let mut distinct = true;
    for (i, line) in lines.iter().enumerate() {
        tx.get(ITEMS, &item_key(line.item.get()))?.ok_or(MISSING_ROW)?;
        distinct &= lines[..i].iter().all(|before| before.item != line.item);
    }
    Ok(distinct)
}

/// The taxes of warehouse and district together.
pub(super) fn taxes<T: Tx>(tx: &mut T, header: &Header) -> Result<i64, T::Error> {
    let warehouse = read::<T, Site>(tx, WAREHOUSES, &warehouse_key(header.warehouse.get()))?;
    let tax = warehouse.tax.get();
    let district = read::<T, Site>(tx, DISTRICT, &district_key(header.district_code()))?;
    Ok(i64::from(tax + district.tax.get()))
}

pub(super) fn insert_order<T: Tx>(
    tx: &mut T,
    header: &Header,
    lines: &[Line],
    number: u32,
) -> Result<(), T::Error> {
    let code = header.district_code();
    let key = order_key(code, number);
    let order = Order {
        customer: header.customer,
        entry_date: header.date,
        carrier: 0,
        line_count: lines.len() as u8,
        all_local: u8::from(lines.iter().all(|line| line.supply_warehouse == header.warehouse)),
    };
    let index_key = order_by_customer_key(code, header.customer.get(), number);
    tx.insert(ORDERS, &key, order.as_bytes())?;
    tx.insert(ORDERS_BY_CUSTOMER, &index_key, &number.to_le_bytes())?;
    tx.insert(NEW_ORDERS, &key, &number.to_le_bytes())
}

/// Takes one item from stock and inserts its line; the amount of the line.
fn order_line<T: Tx>(
    tx: &mut T,
    header: &Header,
    line: &Line,
    key: [u8; 8],
) -> Result<u32, T::Error> {
    let item = *read::<T, Item>(tx, ITEMS, &item_key(line.item.get()))?;
    let mut picked = Picked::default();
    let stock_key = stock_key(line.supply_warehouse.get(), line.item.get());
    change_columns(tx, STOCK, &stock_key, 0, |stock: &Stock, level: &mut Level| {
        picked = Picked::of(stock, level, header, line, &item);
    })?;
    let (amount, row) = new_line(line, &item, &picked);
    tx.insert(ORDER_LINES, &key, row.as_bytes())?;
    let output = tx.output();
    output.extend_from_slice(&picked.left().to_le_bytes());
    output.push(picked.brand);
    Ok(amount)
}

/// What was picked from stock.
#[derive(Default)]
pub(super) struct Picked {
    left: i32,
    /// `B` or `G`.
    pub(super) brand: u8,
    district_info: [u8; 24],
}

impl Picked {
    /// Takes the items of a line.
    #[inline(always)]
    pub(super) fn of(
        stock: &Stock,
        level: &mut Level,
        header: &Header,
        line: &Line,
        item: &Item,
    ) -> Self {
        let ordered = line.quantity;
        let rest = level.quantity.get() - i32::from(ordered);
        let left = if rest >= 10 { rest } else { rest + 91 };
        level.quantity.set(left);
        level.ytd += u64::from(ordered);
        level.order_count += 1;
        level.remote_count += u32::from(line.supply_warehouse != header.warehouse);
        let district_info = stock.district_info[usize::from(header.district - 1) % 10];
        let is_brand = is_original(&item.data) && is_original(&stock.data);
        Self { left, brand: if is_brand { b'B' } else { b'G' }, district_info }
    }

    /// The quantity left.
    pub(super) fn left(&self) -> i16 {
        self.left as i16
    }
}

/// The row of a line, and its amount.
#[inline(always)]
pub(super) fn new_line(line: &Line, item: &Item, picked: &Picked) -> (u32, OrderLine) {
    let amount = u32::from(line.quantity) * item.price.get();
    let row = OrderLine {
        item: line.item,
        supply_warehouse: line.supply_warehouse,
        delivery_date: 0.into(),
        quantity: line.quantity,
        amount: amount.into(),
        district_info: picked.district_info,
    };
    (amount, row)
}
