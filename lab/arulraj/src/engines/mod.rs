//! The six engines, and what they have in common.

mod base;
mod cow;
mod engine;
mod inp;
mod log;
mod names;
mod nvm_cow;
mod nvm_inp;
mod nvm_log;

pub use cow::Cow;
pub use engine::{Engine, Recovery, Visit};
pub use inp::Inp;
pub use log::Log;
pub use nvm_cow::NvmCow;
pub use nvm_inp::NvmInp;
pub use nvm_log::NvmLog;
