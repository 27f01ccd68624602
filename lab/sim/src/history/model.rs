//! The oracle: runs the same programs one after the other over sorted maps. It knows no versions,
//! workers, caches or devices, only what a transaction means (docs: "What a transaction means").

use std::collections::BTreeMap;

use engine::{Abort, EpochInfo, PieceResult, Stop};
use storage::TableId;
use storage::{StateHash, row_hash};

use super::indexes;
use super::pieces::{self, RunningPiece};
use super::program::{
    self, Bounds, Declaring, Ending, Entries, INDEXED, Op, Program, ROW_TABLES, Rows, Running,
    SEQUENCES, Step, VALUE_BYTES_MAX, has_long_keys, is_serial,
};

/// What must become of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// With this output.
    Committed(Vec<u8>),
    /// With this code.
    Aborted(u32),
    /// Its reconnaissance was stale, or it wrote what it had not declared; it runs first in the
    /// next epoch.
    Deferred,
    /// Failed, with an answer that says this.
    Failed(&'static str),
}

const PANICKED: &str = "panicked";
const LEFT_OUT: &str = "a verdict in the log";
/// What a deferred call says for which there was no space by itself.
pub const REFUSED: &str = "it was deferred and then refused";

/// By which the seed of an epoch becomes that of its calls.
const SEED_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

type Table = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a call has written, by table and key.
type Writes = BTreeMap<(u8, Vec<u8>), Option<Vec<u8>>>;

/// The state after an epoch; by default that of an empty store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// Last finished epoch.
    pub epoch: u64,
    /// Rows by key.
    pub tables: [Table; ROW_TABLES],
    /// The next number of each sequence.
    pub sequences: BTreeMap<u64, u64>,
    /// Calls that are deferred to the next epoch.
    pub deferred_calls: Vec<Vec<u8>>,
}

/// What a declaration read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Point(u8, Vec<u8>, Option<Vec<u8>>),
    Scan(u8, Vec<u8>, Vec<u8>, usize, Rows),
    Index(u16, Vec<u8>, Vec<u8>, usize, Entries),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Read,
    Update,
    Insert,
    Piece,
}

/// One call on its way through an epoch.
#[derive(Debug, Default)]
struct Call {
    sequences: Vec<(u64, bool)>,
    allocation: Vec<u64>,
    seen: Vec<Seen>,
    declared: BTreeMap<(u8, Vec<u8>), Option<Kind>>,
    ranges: Vec<(u8, Vec<u8>, Vec<u8>)>,
    /// Rows that its pieces update, of which each may be contended.
    pieces: Vec<(u8, Vec<u8>)>,
    mistake: Option<&'static str>,
    early: Option<Expected>,
    /// It runs in the serial part.
    is_serial: bool,
}

/// What all calls of an epoch share.
struct InEpoch<'m> {
    before: &'m Model,
    timestamp_ns: u64,
}

/// The numbers of an epoch's calls, in their serial order.
pub fn serial_order(deferred: usize, calls: &[Vec<u8>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..deferred).collect();
    for serial in [true, false] {
        let of_part = (0..calls.len()).filter(|&at| is_serial(&calls[at]) == serial);
        order.extend(of_part.map(|at| deferred + at));
    }
    order
}

/// What declarations see: one of the serial part what those before it left, any other the end of
/// the epoch before.
#[derive(Clone, Copy)]
struct Seeing<'m> {
    now: &'m Model,
    /// The end of the epoch before, where sequences start.
    before: &'m Model,
    /// Where indexes are looked at: in the parallel part, behind the serial part.
    indexes: &'m Model,
}

fn declare(seeing: Seeing<'_>, program: &Program, call: &mut Call) {
    if call.early.is_none() {
        let ending = program::declare(&program.declares, &mut Declaration { seeing, call });
        call.early = early(ending, call.mistake.take());
    }
}

/// What the outside world says in an epoch.
pub fn info(epoch: u64) -> EpochInfo {
    EpochInfo { timestamp_ns: epoch * 1000 + 7, seed: epoch ^ 0x55 }
}

impl Model {
    /// Runs the next epoch: first what the last one deferred, then those of `calls` that are for
    /// the serial part, then the others. The answers are in the order of their numbers.
    pub fn run(&mut self, calls: &[Vec<u8>], timestamp_ns: u64) -> Vec<Expected> {
        let deferred = std::mem::take(&mut self.deferred_calls);
        self.run_with(&deferred, calls, timestamp_ns)
    }

