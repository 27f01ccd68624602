//! YCSB, SmallBank and TPC-C, as in the evaluation of NVCaracal (NV 6.2) and Caracal (CA 5.3, 5.4), on one
//! small trait. Knows no engine.

mod api;

pub use api::{
    Abort, Answer, Declare, Draw, IndexKind, Observer, Procedure, ProcedureId, Register, TableId,
    TableSpec, Tx, View, Workload,
};
