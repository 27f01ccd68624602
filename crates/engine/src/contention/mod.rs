//! What calls contend for: the rows, how long workers wait for a version that another one writes,
//! and what they lose so.

pub(crate) mod lost;
pub(crate) mod rows;
pub(crate) mod waits;
