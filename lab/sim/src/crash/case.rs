//! What is run: a history and all choices, by a seed.

use storage::input_log::RESERVE_SEGMENTS;

use super::decide::Decision;
use crate::history::pair::TABLES_SIZED;
use crate::history::program::SHORT_SIZES;
use crate::history::{
    HASHED, Mix, ORDERED, Random, Setup, add_corners, batch, churn, edited, fatal, for_serial_part,
    long_call, long_stale_looks, stale_look, turns,
};

/// The image of a store without any segment, with some room for the directory.
const IMAGE_BYTES_EMPTY: u64 = 600 << 10;

/// One of how many seeds has a log that is nearly full.
const FULL_LOG_ONE_IN: u64 = 8;
/// One of how many seeds, half of those with such a log, has long calls that are deferred.
const DEFERRED_ONE_IN: u64 = 16;
/// One of how many seeds replaces all of many rows in each epoch.
const CHURN_ONE_IN: u64 = 16;
/// One of how many seeds has rows that come, change, go and come back, under snapshots.
const TURNS_ONE_IN: u64 = 8;

/// One of how many seeds ends with an epoch of which a call cannot be undone.
const FATAL_ONE_IN: u64 = 8;

/// How many of a hundred calls that are deferred beside a full log are long ones.
const LONG_LOOKS_PERCENT: u64 = 25;

/// What the epochs of a case are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// Random calls, and at times some that lead into a corner.
    Usual,
    /// Spells of few calls: the log has room for a few epochs only.
    FullLog,
    /// All rows are replaced: free lists go through segment after segment.
    Churn,
    /// Few rows come, change, go and come back.
    Dispatch,
}

/// How large a case is, and so how much of it can be explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Up to 3 calls an epoch on 1 or 2 keys: every crash point, every adversary.
    Tiny,
    /// Up to 12 calls on up to 9 keys: every crash point.
    Small,
    /// Up to 200 calls on up to 50 keys: some crash points.
    Large,
}

/// A history with all its choices.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it was made from, and what the explorer's choices follow from.
    pub seed: u64,
    /// How large it is.
    pub size: Size,
    /// How the store is created and first opened.
    pub setup: Setup,
    /// What comes before that, if the store was made by a program with shorter values.
    pub grown: Option<Grown>,
    /// Whether all values have 8 bytes at most, also those of epochs after a recovery.
    pub is_short: bool,
    /// The calls of each epoch.
    pub batches: Vec<Vec<Vec<u8>>>,
    /// How calls are mixed when the store runs on after a recovery.
    pub mix: Mix,
    /// Whether the store is closed at the end.
    pub close: bool,
    /// Whether the schema is changed after that.
    pub changes: bool,
    /// Whether the creation of the store is explored like the rest; else only some points of it,
    /// because every case creates a store in the same way.
    pub creation: bool,
    /// Limits of the device.
    pub image_limit_bytes: u64,
    /// Limits of the device.
    pub log_limit_bytes: u64,
    /// What its epochs are like, and those that follow after a recovery.
    pub habit: Habit,
    /// What is decided about an epoch that a call has ended.
    pub decision: Decision,
}

/// A program of before, with shorter values in some tables: it made the store, ran, and closed
/// it. That is not explored; the open of the next program is, which makes the values longer.
#[derive(Debug, Clone)]
pub struct Grown {
    /// Longest values of its tables.
    pub value_bytes_max: [u32; TABLES_SIZED],
    /// The calls of each of its epochs, with values of at most 8 bytes.
    pub batches: Vec<Vec<Vec<u8>>>,
}

