//! Everything that the consistency conditions need to know of a state, gathered in one pass over
//! each table.
//!
//! Takes about 16 bytes for each order and customer, none for order lines and history rows, so that
//! data sets of many warehouses can be checked.

use xxhash_rust::xxh3::xxh3_64;

use crate::api::{TableId, View};
use crate::common::Complaints;
use crate::tpcc::schema::{
    CUSTOMERS, CUSTOMERS_BY_NAME, Customer, DISTRICT, DISTRICTS, HISTORY, History, NEW_ORDERS,
    ORDER_IDS, ORDER_LINES, ORDERS, ORDERS_BY_CUSTOMER, Order, OrderLine, Row, STOCK, Site, Stock,
    WAREHOUSES, district_code, district_key, name_key, order_by_customer_key,
};
use crate::tpcc::settings::TpccSettings;

/// How far past the next order id a stray order is still kept track of, instead of only complained
/// about.
const STRAY_ORDERS_MAX: u64 = 1_000;

/// What is known of an order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OrderFacts {
    pub(crate) customer: u32,
    pub(crate) exists: bool,
    pub(crate) is_new: bool,
    pub(crate) has_carrier: bool,
    pub(crate) line_count: u8,
    pub(crate) lines: u16,
    pub(crate) lines_delivered: u16,
}

/// What is known of a customer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CustomerFacts {
    pub(crate) exists: bool,
    pub(crate) balance: i64,
    pub(crate) ytd_payment: i64,
    /// Amounts of the delivered lines of the customer's orders.
    pub(crate) delivered: i64,
    /// Amounts in history.
    pub(crate) paid: i64,
}

/// What is known of a district.
#[derive(Debug, Default)]
pub(crate) struct DistrictFacts {
    pub(crate) code: u32,
    pub(crate) ytd: i64,
    /// `D_NEXT_O_ID`.
    pub(crate) next_order: u64,
    pub(crate) order_count: u64,
    pub(crate) order_max: u64,
    pub(crate) new_order_count: u64,
    pub(crate) new_order_min: u64,
    pub(crate) new_order_max: u64,
    pub(crate) line_count: u64,
    /// Sum of `O_OL_CNT`.
    pub(crate) line_count_told: u64,
    /// Amounts in history.
    pub(crate) paid: i64,
    /// Sum of `C_DELIVERY_CNT`.
    pub(crate) deliveries: u64,
    /// By order id.
    pub(crate) orders: Vec<OrderFacts>,
    /// By customer id.
    pub(crate) customers: Vec<CustomerFacts>,
}

/// What is known of a warehouse.
#[derive(Debug, Default)]
pub(crate) struct WarehouseFacts {
    pub(crate) ytd: i64,
    /// Sum of `S_YTD`.
    pub(crate) stock_ytd: u64,
    /// Sum of `S_ORDER_CNT`.
    pub(crate) stock_orders: u64,
    pub(crate) stock_rows: u64,
}

/// Rows of an index against those that the indexed table calls for, as sums of hashes of their
/// keys.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub(crate) struct IndexSum {
    pub(crate) rows: u64,
    hashes: u64,
}

impl IndexSum {
    fn add(&mut self, key: &[u8]) {
        self.rows += 1;
        self.hashes = self.hashes.wrapping_add(xxh3_64(key));
    }
}

/// An index: what it should hold, and what it holds.
#[derive(Debug, Default)]
pub(crate) struct IndexFacts {
    pub(crate) wanted: IndexSum,
    pub(crate) found: IndexSum,
}

/// The facts of a whole state.
pub(crate) struct Census {
    /// By warehouse id less 1.
    pub(crate) warehouses: Vec<WarehouseFacts>,
    /// By warehouse, then by district.
    pub(crate) districts: Vec<DistrictFacts>,
    pub(crate) by_name: IndexFacts,
    pub(crate) by_customer: IndexFacts,
}

impl Census {
    /// Gathers the facts; complains about rows that belong to nothing or cannot be read.
    pub(crate) fn take(
        settings: &TpccSettings,
        view: &dyn View,
        complaints: &mut Complaints,
    ) -> Self {
        let mut census = Self::empty(settings, view);
        census.count_sites(view, complaints);
        census.count_orders(view, complaints);
        census.count_new_orders(view, complaints);
        census.count_lines(view, complaints);
        census.count_history(view, complaints);
        census.count_customers(view, complaints);
        census.count_stock(view, complaints);
        view.for_each(CUSTOMERS_BY_NAME, &mut |key, _| census.by_name.found.add(key));
        view.for_each(ORDERS_BY_CUSTOMER, &mut |key, _| census.by_customer.found.add(key));
        census
    }

    fn empty(settings: &TpccSettings, view: &dyn View) -> Self {
        let customers = settings.customers_per_district as usize + 1;
        let codes = (1..=settings.warehouses)
            .flat_map(|warehouse| (1..=DISTRICTS).map(move |d| district_code(warehouse, d)));
        let districts = codes.map(|code| {
            let allocation = view.get(ORDER_IDS, &district_key(code)).unwrap_or_default();
            let allocation =
                <[u8; 8]>::try_from(allocation.as_slice()).map_or(0, u64::from_le_bytes);
            DistrictFacts {
                code,
                next_order: u64::from(settings.first_order()) + allocation,
                customers: vec![CustomerFacts::default(); customers],
                ..DistrictFacts::default()
            }
        });
        Self {
            districts: districts.collect(),
            warehouses: (0..settings.warehouses).map(|_| WarehouseFacts::default()).collect(),
            by_name: IndexFacts::default(),
            by_customer: IndexFacts::default(),
        }
    }

