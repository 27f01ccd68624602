//! What accesses are for: lines that reach the device by what was stored in them, and what the
//! parts of an engine take.
//!
//! A line belongs to the structure that stored to it since it was last written; of several the
//! first of [`Part::ALL`] counts, so that a mark of a slot's state counts only where nothing else
//! of the line changed. What is read, written and computed meanwhile is of the running *task*.

use std::time::Instant;

/// A structure that lines belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Slots of tuples.
    Tuple,
    /// Slots of long values.
    Field,
    /// Nodes of trees, and filters.
    Index,
    /// Pages of copy-on-write trees, in memory.
    Page,
    /// Entries of a log: in a file, or in memory.
    Log,
    /// The word that says which entries count.
    LogHead,
    /// Records that wait for their group.
    LogBuffer,
    /// Files but for logs.
    File,
    /// Directories, and records of batches.
    Other,
    /// Nothing but the state of a slot.
    Mark,
}

impl Part {
    /// All, in the order in which they claim a line.
    pub const ALL: [Self; 10] = [
        Self::Tuple,
        Self::Field,
        Self::Index,
        Self::Page,
        Self::Log,
        Self::LogHead,
        Self::LogBuffer,
        Self::File,
        Self::Other,
        Self::Mark,
    ];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tuple => "tuples",
            Self::Field => "fields",
            Self::Index => "index",
            Self::Page => "pages",
            Self::Log => "log",
            Self::LogHead => "log_head",
            Self::LogBuffer => "log_buffer",
            Self::File => "files",
            Self::Other => "other",
            Self::Mark => "marks",
        }
    }

    /// The task that it is for, unless another one runs.
    fn task(self) -> Task {
        match self {
            Self::Tuple | Self::Field | Self::File | Self::Mark => Task::Storage,
            Self::Index | Self::Page => Task::Index,
            Self::Log | Self::LogHead | Self::LogBuffer => Task::Recovery,
            Self::Other => Task::Other,
        }
    }
}

/// What an engine is at, as the paper's 5.5 divides its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Tuples, the allocator, files.
    Storage,
    /// What makes changes durable: logs, checkpoints, commits of directories.
    Recovery,
    /// Trees and filters.
    Index,
    /// The rest, and compaction.
    Other,
}

impl Task {
    /// All.
    pub const ALL: [Self; 4] = [Self::Storage, Self::Recovery, Self::Index, Self::Other];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Recovery => "recovery",
            Self::Index => "index",
            Self::Other => "other",
        }
    }
}

/// The structures that stored to a line: a bit for each.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored(u16);

impl Stored {
    pub(super) fn add(&mut self, part: Part) {
        self.0 |= 1 << part as u16;
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn owner(self) -> Part {
        Part::ALL[self.0.trailing_zeros() as usize]
    }
}

/// How lines of a structure came to the device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct WrittenLines {
    /// Flushed.
    pub flushed: u64,
    /// Pushed out of the modelled cache.
    pub pushed_out: u64,
    /// Stored past the cache.
    pub past_cache: u64,
}

/// What a task took.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// Lines read from the device.
    pub lines_read: u64,
    /// Lines written to it.
    pub lines_written: u64,
    /// Nanoseconds, if that is measured.
    pub ns: u64,
}

/// The counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Ledger {
    written: [WrittenLines; Part::ALL.len()],
    spent: [Spent; Task::ALL.len()],
    waits: u64,
}

impl Ledger {
    /// How often the processor waited for lines, if those that one access missed come at once.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// Lines of a structure that were written.
    #[must_use]
    pub fn written(&self, part: Part) -> WrittenLines {
        self.written[part as usize]
    }

    /// What a task took.
    #[must_use]
    pub fn spent(&self, task: Task) -> Spent {
        self.spent[task as usize]
    }

    /// What was added since an earlier look.
    #[must_use]
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut new = self.clone();
        new.waits -= earlier.waits;
        for (new, old) in new.written.iter_mut().zip(&earlier.written) {
            new.flushed -= old.flushed;
            new.pushed_out -= old.pushed_out;
            new.past_cache -= old.past_cache;
        }
        for (new, old) in new.spent.iter_mut().zip(&earlier.spent) {
            new.lines_read -= old.lines_read;
            new.lines_written -= old.lines_written;
            new.ns -= old.ns;
        }
        new
    }
}

/// What runs now, and the counts so far.
#[derive(Debug)]
pub(super) struct Clerk {
    part: Part,
    /// The task that runs, whatever the part.
    task: Option<Task>,
    /// When the task began, if time is measured.
    since: Option<Instant>,
    ledger: Ledger,
}

impl Clerk {
    pub(super) fn new(is_timed: bool) -> Self {
        let since = is_timed.then(Instant::now);
        Self { part: Part::Other, task: None, since, ledger: Ledger::default() }
    }

    pub(super) fn part(&self) -> Part {
        self.part
    }

    /// The counts, with the time of the running task.
    pub(super) fn ledger(&self) -> Ledger {
        let mut ledger = self.ledger.clone();
        if let Some(since) = self.since {
            ledger.spent[self.running() as usize].ns += since.elapsed().as_nanos() as u64;
        }
        ledger
    }

    fn running(&self) -> Task {
        self.task.unwrap_or_else(|| self.part.task())
    }

    fn spent(&mut self) -> &mut Spent {
        &mut self.ledger.spent[self.running() as usize]
    }

    fn end_time(&mut self) {
        if let Some(since) = self.since {
            let now = Instant::now();
            self.spent().ns += now.duration_since(since).as_nanos() as u64;
            self.since = Some(now);
        }
    }

    /// Changes the structure; the one before.
    pub(super) fn enter(&mut self, part: Part) -> Part {
        self.end_time();
        std::mem::replace(&mut self.part, part)
    }

    /// Begins a task, or ends it; the one before.
    pub(super) fn begin(&mut self, task: Option<Task>) -> Option<Task> {
        self.end_time();
        std::mem::replace(&mut self.task, task)
    }

    pub(super) fn read(&mut self) {
        self.spent().lines_read += 1;
    }

    /// An access missed lines, which come in so many goes.
    pub(super) fn waited(&mut self, times: u64) {
        self.ledger.waits += times;
    }

    pub(super) fn flushed(&mut self, line: Stored) {
        self.ledger.written[line.owner() as usize].flushed += 1;
        self.spent().lines_written += 1;
    }

    pub(super) fn pushed_out(&mut self, line: Stored) {
        self.ledger.written[line.owner() as usize].pushed_out += 1;
        self.spent().lines_written += 1;
    }

    pub(super) fn past_cache(&mut self) {
        self.ledger.written[self.part as usize].past_cache += 1;
        self.spent().lines_written += 1;
    }
}
