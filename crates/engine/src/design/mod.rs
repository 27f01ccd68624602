//! The designs that NVCaracal is compared with: what may differ from the engine's own way.

pub(crate) mod append_method;
pub(crate) mod packing;
pub(crate) mod variants;
