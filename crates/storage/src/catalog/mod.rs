//! The catalog: which tables there are, and what is known of each.
//!
//! There are two copies. The checkpoint names a generation, and the copy of that generation counts.
//! A change writes the other copy as a whole and makes it durable; the next checkpoint record
//! switches over, together with everything else that belongs to the change (O-91). So there is no
//! moment at which half of a change can be seen.

mod definition;

mod change;
mod stored;

pub use change::{CatalogChange, CatalogRequest, TableRequest, TypesMark};
pub use definition::{IndexKind, TableDefinition};

pub(crate) use change::StoreOf;
pub(crate) use definition::{UNUSED, definition};
pub(crate) use stored::{count_reads, read, write};

#[cfg(test)]
mod tests;
