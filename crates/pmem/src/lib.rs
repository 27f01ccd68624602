//! Devices for persistent memory: where the database keeps its bytes, and what makes them durable.
//!
//! Every device offers the same interface, [`Device`]: a byte-addressed **image**, a **log** space,
//! and the verbs that make stores durable (flush, fence, snapshot, sync). The storage
//! and the engine are compiled once, for [`AnyDevice`], which hides the type: a store to it is a
//! branch and a store.
//!
//! | device | what it is | durable |
//! |---|---|---|
//! | [`Dram`] | memory, no flushing: the floor for comparisons | no |
//! | [`Emulated`] | memory with real flushes and the time of persistent memory added | no |
//! | [`Dax`] | a file on persistent memory, mapped so that a flush makes data durable | yes |
//! | [`File`] | an ordinary file system: memory, saved atomically; a synced log | yes |
//! | [`Crash`] | memory that knows what could be left after a power cut | simulated |
//! | [`Traced`] | the same, as a recording that is looked at later | simulated |
//!
//! This crate must never know what the bytes mean: no rows, no versions, no epochs. (A snapshot
//! has a number, which is the epoch of the caller, but nothing here depends on its value.)
//!
//! Unsafe code is allowed here. Two rules make it sound: a range is *mapped* as long as its
//! [`Mapping`] lives and its base never moves; and a range is *owned by the caller in the current
//! phase* when it is stored to (see [`Device`]).
#![deny(clippy::undocumented_unsafe_blocks)]

mod epoch_number;
mod failure;
mod units;

pub mod sync;

mod memory;
mod system;

mod cpu;

mod side_files;

mod device;

mod crash;
mod dax;
mod delayed;
mod dram;
mod emulated;
mod file;

mod measure;
mod spec;

pub use cpu::{prefetch, prefetch_to_write};
pub use crash::{
    Adversary, AllNewest, AllOldest, Contents, Crash, Event, EventKind, Killed, Left, Numbered,
    OneLineEarly, OneLineLate, Random, Replay, SpaceKind, Trace, Traced, UndurableLine,
};
pub use dax::Dax;
pub use delayed::Delayed;
pub use device::{
    AnyDevice, BringsPages, Counters, Description, Device, FileUse, LineCount, Loads, LogSpace,
    MARK_BYTES, Needed, NotesOfStores, PageUse, Port, PortState, Shortcuts,
};
pub use dram::Dram;
pub use emulated::{Emulated, Profile};
pub use epoch_number::EpochNumber;
pub use failure::DeviceError;
pub use file::{
    Compacted, DiskCall, DiskFile, DiskHook, DiskOperation, File, FileOptions, Outcome,
    PinnedSnapshot, Replaced, UnfinishedCopy, check_outside, compact, memory_can_be_limited,
    on_lost_page,
};
pub use measure::{MeasuringArea, memory_speed};
pub use memory::{Mapping, PAGE_BYTES, small_pages_only};
pub use side_files::{LoadMark, Opening, Openings, REPLAY_WORDS, ReplayMarks};
pub use spec::{DeviceSpec, SpecError};
pub use system::{Process, Stack, stack_bytes_with};
#[doc(hidden)]
pub use system::{
    control_group, freed_bytes, give_back_freed, in_fork, keep_little_freed, private,
    shut_file_system_down,
};
pub use units::{BLOCK_BYTES, LINE_BYTES, Line};
