//! What a TPC-C run looks like, and the numbers of its procedures.

use crate::api::ProcedureId;
use crate::common::{SettingsError, require};

pub(super) const NEW_ORDER: ProcedureId = 0;
pub(super) const PAYMENT: ProcedureId = 1;
pub(super) const ORDER_STATUS: ProcedureId = 2;
pub(super) const DELIVERY: ProcedureId = 3;
pub(super) const STOCK_LEVEL: ProcedureId = 4;

/// How much of the specification is in the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// As in the papers: customers by id, no rolled-back orders.
    Paper,
    /// As in the specification: customers by last name too, 1 % rolled-back orders.
    Full,
}

/// What a TPC-C run looks like. Start from [`TpccSettings::standard`] and change fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TpccSettings {
    /// How many warehouses there are.
    pub warehouses: u32,
    /// How much of the specification is in the calls.
    pub mix: Mix,
    /// How many items there are; 100,000 by the specification. Every warehouse stocks them all.
    pub items: u32,
    /// Customers, and initial orders, of a district; 3,000 by the specification.
    pub customers_per_district: u32,
    /// Whether transactions that write have a commit point behind their last check, from which on
    /// others may see each write at once ([`crate::Tx::commit_point`]). Answers and state are the
    /// same.
    pub commit_points: bool,
    /// Whether NewOrder, Payment and Delivery are cut into pieces, which an engine may split off
    /// where rows are contended (CA 5.4). Answers and state are the same.
    pub pieces: bool,
    /// Names the data and the stream of calls.
    pub seed: u64,
}

impl TpccSettings {
    /// The scale of the specification: about 100 MB a warehouse. The papers use 256 warehouses for
    /// low and one for high contention.
    #[must_use]
    pub fn standard(warehouses: u32, mix: Mix) -> Self {
        Self {
            warehouses,
            mix,
            items: 100_000,
            customers_per_district: 3_000,
            commit_points: false,
            pieces: false,
            seed: 1,
        }
    }

    /// A data set for tests: 1,000 items, 60 customers a district.
    #[must_use]
    pub fn tiny(warehouses: u32, mix: Mix) -> Self {
        Self { items: 1_000, customers_per_district: 60, ..Self::standard(warehouses, mix) }
    }

    /// The id of the first order after the initial ones.
    #[must_use]
    pub fn first_order(&self) -> u32 {
        self.customers_per_district + 1
    }

    pub(super) fn validate(&self) -> Result<(), SettingsError> {
        let number = |name, value: u32, low: u32, high: u32| {
            require((low..=high).contains(&value), || {
                format!("{name} is {value}, allowed are {low} to {high}")
            })
        };
        number("warehouses", self.warehouses, 1, (1 << 20) - 1)?;
        number("items", self.items, 100, 10_000_000)?;
        number("customers_per_district", self.customers_per_district, 10, 4_000)
    }
}
