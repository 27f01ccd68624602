//! The program that uses the engine: its procedures and tables, and what of them the log and the
//! catalog know, so that another program is recognised (O-65).

pub(crate) mod definitions;
pub(crate) mod earlier;
pub(crate) mod procedure;
pub(crate) mod record;
pub(crate) mod remembered;
pub(crate) mod schema;
