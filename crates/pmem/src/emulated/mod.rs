//! Memory that behaves like persistent memory: real flushes and fences, plus the time that the
//! slower device would take.
//!
//! The time is added by waiting in the calling thread. What an access costs is collected in the
//! port and paid when it exceeds a microsecond or at a fence, so that the clock is not read for
//! every access. A port owes latency, which is its own affair, and time of the device, which all
//! ports share (`bandwidth`): two threads together get no more than the device's bandwidth. `costs`
//! has the figures of each profile and where they come from.
//!
//! Every read of the image is charged, and of the log at recovery; a line that the same step reads
//! again is in the processor's cache and costs nothing ([`crate::Port::charge_load`]). A step is
//! the execution of a call with its final writes; elsewhere what is done for one row, one key or
//! one group of calls, or a merge of keys. A write costs the blocks of 256 bytes that it touches
//! and that are not in the port's share of the device's buffer (`combining`); what is written to
//! the device is counted ([`crate::Counters::media_bytes_written`]).
//!
//! What this model leaves out, and a report must say: a line may stay in the processor's cache
//! from one step to the next; a processor reads a line that is stored to in part, which is charged
//! only where the program reads it, too, and by `optane-lines` where it is written so; ports do
//! not combine each other's writes; reads of blocks that are in the buffer of writes cost as much
//! as others; a block that is written in part and read for that by the device costs as much as a
//! whole one; a read that has to wait for the one before costs no more than one that does not;
//! and, but for `optane-lines`, reads and writes do not take bandwidth from each other.

mod bandwidth;
mod profile;

mod costs;

mod device;

pub use device::Emulated;
pub use profile::Profile;

pub(crate) use costs::{Access, BlockTime, BlockTimes, Costs};
