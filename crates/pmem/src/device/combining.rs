//! Which blocks a port has in the device's buffer of writes.
//!
//! Optane's media are written in blocks of 256 bytes, through a buffer of 16 KiB in each module,
//! which combines the lines of a block that arrive near each other (Yang, Kim, Hoseinzadeh,
//! Izraelevitz, Swanson, "An Empirical Guide to the Behavior and Use of Scalable Persistent
//! Memory", FAST 2020: they call it the `XPBuffer`). Ports share it there. Here each has a share of
//! its own, of a quarter, so that what is counted does not depend on what other threads do
//! meanwhile. The block that came first leaves first: which one really leaves is not published.

use crate::units::BLOCK_BYTES;

/// Blocks of a port in the buffer.
const SHARE_BLOCKS: usize = 16;
/// No block has this number.
const NONE: u64 = u64::MAX;

/// Blocks that came into the buffer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) blocks: u64,
    /// Those of them that do not follow the one that came before.
    pub(crate) apart: u64,
}

/// The blocks of one port that are in the buffer.
#[derive(Debug)]
pub(crate) struct Buffered {
    /// In the order of a ring.
    blocks: [u64; SHARE_BLOCKS],
    /// Where the newest is.
    newest: usize,
}

impl Default for Buffered {
    fn default() -> Self {
        Self { blocks: [NONE; SHARE_BLOCKS], newest: 0 }
    }
}

impl Buffered {
    /// A range is written: how many of its blocks were not in the buffer, and will cost a write of
    /// the media. They are now.
    pub(crate) fn write(&mut self, offset: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let (first, last) = (offset / BLOCK_BYTES, (offset + len - 1) / BLOCK_BYTES);
        (first..=last).map(|block| u64::from(self.enters(block))).sum()
    }

    /// The same; and how many of these blocks do not follow the one that came last.
    pub(crate) fn write_lines(&mut self, offset: u64, len: u64) -> Entered {
        let mut entered = Entered::default();
        if len == 0 {
            return entered;
        }
        for block in offset / BLOCK_BYTES..=(offset + len - 1) / BLOCK_BYTES {
            // Of a port that has written nothing there is none that it could follow.
            let follows = block.checked_sub(1) == Some(self.blocks[self.newest]);
            if self.enters(block) {
                entered.blocks += 1;
                entered.apart += u64::from(!follows);
            }
        }
        entered
    }

    #[inline]
    fn enters(&mut self, block: u64) -> bool {
        // A line that follows the one before it is the usual case.
        if self.blocks[self.newest] == block || self.blocks.contains(&block) {
            return false;
        }
        self.newest = (self.newest + 1) % SHARE_BLOCKS;
        self.blocks[self.newest] = block;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_block_that_are_written_together_cost_one_block() {
        let mut buffered = Buffered::default();
        let lines = [64, 0, 192, 128, 64, 64];
        let costs = lines.map(|line| buffered.write(512 + line, 64));
        assert_eq!(costs, [1, 0, 0, 0, 0, 0]);
        assert_eq!(buffered.write(0, 0), 0);
        assert_eq!(buffered.write(250, 10), 2, "the end of a block and the beginning of another");
    }

    #[test]
    fn the_same_lines_far_apart_cost_a_block_each() {
        let mut buffered = Buffered::default();
        let share = SHARE_BLOCKS as u64 * BLOCK_BYTES;
        for line in 0..4 {
            assert_eq!(buffered.write(line * 64, 64), 1);
            // Fills the share, and pushes the block out.
            assert_eq!(buffered.write((1 + line) << 20, share), SHARE_BLOCKS as u64);
        }
    }

    #[test]
    fn a_block_stays_until_as_many_others_came() {
        let mut buffered = Buffered::default();
        let others = (SHARE_BLOCKS as u64 - 1) * BLOCK_BYTES;
        assert_eq!(buffered.write(0, 1), 1);
        assert_eq!(buffered.write(BLOCK_BYTES, others), SHARE_BLOCKS as u64 - 1);
        assert_eq!(buffered.write(255, 1), 0);
        assert_eq!(buffered.write(1 << 20, 1), 1);
        assert_eq!(buffered.write(0, 1), 1);
    }
}
