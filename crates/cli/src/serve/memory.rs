//! How the memory that the process may take is shared by statements and the store.

use std::time::{Duration, Instant};

use pmem::control_group;
use server::store::Store;

use crate::args::ServeArguments;
use crate::args::limits::LimitArguments;
use crate::output::Failure;

/// The part of the memory that is for statements, if nothing else is asked for.
const PART: u64 = 4;
/// What statements get at least.
const STATEMENT_BYTES_MIN: u64 = 1 << 24;
/// What a store gets at least, as the ranges of the options say.
const STORE_BYTES_MIN: u64 = 1 << 24;

/// What the program takes itself, and statements beyond their part while freed memory is on its way
/// back to the system.
const PROGRAM_BYTES: u64 = 1 << 26;

/// What decides about the shares.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// What the machine has.
    machine: Option<u64>,
    /// What the control group of the process has, if that is less.
    group: Option<u64>,
    /// `--memory-limit-bytes`
    limit: Option<u64>,
    /// `--statement-memory-bytes`
    statements: Option<u64>,
    /// `--image-limit-bytes`
    image: Option<u64>,
}

/// The memory of statements and of the store, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// For all statements together.
    pub(super) statements: usize,
    /// For a store that may be larger; `None` if all of it is in memory.
    pub(super) limit: Option<u64>,
    /// What the store may grow to; `None` if it may have any size.
    pub(super) image: Option<u64>,
}

impl Shares {
    /// The shares that the arguments ask for, within what the machine and the process's control
    /// group have.
    ///
    /// # Errors
    /// If statements would leave too little of the limit to the store.
    pub(super) fn of(arguments: &ServeArguments) -> Result<Self, Failure> {
        let limits = &arguments.limits;
        Self::divided(Asked {
            machine: control_group::machine_bytes(),
            group: control_group::limit_bytes(),
            limit: limits.memory_limit_bytes,
            statements: arguments.statement_memory_bytes,
            image: limits.image_limit_bytes,
        })
    }

    fn divided(asked: Asked) -> Result<Self, Failure> {
        let all = [asked.limit, asked.group, asked.machine].into_iter().flatten().min();
        // Where the system says nothing a gigabyte is not much.
        let part = all.map_or(1 << 30, |all| (all / PART).max(STATEMENT_BYTES_MIN));
        let statements = asked.statements.unwrap_or(part);
        let left = |of: u64| of.saturating_sub(statements).max(STORE_BYTES_MIN);
        if let Some(limit) = asked.limit {
            check_serves(limit, statements)?;
        }
        let whole = asked.group.filter(|_| asked.limit.is_none());
        Ok(Self {
            statements: usize::try_from(statements).unwrap_or(usize::MAX),
            limit: asked.limit.map(left),
            image: asked.image.or(whole.map(|group| image_within(left(group)))),
        })
    }

    /// What is said of them when the server is ready.
    pub(super) fn plain(&self) -> String {
        let statements = self.statements >> 20;
        let image = self.image.map(|bytes| format!(", at most {} MiB of data", bytes >> 20));
        format!("{statements} MiB of memory for statements{}", image.unwrap_or_default())
    }
}

/// How many parts of the memory of stores the default database of a folder has, of
/// [`FOLDER_PARTS`]; each other one that is open has one.
const DEFAULT_PARTS: u64 = 4;
/// In how many parts the memory of stores is divided.
const FOLDER_PARTS: u64 = 8;
/// How many databases of a folder are open at a time where memory has no limit.
const OPEN_MAX: usize = 64;

/// What the databases of a folder have. The memory of statements is that of all.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FolderShares {
    /// The default database's.
    pub(super) default: Shares,
    /// Each other database's.
    pub(super) others: Shares,
    /// How many are open at a time.
    pub(super) open_max: usize,
}

