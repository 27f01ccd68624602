//! What depends on the serial order: sequences, reconnaissance, scans.

use crate::common::{ACCOUNTS, Deposit, POINTERS, Point, dram, options, rows};
use nvcaracal::{
    Abort, Data, Database, Options, Procedure, Sequence, Sequences, Stop, Table, Transaction,
    Tuning, WriteSet, plain,
};

const ORDER_IDS: Sequence = Sequence::new("order_ids");
const ORDERS: Table<(u32, u64), String> = Table::ordered("orders");

/// Places an order in a shop; aborts while allocating if there is no text.
#[derive(Debug, Clone, PartialEq, Data)]
struct Order {
    shop: u32,
    text: String,
}

impl Procedure for Order {
    const NAME: &'static str = "order";
    type Output = u64;

    fn sequences(&self, sequences: &mut Sequences) -> Result<(), Abort> {
        if self.text.is_empty() {
            return Err(Abort::new("nothing ordered"));
        }
        sequences.allocate(ORDER_IDS.at(self.shop.into()));
        Ok(())
    }

    fn write_set(&self, set: &mut WriteSet) {
        let id = set.sequence_number(0);
        set.insert(ORDERS, (self.shop, id));
    }

    fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
        let id = tx.sequence_number(0);
        tx.insert(ORDERS, (self.shop, id), &self.text)?;
        Ok(id)
    }
}

#[test]
fn sequences_are_dense() {
    let db = dram(options().table(ORDERS).sequence(ORDER_IDS).procedure::<Order>());
    std::thread::scope(|scope| {
        for shop in 0..4u32 {
            let db = &db;
            scope.spawn(move || {
                for i in 0..50 {
                    let text = if i % 5 == 0 { String::new() } else { format!("order {i}") };
                    let result = db.call(Order { shop: shop / 2, text });
                    assert_eq!(result.is_err(), i % 5 == 0);
                }
            });
        }
    });
    for shop in 0..2 {
        let snapshot = db.snapshot().unwrap();
        let orders = snapshot.range(ORDERS, (shop, 0)..(shop + 1, 0));
        let ids: Vec<_> = orders.map(|order| order.unwrap().0.1).collect();
        assert_eq!(ids, (0..80).collect::<Vec<_>>());
        assert_eq!(snapshot.sequence(ORDER_IDS.at(shop.into())).unwrap(), 80);
    }
}

plain! {
    struct Follow { add: i64 }
}

impl Procedure for Follow {
    const NAME: &'static str = "follow";
    type Output = (u64, i64);

