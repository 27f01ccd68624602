//! Random programs over few keys, with everything that a body may do wrong.

use super::program::{
    HASHED, INDEXED, LONG, ORDERED, Op, Program, Step, WORD, WORDS, for_serial_part, is_ordered,
};
use super::random::Random;

/// How programs are mixed.
#[derive(Debug, Clone, Copy)]
pub struct Mix {
    /// Different keys of each table.
    pub keys: u64,
    /// Whether values are mostly too long to be inline.
    pub long_values: bool,
    /// How many of a hundred look something up while declaring.
    pub lookups: u64,
}

impl Mix {
    /// Any of the mixes.
    pub fn random(random: &mut Random) -> Self {
        let keys = random.pick(&[1, 2, 4, 9, 25, 50]);
        let lookups = random.pick(&[0, 5, 15, 40]);
        Self { keys, long_values: random.percent(40), lookups }
    }

    fn table(&self, random: &mut Random) -> u8 {
        random.pick(&[HASHED, ORDERED, ORDERED, LONG, LONG, WORDS])
    }

    fn ordered(&self, random: &mut Random) -> u8 {
        random.pick(&[ORDERED, LONG])
    }

    fn key(&self, random: &mut Random) -> u8 {
        random.byte(self.keys)
    }

    fn size(&self, table: u8, random: &mut Random) -> u8 {
        // The last sizes are beyond the limit of some tables: rarely that is what is wanted.
        let is_any = random.percent(2);
        if table == WORDS && !is_any {
            return random.pick(&[WORD, WORD, WORD, WORD, 1, 0]);
        }
        let end = if is_any { 24 } else { [21, 24, 23][usize::from(table)] };
        let from = if self.long_values && random.percent(70) { 12 } else { 0 };
        from + random.byte(end - u64::from(from))
    }
}

/// The calls of an epoch, as arguments.
pub fn batch(random: &mut Random, mix: &Mix, calls: u64) -> Vec<Vec<u8>> {
    // Allocation aside, so that the programs are what they are without.
    let mut aside = Random::new(random.clone().word());
    let serial = if aside.percent(60) { 0 } else { aside.pick(&[5, 20, 60, 100]) };
    let indexed = aside.pick(&[0, 0, 0, 10, 30, 80]);
    batch_with(random, &mut aside, mix, BatchShape { calls, serial, indexed })
}

/// What the calls of an epoch are like.
#[derive(Debug, Clone, Copy)]
pub struct BatchShape {
    /// How many there are.
    pub calls: u64,
    /// So many of a hundred are for the serial part.
    pub serial: u64,
    /// So many of a hundred use indexes.
    pub indexed: u64,
}

/// Calls of an epoch, as arguments.
pub fn batch_with(
    random: &mut Random,
    aside: &mut Random,
    mix: &Mix,
    shape: BatchShape,
) -> Vec<Vec<u8>> {
    let BatchShape { calls, serial, indexed } = shape;
    let mut call = || {
        let mut program = program(random, mix);
        if aside.percent(indexed) {
            use_indexes(&mut program, aside, mix);
        }
        let arguments = program.encode();
        let is_serial = aside.percent(serial) && !program.is_fatal();
        if is_serial { for_serial_part(arguments) } else { arguments }
    };
    (0..calls).map(|_| call()).collect()
}

/// A write of a row, and a call that looked at the row while declaring: it is deferred, unless
/// the value stays the same.
pub fn stale_look(random: &mut Random, mix: &Mix) -> [Vec<u8>; 2] {
    let (table, key) = (mix.table(random), mix.key(random));
    let insert = Step::new(Op::Insert, table, key).size(mix.size(table, random));
    let write = Program {
        sequences: vec![],
        declares: vec![Step::new(Op::DeclareInsert, table, key)],
        body: vec![insert.tag(random.byte(256))],
    };
    let derived = |op| Step::new(op, table, key).to(0).n(4);
    let look = Program {
        sequences: vec![],
        declares: vec![derived(Op::DeclareDerived)],
        body: vec![derived(Op::InsertDerived).size(9).tag(random.byte(256))],
    };
    [write.encode(), look.encode()]
}

