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
//! What this model leaves out, and a report must say: a line may stay in the processor's cache from
//! one step to the next; a processor reads a line that is stored to in part, which is charged only
//! where the program reads it, too; ports do not combine each other's writes; reads of blocks that
//! are in the buffer of writes cost as much as others; a block that is written in part and read for
//! that by the device costs as much as a whole one; a read that has to wait for the one before
//! costs no more than one that does not; and reads and writes do not take bandwidth from each
//! other.

mod bandwidth;
mod calibration;
mod costs;
mod profile;

use std::time::Instant;

use self::bandwidth::Direction;
use self::costs::{Access, Costs};
pub use self::profile::Profile;
use crate::cpu::Cpu;
use crate::mapping::Pages;
use crate::memory::Memory;
use crate::owed_time::OwedTime;
use crate::{Description, Device, DeviceError, LINE_BYTES, Line, Mapping, PortState};

/// Offsets of the log begin here, for the buffer of writes.
const LOG_BEGINS: u64 = 1 << 62;

/// Memory with the costs of persistent memory. See the module's documentation.
#[derive(Debug)]
pub struct Emulated {
    memory: Memory,
    cpu: Cpu,
    profile: Profile,
    costs: Costs,
    /// Since when the device is open.
    opened: Instant,
    reads: Direction,
    writes: Direction,
}

impl Emulated {
    /// The same with these costs.
    fn with_costs(
        profile: Profile,
        costs: Costs,
        image_limit_bytes: u64,
        log_limit_bytes: u64,
    ) -> Result<Self, DeviceError> {
        let memory = Memory::new(image_limit_bytes, log_limit_bytes, Pages::Huge)?;
        Ok(Self {
            memory,
            cpu: Cpu::detect(),
            profile,
            costs,
            opened: Instant::now(),
            reads: Direction::default(),
            writes: Direction::default(),
        })
    }

    /// The device that is imitated.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Something was written. Nothing is computed where that costs nothing: there are many writes.
    #[inline(always)]
    fn owe_write(&self, port: &mut PortState, offset: u64, len: u64) {
        if self.costs.charges_writes {
            self.charge_write(port, offset, len);
        }
    }

    #[inline(never)]
    fn charge_write(&self, port: &mut PortState, offset: u64, len: u64) {
        let writes = self.costs.writes;
        let units = match self.costs.combines {
            true => port.buffered.write(offset, len),
            false => writes.units(offset, len),
        };
        port.counters.media_bytes_written += units * writes.unit;
        port.owed.latency_ns += writes.waits_ns(units);
        port.owed.writing_ns += units * writes.shared_ns;
        self.pay_if_due(port);
    }

    #[inline(never)]
    fn flush_and_charge(&self, port: &mut PortState, offset: u64, len: u64) {
        if !self.costs.caches_survive {
            let start = self.memory.image.mapping.at(offset, len as usize);
            // SAFETY: mapped (checked by `at`).
            unsafe { self.cpu.flush(start, len as usize) };
        }
        self.charge_write(port, offset, len);
    }

    #[inline(always)]
    fn pay_if_due(&self, port: &mut PortState) {
        if port.owed.is_due() {
            self.pay(port);
        }
    }

    /// Waits for as long as the port owes.
    #[cold]
    fn pay(&self, port: &mut PortState) {
        let owed = std::mem::take(&mut port.owed);
        port.counters.added_ns += self.wait(owed);
    }

    /// Waits for time that is owed; for how long.
    fn wait(&self, owed: OwedTime) -> u64 {
        let now_ns = self.now_ns();
        let until_ns = (now_ns + owed.latency_ns)
            .max(self.reads.take(now_ns, owed.reading_ns))
            .max(self.writes.take(now_ns, owed.writing_ns));
        while self.now_ns() < until_ns {
            std::hint::spin_loop();
        }
        until_ns - now_ns
    }

    fn now_ns(&self) -> u64 {
        self.opened.elapsed().as_nanos() as u64
    }
}

/// What accesses in one direction cost, in words.
fn of(access: Access) -> String {
    let Access { unit, first_ns, next_ns, shared_ns } = access;
    let shared = match shared_ns {
        0 => String::new(),
        _ => format!(" (all threads together one in {shared_ns} ns)"),
    };
    if first_ns == next_ns {
        return format!("{first_ns} ns for each {unit} bytes{shared}");
    }
    format!("{first_ns} ns, and {next_ns} ns for each {unit} bytes after the first{shared}")
}

