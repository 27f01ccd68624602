//! The consistency conditions 1 to 12 of clause 3.3.2, and the answers against the state.
//!
//! Condition 11 is written for the initial data in the specification (2,100 orders more than new
//! orders); here the initially delivered orders and `C_DELIVERY_CNT` together make up the
//! difference, which is the same at the start and stays true.

use crate::api::{Answer, Observer, ProcedureId, View};
use crate::common::{Complaints, named};
use crate::tpcc::census::{Census, DistrictFacts};
use crate::tpcc::load::initially_delivered;
use crate::tpcc::new_order;
use crate::tpcc::payment::PaymentArgs;
use crate::tpcc::schema::{DISTRICTS, district_code};
use crate::tpcc::settings::{DELIVERY, NEW_ORDER, PAYMENT, TpccSettings};

const PER_WAREHOUSE: usize = DISTRICTS as usize;

/// What the answers say must be in the state.
#[derive(Default, Clone, Copy)]
struct DistrictAnswers {
    orders: u64,
    deliveries: u64,
    ytd: i64,
}

/// What the answers say must be in a warehouse's stock.
#[derive(Default, Clone, Copy)]
struct StockAnswers {
    ytd: u64,
    orders: u64,
}

/// Sums up answers from a starting state on.
pub(crate) struct TpccObserver {
    settings: TpccSettings,
    districts: Vec<DistrictAnswers>,
    stock: Vec<StockAnswers>,
}

impl TpccObserver {
    pub(crate) fn new(settings: &TpccSettings, view: &dyn View) -> Self {
        let census = Census::take(settings, view, &mut Complaints::default());
        let districts = census.districts.iter().map(|district| DistrictAnswers {
            orders: district.order_count,
            deliveries: district.deliveries,
            ytd: district.ytd,
        });
        let stock = census.warehouses.iter().map(|warehouse| StockAnswers {
            ytd: warehouse.stock_ytd,
            orders: warehouse.stock_orders,
        });
        Self { districts: districts.collect(), stock: stock.collect(), settings: settings.clone() }
    }

    fn district(&mut self, code: u32) -> Option<&mut DistrictAnswers> {
        let warehouse = (code >> 4).checked_sub(1)? as usize;
        self.districts.get_mut(warehouse * PER_WAREHOUSE + (code & 0xF).checked_sub(1)? as usize)
    }

    fn saw_order(&mut self, args: &[u8]) -> Option<()> {
        let (header, lines) = new_order::parse(args).ok()?;
        self.district(header.district_code())?.orders += 1;
        for line in lines {
            let warehouse = line.supply_warehouse.get().checked_sub(1)?;
            let stock = self.stock.get_mut(warehouse as usize)?;
            stock.orders += 1;
            stock.ytd += u64::from(line.quantity);
        }
        Some(())
    }

    fn saw_payment(&mut self, args: &[u8]) -> Option<()> {
        let payment = PaymentArgs::parse(args).ok()?;
        self.district(payment.district_code())?.ytd += i64::from(payment.amount.get());
        Some(())
    }

    fn saw_delivery(&mut self, args: &[u8], output: &[u8]) -> Option<()> {
        let warehouse = crate::tpcc::delivery::DeliveryArgs::parse(args).ok()?.warehouse.get();
        for (district, order) in (1..=DISTRICTS).zip(output.chunks_exact(4)) {
            if order != [0; 4] {
                self.district(district_code(warehouse, district))?.deliveries += 1;
            }
        }
        Some(())
    }
}

impl Observer for TpccObserver {
    fn observe(&mut self, procedure: ProcedureId, args: &[u8], answer: Answer<'_>) {
        let Answer::Committed(output) = answer else { return };
        let seen = match procedure {
            NEW_ORDER => self.saw_order(args),
            PAYMENT => self.saw_payment(args),
            DELIVERY => self.saw_delivery(args, output),
            _ => Some(()),
        };
        // Arguments that name nothing in the data set cannot have been committed; if they were, the
        // state has more than the answers, and the check says so.
        let _ = seen;
    }

    fn check(&self, view: &dyn View) -> Vec<String> {
        let mut complaints = Complaints::default();
        let census = Census::take(&self.settings, view, &mut complaints);
        let delivered = initially_delivered(self.settings.customers_per_district);
        check_warehouses(&census, &mut complaints);
        for district in &census.districts {
            check_order_ids(district, &mut complaints);
            check_counts(district, u64::from(delivered), &mut complaints);
            check_orders(district, &mut complaints);
            check_customers(district, &mut complaints);
        }
        check_indexes(&census, &mut complaints);
        self.check_answers(&census, &mut complaints);
        complaints.into_lines()
    }
}

impl TpccObserver {
    fn check_answers(&self, census: &Census, complaints: &mut Complaints) {
        for (facts, answered) in census.districts.iter().zip(&self.districts) {
            let place = || place(facts);
            let found = named("found", facts.order_count);
            complaints.equal("orders", found, named("answered", answered.orders), place);
            let found = named("found", facts.deliveries);
            complaints.equal("deliveries", found, named("answered", answered.deliveries), place);
            let found = named("found", facts.ytd);
            complaints.equal("payments", found, named("answered", answered.ytd), place);
        }
        for (i, (facts, answered)) in census.warehouses.iter().zip(&self.stock).enumerate() {
            let place = || format!("warehouse {}", i + 1);
            let found = named("sum(S_YTD)", facts.stock_ytd);
            complaints.equal("stock", found, named("answered", answered.ytd), place);
            let found = named("sum(S_ORDER_CNT)", facts.stock_orders);
            complaints.equal("stock", found, named("answered", answered.orders), place);
            let items = named("items", u64::from(self.settings.items));
            complaints.equal("stock", named("rows", facts.stock_rows), items, place);
        }
    }
}

