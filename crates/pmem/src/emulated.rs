//! Memory that behaves like persistent memory: real flushes and fences, plus the time that the
//! slower medium would take.
//!
//! The time is added by waiting in the calling thread. Delays are collected in the port and paid
//! when they exceed [`PAY_ABOVE_NS`] or at a fence, so that the clock is not read for every access.
//! Every read of the image is charged, and of the log at recovery; a line that the same step reads
//! again is in the processor's cache and costs nothing ([`crate::Port::charge_load`]). A step is
//! the execution of a call with its final writes; elsewhere what is done for one row, one key or
//! one group of calls, or a merge of keys. What this model leaves out, and a report must say: reads
//! of one thread that would overlap on a real machine (prefetching) are charged one after another;
//! a line may stay in the cache from one step to the next; a processor reads a line that is stored
//! to in part, which is charged only where the program reads it, too; the write bandwidth is that
//! of one port, not shared between ports; and a line that is flushed twice within a block is
//! charged twice.
//!
//! # Where the figures come from
//! * `low` and `high`: Arulraj, Pavlo, Dulloor, "Let's Talk About Storage and Recovery Methods for
//!   Non-Volatile Memory Database Systems", SIGMOD 2015: an emulator with 2 and 8 times the latency
//!   of DRAM (320 and 1,280 ns there, against 160 ns), and the bandwidth of all accesses throttled
//!   to
//!   9.5 GB/s, 8 times less than DRAM. We keep the ratios and take [`DRAM_READ_NS`] for DRAM.
//! * `optane`: three times the read latency of DRAM (the NVCaracal paper, 6.1, measures random
//!   reads 3.2 times slower than DRAM), 256-byte blocks inside (NV 5.3), and about 2 GB/s of writes
//!   for one thread.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::counters::units;
use crate::cpu::Cpu;
use crate::mapping::Pages;
use crate::memory::Memory;
use crate::{
    BLOCK_BYTES, Description, Device, DeviceError, LINE_BYTES, Line, LineCount, Mapping, PortState,
};

/// Read latency of DRAM that the profiles are relative to.
const DRAM_READ_NS: u64 = 100;
/// A port owes at most this much before it waits.
const PAY_ABOVE_NS: u64 = 1_000;

/// Which medium is imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Real flushes and fences, no added time.
    None,
    /// Intel Optane persistent memory.
    Optane,
    /// Twice the latency of DRAM and an eighth of its bandwidth.
    Low,
    /// Eight times the latency of DRAM and an eighth of its bandwidth.
    High,
}

impl Profile {
    /// All profiles, in the order of their names on the command line.
    pub const ALL: [Self; 4] = [Self::None, Self::Optane, Self::Low, Self::High];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Optane => "optane",
            Self::Low => "low",
            Self::High => "high",
        }
    }

    fn costs(self) -> Costs {
        match self {
            Self::None => {
                Costs { first_block_ns: 0, next_block_ns: 0, write_unit: LINE_BYTES, write_ns: 0 }
            }
            // Blocks after the first come at the medium's read bandwidth, about 6.4 GB/s; a write
            // always costs a whole block, at 2 GB/s.
            Self::Optane => Costs {
                first_block_ns: 2 * DRAM_READ_NS,
                next_block_ns: 40,
                write_unit: BLOCK_BYTES,
                write_ns: 128,
            },
            Self::Low => Costs::throttled(DRAM_READ_NS),
            Self::High => Costs::throttled(7 * DRAM_READ_NS),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == text)
            .ok_or_else(|| format!("unknown profile {text:?}: choose none, optane, low or high"))
    }
}

/// What a profile adds to each access.
#[derive(Debug, Clone, Copy)]
struct Costs {
    /// For the first 256-byte block of a read.
    first_block_ns: u64,
    /// For each following block of the same read.
    next_block_ns: u64,
    /// The medium writes in units of this many bytes ...
    write_unit: u64,
    /// ... which take this long each.
    write_ns: u64,
}

impl Costs {
    /// The emulator of the paper: added latency, and 9.5 GB/s in both directions (27 ns for a block
    /// of 256 bytes, 7 ns for a line).
    const fn throttled(added_ns: u64) -> Self {
        Self { first_block_ns: added_ns, next_block_ns: 27, write_unit: LINE_BYTES, write_ns: 7 }
    }

    #[inline(always)]
    fn of_read(self, offset: u64, len: u64) -> u64 {
        match units(offset, len, BLOCK_BYTES) {
            0 => 0,
            blocks => self.first_block_ns + (blocks - 1) * self.next_block_ns,
        }
    }

    #[inline(always)]
    fn of_write(self, offset: u64, len: u64) -> u64 {
        units(offset, len, self.write_unit) * self.write_ns
    }
}

/// Memory with the costs of persistent memory. See the module's documentation.
#[derive(Debug)]
pub struct Emulated {
    memory: Memory,
    cpu: Cpu,
    profile: Profile,
    costs: Costs,
}

