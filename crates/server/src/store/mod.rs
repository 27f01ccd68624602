//! Statements on the library: plans and their parameters are calls, and queries read beside them.

mod connection;
mod open;
mod options;
mod pending;
mod pool;
mod statement;

pub use connection::Connection;
pub use nvcaracal::DeviceSpec;
pub use open::Store;
pub use options::{OpenError, StoreOptions};
pub use pending::{Answer, Pending};
pub use sql::bind::OutputColumn;
pub use sql::parse::Control;
pub use statement::{Parsed, Statement};
