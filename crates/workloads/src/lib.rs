//! YCSB, SmallBank and TPC-C, as in the evaluation of NVCaracal (NV 6.2) and Caracal (CA 5.3, 5.4),
//! on one small trait. Knows no engine.

#![forbid(unsafe_code)]

mod api;
mod common;
pub mod digest;
pub mod oracle;
pub mod random;
pub mod smallbank;
pub mod tpcc;
pub mod ycsb;

pub use api::{
    Abort, Allocate, Answer, Declare, IndexKind, Observer, PieceResult, PieceTx, Procedure,
    ProcedureId, Register, StreamEpoch, TableId, TableSpec, Tx, View, Visit, Workload,
};
pub use common::{SettingsError, code};
