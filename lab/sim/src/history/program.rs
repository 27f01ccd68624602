//! Programs: the arguments of a call, a list of steps in eight bytes each. Engine and oracle run
//! the same steps through the traits below, each over its own rows.

use std::ops::Range;

use engine::{Abort, PieceResult, Stop};

use super::indexes::{INDEX_END, INDEXES};

/// A table of rows that are only found by key; 8-byte keys.
pub const HASHED: u8 = 0;
/// An ordered table with 8-byte keys.
pub const ORDERED: u8 = 1;
/// An ordered table with keys of 1 to 40 bytes.
pub const LONG: u8 = 2;
/// A table with 8-byte keys and values of one word, most of them.
pub const WORDS: u8 = 3;
/// An ordered table with secondary indexes and keys of 1 to 40 bytes.
pub const INDEXED: u8 = 4;
/// Sequences.
pub const SEQUENCES: u8 = 5;
/// Tables of rows.
pub const ROW_TABLES: usize = 5;
/// Longest values of the row tables.
pub const VALUE_BYTES_MAX: [usize; ROW_TABLES] = [700, 3000, 2500, 8, 3000];

/// Whether rows of a table can be scanned.
pub fn is_ordered(table: u8) -> bool {
    matches!(table, ORDERED | LONG | INDEXED)
}

/// Whether keys of a table have 1 to 40 bytes; all others have 8.
pub fn has_long_keys(table: u8) -> bool {
    matches!(table, LONG | INDEXED)
}

/// Sizes of values, on both sides of every boundary: inline halves, size classes, limits.
const SIZES: [usize; 24] = [
    0, 1, 8, 15, 16, 17, 31, 32, 48, 64, 65, 96, 127, 128, 129, 200, 255, 256, 257, 512, 700, 1100,
    2500, 3000,
];
/// Which of them is a word.
pub const WORD: u8 = 2;
/// Of so many no one is longer than that.
pub const SHORT_SIZES: u8 = WORD + 1;

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Allocates from sequence `a`; with the flag, only looks at it.
    Allocate,
    /// Looks `a` up; aborts with code `tag` if it is absent.
    LookupOrAbort,
    /// Looks `a` up and declares an insert of the key that its value names, among `n` from `b` on.
    DeclareDerived,
    /// Scans `a..b` for at most `n` rows and declares a deletion of the last.
    DeclareLast,
    /// Declares an insert of the key allocated first.
    DeclareAllocated,
    /// Declares an insert of `a`.
    DeclareInsert,
    /// Declares an update of `a`.
    DeclareUpdate,
    /// Declares a deletion of `a`.
    DeclareDelete,
    /// Hints that `a` will be read.
    WillRead,
    /// Declares that rows of `a..b` may be written.
    DeclareRange,
    /// A key that the table does not take.
    BadKey,
    /// Reads where sequence `a` stood.
    SequenceStart,
    /// Aborts with code `tag`.
    Abort,
    /// Panics.
    Panic,
    /// Reads `a`.
    Get,
    /// Inserts `a`.
    Insert,
    /// Updates `a`, if it is there.
    Update,
    /// Changes `a`, if it is there: in a copy of the row, or of the part that changes if the tag is
    /// even.
    Modify,
    /// Deletes `a`, if it is there.
    Delete,
    /// Scans `a..b` for at most `n` rows (0: all), downwards with the flag.
    Scan,
    /// Scans `a..b` and updates, changes or deletes some of what it finds.
    RangeWrite,
    /// Writes to `a` what depends on the value of `b`.
    Derive,
    /// Inserts the key of `DeclareDerived`.
    InsertDerived,
    /// Deletes the row of `DeclareLast`.
    DeleteLast,
    /// Inserts the key of `DeclareAllocated`.
    InsertAllocated,
    /// Aborts with code `tag` if `a` is absent.
    AbortIfAbsent,
    /// No abort after this.
    CommitPoint,
    /// Puts out serial id, timestamp and seed.
    Info,
    /// Takes time and changes nothing.
    Spin,
    /// Declares a piece that updates `a`: by `n`, it changes the value, replaces it, or leaves it.
    /// With the flag it reads `b`, too, if the program writes no row that it might be; with a 4 in
    /// `n` it asks what the piece before came to.
    DeclarePiece,
    /// Asks what the `n`-th piece came to: no abort after this.
    PieceResult,
    /// Inserts `a` with a value that follows from serial id, timestamp and seed.
    InsertInfo,
    /// Exchanges the values of `a` and `b`, if both are there.
    Swap,
    /// Gives `a` the value of `b`, if that is there; with the flag deletes `b` then.
    Move,
    /// Scans index `n` from `a` to `b`, downwards with the flag.
    ScanIndex,
    /// Looks for the first row of index `n` from `a` on, and declares an update of it; aborts with
    /// code `tag` if there is none.
    DeclareFound,
    /// Updates the row of `DeclareFound`.
    UpdateFound,
    /// Declares that the last piece inserts `a`; by `n`, it leaves that out.
    InsertInPiece,
    /// Declares that the last piece may write `a`: by `n`, it changes a part of the value, replaces
    /// or deletes it, or leaves it.
    UpdateInPiece,
    /// Declares that the last piece may write rows of `a..b`: those of which the program says
    /// nothing else.
    RangeInPiece,
}

