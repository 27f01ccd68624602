//! Every form in which a statement tells its client something: rows, tags, errors of each class,
//! SHOW, cursors, COPY, parts of WITH, all kept or rolled back to a savepoint; in blocks, texts and
//! pipelines at every level, with modes that change between.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sim::history::Random;
use sim::serializable::{Access, Lists, Observed, Outcome, check};

use super::{list, seeds};
use crate::served::Server;
use crate::support::Room;
use crate::wire::{Answer, Wire, flush, run, sync};

const CLIENTS: u64 = 8;
/// Rows that are there from the beginning; COPY adds others.
const HOT: u64 = 4;
/// Transactions of a client.
const TRANSACTIONS: usize = 60;
const LEVELS: &[&str] = &["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
/// The kinds of statements that say something of their row: rows, errors and tags.
const TELLING: [u64; 5] = [0, 3, 6, 7, 8];
/// The kind of a statement that appends and says nothing of its row.
const APPEND: u64 = 13;
/// The steps of a statement that goes beyond the limit.
const MANY_STEPS: u64 = 2_000_000;

/// What all clients share.
struct Common {
    clock: AtomicU64,
    values: AtomicU64,
    /// How many rows there may be.
    rows: AtomicU64,
    /// The lists that were seen last.
    known: Mutex<Lists>,
}

impl Common {
    fn next(counter: &AtomicU64) -> u64 {
        counter.fetch_add(1, Ordering::SeqCst)
    }

    fn known(&self, row: u64) -> Vec<u64> {
        self.known.lock().expect("no client panics with it").get(&row).cloned().unwrap_or_default()
    }

    fn learn(&self, accesses: &[Access]) {
        let mut known = self.known.lock().expect("no client panics with it");
        for access in accesses {
            if let Access::Read { row, seen } = access {
                known.insert(*row, seen.clone());
            }
        }
    }
}

/// What a statement does, and what its end says.
#[derive(Clone)]
enum Kind {
    /// Its rows are the lists of these rows.
    Read(Vec<u64>),
    /// It appends to a row; its rows, if any, are the lists of these.
    Append { row: u64, value: u64, reads: Vec<u64> },
    /// It appends if the row has this list, and the tag says whether.
    AppendIf { row: u64, value: u64, guess: Vec<u64> },
    /// It ends with this code if the row has this list.
    Fails { row: u64, guess: Vec<u64>, code: &'static str },
    /// It says nothing of the rows; a text or pipeline with it is a block.
    Nothing,
}

#[derive(Clone)]
struct Step {
    text: String,
    kind: Kind,
}

fn shown(list: &[u64]) -> String {
    list.iter().map(|value| format!(",{value}")).collect()
}

impl Step {
    /// A statement that can be anywhere.
    fn random(random: &mut Random, common: &Common) -> Step {
        let count = common.rows.load(Ordering::SeqCst);
        let row = if random.percent(90) { random.below(HOT) } else { random.below(count) };
        Step::of(random.below(14), row, common)
    }

    /// The statement of a kind from 0 to 13, about a row.
    fn of(kind: u64, row: u64, common: &Common) -> Step {
        let other = (row + 1) % HOT;
        let guess = common.known(row);
        let guessed = shown(&guess);
        let (text, kind) = match kind {
            0 | 1 => (Step::query(&format!("id = {row}")), Kind::Read(vec![row])),
            2 => (Step::query(&format!("id < {HOT}")), Kind::Read((0..HOT).collect())),
            3 => {
                let condition = format!("id = {row} AND current_setting('timezone') = 'UTC'");
                (Step::query(&condition), Kind::Read(vec![row]))
            }
            4 => ("SHOW timezone".to_owned(), Kind::Nothing),
            5 => ("SELECT count(*) FROM pg_class".to_owned(), Kind::Nothing),
            6 => (
                format!("SELECT 1 / (list <> '{guessed}')::int FROM row WHERE id = {row}"),
                Kind::Fails { row, guess, code: "22012" },
            ),
            7 => (
                format!(
                    "SELECT length(repeat('x', 2000000000 * (list = '{guessed}')::int)) \
                     FROM row WHERE id = {row}"
                ),
                Kind::Fails { row, guess, code: "54000" },
            ),
            8 => {
                let value = Common::next(&common.values);
                let text = format!(
                    "UPDATE row SET list = list || ',{value}' \
                     WHERE id = {row} AND list = '{guessed}'"
                );
                (text, Kind::AppendIf { row, value, guess })
            }
            kind => return Step::append(kind, row % HOT, other, common),
        };
        Step { text, kind }
    }

    fn append(kind: u64, row: u64, other: u64, common: &Common) -> Step {
        let value = Common::next(&common.values);
        let update = format!("UPDATE row SET list = list || ',{value}' WHERE id = {row}");
        let (text, reads) = match kind {
            9 => (format!("WITH w AS ({update} RETURNING id, list) SELECT * FROM w"), vec![row]),
            10 if row != other => {
                let text =
                    format!("WITH w AS ({update}) {}", Step::query(&format!("id = {other}")));
                (text, vec![other])
            }
            11 => (format!("{update} RETURNING id, list"), vec![row]),
            12 => {
                let text = format!(
                    "INSERT INTO row VALUES ({row}, ',{value}') \
                     ON CONFLICT (id) DO UPDATE SET list = row.list || excluded.list"
                );
                (text, vec![])
            }
            _ => (update, vec![]),
        };
        Step { text, kind: Kind::Append { row, value, reads } }
    }

    fn query(condition: &str) -> String {
        format!("SELECT id, list FROM row WHERE {condition}")
    }

    /// Whether it is a part of one call, together with others that are.
    fn is_plain(&self) -> bool {
        !matches!(self.kind, Kind::Nothing) && !self.text.contains("current_setting")
    }

    fn writes(&self) -> bool {
        matches!(self.kind, Kind::Append { .. } | Kind::AppendIf { .. })
    }

    /// What it did, by its answer.
    fn accesses(&self, answer: &Answer) -> Vec<Access> {
        match (&self.kind, answer) {
            (Kind::Read(reads), Answer::Done(rows, _)) => found(reads, rows),
            (Kind::Append { row, value, reads }, Answer::Done(rows, _)) => {
                let append = Access::Append { row: *row, value: *value };
                std::iter::once(append).chain(found(reads, rows)).collect()
            }
            (Kind::AppendIf { row, value, guess }, Answer::Done(_, tag)) if tag == "UPDATE 1" => {
                let read = Access::Read { row: *row, seen: guess.clone() };
                vec![read, Access::Append { row: *row, value: *value }]
            }
            (Kind::Fails { row, guess, code }, Answer::Failed(with)) if code == with => {
                vec![Access::Read { row: *row, seen: guess.clone() }]
            }
            _ => Vec::new(),
        }
    }
}

fn found(reads: &[u64], rows: &[Vec<String>]) -> Vec<Access> {
    let lists: Lists =
        rows.iter().map(|row| (row[0].parse().expect("a number"), list(&row[1]))).collect();
    let read =
        |row: &u64| Access::Read { row: *row, seen: lists.get(row).cloned().unwrap_or_default() };
    reads.iter().map(read).collect()
}

fn appends(accesses: &[Access]) -> bool {
    accesses.iter().any(|access| matches!(access, Access::Append { .. }))
}

/// A block that goes on.
struct Open {
    text: String,
    keeps_snapshot: bool,
    is_read_only: bool,
    /// What each statement did.
    done: Vec<Vec<Access>>,
}

struct Caller<'c> {
    wire: Wire,
    common: &'c Common,
    random: Random,
    name: String,
    /// Its default level.
    level: usize,
    history: Vec<Observed>,
    /// What was met: forms that no transaction had are no test.
    met: BTreeSet<String>,
}

impl Caller<'_> {
    fn steps(&mut self) -> Vec<Step> {
        let count = self.random.pick(&[1, 2, 2, 3, 4]);
        (0..count).map(|_| Step::random(&mut self.random, self.common)).collect()
    }

    fn observe(&mut self, what: &str, began: u64, accesses: Vec<Access>) {
        let (number, ended) = (self.history.len(), Common::next(&self.common.clock));
        let name = format!("{}.{number} `{what}`", self.name);
        self.common.learn(&accesses);
        let outcome = Outcome::Committed;
        self.history.push(Observed { name, began, ended, outcome, accesses });
    }

    /// What was committed: one transaction from its first statement on, or from its first write.
    fn observe_all(&mut self, what: &str, began: u64, is_one: bool, done: Vec<Vec<Access>>) {
        let first_write = done.iter().position(|one| appends(one)).unwrap_or(done.len());
        let mut done = done.into_iter();
        let alone = if is_one { 0 } else { first_write };
        for accesses in done.by_ref().take(alone).filter(|one| !one.is_empty()) {
            self.observe(what, began, accesses);
        }
        let together: Vec<Access> = done.flatten().collect();
        if !together.is_empty() {
            self.observe(what, began, together);
        }
    }

    fn meet(&mut self, what: &str, step: &Step, answer: &Answer) {
        let end = match answer {
            Answer::Failed(code) => code,
            Answer::Done(_, tag) => tag.split(' ').next().expect("a word"),
        };
        let is_told = if step.accesses(answer).is_empty() { "" } else { " told" };
        self.met.insert(format!("{what} {end}{is_told}"));
    }

    /// Statements of a text or pipeline, and its level: that of the session, or another one that
    /// the first of them asks for. What changes the level of the session is about the next one.
    fn steps_at_a_level(&mut self) -> (Vec<Step>, usize) {
        let (mut steps, level) = (self.steps(), self.level);
        let asked = self.random.pick(&[0, 1, 2]);
        let (name, value) = (LEVELS[asked], LEVELS[asked].to_lowercase());
        let (text, level) = match self.random.below(10) {
            0 => (format!("SET TRANSACTION ISOLATION LEVEL {name}"), asked),
            1 => (format!("SET transaction_isolation = '{value}'"), asked),
            2 => (format!("SET LOCAL transaction_isolation = '{value}'"), asked),
            3 => (format!("SET LOCAL default_transaction_isolation = '{value}'"), level),
            _ => return (steps, level),
        };
        steps.insert(0, Step { text, kind: Kind::Nothing });
        (steps, level)
    }

    /// Several statements in one text.
    fn text(&mut self) {
        let is_block = self.random.percent(20);
        let block_level = self.random.pick(&[self.level, 0, 1, 2]);
        let (steps, level) = match is_block {
            true => (self.steps(), block_level),
            false => self.steps_at_a_level(),
        };
        let texts: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
        let text = match is_block {
            true => format!(
                "BEGIN ISOLATION LEVEL {}; {}; COMMIT",
                LEVELS[block_level],
                texts.join("; ")
            ),
            false => texts.join("; "),
        };
        let began = Common::next(&self.common.clock);
        let mut answers = self.wire.text(&text);
        if let Some(Answer::Failed(code)) = answers.last() {
            let is_plain = steps.iter().all(Step::is_plain) && steps.iter().any(Step::writes);
            assert!(code != "40001" || !is_plain, "the server can run it again: {text}");
            if is_block {
                self.wire.text("ROLLBACK");
            }
            return;
        }
        if is_block {
            answers.remove(0);
        }
        let what = format!("{}: {text}", LEVELS[level]);
        let is_one = level > 0;
        let pairs = steps.iter().zip(&answers);
        let done: Vec<_> = pairs.map(|(step, answer)| step.accesses(answer)).collect();
        // A block that writes is one transaction at any level.
        let is_one = is_one || is_block && done.iter().any(|one| appends(one));
        for (step, answer) in steps.iter().zip(&answers) {
            self.meet("text", step, answer);
        }
        self.observe_all(&what, began, is_one, done);
    }

    /// Several statements before one Sync, of which some are answered before it.
    fn pipeline(&mut self) {
        let (steps, level) = self.steps_at_a_level();
        let began = Common::next(&self.common.clock);
        let (mut answers, mut sent, mut what) = (Vec::new(), Vec::new(), String::new());
        // Whether something is answered before the Sync.
        let mut is_parted = false;
        for (at, step) in steps.iter().enumerate() {
            let is_single = matches!(&step.kind, Kind::Read(rows) if rows.len() == 1);
            let rows_max = u32::from(is_single && self.random.percent(20));
            sent.extend(run(&step.text, rows_max));
            is_parted |= rows_max > 0;
            what.push_str(&step.text);
            what.push_str("; ");
            if at + 1 < steps.len() && self.random.percent(30) {
                sent.extend(flush());
                self.wire.send(&std::mem::take(&mut sent));
                while answers.len() <= at && !matches!(answers.last(), Some(Answer::Failed(_))) {
                    answers.extend(self.wire.until(b'C'));
                }
                what.push_str("Flush; ");
                is_parted = true;
            }
        }
        sent.extend(sync());
        self.wire.send(&sent);
        answers.extend(self.wire.until(b'Z'));
        let failed = answers.iter().find_map(|answer| match answer {
            Answer::Failed(code) => Some(code.clone()),
            Answer::Done(..) => None,
        });
        if let Some(code) = failed {
            let is_plain = steps.iter().all(Step::is_plain) && steps.iter().any(Step::writes);
            let is_call = is_plain && !is_parted;
            assert!(code != "40001" || !is_call, "the server can run it again: {what}");
            return;
        }
        assert_eq!(answers.len(), steps.len(), "{what}");
        for (step, answer) in steps.iter().zip(&answers) {
            self.meet("pipeline", step, answer);
        }
        let done = steps.iter().zip(&answers).map(|(step, answer)| step.accesses(answer)).collect();
        let what = format!("pipeline, {}: {what}", LEVELS[level]);
        self.observe_all(&what, began, level > 0, done);
    }

    /// A block that is told of a row and appends to the next one. It has write skew with the blocks
    /// beside it, unless COMMIT compares what it was told.
    fn skewed_block(&mut self) {
        let row = self.random.below(HOT);
        let read = Step::of(0, row, self.common);
        let began = Common::next(&self.common.clock);
        let answers = self.wire.done(&read.text);
        // The guesses of the block are of now.
        self.observe(&read.text, began, read.accesses(&answers[0]));
        let began = Common::next(&self.common.clock);
        let mut open = self.begin();
        let told = Step::of(self.random.pick(&TELLING), row, self.common);
        let append = Step::of(APPEND, (row + 1) % HOT, self.common);
        for step in [told, append] {
            let how = self.random.pick(&[How::Text, How::Message]);
            if !self.step(&mut open, &step, how) {
                self.wire.done("ROLLBACK");
                return;
            }
        }
        self.end(open, began);
    }

    /// A block, statement by statement.
    fn block(&mut self) {
        let began = Common::next(&self.common.clock);
        let mut open = self.begin();
        for _ in 0..self.random.below(5) + 1 {
            if !self.statement(&mut open) {
                self.wire.done("ROLLBACK");
                return;
            }
            if !open.is_read_only && self.random.percent(10) {
                self.control(&mut open, "SET TRANSACTION READ ONLY");
                open.is_read_only = true;
            }
        }
        self.end(open, began);
    }

    fn end(&mut self, open: Open, began: u64) {
        let ended = self.wire.text(self.random.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]));
        let is_committed = match &ended[0] {
            Answer::Done(_, tag) => tag == "COMMIT",
            Answer::Failed(code) => {
                assert!(matches!(&code[..], "40001" | "54001"), "{code}: {}", open.text);
                self.met.insert(format!("commit {code}"));
                false
            }
        };
        if is_committed {
            let is_one = open.keeps_snapshot || open.done.iter().any(|one| appends(one));
            self.observe_all(&open.text, began, is_one, open.done);
        }
    }

    fn begin(&mut self) -> Open {
        let mut level = self.random.pick(&[self.level, 0, 1, 2]);
        let text = match level == self.level {
            true => "BEGIN".to_owned(),
            false => format!("BEGIN ISOLATION LEVEL {}", LEVELS[level]),
        };
        self.wire.done(&text);
        let mut open = Open { text, keeps_snapshot: false, is_read_only: false, done: Vec::new() };
        if self.random.percent(30) {
            level = self.random.pick(&[0, 1, 2]);
            let set = match self.random.percent(50) {
                true => format!("SET TRANSACTION ISOLATION LEVEL {}", LEVELS[level]),
                false => format!("SET transaction_isolation = '{}'", LEVELS[level].to_lowercase()),
            };
            self.control(&mut open, &set);
        }
        open.keeps_snapshot = level > 0;
        open
    }

    fn control(&mut self, open: &mut Open, text: &str) {
        self.wire.done(text);
        open.text.push_str("; ");
        open.text.push_str(text);
    }

    /// A statement of a block, within a savepoint; whether the block goes on.
    fn statement(&mut self, open: &mut Open) -> bool {
        let (step, how) = self.step_of_block();
        if open.is_read_only && (step.writes() || how == How::CopyIn) {
            return true;
        }
        self.step(open, &step, how)
    }

    fn step(&mut self, open: &mut Open, step: &Step, how: How) -> bool {
        self.control(open, "SAVEPOINT s");
        open.text.push_str(&format!("; {how:?} {}", step.text));
        let answer = self.ask(step, how);
        self.meet(&format!("{how:?}"), step, &answer);
        let accesses = step.accesses(&answer);
        self.common.learn(&accesses);
        let is_failed = matches!(answer, Answer::Failed(_));
        if matches!(&answer, Answer::Failed(code) if code == "40001") {
            return false;
        }
        if is_failed || self.random.percent(20) {
            self.control(open, "ROLLBACK TO s");
            // What was read counts, unless it was of what is undone.
            if !appends(&accesses) {
                open.done.push(accesses);
            } else if let Some(read @ Access::Read { .. }) = accesses.first() {
                open.done.push(vec![read.clone()]);
            }
        } else {
            open.done.push(accesses);
        }
        self.control(open, "RELEASE s");
        true
    }

    fn step_of_block(&mut self) -> (Step, How) {
        let row = self.random.below(HOT);
        let text = Step::query(&format!("id = {row}"));
        let kind = Kind::Read(vec![row]);
        match self.random.below(20) {
            0 | 1 => (Step { text, kind }, How::Cursor),
            2 | 3 => (Step { text: format!("COPY ({text}) TO STDOUT"), kind }, How::Text),
            4 => {
                let row = Common::next(&self.common.rows);
                let value = Common::next(&self.common.values);
                let text = format!("{row}\t,{value}\n");
                (Step { text, kind: Kind::Append { row, value, reads: vec![] } }, How::CopyIn)
            }
            5 if self.random.percent(20) => {
                let guess = self.common.known(row);
                let text = format!(
                    "SELECT count(*) FROM row, generate_series(1, CASE WHEN list = '{}' \
                     THEN {MANY_STEPS} ELSE 1 END) WHERE id = {row}",
                    shown(&guess)
                );
                (Step { text, kind: Kind::Fails { row, guess, code: "54001" } }, How::Text)
            }
            kind => {
                let how = if kind % 2 == 0 { How::Text } else { How::Message };
                (Step::random(&mut self.random, self.common), how)
            }
        }
    }

    fn ask(&mut self, step: &Step, how: How) -> Answer {
        let mut answers = match how {
            How::Text => self.wire.text(&step.text),
            How::Message => {
                self.wire.send(&[run(&step.text, 0), sync()].concat());
                self.wire.until(b'Z')
            }
            How::Cursor => {
                let declared = self.wire.text(&format!("DECLARE c CURSOR FOR {}", step.text));
                match &declared[0] {
                    Answer::Failed(_) => declared,
                    Answer::Done(..) => {
                        let fetched = self.wire.done("FETCH ALL FROM c");
                        self.wire.done("CLOSE c");
                        fetched
                    }
                }
            }
            How::CopyIn => self.wire.copy("COPY row FROM STDIN", &step.text),
        };
        assert_eq!(answers.len(), 1, "{}: {answers:?}", step.text);
        answers.remove(0)
    }

    fn set_level(&mut self) {
        self.level = self.random.pick(&[0, 1, 2]);
        let level = LEVELS[self.level];
        let text = match self.random.percent(50) {
            true => format!("SET default_transaction_isolation = '{}'", level.to_lowercase()),
            false => format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}"),
        };
        self.wire.done(&text);
    }

    fn run(mut self) -> (Vec<Observed>, BTreeSet<String>) {
        for _ in 0..TRANSACTIONS {
            if self.random.percent(20) {
                self.set_level();
            }
            match self.random.below(4) {
                0 => self.text(),
                1 => self.pipeline(),
                2 => self.block(),
                _ => self.skewed_block(),
            }
        }
        (self.history, self.met)
    }
}

