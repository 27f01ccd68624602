//! How long callers wait for one durable update: NVCaracal by its library, beside embedded
//! databases for Rust, on the same disk and in the same run.
//!
//! Each caller is a thread that updates one row at random, waits until that is durable, and goes
//! on. What was chosen for each database is in its file; where it allows several ways, the fastest
//! one that is durable.

#![forbid(unsafe_code)]

mod caracal;
mod fjall_peer;
mod measure;
mod redb_peer;
mod report;
mod sqlite;

use std::path::PathBuf;
use std::time::Duration;

pub use report::{Report, Row, render};

use measure::measure;

/// Why a comparison failed, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    fn of(peer: &str, what: impl std::fmt::Display) -> Self {
        Self(format!("{peer}: {what}"))
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What is compared.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the databases are made, in a temporary directory that is removed.
    pub directory: PathBuf,
    /// How long each of them is measured with each number of callers.
    pub time: Duration,
    /// Rows in each.
    pub rows: u64,
    /// Numbers of callers.
    pub clients: Vec<usize>,
}

impl Settings {
    /// How often [`run`] tells what comes next.
    #[must_use]
    pub fn steps(&self) -> u64 {
        (PEERS + (1 + PEERS) * self.clients.len()) as u64
    }
}

/// Databases that are compared.
const PEERS: usize = 4;

/// Bytes of a value; the first eight are a counter.
const VALUE_BYTES: usize = 100;

/// A database with one table: keys of 8 bytes, values of [`VALUE_BYTES`].
trait Peer: Sync {
    /// Its name and version.
    fn name(&self) -> String;
    /// Makes rows 0 up to `rows`, with counters of 0.
    fn load(&self, rows: u64) -> Result<()>;
    /// Adds 1 to the counter of a row, and returns when that is durable.
    fn update(&self, row: u64) -> Result<()>;
    /// The sum of all counters.
    fn sum(&self) -> Result<u64>;
}

/// The value after an update of its counter.
fn counted(value: &[u8]) -> Option<Vec<u8>> {
    let mut value = value.to_vec();
    let counter = value.first_chunk_mut()?;
    *counter = (u64::from_le_bytes(*counter) + 1).to_le_bytes();
    Some(value)
}

fn counter(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |counter| u64::from_le_bytes(*counter))
}

/// Runs the comparison; `tell` hears what comes next.
///
/// # Errors
/// If a directory cannot be written, a database fails, or one of them does not hold every update
/// that it has answered.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let room = tempfile::Builder::new().prefix("peers-").tempdir_in(&settings.directory);
    let room = room.map_err(|error| Error::of(&settings.directory.display().to_string(), error))?;
    let peers: [Box<dyn Peer>; PEERS] = [
        Box::new(caracal::Caracal::open(&room.path().join("nvcaracal"))?),
        Box::new(redb_peer::Redb::open(&room.path().join("redb"))?),
        Box::new(fjall_peer::Fjall::open(&room.path().join("fjall"))?),
        Box::new(sqlite::Sqlite::open(&room.path().join("sqlite"))?),
    ];
    for peer in &peers {
        tell(&format!("loading {}", peer.name()));
        peer.load(settings.rows)?;
    }
    let (mut rows, mut syncs_ns) = (Vec::new(), Vec::new());
    let mut answered = [0; PEERS];
    for &clients in &settings.clients {
        // Each time anew: a disk is not as fast all the time.
        tell("fdatasync");
        let fdatasync_ns = measure::fdatasync(room.path())?;
        syncs_ns.push(fdatasync_ns);
        for (peer, answered) in peers.iter().zip(&mut answered) {
            tell(&format!("{} with {clients} callers", peer.name()));
            let measured = measure(peer.as_ref(), settings, clients)?;
            *answered += measured.updates;
            rows.push(Row::new(peer.name(), clients, &measured, fdatasync_ns));
        }
    }
    for (peer, answered) in peers.iter().zip(answered) {
        let sum = peer.sum()?;
        if sum != answered {
            let what = format!("{answered} updates were answered, and its rows hold {sum}");
            return Err(Error::of(&peer.name(), what));
        }
    }
    let is_memory = measure::is_memory(room.path());
    syncs_ns.sort_unstable();
    Ok(Report::new(settings, syncs_ns[syncs_ns.len() / 2], is_memory, rows))
}