impl Case {
    /// The case of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let size = match random.below(12) {
            0..5 => Size::Tiny,
            5..10 => Size::Small,
            _ => Size::Large,
        };
        let case = if seed % DEFERRED_ONE_IN == DEFERRED_ONE_IN - 1 {
            Self::of_deferred(seed, &mut random)
        } else if seed % FULL_LOG_ONE_IN == FULL_LOG_ONE_IN - 1 {
            Self::of_full_log(seed, size, &mut random)
        } else if seed % CHURN_ONE_IN == CHURN_ONE_IN - 5 {
            Self::of_churn(seed, &mut random)
        } else if seed % TURNS_ONE_IN == TURNS_ONE_IN - 3 {
            Self::alternating(seed, &mut random)
        } else {
            Self::of_size(seed, size, &mut random)
        };
        // Allocation aside, so that all else is what it is without.
        let mut aside = Random::new(seed ^ 0xfa7a1);
        let changes = case.close && Random::new(seed ^ 0x5c4e3a).percent(60);
        let case = Self { changes, ..case };
        let case = match case.habit {
            Habit::Usual | Habit::Dispatch => {
                case.with_longer_values(&mut Random::new(seed ^ 0x6407))
            }
            // These have just the room that they need.
            Habit::FullLog | Habit::Churn => case,
        };
        if aside.below(FATAL_ONE_IN) == 0 { case.with_a_fatal_call(&mut aside) } else { case }
    }

    /// The same case; for a third, of a store whose tables of keys of 8 bytes got longer values.
    /// Rows that are one line are among them.
    #[must_use]
    pub fn with_longer_values(mut self, random: &mut Random) -> Self {
        if !random.percent(33) {
            return self;
        }
        let mut value_bytes_max = self.setup.value_bytes_max;
        for table in [HASHED, ORDERED].map(usize::from) {
            value_bytes_max[table] = random.pick(&[8, 8, 16, 100]);
            // As the table chooses it, or as small as can be.
            self.setup.row_bytes[table] = random.pick(&[0, 64]);
            self.setup.shared_heap_bytes[table] = 0;
        }
        let epochs = random.below(3);
        let batches = (0..epochs).map(|_| batch(random, &self.mix, 4)).collect();
        self.grown = Some(Grown { value_bytes_max, batches: short_batches(batches) });
        self
    }

    /// The same case, but one or two calls of its last epoch end the epoch.
    #[must_use]
    pub fn with_a_fatal_call(mut self, random: &mut Random) -> Self {
        self.decision = random.pick(&[Decision::LeaveOut, Decision::GiveUp]);
        let mix = self.mix;
        if let Some(last) = self.batches.last_mut() {
            for _ in 0..1 + random.below(2) {
                // At the end no thread writes over what it has published.
                let end = last.len() as u64;
                let at = if random.percent(50) { end } else { random.below(end + 1) };
                last.insert(at as usize, fatal(random, &mix));
            }
        }
        self
    }

    /// A case that frees so many slots of one pool and sub-pool that segments of its free lists are
    /// reused, in the second half of its epochs.
    #[must_use]
    pub fn of_churn(seed: u64, random: &mut Random) -> Self {
        let case = Self::of_size(seed, Size::Small, random);
        let setup = Setup {
            workers: if random.percent(80) { 1 } else { 2 },
            segment_bytes: 4096,
            row_bytes: [0, 0, 256, 0],
            shared_heap_bytes: Setup::default().shared_heap_bytes,
            ..case.setup
        };
        let mut spells = Spells::begin(random, case.mix, Habit::Churn);
        let batches = (0..8 + random.below(3)).map(|_| spells.batch(random, 0)).collect();
        let image_limit_bytes = IMAGE_BYTES_EMPTY + 400 * setup.segment_bytes;
        let log_limit_bytes = 64 * 4096;
        let habit = Habit::Churn;
        // Large: few of its many crash points are explored.
        let size = Size::Large;
        Self { size, setup, batches, image_limit_bytes, log_limit_bytes, habit, ..case }
    }

    /// A case of more epochs than others, in which few rows, of the table with indexes above all,
    /// come, change, go and come back while snapshots are held.
    #[must_use]
    pub fn alternating(seed: u64, random: &mut Random) -> Self {
        let case = Self::of_size(seed, Size::Tiny, random);
        let mut spells = Spells::begin(random, case.mix, Habit::Dispatch);
        let batches = (0..6 + random.below(4))
            .map(|_| {
                let calls = random.below(4);
                spells.batch(random, calls)
            })
            .collect();
        let setup = Setup {
            snapshots_every: random.pick(&[1, 1, 2]),
            checkpoint_every: random.pick(&[1, 1, 2, 3]),
            ..case.setup
        };
        let log_limit_bytes = case.log_limit_bytes.max(64 * setup.segment_bytes);
        Self { setup, batches, log_limit_bytes, habit: Habit::Dispatch, ..case }
    }

    /// A case whose log has room for a few epochs. With a short checkpoint interval that is just
    /// enough, but for the calls that are deferred; with a long one the log fills up, most of
    /// the time to its last segment, and only opening the store again empties it. Large cases would
    /// be refused from the first epoch on; small ones take their place.
    #[must_use]
    pub fn of_full_log(seed: u64, size: Size, random: &mut Random) -> Self {
        let case = Self::of_size(seed, size.min(Size::Small), random);
        let checkpoint_every = random.pick(&[1, 1, 2, 3, 10, 10, 10, 10, 10]);
        // The streams of more workers mostly need less than was reserved.
        let workers = if random.percent(90) { 1 } else { case.setup.workers };
        let room_for = checkpoint_every.min(4 + random.below(3));
        let to_the_end = room_for < checkpoint_every && workers == 1 && random.percent(70);
        let setup = Setup { workers, checkpoint_every, ..case.setup };
        // Beside the epochs only a checkpoint needs room, for the calls that are deferred it.
        let deferred_records: &[u64] =
            if room_for < checkpoint_every { &[0, 0, 0, 1, 3] } else { &[0, 1, 1, 2, 4] };
        // Each epoch has its streams and a commit record; an only stream mostly is one with the
        // commit record, for which there must be room nevertheless. The record of the program stays
        // for ever, and epochs cannot have the reserve.
        let of_epochs = match workers as u64 {
            1 => room_for + 1,
            workers => room_for * (workers + 1),
        };
        let segments = u64::from(1 + RESERVE_SEGMENTS) + of_epochs + random.pick(deferred_records);
        let mix = Mix { keys: random.pick(&[1, 2, 4]), lookups: 40, ..case.mix };
        let mut spells = match to_the_end {
            true => Spells::to_the_end(random, mix),
            false => Spells::begin(random, mix, Habit::FullLog),
        };
        // An epoch without calls has no stream, and so would leave a segment over.
        let least = u64::from(to_the_end);
        let batches = (0..room_for + 3 + random.below(4))
            .map(|_| {
                let calls = least + random.below(4 - least);
                let mut batch = spells.batch(random, calls);
                // Needs no more room than it takes, so that it can leave none; a small epoch leaves
                // over what a commit record of its own would need.
                if to_the_end && random.percent(40) {
                    batch.push(for_serial_part(long_call(setup.segment_bytes as usize)));
                    // Replay hands over what the last epoch defers, twice if it is interrupted.
                    if random.percent(50) {
                        batch.extend(stale_look(random, &mix));
                    }
                }
                batch
            })
            .collect();
        let log_limit_bytes = segments * setup.segment_bytes;
        Self { batches, mix, log_limit_bytes, habit: Habit::FullLog, setup, ..case }
    }

    /// A case whose log has room for few epochs, most of which defer calls that need several
    /// segments of it: for the calls, and once more for the next epoch to find them. Where an epoch
    /// is refused they run by themselves.
    #[must_use]
    pub fn of_deferred(seed: u64, random: &mut Random) -> Self {
        let case = Self::of_size(seed, Size::Tiny, random);
        let checkpoint_every = random.pick(&[1, 1, 1, 2, 3]);
        let setup = Setup { workers: 1, checkpoint_every, segment_bytes: 4096, ..case.setup };
        let mix = Mix { keys: random.pick(&[2, 4]), ..case.mix };
        let batches = (0..5 + random.below(4))
            .map(|_| {
                let calls = random.below(3);
                let mut all = batch(random, &mix, calls);
                if random.percent(70) {
                    all.extend(long_stale_looks(random, &mix));
                }
                all
            })
            .collect();
        let segments = u64::from(1 + RESERVE_SEGMENTS) + 3 + random.below(9);
        let log_limit_bytes = segments * setup.segment_bytes;
        Self { batches, mix, log_limit_bytes, habit: Habit::FullLog, setup, ..case }
    }

    /// A case of a size.
    #[must_use]
    pub fn of_size(seed: u64, size: Size, random: &mut Random) -> Self {
        let (keys, calls, epochs): (&[u64], &[u64], u64) = match size {
            Size::Tiny => (&[1, 1, 2], &[1, 2, 3], 2 + random.below(4)),
            Size::Small => (&[1, 2, 4, 9], &[3, 6, 12], 2 + random.below(5)),
            Size::Large => (&[4, 9, 25, 50], &[40, 100, 200], 2 + random.below(3)),
        };
        let mix = Mix {
            keys: random.pick(keys),
            long_values: random.percent(60),
            lookups: random.pick(&[0, 5, 15, 40]),
        };
        let most = random.pick(calls);
        let mut spells = Spells::begin(random, mix, Habit::Usual);
        let batches = (0..epochs)
            .map(|_| {
                let calls = if random.percent(5) { 0 } else { 1 + random.below(most) };
                spells.batch(random, calls)
            })
            .collect();
        let setup = setup(random);
        let segments = random.pick(&[40, 100, 400]) * (1 + u64::from(size == Size::Large));
        // Room for two epochs with their calls to be made again: some are run, some refused.
        let least = u64::from(1 + RESERVE_SEGMENTS) + 2 * (setup.workers as u64 + 2);
        let log_bytes = random.pick(&[12, 20, 64]) * 4096 * (1 + 3 * (most / 40));
        Self {
            seed,
            size,
            batches,
            mix,
            close: random.percent(30),
            changes: false,
            creation: seed.is_multiple_of(32),
            image_limit_bytes: IMAGE_BYTES_EMPTY + segments * setup.segment_bytes,
            log_limit_bytes: log_bytes.max(least * setup.segment_bytes),
            habit: Habit::Usual,
            decision: Decision::LeaveOut,
            setup,
            grown: None,
            is_short: false,
        }
    }
}