const OPS: [Op; 40] = [
    Op::Allocate,
    Op::LookupOrAbort,
    Op::DeclareDerived,
    Op::DeclareLast,
    Op::DeclareAllocated,
    Op::DeclareInsert,
    Op::DeclareUpdate,
    Op::DeclareDelete,
    Op::WillRead,
    Op::DeclareRange,
    Op::BadKey,
    Op::SequenceStart,
    Op::Abort,
    Op::Panic,
    Op::Get,
    Op::Insert,
    Op::Update,
    Op::Modify,
    Op::Delete,
    Op::Scan,
    Op::RangeWrite,
    Op::Derive,
    Op::InsertDerived,
    Op::DeleteLast,
    Op::InsertAllocated,
    Op::AbortIfAbsent,
    Op::CommitPoint,
    Op::Info,
    Op::Spin,
    Op::DeclarePiece,
    Op::PieceResult,
    Op::InsertInfo,
    Op::Swap,
    Op::Move,
    Op::ScanIndex,
    Op::DeclareFound,
    Op::UpdateFound,
    Op::InsertInPiece,
    Op::UpdateInPiece,
    Op::RangeInPiece,
];

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub op: Op,
    /// In which table.
    pub table: u8,
    /// Number of its key.
    pub a: u8,
    /// Number of another key.
    pub b: u8,
    /// Which of the sizes its value has.
    pub size: u8,
    /// Makes values different; the code of an abort.
    pub tag: u8,
    /// A count.
    pub n: u8,
    /// 0 or 1.
    pub flag: u8,
}

impl Step {
    /// A step on a key; everything else is 0.
    pub fn new(op: Op, table: u8, a: u8) -> Self {
        Self { op, table, a, b: 0, size: 0, tag: 0, n: 0, flag: 0 }
    }

    /// With another key.
    pub fn to(self, b: u8) -> Self {
        Self { b, ..self }
    }

    /// With a size.
    pub fn size(self, size: u8) -> Self {
        Self { size, ..self }
    }

    /// With a tag.
    pub fn tag(self, tag: u8) -> Self {
        Self { tag, ..self }
    }

    /// With a count.
    pub fn n(self, n: u8) -> Self {
        Self { n, ..self }
    }

    /// With the flag.
    pub fn flag(self, flag: bool) -> Self {
        Self { flag: flag.into(), ..self }
    }

    pub(super) fn key(&self) -> Vec<u8> {
        key(self.table, self.a)
    }

    /// Whether it declares a write of `a` and of nothing else.
    fn writes_one_key(&self) -> bool {
        let is_of_piece =
            matches!(self.op, Op::DeclarePiece | Op::InsertInPiece | Op::UpdateInPiece);
        is_of_piece || matches!(self.op, Op::DeclareInsert | Op::DeclareUpdate | Op::DeclareDelete)
    }

    /// Whether it declares what is a piece's own.
    fn is_of_piece(&self) -> bool {
        matches!(self.op, Op::InsertInPiece | Op::UpdateInPiece | Op::RangeInPiece)
    }