    /// Runs an epoch of the first so many deferred calls; the others stay deferred. If there was no
    /// space for the only one, which the engine says, it fails.
    pub fn run_deferred(
        &mut self,
        count: usize,
        is_refused: bool,
        timestamp_ns: u64,
    ) -> Vec<Expected> {
        let deferred: Vec<Vec<u8>> = self.deferred_calls.drain(..count).collect();
        if is_refused {
            self.epoch += 1;
            return vec![Expected::Failed(REFUSED)];
        }
        self.run_with(&deferred, &[], timestamp_ns)
    }

    fn run_with(
        &mut self,
        deferred: &[Vec<u8>],
        calls: &[Vec<u8>],
        timestamp_ns: u64,
    ) -> Vec<Expected> {
        self.epoch += 1;
        let before = self.clone();
        let positions = serial_order(deferred.len(), calls);
        let all: Vec<&Vec<u8>> = deferred.iter().chain(calls).collect();
        let serial = deferred.len() + calls.iter().filter(|call| is_serial(call)).count();
        let mut expected = vec![Expected::Deferred; all.len()];
        let epoch = InEpoch { before: &before, timestamp_ns };
        let (of_serial_part, others) = positions.split_at(serial);
        for (position, &number) in of_serial_part.iter().enumerate() {
            let program = Program::decode(all[number]);
            expected[number] = self.run_serial(&epoch, &program, position);
        }
        let programs: Vec<Program> = others.iter().map(|&n| Program::decode(all[n])).collect();
        let behind = self.clone();
        let seeing = Seeing { now: &before, before: &before, indexes: &behind };
        let mut on_the_way: Vec<Call> = programs.iter().map(|p| self.allocate(seeing, p)).collect();
        for (program, call) in programs.iter().zip(&mut on_the_way) {
            declare(seeing, program, call);
        }
        for (position, (program, call)) in (serial..).zip(programs.iter().zip(on_the_way)) {
            let number = positions[position];
            expected[number] = self.execute(&epoch, program, call, position);
            if expected[number] == Expected::Deferred {
                self.deferred_calls.push(all[number].clone());
            }
        }
        expected
    }

    /// A call of the serial part: its declaration sees what those before it left.
    fn run_serial(&mut self, epoch: &InEpoch<'_>, program: &Program, position: usize) -> Expected {
        let now = self.clone();
        let seeing = Seeing { now: &now, before: epoch.before, indexes: &now };
        let mut call = self.allocate(seeing, program);
        declare(seeing, program, &mut call);
        call.seen.clear();
        call.is_serial = true;
        self.execute(epoch, program, call, position)
    }

    /// Step one: a call that ends here takes nothing, any other keeps its numbers, whatever
    /// follows.
    fn allocate(&mut self, seeing: Seeing<'_>, program: &Program) -> Call {
        let mut call = Call::default();
        if program.is_fatal() {
            return Call { early: Some(Expected::Failed(LEFT_OUT)), ..call };
        }
        if program.sequences.is_empty() {
            return call;
        }
        let mut declaration = Declaration { seeing, call: &mut call };
        let ending = program::declare(&program.sequences, &mut declaration);
        call.early = early(ending, call.mistake.take());
        if call.early.is_none() {
            for (sequence, peek) in std::mem::take(&mut call.sequences) {
                if peek {
                    call.allocation.push(self.sequences.get(&sequence).copied().unwrap_or(0));
                    continue;
                }
                let next = self.sequences.entry(sequence).or_default();
                call.allocation.push(*next);
                *next += 1;
            }
        }
        call
    }

    fn execute(
        &mut self,
        epoch: &InEpoch<'_>,
        program: &Program,
        call: Call,
        position: usize,
    ) -> Expected {
        if !call.seen.iter().all(|seen| self.holds(seen)) {
            return Expected::Deferred;
        }
        if let Some(answer) = call.early {
            return answer;
        }
        let serial_id = self.epoch << 24 | position as u64;
        let seed = info(self.epoch).seed ^ serial_id.wrapping_mul(SEED_FACTOR);
        let info = [serial_id, epoch.timestamp_ns, seed];
        let mut running = Transaction {
            before: epoch.before,
            now: self,
            program,
            call: &call,
            own: BTreeMap::new(),
            out: vec![],
            committed: false,
            info,
        };
        let ending = program::run(&program.body, &mut running);
        let Transaction { own, mut out, .. } = running;
        match ending {
            Ok(()) if !self.stay_unique(&own) => Expected::Aborted(Abort::NOT_UNIQUE),
            Ok(()) => {
                let (results, of_pieces) = self.pieces(program, &call, call.pieces.len());
                pieces::finish(&results, &mut out);
                for ((table, key), value) in own.into_iter().chain(of_pieces) {
                    let rows = &mut self.tables[usize::from(table)];
                    match value {
                        Some(value) => drop(rows.insert(key, value)),
                        None => drop(rows.remove(&key)),
                    }
                }
                Expected::Committed(out)
            }
            Err(ending) => early(Err(ending), None).expect("it ended"),
        }
    }

