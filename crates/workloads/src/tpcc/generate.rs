//! The stream of calls: which transaction, and its input (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1,
//! 2.8.1, 5.2.3).

use zerocopy::IntoBytes;

use crate::api::{ProcedureId, StreamEpoch};
use crate::random::Random;
use crate::tpcc::Tpcc;
use crate::tpcc::customer::Choice;
use crate::tpcc::delivery::DeliveryArgs;
use crate::tpcc::new_order::{Header, Line};
use crate::tpcc::payment::PaymentArgs;
use crate::tpcc::schema::{DISTRICTS, LINES_MAX};
use crate::tpcc::settings::{
    DELIVERY, Mix, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL, TpccSettings,
};
use crate::tpcc::stock_level::StockLevelArgs;
use crate::tpcc::text::{last_name, nurand_a};

/// A call that is being made.
struct Maker<'a> {
    settings: &'a TpccSettings,
    workload: &'a Tpcc,
    random: Random,
    warehouse: u32,
    /// Unique for each call of a run, and growing: date and key of history rows. Below 2^63.
    date: u64,
}

/// Appends the arguments of a call.
pub(crate) fn generate(
    workload: &Tpcc,
    epoch: StreamEpoch,
    position: u64,
    args: &mut Vec<u8>,
) -> ProcedureId {
    let settings = &workload.settings;
    let mut random = Random::new(settings.seed ^ 0x5450_4343, epoch.0, position);
    let kind = random.below(100);
    let warehouse = random.between(1, u64::from(settings.warehouses)) as u32;
    // One more, because a date of 0 means undelivered.
    let date = (((epoch.0 + 1) & 0x7FFF_FFFF) << 32) | (position & 0xFFFF_FFFF);
    let mut maker = Maker { settings, workload, random, warehouse, date };
    match kind {
        0..45 => maker.new_order(args),
        45..88 => maker.payment(args),
        88..92 => maker.order_status(args),
        92..96 => maker.delivery(args),
        _ => maker.stock_level(args),
    }
}

impl Maker<'_> {
    fn district(&mut self) -> u8 {
        self.random.between(1, u64::from(DISTRICTS)) as u8
    }

    fn customer(&mut self) -> u32 {
        let count = self.settings.customers_per_district;
        let a = nurand_a(count, 1023);
        self.random.nurand(a, self.workload.constants.customer, 1, u64::from(count)) as u32
    }

    fn item(&mut self) -> u32 {
        let count = self.settings.items;
        let a = nurand_a(count, 8191);
        self.random.nurand(a, self.workload.constants.item, 1, u64::from(count)) as u32
    }

    fn other_warehouse(&mut self) -> u32 {
        let other = self.random.between(1, u64::from(self.settings.warehouses) - 1) as u32;
        if other < self.warehouse { other } else { other + 1 }
    }

    /// A customer of a district: by last name in 60 of 100 cases of the full mix. A small data set
    /// holds the first names only, one customer each.
    fn choice(&mut self, warehouse: u32, district: u8) -> Choice {
        let by_name = self.settings.mix == Mix::Full && self.random.percent(60);
        let (customer, last) = if by_name {
            let names = u64::from(self.settings.customers_per_district.min(1_000));
            let c = self.workload.constants.last_run;
            let number = self.random.nurand(255, c, 0, names - 1) as u32;
            (0, last_name(number))
        } else {
            (self.customer(), [0; 16])
        };
        Choice { warehouse: warehouse.into(), district, customer: customer.into(), last }
    }

    fn new_order(&mut self, args: &mut Vec<u8>) -> ProcedureId {
        let full = self.settings.mix == Mix::Full;
        let header = Header {
            date: self.date.into(),
            warehouse: self.warehouse.into(),
            customer: self.customer().into(),
            first_order: self.settings.first_order().into(),
            district: self.district(),
            check_items: u8::from(full),
        };
        args.extend_from_slice(header.as_bytes());
        let count = self.random.between(5, u64::from(LINES_MAX)) as usize;
        let rolled_back = full && self.random.percent(1);
        let mut items = [0_u32; LINES_MAX as usize];
        for i in 0..count {
            items[i] = loop {
                let item = self.item();
                if !items[..i].contains(&item) {
                    break item;
                }
            };
        }
        if rolled_back {
            items[count - 1] = self.settings.items + 1;
        }
        for item in &items[..count] {
            let remote = self.settings.warehouses > 1 && self.random.percent(1);
            let supply = if remote { self.other_warehouse() } else { self.warehouse };
            let line = Line {
                item: (*item).into(),
                supply_warehouse: supply.into(),
                quantity: self.random.between(1, 10) as u8,
            };
            args.extend_from_slice(line.as_bytes());
        }
        NEW_ORDER
    }

    fn payment(&mut self, args: &mut Vec<u8>) -> ProcedureId {
        let district = self.district();
        let remote = self.settings.warehouses > 1 && self.random.percent(15);
        let customer = if remote {
            let (warehouse, district) = (self.other_warehouse(), self.district());
            self.choice(warehouse, district)
        } else {
            self.choice(self.warehouse, district)
        };
        let payment = PaymentArgs {
            date: self.date.into(),
            warehouse: self.warehouse.into(),
            district,
            amount: (self.random.between(100, 500_000) as u32).into(),
            customer,
        };
        args.extend_from_slice(payment.as_bytes());
        PAYMENT
    }

    fn order_status(&mut self, args: &mut Vec<u8>) -> ProcedureId {
        let district = self.district();
        args.extend_from_slice(self.choice(self.warehouse, district).as_bytes());
        ORDER_STATUS
    }

    fn delivery(&mut self, args: &mut Vec<u8>) -> ProcedureId {
        let delivery = DeliveryArgs {
            date: self.date.into(),
            warehouse: self.warehouse.into(),
            first_order: self.settings.first_order().into(),
            carrier: self.random.between(1, 10) as u8,
        };
        args.extend_from_slice(delivery.as_bytes());
        DELIVERY
    }

    fn stock_level(&mut self, args: &mut Vec<u8>) -> ProcedureId {
        let level = StockLevelArgs {
            first_order: self.settings.first_order().into(),
            warehouse: self.warehouse.into(),
            district: self.district(),
            threshold: (self.random.between(10, 20) as u32).into(),
        };
        args.extend_from_slice(level.as_bytes());
        STOCK_LEVEL
    }
}
