//! The tables and procedures of the lab, and what they do: by the library, and by the model.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use nvcaracal::{
    Abort, Added, Batch, Data, Database, Error, Options, Procedure, Stop, Table, Ticket,
    Transaction, WriteSet, plain,
};

pub(crate) const ROWS: Table<u64, Row> = Table::ordered("rows");
/// What each call that committed did, under its number.
pub(crate) const LEDGER: Table<u64, Entry> = Table::ordered("ledger");

/// What calls change.
#[derive(Debug, Clone, PartialEq, Data)]
pub(crate) struct Row {
    pub(crate) cents: i64,
    pub(crate) note: String,
}

plain! {
    /// That a call committed, and where.
    pub(crate) struct Entry {
        pub(crate) serial: u64,
        pub(crate) timestamp: u64,
        pub(crate) value: i64,
    }
    /// The answer to a call.
    pub(crate) struct Done { pub(crate) id: u64, pub(crate) entry: Entry }
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Data)]
pub(crate) enum What {
    Add,
    /// Gives up where there is not enough.
    Move,
    /// Gives up where there is nothing.
    Delete,
    /// Reads all rows.
    Sum,
    /// Writes another row, too, if the first has become odd: that was not predicted.
    Stray,
    /// Writes the row of which another one says which it is.
    Follow,
    /// Panics if the row is even.
    Panic,
    GiveUp,
    Slow,
}

pub(crate) const WHATS: [What; 13] = [
    What::Add,
    What::Add,
    What::Move,
    What::Delete,
    What::Sum,
    What::Stray,
    What::Stray,
    What::Stray,
    What::Follow,
    What::Panic,
    What::GiveUp,
    What::Slow,
    What::Slow,
];

impl What {
    /// Whether it may be deferred. An update or a delete of a row that its own epoch has inserted
    /// is not predicted either.
    pub(crate) fn may_be_deferred(self) -> bool {
        matches!(self, Self::Stray | Self::Follow | Self::Move | Self::Delete)
    }
}

/// A call.
#[derive(Debug, Clone, PartialEq, Data)]
pub(crate) struct Act {
    pub(crate) id: u64,
    /// By which procedure.
    pub(crate) procedure: u64,
    pub(crate) what: What,
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) keys: u64,
    pub(crate) cents: i64,
    pub(crate) filler: Vec<u8>,
}

/// Where the rows are: in a transaction, or in a model.
trait Rows {
    type Stop: From<Abort>;
    fn get(&mut self, key: u64) -> Result<Option<Row>, Self::Stop>;
    fn put(&mut self, key: u64, row: Row) -> Result<(), Self::Stop>;
    fn delete(&mut self, key: u64) -> Result<(), Self::Stop>;
    fn all(&mut self) -> Result<Vec<(u64, Row)>, Self::Stop>;
    fn panic(&self, act: &Act) -> Self::Stop;
}

impl Act {
    fn row(&self, cents: i64) -> Row {
        let chars = if self.id.is_multiple_of(5) { 300 } else { self.id as usize % 30 };
        Row { cents, note: "n".repeat(chars) }
    }

    fn target(&self, row: Option<&Row>) -> u64 {
        row.map_or(0, |row| row.cents.unsigned_abs() % self.keys)
    }