    /// Whether no two rows have one key in the unique index when a call has written.
    fn stay_unique(&self, own: &Writes) -> bool {
        own.keys().all(|(table, _)| *table != INDEXED)
            || indexes::are_unique(self.indexed(own).values())
    }

    /// The rows of the table with indexes, after what a call has written.
    fn indexed(&self, own: &Writes) -> Table {
        let mut rows = self.tables[usize::from(INDEXED)].clone();
        for ((_, key), value) in own.iter().filter(|((table, _), _)| *table == INDEXED) {
            match value {
                Some(value) => drop(rows.insert(key.clone(), value.clone())),
                None => drop(rows.remove(key)),
            }
        }
        rows
    }

    /// What the first so many pieces come to and what they write.
    fn pieces(&self, program: &Program, call: &Call, count: usize) -> (Vec<PieceResult>, Writes) {
        let (mut results, mut all) = (Vec::new(), Writes::new());
        for (number, first) in call.pieces[..count].iter().enumerate() {
            let mut piece = PieceRun { now: self, first, own: Writes::new(), results: &results };
            let result = pieces::run_piece(program, number, &mut piece).expect("it never stops");
            all.extend(piece.own);
            results.push(result);
        }
        (results, all)
    }

    fn holds(&self, seen: &Seen) -> bool {
        match seen {
            Seen::Point(table, key, value) => {
                self.tables[usize::from(*table)].get(key) == value.as_ref()
            }
            Seen::Scan(table, low, high, limit, rows) => {
                self.range(*table, low, high).take(*limit).eq(rows.iter().cloned())
            }
            Seen::Index(index, low, high, limit, entries) => {
                self.entries(*index, Bounds { low, high }, *limit) == *entries
            }
        }
    }

    /// What a scan of an index finds in the rows as they are.
    fn entries(&self, index: u16, bounds: Bounds<'_>, limit: usize) -> Entries {
        let rows = self.tables[usize::from(INDEXED)].iter();
        indexes::scan_index(index, rows, bounds, false, limit)
    }

    fn range<'m>(
        &'m self,
        table: u8,
        low: &'m [u8],
        high: &'m [u8],
    ) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + 'm {
        let rows = self.tables[usize::from(table)].iter();
        rows.filter(move |(key, _)| low <= &key[..] && &key[..] < high)
            .map(|(key, value)| (key.clone(), value.clone()))
    }

    /// The sum over all rows that the engine maintains by difference (O-48).
    pub fn state_hash(&self) -> StateHash {
        let mut hash = StateHash::default();
        for (table, rows) in self.tables.iter().enumerate() {
            rows.iter()
                .for_each(|(key, value)| hash.add(row_hash(TableId(table as u16), key, value)));
        }
        for (sequence, next) in &self.sequences {
            hash.add(row_hash(
                TableId(SEQUENCES.into()),
                &sequence.to_be_bytes(),
                &next.to_le_bytes(),
            ));
        }
        hash
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        (self.tables.iter().map(BTreeMap::len).sum::<usize>() + self.sequences.len()) as u64
    }
}

fn early(ending: Result<(), Ending>, mistake: Option<&'static str>) -> Option<Expected> {
    match (ending, mistake) {
        (_, Some(what)) => Some(Expected::Failed(what)),
        (Err(Ending::Panic), None) => Some(Expected::Failed(PANICKED)),
        (Err(Ending::Stop(Stop::Abort(abort))), None) => Some(Expected::Aborted(abort.code)),
        (Err(Ending::Stop(Stop::Code(code))), None) => Some(Expected::Aborted(code)),
        (Err(Ending::Stop(Stop::Mistake(what))), None) => {
            Some(Expected::Failed(MISTAKES.into_iter().find(|k| *k == *what).expect("one of ours")))
        }
        (Err(Ending::Stop(Stop::Deferred)), None) => Some(Expected::Deferred),
        (Err(Ending::Stop(Stop::Stopped)), None) => unreachable!("the oracle never stops"),
        (Ok(()), None) => None,
    }
}

