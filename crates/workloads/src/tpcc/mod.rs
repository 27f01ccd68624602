//! TPC-C: NewOrder 45 %, Payment 43 %, Delivery, OrderStatus and StockLevel 4 % each.
//!
//! [`Mix::Paper`] is what Caracal and NVCaracal run (CA 5.4, NV 6.2.3): Payment and OrderStatus
//! take the customer's id, no NewOrder is rolled back. [`Mix::Full`] adds what the specification
//! asks for beyond: 60 % of customers by last name through a secondary index, and 1 % of NewOrders
//! that name an unused item.
//!
//! In both mixes, and unlike in the papers:
//!
//! * Order ids come from a sequence per district and are dense and deterministic. The sequence is
//!   `D_NEXT_O_ID`; the district row has no such column.
//! * All columns of all nine tables are there, C_DATA and S_DIST_xx too, and NewOrder reads the
//!   warehouse, the district and the customer that the papers' implementations leave out. Payment
//!   writes HISTORY.
//! * Data and input follow the specification: NURand with its constants for loading and running,
//!   last names of syllables, 15 % remote payments, 1 % remote lines. Two things do not: the items
//!   of an order differ from each other, so that no line depends on another; and a warehouse is
//!   chosen anew for each call, because there are no terminals, no think time and no limit on the
//!   throughput of a warehouse.
//! * Delivery finds its orders without reconnaissance that could fail; the module `delivery` says
//!   how.
//!
//! With `commit_points`, off unless asked for, NewOrder, Payment and Delivery have a commit point
//! behind their last check (early write visibility, NV 3.1.2).
//!
//! With `pieces`, off unless asked for, NewOrder, Payment and Delivery are cut into pieces (CA 5.4;
//! the module `pieces` says how), which an engine may run apart from their transactions.
//!
//! The check is clause 3.3.2, conditions 1 to 12, and the answers: every committed order, payment
//! and delivery that was answered is there, and nothing else.

mod census;
mod check;
mod customer;
mod delivery;
mod generate;
mod load;
mod new_order;
mod order_status;
mod payment;
mod pieces;
pub mod schema;
mod settings;
mod stock_level;
mod text;

use crate::api::{
    Observer, ProcedureId, Register, StreamEpoch, TableId, TableSpec, View, Workload,
};
use crate::common::SettingsError;
pub use settings::{Mix, TpccSettings};
use text::Constants;

/// The five transactions in the order of their numbers, with or without commit points.
fn register<R: Register, const EARLY: bool>(to: &mut R) {
    to.procedure::<new_order::NewOrder<EARLY>>();
    to.procedure::<payment::Payment<EARLY>>();
    to.procedure::<order_status::OrderStatus>();
    to.procedure::<delivery::Delivery<EARLY>>();
    to.procedure::<stock_level::StockLevel>();
}

/// The same, cut into pieces.
fn register_pieces<R: Register, const EARLY: bool>(to: &mut R) {
    to.procedure::<pieces::NewOrder<EARLY>>();
    to.procedure::<pieces::Payment<EARLY>>();
    to.procedure::<order_status::OrderStatus>();
    to.procedure::<pieces::Delivery<EARLY>>();
    to.procedure::<stock_level::StockLevel>();
}

/// The TPC-C workload.
#[derive(Debug, Clone)]
pub struct Tpcc {
    settings: TpccSettings,
    constants: Constants,
}

impl Tpcc {
    /// A workload with these settings.
    ///
    /// # Errors
    /// Settings out of range.
    pub fn new(settings: TpccSettings) -> Result<Self, SettingsError> {
        settings.validate()?;
        let constants = Constants::new(settings.seed);
        Ok(Self { settings, constants })
    }

    /// The settings it was made with.
    #[must_use]
    pub fn settings(&self) -> &TpccSettings {
        &self.settings
    }
}

impl Workload for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn tables(&self) -> Vec<TableSpec> {
        schema::tables()
    }

    fn inserts(&self, transactions: u64) -> Vec<(TableId, u64)> {
        // 45 % new orders of 10 lines, 43 % payments, 4 % deliveries, and a little more.
        let of = |table, per_thousand: u64| (table, transactions * per_thousand / 1000 + 1000);
        vec![
            of(schema::ORDERS, 460),
            of(schema::ORDERS_BY_CUSTOMER, 460),
            of(schema::NEW_ORDERS, 460),
            of(schema::ORDER_LINES, 4600),
            of(schema::HISTORY, 440),
            of(schema::DELIVERIES, 45),
        ]
    }

    fn register<R: Register>(&self, to: &mut R) {
        match (self.settings.commit_points, self.settings.pieces) {
            (false, false) => register::<R, false>(to),
            (true, false) => register::<R, true>(to),
            (false, true) => register_pieces::<R, false>(to),
            (true, true) => register_pieces::<R, true>(to),
        }
        to.procedure::<load::LoadItems>();
        to.procedure::<load::LoadWarehouse>();
        to.procedure::<load::LoadStock>();
        to.procedure::<load::LoadCustomers>();
        to.procedure::<load::LoadOrders>();
    }

    fn load_count(&self) -> u64 {
        load::count(&self.settings)
    }

    fn load(&self, i: u64, args: &mut Vec<u8>) -> ProcedureId {
        load::arguments(&self.settings, i, args)
    }

    fn generate(&self, epoch: StreamEpoch, position: u64, args: &mut Vec<u8>) -> ProcedureId {
        generate::generate(self, epoch, position, args)
    }

    /// The warehouse; the district, if there is one warehouse only (CA 5.4).
    fn home(&self, table: TableId, key: &[u8]) -> u64 {
        let district = schema::district_of(table, key);
        if self.settings.warehouses == 1 { district } else { district >> 4 }
    }

    fn observer(&self, view: &dyn View) -> Box<dyn Observer> {
        Box::new(check::TpccObserver::new(&self.settings, view))
    }
}