    /// Whether a key is in `a..b`.
    pub(super) fn covers(&self, of_key: &[u8]) -> bool {
        self.key().as_slice() <= of_key && of_key < key(self.table, self.b).as_slice()
    }

    fn index(&self) -> u16 {
        u16::from(self.n) % INDEXES
    }

    /// Bounds in its index: all of it where both are 0.
    fn index_bounds(&self) -> (Vec<u8>, Vec<u8>) {
        (vec![self.a.wrapping_mul(5)], vec![u8::MAX - self.b.wrapping_mul(5)])
    }

    /// What it writes, if that depends on nothing that it reads.
    pub(super) fn value(&self, salt: u64) -> Vec<u8> {
        value(SIZES[self.size as usize % SIZES.len()], u64::from(self.tag) << 32 ^ salt)
    }
}

/// The key with a number.
pub fn key(table: u8, number: u8) -> Vec<u8> {
    if !has_long_keys(table) {
        return (u64::from(number).wrapping_mul(0x0123_4567_89ab_cdef)).to_be_bytes().to_vec();
    }
    // Many share their first eight bytes, some are prefixes of others, some end in zeros.
    let mut key = vec![b'p'; (usize::from(number) * 7) % 40];
    key.push(number);
    key
}

/// The key of a row that is named after an allocated number.
fn allocated_key(number: u64) -> Vec<u8> {
    (number + (1 << 40)).to_be_bytes().to_vec()
}

/// Bytes that follow from a seed.
fn value(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (mix(seed ^ (i / 8)) >> (i % 8 * 8)) as u8).collect()
}

pub(super) fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ word >> 32
}

pub(super) fn digest(value: Option<&[u8]>) -> u64 {
    value.map_or(7, |v| v.iter().fold(v.len() as u64 + 11, |h, &b| mix(h ^ u64::from(b))))
}

/// In the first byte of a program: it is for the serial part of its epoch.
const SERIAL: u8 = 0x80;

/// Whether an encoded program is for the serial part.
pub fn is_serial(arguments: &[u8]) -> bool {
    arguments[0] & SERIAL != 0
}

/// An encoded program, for the serial part.
#[must_use]
pub fn for_serial_part(mut arguments: Vec<u8>) -> Vec<u8> {
    arguments[0] |= SERIAL;
    arguments
}

/// Bytes of a step in the arguments of a call.
pub(super) const STEP_BYTES: usize = 8;

/// A program: what a call allocates, declares and does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// What it allocates.
    pub sequences: Vec<Step>,
    /// What it declares.
    pub declares: Vec<Step>,
    /// What it does.
    pub body: Vec<Step>,
}

