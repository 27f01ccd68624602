//! The small trait that workloads are written on and engines implement.
//!
//! A procedure is deterministic: same state, same arguments, same result. It declares what it may
//! write before it runs (NV 3.1.1). Keys and values are bytes; integer keys are 8 big-endian bytes,
//! so that byte order is key order. This crate knows no engine: an engine adapts its own
//! transaction type to [`Tx`](crate::Tx).

mod tables;
mod transaction;
mod workload;

pub use tables::{IndexKind, TableId, TableSpec};
pub use transaction::{
    Abort, Allocate, Declare, PieceResult, PieceTx, Procedure, Register, Tx, Visit,
};
pub use workload::{Answer, Observer, ProcedureId, StreamEpoch, View, Workload};
