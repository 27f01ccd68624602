//! Fuzzing the files of a `file:DIR` store.

use engine::EngineError;
use pmem::{AnyDevice, DiskFile, File};

use super::edit::{Editor, Files};
use super::subject::{Case, Subject, Verdict};
use crate::disk::{Arrival, DiskContents, Progress, Story, fast_dir, options};
use crate::history::{Pair, Random, batch, info, to_calls};

const FILES: [DiskFile; 4] = [DiskFile::Meta, DiskFile::Data, DiskFile::Table, DiskFile::Log];

/// Epochs that a store which opened must run.
const EPOCHS_AFTER: u64 = 3;

fn files_of(contents: &DiskContents) -> Files {
    let mut files = Files::default();
    for file in FILES {
        files.0.extend(contents.contents(file).map(|bytes| (file.name(), bytes)));
    }
    files
}

/// A store, and what may become of it.
pub(crate) struct StoreSubject {
    story: Story,
    files: Files,
    editor: Editor,
    progress: Progress,
}

impl StoreSubject {
    pub(crate) fn new(random: &mut Random) -> Result<Self, String> {
        let mut story = Story::random(random, 5);
        // Small segments: more of what is in the files means something.
        story.setup.segment_bytes = 4096;
        story.setup.workers = random.pick(&[1, 1, 2]);
        // What changes rows and no checksum is found by nothing else.
        story.setup.state_hash = true;
        // Who changes pages and their checksums, too, is found out by who looks at the rows.
        story.setup.scans_rows = true;
        let events = story.record()?.events;
        let mut at = if random.percent(50) {
            events.len()
        } else {
            random.below(events.len() as u64) as usize
        };
        // So early that there is no file yet there is nothing to change.
        if files_of(&Progress::after(&events[..at]).1.cut(Arrival::Everything)).0.is_empty() {
            at = events.len();
        }
        let (progress, contents) = Progress::after(&events[..at]);
        let earlier = random.below(at as u64 + 1) as usize;
        let earlier = Progress::after(&events[..earlier]).1.cut(Arrival::Everything);
        let files = files_of(&contents.cut(Arrival::Everything));
        let editor = Editor::new(&files, files_of(&earlier));
        Ok(Self { story, files, editor, progress })
    }

    /// Compares what opened with the oracle; a forged store only has to go on without a bug.
    fn go_on(&self, pair: &mut Pair, forged: bool) -> Result<(), String> {
        let mut random = Random::new(7);
        for _ in 0..EPOCHS_AFTER {
            let mix = crate::history::Mix { keys: 6, long_values: true, lookups: 10 };
            let calls = batch(&mut random, &mix, 4);
            if !forged {
                pair.run(&calls).map_err(|error| format!("afterwards: {error}"))?;
                continue;
            }
            let next = pair.engine.epoch().0 + 1;
            match pair.engine.run_epoch(&to_calls(&calls), info(next)) {
                Err(EngineError::Poisoned(why)) => return Err(format!("a bug afterwards: {why}")),
                Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
        Ok(())
    }
}

impl Subject for StoreSubject {
    fn files(&self) -> (&Files, &Editor) {
        (&self.files, &self.editor)
    }

    fn check(&self, files: &Files, case: &Case) -> Result<Verdict, String> {
        let dir = fast_dir()?;
        files.write_to(dir.path()).map_err(|error| error.to_string())?;
        let device = match File::open(dir.path(), &options()) {
            Ok(device) => AnyDevice::new(device),
            Err(error) => return refused(error.to_string()),
        };
        let engine = match self.story.setup.open(&device) {
            Ok(engine) => engine,
            // A forged log may hold a program that breaks the rules for procedures.
            Err(EngineError::Poisoned(why)) if case.repaired && why.starts_with("call ") => {
                return Ok(Verdict::Forged);
            }
            Err(EngineError::Poisoned(why)) => return Err(format!("a bug in the open: {why}")),
            Err(error) => return refused(error.to_string()),
        };
        let epoch = engine.epoch().0;
        let forged = case.repaired;
        let Some(model) = self.story.models.get(epoch as usize).cloned() else {
            if forged {
                return Ok(Verdict::Forged);
            }
            return Err(format!("opened at epoch {epoch}, which never was"));
        };
        let mut pair = Pair::new(engine, model);
        let same = pair.compare_state();
        let verdict = match same {
            Ok(()) if epoch < self.progress.answered => Verdict::Older,
            Ok(()) => Verdict::Right,
            Err(_) if forged => Verdict::Forged,
            Err(error) => return Err(error),
        };
        self.go_on(&mut pair, forged)?;
        Ok(verdict)
    }
}

/// O-54: an error says something.
fn refused(error: String) -> Result<Verdict, String> {
    if error.len() < 10 || error.contains("panicked") {
        return Err(format!("an error that says nothing of use: {error:?}"));
    }
    Ok(Verdict::Refused)
}
