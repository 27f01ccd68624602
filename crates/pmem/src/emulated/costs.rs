//! What each profile adds to an access, and where the figures come from.
//!
//! * `low` and `high`: Arulraj, Pavlo, Dulloor, "Let's Talk About Storage and Recovery Methods for
//!   Non-Volatile Memory Database Systems", SIGMOD 2015: an emulator with 2 and 8 times the latency
//!   of DRAM (320 and 1,280 ns there, against 160 ns), and the bandwidth of all accesses throttled
//!   to 9.5 GB/s, 8 times less than DRAM. We keep the ratios and take [`DRAM_READ_NS`] for DRAM;
//!   the bandwidth is that of each port.
//! * `optane`: blocks of 256 bytes (NV 5.3), and the throughput of random reads and writes that the
//!   NVCaracal paper measured (6.1): 3.2 and 11.9 times less than that of DRAM, for one thread as
//!   for all. How long a block takes is therefore relative to this machine's DRAM, which
//!   `calibration` measures when the first such device is opened. `nvcaracal-lab bench device`
//!   shows
//!   what comes out.
//! * `optane-lines`: latencies of accesses of 64 bytes that Wei et al., "Reducing Transaction
//!   Processing Latency in Hardware Transactional Memory-based Database with Non-volatile Memory",
//!   IJSI 12(1), 2022, measured (Table 2): reads one after the other take 248 ns, at random 277,
//!   writes 171 and 510; DRAM takes 82, 82, 153 and 234, and what is above that is added. A write
//!   is one after the other if it is in a block of the buffer, or in the one behind the newest of
//!   these. Two things that the paper says of small writes (1.2): one that does not fill its line
//!   reads that line first, and reads take from the bandwidth of writes. Bandwidths are the
//!   paper's, 320 and 100 Gbit/s.
//! * `eadr`: the media of `optane`. What the processor's caches hold survives, so that a flush does
//!   nothing and a fence waits for nothing. A line that was written leaves the cache some time
//!   later, in an order that is not known: each write takes the media for the blocks that it
//!   touches, as if no other line of them were written near it. That costs bandwidth, no latency.
//! * `cxl`: round figures in the range of what Sun et al., "Demystifying CXL Memory with Genuine
//!   CXL-Ready Systems and Devices", MICRO 2023, measured on three devices: some 2 to 2.5 times the
//!   latency of local DRAM, here 230 ns, and 20 to 45 per cent of the bandwidth of a channel, here
//!   30 per cent of one of DDR5-4800, in lines of 64 bytes. A write that left the processor is
//!   counted as safe: the link and the device behind it are emptied when power fails.

use super::profile::Profile;
use crate::units::{BLOCK_BYTES, LINE_BYTES, units};

/// Read latency of DRAM that the profiles are relative to.
const DRAM_READ_NS: u64 = 100;
/// How much more random 256-byte writes DRAM makes than Optane (NV 6.1), in tenths.
pub(crate) const OPTANE_WRITES_TENTHS: u64 = 119;
/// How much more random reads.
pub(crate) const OPTANE_READS_TENTHS: u64 = 32;

/// What accesses in one direction cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// The device works in units of this many bytes.
    pub(crate) unit: u64,
    /// What the port waits for the first unit of an access ...
    pub(crate) first_ns: u64,
    /// ... and for each following one.
    pub(crate) next_ns: u64,
    /// How long each unit takes the device, which all ports share.
    pub(crate) shared_ns: u64,
}

impl Access {
    /// What the port waits.
    #[inline]
    pub(crate) fn waits_ns(self, units: u64) -> u64 {
        match units {
            0 => 0,
            units => self.first_ns + (units - 1) * self.next_ns,
        }
    }

    /// Units that a range touches.
    #[inline]
    pub(crate) fn units(self, offset: u64, len: u64) -> u64 {
        units(offset, len, self.unit)
    }

    fn is_free(self) -> bool {
        self.first_ns == 0 && self.next_ns == 0 && self.shared_ns == 0
    }
}

/// What writes of lines cost, where they are told from those of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    /// What the port waits for a line ...
    pub(crate) line_ns: u64,
    /// ... and besides for a block that does not follow those in the buffer.
    pub(crate) apart_ns: u64,
}

