//! Bugs that are planted on purpose, to prove that the crash lab finds such bugs.
//!
//! A bug is planted by the device ([`pmem::Device::planted`]), and only the device of the crash lab
//! ever has one: on every other device the question is a constant, and the planted branch is not
//! compiled. Each place is one short `if`, with the right code in the other branch.

use std::fmt;
use std::str::FromStr;

use pmem::Device;

macro_rules! plants {
    ($($(#[doc = $doc:literal])+ $variant:ident, $name:literal, $obligations:expr;)+) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Plant {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Plant {
            /// All of them.
            pub const ALL: &'static [Plant] = &[$(Self::$variant,)+];

            /// Its name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What is wrong.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc,)+).trim_ascii(),)+
                }
            }

            /// The obligations that it breaks.
            #[must_use]
            pub fn obligations(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &$obligations,)+
                }
            }
        }
    };
}

plants! {
    /// no worker fences before the checkpoint record
    SkipFence, "skip-fence", ["O-22"];
    /// of a value that is longer than a line only the first line is made durable
    FirstLineOnly, "first-line-only", ["O-22"];
    /// the pointer of a version is stored before its serial id
    PointerBeforeSid, "pointer-before-sid", ["O-26"];
    /// a final write overwrites the checkpoint's slot, not the stale one
    CheckpointSlot, "checkpoint-slot", ["O-26", "O-27"];
    /// stale values that recovery finds are not collected before replay
    SkipCollection, "skip-collection-on-replay", ["O-33", "O-35"];
    /// a slot that was freed in an epoch is taken again in the same one
    ReuseFreed, "reuse-freed-slot", ["O-39"];
    /// what a collection before the crash freed is freed once more
    ForgetDedupe, "forget-dedupe", ["O-36"];
    /// versions of the crashed epoch are collected as if they were stale ones
    CollectCrashed, "collect-crashed-version", ["O-35"];
    /// if the last writer aborts, the row stays as it was before the epoch
    IgnoreNotWalkedBack, "ignore-not-walked-back", ["O-14"];
    /// the last inserter gives the birth of a row, not the first
    BirthNotSmallest, "birth-not-smallest", ["O-08"];
    /// the eviction list takes an entry of an older generation for the one in the cache
    EvictOtherGeneration, "evict-other-generation", ["O-19"];
    /// an epoch is answered although its seal was never written
    AckBeforeSeal, "ack-before-seal", ["O-13"];
    /// pool offsets are saved over the set of the last checkpoint
    WrongParity, "wrong-parity", ["O-38"];
    /// records of epochs that have a checkpoint are taken for new ones
    StaleLog, "stale-log", ["O-24"];
    /// the scan of recovery puts free rows into the index
    ScanFreeRows, "scan-free-rows", ["O-41"];
    /// only the first worker fences before the checkpoint record
    FirstWorkerFences, "first-worker-fences", ["O-22"];
    /// the header of an updated row is not flushed
    HeaderNotFlushed, "header-not-flushed", ["O-22", "O-26"];
    /// the major collector leaves the stale slots as they are
    StaleNotCleared, "stale-slot-not-cleared", ["O-34"];
    /// the major collector clears stale slots before its frees are final
    ClearedTooEarly, "cleared-too-early", ["O-34"];
    /// a refused epoch keeps the numbers that it drew
    RefusedKeepsNumbers, "refused-keeps-numbers", ["O-43"];
    /// a final write leaves out lines in which the two slots differ
    ForgetLines, "forget-lines", ["O-22", "O-48"];
    /// a version forgets which lines the versions before it changed
    ForgetMask, "forget-mask", ["O-22", "O-48"];
    /// a carry that replay makes again needs room beside the first one
    CarryNeedsRoom, "carry-needs-room", ["O-43"];
    /// replay makes checkpoints at the interval of normal epochs
    CheckpointInReplay, "checkpoint-in-replay", ["O-43"];
    /// open trusts directory words that a killed process left undurable
    DirectoryNotSettled, "directory-not-settled", ["O-29", "O-40"];
    /// open trusts a checkpoint record that a killed process left undurable
    CheckpointNotSettled, "checkpoint-not-settled", ["O-23", "O-29"];
    /// open trusts that a stale version is cleared that a killed process left undurable
    ClearedNotSettled, "cleared-not-settled", ["O-29", "O-34"];
    /// open trusts offset sets that a killed process left undurable
    OffsetsNotSettled, "offsets-not-settled", ["O-29", "O-38"];
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Plant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|plant| plant.name() == name);
        found.copied().ok_or_else(|| format!("no bug is called {name:?}"))
    }
}

impl Plant {
    /// The number by which a device has it planted; 0 is none.
    #[must_use]
    #[inline(always)]
    pub fn number(self) -> u32 {
        self as u32 + 1
    }
}

/// Whether a bug is planted on a device.
#[inline(always)]
pub fn planted<D: Device>(device: &D, plant: Plant) -> bool {
    device.planted() == plant.number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_tell_them_apart() {
        for (at, plant) in Plant::ALL.iter().enumerate() {
            assert_eq!(plant.name().parse(), Ok(*plant));
            assert_eq!(plant.number() as usize, at + 1);
            assert!(!plant.what().is_empty() && !plant.obligations().is_empty());
        }
        assert!("none".parse::<Plant>().is_err());
    }
}
