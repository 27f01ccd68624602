//! Power cuts and kills at any call of a run, and again at any call of the recovery from them.

use super::contents::{Arrival, DiskContents};
use super::hook::Lab;
use super::recover::recover;
use super::report::{Options, Report};
use super::story::{Progress, Recording, Story, fast_dir, open_device};
use crate::history::Random;

/// Tries `options.cuts` cuts of a recorded run.
pub(crate) fn explore_cuts(
    story: &Story,
    recording: &Recording,
    random: &mut Random,
    options: &Options,
    report: &mut Report,
) -> Result<(), String> {
    for _ in 0..options.cuts {
        let (at, progress, contents) = recording.any_cut(random);
        let depth = random.pick(&[0, 0, 1, 1, 2, 3]);
        let seed = random.word();
        let cut = Cut { story, contents, progress, depth };
        cut.explore(&mut Random::new(seed), options, report).map_err(|error| {
            let (end, setup) = (recording.events.len(), story.setup);
            format!("cut at {at} of {end}, {depth} more in recovery, {setup:?}: {error}")
        })?;
    }
    Ok(())
}

/// How many of a hundred cuts of large snapshots lose one sector.
const ONE_LOST_PERCENT: u64 = 40;

/// Tries cuts where a snapshot of the image is between its first page and its root.
pub(crate) fn explore_snapshots(
    story: &Story,
    recording: &Recording,
    random: &mut Random,
    options: &Options,
    report: &mut Report,
) -> Result<(), String> {
    for number in 0..options.cuts {
        let (at, progress, mut contents) = match number % 2 {
            0 => recording.cut_before_root(random),
            _ => recording.cut_in_pages(random),
        };
        if random.percent(ONE_LOST_PERCENT) {
            // Of thousands of sectors other arrivals seldom leave all but a few.
            contents = contents.cut(Arrival::OneLost(random.below(contents.units().max(1))));
        }
        let depth = random.pick(&[0, 0, 1]);
        let cut = Cut { story, contents, progress, depth };
        cut.explore(random, options, report).map_err(|error| {
            let end = recording.events.len();
            format!("cut of a snapshot at {at} of {end}, {depth} more in recovery: {error}")
        })?;
    }
    Ok(())
}

/// Every cut between two calls, and again in the recovery from it.
#[cfg(test)]
pub(crate) fn every_cut(
    story: &Story,
    recording: &Recording,
    report: &mut Report,
) -> Result<(), String> {
    let options = Options::default();
    let (mut progress, mut contents) = (Progress::default(), DiskContents::default());
    for (at, event) in recording.events.iter().enumerate() {
        for depth in [0, 1] {
            let mut random = Random::new(at as u64 * 2 + depth);
            let cut = Cut { story, contents: contents.clone(), progress, depth };
            cut.explore(&mut random, &options, report)
                .map_err(|error| format!("cut at {at}, depth {depth}: {error}"))?;
        }
        progress.follow(event, &mut contents);
    }
    Ok(())
}

/// A moment at which the power is cut or the process killed.
struct Cut<'a> {
    story: &'a Story,
    contents: DiskContents,
    progress: Progress,
    /// How many recoveries are cut too.
    depth: u64,
}

impl Cut<'_> {
    fn explore(
        mut self,
        random: &mut Random,
        options: &Options,
        report: &mut Report,
    ) -> Result<(), String> {
        for level in 0..self.depth {
            self.cut_recovery(random, report)
                .map_err(|error| format!("recovery {} that is cut: {error}", level + 1))?;
        }
        let (left, how) = self.left(random, report);
        let dir = fast_dir()?;
        left.write_to(dir.path()).map_err(|error| format!("write what is left: {error}"))?;
        report.images += 1;
        let result = recover(dir.path(), self.story, self.progress, random);
        result.map(drop).map_err(|error| {
            let kept = options.keep.then(|| keep(&left)).flatten();
            format!("{how}: {error}{}", kept.unwrap_or_default())
        })
    }

    /// What the files hold after a power cut or a kill. After a kill they show every write, but
    /// what was not synced is not on the device: a power cut can still take it back.
    fn left(&mut self, random: &mut Random, report: &mut Report) -> (DiskContents, String) {
        if random.percent(25) {
            report.kills += 1;
            return (self.contents.cut(Arrival::Everything), "killed".into());
        }
        report.power_cuts += 1;
        let arrival = Arrival::random(random, self.contents.units());
        self.contents = self.contents.cut(arrival);
        (self.contents.clone(), format!("{arrival:?} arrived"))
    }

    /// Opens what is left and cuts that, after any of its calls.
    fn cut_recovery(&mut self, random: &mut Random, report: &mut Report) -> Result<(), String> {
        let (left, how) = self.left(random, report);
        let dir = fast_dir()?;
        left.write_to(dir.path()).map_err(|error| format!("write what is left: {error}"))?;
        report.images += 1;
        let lab = Lab::recording();
        let device =
            open_device(dir.path(), Some(lab.clone())).map_err(|e| format!("{how}: {e}"))?;
        let setup = self.story.setup.reopened(random);
        let engine = setup.open(&device).map_err(|error| format!("{how}: open: {error}"))?;
        let recovered = engine.epoch().0;
        drop((engine, device));
        let events = lab.events();
        let at = random.below(events.len() as u64 + 1) as usize;
        for event in &events[..at] {
            self.progress.follow(event, &mut self.contents);
        }
        if at == events.len() {
            // A caller was told that the store is at this epoch.
            self.progress.opened = true;
            self.progress.answered = self.progress.answered.max(recovered);
        }
        Ok(())
    }
}

/// Saves what failed for those who want to look at it; says where.
fn keep(left: &DiskContents) -> Option<String> {
    let dir = fast_dir().ok()?.keep();
    left.write_to(&dir).ok()?;
    Some(format!(" (kept in {})", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O-25, O-56: no call of a small history is left out.
    #[test]
    fn o_25_every_call_of_a_small_history() {
        let mut random = Random::new(3);
        let mut story = Story::random(&mut random, 1);
        story.setup.segment_bytes = 4096;
        let recording = story.record().unwrap();
        let mut report = Report::default();
        every_cut(&story, &recording, &mut report).unwrap();
        assert!(report.images > 150, "{report:?}");
    }
}
