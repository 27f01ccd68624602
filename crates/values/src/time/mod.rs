//! Dates and points in time: PostgreSQL's ranges, infinities, input and output, and zones from data
//! that is compiled in. No clock is read here: what is now comes in from outside.

mod civil;
mod date;
mod fields;
mod input;
mod timestamp;
mod units;
mod zone;

pub use civil::Civil;
pub use date::Date;
pub use fields::{Field, truncate};
pub use timestamp::Timestamp;
pub use units::DAY_US;
pub(crate) use units::fraction;
pub use zone::Zone;
