//! Statements on the library: plans and their parameters are calls, and queries read beside them.

mod block;
mod cache;
mod call;
mod connection;
mod define;
mod failure;
mod open;
mod options;
mod pending;
mod pipeline;
mod pool;
mod procedure;
mod rows;
mod shared;
mod spaces;
mod statement;

pub use block::{BlockOperation, Modes, Results};
pub use connection::Connection;
pub use nvcaracal::{DeviceSpec, Tuning};
pub use open::{Store, StoredRow};
pub use options::{OpenError, StoreOptions};
pub use pending::{Answer, Pending};
pub use sql::bind::OutputColumn;
pub use sql::parse::Control;
pub use statement::{Parsed, Statement};
