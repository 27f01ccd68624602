//! The tables and procedures of the lab, and what they do: by the library, and by the model.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use nvcaracal::{
    Abort, Added, Batch, Data, Database, Error, Options, Procedure, Sequences, Stop, Submitter,
    Table, Ticket, Transaction, Was, WriteSet, plain,
};

use crate::items::{self, BY_OWNER, ITEMS, Item, Items, NUMBERS, Of, SEQUENCES};

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
    /// Puts an item, which may have the tag of another one: looks for that, or is told.
    Item,
    /// Deletes all items of an owner.
    Dismiss,
    /// Counts on with all items of an owner, which stay where they are in the indexes.
    Touch,
    /// Reads all items that have an owner.
    Find,
    /// Answers with a number that it drew; gives up where that is not wanted.
    Number,
}

pub(crate) const WHATS: [What; 20] = [
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
    What::Item,
    What::Item,
    What::Dismiss,
    What::Touch,
    What::Find,
    What::Number,
    What::Number,
];

impl What {
    /// Whether it may write what it did not predict, have read what has changed since, or change an
    /// index, which no call does beside others.
    pub(crate) fn may_be_deferred(self) -> bool {
        let may_be = [Self::Stray, Self::Follow, Self::Item, Self::Dismiss, Self::Touch];
        may_be.contains(&self)
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
    /// As `put`, of a row that there is.
    fn update(&mut self, key: u64, row: Row) -> Result<(), Self::Stop>;
    fn delete(&mut self, key: u64) -> Result<(), Self::Stop>;
    fn all(&mut self) -> Result<Vec<(u64, Row)>, Self::Stop>;
    fn item(&mut self, key: u64) -> Result<Option<Item>, Self::Stop>;
    fn put_item(&mut self, key: u64, item: Item) -> Result<(), Self::Stop>;
    fn delete_item(&mut self, key: u64) -> Result<(), Self::Stop>;
    fn find(&mut self, of: Of<'_>) -> Result<Items, Self::Stop>;
    /// The number that the call drew.
    fn sequence_number(&self) -> i64;
    fn panic(&self, act: &Act) -> Self::Stop;
}

impl Act {
    fn row(&self, cents: i64) -> Row {
        let chars = if self.id.is_multiple_of(5) { 300 } else { self.id as usize % 30 };
        let letter = if self.procedure == LATER { "m" } else { "n" };
        Row { cents, note: letter.repeat(chars) }
    }

    fn target(&self, row: Option<&Row>) -> u64 {
        row.map_or(0, |row| row.cents.unsigned_abs() % self.keys)
    }

    /// The sequence that it allocates from, if it does.
    pub(crate) fn sequence(&self) -> Option<usize> {
        (self.what == What::Number).then_some(self.a as usize % SEQUENCES)
    }

    /// The owner of the items that it is about.
    fn owner(&self) -> u64 {
        self.b % 3
    }

    /// Whether it looks for its tag before it uses it.
    pub(crate) fn looks_first(&self) -> bool {
        self.cents % 2 != 0
    }

    /// Does what it has to do with items and numbers.
    fn run_items<R: Rows>(&self, rows: &mut R) -> Result<i64, R::Stop> {
        match self.what {
            What::Item => {
                let tag = if self.b == 0 { String::new() } else { format!("tag {}", self.b) };
                if self.looks_first() && self.b > 0 {
                    let found = rows.find(Of::Tag(&tag))?;
                    if found.iter().any(|(key, _)| *key != self.a) {
                        Err(Abort::code(7))?;
                    }
                }
                let count = rows.item(self.a)?.map_or(0, |item| item.count) + 1;
                let owner = (self.cents % 4 != 0).then_some(self.cents as u64 % 3);
                rows.put_item(self.a, Item { owner, tag, count })?;
                Ok(count)
            }
            What::Dismiss => {
                let found = rows.find(Of::Owner(self.owner()))?;
                found.iter().try_for_each(|(key, _)| rows.delete_item(*key))?;
                Ok(found.len() as i64)
            }
            What::Touch => {
                let found = rows.find(Of::Owner(self.owner()))?;
                let len = found.len() as i64;
                for (key, item) in found {
                    rows.put_item(key, Item { count: item.count + self.cents, ..item })?;
                }
                Ok(len)
            }
            What::Number if self.cents % 5 == 0 => Err(Abort::code(6))?,
            What::Number => Ok(rows.sequence_number()),
            _ => {
                let fold = |sum: i64, (key, item): (u64, Item)| {
                    let one = item.count.wrapping_mul(31).wrapping_add(item.tag.len() as i64);
                    sum.wrapping_mul(1_000_003).wrapping_add(one ^ key as i64)
                };
                Ok(rows.find(Of::Everyone)?.into_iter().fold(0, fold))
            }
        }
    }

    fn run<R: Rows>(&self, rows: &mut R) -> Result<i64, R::Stop> {
        if self.what as u8 >= What::Item as u8 {
            return self.run_items(rows);
        }
        let cents = |row: Option<Row>| row.map_or(0, |row| row.cents);
        let sum = cents(rows.get(self.a)?).wrapping_add(self.cents);
        match self.what {
            What::Add | What::Slow => rows.put(self.a, self.row(sum))?,
            What::Move => {
                let from = rows.get(self.a)?.ok_or(Abort::code(1))?.cents - self.cents;
                if from < 0 {
                    Err(Abort::code(2))?;
                }
                rows.update(self.a, self.row(from))?;
                let to = rows.get(self.b)?.ok_or(Abort::code(3))?.cents + self.cents;
                rows.update(self.b, self.row(to))?;
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
            _ => unreachable!("it is about items"),
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

    fn update(&mut self, key: u64, row: Row) -> Result<(), Ended> {
        match self.0.update(ROWS, key, &row) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Abort::code(NOT_THERE).into()),
            Err(stop) => Err(Ended::Stop(stop)),
        }
    }

    fn delete(&mut self, key: u64) -> Result<(), Ended> {
        self.0.delete(ROWS, key).map(drop).map_err(Ended::Stop)
    }

    fn all(&mut self) -> Result<Vec<(u64, Row)>, Ended> {
        self.0.range(ROWS, ..).collect::<Result<_, _>>().map_err(Ended::Stop)
    }

    fn item(&mut self, key: u64) -> Result<Option<Item>, Ended> {
        self.0.get(ITEMS, key).map_err(Ended::Stop)
    }

    fn put_item(&mut self, key: u64, item: Item) -> Result<(), Ended> {
        // Where there is one, it may have been declared for an update.
        let updated = self.0.update(ITEMS, key, &item).map_err(Ended::Stop)?;
        if updated { Ok(()) } else { self.0.insert(ITEMS, key, &item).map_err(Ended::Stop) }
    }

    fn delete_item(&mut self, key: u64) -> Result<(), Ended> {
        self.0.delete(ITEMS, key).map(drop).map_err(Ended::Stop)
    }

    fn find(&mut self, of: Of<'_>) -> Result<Items, Ended> {
        items::find(self.0, of).map_err(Ended::Stop)
    }

    fn sequence_number(&self) -> i64 {
        self.0.sequence_number(0) as i64
    }

    fn panic(&self, act: &Act) -> Ended {
        panic!("{PANIC} {} {} {}", act.id, self.0.serial_id(), self.0.timestamp_ns());
    }
}

/// The code of an abort that never happens: an update finds the row that was read.
const NOT_THERE: u32 = 99;

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
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) rows: BTreeMap<u64, Row>,
    pub(crate) items: BTreeMap<u64, Item>,
    /// What the call that runs says that it drew.
    allocation: i64,
}

impl Rows for Model {
    type Stop = End;