fn place(district: &DistrictFacts) -> String {
    format!("warehouse {} district {}", district.code >> 4, district.code & 0xF)
}

/// Conditions 1, 8 and 9: what warehouses and districts have earned.
fn check_warehouses(census: &Census, complaints: &mut Complaints) {
    let districts = census.districts.chunks(PER_WAREHOUSE);
    for (i, (warehouse, districts)) in census.warehouses.iter().zip(districts).enumerate() {
        let here = || format!("warehouse {}", i + 1);
        let ytd = named("W_YTD", warehouse.ytd);
        let sum = districts.iter().map(|district| district.ytd).sum();
        complaints.equal("condition 1", ytd, named("sum(D_YTD)", sum), here);
        let sum = districts.iter().map(|district| district.paid).sum();
        complaints.equal("condition 8", ytd, named("sum(H_AMOUNT)", sum), here);
        for district in districts {
            let (ytd, paid) = (named("D_YTD", district.ytd), named("sum(H_AMOUNT)", district.paid));
            complaints.equal("condition 9", ytd, paid, || place(district));
        }
    }
}

/// Conditions 2 and 3: order ids are dense.
fn check_order_ids(district: &DistrictFacts, complaints: &mut Complaints) {
    let here = || place(district);
    let last = named("D_NEXT_O_ID - 1", district.next_order - 1);
    complaints.equal("condition 2", last, named("max(O_ID)", district.order_max), here);
    if district.new_order_count == 0 {
        return;
    }
    complaints.equal("condition 2", last, named("max(NO_O_ID)", district.new_order_max), here);
    let span = district.new_order_max + 1 - district.new_order_min;
    let count = named("count(NEW-ORDER)", district.new_order_count);
    complaints.equal("condition 3", named("max(NO_O_ID) - min(NO_O_ID) + 1", span), count, here);
}

/// Conditions 4 and 11: counts of lines, of orders, and of deliveries.
fn check_counts(district: &DistrictFacts, delivered_before: u64, complaints: &mut Complaints) {
    let here = || place(district);
    let told = named("sum(O_OL_CNT)", district.line_count_told);
    complaints.equal("condition 4", told, named("count(ORDER-LINE)", district.line_count), here);
    let orders = i128::from(district.order_count) - i128::from(district.new_order_count);
    let deliveries = i128::from(delivered_before) + i128::from(district.deliveries);
    complaints.equal(
        "condition 11",
        named("count(ORDER) - count(NEW-ORDER)", orders),
        named("initially delivered + sum(C_DELIVERY_CNT)", deliveries),
        here,
    );
}

/// Conditions 5, 6 and 7: each order with its lines and its NEW-ORDER row.
fn check_orders(district: &DistrictFacts, complaints: &mut Complaints) {
    for (number, order) in district.orders.iter().enumerate().filter(|(_, order)| order.exists) {
        let here = || format!("{} order {number}", place(district));
        let (null, is_new) = (!order.has_carrier, order.is_new);
        complaints.equal(
            "condition 5",
            named("O_CARRIER_ID is null", null),
            named("in NEW-ORDER", is_new),
            here,
        );
        let told = named("O_OL_CNT", u16::from(order.line_count));
        complaints.equal("condition 6", told, named("count(ORDER-LINE)", order.lines), here);
        let delivered = if order.has_carrier { order.lines } else { 0 };
        let found = named("lines with OL_DELIVERY_D", order.lines_delivered);
        let wanted = named("lines that must have one", delivered);
        complaints.equal("condition 7", found, wanted, here);
    }
}

/// Conditions 10 and 12: what customers owe and have paid.
fn check_customers(district: &DistrictFacts, complaints: &mut Complaints) {
    for (number, customer) in district.customers.iter().enumerate().skip(1) {
        let here = || format!("{} customer {number}", place(district));
        if !customer.exists {
            complaints.add("missing customer", here);
            continue;
        }
        let owes = customer.delivered - customer.paid;
        complaints.equal(
            "condition 10",
            named("C_BALANCE", customer.balance),
            named("sum(OL_AMOUNT) - sum(H_AMOUNT)", owes),
            here,
        );
        complaints.equal(
            "condition 12",
            named("C_BALANCE + C_YTD_PAYMENT", customer.balance + customer.ytd_payment),
            named("sum(OL_AMOUNT)", customer.delivered),
            here,
        );
    }
}

/// The secondary indexes hold exactly what their tables call for.
fn check_indexes(census: &Census, complaints: &mut Complaints) {
    let indexes =
        [("customer_by_name", &census.by_name), ("order_by_customer", &census.by_customer)];
    for (name, index) in indexes {
        if index.wanted != index.found {
            complaints.add("index", || {
                let (found, wanted) = (index.found.rows, index.wanted.rows);
                format!("{name} has {found} rows and not the {wanted} that its table calls for")
            });
        }
    }
}
