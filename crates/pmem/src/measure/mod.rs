//! Measuring a machine's memory, and the costs of `emulated` that follow from it.

mod area;

pub mod memory_speed;

mod calibration;

pub use area::MeasuringArea;
