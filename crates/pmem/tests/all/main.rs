//! Devices from outside.

mod conformance;
mod crash_model;
mod lock;
mod outlive;
mod replay;
