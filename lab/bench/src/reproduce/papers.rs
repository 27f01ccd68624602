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

/// The papers that figures are of.
pub(super) fn papers_of(figures: &[FigureReport]) -> Vec<&'static Paper> {
    let is_of_caracal = |figure: &FigureReport| figure.figure.starts_with("ca");
    let has_nv = figures.iter().any(|figure| !is_of_caracal(figure));
    let has_ca = figures.iter().any(is_of_caracal);
    let papers = [(&NVCARACAL, has_nv), (&CARACAL, has_ca)];
    papers.into_iter().filter_map(|(paper, is_shown)| is_shown.then_some(paper)).collect()
}
