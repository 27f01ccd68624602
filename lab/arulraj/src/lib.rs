//! The six storage engines of Arulraj, Pavlo and Dulloor, "Let's Talk About Storage and Recovery
//! Methods for Non-Volatile Memory Database Systems" (SIGMOD 2015), made from that text alone.
//!
//! | engine | updates | durable by |
//! |---|---|---|
//! | [`Inp`] | in place | a log and checkpoints in files |
//! | [`Cow`] | copies of pages with the tuples in them | a master record in a file |
//! | [`Log`] | new entries in an LSM tree of files | a log in a file |
//! | [`NvmInp`] | in place | a log of pointers, which undoes |
//! | [`NvmCow`] | copies of tuples, and of pages with their addresses | a master record in memory |
//! | [`NvmLog`] | new entries in an LSM tree of MemTables | a log of pointers, which undoes |
//!
//! A database is divided into partitions; each has a device and an engine of its own, and runs its
//! transactions one after the other. There are no locks and no conflicts.

#![deny(unsafe_code)]

mod engines;
mod error;
mod ground;
mod interfaces;
mod options;
mod partition;
mod rival;
mod run;
mod schema;
mod structures;
#[cfg(test)]
mod tests;
mod ycsb;

pub use engines::{Cow, Engine, Inp, Log, NvmCow, NvmInp, NvmLog, Recovery, Visit};
pub use error::{Error, Result};
pub use ground::{
    Area, CacheCounts, CacheShape, Footprint, Ledger, Modelled, Part, Spent, Task, Traffic,
    Written, WrittenLines,
};
pub use interfaces::{Chunks, ChunksReport, Interface, Order, SLOT_BYTES, run_chunks};
pub use options::Options;
pub use partition::Partition;
pub use rival::{AsRival, OneSession};
pub use run::{
    Counts, EngineName, RecoveryCounts, Report, Settings, TpccSize, render, run, share, warehouse,
};
pub use schema::{Changes, Key, Row, Schema, Table};
pub use ycsb::{Mix, Skew, Ycsb, YcsbCalls};