/// What a block takes DRAM, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockTime {
    /// Where one thread is alone.
    pub(crate) one_thread_ps: u64,
    /// Where all threads are busy: of all their blocks together.
    pub(crate) all_threads_ps: u64,
    /// What one thread needs for it on the device beside the waiting.
    pub(crate) beside_waiting_ps: u64,
}

impl BlockTime {
    pub(crate) const fn new(one_thread_ps: u64, all_threads_ps: u64) -> Self {
        Self { one_thread_ps, all_threads_ps, beside_waiting_ps: one_thread_ps }
    }
}

/// Both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockTimes {
    pub(crate) reads: BlockTime,
    pub(crate) writes: BlockTime,
}

/// What a profile adds to each access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Costs {
    /// Whether reads cost anything.
    pub(crate) charges_reads: bool,
    /// Whether writes do.
    pub(crate) charges_writes: bool,
    pub(crate) reads: Access,
    pub(crate) writes: Access,
    /// Where writes cost by lines, those that do not fill one read it, and reads slow writes.
    pub(crate) lines: Option<Lines>,
    /// Whether the device combines writes of one block.
    pub(crate) combines: bool,
    /// Whether the caches survive a power cut, so that flushes do nothing.
    pub(crate) caches_survive: bool,
    /// Whether a fence waits for what the port owes. Where caches survive nothing has to reach the
    /// device then.
    pub(crate) settles_at_fence: bool,
}

impl Costs {
    /// The costs of a profile; `dram` says what DRAM takes for a block, if it is relative to
    /// that.
    pub(crate) fn of(profile: Profile, dram: impl FnOnce() -> BlockTimes) -> Self {
        match profile {
            Profile::None => Self::new(Access::default(), Access::default()),
            Profile::Optane => Self::optane(dram()),
            Profile::OptaneLines => Self::optane_lines(),
            Profile::Eadr => Self::eadr(dram()),
            Profile::Cxl => Self::cxl(),
            Profile::Low => Self::throttled(DRAM_READ_NS),
            Profile::High => Self::throttled(7 * DRAM_READ_NS),
        }
    }

    fn new(reads: Access, writes: Access) -> Self {
        Self {
            charges_reads: !reads.is_free(),
            charges_writes: !writes.is_free(),
            reads,
            writes,
            lines: None,
            combines: false,
            caches_survive: false,
            settles_at_fence: !reads.is_free() || !writes.is_free(),
        }
    }

    /// The emulator of the paper: added latency, and 9.5 GB/s in both directions (27 ns for a block
    /// of 256 bytes, 7 ns for a line).
    fn throttled(added_ns: u64) -> Self {
        let reads = Access { unit: BLOCK_BYTES, first_ns: added_ns, next_ns: 27, shared_ns: 0 };
        let writes = Access { unit: LINE_BYTES, first_ns: 7, next_ns: 7, shared_ns: 0 };
        Self::new(reads, writes)
    }

    /// A port waits for as long as makes a block take the ratio of the paper, and all ports share
    /// what is that part of all that DRAM can do.
    pub(crate) fn optane(dram: BlockTimes) -> Self {
        let blocks = |time: BlockTime, ratio_tenths: u64| {
            let waits_ns = (time.one_thread_ps * ratio_tenths)
                .saturating_sub(time.beside_waiting_ps * 10)
                .div_ceil(10_000);
            let shared_ns = (time.all_threads_ps * ratio_tenths + 5_000) / 10_000;
            Access { unit: BLOCK_BYTES, first_ns: waits_ns, next_ns: waits_ns, shared_ns }
        };
        let reads = blocks(dram.reads, OPTANE_READS_TENTHS);
        let writes = blocks(dram.writes, OPTANE_WRITES_TENTHS);
        Self { combines: true, ..Self::new(reads, writes) }
    }

    /// What the paper's Table 2 has of persistent memory, without what it has of DRAM.
    pub(crate) fn optane_lines() -> Self {
        let unit = BLOCK_BYTES;
        let reads = Access { unit, first_ns: 277 - 82, next_ns: 248 - 82, shared_ns: 6 };
        let line_ns = 171 - 153;
        let writes = Access { unit, first_ns: 510 - 234, next_ns: 4 * line_ns, shared_ns: 20 };
        let lines = Some(Lines { line_ns, apart_ns: 510 - 234 - line_ns });
        Self { lines, combines: true, ..Self::new(reads, writes) }
    }

