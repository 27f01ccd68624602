//! The comparison: loads and measures databases in interleaved rounds, and checks all of them.

use std::path::Path;

use crate::databases::Database;
use crate::disk;
use crate::link::Link;
use crate::order::{Answer, Finished, Measured, Order};
use crate::peer::{Error, Result};
use crate::report::{AtEnd, Report, Row};
use crate::settings::{Load, Settings};

/// Connects to a database that is not open yet.
pub(crate) type Connect<'c> = &'c mut dyn FnMut(Database) -> Result<Box<dyn Link>>;

/// One database of the comparison.
struct Contestant {
    database: Database,
    link: Option<Box<dyn Link>>,
    load_seconds: Option<f64>,
    /// Why it does not run, if it does not.
    refused: Option<String>,
}

/// Compares databases in a directory that is there.
pub(crate) fn compare(
    settings: &Settings,
    room: &Path,
    connect: Connect<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Report> {
    settings.check()?;
    let mut contestants = Vec::new();
    for &database in &settings.databases {
        tell(&format!("loading {}", database.name()));
        contestants.push(Contestant::load(database, settings, room, connect)?);
    }
    let (rows, fdatasync_ns) = measure_all(settings, room, &mut contestants, tell)?;
    let mut at_end = Vec::new();
    for contestant in &mut contestants {
        tell(&format!("checking {}", contestant.database.name()));
        at_end.push(contestant.finish(settings)?);
    }
    let is_memory = disk::is_memory(room);
    Ok(Report::new(settings, &fdatasync_ns, is_memory, rows, at_end))
}

/// What each measurement of a load came to, for each database.
type Rounds = Vec<Vec<(Measured, u64)>>;

/// All loads, one after the other: in each round all databases, beginning with another one.
fn measure_all(
    settings: &Settings,
    room: &Path,
    contestants: &mut [Contestant],
    tell: &mut dyn FnMut(&str),
) -> Result<(Vec<Row>, Vec<u64>)> {
    let (mut rows, mut syncs_ns) = (Vec::new(), Vec::new());
    for (number, &load) in settings.loads.iter().enumerate() {
        let mut found: Rounds = contestants.iter().map(|_| Vec::new()).collect();
        for round in 0..settings.rounds {
            // Each time anew: a disk is not as fast all the time.
            tell("fdatasync");
            let fdatasync_ns = disk::fdatasync_ns(room)?;
            syncs_ns.push(fdatasync_ns);
            for turn in 0..contestants.len() {
                let at = (turn + round as usize) % contestants.len();
                let contestant = &mut contestants[at];
                let name = contestant.database.name();
                tell(&format!("{name} with {} callers", load.clients));
                let order = Order::Measure {
                    load,
                    operations: settings.operations,
                    time: settings.time,
                    seed: number as u64 * settings.rounds + round,
                };
                if let Some(Answer::Measured(measured)) = contestant.ask(&order, settings)? {
                    found[at].push((measured, fdatasync_ns));
                }
            }
        }
        rows.extend(rows_of(load, contestants, &found));
    }
    Ok((rows, syncs_ns))
}

/// The rows of one load. A database that did not run has one, too.
fn rows_of<'r>(
    load: Load,
    contestants: &'r [Contestant],
    found: &'r Rounds,
) -> impl Iterator<Item = Row> + 'r {
    contestants.iter().zip(found).map(move |(contestant, measured)| {
        let name = contestant.database.version();
        Row::new(name, load, measured, contestant.refused.clone())
    })
}

impl Contestant {
    fn load(
        database: Database,
        settings: &Settings,
        room: &Path,
        connect: Connect<'_>,
    ) -> Result<Self> {
        let link = Some(connect(database)?);
        let mut contestant = Self { database, link, load_seconds: None, refused: None };
        let path = room.join(database.name());
        let order = Order::Load { database, path, shape: settings.shape() };
        if let Some(Answer::Loaded { seconds }) = contestant.ask(&order, settings)? {
            contestant.load_seconds = Some(seconds);
        }
        Ok(contestant)
    }

    /// What it answers; nothing if it does not run.
    fn ask(&mut self, order: &Order, settings: &Settings) -> Result<Option<Answer>> {
        let Some(link) = &mut self.link else { return Ok(None) };
        match link.ask(order) {
            Ok(answer) => Ok(Some(answer)),
            // Not to run where data is larger than memory is a result, and anything else is not.
            Err(Error::Refused(why)) if settings.memory.is_some() => {
                (self.link, self.refused) = (None, Some(why));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Has it closed and checked.
    fn finish(&mut self, settings: &Settings) -> Result<AtEnd> {
        let finished = match self.ask(&Order::Finish, settings)? {
            Some(Answer::Finished(finished)) => Some(finished),
            _ => None,
        };
        Ok(self.at_end(finished))
    }

    fn at_end(&self, finished: Option<Finished>) -> AtEnd {
        let finished = finished.as_ref();
        let of_update = |finished: &Finished| {
            finished.written_bytes.map(|bytes| bytes as f64 / finished.updates.max(1) as f64)
        };
        AtEnd {
            peer: self.database.version(),
            way: self.database.way().into(),
            does_not_run: self.refused.clone(),
            load_seconds: self.load_seconds,
            checked_rows: finished.map(|finished| finished.checked_rows),
            updates: finished.map(|finished| finished.updates),
            written_bytes_per_update: finished.and_then(of_update),
            disk_bytes: finished.map(|finished| finished.disk_bytes),
            closed_disk_bytes: finished.map(|finished| finished.closed_disk_bytes),
        }
    }
}
