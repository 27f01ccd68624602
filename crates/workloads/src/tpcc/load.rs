//! Loading: the initial data of clause 4.3.3, generated inside the database from a seed in the
//! arguments.
//!
//! A loading transaction inserts at most 300 rows. Every row has a generator of its own, keyed by
//! what it is, so the data do not depend on how they are cut into transactions.

use zerocopy::little_endian::{I32, I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Declare, Procedure, ProcedureId, Tx};
use crate::common::BAD_ARGUMENTS;
use crate::random::{Permutation, Random};
use crate::tpcc::schema::{
    Account, CUSTOMERS, CUSTOMERS_BY_NAME, Customer, DELIVERIES, DISTRICT, DISTRICTS, Delivery,
    HISTORY, History, ITEMS, Item, LINES_MAX, Level, NEW_ORDERS, ORDER_LINES, ORDERS,
    ORDERS_BY_CUSTOMER, Order, OrderLine, STOCK, Site, Stock, WAREHOUSES, customer_key,
    delivery_key, district_code, district_key, initial_history_key, item_key, line_key, name_key,
    order_by_customer_key, order_key, stock_key, warehouse_key,
};
use crate::tpcc::settings::TpccSettings;
use crate::tpcc::text::{Constants, address, data, digits, last_name, text};

/// Number of the first loading procedure; they follow those of the five transactions.
const FIRST: ProcedureId = 5;
const ITEMS_PER_LOAD: u32 = 250;
const CUSTOMERS_PER_LOAD: u32 = 100;
const ORDERS_PER_LOAD: u32 = 16;
const LOADING_DATE: u64 = 1;
/// What each customer has paid before the start.
const INITIAL_PAYMENT: u32 = 1_000;

/// What a generator is for; part of its key.
#[derive(Clone, Copy)]
enum Stream {
    Item = 1,
    Warehouse,
    District,
    Stock,
    Customer,
    Order,
    OrderLines,
    Permutation,
}

fn random(seed: u64, stream: Stream, place: &[u8; 8]) -> Random {
    Random::new(seed, u64::MAX - stream as u64, u64::from_be_bytes(*place))
}

/// The arguments of every loading procedure.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct LoadArgs {
    seed: U64,
    warehouse: U32,
    first: U32,
    count: U32,
    customers: U32,
    items: U32,
    district: u8,
}

impl LoadArgs {
    fn parse(args: &[u8]) -> Result<&Self, Abort> {
        Self::ref_from_bytes(args).map_err(|_| BAD_ARGUMENTS)
    }

    fn numbers(&self) -> std::ops::Range<u32> {
        self.first.get()..self.first.get() + self.count.get()
    }

    fn district(&self) -> u32 {
        district_code(self.warehouse.get(), self.district)
    }
}

/// How many of the initial orders of a district are delivered: 2,100 of 3,000.
pub(crate) fn initially_delivered(orders: u32) -> u32 {
    orders * 7 / 10
}

/// How many loading transactions there are for each part of the data.
struct Parts {
    items: u64,
    customers: u64,
    orders: u64,
}

impl Parts {
    fn new(settings: &TpccSettings) -> Self {
        Self {
            items: u64::from(settings.items.div_ceil(ITEMS_PER_LOAD)),
            customers: u64::from(settings.customers_per_district.div_ceil(CUSTOMERS_PER_LOAD)),
            orders: u64::from(settings.customers_per_district.div_ceil(ORDERS_PER_LOAD)),
        }
    }

    fn per_district(&self) -> u64 {
        self.customers + self.orders
    }

    fn per_warehouse(&self) -> u64 {
        1 + self.items + u64::from(DISTRICTS) * self.per_district()
    }
}

/// How many loading transactions there are.
pub(crate) fn count(settings: &TpccSettings) -> u64 {
    let parts = Parts::new(settings);
    parts.items + u64::from(settings.warehouses) * parts.per_warehouse()
}

/// Appends the arguments of loading transaction `i`.
pub(crate) fn arguments(settings: &TpccSettings, i: u64, args: &mut Vec<u8>) -> ProcedureId {
    let parts = Parts::new(settings);
    let customers = settings.customers_per_district;
    let put = |args: &mut Vec<u8>, warehouse, district, part: u64, size: u32, of: u32| {
        let first = part as u32 * size;
        let count = size.min(of - first);
        let load = LoadArgs {
            seed: settings.seed.into(),
            warehouse: U32::new(warehouse),
            first: (first + 1).into(),
            count: count.into(),
            customers: customers.into(),
            items: settings.items.into(),
            district,
        };
        args.extend_from_slice(load.as_bytes());
    };
    if i < parts.items {
        put(args, 0, 0, i, ITEMS_PER_LOAD, settings.items);
        return FIRST;
    }
    let i = i - parts.items;
    let warehouse = (i / parts.per_warehouse()) as u32 + 1;
    let i = i % parts.per_warehouse();
    if i == 0 {
        put(args, warehouse, 0, 0, 1, 1);
        return FIRST + 1;
    }
    let i = i - 1;
    if i < parts.items {
        put(args, warehouse, 0, i, ITEMS_PER_LOAD, settings.items);
        return FIRST + 2;
    }
    let i = i - parts.items;
    let district = (i / parts.per_district()) as u8 + 1;
    let i = i % parts.per_district();
    if i < parts.customers {
        put(args, warehouse, district, i, CUSTOMERS_PER_LOAD, customers);
        return FIRST + 3;
    }
    put(args, warehouse, district, i - parts.customers, ORDERS_PER_LOAD, customers);
    FIRST + 4
}