    pub(crate) fn eadr(dram: BlockTimes) -> Self {
        let Self { reads, writes, .. } = Self::optane(dram);
        let writes = Access { first_ns: 0, next_ns: 0, ..writes };
        Self { caches_survive: true, settles_at_fence: false, ..Self::new(reads, writes) }
    }

    /// 64 bytes at 30 per cent of 38.4 GB/s take 6 ns.
    fn cxl() -> Self {
        let lines = Access { unit: LINE_BYTES, first_ns: 6, next_ns: 6, shared_ns: 6 };
        Self::new(Access { first_ns: 230 - DRAM_READ_NS, ..lines }, lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAM: BlockTimes = BlockTimes {
        reads: BlockTime::new(50_000, 25_000),
        writes: BlockTime::new(20_000, 12_000),
    };

    fn read(costs: Costs, offset: u64, len: u64) -> u64 {
        costs.reads.waits_ns(costs.reads.units(offset, len))
    }

    fn write(costs: Costs, offset: u64, len: u64) -> u64 {
        costs.writes.waits_ns(costs.writes.units(offset, len))
    }

    #[test]
    fn a_block_of_optane_takes_the_ratio_of_the_paper() {
        let optane = Costs::optane(DRAM);
        assert!(optane.combines && !optane.caches_survive);
        // With the 50 ns that DRAM takes anyway, 3.2 times as long.
        assert_eq!([read(optane, 0, 0), read(optane, 0, 64), read(optane, 250, 10)], [0, 110, 220]);
        assert_eq!(optane.reads.shared_ns, 80);
        // What a block takes on the device anyway is not waited for.
        let reads = BlockTime { beside_waiting_ps: 70_000, ..DRAM.reads };
        assert_eq!(read(Costs::optane(BlockTimes { reads, ..DRAM }), 0, 64), 90);
        assert_eq!([write(optane, 0, 64), write(optane, 0, 1024)], [218, 4 * 218]);
        assert_eq!(optane.writes.shared_ns, 143, "rounded from 142.8");
    }

    #[test]
    fn eadr_costs_bandwidth_of_the_same_media_and_no_latency_of_writes() {
        let (eadr, optane) = (Costs::eadr(DRAM), Costs::optane(DRAM));
        assert!(eadr.caches_survive && !eadr.combines && eadr.charges_writes);
        assert_eq!(eadr.reads, optane.reads);
        assert_eq!((write(eadr, 0, 4096), eadr.writes.shared_ns), (0, optane.writes.shared_ns));
    }

    #[test]
    fn cxl_has_lines_and_no_blocks() {
        let cxl = Costs::cxl();
        assert_eq!([read(cxl, 0, 64), read(cxl, 64, 256)], [130, 130 + 3 * 6]);
        assert_eq!([write(cxl, 0, 64), write(cxl, 0, 256)], [6, 24]);
        assert_eq!((cxl.reads.shared_ns, cxl.writes.shared_ns), (6, 6));
    }

    #[test]
    fn low_and_high_keep_the_ratios_of_their_paper() {
        let (low, high) = (Costs::of(Profile::Low, || DRAM), Costs::of(Profile::High, || DRAM));
        assert_eq!([read(low, 0, 64), read(high, 0, 64), read(high, 250, 10)], [100, 700, 727]);
        assert_eq!([write(low, 0, 256), write(high, 0, 64)], [28, 7]);
        assert_eq!((high.reads.shared_ns, high.writes.shared_ns), (0, 0));
    }

    #[test]
    fn where_nothing_is_added_nothing_is_charged() {
        let none = Costs::of(Profile::None, || DRAM);
        assert!(!none.charges_reads && !none.charges_writes);
        for profile in Profile::ALL.into_iter().filter(|profile| *profile != Profile::None) {
            let costs = Costs::of(profile, || DRAM);
            assert!(costs.charges_reads && costs.charges_writes, "{profile}");
        }
    }
}
