//! Programs after each other over one store, closed and killed: deploys and rollbacks, each program
//! twice in a row. Each open finds every row with its value, or is refused with every byte as it
//! was (O-111).
//!
//! Programs differ in seven things that the guide lists. Every three programs that differ in one of
//! them, and a covering array over all levels of any two things, run always;
//! `NVCARACAL_ROLLBACKS=all` runs every two programs that differ in two things, to and fro.

mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nvcaracal::Database;
use sim::history::Random;

use crate::common::{copy, refusal};
use programs::{Extra, Indexed, Pay, Program, Thing, Tip};

/// How a program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Killed,
}

/// What a store must have, as its programs were told.
#[derive(Debug, Clone, Default)]
struct Model {
    /// Rows of the tables that are renamed, or have a field, an index or longer values.
    rows: BTreeMap<u64, u64>,
    extra: Option<BTreeMap<u64, u64>>,
    /// Answers to payments, by their idempotency keys.
    paid: BTreeMap<u64, u64>,
    /// What a refusal depends on.
    is_renamed: bool,
    has_field: bool,
    is_long: bool,
    index: Option<Indexed>,
    extra_was_dropped: bool,
    pays_late: bool,
    tips_late: bool,
    /// The program whose calls the log has.
    log: Option<Program>,
}

impl Model {
    /// Whether a program knows all that the store has.
    fn is_known_to(&self, program: Program) -> bool {
        let index = match (self.index, program.index) {
            (None, _) | (_, Indexed::Drops) => true,
            (Some(is), has) if is == has => true,
            // The others keep the first one.
            (Some(Indexed::Plain), Indexed::Unique | Indexed::Other) => true,
            _ => false,
        };
        let extra = match program.extra {
            Extra::Lacks => self.extra.is_none(),
            Extra::Has => !self.extra_was_dropped,
            Extra::Drops | Extra::Ignores => true,
        };
        let pay = !self.pays_late || program.pay != Pay::First;
        let tip = !self.tips_late || program.tip != Tip::Tips;
        let renamed = !self.is_renamed || program.is_renamed;
        let field = !self.has_field || program.has_field;
        let long = !self.is_long || program.is_long;
        index && extra && pay && tip && renamed && field && long
    }

    /// Whether a program has what the calls of the log need.
    fn can_be_replayed_by(&self, program: Program) -> bool {
        let Some(log) = self.log else { return true };
        let index = match log.index {
            Indexed::Lacks | Indexed::Drops => true,
            Indexed::Plain => !matches!(program.index, Indexed::Lacks | Indexed::Drops),
            other => program.index == other,
        };
        let pay = match log.pay {
            Pay::Lacks => true,
            Pay::First => program.pay != Pay::Lacks,
            Pay::Second => program.pay == Pay::Second,
        };
        let tip = match log.tip {
            Tip::Lacks => true,
            Tip::Tips => program.tip != Tip::Lacks,
            Tip::Gives => program.tip == Tip::Gives,
        };
        let extra = log.extra != Extra::Has || program.extra != Extra::Lacks;
        let field = !log.has_field || program.has_field;
        index && pay && tip && extra && field
    }

    /// A program has opened the store.
    fn open(&mut self, program: Program) {
        self.is_renamed |= program.is_renamed;
        self.has_field |= program.has_field;
        self.is_long |= program.is_long;
        self.index = match program.index {
            Indexed::Lacks | Indexed::Drops => None,
            index => Some(index),
        };
        match program.extra {
            Extra::Has => {
                self.extra.get_or_insert_default();
            }
            Extra::Drops => self.extra_was_dropped |= self.extra.take().is_some(),
            Extra::Lacks | Extra::Ignores => {}
        }
        self.pays_late |= program.pay == Pay::Second;
        self.tips_late |= program.tip == Tip::Gives;
        self.log = None;
    }

    /// Compares a store with what it must have.
    fn compare(&self, db: &Database, program: Program) {
        assert_eq!(program.names(db), self.rows);
        assert_eq!(program.typed(db), self.rows);
        assert_eq!(program.indexed(db), self.rows);
        assert_eq!(program.long(db), self.rows);
        if program.extra == Extra::Has {
            assert_eq!(Some(program.extra_rows(db)), self.extra);
        }
        assert_eq!(program.paid(db), self.paid);
        // Tables that the program does not have, too.
        let rows = 4 * self.rows.len() + self.extra.as_ref().map_or(0, BTreeMap::len);
        assert_eq!(db.stats().rows, (rows + self.paid.len()) as u64);
        db.check_indexes().unwrap();
        // Nothing is paid a second time.
        for (&key, &answer) in self.paid.iter().filter(|_| program.pay != Pay::Lacks) {
            assert_eq!(program.pay(db, key), answer);
        }
    }

    /// Calls of a program.
    fn run(&mut self, db: &Database, program: Program) {
        let key = self.rows.len() as u64;
        program.put(db, key, key * 10);
        self.rows.insert(key, key * 10);
        if let (Extra::Has, Some(extra)) = (program.extra, &mut self.extra) {
            program.put_extra(db, key, key + 5);
            extra.insert(key, key + 5);
        }
        let payments = [program.pay != Pay::Lacks, program.tip != Tip::Lacks];
        for (number, _) in payments.into_iter().enumerate().filter(|(_, has)| *has) {
            let key = key * 2 + number as u64;
            let answer = if number == 0 { program.pay(db, key) } else { program.tip(db, key) };
            self.paid.insert(key, answer);
        }
        self.log = Some(program);
    }
}

/// Stores of one story.
struct Life {
    room: tempfile::TempDir,
    store: PathBuf,
    stores: usize,
    model: Model,
    opened: usize,
    refused: usize,
}