/// Inserts a run of items.
pub(crate) enum LoadItems {}

impl Procedure for LoadItems {
    const NAME: &'static str = "tpcc_load_items";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        for item in LoadArgs::parse(args)?.numbers() {
            declare.insert(ITEMS, &item_key(item));
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let load = LoadArgs::parse(args)?;
        for number in load.numbers() {
            let key = item_key(number);
            let random = &mut random(load.seed.get(), Stream::Item, &key);
            let item = Item {
                image: (random.between(1, 10_000) as u32).into(),
                name: text(random, 14),
                price: (random.between(100, 10_000) as u32).into(),
                data: data(random),
            };
            tx.insert(ITEMS, &key, item.as_bytes())?;
        }
        Ok(())
    }
}

/// A warehouse or district that has earned `ytd`.
fn site(random: &mut Random, ytd: i64) -> Site {
    Site {
        name: text(random, 6),
        address: address(random),
        tax: (random.between(0, 2_000) as u32).into(),
        ytd: I64::new(ytd),
    }
}

/// Inserts a warehouse with its districts, and the delivery that was before the first.
pub(crate) enum LoadWarehouse {}

impl Procedure for LoadWarehouse {
    const NAME: &'static str = "tpcc_load_warehouse";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let warehouse = LoadArgs::parse(args)?.warehouse.get();
        declare.insert(WAREHOUSES, &warehouse_key(warehouse));
        declare.insert(DELIVERIES, &delivery_key(warehouse, 0));
        for district in 1..=DISTRICTS {
            declare.insert(DISTRICT, &district_key(district_code(warehouse, district)));
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let load = LoadArgs::parse(args)?;
        let (warehouse, customers) = (load.warehouse.get(), load.customers.get());
        let ytd = i64::from(customers) * i64::from(INITIAL_PAYMENT);
        let seed = load.seed.get();
        let key = warehouse_key(warehouse);
        let row = site(&mut random(seed, Stream::Warehouse, &key), ytd * i64::from(DISTRICTS));
        tx.insert(WAREHOUSES, &key, row.as_bytes())?;
        for district in 1..=DISTRICTS {
            let key = district_key(district_code(warehouse, district));
            let row = site(&mut random(seed, Stream::District, &key), ytd);
            tx.insert(DISTRICT, &key, row.as_bytes())?;
        }
        let delivery = Delivery {
            date: LOADING_DATE.into(),
            carrier: 0,
            delivered: [0.into(); 10],
            next: [(initially_delivered(customers) + 1).into(); 10],
        };
        tx.insert(DELIVERIES, &delivery_key(warehouse, 0), delivery.as_bytes())
    }
}

/// Inserts the stock of a run of items in one warehouse.
pub(crate) enum LoadStock {}

impl Procedure for LoadStock {
    const NAME: &'static str = "tpcc_load_stock";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let load = LoadArgs::parse(args)?;
        for item in load.numbers() {
            declare.insert(STOCK, &stock_key(load.warehouse.get(), item));
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let load = LoadArgs::parse(args)?;
        for item in load.numbers() {
            let key = stock_key(load.warehouse.get(), item);
            let random = &mut random(load.seed.get(), Stream::Stock, &key);
            let level = Level {
                quantity: I32::new(random.between(10, 100) as i32),
                ytd: 0.into(),
                order_count: 0.into(),
                remote_count: 0.into(),
            };
            let stock = Stock {
                level,
                district_info: std::array::from_fn(|_| text(random, 24)),
                data: data(random),
            };
            tx.insert(STOCK, &key, stock.as_bytes())?;
        }
        Ok(())
    }
}

/// Inserts a run of customers of one district, with their index entries and history.
pub(crate) enum LoadCustomers {}

/// The names of a customer, which the write set needs too; allocated first from the customer's
/// generator.
fn names(load: &LoadArgs, customer: u32, random: &mut Random) -> ([u8; 16], [u8; 16]) {
    let number = if customer <= 1_000 {
        customer - 1
    } else {
        random.nurand(255, Constants::new(load.seed.get()).last_load, 0, 999) as u32
    };
    (last_name(number), text(random, 8))
}

