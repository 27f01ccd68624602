//! What the processor offers: flushes and fences, prefetches, and caches that may survive.

mod instructions;
mod persistence_domain;
mod prefetch;

pub use prefetch::{prefetch, prefetch_to_write};

pub(crate) use instructions::Cpu;
pub(crate) use persistence_domain::{REGIONS, caches_survive};