    fn write_set(&self, set: &mut WriteSet) {
        if let Some(account) = set.get(POINTERS, 0) {
            set.insert(ACCOUNTS, account);
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<(u64, i64), Stop> {
        let account = tx.get(POINTERS, 0)?.ok_or(Abort::new("nowhere"))?;
        let cents = tx.get(ACCOUNTS, account)?.unwrap_or(0) + self.add;
        tx.insert(ACCOUNTS, account, &cents)?;
        Ok((account, cents))
    }
}

fn with_pointers(options: Options) -> Database {
    let db = dram(options.table(POINTERS).procedure::<Point>().procedure::<Follow>());
    db.call(Point { to: 1 }).unwrap();
    db
}

#[test]
fn a_deferred_call_is_answered_once_it_ran() {
    // Small epochs would be serial as a whole.
    let db = with_pointers(options().tuning(Tuning { serial_calls_max: 0, ..Tuning::default() }));
    for to in 2..20 {
        let mut batch = db.batch();
        let early = batch.add(&Follow { add: 1 }).unwrap();
        let point = batch.add(&Point { to }).unwrap();
        let late = batch.add(&Follow { add: 10 }).unwrap();
        let later = batch.add(&Follow { add: 100 }).unwrap();
        let submitted = batch.submit().unwrap();
        assert_eq!(submitted.ticket(early).wait().unwrap().0, to - 1);
        submitted.ticket(point).wait().unwrap();
        assert_eq!(submitted.ticket(late).wait().unwrap(), (to, 10));
        assert_eq!(submitted.ticket(later).wait().unwrap(), (to, 110));
        submitted.wait();
    }
    assert_eq!(db.stats().deferred, 2, "after the first batch it goes to the serial part at once");
    // Nobody is there to hear the answer, and closing waits for it all the same.
    let mut batch = db.batch();
    batch.add(&Point { to: 50 }).unwrap();
    batch.add(&Follow { add: 5 }).unwrap();
    batch.submit().unwrap();
    db.close().unwrap();
}

plain! {
    /// Makes an account one larger, and answers with its serial id: by an insert, an update, or an
    /// insert where only an update was declared; or deletes it.
    struct Change { account: u64, how: u64 }
}

impl Procedure for Change {
    const NAME: &'static str = "change";
    type Output = (u64, Option<i64>);

    fn write_set(&self, set: &mut WriteSet) {
        match self.how {
            0 => set.insert(ACCOUNTS, self.account),
            1 | 2 => set.update(ACCOUNTS, self.account),
            _ => set.delete(ACCOUNTS, self.account),
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<Self::Output, Stop> {
        let cents = tx.get(ACCOUNTS, self.account)?;
        let next = cents.unwrap_or(0) + 1;
        match self.how {
            0 | 2 => tx.insert(ACCOUNTS, self.account, &next)?,
            1 => assert_eq!(tx.update(ACCOUNTS, self.account, &next)?, cents.is_some()),
            _ => assert_eq!(tx.delete(ACCOUNTS, self.account)?, cents.is_some()),
        }
        Ok((tx.serial_id(), cents))
    }
}

/// Calls of a batch that update and delete rows which the same batch inserts are predicted: they
/// keep their places. One that is deferred comes in the next epoch, before all others there.
#[test]
fn calls_of_a_batch_have_serial_ids_in_their_order() {
    for account in 0..20 {
        let db = dram(
            options()
                .tuning(Tuning { serial_calls_max: 0, ..Tuning::default() })
                .procedure::<Change>(),
        );
        // Known to predict what it writes.
        for how in [0, 1, 3] {
            db.call(Change { account: 100, how }).unwrap();
        }
        let run = |hows: &[u64]| {
            let mut batch = db.batch();
            let added: Vec<_> =
                hows.iter().map(|&how| batch.add(&Change { account, how }).unwrap()).collect();
            let submitted = batch.submit().unwrap();
            let answers = added.into_iter().map(|added| submitted.ticket(added).wait().unwrap());
            answers.collect::<Vec<_>>()
        };
        let hows = [1, 0, 1, 3, 1, 3, 0, 0, 1, 1, 3, 0];
        let answers = run(&hows);
        let first = answers[0].0;
        let mut expected = None;
        for ((at, how), answer) in (0..).zip(hows).zip(answers) {
            assert_eq!(answer, (first + at, expected), "call {at}");
            expected = match (how, expected) {
                (0, cents) => Some(cents.unwrap_or(0) + 1),
                (1, cents) => cents.map(|cents| cents + 1),
                _ => None,
            };
        }
        assert_eq!(db.stats().deferred, 0);
        let answers = run(&[2, 1, 1, 1, 1, 1, 1, 1, 1]);
        let first = answers[1].0;
        let others: Vec<_> = answers[1..].iter().map(|&(serial, _)| serial).collect();
        assert_eq!(others, (first..first + 8).collect::<Vec<_>>());
        assert!(answers[0].0 >> 24 > first >> 24, "{answers:?}");
        assert_eq!((answers[0].1, db.stats().deferred), (Some(9), 1));
    }
}

plain! {
    /// Deletes a range of accounts and answers with how many there are in it, from both ends.
    struct Clear { from: u64, to: u64 }
}

impl Procedure for Clear {
    const NAME: &'static str = "clear";
    type Output = (Vec<u64>, Vec<u64>, Option<u64>);

    fn write_set(&self, set: &mut WriteSet) {
        set.update_range(ACCOUNTS, self.from..=self.to);
        let keys = |rows: Vec<(u64, i64)>| rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        let up = keys(set.range(ACCOUNTS, self.from..=self.to).collect());
        let mut down = keys(set.range(ACCOUNTS, self.from..=self.to).rev().collect());
        assert_eq!(set.count(ACCOUNTS, self.from..=self.to), up.len() as u64);
        down.reverse();
        assert_eq!(up, down);
    }

    fn run(&self, tx: &mut Transaction) -> Result<Self::Output, Stop> {
        let range = || self.from..=self.to;
        let key = |row: Result<(u64, i64), Stop>| row.map(|(key, _)| key);
        let back: Vec<u64> =
            tx.range(ACCOUNTS, range()).rev().map(key).collect::<Result<_, _>>()?;
        let first = tx.range(ACCOUNTS, range()).next().map(key).transpose()?;
        let keys: Vec<u64> = tx.range(ACCOUNTS, range()).map(key).collect::<Result<_, _>>()?;
        assert_eq!(tx.count(ACCOUNTS, range())?, keys.len() as u64);
        for key in &keys {
            assert!(tx.delete(ACCOUNTS, key)?);
        }
        Ok((keys, back, first))
    }
}

#[test]
fn scans_meet_every_key_of_their_range() {
    let db = dram(options().procedure::<Clear>());
    let keys = [0, 1, 5, u64::MAX - 1, u64::MAX];
    for account in keys {
        db.call(Deposit { account, cents: 1 }).unwrap();
    }
    let clear = |from, to| db.call(Clear { from, to }).unwrap();
    assert_eq!(clear(2, 4), (vec![], vec![], None));
    assert_eq!(clear(u64::MAX, u64::MAX), (vec![u64::MAX], vec![u64::MAX], Some(u64::MAX)));
    db.call(Deposit { account: u64::MAX, cents: 1 }).unwrap();
    assert_eq!(rows(&db, 1..u64::MAX).len(), 3);
    let mut back = keys.to_vec();
    back.reverse();
    assert_eq!(clear(0, u64::MAX), (keys.to_vec(), back, Some(0)));
    assert!(rows(&db, ..).is_empty());
}

/// Changes and deletes an account, and reads these and others: at once, and one by one.
#[derive(Debug, Clone, PartialEq, Data)]
struct ReadMany {
    change: u64,
    delete: u64,
    keys: Vec<u64>,
}

type Found = Vec<Option<i64>>;

impl Procedure for ReadMany {
    const NAME: &'static str = "read_many";
    type Output = (Found, Found);

    fn write_set(&self, set: &mut WriteSet) {
        set.update(ACCOUNTS, self.change);
        set.delete(ACCOUNTS, self.delete);
    }

    fn run(&self, tx: &mut Transaction) -> Result<Self::Output, Stop> {
        tx.update(ACCOUNTS, self.change, &-1)?;
        tx.delete(ACCOUNTS, self.delete)?;
        let one_by_one: Result<_, Stop> =
            self.keys.iter().map(|key| tx.get(ACCOUNTS, key)).collect();
        Ok((tx.get_many(ACCOUNTS, &self.keys)?, one_by_one?))
    }
}

#[test]
fn many_rows_are_read_as_they_would_be_one_by_one() {
    let db = dram(options().procedure::<ReadMany>());
    for account in 0..100 {
        db.call(Deposit { account, cents: account as i64 }).unwrap();
    }
    let keys = vec![7, 300, 3, 99, 7, 50, 4];
    let (many, single) = db.call(ReadMany { change: 3, delete: 50, keys }).unwrap();
    assert_eq!(many, [Some(7), None, Some(-1), Some(99), Some(7), None, Some(4)]);
    assert_eq!(many, single);
    let nothing = ReadMany { change: 3, delete: 50, keys: Vec::new() };
    assert_eq!(db.call(nothing).unwrap(), (Vec::new(), Vec::new()));
}

/// The same keys under another type of value.
const AS_TEXT: Table<u64, String> = Table::ordered("accounts");

plain! {
    /// Reads an account as what it is not.
    struct Misread { account: u64 }
}

impl Procedure for Misread {
    const NAME: &'static str = "misread";
    type Output = u64;

    fn write_set(&self, _: &mut WriteSet) {}

    fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
        Ok(tx.get_many(AS_TEXT, [self.account])?.len() as u64)
    }
}

#[test]
fn rows_that_are_of_another_type_are_a_mistake() {
    let db = dram(options().procedure::<Misread>());
    db.call(Deposit { account: 1, cents: -1 }).unwrap();
    let error = db.call(Misread { account: 1 }).unwrap_err();
    assert!(error.is_failed() && error.to_string().contains("accounts"), "{error}");
}
