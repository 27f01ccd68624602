//! The process of a database: opens it, says what it holds, and lets callers use it, with closes
//! between, until the power is cut.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{Phase, Said, Task};
use super::verify::{Found, verify};
use crate::databases;
use crate::host::end_with_parent;
use crate::peer::{Error, Peer, Result};

/// Does one task, a line of JSON, and says what it does, until the power is cut.
///
/// # Errors
/// If the task cannot be read. What the database fails with is said, and no error.
pub fn serve_until_cut(mut orders: impl BufRead, says: impl Write + Send) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| Error::of("a task", error);
    end_with_parent();
    let mut line = String::new();
    orders.read_line(&mut line).map_err(|error| failed(&error))?;
    let task: Task = serde_json::from_str(&line).map_err(|error| failed(&error))?;
    let says = Says(Mutex::new(says));
    if let Err(error) = run(&task, &says) {
        says.say(&Said::Failed(error))?;
    }
    Ok(())
}

/// The way to the process that cuts the power, which is on no file system.
struct Says<W>(Mutex<W>);

impl<W: Write> Says<W> {
    fn say(&self, said: &Said) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| Error::of("a process", error);
        let mut line = serde_json::to_vec(said).map_err(|error| failed(&error))?;
        line.push(b'\n');
        let mut to = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        to.write_all(&line).and_then(|()| to.flush()).map_err(|error| failed(&error))
    }
}

fn run<W: Write + Send>(task: &Task, says: &Says<W>) -> Result<()> {
    let open = || {
        says.say(&Said::Phase(Phase::Opening))?;
        databases::open(task.database, &task.path, task.plan.shape)
    };
    let mut peer = open()?;
    says.say(&Said::Phase(Phase::Checking))?;
    let begun = begin(task, peer.as_ref(), says)?;
    let Some((mut counts, run_ms)) = begun.zip(task.run_ms) else { return peer.close() };
    loop {
        says.say(&Said::Phase(Phase::Running))?;
        call(task, peer.as_ref(), &mut counts, says, Duration::from_millis(run_ms))?;
        says.say(&Said::Phase(Phase::Closing))?;
        peer.close()?;
        peer = open()?;
    }
}

/// Says what the database holds, and makes its rows if it was never said that they are there; how
/// many calls of each caller took place. None if some rows were made and others were not, which
/// takes several transactions.
fn begin<W: Write>(task: &Task, peer: &dyn Peer, says: &Says<W>) -> Result<Option<Vec<u64>>> {
    peer.check()?;
    let found = verify(peer, &task.plan, &task.known)?;
    if !task.is_loaded && (1..task.plan.shape.rows).contains(&found.rows) {
        says.say(&Said::Partial)?;
        return Ok(None);
    }
    if !found.counts.is_empty() {
        let counts = found.counts.clone();
        says.say(&Said::Verified(found))?;
        return Ok(Some(counts));
    }
    if task.is_loaded {
        let wrong = vec!["no rows are there".to_string()];
        says.say(&Said::Verified(Found { wrong, ..found }))?;
        return Err(Error::lost(task.database.name(), "no rows are there"));
    }
    peer.load()?;
    says.say(&Said::Loaded)?;
    Ok(Some(vec![0; task.plan.callers as usize]))
}

/// Lets all callers call for a time.
fn call<W: Write + Send>(
    task: &Task,
    peer: &dyn Peer,
    counts: &mut [u64],
    says: &Says<W>,
    time: Duration,
) -> Result<()> {
    let until = Instant::now() + time;
    let is_over = AtomicBool::new(false);
    let run = |caller: u64, count: &mut u64| -> Result<()> {
        let mut session = peer.caller()?;
        let mut call = Vec::new();
        while Instant::now() < until && !is_over.load(Ordering::Relaxed) {
            task.plan.call(caller, *count + 1, &mut call);
            session.transact(&call)?;
            *count += 1;
            says.say(&Said::Answered { caller, number: *count })?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let (run, is_over) = (&run, &is_over);
        let callers: Vec<_> = (0..)
            .zip(counts)
            .map(|(caller, count)| {
                scope.spawn(move || {
                    let ran = run(caller, count);
                    is_over.fetch_or(ran.is_err(), Ordering::Relaxed);
                    ran
                })
            })
            .collect();
        let panicked = |_| Err(Error::Failed("a caller panicked".into()));
        let ran: Vec<_> =
            callers.into_iter().map(|of| of.join().unwrap_or_else(panicked)).collect();
        ran.into_iter().collect()
    })
}
