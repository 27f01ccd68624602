//! The papers whose figures are made again: what readers who do not know them are told.

use super::report::FigureReport;

/// Words and what they mean.
pub(super) type Terms = &'static [(&'static str, &'static str)];

/// A paper.
pub(super) struct Paper {
    /// What its system is called.
    pub(super) system: &'static str,
    pub(super) title: &'static str,
    pub(super) published: &'static str,
    /// Where its experiments ran.
    pub(super) machine: &'static str,
    /// How the sizes of runs here are to its own.
    pub(super) sizes: &'static str,
    /// Words that it uses.
    pub(super) words: Terms,
    /// Engines that it compares.
    pub(super) designs: Terms,
}

const NVCARACAL: Paper = Paper {
    system: "NVCaracal",
    title: "Integrating Non-Volatile Main Memory in a Deterministic Database",
    published: "EuroSys '23",
    machine: "8 cores of an Intel Xeon Silver 4215, 96 GB of DRAM, 256 GB of Intel Optane \
              Persistent Memory",
    sizes: "Sizes are smaller than in the paper unless the scale is full; contention is that of \
            the paper: as many updates of a row in an epoch where keys are uniform (6 in 100), and \
            about as many of a hot row as make the same share of versions transient. The paper \
            runs 49 epochs of 100,000 transactions.",
    words: &[
        ("Epoch", "transactions that are ordered together, and run and made durable together."),
        ("Transient version", "a value that the same epoch overwrites again; kept in DRAM only."),
        (
            "Persistent version",
            "the last value of a row in an epoch; written to persistent memory.",
        ),
        ("Input log", "the calls of an epoch, from which a crashed epoch is run again."),
        (
            "Minor, major collection",
            "freeing a row's old version when the row is written next, or at the beginning of the \
             next epoch.",
        ),
        ("Cached version", "a copy of a row in DRAM that saves reads of persistent memory."),
        ("Contention", "how much transactions update the same few rows (hot rows)."),
    ],
    designs: &[
        ("NVCaracal", "logs inputs; transient versions in DRAM, final ones in persistent memory."),
        ("no-logging", "the same without the input log; cannot recover."),
        ("all-DRAM", "the same wholly in DRAM; cannot recover."),
        (
            "hybrid",
            "no log; every version in persistent memory, version arrays and a cache in DRAM.",
        ),
        ("all-NVMM", "no log; versions and version arrays in persistent memory."),
        (
            "Zen",
            "no epochs and no log; a transaction's rows are written to new places in persistent \
             memory. With optimistic (OCC) or multi-version (MVCC) concurrency control.",
        ),
        ("write-behind log", "changes are written first, then a log of which transactions count."),
    ],
};

const CARACAL: Paper = Paper {
    system: "Caracal",
    title: "Caracal: Contention Management with Deterministic Concurrency Control",
    published: "SOSP '21",
    machine: "32 cores of four Intel Xeon E5-4620, 512 GB of DRAM",
    sizes: "The paper does not give the transactions of its epochs: they last 40 to 60 ms of \
            Caracal, from which about 23,000 follow. Epochs and tables are smaller here, unless \
            the scale is full, and the threshold of split-on-demand with them.",
    words: &[
        ("Pending version", "the place of a value that a transaction has yet to write."),
        (
            "Batch append",
            "pending versions of a row that several transactions write wait in buffers, from which \
             one thread makes the row's sorted array; without it each takes the row's lock.",
        ),
        (
            "Split-on-demand",
            "updates of rows with at least so many versions in an epoch (the threshold) are \
             pieces, which run apart from their transactions, on few threads.",
        ),
        ("Bin packing", "all pieces of such a row run on one thread."),
        (
            "Skew, contention",
            "keys by Zipf's distribution; 7 of 10 keys of a transaction are of 77 rows.",
        ),
    ],
    designs: &[
        (
            "Caracal",
            "this project's engine in DRAM without a log: all calls declare their writes, all \
             threads make sorted arrays of pending versions, then all threads run calls. Batch \
             append makes a row's array on one thread; pieces of contended rows are split off.",
        ),
        ("Bohm", "as Caracal, but the owner of a key makes its versions."),
        ("Granola", "each thread runs the calls of its partition in order; one version."),
        ("PWV", "as Granola, in the order of a dependency graph of each partition."),
        ("Calvin", "one thread requests the locks of all calls in order; one version."),
        ("serial execution", "one thread runs all calls."),
        (
            "model",
            "a simulation of an epoch on more cores than there are. What its steps cost is \
             measured here; nothing else of it is.",
        ),
    ],
};

