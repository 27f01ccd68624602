//! The workloads on the serial oracle, and the oracle itself.

mod oracle;
mod smallbank;
mod support;
mod tpcc;
mod tpcc_conditions;
mod ycsb;
