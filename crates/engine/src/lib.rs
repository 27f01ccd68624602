//! Epochs: ordering, versions, cache, indexes, recovery. What is rebuilt after a crash is here;
//! what survives one is in `storage`.
//!
//! [`Engine::run_epoch`] takes a batch of calls in serial order and returns their answers; how, is
//! in `epoch/`, one file for each phase. This crate reads no clock, no randomness and no
//! environment: the same image and the same calls give the same state and the same answers, for any
//! number of workers.

#![deny(unsafe_code)]

mod append_method;
mod before_images;
mod calls;
mod claimed_calls;
mod config;
mod contention;
mod core;
mod deaths;
mod declare;
mod definitions;
mod demand;
mod design;
mod engine;
mod epoch;
mod error;
#[expect(unsafe_code, reason = "indexes read without locks: the rule of phases makes it sound")]
pub mod index;
#[cfg(all(debug_assertions, not(any(test, feature = "loom", feature = "shuttle"))))]
mod instances;
mod local;
mod logged;
#[cfg(all(test, feature = "loom"))]
mod models;
mod overlay;
mod panics;
mod piece;
mod prefetch_policy;
mod procedure;
mod program;
mod reads;
mod recovery;
mod replay;
mod schema;
mod secondary;
mod snapshot;
mod stats;
mod table;
mod transaction;
#[expect(unsafe_code, reason = "versions are shared between workers by the rule of phases")]
mod version;
mod waits;
mod watch;
mod worker;
mod workers;

pub use append_method::AppendMethod;
pub use calls::{ARGUMENT_BYTES_MAX, Abort, Answer, Calls, EpochInfo, EpochOutcome};
pub use config::EngineConfig;
pub use contention::ContendedRow;
pub use declare::{Sequences, WriteSet};
pub use definitions::{Definitions, TableSchema};
pub use design::{CachePolicy, Design};
pub use engine::Engine;
pub use error::{EngineError, Result};
pub use logged::{LoggedCall, logged_calls};
pub use panics::{PanicText, caught, text_of};
pub use piece::Piece;
pub use procedure::{
    BodyFn, FinishFn, PieceFn, PieceFunctions, Procedure, ProcedureDefinition, ProcedureTable,
    SequencesFn, Steps, WriteSetFn,
};
pub use program::{IndexInWords, indexes_in_words, logged_procedures, types_in_words};
pub use reads::Visit;
pub use secondary::{IndexDefinition, IndexKeyFn};
pub use snapshot::{HASH_PARTS, ScanPart};
pub use stats::{EpochStats, HashCheck, MemoryUse, Phase, PhaseStats, RecoveryReport, WorkCounts};
pub use transaction::{Stop, Transaction};
pub use version::WORKERS_MAX;
pub use watch::{Moment, Watch, Watcher};
