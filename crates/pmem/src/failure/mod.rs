//! What can go wrong with a device, and the memory that something did.

mod error;
mod health;

pub use error::DeviceError;
pub(crate) use error::is_no_space;

pub(crate) use health::{Health, lock};