impl Life {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let room = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let room = room.unwrap();
        let store = room.path().join("0");
        Self { room, store, stores: 0, model: Model::default(), opened: 0, refused: 0 }
    }

    /// A program comes, twice, if it may.
    fn come(&mut self, program: Program, end: End) {
        let is_known = self.model.is_known_to(program);
        if !is_known || !self.model.can_be_replayed_by(program) {
            let error = refusal(&self.store, program.options());
            assert!(error.is_schema(), "{error}");
            let names_it = error.to_string().contains("does not know");
            assert!(is_known || names_it || self.model.has_other_types(program), "{error}");
            self.refused += 1;
            return;
        }
        for _ in 0..2 {
            let db = program.options().open(&self.store).unwrap_or_else(|error| panic!("{error}"));
            self.model.open(program);
            self.model.compare(&db, program);
            self.model.run(&db, program);
            self.end(db, end);
            self.opened += 1;
        }
    }

    fn end(&mut self, db: Database, end: End) {
        if end == End::Closed {
            db.close().unwrap();
            self.model.log = None;
            return;
        }
        self.stores += 1;
        let killed = self.room.path().join(self.stores.to_string());
        copy(&self.store, &killed);
        drop(db);
        std::fs::remove_dir_all(&self.store).unwrap();
        self.store = killed;
    }
}

impl Model {
    /// Whether rows are of types that the program does not have, which is told otherwise.
    fn has_other_types(&self, program: Program) -> bool {
        (self.has_field && !program.has_field) || (self.is_long && !program.is_long)
    }
}

/// Three programs after each other, and the second one again.
fn deploy(programs: [Program; PROGRAMS], end: End) -> (usize, usize) {
    let mut life = Life::new();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for program in programs.iter().chain(&programs[1..2]) {
            life.come(*program, end);
        }
    }));
    if let Err(panic) = result {
        println!("{programs:#?}, {end:?}, with {:?}", life.model);
        std::panic::resume_unwind(panic);
    }
    (life.opened, life.refused)
}

/// Programs that come after each other.
const PROGRAMS: usize = 3;

/// A thing of one of the programs.
type Place = (Thing, usize);

/// The levels of things of all programs.
type Levels = BTreeMap<Place, usize>;

fn places(things: &[Thing], programs: usize) -> Vec<Place> {
    let of = |thing: &Thing| (0..programs).map(|program| (*thing, program)).collect::<Vec<_>>();
    things.iter().flat_map(of).collect()
}

/// All programs that differ in the given things, so many of each story.
fn all_of(things: &[Thing], programs: usize) -> Vec<Levels> {
    places(things, programs).into_iter().fold(vec![Levels::new()], |found, place| {
        let levels = 0..place.0.levels();
        let with = |level: usize| {
            let of = |of: &Levels| {
                let mut of = of.clone();
                of.insert(place, level);
                of
            };
            found.iter().map(of).collect::<Vec<_>>()
        };
        levels.flat_map(with).collect()
    })
}

/// Few programs, in which any two things of any two programs have all their levels together.
fn covering(random: &mut Random) -> Vec<Levels> {
    let places = places(&Thing::ALL, PROGRAMS);
    let mut open = BTreeSet::new();
    for (at, one) in places.iter().enumerate() {
        for other in &places[..at] {
            let pairs =
                (0..one.0.levels()).flat_map(|a| (0..other.0.levels()).map(move |b| (a, b)));
            open.extend(pairs.map(|(a, b)| ((*one, a), (*other, b))));
        }
    }
    let mut found = Vec::new();
    while let Some(((one, a), (other, b))) = open.first().copied() {
        let tries = (0..20).map(|_| {
            let mut levels = Levels::new();
            for place in &places {
                levels.insert(*place, random.below(place.0.levels() as u64) as usize);
            }
            levels.extend([(one, a), (other, b)]);
            levels
        });
        let covered = |levels: &Levels| {
            let has = |(place, level): (Place, usize)| levels[&place] == level;
            open.iter().filter(|(one, other)| has(*one) && has(*other)).count()
        };
        let tries: Vec<_> = tries.collect();
        let best = tries.into_iter().max_by_key(covered).expect("some tries");
        open.retain(|(one, other)| best[&one.0] != one.1 || best[&other.0] != other.1);
        found.push(best);
    }
    found
}

fn run(all: &[Levels]) {
    let (mut opened, mut refused) = (0, 0);
    for levels in all {
        let of = |program: usize| {
            // The third is the first one, where nothing is said of it.
            let level = |thing| levels.get(&(thing, program)).or(levels.get(&(thing, 0)));
            Program::of(|thing| level(thing).copied().unwrap_or_default())
        };
        for end in [End::Closed, End::Killed] {
            let (more, fewer) = deploy(std::array::from_fn(of), end);
            (opened, refused) = (opened + more, refused + fewer);
        }
    }
    println!("{} stories: {opened} opens, {refused} refusals", all.len());
    assert!(refused > all.len() / 4, "{refused} refusals in {} stories", all.len());
}

/// O-111: every change by itself, in every order.
#[test]
fn o_111_each_change_is_known_or_refused() {
    Thing::ALL.iter().for_each(|thing| run(&all_of(&[*thing], PROGRAMS)));
}

/// O-111: changes together.
#[test]
fn o_111_changes_together_are_known_or_refused() {
    if std::env::var("NVCARACAL_ROLLBACKS").is_ok_and(|which| which == "all") {
        for (at, one) in Thing::ALL.iter().enumerate() {
            Thing::ALL[..at].iter().for_each(|other| run(&all_of(&[*one, *other], 2)));
        }
    }
    let seed = std::env::var("NVCARACAL_FIRST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(1);
    println!("seed {seed}");
    run(&covering(&mut Random::new(seed)));
}
