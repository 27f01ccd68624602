//! How many clients and databases the files that the process may open are enough for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Files and sockets beside those of clients: of the store and its copies, of threads, of clients
/// that are told that there are too many, and some to spare.
const OTHERS: u64 = 256;
/// Files of a store that is open.
const FILES_OF_STORE: u64 = 12;

/// Clients at a time, which are not more than were asked for. Allows the process as many files as
/// it may allow itself; an event tells if they are too few. `databases` others may be open.
pub(super) fn connections(asked: u64, databases: usize) -> usize {
    let files = files();
    let of_stores = databases as u64 * FILES_OF_STORE;
    let most = most(files.map(|files| files.saturating_sub(of_stores)), asked);
    if most < asked {
        let files = files.unwrap_or_default();
        warn!(
            "the process may open {files} files, which are enough for {most} clients at a \
             time, not {asked}: allow more (ulimit -n)"
        );
    }
    usize::try_from(most).expect("at most 10,000")
}

/// Databases beside the default one that are open at a time, of at most `most`: they have a quarter
/// of the files. An event tells if they are fewer.
pub(super) fn databases(most: usize) -> usize {
    let Some(files) = files() else { return most };
    let enough = usize::try_from(files / 4 / FILES_OF_STORE).unwrap_or(most).clamp(1, most);
    if enough < most {
        warn!(
            "the process may open {files} files, which are enough for {enough} databases at a \
             time beside nvcaracal, not {most}: allow more (ulimit -n)"
        );
    }
    enough
}

/// The files that the process may open, after it has allowed itself as many as it can; `None` is
/// any number.
fn files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // What could not be raised stays as it is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
    getrlimit(Resource::Nofile).current
}

/// Clients that so many files are enough for; `None` is any number.
fn most(files: Option<u64>, asked: u64) -> u64 {
    let enough = files.map_or(asked, |files| files.saturating_sub(OTHERS).max(files / 4).max(1));
    enough.min(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_files_for_the_store() {
        for (files, asked, expected) in [
            (None, 200, 200),
            (Some(1_024), 200, 200),
            (Some(300), 200, 75),
            (Some(400), 200, 144),
            (Some(64), 200, 16),
            (Some(0), 200, 1),
        ] {
            assert_eq!(most(files, asked), expected, "{files:?} files");
        }
    }
}