    fn run<R: Rows>(&self, rows: &mut R) -> Result<i64, R::Stop> {
        let cents = |row: Option<Row>| row.map_or(0, |row| row.cents);
        let sum = cents(rows.get(self.a)?).wrapping_add(self.cents);
        match self.what {
            What::Add | What::Slow => rows.put(self.a, self.row(sum))?,
            What::Move => {
                let from = rows.get(self.a)?.ok_or(Abort::code(1))?.cents - self.cents;
                if from < 0 {
                    Err(Abort::code(2))?;
                }
                rows.put(self.a, self.row(from))?;
                let to = rows.get(self.b)?.ok_or(Abort::code(3))?.cents + self.cents;
                rows.put(self.b, self.row(to))?;
            }
            What::Delete => {
                rows.get(self.a)?.ok_or(Abort::code(4))?;
                rows.delete(self.a)?;
            }
            What::Sum => {
                let fold = |sum: i64, (key, row): (u64, Row)| {
                    let one = row.cents.wrapping_mul(31).wrapping_add(row.note.len() as i64);
                    sum.wrapping_mul(1_000_003).wrapping_add(one ^ key as i64)
                };
                return Ok(rows.all()?.into_iter().fold(0, fold));
            }
            What::Stray => {
                rows.put(self.a, self.row(sum))?;
                if sum % 2 != 0 {
                    let other = cents(rows.get(self.b)?) + 1;
                    rows.put(self.b, self.row(other))?;
                }
            }
            What::Follow => {
                let target = self.target(rows.get(self.a)?.as_ref());
                let sum = cents(rows.get(target)?) + 1;
                rows.put(target, self.row(sum))?;
                return Ok(target as i64);
            }
            What::Panic => {
                rows.put(self.a, self.row(sum))?;
                if sum % 2 == 0 {
                    return Err(rows.panic(self));
                }
            }
            What::GiveUp => {
                rows.put(self.a, self.row(sum))?;
                Err(Abort::code(5))?;
            }
        }
        Ok(sum)
    }
}

/// The rows of a transaction.
struct Real<'t, 'a, 'e>(&'t mut Transaction<'a, 'e>);

/// Why a call ends: the library says so, or it gives up.
enum Ended {
    Stop(Stop),
    Abort(Abort),
}

impl From<Abort> for Ended {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort)
    }
}

impl Rows for Real<'_, '_, '_> {
    type Stop = Ended;

    fn get(&mut self, key: u64) -> Result<Option<Row>, Ended> {
        self.0.get(ROWS, key).map_err(Ended::Stop)
    }

    fn put(&mut self, key: u64, row: Row) -> Result<(), Ended> {
        self.0.insert(ROWS, key, &row).map_err(Ended::Stop)
    }

    fn delete(&mut self, key: u64) -> Result<(), Ended> {
        self.0.delete(ROWS, key).map(drop).map_err(Ended::Stop)
    }

    fn all(&mut self) -> Result<Vec<(u64, Row)>, Ended> {
        self.0.range(ROWS, ..).collect::<Result<_, _>>().map_err(Ended::Stop)
    }

    fn panic(&self, act: &Act) -> Ended {
        panic!("{PANIC} {} {} {}", act.id, self.0.serial_id(), self.0.timestamp_ns());
    }
}

/// How panics that are meant begin.
pub(crate) const PANIC: &str = "lab panic";

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done(i64),
    Aborted(u32),
    Panicked,
}

impl From<Abort> for End {
    fn from(abort: Abort) -> Self {
        Self::Aborted(abort.code)
    }
}

/// The rows as they must be.
pub(crate) type Model = BTreeMap<u64, Row>;

impl Rows for Model {
    type Stop = End;

    fn get(&mut self, key: u64) -> Result<Option<Row>, End> {
        Ok(BTreeMap::get(self, &key).cloned())
    }