impl Device for Emulated {
    fn description(&self) -> Description {
        let costs = match self.profile {
            Profile::None => "no added time".to_string(),
            _ => {
                format!("{} to reads and {} to writes", of(self.costs.reads), of(self.costs.writes))
            }
        };
        let flushes = match self.costs.caches_survive {
            true => "fences, without flushes because caches count as safe,",
            false => "real flushes and fences",
        };
        Description {
            name: format!("emulated:{}", self.profile),
            durable: false,
            note: format!(
                "DRAM stands in for persistent memory, with {flushes} and {costs}: \
                 nothing survives the process"
            ),
        }
    }

    crate::memory::in_memory!();

    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.memory.log.read(offset, into);
        // Without a port there is nothing that could owe it. Reads of the log are long.
        let units = match self.costs.charges_reads {
            true => self.costs.reads.units(offset, into.len() as u64),
            false => 0,
        };
        if units > 0 {
            self.wait(OwedTime {
                latency_ns: self.costs.reads.waits_ns(units),
                reading_ns: units * self.costs.reads.shared_ns,
                writing_ns: 0,
            });
        }
        Ok(())
    }

    #[inline(always)]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: mapped and owned by the caller in this phase.
        unsafe { self.cpu.store_nt(self.memory.image.mapping.owned(offset, bytes.len()), bytes) };
        self.owe_write(port, offset, bytes.len() as u64);
    }

    #[inline(always)]
    // SAFETY: as above.
    unsafe fn store_line(&self, _: &mut PortState, offset: u64, line: &Line) {
        // SAFETY: mapped and owned by the caller in this phase.
        unsafe { self.cpu.store_line(self.memory.image.mapping.owned(offset, line.len()), line) };
    }

    #[inline(always)]
    fn charges_writes(&self) -> bool {
        self.costs.charges_writes
    }

    #[inline(always)]
    fn wrote_lines(&self, port: &mut PortState, offset: u64, lines: u64) {
        self.owe_write(port, offset, lines * LINE_BYTES);
    }

    #[inline(always)]
    fn charges_loads(&self) -> bool {
        self.costs.charges_reads
    }

    #[inline(always)]
    fn loaded(&self, port: &mut PortState, offset: u64, len: u64) {
        if self.costs.charges_reads {
            let reads = self.costs.reads;
            let units = reads.units(offset, len);
            port.owed.latency_ns += reads.waits_ns(units);
            port.owed.reading_ns += units * reads.shared_ns;
            self.pay_if_due(port);
        }
    }

    #[inline(always)]
    fn pay_owed_time(&self, port: &mut PortState) {
        if port.owed != OwedTime::default() {
            self.pay(port);
        }
    }

    #[inline(always)]
    fn order_stores(&self) {
        self.cpu.fence();
    }

    #[inline(always)]
    fn flush(&self, port: &mut PortState, offset: u64, len: u64) {
        let start = self.memory.image.mapping.at(offset, len as usize);
        if !self.costs.charges_writes {
            // SAFETY: mapped (checked by `at`).
            return unsafe { self.cpu.flush(start, len as usize) };
        }
        self.flush_and_charge(port, offset, len);
    }

    #[inline(always)]
    fn flush_line(&self, port: &mut PortState, offset: u64) {
        let line = self.memory.image.mapping.at(offset, LINE_BYTES as usize);
        if !self.costs.charges_writes {
            // SAFETY: mapped (checked by `at`).
            return unsafe { self.cpu.flush_line(line) };
        }
        self.flush_and_charge(port, offset, LINE_BYTES);
    }

    // SAFETY: the contract of the trait: the memory is mapped.
    unsafe fn write_back(&self, port: &mut PortState, address: usize, len: u64) {
        if !self.costs.caches_survive {
            // SAFETY: forwarded to the caller.
            unsafe { self.cpu.flush(address as *mut u8, len as usize) };
        }
        self.owe_write(port, address as u64, len);
    }

    #[inline(always)]
    fn fence(&self, port: &mut PortState) {
        self.cpu.fence();
        if self.costs.settles_at_fence {
            self.pay_owed_time(port);
        }
    }

    fn log_write(
        &self,
        port: &mut PortState,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        self.memory.log.usable.check_usable(offset, bytes.len() as u64);
        let to = self.memory.log.mapping.at(offset, bytes.len());
        // SAFETY: mapped; two ports never write the same range of the log at the same time.
        unsafe { self.cpu.store_nt(to, bytes) };
        self.owe_write(port, LOG_BEGINS + offset, bytes.len() as u64);
        Ok(())
    }

    fn log_fence(&self, port: &mut PortState) {
        self.fence(port);
    }
}

#[cfg(test)]
mod tests;