impl FolderShares {
    /// Divides what one store would have. A size that was asked for is that of each database.
    ///
    /// # Errors
    /// If a database would have too little.
    pub(super) fn of(whole: &Shares, limits: &LimitArguments) -> Result<Self, Failure> {
        let least = FOLDER_PARTS * STORE_BYTES_MIN;
        if let (Some(asked), Some(limit)) = (limits.memory_limit_bytes, whole.limit)
            && limit < least
        {
            return Err(Failure::usage(format!(
                "--memory-limit-bytes {asked} leaves {limit} bytes to the databases, which need \
                 {least}: one has {STORE_BYTES_MIN} at least"
            )));
        }
        let is_asked = limits.image_limit_bytes.is_some();
        let image_of = |parts: u64| {
            let part = |image: u64| (image / FOLDER_PARTS * parts).max(STORE_BYTES_MIN);
            if is_asked { whole.image } else { whole.image.map(part) }
        };
        let shares = |parts: u64| Shares {
            statements: whole.statements,
            limit: whole.limit.map(|limit| limit / FOLDER_PARTS * parts),
            image: image_of(parts),
        };
        let is_limited = whole.limit.is_some() || whole.image.is_some() && !is_asked;
        let others = (FOLDER_PARTS - DEFAULT_PARTS) as usize;
        Ok(Self {
            default: shares(DEFAULT_PARTS),
            others: shares(1),
            open_max: if is_limited { 1 + others } else { OPEN_MAX },
        })
    }
}

/// Refuses a limit of which statements would leave too little to the store.
fn check_serves(limit: u64, statements: u64) -> Result<(), Failure> {
    let least = statements.saturating_add(STORE_BYTES_MIN);
    if least <= limit {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--memory-limit-bytes {limit} leaves less than {STORE_BYTES_MIN} bytes to the store, \
         because {statements} are for statements: the least is {least}, or with \
         --statement-memory-bytes {STATEMENT_BYTES_MIN}, {}",
        STATEMENT_BYTES_MIN + STORE_BYTES_MIN
    )))
}

/// The rows and values that a store may have where `bytes` are left for it and the program: the
/// rest is for its indexes, and for what grows with the work. A store that is full refuses what
/// would make it larger; one that took more would be killed by the system.
fn image_within(bytes: u64) -> u64 {
    (bytes.saturating_sub(PROGRAM_BYTES) / 8 * 5).max(STORE_BYTES_MIN)
}

/// Gives the memory of statements and calls that have ended back to the system.
pub(super) struct GiveBack {
    store: Store,
    /// The most that statements had since the last time, in bytes.
    most: usize,
    /// The least that the allocator had of freed memory since the last time.
    freed: u32,
    /// When that was.
    last: Instant,
}

impl GiveBack {
    /// How much less statements have before it is worth the time that it takes.
    const BYTES_MIN: usize = 8 << 20;
    /// How often at most.
    const PAUSE: Duration = Duration::from_secs(1);

    pub(super) fn of(store: &Store) -> Self {
        Self { store: store.clone(), most: 0, freed: 0, last: Instant::now() }
    }