const MISTAKES: [&str; 8] =
    [UNDECLARED, UPDATE_ONLY, TOO_LONG, BAD_KEY, UNORDERED, FOR_PIECE, NO_PIECE, CHANGES_INDEX];
const UNDECLARED: &str = "write of undeclared key";
const UPDATE_ONLY: &str = "declared for update only";
const FOR_PIECE: &str = "declared for a piece";
const BEFORE_PIECES: &str = "comes before every piece";
const TWICE: &str = "is declared twice";
const NO_PIECE: &str = "the result of piece";
const TOO_LONG: &str = "a value of";
const BAD_KEY: &str = "a key of";
const UNORDERED: &str = "scanned";
const CHANGES_INDEX: &str = "changes an index";
const HAS_INDEXES: &str = "has indexes";

fn takes(table: u8, key: &[u8]) -> bool {
    if has_long_keys(table) { (1..=40).contains(&key.len()) } else { key.len() == 8 }
}

struct Declaration<'m> {
    seeing: Seeing<'m>,
    call: &'m mut Call,
}

impl Declaration<'_> {
    /// Adds a key; false if that is a mistake.
    fn add(&mut self, table: u8, key: &[u8], kind: Kind) -> bool {
        let declared = self.call.declared.entry((table, key.to_vec())).or_default();
        let are_writes = declared.is_some_and(|before| before != Kind::Read) && kind != Kind::Read;
        if are_writes && (*declared == Some(Kind::Piece) || kind == Kind::Piece) {
            self.call.mistake.get_or_insert(TWICE);
            return false;
        }
        *declared = (*declared).max(Some(kind));
        true
    }
}

impl Declaring for Declaration<'_> {
    fn allocate(&mut self, sequence: u64, peek: bool) {
        self.call.sequences.push((sequence, peek));
    }

    fn sequence_number(&self, i: usize) -> Result<u64, Ending> {
        self.call.allocation.get(i).copied().ok_or(Ending::Panic)
    }

    fn lookup(&mut self, table: u8, key: &[u8]) -> Option<Vec<u8>> {
        let value = self.seeing.now.tables[usize::from(table)].get(key).cloned();
        self.call.seen.push(Seen::Point(table, key.to_vec(), value.clone()));
        value
    }

    fn lookup_scan(&mut self, table: u8, low: &[u8], high: &[u8], limit: usize) -> Rows {
        let rows: Rows = self.seeing.now.range(table, low, high).take(limit).collect();
        self.call.seen.push(Seen::Scan(table, low.to_vec(), high.to_vec(), limit, rows.clone()));
        rows
    }

    fn scan_index(&mut self, index: u16, bounds: Bounds<'_>, limit: usize) -> Entries {
        let entries = self.seeing.indexes.entries(index, bounds, limit);
        let (low, high) = (bounds.low.to_vec(), bounds.high.to_vec());
        self.call.seen.push(Seen::Index(index, low, high, limit, entries.clone()));
        entries
    }

    fn declare(&mut self, table: u8, key: &[u8], op: Op) {
        if !takes(table, key) {
            self.call.mistake.get_or_insert(BAD_KEY);
            return;
        }
        let kind = match op {
            Op::DeclareInsert => Kind::Insert,
            Op::WillRead => Kind::Read,
            _ => Kind::Update,
        };
        self.add(table, key, kind);
    }

    fn update_piece(&mut self, table: u8, key: &[u8], _: u32) {
        if table == INDEXED {
            self.call.mistake.get_or_insert(HAS_INDEXES);
        } else if !takes(table, key) {
            self.call.mistake.get_or_insert(BAD_KEY);
        } else if self.add(table, key, Kind::Piece) {
            self.call.pieces.push((table, key.to_vec()));
        }
    }

    fn in_piece(&mut self, step: &Step) {
        let (table, key) = (step.table, program::key(step.table, step.a));
        if self.call.pieces.is_empty() {
            self.call.mistake.get_or_insert(BEFORE_PIECES);
        } else if table == INDEXED {
            self.call.mistake.get_or_insert(HAS_INDEXES);
        } else if step.op != Op::RangeInPiece {
            self.add(table, &key, Kind::Piece);
        } else if !program::is_ordered(table) {
            self.call.mistake.get_or_insert(UNORDERED);
        }
    }

    fn update_range(&mut self, table: u8, low: &[u8], high: &[u8]) {
        if !program::is_ordered(table) {
            self.call.mistake.get_or_insert(UNORDERED);
            return;
        }
        self.call.ranges.push((table, low.to_vec(), high.to_vec()));
    }

    fn sequence_start(&mut self, sequence: u64) -> u64 {
        self.seeing.before.sequences.get(&sequence).copied().unwrap_or(0)
    }
}