impl Program {
    /// As the arguments of a call.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.sequences.len() as u8, self.declares.len() as u8];
        for step in self.sequences.iter().chain(&self.declares).chain(&self.body) {
            let Step { op, table, a, b, size, tag, n, flag } = *step;
            bytes.extend_from_slice(&[op as u8, table, a, b, size, tag, n, flag]);
        }
        bytes
    }

    /// Its three lists of steps.
    pub fn parts(&mut self) -> [&mut Vec<Step>; 3] {
        [&mut self.sequences, &mut self.declares, &mut self.body]
    }

    /// Whether it commits and fails then: it ends its epoch, and is left out of it.
    pub fn is_fatal(&self) -> bool {
        let point = self.body.iter().position(|step| step.op == Op::CommitPoint);
        let fails = |step: &Step| matches!(step.op, Op::Abort | Op::Panic);
        point.is_some_and(|point| self.body[point..].iter().any(fails))
    }

    /// Whether a piece may read its other row: the program says which rows it writes, and this is
    /// none of them.
    pub(super) fn reads_in_pieces(&self, piece: &Step) -> bool {
        self.declares.iter().all(|step| match step.op {
            Op::WillRead | Op::LookupOrAbort | Op::SequenceStart => true,
            _ if step.writes_one_key() => (step.table, step.a) != (piece.table, piece.b),
            _ => false,
        })
    }

    /// The step that declares a piece, and those behind it that declare what else is its own.
    pub(super) fn piece(&self, number: usize) -> (&Step, impl Iterator<Item = &Step>) {
        let mut pieces = self.declares.iter().enumerate();
        let mut pieces = pieces.by_ref().filter(|(_, step)| step.op == Op::DeclarePiece);
        let (at, step) = pieces.nth(number).expect("there are as many steps as pieces");
        let behind = self.declares[at + 1..].iter();
        let behind = behind.take_while(|step| step.op != Op::DeclarePiece);
        (step, behind.filter(|step| step.is_of_piece()))
    }

    /// Whether no step but one declares a key, nor a range or keys that it might be among.
    pub(super) fn is_for(&self, range: &Step, number: u8) -> bool {
        let of_key = key(range.table, number);
        let same_table = |step: &&Step| step.table == range.table && !std::ptr::eq(*step, range);
        self.declares.iter().filter(same_table).all(|step| match step.op {
            Op::WillRead | Op::LookupOrAbort | Op::SequenceStart => true,
            Op::DeclareRange | Op::RangeInPiece => !step.covers(&of_key),
            _ if step.writes_one_key() => step.a != number,
            _ => false,
        })
    }

    /// From the arguments of a call.
    ///
    /// # Panics
    /// If no [`Program::encode`] made them.
    pub fn decode(bytes: &[u8]) -> Self {
        let mut steps: Vec<Step> = bytes[2..].chunks_exact(STEP_BYTES).map(decode_step).collect();
        let sequences = usize::from(bytes[0] & !SERIAL);
        let body = steps.split_off(sequences + usize::from(bytes[1]));
        let declares = steps.split_off(sequences);
        Self { sequences: steps, declares, body }
    }
}

/// An encoded program with something changed in each of its steps.
#[must_use]
pub fn edited(arguments: &[u8], mut edit: impl FnMut(&mut Step)) -> Vec<u8> {
    let mut program = Program::decode(arguments);
    program.parts().into_iter().flatten().for_each(&mut edit);
    let encoded = program.encode();
    if is_serial(arguments) { for_serial_part(encoded) } else { encoded }
}

fn decode_step(bytes: &[u8]) -> Step {
    let [op, table, a, b, size, tag, n, flag] = bytes.try_into().expect("eight bytes");
    Step { op: OPS[usize::from(op)], table, a, b, size, tag, n, flag }
}

/// How a part of a program ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// As the engine tells a body to stop, or the body itself does.
    Stop(Stop),
    /// By a panic.
    Panic,
}

impl From<Stop> for Ending {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// Rows found by a scan, in its order.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// What a scan of an index found, in its order: keys of the index, each with its row's key.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Keys from a first one, up to and without a last one.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'k> {
    /// The first one.
    pub low: &'k [u8],
    /// The one behind the last.
    pub high: &'k [u8],
}