fn program(random: &mut Random, mix: &Mix) -> Program {
    if random.percent(6) {
        return committing(random, mix);
    }
    if random.percent(6) {
        return asking(random, mix);
    }
    let mut program = Program::default();
    if random.percent(12) {
        allocate(&mut program, random, mix);
    }
    if random.percent(mix.lookups) {
        reconnoitre(&mut program, random, mix);
    }
    for _ in 0..random.below(4) {
        write(&mut program, random, mix);
    }
    for _ in 0..random.below(3) {
        read(&mut program, random, mix);
    }
    if random.percent(15) {
        range(&mut program, random, mix);
    }
    if random.percent(20) {
        pieces(&mut program, random, mix);
    }
    damage(&mut program, random, mix);
    program
}

/// Adds a step at a random place of the body.
fn anywhere(program: &mut Program, step: Step, random: &mut Random) {
    let at = random.below(program.body.len() as u64 + 1) as usize;
    program.body.insert(at, step);
}

fn write(program: &mut Program, random: &mut Random, mix: &Mix) {
    let table = mix.table(random);
    let (key, other) = (mix.key(random), mix.key(random));
    let size = mix.size(table, random);
    let tag = random.byte(256);
    let step = |op| Step::new(op, table, key).to(other).size(size).tag(tag);
    let (declare, body) = match random.below(10) {
        0..3 => (Op::DeclareInsert, step(Op::Insert)),
        3 => (Op::DeclareUpdate, step(Op::Update)),
        4 => (Op::DeclareUpdate, step(Op::Modify)),
        5..7 => (Op::DeclareDelete, step(Op::Delete)),
        7 => (Op::DeclareUpdate, step(Op::Derive)),
        _ => (Op::DeclareInsert, step(Op::Derive).flag(true)),
    };
    program.declares.push(Step::new(declare, table, key));
    if random.percent(10) {
        let again = random.pick(&[Op::DeclareInsert, Op::DeclareUpdate, Op::WillRead]);
        program.declares.push(Step::new(again, table, key));
    }
    if random.percent(90) {
        anywhere(program, body, random);
    }
    if random.percent(20) {
        anywhere(program, step(random_write(random)), random);
    }
}

fn random_write(random: &mut Random) -> Op {
    random.pick(&[Op::Update, Op::Modify, Op::Delete, Op::Update])
}

fn read(program: &mut Program, random: &mut Random, mix: &Mix) {
    let step = if random.percent(60) {
        let table = mix.table(random);
        let key = mix.key(random);
        if random.percent(30) {
            program.declares.push(Step::new(Op::WillRead, table, key));
        }
        Step::new(Op::Get, table, key)
    } else {
        let table = mix.ordered(random);
        let step = Step::new(Op::Scan, table, mix.key(random)).to(mix.key(random));
        step.n(random.byte(6)).flag(random.percent(50))
    };
    anywhere(program, step, random);
}

fn range(program: &mut Program, random: &mut Random, mix: &Mix) {
    let table = mix.ordered(random);
    let (low, high) = (mix.key(random), mix.key(random));
    for _ in 0..1 + random.below(2) {
        program.declares.push(Step::new(Op::DeclareRange, table, low).to(high));
    }
    let write = Step::new(Op::RangeWrite, table, low).to(high).n(random.byte(9));
    let write = write.size(mix.size(table, random)).tag(random.byte(256));
    anywhere(program, write.flag(random.percent(50)), random);
    if random.percent(30) {
        let op = random_write(random);
        anywhere(program, Step::new(op, table, mix.key(random)).size(9), random);
    }
}

/// Updates a few rows in pieces.
fn pieces(program: &mut Program, random: &mut Random, mix: &Mix) {
    for _ in 0..1 + random.below(3) {
        let table = mix.table(random);
        let step = Step::new(Op::DeclarePiece, table, mix.key(random)).to(mix.key(random));
        let step = step.size(mix.size(table, random)).tag(random.byte(256)).n(random.byte(4));
        add_piece(program, step.flag(random.percent(40)), mix, None);
    }
}