    fn district(&mut self, code: u64) -> Option<&mut DistrictFacts> {
        let (warehouse, district) = (code >> 4, code & 0xF);
        let index = (warehouse.checked_sub(1)? * 10).checked_add(district.checked_sub(1)?)?;
        let fits = district <= u64::from(DISTRICTS);
        self.districts.get_mut(usize::try_from(index).ok()?).filter(|_| fits)
    }

    fn order(&mut self, code: u64, order: u64) -> Option<&mut OrderFacts> {
        self.district(code)?.orders.get_mut(order as usize).filter(|order| order.exists)
    }

    fn customer(&mut self, code: u64, customer: u32) -> Option<&mut CustomerFacts> {
        self.district(code)?.customers.get_mut(customer as usize)
    }

    fn count_sites(&mut self, view: &dyn View, complaints: &mut Complaints) {
        each_row(view, WAREHOUSES, complaints, |key, row: &Site| {
            let warehouse = self.warehouses.get_mut(key.wrapping_sub(1) as usize)?;
            warehouse.ytd = row.ytd.get();
            Some(())
        });
        each_row(view, DISTRICT, complaints, |key, row: &Site| {
            self.district(key)?.ytd = row.ytd.get();
            Some(())
        });
    }

    fn count_orders(&mut self, view: &dyn View, complaints: &mut Complaints) {
        each_row(view, ORDERS, complaints, |key, row: &Order| {
            let (code, number, customer) = (key >> 32, key & 0xFFFF_FFFF, row.customer.get());
            self.by_customer.wanted.add(&order_by_customer_key(
                code as u32,
                customer,
                number as u32,
            ));
            let district = self.district(code)?;
            district.order_count += 1;
            district.order_max = district.order_max.max(number);
            district.line_count_told += u64::from(row.line_count);
            if number >= district.next_order + STRAY_ORDERS_MAX {
                return None;
            }
            if district.orders.len() <= number as usize {
                district.orders.resize(number as usize + 1, OrderFacts::default());
            }
            district.orders[number as usize] = OrderFacts {
                customer,
                exists: true,
                has_carrier: row.carrier != 0,
                line_count: row.line_count,
                ..OrderFacts::default()
            };
            district.customers.get(customer as usize).map(|_| ())
        });
    }

    fn count_new_orders(&mut self, view: &dyn View, complaints: &mut Complaints) {
        each_row(view, NEW_ORDERS, complaints, |key, _: &[u8; 4]| {
            let (code, number) = (key >> 32, key & 0xFFFF_FFFF);
            let district = self.district(code)?;
            let first = district.new_order_count == 0;
            district.new_order_min =
                if first { number } else { district.new_order_min.min(number) };
            district.new_order_max = district.new_order_max.max(number);
            district.new_order_count += 1;
            self.order(code, number)?.is_new = true;
            Some(())
        });
    }

    fn count_lines(&mut self, view: &dyn View, complaints: &mut Complaints) {
        each_row(view, ORDER_LINES, complaints, |key, row: &OrderLine| {
            let (code, number) = (key >> 40, key >> 8 & 0xFFFF_FFFF);
            self.district(code)?.line_count += 1;
            let delivered = row.delivery_date.get() != 0;
            let order = self.order(code, number)?;
            order.lines += 1;
            order.lines_delivered += u16::from(delivered);
            let customer = order.customer;
            if delivered {
                self.customer(code, customer)?.delivered += i64::from(row.amount.get());
            }
            Some(())
        });
    }

    fn count_history(&mut self, view: &dyn View, complaints: &mut Complaints) {
        each_row(view, HISTORY, complaints, |_, row: &History| {
            let amount = i64::from(row.amount.get());
            self.district(u64::from(row.district.get()))?.paid += amount;
            let code = u64::from(row.customer_district.get());
            self.customer(code, row.customer.get())?.paid += amount;
            Some(())
        });
    }

    fn count_customers(&mut self, view: &dyn View, complaints: &mut Complaints) {
        each_row(view, CUSTOMERS, complaints, |key, row: &Customer| {
            let (code, number) = (key >> 32, key as u32);
            self.by_name.wanted.add(&name_key(code as u32, &row.last, &row.first, number));
            self.district(code)?.deliveries += u64::from(row.account.delivery_count.get());
            let customer = self.customer(code, number)?;
            customer.exists = true;
            customer.balance = row.account.balance.get();
            customer.ytd_payment = row.account.ytd_payment.get();
            Some(())
        });
    }

    fn count_stock(&mut self, view: &dyn View, complaints: &mut Complaints) {
        each_row(view, STOCK, complaints, |key, row: &Stock| {
            let warehouse = self.warehouses.get_mut((key >> 32).wrapping_sub(1) as usize)?;
            warehouse.stock_ytd += row.level.ytd.get();
            warehouse.stock_orders += u64::from(row.level.order_count.get());
            warehouse.stock_rows += 1;
            Some(())
        });
    }
}

/// Visits the rows of a table with an 8-byte key. Complains about those that cannot be read, and
/// those for which `each` finds no owner.
fn each_row<R: Row>(
    view: &dyn View,
    table: TableId,
    complaints: &mut Complaints,
    mut each: impl FnMut(u64, &R) -> Option<()>,
) {
    view.for_each(table, &mut |key, value| {
        let (Ok(number), Ok(row)) = (<[u8; 8]>::try_from(key), R::ref_from_bytes(value)) else {
            complaints.add("unreadable row", || format!("table {}, key {key:x?}", table.0));
            return;
        };
        if each(u64::from_be_bytes(number), row).is_none() {
            complaints.add("stray row", || format!("table {}, key {key:x?}", table.0));
        }
    });
}
