//! The file device: captures, power cuts, faults, locks and foreign files.

mod disk;
mod faults;
mod open;
mod power_cut;
mod scenario;
