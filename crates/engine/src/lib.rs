//! Epochs: ordering, versions, cache, indexes, recovery. What is rebuilt after a crash is here;
//! what survives one is in `storage`.
//!
//! [`Engine::run_epoch`] takes a batch of calls in serial order and returns their answers; how, is
//! in `epoch/`, one file for each phase. This crate reads no clock, no randomness and no
//! environment: the same image and the same calls give the same state and the same answers, for any
//! number of workers.

#![deny(unsafe_code)]

mod call;
mod contention;
mod declaration;
mod design;
mod emptied;
mod engine;
mod epoch;
mod error;
#[expect(unsafe_code, reason = "indexes read without locks: the rule of phases makes it sound")]
pub mod index;
mod kept;
mod memory;
#[cfg(all(test, feature = "loom"))]
mod models;
mod program;
mod reads;
mod recovery;
mod secondary;
mod state;
mod stats;
mod table;
mod transaction;
#[expect(unsafe_code, reason = "versions are shared between workers by the rule of phases")]
mod version;
mod worker;
mod worker_id;

pub use call::answers::{Abort, Answer, EpochOutcome};
pub use call::batch::{ARGUMENT_BYTES_MAX, Calls, EpochInfo, SUBMITTERS_MAX};
pub use call::panics::{PanicText, caught, text_of};
pub use contention::rows::ContendedRow;
pub use declaration::PieceResult;
pub use declaration::declare::{Sequences, WriteSet};
pub use design::append_method::AppendMethod;
pub use design::packing::Packing;
pub use design::variants::{CachePolicy, Design, Lab};
pub use engine::Engine;
pub use engine::reader::{ReadOutcome, Reader};
pub use engine::snapshot::{HASH_PARTS, ScanPart};
pub use engine::worker_choice::WorkerChoice;
pub use error::{EngineError, Result};
pub use program::definitions::{
    Body, Definitions, Earlier, Known, LoggedIndex, LoggedSchema, LoggedTable, TableSchema,
};
pub use program::procedure::{
    BodyFn, FinishFn, PieceFn, PieceFunctions, Procedure, ProcedureDefinition, ProcedureTable,
    SequencesFn, Steps, WriteSetFn,
};
pub use program::record::{IndexInWords, indexes_in_words, logged_procedures, types_in_words};
pub use program::remembered::{PastInWords, past_in_words};
pub use reads::Visit;
pub use recovery::kept::check_kept_indexes;
pub use recovery::logged::{LoggedCall, logged_calls};
pub use secondary::{IndexDefinition, IndexKeyFn, IndexKeys};
pub use state::config::EngineConfig;
pub use state::core::Missing;
pub use state::running::{RunningCall, RunningCalls};
pub use state::watch::{Moment, Watch, Watcher};
pub use stats::{
    EpochStats, HashCheck, KeptProcedure, MemoryUse, Phase, PhaseStats, RecoveryReport, WorkCounts,
};
pub use storage::{Change, EpochChanges};
pub use transaction::piece::Piece;
pub use transaction::{Stop, Transaction};
pub use worker_id::WORKERS_MAX;
