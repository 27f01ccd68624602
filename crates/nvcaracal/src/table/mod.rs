//! Tables and indexes as programs name them, and what of them a call reads.

pub(crate) mod handle;
pub(crate) mod index;
pub(crate) mod range;
pub(crate) mod raw;
pub(crate) mod rows;
pub(crate) mod schema;
