//! PREPARE, EXECUTE and EXPLAIN as text: what the statement within them is, the values that it
//! gets, and how its plan looks to people. What is logged never comes here.

mod columns;
mod execute;
mod explain;
mod shown;

pub use execute::{arguments, parameter_types};
pub use explain::explain;
pub use shown::{Explained, Measured};