const ARULRAJ: Paper = Paper {
    system: "six storage engines",
    title: "Let's Talk About Storage & Recovery Methods for Non-Volatile Memory Database Systems",
    published: "SIGMOD '15",
    machine: "8 cores of an Intel Xeon E5-4620 with a hardware emulator of persistent memory, \
              loads of 160 to 1,280 ns, stores at 9.5 GB/s",
    sizes: "Tuples and transactions are fewer than in the paper unless the scale is full; the \
            modelled cache of a partition has a hundredth of its tuples, as in the paper. \
            Throughput is that of one partition by cost: processor time measured in DRAM, and \
            device time by what the modelled cache missed and wrote back.",
    words: &[
        ("Partition", "a part of the data with a thread of its own; nothing conflicts."),
        ("Tuple", "a row of ten columns of 100 bytes."),
        ("Group commit", "transactions whose log is made durable by one sync, and answered then."),
        ("Checkpoint", "a compressed copy of all tuples in a file; the log before it is cut."),
        ("MemTable", "the newest changes of an LSM tree, in memory; when full it is a run."),
    ],
    designs: &[
        ("InP", "updates in place in memory; a log and checkpoints in files."),
        ("CoW", "copies of pages with tuples in them, in a file; no log."),
        ("Log", "an LSM tree of files, and a log."),
        ("NVM-InP", "updates in place; a log of pointers in persistent memory, which undoes."),
        ("NVM-CoW", "copies of tuples and of pages with their addresses; no log."),
        ("NVM-Log", "an LSM tree of MemTables in persistent memory; a log of pointers."),
    ],
};

const DBX: Paper = Paper {
    system: "DBXN",
    title: "Reducing Transaction Processing Latency in Hardware Transactional Memory-based \
            Database with Non-volatile Memory",
    published: "International Journal of Software and Informatics 12(1), 2022",
    machine: "10 cores of an Intel Xeon Gold 5215M with restricted transactional memory, 192 GB of \
              DRAM, 750 GB of Intel Optane Persistent Memory",
    sizes: "Workers are those of this command, warehouses fewer than in the paper unless the scale \
            is full. Atomic regions are software here, with a model of what would abort them; the \
            device takes what the paper's Table 2 has for accesses of 64 bytes. Throughput and \
            latency are by cost: of the time that processors ran, in which is that of the device, \
            with the wait for a group (half of it) or an epoch (one and a half, for the one before \
            is running when a call comes).",
    words: &[
        ("Atomic region", "code whose loads and stores take effect at once, or not at all."),
        ("Parity version", "a row's version, odd until the row's log record is durable."),
        ("Group", "transactions whose log records are written and made durable together."),
        ("Epoch", "calls that NVCaracal orders, runs and makes durable together."),
        ("By cost", "from processor time, not from a clock that counts when others ran, too."),
    ],
    designs: &[
        ("DBX-DRAM", "optimistic, commits in atomic regions; keeps nothing."),
        ("DBX-NVM, DBX-Disk", "the same, and a thread writes its log in groups."),
        ("DBX-naive", "a log record for each transaction, under its locks."),
        ("DBXN", "a log record for each transaction, behind its region: parity versions."),
        ("DBXN-NVM", "the same with rows and indexes in persistent memory."),
        ("Pisces", "snapshot isolation, at most two versions, all in persistent memory."),
        ("NVCaracal", "this project's engine, in epochs."),
    ],
};

/// The papers that figures are of.
pub(super) fn papers_of(figures: &[FigureReport]) -> Vec<&'static Paper> {
    let is_of = |paper: &str| {
        figures.iter().any(|figure| match paper {
            "" => !["ca", "ar", "dbx"].iter().any(|other| figure.figure.starts_with(other)),
            prefix => figure.figure.starts_with(prefix),
        })
    };
    let papers = [(&NVCARACAL, ""), (&CARACAL, "ca"), (&ARULRAJ, "ar"), (&DBX, "dbx")];
    papers.into_iter().filter_map(|(paper, prefix)| is_of(prefix).then_some(paper)).collect()
}
