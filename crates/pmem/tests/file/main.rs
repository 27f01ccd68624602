//! The file device: snapshots, power cuts, faults, locks and foreign files.

mod beside_stores;
mod copy;
mod directory;
mod disk;
mod faults;
mod give_back;
mod loading;
mod log_writes;
mod marks;
mod open;
mod openings;
mod power_cut;
mod read_only;
mod refused;
mod residency;
mod scenario;