/// Adds a piece; perhaps with rows of its own, of one table if that is given, and asking for what
/// the one before came to. All that is chosen follows from the step, so that the rest of a history
/// stays what it is.
fn add_piece(program: &mut Program, step: Step, mix: &Mix, of_table: Option<u8>) {
    let bytes = [step.a, step.b, step.size, step.tag, step.n, step.flag];
    let random = &mut Random::new(bytes.iter().fold(7, |seed, &byte| seed << 8 ^ u64::from(byte)));
    let asks = if random.percent(50) { 4 } else { 0 };
    program.declares.push(step.n(step.n | asks));
    if random.percent(50) {
        return;
    }
    for _ in 0..1 + random.below(3) {
        let table = of_table.unwrap_or_else(|| mix.table(random));
        let op = match is_ordered(table) {
            true => random.pick(&[Op::InsertInPiece, Op::UpdateInPiece, Op::RangeInPiece]),
            false => random.pick(&[Op::InsertInPiece, Op::UpdateInPiece]),
        };
        let own = Step::new(op, table, mix.key(random)).to(mix.key(random)).tag(random.byte(256));
        let is_same = |other: &Step| (other.table, other.a) == (own.table, own.a);
        if op == Op::RangeInPiece || !program.declares.iter().any(is_same) {
            program.declares.push(own.size(mix.size(table, random)).n(random.byte(4)));
        }
    }
}

/// Pieces, whose results the body asks for, then reads and writes of other rows; never ends early
/// after that.
fn asking(random: &mut Random, mix: &Mix) -> Program {
    let mut program = committing(random, mix);
    let table = if program.declares[0].table == HASHED { ORDERED } else { HASHED };
    let keys: Vec<u8> = (0..mix.keys.min(3)).map(|k| k as u8).collect();
    for &key in &keys {
        let step = Step::new(Op::DeclarePiece, table, key).to(mix.key(random));
        let step = step.size(random.byte(20)).tag(random.byte(256)).n(random.byte(4));
        add_piece(&mut program, step.flag(random.percent(40)), mix, Some(table));
    }
    // What is written before is seen from then on, and must not be written again.
    let point = program.body.iter().position(|step| step.op == Op::CommitPoint);
    let mut from = point.expect("it has one") as u64;
    for _ in 0..1 + random.below(3) {
        from += random.below(program.body.len() as u64 - from + 1);
        let step = Step::new(Op::PieceResult, HASHED, 0).n(random.byte(keys.len() as u64));
        program.body.insert(from as usize, step);
    }
    program
}

fn allocate(program: &mut Program, random: &mut Random, mix: &Mix) {
    let sequence = random.byte(3);
    for _ in 0..1 + random.below(2) {
        let peek = random.percent(30);
        program.sequences.push(Step::new(Op::Allocate, HASHED, sequence).flag(peek));
    }
    if random.percent(20) {
        let table = mix.table(random);
        let step = Step::new(Op::LookupOrAbort, table, mix.key(random)).tag(9);
        program.sequences.insert(random.below(2) as usize, step);
    }
    if random.percent(5) {
        program.sequences.push(Step::new(random.pick(&[Op::Abort, Op::Panic]), HASHED, 0).tag(8));
    }
    if random.percent(50) {
        program.declares.push(Step::new(Op::SequenceStart, HASHED, sequence));
        anywhere(program, Step::new(Op::SequenceStart, HASHED, sequence), random);
    }
    let table = random.pick(&[HASHED, ORDERED]);
    program.declares.push(Step::new(Op::DeclareAllocated, table, 0));
    let size = mix.size(table, random);
    anywhere(program, Step::new(Op::InsertAllocated, table, 0).size(size), random);
}

/// Looks at rows while declaring: what was seen decides what is declared.
fn reconnoitre(program: &mut Program, random: &mut Random, mix: &Mix) {
    let table = mix.ordered(random);
    let (low, high) = (mix.key(random), mix.key(random));
    match random.below(3) {
        0 => {
            let step = Step::new(Op::LookupOrAbort, mix.table(random), low).tag(7);
            program.declares.push(step);
            write(program, random, mix);
        }
        1 => {
            let n = 1 + random.byte(8);
            program.declares.push(Step::new(Op::DeclareDerived, table, low).to(0).n(n));
            let step = Step::new(Op::InsertDerived, table, low).to(0).n(n).tag(random.byte(256));
            let size = mix.size(table, random);
            // First, so that what it reads is what was looked up.
            program.body.insert(0, step.size(size));
        }
        _ => {
            let n = 1 + random.byte(4);
            program.declares.push(Step::new(Op::DeclareLast, table, low).to(high).n(n));
            program.body.insert(0, Step::new(Op::DeleteLast, table, low).to(high).n(n));
        }
    }
}

