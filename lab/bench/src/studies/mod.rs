//! Studies of the engine and of devices.

pub mod ablation;
mod ablation_table;
pub mod device_speed;

pub use ablation_table::render as render_ablation;
