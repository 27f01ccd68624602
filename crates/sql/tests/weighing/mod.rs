//! What runs, and how it is measured.

pub(crate) mod cases;
pub(crate) mod families;
pub(crate) mod large;
pub(crate) mod measure;