/// What the declaration steps need.
pub trait Declaring {
    /// Allocates a number, or looks at the next one.
    fn allocate(&mut self, sequence: u64, peek: bool);
    /// The number allocated first, second, ...
    ///
    /// # Errors
    /// A panic if so many were not allocated.
    fn sequence_number(&self, i: usize) -> Result<u64, Ending>;
    /// Reads the state at the end of the epoch before.
    fn lookup(&mut self, table: u8, key: &[u8]) -> Option<Vec<u8>>;
    /// Scans that state.
    fn lookup_scan(&mut self, table: u8, low: &[u8], high: &[u8], limit: usize) -> Rows;
    /// Declares a key: `insert`, or else `update` or `delete`.
    fn declare(&mut self, table: u8, key: &[u8], op: Op);
    /// Scans an index as it is where calls of the epoch run in parallel; in the serial part, as it
    /// is now.
    fn scan_index(&mut self, index: u16, bounds: Bounds<'_>, limit: usize) -> Entries;
    /// Declares a piece.
    fn update_piece(&mut self, table: u8, key: &[u8], weight: u32);
    /// Declares what is the last piece's own, as a step says.
    fn in_piece(&mut self, step: &Step);
    /// Declares a range.
    fn update_range(&mut self, table: u8, low: &[u8], high: &[u8]);
    /// Where a sequence stood.
    fn sequence_start(&mut self, sequence: u64) -> u64;
}

/// What the body needs.
pub trait Running {
    /// Reads a row.
    fn get(&mut self, table: u8, key: &[u8]) -> Result<Option<Vec<u8>>, Stop>;
    /// Reads a range.
    fn scan(
        &mut self,
        table: u8,
        bounds: Bounds<'_>,
        down: bool,
        limit: usize,
    ) -> Result<Rows, Stop>;
    /// Reads a range of an index.
    fn scan_index(
        &mut self,
        index: u16,
        bounds: Bounds<'_>,
        down: bool,
        limit: usize,
    ) -> Result<Entries, Stop>;
    /// Inserts or replaces a row.
    fn insert(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<(), Stop>;
    /// Replaces a row; false if it is not there.
    fn update(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<bool, Stop>;
    /// Changes a row; false if it is not there.
    fn modify(&mut self, table: u8, key: &[u8], change: &dyn Fn(&mut [u8])) -> Result<bool, Stop>;
    /// Changes a row as `change` does, but only the part that it changes; false if it is not
    /// there.
    fn modify_part(&mut self, table: u8, key: &[u8], tag: u8) -> Result<bool, Stop> {
        self.modify(table, key, &|value| change(value, tag))
    }
    /// Deletes a row; false if it is not there.
    fn delete(&mut self, table: u8, key: &[u8]) -> Result<bool, Stop>;
    /// The number allocated first, second, ...
    ///
    /// # Errors
    /// A panic if so many were not allocated.
    fn sequence_number(&self, i: usize) -> Result<u64, Ending>;
    /// Where a sequence stood.
    fn sequence_start(&mut self, sequence: u64) -> Result<u64, Stop>;
    /// No abort after this.
    fn commit_point(&mut self) -> Result<(), Stop>;
    /// What a piece came to.
    fn piece_result(&mut self, number: usize) -> Result<PieceResult, Stop>;
    /// Serial id, timestamp and seed.
    fn info(&self) -> [u64; 3];
    /// Adds to the answer.
    fn put_out(&mut self, bytes: &[u8]);
}

fn aborted(tag: u8) -> Ending {
    Ending::Stop(Abort::code(tag.into()).into())
}

/// Runs the steps of a declaration.
pub fn declare(steps: &[Step], to: &mut impl Declaring) -> Result<(), Ending> {
    for step in steps {
        match step.op {
            Op::Allocate => to.allocate(step.a.into(), step.flag != 0),
            Op::LookupOrAbort => {
                if to.lookup(step.table, &step.key()).is_none() {
                    return Err(aborted(step.tag));
                }
            }
            Op::DeclareDerived => {
                let seen = to.lookup(step.table, &step.key());
                let key = key(step.table, derived(step, seen.as_deref()));
                to.declare(step.table, &key, Op::DeclareInsert);
            }
            Op::DeclareLast => {
                let high = key(step.table, step.b);
                let rows = to.lookup_scan(step.table, &step.key(), &high, step.n.into());
                if let Some((key, _)) = rows.last() {
                    to.declare(step.table, key, Op::DeclareDelete);
                }
            }
            Op::DeclareFound => {
                let bounds = Bounds { low: &step.index_bounds().0, high: &INDEX_END };
                let found = to.scan_index(step.index(), bounds, 1);
                let (_, key) = found.first().ok_or_else(|| aborted(step.tag))?;
                to.declare(INDEXED, key, Op::DeclareUpdate);
            }
            Op::DeclareAllocated => {
                let key = allocated_key(to.sequence_number(0)?);
                to.declare(step.table, &key, Op::DeclareInsert);
            }
            Op::DeclareInsert | Op::DeclareUpdate | Op::DeclareDelete | Op::WillRead => {
                to.declare(step.table, &step.key(), step.op);
            }
            Op::DeclarePiece => {
                to.update_piece(step.table, &step.key(), u32::from(step.size));
            }
            Op::InsertInPiece | Op::UpdateInPiece | Op::RangeInPiece => to.in_piece(step),
            Op::DeclareRange => to.update_range(step.table, &step.key(), &key(step.table, step.b)),
            Op::BadKey => to.declare(step.table, &[b'k'; 41], Op::DeclareUpdate),
            Op::SequenceStart => drop(to.sequence_start(step.a.into())),
            Op::Abort => return Err(aborted(step.tag)),
            Op::Panic => return Err(Ending::Panic),
            _ => unreachable!("{step:?} declares nothing"),
        }
    }
    Ok(())
}

fn derived(step: &Step, seen: Option<&[u8]>) -> u8 {
    step.b + (digest(seen) % u64::from(step.n.max(1))) as u8
}

/// Runs the steps of a body. The answer holds everything that it read.
pub fn run(steps: &[Step], tx: &mut impl Running) -> Result<(), Ending> {
    for step in steps {
        run_step(step, tx)?;
    }
    Ok(())
}

fn insert(step: &Step, salt: u64, tx: &mut impl Running) -> Result<bool, Stop> {
    tx.insert(step.table, &step.key(), &step.value(salt)).map(|()| true)
}

/// Writes what depends on the value of another row.
fn derive(step: &Step, tx: &mut impl Running) -> Result<bool, Stop> {
    let seen = tx.get(step.table, &key(step.table, step.b))?;
    let salt = digest(seen.as_deref());
    match step.flag {
        0 => tx.update(step.table, &step.key(), &step.value(salt)),
        _ => insert(step, salt, tx),
    }
}

fn run_step(step: &Step, tx: &mut impl Running) -> Result<(), Ending> {
    let (table, key) = (step.table, step.key());
    let there = match step.op {
        Op::Get => {
            let seen = tx.get(table, &key)?;
            put_value(tx, seen.as_deref());
            seen.is_some()
        }
        Op::Insert => insert(step, 0, tx)?,
        Op::Update => tx.update(table, &key, &step.value(1))?,
        Op::Modify if step.tag.is_multiple_of(2) => tx.modify_part(table, &key, step.tag)?,
        Op::Modify => tx.modify(table, &key, &|value| change(value, step.tag))?,
        Op::Delete => tx.delete(table, &key)?,
        Op::Scan => !scan(step, tx)?.is_empty(),
        Op::RangeWrite => range_write(step, tx)?,
        Op::Derive => derive(step, tx)?,
        Op::InsertDerived => {
            let seen = tx.get(table, &key)?;
            let key = self::key(table, derived(step, seen.as_deref()));
            tx.insert(table, &key, &step.value(2)).map(|()| true)?
        }
        Op::DeleteLast => match scan(step, tx)?.last() {
            Some((key, _)) => tx.delete(table, key)?,
            None => false,
        },
        Op::InsertAllocated => {
            let number = tx.sequence_number(0)?;
            tx.put_out(&number.to_le_bytes());
            tx.insert(table, &allocated_key(number), &step.value(number)).map(|()| true)?
        }
        Op::AbortIfAbsent => match tx.get(table, &key)? {
            Some(_) => true,
            None => return Err(aborted(step.tag)),
        },
        Op::Abort => return Err(aborted(step.tag)),
        Op::Panic => return Err(Ending::Panic),
        Op::PieceResult => {
            let result = tx.piece_result(step.n.into())?;
            result.with_bytes(|bytes| tx.put_out(bytes));
            true
        }
        Op::CommitPoint => tx.commit_point().map(|()| true)?,
        Op::SequenceStart => {
            let start = tx.sequence_start(step.a.into())?;
            tx.put_out(&start.to_le_bytes());
            true
        }
        Op::Info => {
            tx.info().iter().for_each(|word| tx.put_out(&word.to_le_bytes()));
            true
        }
        Op::InsertInfo => {
            let told = tx.info().into_iter().fold(0, |told, word| mix(told ^ word));
            insert(step, told, tx)?
        }
        Op::Spin => {
            (0..u32::from(step.n) * 40).for_each(|_| std::hint::spin_loop());
            true
        }
        _ => run_indexed_step(step, tx)?,
    };
    tx.put_out(&[there.into()]);
    Ok(())
}

/// A step that is for indexes, or for rows of one.
fn run_indexed_step(step: &Step, tx: &mut impl Running) -> Result<bool, Ending> {
    let (table, keys) = (step.table, [step.key(), key(step.table, step.b)]);
    let there = match step.op {
        Op::Swap => {
            let [a, b] = [tx.get(table, &keys[0])?, tx.get(table, &keys[1])?];
            match (a, b) {
                (Some(a), Some(b)) => {
                    tx.update(table, &keys[0], &b)? && tx.update(table, &keys[1], &a)?
                }
                _ => false,
            }
        }
        Op::Move => match tx.get(table, &keys[1])? {
            Some(value) => {
                tx.insert(table, &keys[0], &value)?;
                step.flag == 0 || tx.delete(table, &keys[1])?
            }
            None => false,
        },
        Op::ScanIndex => {
            let (low, high) = step.index_bounds();
            let bounds = Bounds { low: &low, high: &high };
            let is_descending = step.flag != 0;
            let entries = tx.scan_index(step.index(), bounds, is_descending, usize::MAX)?;
            for (key, of_row) in &entries {
                put_value(tx, Some(key));
                put_value(tx, Some(of_row));
            }
            !entries.is_empty()
        }
        Op::UpdateFound => {
            let bounds = Bounds { low: &step.index_bounds().0, high: &INDEX_END };
            let found = tx.scan_index(step.index(), bounds, false, 1)?;
            match found.first() {
                Some((_, key)) => tx.update(INDEXED, key, &step.value(3))?,
                None => false,
            }
        }
        _ => unreachable!("{step:?} is not of a body"),
    };
    Ok(there)
}

/// Changes every third byte, or, by the tag, a few bytes somewhere.
pub(super) fn change(value: &mut [u8], tag: u8) {
    let part = part_of(value.len(), tag);
    let places = value[part].iter_mut().step_by(3);
    places.for_each(|byte| *byte = changed(*byte, tag));
}

/// Which part of a value of a length `change` changes.
pub fn part_of(len: usize, tag: u8) -> Range<usize> {
    let place = usize::from(tag);
    let (from, to) = match tag % 3 {
        0 => (0, len),
        by => (place * 29, place * 29 + place * usize::from(by) / 2 + 1),
    };
    from.min(len)..to.min(len)
}

/// `change` for a copy of the part that it changes, from the value as it was.
pub fn change_part(value: &[u8], part: &mut [u8], tag: u8) {
    let old = &value[part_of(value.len(), tag)];
    let places = part.iter_mut().zip(old).step_by(3);
    places.for_each(|(byte, old)| *byte = changed(*old, tag));
}

fn changed(byte: u8, tag: u8) -> u8 {
    byte.wrapping_mul(5).wrapping_add(tag | 1)
}

fn put_value(tx: &mut impl Running, value: Option<&[u8]>) {
    let value = value.unwrap_or(b"absent");
    tx.put_out(&(value.len() as u32).to_le_bytes());
    tx.put_out(value);
}

fn scan(step: &Step, tx: &mut impl Running) -> Result<Rows, Stop> {
    let (low, high) = (step.key(), key(step.table, step.b));
    let limit = if step.n == 0 { usize::MAX } else { step.n.into() };
    let bounds = Bounds { low: &low, high: &high };
    let rows = tx.scan(step.table, bounds, step.flag != 0, limit)?;
    for (key, value) in &rows {
        put_value(tx, Some(key));
        put_value(tx, Some(value));
    }
    Ok(rows)
}

/// Changes rows of a range alternately, and looks at it again.
fn range_write(step: &Step, tx: &mut impl Running) -> Result<bool, Stop> {
    let rows = scan(step, tx)?;
    let mut all = true;
    for (i, (key, old)) in rows.iter().enumerate() {
        all &= match mix(u64::from(step.tag) + i as u64) % 4 {
            0 => true,
            1 => tx.update(step.table, key, &step.value(digest(Some(old))))?,
            2 if step.tag.is_multiple_of(2) => tx.modify_part(step.table, key, step.tag)?,
            2 => tx.modify(step.table, key, &|value| change(value, step.tag))?,
            _ => tx.delete(step.table, key)?,
        };
    }
    scan(&step.flag(step.flag == 0), tx)?;
    Ok(all)
}
