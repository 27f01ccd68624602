//! What calls contend for: the rows, and how workers wait for a version that another one writes.

pub(crate) mod rows;
pub(crate) mod waits;