impl Emulated {
    /// A device with empty spaces that may grow up to the limits.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn new(
        profile: Profile,
        image_limit_bytes: u64,
        log_limit_bytes: u64,
    ) -> Result<Self, DeviceError> {
        let memory = Memory::new(image_limit_bytes, log_limit_bytes, Pages::Huge)?;
        Ok(Self { memory, cpu: Cpu::detect(), profile, costs: profile.costs() })
    }

    /// The medium that is imitated.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Something was written. Nothing is computed where that costs nothing: there are many writes.
    #[inline(always)]
    fn owe_write(&self, port: &mut PortState, offset: u64, len: u64) {
        if self.costs.write_ns > 0 {
            self.owe(port, self.costs.of_write(offset, len));
        }
    }

    #[inline(always)]
    fn owe(&self, port: &mut PortState, ns: u64) {
        port.debt_ns += ns;
        if port.debt_ns > PAY_ABOVE_NS {
            pay(port);
        }
    }
}

/// Waits for as long as the port owes.
#[cold]
fn pay(port: &mut PortState) {
    let debt_ns = std::mem::take(&mut port.debt_ns);
    port.counters.added_ns += debt_ns;
    wait(debt_ns);
}

fn wait(ns: u64) {
    let debt = Duration::from_nanos(ns);
    let start = Instant::now();
    while start.elapsed() < debt {
        std::hint::spin_loop();
    }
}

impl Device for Emulated {
    fn description(&self) -> Description {
        let costs = match self.profile {
            Profile::None => "no added time".to_string(),
            _ => format!(
                "{} ns added to a read, {} ns to each following block, {} ns per {} bytes written",
                self.costs.first_block_ns,
                self.costs.next_block_ns,
                self.costs.write_ns,
                self.costs.write_unit
            ),
        };
        Description {
            name: format!("emulated:{}", self.profile),
            durable: false,
            note: format!(
                "DRAM stands in for persistent memory, with real flushes and fences and {costs}: \
                 nothing survives the process"
            ),
        }
    }

    crate::memory::in_memory!();

    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.memory.log.read(offset, into);
        // Without a port there is nobody who could owe it. Reads of the log are long.
        match self.costs.of_read(offset, into.len() as u64) {
            0 => {}
            ns => wait(ns),
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
    fn charge_lines(&self, port: &mut PortState, LineCount { lines, blocks }: LineCount) {
        if self.costs.write_ns > 0 {
            let units = if self.costs.write_unit == LINE_BYTES { lines } else { blocks };
            self.owe(port, units * self.costs.write_ns);
        }
    }

    #[inline(always)]
    fn charges_loads(&self) -> bool {
        self.profile != Profile::None
    }

    #[inline(always)]
    fn loaded(&self, port: &mut PortState, offset: u64, len: u64) {
        self.owe(port, self.costs.of_read(offset, len));
    }

    #[inline(always)]
    fn settle_debt(&self, port: &mut PortState) {
        if port.debt_ns > 0 {
            pay(port);
        }
    }

    #[inline(always)]
    fn order_stores(&self) {
        self.cpu.fence();
    }

    #[inline(always)]
    fn flush(&self, port: &mut PortState, offset: u64, len: u64) {
        let start = self.memory.image.mapping.at(offset, len as usize);
        // SAFETY: mapped (checked by `at`).
        unsafe { self.cpu.flush(start, len as usize) };
        self.owe_write(port, offset, len);
    }

    #[inline(always)]
    fn flush_line(&self, port: &mut PortState, offset: u64) {
        let line = self.memory.image.mapping.at(offset, LINE_BYTES as usize);
        // SAFETY: mapped (checked by `at`).
        unsafe { self.cpu.flush_line(line) };
        self.owe_write(port, offset, LINE_BYTES);
    }

    // SAFETY: the contract of the trait: the memory is mapped.
    unsafe fn write_back(&self, port: &mut PortState, address: usize, len: u64) {
        // SAFETY: forwarded to the caller.
        unsafe { self.cpu.flush(address as *mut u8, len as usize) };
        self.owe_write(port, address as u64, len);
    }

    #[inline(always)]
    fn fence(&self, port: &mut PortState) {
        self.cpu.fence();
        self.settle_debt(port);
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
        self.owe_write(port, offset, bytes.len() as u64);
        Ok(())
    }

    fn log_fence(&self, port: &mut PortState) {
        self.fence(port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_parse_and_print() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse::<Profile>().unwrap(), profile);
        }
        assert!("fast".parse::<Profile>().unwrap_err().contains("choose none"));
    }

    #[test]
    fn costs_follow_the_profile() {
        let optane = Profile::Optane.costs();
        assert_eq!(optane.of_read(0, 0), 0);
        assert_eq!(optane.of_read(0, 64), 200);
        assert_eq!(optane.of_read(250, 10), 240);
        assert_eq!(optane.of_write(0, 64), 128);
        assert_eq!(optane.of_write(0, 1024), 512);
        assert_eq!(Profile::High.costs().of_read(0, 64), 700);
        assert_eq!(Profile::Low.costs().of_write(0, 256), 28);
        assert_eq!(Profile::None.costs().of_write(0, 256), 0);
    }

    #[test]
    fn a_port_pays_its_debt_at_a_fence() {
        let device = Emulated::new(Profile::High, 1 << 20, 1 << 20).unwrap();
        device.grow_image(4096).unwrap();
        let mut port = PortState::default();
        device.loaded(&mut port, 0, 8);
        assert_eq!(port.debt_ns, 700);
        device.fence(&mut port);
        assert_eq!(port.debt_ns, 0);
        let start = Instant::now();
        for _ in 0..100 {
            device.loaded(&mut port, 0, 8);
        }
        assert!(start.elapsed() >= Duration::from_nanos(69_000));
    }
}
