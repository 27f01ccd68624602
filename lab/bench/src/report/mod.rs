//! What came of a run of the engine, for scripts and for people.

mod cost;
mod engine;
mod head;
mod table;

pub use cost::ByCost;
pub use engine::Report;
pub(crate) use engine::values;
pub use head::Head;
pub(crate) use head::Ran;
pub use table::{render, render_details};