/// Definitions that say nothing of rows, some of them about the table of all clients.
const DEFINITIONS: &[&str] = &[
    "CREATE TABLE other (id int PRIMARY KEY, n int)",
    "CREATE INDEX row_list ON row (length(list))",
    "CREATE INDEX other_n ON other (n)",
    "ALTER TABLE row ADD CONSTRAINT row_check CHECK (id >= 0)",
    "DROP TABLE other",
    "ALTER TABLE row DROP CONSTRAINT row_check",
    "DROP INDEX row_list",
];
/// Transactions between two of them.
const BETWEEN: u64 = 30;

/// A client that has come to its end, also by a panic.
struct Leaves<'r>(&'r AtomicU64);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Defines until no client is left, in turn with their transactions.
fn define(mut wire: Wire, common: &Common, running: &AtomicU64) {
    for definition in DEFINITIONS.iter().cycle() {
        let next = common.clock.load(Ordering::SeqCst) + 2 * BETWEEN;
        while common.clock.load(Ordering::SeqCst) < next {
            if running.load(Ordering::SeqCst) == 0 {
                return;
            }
            std::thread::yield_now();
        }
        wire.done(definition);
    }
}

/// How a statement of a block is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Text,
    Message,
    Cursor,
    CopyIn,
}

fn history(seed: u64) -> BTreeSet<String> {
    let mut random = Random::new(seed);
    let room = Room::new();
    let server = Server::start(&room.text("store"));
    let mut wire = Wire::connect(&server);
    wire.done("CREATE TABLE row (id int PRIMARY KEY, list text NOT NULL)");
    (0..HOT).for_each(|row| drop(wire.done(&format!("INSERT INTO row VALUES ({row}, '')"))));
    let (clock, values) = (AtomicU64::new(1), AtomicU64::new(1));
    let common = Common { clock, values, rows: AtomicU64::new(HOT), known: Mutex::default() };
    let words: Vec<u64> = (0..CLIENTS).map(|_| random.word()).collect();
    let (mut history, mut met) = (Vec::new(), BTreeSet::new());
    let running = &AtomicU64::new(CLIENTS);
    std::thread::scope(|scope| {
        let (common, server) = (&common, &server);
        let wire = Wire::connect(server);
        let definer = scope.spawn(move || define(wire, common, running));
        let start = |(client, word): (usize, &u64)| {
            let wire = Wire::connect(server);
            let (random, name) = (Random::new(*word), client.to_string());
            let (history, met) = (Vec::new(), BTreeSet::new());
            let caller = Caller { wire, common, random, name, level: 0, history, met };
            scope.spawn(move || {
                let _left = Leaves(running);
                caller.run()
            })
        };
        for running in words.iter().enumerate().map(start).collect::<Vec<_>>() {
            let (own, own_met) = running.join().unwrap_or_else(|_| panic!("seed {seed}"));
            history.extend(own);
            met.extend(own_met);
        }
        definer.join().unwrap_or_else(|_| panic!("seed {seed}"));
    });
    let Answer::Done(rows, _) = wire.done("SELECT id, list FROM row").remove(0) else {
        unreachable!("it was done")
    };
    let last = rows.iter().map(|row| (row[0].parse().expect("a number"), list(&row[1]))).collect();
    eprintln!("seed {seed}: {} transactions", history.len());
    if let Err(what) = check(&history, &last) {
        panic!("seed {seed}: {what}");
    }
    met
}

/// What some transaction of the seeds must have met.
const FORMS: &[&str] = &[
    "text SELECT told",
    "text UPDATE told",
    "text SHOW",
    "text SET",
    "pipeline SET",
    "pipeline SELECT told",
    "pipeline UPDATE told",
    "Text SELECT told",
    "Message SELECT told",
    "Text 22012 told",
    "Message 22012 told",
    "Text 54000 told",
    "Cursor FETCH told",
    "Text COPY told",
    "CopyIn COPY told",
    "commit 40001",
];

#[test]
fn what_any_form_tells_is_strictly_serializable() {
    let mut met = BTreeSet::new();
    for seed in seeds() {
        met.extend(history(seed));
    }
    let missing: Vec<_> = FORMS.iter().filter(|form| !met.contains(**form)).collect();
    assert!(missing.is_empty(), "no transaction met {missing:?}, only {met:?}");
}
