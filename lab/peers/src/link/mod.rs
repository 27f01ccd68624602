//! The way to the process of a database, and the limit of memory that it has.

mod cgroup;
mod child;

pub(crate) use child::Child;

use crate::order::{Answer, Order};
use crate::peer::Result;

/// A database that takes orders.
pub(crate) trait Link {
    /// Has it do something, and waits until it is done.
    ///
    /// # Errors
    /// What failed there, or that its process has ended.
    fn ask(&mut self, order: &Order) -> Result<Answer>;
}
