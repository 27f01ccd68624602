//! What came of a run of the engine, for scripts and for people.

mod engine;
mod head;
mod table;
mod versions;

pub use engine::Report;
pub use head::Head;
pub(crate) use head::Ran;
pub use table::{render, render_details};
pub(crate) use versions::Versions;