impl LoadCustomers {
    fn customer(random: &mut Random, last: [u8; 16], first: [u8; 16]) -> Customer {
        Customer {
            first,
            middle: *b"OE",
            last,
            address: address(random),
            phone: digits(random),
            since: LOADING_DATE.into(),
            credit: if random.percent(10) { *b"BC" } else { *b"GC" },
            credit_limit: I64::new(5_000_000),
            discount: (random.between(0, 5_000) as u32).into(),
            account: Account {
                balance: I64::new(-i64::from(INITIAL_PAYMENT)),
                ytd_payment: I64::new(i64::from(INITIAL_PAYMENT)),
                payment_count: 1.into(),
                delivery_count: 0.into(),
            },
            data: text(random, 300),
        }
    }
}

impl Procedure for LoadCustomers {
    const NAME: &'static str = "tpcc_load_customers";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let load = LoadArgs::parse(args)?;
        let code = load.district();
        for number in load.numbers() {
            let key = customer_key(code, number);
            let random = &mut random(load.seed.get(), Stream::Customer, &key);
            let (last, first) = names(load, number, random);
            declare.insert(CUSTOMERS, &key);
            declare.insert(CUSTOMERS_BY_NAME, &name_key(code, &last, &first, number));
            declare.insert(HISTORY, &initial_history_key(code, number));
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let load = LoadArgs::parse(args)?;
        let code = load.district();
        for number in load.numbers() {
            let key = customer_key(code, number);
            let random = &mut random(load.seed.get(), Stream::Customer, &key);
            let (last, first) = names(load, number, random);
            let customer = Self::customer(random, last, first);
            let history = History {
                customer_district: code.into(),
                customer: number.into(),
                district: code.into(),
                date: LOADING_DATE.into(),
                amount: INITIAL_PAYMENT.into(),
                data: text(random, 12),
            };
            let index_key = name_key(code, &last, &first, number);
            tx.insert(CUSTOMERS, &key, customer.as_bytes())?;
            tx.insert(CUSTOMERS_BY_NAME, &index_key, &number.to_le_bytes())?;
            tx.insert(HISTORY, &initial_history_key(code, number), history.as_bytes())?;
        }
        Ok(())
    }
}

/// Inserts a run of initial orders of one district, with their lines and index entries.
pub(crate) enum LoadOrders {}

/// Customer and number of lines of an initial order, which the write set needs too. Customers are
/// from a random permutation, so that each has one initial order.
fn initial_order(load: &LoadArgs, key: &[u8; 8], order: u32) -> (u32, u8) {
    let seed = load.seed.get();
    let district = district_key(load.district());
    let permutation_seed = random(seed, Stream::Permutation, &district).next_u64();
    let permutation = Permutation::new(u64::from(load.customers.get()), permutation_seed);
    let customer = permutation.apply(u64::from(order - 1)) as u32 + 1;
    let lines = random(seed, Stream::Order, key).between(5, u64::from(LINES_MAX)) as u8;
    (customer, lines)
}

impl Procedure for LoadOrders {
    const NAME: &'static str = "tpcc_load_orders";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let load = LoadArgs::parse(args)?;
        let code = load.district();
        for number in load.numbers() {
            let key = order_key(code, number);
            let (customer, lines) = initial_order(load, &key, number);
            declare.insert(ORDERS, &key);
            declare.insert(ORDERS_BY_CUSTOMER, &order_by_customer_key(code, customer, number));
            if number > initially_delivered(load.customers.get()) {
                declare.insert(NEW_ORDERS, &key);
            }
            for line in 1..=lines {
                declare.insert(ORDER_LINES, &line_key(code, number, line));
            }
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let load = LoadArgs::parse(args)?;
        let code = load.district();
        for number in load.numbers() {
            let key = order_key(code, number);
            let (customer, lines) = initial_order(load, &key, number);
            let delivered = number <= initially_delivered(load.customers.get());
            let random = &mut random(load.seed.get(), Stream::OrderLines, &key);
            let order = Order {
                customer: customer.into(),
                entry_date: LOADING_DATE.into(),
                carrier: if delivered { random.between(1, 10) as u8 } else { 0 },
                line_count: lines,
                all_local: 1,
            };
            let index_key = order_by_customer_key(code, customer, number);
            tx.insert(ORDERS, &key, order.as_bytes())?;
            tx.insert(ORDERS_BY_CUSTOMER, &index_key, &number.to_le_bytes())?;
            if !delivered {
                tx.insert(NEW_ORDERS, &key, &number.to_le_bytes())?;
            }
            for line in 1..=lines {
                let row = Self::line(load, random, delivered);
                tx.insert(ORDER_LINES, &line_key(code, number, line), row.as_bytes())?;
            }
        }
        Ok(())
    }
}

impl LoadOrders {
    fn line(load: &LoadArgs, random: &mut Random, delivered: bool) -> OrderLine {
        let amount = if delivered { 0 } else { random.between(1, 999_999) as u32 };
        OrderLine {
            item: (random.between(1, u64::from(load.items.get())) as u32).into(),
            supply_warehouse: load.warehouse,
            delivery_date: (if delivered { LOADING_DATE } else { 0 }).into(),
            quantity: 5,
            amount: amount.into(),
            district_info: text(random, 24),
        }
    }
}