/// A transaction: the state at its serial position, and its own writes on top.
struct Transaction<'m> {
    before: &'m Model,
    now: &'m Model,
    program: &'m Program,
    call: &'m Call,
    own: Writes,
    out: Vec<u8>,
    /// It came to its commit point.
    committed: bool,
    info: [u64; 3],
}

impl Transaction<'_> {
    fn value(&self, table: u8, key: &[u8]) -> Option<Vec<u8>> {
        match self.own.get(&(table, key.to_vec())) {
            Some(own) => own.clone(),
            None => self.now.tables[usize::from(table)].get(key).cloned(),
        }
    }

    fn keeps_to_its_set(&self) -> bool {
        !self.call.pieces.is_empty() || self.committed
    }

    /// Whether it declared to write rows of the table with indexes: it may still leave a key that
    /// is not unique behind its commit point, which then does nothing.
    fn may_change_indexes(&self) -> bool {
        let Call { declared, ranges, pieces, .. } = self.call;
        let mut written = declared.iter().filter(|(_, kind)| **kind != Some(Kind::Read));
        pieces.is_empty()
            && (written.any(|((table, _), _)| *table == INDEXED)
                || ranges.iter().any(|(table, ..)| *table == INDEXED))
    }

    /// Whether a key may be written, inserted if that is asked. `None`: there is no such row.
    fn may(&self, table: u8, key: &[u8], inserts: bool) -> Result<Option<()>, Stop> {
        let declared = self.call.declared.get(&(table, key.to_vec())).copied().flatten();
        let in_range = self
            .call
            .ranges
            .iter()
            .any(|(t, low, high)| *t == table && &low[..] <= key && key < &high[..]);
        let keeps_to_its_set = self.keeps_to_its_set();
        let kind = match declared {
            Some(Kind::Piece) => return Err(Stop::mistake(FOR_PIECE)),
            Some(kind) if kind != Kind::Read => Some(kind),
            _ if in_range => Some(Kind::Update),
            _ => None,
        };
        match kind {
            _ if self.call.is_serial && self.call.pieces.is_empty() => Ok(Some(())),
            Some(Kind::Insert) => Ok(Some(())),
            Some(_) if !inserts => Ok(Some(())),
            Some(_) if keeps_to_its_set => Err(Stop::mistake(UPDATE_ONLY)),
            None if keeps_to_its_set => Err(Stop::mistake(UNDECLARED)),
            None if !inserts && self.value(table, key).is_none() => Ok(None),
            _ => Err(Stop::Deferred),
        }
    }

    fn write(&mut self, table: u8, key: &[u8], value: Option<&[u8]>) -> Result<(), Stop> {
        if value.is_some_and(|v| v.len() > VALUE_BYTES_MAX[usize::from(table)]) {
            return Err(Stop::mistake(TOO_LONG));
        }
        let changes_index =
            table == INDEXED && indexes::differ(self.value(table, key).as_deref(), value);
        if changes_index && self.keeps_to_its_set() {
            return Err(Stop::mistake(CHANGES_INDEX));
        }
        self.own.insert((table, key.to_vec()), value.map(<[u8]>::to_vec));
        Ok(())
    }
}