/// Makes values of calls short: 8 bytes at most.
pub fn shorten(batches: &mut [Vec<Vec<u8>>]) {
    for call in batches.iter_mut().flatten() {
        *call = edited(call, |step| step.size %= SHORT_SIZES);
    }
}

/// Epochs with values of at most 8 bytes, which leave no deferred call: a schema with some of them
/// does not change.
#[must_use]
pub fn short_batches(mut batches: Vec<Vec<Vec<u8>>>) -> Vec<Vec<Vec<u8>>> {
    shorten(&mut batches);
    if !batches.is_empty() {
        batches.push(Vec::new());
    }
    batches
}

/// The calls of one epoch after the other. If the log is to be full, there are spells of epochs
/// that may defer calls, and spells of epochs that do not: an epoch that may
/// defer calls is refused as long as there is no room for those too, so that only the others
/// fill a log up to its last segment.
pub(super) struct Spells {
    mix: Mix,
    habit: Habit,
    quiet: bool,
    /// Epochs that are left of this spell.
    left: u64,
    /// A quiet spell does not end.
    for_ever: bool,
}

impl Spells {
    pub(super) fn begin(random: &mut Random, mix: Mix, habit: Habit) -> Self {
        let quiet = habit == Habit::FullLog && random.percent(70);
        Self { mix, habit, quiet, left: 0, for_ever: false }
    }

