//! The explorer: every crash point, every adversary, and recoveries of recoveries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Once};

use pmem::{AllNewest, Killed, Left, Replay, Trace, Traced};
use storage::EpochNumber;

use super::case::{Case, Grown, Habit, Size, Spells, shorten};
use super::choices::{Choice, choices};
use super::counts::Counts;
use super::kill::{CHOICES_OF_FEW, IMAGES_OF_A_KILL, kills};
use super::life::{Known, Life, Plan};
use super::points::{Beginning, Class, DEPTH_MAX, Point, only, points};
use super::verify::{Recovered, Violation, ViolationKind, caught, verify};
use crate::history::{Random, Setup};

/// Of how many images one is checked before it is recovered, too. What the checker sees there it
/// mostly sees afterwards as well.
const CHECK_FIRST_ONE_IN: u64 = 8;

/// One of how many images, by chance, runs on for one to three epochs: mostly smaller ones than
/// those that were lost, in their places.
const BRIEFLY_ON_ONE_IN: u64 = 50;

/// One of how many images that a user had to decide about is recovered again under record.
const NEST_DECIDED_ONE_IN: u64 = 3;

/// Epochs that follow a kill are fewer than this.
const EPOCHS_AFTER_A_KILL: u64 = 5;

/// A store of which all rows are replaced in every epoch runs on for so many at most.
const CHURN_EPOCHS: u64 = 4;

/// Choices of what arrived at a crash point where images are spread over a history: the first is
/// that nothing did that had not to, which shows what was never made durable.
const CHOICES_OF_SPREAD: usize = 2;

/// Images that one point of each class costs, with what follows from them: more or less.
const IMAGES_OF_A_CLASS: u64 = 200;

/// How much is explored.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// Most images of a case.
    pub images_max: u64,
    /// Whether a campaign explores most cases less than that: [`Options::for_seed`].
    pub mixed: bool,
    /// How many crashes deep recoveries are cut, at most [`DEPTH_MAX`].
    pub depth_max: usize,
    /// Epochs that a store runs on after some recoveries, to be cut again; 0: never.
    pub run_on: u64,
    /// One of how many images, by chance, is recovered again under record, to cut its recovery.
    pub nest_one_in: u64,
    /// One of how many images, by chance, runs on.
    pub run_on_one_in: u64,
    /// How often a process is killed in a life, at most; fewer where there are few images.
    pub kills_max: u64,
    /// Whether few images are spread over the whole history: one crash point of each class in each
    /// epoch. Otherwise the points are explored from the first one on, as far as the images go.
    pub spread: bool,
    /// Asked before each image: whether to go on.
    pub go_on: &'o (dyn Fn() -> bool + Sync),
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            images_max: 30_000,
            mixed: false,
            depth_max: DEPTH_MAX,
            run_on: 100,
            nest_one_in: 50,
            run_on_one_in: 1500,
            kills_max: 12,
            spread: false,
            go_on: &|| true,
        }
    }
}

/// One crash on the way to a failure.
#[derive(Debug, Clone)]
pub struct Cut {
    /// Number of events that happened in this life of the store.
    pub position: usize,
    /// Number of events of the whole record.
    pub events: usize,
    /// The event that did not happen any more.
    pub before: String,
    /// Which row of the crash matrix.
    pub class: Class,
    /// How many crashes deep.
    pub depth: usize,
    /// The engine's phase, if an epoch was running.
    pub phase: Option<&'static str>,
    /// What arrived.
    pub choice: Choice,
    /// Epochs that the life ran after it was opened.
    pub epochs: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let life = match (self.depth, self.epochs) {
            (0, _) => "a run".to_string(),
            (depth, 0) => format!("a recovery, {depth} deep"),
            (depth, epochs) => format!("a recovery, {depth} deep, and {epochs} epochs"),
        };
        let phase = self.phase.map_or(String::new(), |phase| format!(" (phase {phase})"));
        write!(
            f,
            "crash in {life}, after {} of {} events, in \"{}\"{phase}, before the {}; {}",
            self.position,
            self.events,
            self.class.name(),
            self.before,
            self.choice
        )
    }
}