/// Makes one of a program's tables the one with indexes; adds what is done with such a table only.
fn use_indexes(program: &mut Program, random: &mut Random, mix: &Mix) {
    let commits = |step: &Step| matches!(step.op, Op::PieceResult | Op::CommitPoint);
    if program.body.iter().any(|step| step.op == Op::PieceResult) {
        // It commits in its midst, and may not change an index then.
        return;
    }
    let table = program.declares.first().or(program.body.first()).map_or(HASHED, |step| step.table);
    for step in program.parts().into_iter().flatten().filter(|step| step.table == table) {
        step.table = INDEXED;
    }
    let (a, b, n) = (mix.key(random), mix.key(random), random.byte(4));
    let step = |op| Step::new(op, INDEXED, a).to(b).n(n);
    if random.percent(40) {
        let scan = step(Op::ScanIndex).flag(random.percent(50));
        // All of it, most of the time.
        let whole = Step::new(Op::ScanIndex, INDEXED, 0).n(n).flag(random.percent(50));
        anywhere(program, if random.percent(70) { whole } else { scan }, random);
    }
    if program.body.iter().any(commits) {
        return;
    }
    match random.below(10) {
        0..3 => {
            let declares = [a, b].map(|key| Step::new(Op::DeclareUpdate, INDEXED, key));
            program.declares.extend(declares);
            anywhere(program, step(Op::Swap), random);
        }
        3..5 => {
            program.declares.push(Step::new(Op::DeclareInsert, INDEXED, a));
            program.declares.push(Step::new(Op::DeclareDelete, INDEXED, b));
            anywhere(program, step(Op::Move).flag(random.percent(60)), random);
        }
        5 => {
            let size = 2 + random.byte(18);
            program.declares.push(step(Op::DeclareFound).tag(2));
            // First, so that the index is what it was.
            program.body.insert(0, step(Op::UpdateFound).size(size).tag(random.byte(256)));
        }
        _ => {}
    }
}

/// Ends the program early, or writes what was not declared.
fn damage(program: &mut Program, random: &mut Random, mix: &Mix) {
    let (table, key) = (mix.table(random), mix.key(random));
    match random.below(100) {
        0..9 => anywhere(program, Step::new(Op::Abort, HASHED, 0).tag(key), random),
        9..14 => anywhere(program, Step::new(Op::Panic, HASHED, 0), random),
        14..18 => anywhere(program, Step::new(Op::AbortIfAbsent, table, key).tag(5), random),
        18..20 => {
            let op = random.pick(&[Op::Insert, Op::Update, Op::Modify, Op::Delete]);
            anywhere(program, Step::new(op, table, key), random);
        }
        20 => program.declares.push(Step::new(Op::BadKey, table, 0)),
        21 => program.declares.push(Step::new(Op::Abort, HASHED, 0).tag(4)),
        22 => program.declares.push(Step::new(Op::Panic, HASHED, 0)),
        23 => anywhere(program, Step::new(Op::Scan, HASHED, key).to(key), random),
        24 => program.declares.push(Step::new(Op::DeclareRange, HASHED, key).to(key)),
        25..40 => anywhere(program, Step::new(Op::Info, HASHED, 0), random),
        40..45 => anywhere(program, Step::new(Op::Spin, HASHED, 0).n(random_spin(key)), random),
        _ => {}
    }
}

fn random_spin(key: u8) -> u8 {
    key.wrapping_mul(37)
}

/// Writes, a commit point, then reads and writes of other keys; never ends early after it.
fn committing(random: &mut Random, mix: &Mix) -> Program {
    let mut program = Program::default();
    let table = random.pick(&[HASHED, ORDERED, LONG]);
    let keys: Vec<u8> = (0..mix.keys.min(4)).map(|k| k as u8).collect();
    let (before, after) = keys.split_at(random.below(keys.len() as u64 + 1) as usize);
    for &key in &keys {
        program.declares.push(Step::new(Op::DeclareInsert, table, key));
    }
    let write = |random: &mut Random, key| {
        let op = random.pick(&[Op::Insert, Op::Update, Op::Delete, Op::Modify]);
        let size = random.byte(20);
        Step::new(op, table, key).size(size).tag(random.byte(256))
    };
    for &key in before {
        program.body.push(write(random, key));
        if random.percent(30) {
            program.body.push(write(random, key));
        }
    }
    program.body.push(Step::new(Op::CommitPoint, table, 0));
    for &key in before {
        program.body.push(Step::new(Op::Get, table, key));
    }
    for &key in after {
        program.body.push(write(random, key));
        program.body.push(Step::new(Op::Get, table, key));
    }
    if is_ordered(table) {
        program.body.push(Step::new(Op::Scan, table, 0).to(200).flag(random.percent(50)));
    }
    program
}
