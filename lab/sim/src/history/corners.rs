//! Calls that lead an epoch into corners of the engine to which programs by chance come rarely, or
//! never.

use super::generate::Mix;
use super::indexes::insert_under;
use super::program::{
    HASHED, INDEXED, LONG, ORDERED, Op, Program, STEP_BYTES, Step, for_serial_part,
};
use super::random::Random;

/// Keys of [`churn`]: so many that few epochs free more slots than a segment of a free list holds.
const CHURN_KEYS: u8 = 240;
/// Keys that one call of [`churn`] writes.
const CHURN_KEYS_OF_A_CALL: usize = 30;

/// Which size the values of [`flood`] have: the longest that both of its tables take.
const FLOOD_SIZE: u8 = 22;

/// Rows of [`turns`], and keys of the unique index that they have.
const TURNING_ROWS: u64 = 3;
const TURNING_KEYS: u64 = 4;

/// Sometimes adds calls to an epoch that lead into a corner.
pub fn add_corners(random: &mut Random, mix: &Mix, calls: &mut Vec<Vec<u8>>) {
    let more = match random.below(100) {
        0..7 => aborted_writers(random, mix),
        7..14 => stale_looks(random, mix),
        14..20 => vec![informed(random, mix)],
        _ => return,
    };
    let at = random.below(calls.len() as u64 + 1) as usize;
    calls.splice(at..at, more);
}

/// A write of a row, then at least three writers of it that abort, panic, or write nothing, so that
/// the final write falls back over all of them; sometimes over the first one, too.
fn aborted_writers(random: &mut Random, mix: &Mix) -> Vec<Vec<u8>> {
    let (table, key) = (random.pick(&[HASHED, ORDERED, LONG]), random.byte(mix.keys));
    let insert = |random: &mut Random| {
        Step::new(Op::Insert, table, key).size(random.byte(20)).tag(random.byte(256))
    };
    let writer = |body| {
        Program {
            sequences: vec![],
            declares: vec![Step::new(Op::DeclareInsert, table, key)],
            body,
        }
        .encode()
    };
    let mut calls = Vec::new();
    if random.percent(80) {
        calls.push(writer(vec![insert(random)]));
    }
    for _ in 0..3 + random.below(4) {
        let end = match random.below(3) {
            0 => vec![insert(random), Step::new(Op::Abort, HASHED, 0).tag(3)],
            1 => vec![insert(random), Step::new(Op::Panic, HASHED, 0)],
            _ => vec![Step::new(Op::Info, HASHED, 0)],
        };
        calls.push(writer(end));
    }
    calls
}

/// A write of a row, and calls that looked at it while they declared: all of them are deferred. In
/// the next epoch they come to their end one after the other, whether they write that row
/// themselves or not. Where there are many keys they are so many and so long that their record of
/// deferred calls does not fit one segment of the log.
fn stale_looks(random: &mut Random, mix: &Mix) -> Vec<Vec<u8>> {
    let (looks, padding) =
        if mix.keys > 4 { random.pick(&[(3, 0), (24, 20)]) } else { (2 + random.below(3), 0) };
    stale_looks_of(random, mix, looks, padding)
}

/// The same; few calls, which need several segments of the log when they are deferred.
pub fn long_stale_looks(random: &mut Random, mix: &Mix) -> Vec<Vec<u8>> {
    let (looks, padding) = random.pick(&[(1, 600), (2, 300), (5, 200), (4, 400)]);
    stale_looks_of(random, mix, looks, padding)
}

/// So many calls that are deferred, with so many more steps.
fn stale_looks_of(random: &mut Random, mix: &Mix, looks: u64, padding: usize) -> Vec<Vec<u8>> {
    let (table, key) = (random.pick(&[HASHED, ORDERED, LONG]), random.byte(mix.keys));
    let first = Step::new(Op::Insert, table, key).size(random.byte(20)).tag(random.byte(256));
    let write = Program {
        sequences: vec![],
        declares: vec![Step::new(Op::DeclareInsert, table, key)],
        body: vec![first],
    };
    let (from, keys) = if random.percent(70) { (key, 1) } else { (0, 4) };
    let derived = |op| Step::new(op, table, key).to(from).n(keys);
    let mut calls = vec![write.encode()];
    for _ in 0..looks {
        let mut body = vec![derived(Op::InsertDerived).size(9).tag(random.byte(256))];
        body.extend((0..padding).map(|_| Step::new(Op::Info, HASHED, 0)));
        let declares = vec![derived(Op::DeclareDerived)];
        calls.push(Program { sequences: vec![], declares, body }.encode());
    }
    calls
}

