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
mod peer;
mod redb_peer;
mod report;
mod sqlite;

pub use peer::{Error, Result, Settings};
pub use report::{Report, Row, render};

use measure::measure;
use peer::{PEERS, Peer};

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