    fn get(&mut self, key: u64) -> Result<Option<Row>, End> {
        Ok(self.rows.get(&key).cloned())
    }

    fn put(&mut self, key: u64, row: Row) -> Result<(), End> {
        self.rows.insert(key, row);
        Ok(())
    }

    fn update(&mut self, key: u64, row: Row) -> Result<(), End> {
        self.put(key, row)
    }

    fn delete(&mut self, key: u64) -> Result<(), End> {
        self.rows.remove(&key);
        Ok(())
    }

    fn all(&mut self) -> Result<Vec<(u64, Row)>, End> {
        Ok(self.rows.clone().into_iter().collect())
    }

    fn item(&mut self, key: u64) -> Result<Option<Item>, End> {
        Ok(self.items.get(&key).cloned())
    }

    fn put_item(&mut self, key: u64, item: Item) -> Result<(), End> {
        self.items.insert(key, item);
        Ok(())
    }

    fn delete_item(&mut self, key: u64) -> Result<(), End> {
        self.items.remove(&key);
        Ok(())
    }

    fn find(&mut self, of: Of<'_>) -> Result<Items, End> {
        Ok(items::find_in(&self.items, of))
    }

    fn sequence_number(&self) -> i64 {
        self.allocation
    }

    fn panic(&self, _: &Act) -> End {
        End::Panicked
    }
}

/// Runs a call on the model. A number that it says that it drew is taken for one; whether it may
/// be is for the caller to see.
pub(crate) fn model(act: &Act, rows: &mut Model, told: End) -> End {
    let mut after = rows.clone();
    if let End::Done(value) = told {
        after.allocation = value;
    }
    match act.run(&mut after) {
        Ok(_) if !items::are_unique(&after.items) => End::Aborted(Abort::NOT_UNIQUE),
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
        What::Sum | What::Find | What::Number => {}
        What::Item => set.insert(ITEMS, act.a),
        What::Dismiss | What::Touch => {
            let owner = act.owner();
            let found: Items = set.range_by(BY_OWNER, owner..=owner).collect();
            found.iter().for_each(|(key, _)| set.update(ITEMS, *key));
        }
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
    ($($number:literal $name:ident $text:literal $predicts:literal $version:literal $was:expr),*)
    => {
        $(
            #[derive(Debug, Clone, PartialEq, Data)]
            struct $name {
                act: Act,
            }

            impl Procedure for $name {
                const NAME: &'static str = $text;
                const VERSION: u32 = $version;
                const WAS: Option<Was> = $was;
                type Output = Done;

                fn sequences(&self, sequences: &mut Sequences) -> Result<(), Abort> {
                    if let Some(sequence) = self.act.sequence() {
                        sequences.allocate(NUMBERS.at(sequence as u64));
                    }
                    Ok(())
                }

                fn write_set(&self, set: &mut WriteSet) {
                    if $predicts { write_set(&self.act, set) } else { set.unknown() }
                }

                fn run(&self, tx: &mut Transaction) -> Result<Done, Stop> {
                    run(&self.act, tx)
                }
            }
        )*

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
/// The first procedure as the later program has it: it writes other notes.
const LATER: u64 = PROCEDURES;

procedures!(
    0 Act0 "act 0" true 1 None, 1 Act1 "act 1" true 1 None, 2 Act2 "act 2" true 1 None,
    3 Act3 "act 3" true 1 None, 4 Act4 "act 4" true 1 None, 5 Act5 "act 5" true 1 None,
    6 Act6 "act 6" true 1 None, 7 Wild "wild" false 1 None,
    8 Later0 "act 0" true 2 Some(Was::new::<Act0>())
);

/// Adds the lab's tables and procedures. There are two programs: the later one opens the stores of
/// the one before, whose logs have calls of the version before of a procedure (O-107).
pub(crate) fn program(options: Options, is_later: bool) -> Options {
    let options = items::with_items(options.table(ROWS).table(LEDGER));
    let options = options.procedure::<Act1>().procedure::<Act2>().procedure::<Act3>();
    let options = options.procedure::<Act4>().procedure::<Act5>().procedure::<Act6>();
    let options = options.procedure::<Wild>();
    if is_later { options.procedure::<Later0>() } else { options.procedure::<Act0>() }
}

/// The number of a procedure in one of the programs.
pub(crate) fn of_program(procedure: u64, is_later: bool) -> u64 {
    if is_later && procedure == 0 { LATER } else { procedure }
}

/// How a call is submitted.
pub(crate) fn call(db: &Database, act: Act) -> nvcaracal::Result<Done> {
    with_procedure!(act, procedure => db.call(procedure))
}

pub(crate) fn submit(db: &Database, act: Act) -> nvcaracal::Result<Ticket<Done>> {
    with_procedure!(act, procedure => db.submit(procedure))
}

pub(crate) fn submit_by(by: &Submitter, act: Act) -> nvcaracal::Result<Ticket<Done>> {
    with_procedure!(act, procedure => by.submit(procedure))
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
