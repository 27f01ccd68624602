//! The simulated disk below a database of the library: its calls are recorded, and at any of them
//! the power can be cut or the process killed.

use std::path::Path;
use std::sync::Arc;

use pmem::DiskHook;

use super::contents::{Arrival, DiskContents};
use super::hook::{Event, Lab};
use crate::history::Random;

/// One of how many crashes is a kill, in a hundred.
const KILLS: u64 = 30;

/// The disk of one database, from one open to the next.
#[derive(Debug, Default)]
pub struct Disk {
    lab: Arc<Lab>,
    /// What it held when it was opened.
    begun: DiskContents,
}

impl Disk {
    /// What records the calls of the device.
    #[must_use]
    pub fn hook(&self) -> Arc<dyn DiskHook> {
        Arc::clone(&self.lab) as Arc<dyn DiskHook>
    }

    /// Changes that were recorded so far.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.lab.events_count()
    }

    /// Ends the run after so many changes: by a power cut, or by a kill, after which the files show
    /// every change. Writes what is left into an empty directory. The disk that goes on from there
    /// can still lose what was not synced.
    ///
    /// # Errors
    /// What the file system says.
    pub fn crash(&self, at: usize, random: &mut Random, dir: &Path) -> std::io::Result<Self> {
        let mut contents = self.begun.clone();
        for event in &self.lab.events()[..at] {
            if let Event::Change(file, change) = event {
                contents.change(*file, change);
            }
        }
        let (left, begun) = match random.percent(KILLS) {
            true => (contents.cut(Arrival::Everything), contents),
            false => {
                let left = contents.cut(Arrival::random(random, contents.units()));
                (left.clone(), left)
            }
        };
        left.write_to(dir)?;
        Ok(Self { lab: Arc::default(), begun })
    }

    /// The disk after a run that ended well.
    #[must_use]
    pub fn after(&self) -> Self {
        let mut begun = self.begun.clone();
        for event in self.lab.events() {
            if let Event::Change(file, change) = event {
                begun.change(file, &change);
            }
        }
        Self { lab: Arc::default(), begun }
    }
}