/// A violation and how to come to it.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The case.
    pub case: Case,
    /// What was wrong.
    pub violation: Violation,
    /// The crashes, the first one first; none if it failed without any.
    pub cuts: Vec<Cut>,
}

/// Explores the case of a seed.
///
/// # Errors
/// The first violation.
pub fn explore(seed: u64, options: &Options<'_>) -> Result<Counts, Box<Failure>> {
    let mut counts = Counts::default();
    explore_case(&Case::of_seed(seed), options, &mut counts).map(|()| counts)
}

/// Explores a case, and counts what was explored. From the first one on this process uses small
/// pages only, because thousands of small stores are opened.
///
/// # Errors
/// The first violation.
pub fn explore_case(
    case: &Case,
    options: &Options<'_>,
    counts: &mut Counts,
) -> Result<(), Box<Failure>> {
    static SMALL_PAGES: Once = Once::new();
    SMALL_PAGES.call_once(pmem::small_pages_only);
    counts.cases += 1;
    let images_end = counts.images + options.images_max;
    let random = Random::new(case.seed ^ 0xc2a5_4ed5);
    let mut explorer = Explorer {
        case,
        options,
        counts,
        random,
        images_end,
        direct: 0,
        nested: 0,
        cuts: Vec::new(),
        ended: false,
    };
    let Case { setup, batches, close, changes, decision, .. } = case;
    let plan = Plan { setup, batches, close: *close, changes: *changes, decision: *decision };
    let device = Arc::new(explorer.device());
    let explored = explorer.before(&device).and_then(|known| {
        let epoch = known.newest();
        let life = explorer.live(&device, &plan, known)?;
        let opening = if case.grown.is_some() { Class::Opening } else { Class::Creation };
        let (schemas, is_changed) = (only(false), false);
        let (oldest, few) = (epoch, false);
        let beginning = Beginning { oldest, epoch, depth: 0, opening, few, schemas, is_changed };
        explorer.life(&life, beginning)
    });
    explored.map_err(|violation| {
        explorer.counts.violations += 1;
        let Explorer { case, cuts, .. } = explorer;
        Box::new(Failure { case: case.clone(), violation, cuts })
    })
}

struct Explorer<'e> {
    case: &'e Case,
    options: &'e Options<'e>,
    counts: &'e mut Counts,
    random: Random,
    images_end: u64,
    /// Images of the case's own life.
    direct: u64,
    /// Images of the lives that came from those.
    nested: u64,
    /// The crashes on the way to where the explorer is.
    cuts: Vec<Cut>,
    ended: bool,
}

/// What a crash or a kill left, and what it recovers to.
struct Survivor<'s> {
    known: &'s Known,
    left: &'s Left,
    point: &'s Point,
    recovered: Recovered,
    /// What was not durable, if the process was killed.
    killed: Option<Killed>,
    /// Whether only a few points of what follows are explored.
    few: bool,
}

type Done<T> = Result<T, Violation>;

