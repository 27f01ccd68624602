//! A device whose power is cut, or whose process is killed, after each event of a run.

use std::sync::Arc;

use pmem::{Adversary, AllNewest, AllOldest, OneLineEarly, OneLineLate, Random, Replay};
use pmem::{Trace, Traced};

pub(crate) fn device() -> Traced {
    pmem::small_pages_only();
    Traced::new(4 << 20, 64 * 4096).unwrap()
}

/// What a run did to a device.
pub(crate) fn recorded(device: &Arc<Traced>, run: impl FnOnce(&Arc<Traced>)) -> Trace {
    device.record();
    run(device);
    device.take_trace()
}

/// What may be left of a run whose power was cut: for each number of events that had happened, a
/// few choices of what arrived. `check` may have the same image as often as it likes.
pub(crate) fn each_cut(
    trace: &Trace,
    mut check: impl FnMut(usize, &mut dyn FnMut() -> Arc<Traced>),
) {
    let mut replay = Replay::new(trace, device());
    loop {
        let mut choices: Vec<Box<dyn Adversary>> = vec![Box::new(AllOldest), Box::new(AllNewest)];
        let lines = replay.undurable_lines();
        for line in [0, lines.saturating_sub(1)].into_iter().take(lines.min(2) as usize) {
            choices.push(Box::new(OneLineEarly(line)));
            choices.push(Box::new(OneLineLate(line)));
        }
        choices.extend((0..lines.min(2)).map(|seed| Box::new(Random::new(seed)) as _));
        for mut choice in choices {
            let left = replay.left(&mut *choice);
            check(replay.position(), &mut || Arc::clone(replay.load(&left)));
        }
        if replay.step().is_none() {
            return;
        }
    }
}

/// Kills the process of a run after each number of events that made a difference. The next one does
/// what `live` says, and then the power is cut: nothing arrived that had not to.
pub(crate) fn each_kill(
    trace: &Trace,
    live: impl Fn(&Arc<Traced>),
    check: impl Fn(usize, &Arc<Traced>),
) {
    let mut replay = Replay::new(trace, device());
    let mut kills = 0;
    while replay.step().is_some() {
        if replay.undurable_lines() == 0 {
            continue;
        }
        kills += 1;
        let (left, killed) = (replay.left(&mut AllNewest), replay.killed());
        let life = recorded(replay.load(&left), &live).after_kill(killed);
        let mut later = Replay::new(&life, device());
        while later.step().is_some() {}
        let left = later.left(&mut AllOldest);
        check(replay.position(), later.load(&left));
    }
    assert!(kills > 10, "{kills} kills");
}
