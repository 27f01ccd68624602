//! Before a run: which workload it is, and where its store is.

mod devices;
mod fail_point;
mod job;
mod manifest;
mod parameters;
mod place;

pub use devices::{
    IMAGE_LIMIT_BYTES_DEFAULT, LOG_LIMIT_BYTES_DEFAULT, Limits, open_device, spec_of_path,
};
pub use fail_point::FailPoint;
pub use job::{Job, OneOf, WorkloadVisitor};
pub use manifest::Maker;
pub use parameters::{Contention, Mix, Parameters, WorkloadParameters};
pub(crate) use place::BESIDE;
pub use place::{Place, forgets, is_in_memory, maker_of, stored_parameters};
