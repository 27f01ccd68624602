//! A model of an epoch on more cores than a machine has: what throughput would be, and why.
//!
//! It simulates events: tasks of cores, waits for versions and locks, hand-overs of cache lines and
//! of messages, and the memory's bandwidth. What a task costs is measured on this machine with one
//! worker (`costs`), what calls access comes from the workload's own declarations (`shape`), and
//! what an engine does with them is told in `versions`, `partitions` and `locks`. Runs with one and
//! with two workers are held against it, and the difference is part of every result (`run`).
//!
//! It is a model: it knows no caches but who wrote a line last, no hardware threads, no NUMA zones,
//! and no ranges, look-ups or aborts of calls. The same shape and costs give the same result.

mod costs;
mod engines;
mod locks;
mod measure;
mod partitions;
mod run;
mod shape;
mod simulate;
mod versions;

#[cfg(test)]
mod tests;

pub use costs::Costs;
pub use run::{Asked, ModelReport, run};
pub(crate) use shape::{Recorder, Shape};