impl Explorer<'_> {
    fn device(&self) -> Traced {
        let Case { image_limit_bytes, log_limit_bytes, .. } = *self.case;
        Traced::new(image_limit_bytes, log_limit_bytes).expect("address space for a small store")
    }

    /// What the program of before did, if there was one.
    fn before(&mut self, device: &Arc<Traced>) -> Done<Known> {
        let case = self.case;
        let Some(Grown { value_bytes_max, batches }) = &case.grown else {
            return Ok(Known::new());
        };
        let setup = Setup { value_bytes_max: *value_bytes_max, ..case.setup };
        let (setup, decision) = (&setup, case.decision);
        let plan = Plan { setup, batches, close: true, changes: false, decision };
        Ok(self.live(device, &plan, Known::new())?.known)
    }

    fn live(&mut self, device: &Arc<Traced>, plan: &Plan<'_>, known: Known) -> Done<Life> {
        let life = caught(|| {
            Life::record(device, plan, known)
                .map_err(|what| Violation::new(ViolationKind::Run, what))
        })?;
        self.counts.lives += 1;
        self.counts.ended += u64::from(life.ended);
        self.counts.epochs += life.epochs;
        self.counts.refused += life.refused;
        self.counts.refused_by_log += life.refused_by_log;
        Ok(life)
    }

    fn life(&mut self, life: &Life, beginning: Beginning) -> Done<()> {
        let points = points(&life.trace, beginning);
        let ended = life.known.ended.filter(|_| life.ended).map(|ended| ended.epoch);
        let chosen = self.choose_points(&points, beginning, ended);
        let kills_max = (self.options.images_max / (2 * IMAGES_OF_A_KILL)).max(1);
        let kills_max = kills_max.min(self.options.kills_max);
        let kills = kills(&points, kills_max, self.cuts.is_empty(), &mut self.random);
        let mut kills_due = 0;
        let mut replay = Replay::new(&life.trace, self.device());
        let mut seen = HashSet::new();
        for (position, (point, chosen)) in points.iter().zip(chosen).enumerate() {
            if chosen {
                self.counts.count_point(point);
                self.point(life, &mut replay, point, beginning.few, &mut seen)?;
            }
            kills_due += usize::from(kills.contains(&position));
            // A kill that finds everything durable is none.
            if kills_due > 0 && replay.undurable_lines() > 0 && point.depth < self.options.depth_max
            {
                kills_due -= 1;
                self.kill(life, &mut replay, point)?;
            }
            if self.ended {
                return Ok(());
            }
            replay.step();
        }
        Ok(())
    }

    /// Which points are explored: of each class and depth all, or a few by chance; where a call has
    /// ended an epoch, those of that epoch.
    fn choose_points(
        &mut self,
        points: &[Point],
        beginning: Beginning,
        ended: Option<EpochNumber>,
    ) -> Vec<bool> {
        if self.options.spread {
            // Half of the images are for what follows from the other half.
            let most = self.options.images_max / (2 * CHOICES_OF_SPREAD as u64);
            return spread(points, most.max(1) as usize, &mut self.random);
        }
        let most = match (self.case.size, beginning.depth) {
            _ if beginning.few => 1,
            (Size::Tiny | Size::Small, 0) => usize::MAX,
            (_, 0) => 12,
            _ => 3,
        };
        // What is left of the images must do for the last points, too.
        let most = most.min((self.options.images_max / IMAGES_OF_A_CLASS).max(2) as usize);
        let mut of_class: HashMap<(Class, usize), Vec<usize>> = HashMap::new();
        let is_meant = |point: &Point| ended.is_none_or(|epoch| point.epochs.1 >= epoch);
        for (position, point) in points.iter().enumerate().filter(|(_, point)| is_meant(point)) {
            of_class.entry((point.class, point.depth)).or_default().push(position);
        }
        let mut chosen = vec![false; points.len()];
        let classes = Class::ALL.into_iter().flat_map(|c| (0..=DEPTH_MAX).map(move |d| (c, d)));
        for key in classes {
            let mut positions = of_class.remove(&key).unwrap_or_default();
            if self.case.habit == Habit::Churn && self.cuts.is_empty() {
                // Before that no segment is reused.
                positions.retain(|&position| position >= points.len() / 2);
            }
            let seldom = key.0 == Class::Creation && !self.case.creation;
            let most = if seldom { most.min(8) } else { most };
            while positions.len() > most {
                positions.swap_remove(self.random.below(positions.len() as u64) as usize);
            }
            positions.into_iter().for_each(|position| chosen[position] = true);
        }
        chosen
    }

    fn point(
        &mut self,
        life: &Life,
        replay: &mut Replay<'_>,
        point: &Point,
        few: bool,
        seen: &mut HashSet<(u128, Class, (EpochNumber, EpochNumber))>,
    ) -> Done<()> {
        let mut list = choices(replay, self.case.size, &mut self.random);
        let is_spread = self.options.spread;
        if few || is_spread {
            let most = if is_spread { CHOICES_OF_SPREAD } else { CHOICES_OF_FEW };
            while list.len() > most {
                list.swap_remove(1 + self.random.below(list.len() as u64 - 1) as usize);
            }
        } else if point.depth > 0 {
            while list.len() > 4 {
                list.swap_remove(self.random.below(list.len() as u64) as usize);
            }
        }
        for choice in list {
            let left = replay.left(&mut *choice.adversary());
            if !seen.insert((left.hash(), point.class, point.epochs)) {
                self.counts.same += 1;
                continue;
            }
            if self.counts.images >= self.images_end || !(self.options.go_on)() {
                self.ended = true;
                return Ok(());
            }
            self.cuts.push(cut(&life.trace, replay.position(), point, choice, life.epochs));
            self.image(&life.known, replay, &left, point)?;
            self.cuts.pop();
        }
        Ok(())
    }

    fn image(
        &mut self,
        known: &Known,
        replay: &mut Replay<'_>,
        left: &Left,
        point: &Point,
    ) -> Done<()> {
        self.counts.count_image(point);
        *(if self.cuts.len() == 1 { &mut self.direct } else { &mut self.nested }) += 1;
        let setup = self.reopened();
        let check_first = self.random.below(CHECK_FIRST_ONE_IN) == 0;
        let recovered = verify(replay.load(left), &setup, known, point, check_first)?;
        self.counts.epochs += recovered.replayed;
        self.counts.seldom.add(&recovered.seldom);
        let Options { depth_max, run_on, nest_one_in, run_on_one_in, .. } = *self.options;
        // Half of the images are enough for what follows from the other half.
        let deeper = point.depth < depth_max && self.nested <= self.direct;
        // Few images need a decision.
        let nest_one_in =
            if recovered.seldom.decided > 0 { NEST_DECIDED_ONE_IN } else { nest_one_in };
        if deeper && recovered.stored && self.random.below(nest_one_in) == 0 {
            let (setup, decision) = (&self.reopened(), self.case.decision);
            let plan = Plan { setup, batches: &[], close: false, changes: false, decision };
            let survivor = Survivor { known, left, point, recovered, killed: None, few: false };
            self.again(replay, survivor, &plan)?;
        }
        let epochs = match run_on {
            0 => 0,
            _ if self.random.below(run_on_one_in) == 0 => run_on,
            _ if self.random.below(BRIEFLY_ON_ONE_IN) == 0 => 1 + self.random.below(3),
            _ => 0,
        };
        if deeper && epochs > 0 {
            let batches = self.batches(epochs.min(run_on));
            let close = self.random.percent(50);
            let (setup, decision) = (&self.reopened(), self.case.decision);
            let plan = Plan { setup, batches: &batches, close, changes: false, decision };
            let few = epochs < run_on;
            let survivor = Survivor { known, left, point, recovered, killed: None, few };
            self.again(replay, survivor, &plan)?;
        }
        Ok(())
    }

    /// Kills the process here: the store is opened, runs a few epochs, and is cut then.
    fn kill(&mut self, life: &Life, replay: &mut Replay<'_>, point: &Point) -> Done<()> {
        if self.counts.images >= self.images_end || !(self.options.go_on)() {
            self.ended = true;
            return Ok(());
        }
        self.counts.kills += 1;
        self.cuts.push(cut(&life.trace, replay.position(), point, Choice::Killed, life.epochs));
        let (left, killed) = (replay.left(&mut AllNewest), replay.killed());
        let setup = self.reopened();
        let recovered = verify(replay.load(&left), &setup, &life.known, point, false)?;
        let epochs = self.random.below(EPOCHS_AFTER_A_KILL);
        let batches = self.batches(epochs);
        let close = self.random.percent(30);
        let (changes, decision) = (false, self.case.decision);
        let plan = Plan { setup: &setup, batches: &batches, close, changes, decision };
        let (known, killed) = (&life.known, Some(killed));
        let survivor = Survivor { known, left: &left, point, recovered, killed, few: true };
        self.again(replay, survivor, &plan)?;
        self.cuts.pop();
        Ok(())
    }

    /// Lives on from what a crash or a kill left, and explores that.
    fn again(
        &mut self,
        replay: &mut Replay<'_>,
        survivor: Survivor<'_>,
        plan: &Plan<'_>,
    ) -> Done<()> {
        let Survivor { known, left, point, recovered, killed, few } = survivor;
        let device = Arc::clone(replay.load(left));
        let mut life = self
            .live(&device, plan, known.up_to(recovered.epoch, recovered.is_changed))
            .map_err(|violation| violation.at(point))?;
        self.counts.seldom.smaller += u64::from(is_smaller(known, &life.known, recovered.epoch));
        drop(device);
        let opening = if point.class == Class::Creation { Class::Creation } else { Class::Opening };
        let (epoch, depth) = (recovered.epoch, point.depth + 1);
        // A kill makes nothing durable: an epoch that no caller was told of may still be lost.
        let oldest = if killed.is_some() { point.epochs.0 } else { epoch };
        let is_changed = recovered.is_changed;
        let schemas = if killed.is_some() { point.schemas } else { only(is_changed) };
        if let Some(killed) = killed {
            life.trace = life.trace.after_kill(killed);
        }
        let beginning = Beginning { oldest, epoch, depth, opening, few, schemas, is_changed };
        self.life(&life, beginning)
    }

    /// Choices for opening the store again: mostly one worker, as long as the case has one.
    fn reopened(&mut self) -> Setup {
        let mut setup = self.case.setup.reopened(&mut self.random);
        if self.case.setup.workers == 1 && !self.random.percent(2) {
            setup.workers = 1;
        }
        setup
    }

    fn batches(&mut self, epochs: u64) -> Vec<Vec<Vec<u8>>> {
        let most = if self.case.size == Size::Large { 20 } else { 4 };
        let mut spells = Spells::begin(&mut self.random, self.case.mix, self.case.habit);
        let epochs =
            if self.case.habit == Habit::Churn { epochs.min(CHURN_EPOCHS) } else { epochs };
        let batch = |_| {
            let calls = self.random.below(most + 1);
            spells.batch(&mut self.random, calls)
        };
        let mut batches: Vec<_> = (0..epochs).map(batch).collect();
        if self.case.is_short {
            shorten(&mut batches);
        }
        batches
    }
}

