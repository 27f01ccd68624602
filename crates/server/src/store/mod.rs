//! Statements on the library: plans and their parameters are calls, and queries read beside them.

mod block;
mod cache;
mod call;
mod checkpoint;
mod claims;
mod connection;
mod copy_in;
mod copy_out;
mod define;
mod failure;
mod held;
mod interrupt;
mod load;
mod moved;
mod open;
mod options;
mod panics;
mod pending;
mod pipeline;
mod pool;
mod procedure;
mod rows;
mod shared;
mod slices;
mod spaces;
mod statement;
mod turns;

pub use block::{BlockOperation, Modes, Results};
pub use connection::Connection;
pub(crate) use connection::Ender;
pub use copy_in::CopyIn;
pub use copy_out::CopyOut;
pub use interrupt::Cause;
pub use nvcaracal::{DeviceSpec, Tuning};
pub use open::{Store, StoredRow};
pub use options::{OpenError, StoreOptions};
pub(crate) use panics::caught_in;
#[cfg(test)]
pub(crate) use panics::{Place, planted};
pub use pending::{Answer, Pending};
pub use spaces::TABLE_PREFIX;
pub use sql::bind::{Copy, Direction, OutputColumn};
pub use sql::parse::Control;
pub use statement::{Parsed, Statement};