    fn put(&mut self, key: u64, row: Row) -> Result<(), End> {
        self.insert(key, row);
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<(), End> {
        self.remove(&key);
        Ok(())
    }

    fn all(&mut self) -> Result<Vec<(u64, Row)>, End> {
        Ok(self.iter().map(|(key, row)| (*key, row.clone())).collect())
    }

    fn panic(&self, _: &Act) -> End {
        End::Panicked
    }
}

/// Runs a call on the model.
pub(crate) fn model(act: &Act, rows: &mut Model) -> End {
    let mut after = rows.clone();
    match act.run(&mut after) {
        Ok(value) => {
            *rows = after;
            End::Done(value)
        }
        Err(end) => end,
    }
}

fn write_set(act: &Act, set: &mut WriteSet) {
    set.insert(LEDGER, act.id);
    match act.what {
        What::Sum => {}
        What::Move => {
            set.update(ROWS, act.a);
            set.update(ROWS, act.b);
        }
        What::Delete => set.delete(ROWS, act.a),
        What::Follow => {
            let target = act.target(set.get(ROWS, act.a).as_ref());
            set.insert(ROWS, target);
        }
        _ => set.insert(ROWS, act.a),
    }
}

fn run(act: &Act, tx: &mut Transaction) -> Result<Done, Stop> {
    if act.what == What::Slow {
        thread::sleep(Duration::from_micros(300));
    }
    let (id, serial, timestamp) = (act.id, tx.serial_id(), tx.timestamp_ns());
    let mut payload = Vec::new();
    [id, serial, timestamp].iter().for_each(|word| payload.extend(word.to_le_bytes()));
    let with_place = |abort: Abort| Stop::from(Abort { payload, ..abort });
    let value = match act.run(&mut Real(tx)) {
        Ok(value) => value,
        Err(Ended::Stop(stop)) => return Err(stop),
        Err(Ended::Abort(abort)) => return Err(with_place(abort)),
    };
    let entry = Entry { serial, timestamp, value };
    tx.insert(LEDGER, id, &entry)?;
    Ok(Done { id, entry })
}

macro_rules! procedures {
    ($($number:literal $name:ident $text:literal $predicts:literal),*) => {
        $(
            #[derive(Debug, Clone, PartialEq, Data)]
            struct $name {
                act: Act,
            }

            impl Procedure for $name {
                const NAME: &'static str = $text;
                type Output = Done;

                fn write_set(&self, set: &mut WriteSet) {
                    if $predicts { write_set(&self.act, set) } else { set.unknown() }
                }

                fn run(&self, tx: &mut Transaction) -> Result<Done, Stop> {
                    run(&self.act, tx)
                }
            }
        )*

        /// Adds the lab's tables and procedures.
        pub(crate) fn program(options: Options) -> Options {
            options.table(ROWS).table(LEDGER)$(.procedure::<$name>())*
        }

        /// Does something with a call as its procedure.
        macro_rules! with_procedure {
            ($act:expr, $procedure:ident => $then:expr) => {{
                let act: Act = $act;
                match act.procedure {
                    $($number => { let $procedure = $name { act }; $then })*
                    other => unreachable!("there is no procedure {other}"),
                }
            }};
        }
    };
}

/// Several of one kind: one that was deferred goes to the serial part for a while.
pub(crate) const PROCEDURES: u64 = 8;

procedures!(
    0 Act0 "act 0" true, 1 Act1 "act 1" true, 2 Act2 "act 2" true, 3 Act3 "act 3" true,
    4 Act4 "act 4" true, 5 Act5 "act 5" true, 6 Act6 "act 6" true, 7 Wild "wild" false
);

/// How a call is submitted.
pub(crate) fn call(db: &Database, act: Act) -> nvcaracal::Result<Done> {
    with_procedure!(act, procedure => db.call(procedure))
}

pub(crate) fn submit(db: &Database, act: Act) -> nvcaracal::Result<Ticket<Done>> {
    with_procedure!(act, procedure => db.submit(procedure))
}

pub(crate) fn try_submit(db: &Database, act: Act) -> nvcaracal::Result<Ticket<Done>> {
    with_procedure!(act, procedure => db.try_submit(procedure))
}

pub(crate) async fn submit_async(db: &Database, act: Act) -> nvcaracal::Result<Ticket<Done>> {
    with_procedure!(act, procedure => db.submit_async(procedure).await)
}

pub(crate) async fn call_async(db: &Database, act: Act) -> nvcaracal::Result<Done> {
    with_procedure!(act, procedure => db.call_async(procedure).await)
}

pub(crate) fn add(batch: &mut Batch<'_>, act: Act) -> nvcaracal::Result<Added<Done>> {
    with_procedure!(act, procedure => batch.add(&procedure))
}

/// Whose answer it is, where the call ran, and when: number, serial id, timestamp.
pub(crate) fn place_of(error: &Error) -> Option<[u64; 3]> {
    if let Some(abort) = error.abort() {
        let mut words = abort.payload.chunks_exact(8).map(|word| word.try_into());
        let mut word = || Some(u64::from_le_bytes(words.next()?.ok()?));
        return Some([word()?, word()?, word()?]);
    }
    let text = error.to_string();
    let (_, numbers) = text.split_once(PANIC)?;
    let mut numbers = numbers.split_whitespace().map(|number| number.parse::<u64>());
    let mut number = || numbers.next()?.ok();
    Some([number()?, number()?, number()?])
}
