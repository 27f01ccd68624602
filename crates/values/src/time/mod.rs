//! Dates, points in time and intervals: PostgreSQL's ranges, infinities, input and output, and
//! zones from data that is compiled in. No clock is read here: what is now comes in from outside.

mod civil;
mod date;
mod fields;
mod input;
mod interval;
mod interval_fields;
mod interval_text;
mod justify;
mod lengths;
mod of_day;
mod pieces;
mod read_form;
mod shown;
mod timestamp;
mod units;
mod zone;

pub use civil::Civil;
pub use date::Date;
pub use fields::{Field, truncate, truncate_zoned};
pub use interval::Interval;
pub use interval_fields::IntervalFields;
pub use lengths::{age, bin, divided, field_of, scaled, time_of_day, truncate_interval};
pub use of_day::Time;
pub use read_form::{Read, read_form};
pub use shown::shown;
pub use timestamp::Timestamp;
pub use units::DAY_US;
pub use zone::Zone;