/// Crash points over the whole of a life: one of each class in each epoch, at most so many.
fn spread(points: &[Point], most: usize, random: &mut Random) -> Vec<bool> {
    let mut places: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (position, point) in points.iter().enumerate() {
        places.entry((point.class, point.depth, point.epochs)).or_default().push(position);
    }
    let any = |positions: Vec<usize>| positions[random.below(positions.len() as u64) as usize];
    let mut left: Vec<usize> = places.into_values().map(any).collect();
    while left.len() > most {
        left.swap_remove(random.below(left.len() as u64) as usize);
    }
    let mut chosen = vec![false; points.len()];
    left.into_iter().for_each(|position| chosen[position] = true);
    chosen
}

/// Whether the first epoch that a life ran took the place of one with more calls.
fn is_smaller(before: &Known, after: &Known, recovered: EpochNumber) -> bool {
    let calls = |known: &Known| known.answers.get(recovered.0 as usize + 1).map(|all| all.len());
    calls(before).zip(calls(after)).is_some_and(|(lost, now)| now < lost)
}

fn cut(trace: &Trace, position: usize, point: &Point, choice: Choice, epochs: u64) -> Cut {
    let events = trace.events();
    let next = events[position..].iter().find(|event| event.kind != pmem::EventKind::Mark);
    Cut {
        position,
        events: events.len(),
        before: next.map_or("end".into(), ToString::to_string),
        class: point.class,
        depth: point.depth,
        phase: point.phase.map(engine::Phase::name),
        choice,
        epochs,
    }
}
