//! Devices from outside.

mod conformance;
mod crash_model;
mod lock;
mod noted_lines;
mod outlive;
mod replay;