    /// Looks whether it is worth it now.
    pub(super) fn look(&mut self) {
        let bytes = self.store.statement_memory();
        self.most = self.most.max(bytes);
        if self.last.elapsed() < Self::PAUSE {
            return;
        }
        self.last = Instant::now();
        // Calls and messages are not among statements.
        let more = pmem::freed_bytes().wrapping_sub(self.freed).cast_signed();
        if more < 0 {
            self.freed = self.freed.wrapping_add_signed(more);
        }
        if self.most - bytes >= Self::BYTES_MIN || more >= Self::BYTES_MIN as i32 {
            self.store.reclaim_memory();
            (self.most, self.freed) = (bytes, pmem::freed_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MACHINE: Asked =
        Asked { machine: Some(24 * GIB), group: None, limit: None, statements: None, image: None };

    #[track_caller]
    fn check(asked: Asked, statements: u64, limit: Option<u64>, image: Option<u64>) {
        let shares = Shares::divided(asked).unwrap();
        assert_eq!(shares, Shares { statements: statements as usize, limit, image });
    }

    #[test]
    fn statements_have_a_quarter_unless_they_are_given_another_part() {
        check(MACHINE, 6 * GIB, None, None);
        check(Asked::default(), GIB, None, None);
        let limit = Some(4 * GIB);
        check(Asked { limit, ..MACHINE }, GIB, Some(3 * GIB), None);
        let statements = Some(GIB / 2);
        check(Asked { limit, statements, ..MACHINE }, GIB / 2, Some(7 * GIB / 2), None);
        check(Asked { statements, image: Some(GIB), ..MACHINE }, GIB / 2, None, Some(GIB));
    }

    #[test]
    fn a_control_group_bounds_statements_and_data() {
        let grouped = Asked { group: Some(4 * GIB), ..MACHINE };
        check(grouped, GIB, None, Some((3 * GIB - PROGRAM_BYTES) / 8 * 5));
        check(Asked { image: Some(GIB), ..grouped }, GIB, None, Some(GIB));
        check(Asked { limit: Some(2 * GIB), ..grouped }, GIB / 2, Some(3 * GIB / 2), None);
        let told = Shares::divided(grouped).unwrap().plain();
        assert_eq!(told, "1024 MiB of memory for statements, at most 1880 MiB of data");
    }

    #[test]
    fn databases_of_a_folder_share_memory() {
        let mut limits = LimitArguments {
            image_limit_bytes: None,
            memory_limit_bytes: Some(4 * GIB),
            log_limit_bytes: GIB,
        };
        let divided = |asked, limits: &LimitArguments| {
            FolderShares::of(&Shares::divided(asked).unwrap(), limits)
        };
        let limited = Asked { limit: limits.memory_limit_bytes, ..MACHINE };
        let found = divided(limited, &limits).unwrap();
        assert_eq!(found.default.limit, Some(3 * GIB / 2));
        assert_eq!((found.others.limit, found.open_max), (Some(3 * GIB / 8), 5));
        assert_eq!(found.others.statements, GIB as usize);
        limits.memory_limit_bytes = Some(1 << 26);
        let refused = divided(Asked { limit: Some(1 << 26), ..MACHINE }, &limits).unwrap_err();
        assert!(refused.messages[0].contains("which need 134217728"), "{refused:?}");
        limits.memory_limit_bytes = None;
        let free = divided(MACHINE, &limits).unwrap();
        assert_eq!((free.default.limit, free.others.image, free.open_max), (None, None, 64));
        let grouped = divided(Asked { group: Some(GIB), ..MACHINE }, &limits).unwrap();
        assert_eq!((grouped.others.limit, grouped.open_max), (None, 5));
        assert!(grouped.others.image < grouped.default.image);
        limits.image_limit_bytes = Some(GIB);
        let asked = divided(Asked { image: Some(GIB), ..MACHINE }, &limits).unwrap();
        assert_eq!((asked.others.image, asked.open_max), (Some(GIB), 64));
    }

    #[test]
    fn a_small_limit_leaves_the_store_what_it_needs() {
        let limit = Some(1 << 25);
        check(Asked { limit, ..MACHINE }, 1 << 24, Some(1 << 24), None);
        check(Asked { machine: Some(1 << 20), ..MACHINE }, 1 << 24, None, None);
        for limit in [1 << 24, (1 << 25) - 1] {
            let refused = Shares::divided(Asked { limit: Some(limit), ..MACHINE }).unwrap_err();
            assert_eq!(refused.code, 2);
            assert!(refused.messages[0].contains("the least is 33554432"), "{refused:?}");
        }
        for statements in [1 << 25, u64::MAX] {
            let asked = Asked { limit, statements: Some(statements), ..MACHINE };
            let refused = Shares::divided(asked).unwrap_err();
            assert_eq!(refused.code, 2);
            assert!(refused.messages[0].contains("leaves less than"), "{refused:?}");
        }
    }
}