    /// An epoch that defers calls, or none, and then only such that cannot: what was promised to
    /// the record of deferred calls is given to others two epochs later, and they fill the log up
    /// to its last segment.
    fn to_the_end(random: &mut Random, mix: Mix) -> Self {
        let quiet = random.percent(50);
        let left = if quiet { u64::MAX } else { 1 };
        Self { mix, habit: Habit::FullLog, quiet, left, for_ever: true }
    }

    pub(super) fn batch(&mut self, random: &mut Random, calls: u64) -> Vec<Vec<u8>> {
        match self.habit {
            Habit::Churn => return churn(random),
            Habit::Usual => {
                let mut all = batch(random, &self.mix, calls);
                // An epoch without any call stays one.
                if calls > 0 {
                    add_corners(random, &self.mix, &mut all);
                }
                return all;
            }
            Habit::Dispatch => {
                let mut all = turns(random);
                all.extend(batch(random, &self.mix, calls));
                return all;
            }
            Habit::FullLog => {}
        }
        if self.left == 0 {
            self.quiet = !self.quiet;
            self.left = match self.quiet {
                true if self.for_ever => u64::MAX,
                true => 2 + random.below(5),
                false => 1 + random.below(2),
            };
        }
        self.left -= 1;
        let mut all = batch(random, &self.mix, calls);
        if self.quiet {
            // Calls of the serial part are never deferred, so that nothing is promised to them.
            all = all.into_iter().map(for_serial_part).collect();
        }
        if !self.quiet && (self.for_ever || random.percent(75)) {
            match random.percent(LONG_LOOKS_PERCENT) {
                true => all.extend(long_stale_looks(random, &self.mix)),
                false => all.extend(stale_look(random, &self.mix)),
            }
        }
        all
    }
}

fn setup(random: &mut Random) -> Setup {
    let workers = if random.percent(65) { 1 } else { random.pick(&[2, 4]) };
    let segment_bytes = random.pick(&[4096, 4096, 4096, 16 << 10]);
    Setup {
        workers,
        checkpoint_every: random.pick(&[1, 1, 1, 2, 3]),
        // The small one has room for a few values only.
        cache_bytes: random.pick(&[0, 0, 2 << 10, 64 << 10]),
        segment_bytes,
        ..Setup::random(random)
    }
}