impl Running for Transaction<'_> {
    fn get(&mut self, table: u8, key: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
        Ok(self.value(table, key))
    }

    fn scan(
        &mut self,
        table: u8,
        bounds: Bounds<'_>,
        down: bool,
        limit: usize,
    ) -> Result<Rows, Stop> {
        if !program::is_ordered(table) {
            return Err(Stop::mistake(UNORDERED));
        }
        let Bounds { low, high } = bounds;
        let mut rows: Table = self.now.range(table, low, high).collect();
        for ((t, key), value) in &self.own {
            if *t == table && low <= &key[..] && &key[..] < high {
                match value {
                    Some(value) => drop(rows.insert(key.clone(), value.clone())),
                    None => drop(rows.remove(key)),
                }
            }
        }
        let rows = rows.into_iter();
        Ok(if down { rows.rev().take(limit).collect() } else { rows.take(limit).collect() })
    }

    fn scan_index(
        &mut self,
        index: u16,
        bounds: Bounds<'_>,
        down: bool,
        limit: usize,
    ) -> Result<Entries, Stop> {
        let rows = self.now.indexed(&self.own);
        Ok(indexes::scan_index(index, rows.iter(), bounds, down, limit))
    }

    fn insert(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.may(table, key, true)?;
        self.write(table, key, Some(value))
    }

    fn update(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        if self.may(table, key, false)?.is_none() || self.value(table, key).is_none() {
            return Ok(false);
        }
        self.write(table, key, Some(value)).map(|()| true)
    }

    fn modify(&mut self, table: u8, key: &[u8], change: &dyn Fn(&mut [u8])) -> Result<bool, Stop> {
        self.may(table, key, false)?;
        let Some(mut value) = self.value(table, key) else {
            return Ok(false);
        };
        change(&mut value);
        self.write(table, key, Some(&value)).map(|()| true)
    }

    fn delete(&mut self, table: u8, key: &[u8]) -> Result<bool, Stop> {
        if self.may(table, key, false)?.is_none() || self.value(table, key).is_none() {
            return Ok(false);
        }
        self.write(table, key, None).map(|()| true)
    }

    fn sequence_number(&self, i: usize) -> Result<u64, Ending> {
        self.call.allocation.get(i).copied().ok_or(Ending::Panic)
    }

    fn sequence_start(&mut self, sequence: u64) -> Result<u64, Stop> {
        Ok(self.before.sequences.get(&sequence).copied().unwrap_or(0))
    }

    fn commit_point(&mut self) -> Result<(), Stop> {
        // In the serial part it does nothing.
        self.committed = !self.call.is_serial && !self.may_change_indexes();
        Ok(())
    }

    fn piece_result(&mut self, number: usize) -> Result<PieceResult, Stop> {
        if number >= self.call.pieces.len() {
            return Err(Stop::mistake(NO_PIECE));
        }
        self.committed = true;
        Ok(self.now.pieces(self.program, self.call, number + 1).0[number])
    }

    fn info(&self) -> [u64; 3] {
        self.info
    }

    fn put_out(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
}

/// A piece: the state before its call, what it has written, and what those before it came to.
struct PieceRun<'m> {
    now: &'m Model,
    /// The row that may be contended.
    first: &'m (u8, Vec<u8>),
    own: Writes,
    results: &'m [PieceResult],
}

impl RunningPiece for PieceRun<'_> {
    fn get(&mut self, table: u8, key: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
        match self.own.get(&(table, key.to_vec())) {
            Some(own) => Ok(own.clone()),
            None => Ok(self.now.tables[usize::from(table)].get(key).cloned()),
        }
    }

    fn value(&mut self) -> Result<Option<Vec<u8>>, Stop> {
        let (table, key) = self.first;
        self.get(*table, key)
    }

    fn modify(&mut self, change: &dyn Fn(&mut [u8])) -> Result<bool, Stop> {
        let Some(mut value) = self.value()? else {
            return Ok(false);
        };
        change(&mut value);
        self.update(&value)
    }

    fn update(&mut self, value: &[u8]) -> Result<bool, Stop> {
        let (table, key) = self.first;
        self.update_row(*table, key, value)
    }

    fn insert_row(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.own.insert((table, key.to_vec()), Some(value.to_vec()));
        Ok(())
    }

    fn update_row(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let exists = self.get(table, key)?.is_some();
        if exists {
            self.insert_row(table, key, value)?;
        }
        Ok(exists)
    }

    fn modify_row(&mut self, table: u8, key: &[u8], tag: u8) -> Result<bool, Stop> {
        let Some(mut value) = self.get(table, key)? else {
            return Ok(false);
        };
        program::change(&mut value, tag);
        self.update_row(table, key, &value)
    }

    fn delete_row(&mut self, table: u8, key: &[u8]) -> Result<bool, Stop> {
        let exists = self.get(table, key)?.is_some();
        if exists {
            self.own.insert((table, key.to_vec()), None);
        }
        Ok(exists)
    }

    fn result(&mut self, number: usize) -> Result<PieceResult, Stop> {
        Ok(self.results[number])
    }
}