/// Calls that insert, replace and delete few rows: of the table with indexes, where entries leave
/// and come back under the same keys; and of one whose values are too long to be inline, where row
/// entries and value slots are freed and serve other rows.
pub fn turns(random: &mut Random) -> Vec<Vec<u8>> {
    let call = |random: &mut Random| {
        let row = random.byte(TURNING_ROWS);
        let (is_long, deletes) = (random.percent(40), random.percent(35));
        let table = if is_long { LONG } else { INDEXED };
        let step = match deletes {
            true => Step::new(Op::Delete, table, row),
            false if is_long => {
                Step::new(Op::Insert, LONG, row).size(12 + random.byte(6)).tag(random.byte(256))
            }
            false => insert_under(row, random.byte(TURNING_KEYS)),
        };
        let declares = vec![Step::new(Op::DeclareInsert, table, row)];
        let call = Program { sequences: vec![], declares, body: vec![step] }.encode();
        // A parallel call that changes an index is deferred.
        if random.percent(90) { for_serial_part(call) } else { call }
    };
    (0..1 + random.below(3)).map(|_| call(random)).collect()
}

/// A call that does nothing, with more than so many bytes of arguments.
pub fn long_call(bytes: usize) -> Vec<u8> {
    let body = vec![Step::new(Op::Info, HASHED, 0); bytes.div_ceil(STEP_BYTES)];
    Program { sequences: vec![], declares: vec![], body }.encode()
}

/// A call that writes what it is told of itself and its epoch: serial id, timestamp and seed.
fn informed(random: &mut Random, mix: &Mix) -> Vec<u8> {
    let (table, key) = (random.pick(&[HASHED, ORDERED, LONG]), random.byte(mix.keys));
    let write = Step::new(Op::InsertInfo, table, key).size(2 + random.byte(14));
    let declares = vec![Step::new(Op::DeclareInsert, table, key)];
    Program { sequences: vec![], declares, body: vec![write] }.encode()
}

/// A call that commits, writes more, and fails then: its epoch cannot be undone, and the engine
/// stops.
pub fn fatal(random: &mut Random, mix: &Mix) -> Vec<u8> {
    let table = random.pick(&[HASHED, ORDERED, LONG]);
    let keys: Vec<u8> = (0..1 + random.below(3)).map(|_| random.byte(mix.keys)).collect();
    let declares = keys.iter().map(|&key| Step::new(Op::DeclareInsert, table, key)).collect();
    let write = |random: &mut Random, key: u8| {
        let op = random.pick(&[Op::Insert, Op::Insert, Op::Update, Op::Delete]);
        Step::new(op, table, key).size(random.byte(20)).tag(random.byte(256))
    };
    let mut body: Vec<Step> = keys.iter().map(|&key| write(random, key)).collect();
    body.push(Step::new(Op::CommitPoint, table, 0));
    let end = random.pick(&[Op::Abort, Op::Panic]);
    body.push(Step::new(end, HASHED, 0).tag(6));
    Program { sequences: vec![], declares, body }.encode()
}

/// The calls of an epoch that replaces all rows of two tables, which have as many as there can be,
/// by others whose values fill most of a page each.
pub fn flood(random: &mut Random) -> Vec<Vec<u8>> {
    let keys: Vec<u8> = (0..=u8::MAX).collect();
    let call = |table: u8, keys: &[u8], random: &mut Random| {
        let mut program = Program::default();
        for &key in keys {
            program.declares.push(Step::new(Op::DeclareInsert, table, key));
            let insert = Step::new(Op::Insert, table, key).size(FLOOD_SIZE).tag(random.byte(256));
            program.body.push(insert);
        }
        program.encode()
    };
    let mut calls = Vec::new();
    for table in [ORDERED, LONG] {
        calls.extend(keys.chunks(CHURN_KEYS_OF_A_CALL).map(|keys| call(table, keys, random)));
    }
    calls
}

/// The calls of an epoch that replaces all rows of a table, or deletes all or some of them: free
/// lists of rows and values go through whole segments, which are reused.
pub fn churn(random: &mut Random) -> Vec<Vec<u8>> {
    let deleted_of_ten = random.pick(&[0, 0, 0, 0, 3, 10]);
    // Too long to be inline.
    let size = 12 + random.byte(4);
    let keys: Vec<u8> = (0..CHURN_KEYS).collect();
    let call = |keys: &[u8]| {
        let mut program = Program::default();
        for &key in keys {
            let delete = random.below(10) < deleted_of_ten;
            let (declare, write) = if delete {
                (Op::DeclareDelete, Op::Delete)
            } else {
                (Op::DeclareInsert, Op::Insert)
            };
            program.declares.push(Step::new(declare, LONG, key));
            let write = Step::new(write, LONG, key).size(size).tag(random.byte(256));
            program.body.push(write);
        }
        program.encode()
    };
    keys.chunks(CHURN_KEYS_OF_A_CALL).map(call).collect()
}
