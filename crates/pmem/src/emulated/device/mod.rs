//! The device: memory, and the time that an access costs.

use std::time::Instant;

use super::bandwidth::Direction;
use super::costs::{Access, Costs, Lines};
use super::profile::Profile;
use crate::cpu::Cpu;
use crate::device::OwedTime;
use crate::device::{Description, Device, Kind, PortState, Shortcuts};
use crate::failure::DeviceError;
use crate::memory::{Mapping, Memory, Pages};
use crate::units::{LINE_BYTES, Line, units};

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
    pub(crate) fn with_costs(
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
    #[inline]
    fn owe_write(&self, port: &mut PortState, offset: u64, len: u64) {
        if self.costs.charges_writes {
            self.charge_write(port, offset, len);
        }
    }

    #[inline(never)]
    fn charge_write(&self, port: &mut PortState, offset: u64, len: u64) {
        if let Some(lines) = self.costs.lines {
            return self.charge_lines(port, lines, offset, len);
        }
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

    /// Charges the lines of a write, and reads of those that it does not fill.
    fn charge_lines(&self, port: &mut PortState, lines: Lines, offset: u64, len: u64) {
        let (end, writes) = (offset + len, self.costs.writes);
        let entered = port.buffered.write_lines(offset, len);
        port.counters.media_bytes_written += entered.blocks * writes.unit;
        port.owed.latency_ns +=
            units(offset, len, LINE_BYTES) * lines.line_ns + entered.apart * lines.apart_ns;
        port.owed.writing_ns += entered.blocks * writes.shared_ns;
        let first = (!offset.is_multiple_of(LINE_BYTES)).then_some(offset / LINE_BYTES);
        let last = (!end.is_multiple_of(LINE_BYTES)).then_some(end / LINE_BYTES);
        if len > 0 {
            let reads_last = last.is_some() && last != first;
            for line in first.into_iter().chain(last.filter(|_| reads_last)) {
                self.charge_read(port, line * LINE_BYTES, LINE_BYTES);
            }
        }
        self.pay_if_due(port);
    }

    fn charge_read(&self, port: &mut PortState, offset: u64, len: u64) {
        let reads = self.costs.reads;
        let units = reads.units(offset, len);
        let shared_ns = units * reads.shared_ns;
        port.owed.reading_ns += shared_ns;
        port.owed.latency_ns += match self.costs.lines {
            // Nothing is before the first byte.
            Some(_) if offset > 0 && offset == port.read_to => units * reads.next_ns,
            _ => reads.waits_ns(units),
        };
        if self.costs.lines.is_some() {
            port.read_to = offset + len;
            port.owed.writing_ns += shared_ns;
        }
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

    #[inline]
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
        let small = match self.costs.lines {
            None => String::new(),
            Some(Lines { line_ns, apart_ns }) => format!(
                "; a line that follows costs {line_ns} ns, one elsewhere {apart_ns} ns more, a \
                 write that does not fill its line reads it first, and reads slow writes"
            ),
        };
        let flushes = match self.costs.caches_survive {
            true => "fences, without flushes because caches count as safe,",
            false => "real flushes and fences",
        };
        Description {
            name: format!("emulated:{}", self.profile),
            durable: false,
            note: format!(
                "DRAM stands in for persistent memory, with {flushes} and {costs}{small}: \
                 nothing survives the process"
            ),
        }
    }

    fn shortcuts(&self) -> Shortcuts {
        let charges = self.costs.charges_writes || self.costs.settles_at_fence;
        match charges || self.costs.caches_survive {
            true => Shortcuts(Kind::Charged),
            false => Shortcuts(Kind::Flushed(self.cpu)),
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

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: mapped and owned by the caller in this phase.
        unsafe { self.cpu.store_nt(self.memory.image.mapping.owned(offset, bytes.len()), bytes) };
        self.owe_write(port, offset, bytes.len() as u64);
    }

    #[inline]
    // SAFETY: as above.
    unsafe fn store_line(&self, _: &mut PortState, offset: u64, line: &Line) {
        // SAFETY: mapped and owned by the caller in this phase.
        unsafe { self.cpu.store_line(self.memory.image.mapping.owned(offset, line.len()), line) };
    }

    #[inline]
    fn charges_writes(&self) -> bool {
        self.costs.charges_writes
    }

    #[inline]
    fn wrote_lines(&self, port: &mut PortState, offset: u64, lines: u64) {
        self.owe_write(port, offset, lines * LINE_BYTES);
    }

    #[inline]
    fn charges_loads(&self) -> bool {
        self.costs.charges_reads
    }

    #[inline]
    fn loaded(&self, port: &mut PortState, offset: u64, len: u64) {
        if self.costs.charges_reads {
            self.charge_read(port, offset, len);
            self.pay_if_due(port);
        }
    }

    #[inline]
    fn pay_owed_time(&self, port: &mut PortState) {
        if port.owed != OwedTime::default() {
            self.pay(port);
        }
    }

    #[inline]
    fn order_stores(&self) {
        self.cpu.fence();
    }

    #[inline]
    fn flush(&self, port: &mut PortState, offset: u64, len: u64) {
        let start = self.memory.image.mapping.at(offset, len as usize);
        if !self.costs.charges_writes {
            // SAFETY: mapped (checked by `at`).
            return unsafe { self.cpu.flush(start, len as usize) };
        }
        self.flush_and_charge(port, offset, len);
    }

    #[inline]
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

    #[inline]
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
