//! A bank that stays: run `cargo run --release -p nvcaracal --example bank` several times.

use nvcaracal::{Abort, Database, Error, Procedure, Stop, Table, Transaction, WriteSet, plain};

const ACCOUNTS: Table<u64, Account> = Table::ordered("accounts");

plain! {
    struct Account { cents: i64 }
    struct Deposit { account: u64, cents: i64 }
    struct Transfer { from: u64, to: u64, cents: i64 }
}

impl Procedure for Deposit {
    const NAME: &'static str = "deposit";
    type Output = i64;
    fn write_set(&self, set: &mut WriteSet) {
        set.insert(ACCOUNTS, self.account);
    }
    fn run(&self, tx: &mut Transaction) -> Result<i64, Stop> {
        let cents = self.cents + tx.get(ACCOUNTS, self.account)?.map_or(0, |a| a.cents);
        tx.insert(ACCOUNTS, self.account, &Account { cents })?;
        Ok(cents)
    }
}

impl Procedure for Transfer {
    const NAME: &'static str = "transfer";
    type Output = i64;
    fn write_set(&self, set: &mut WriteSet) {
        set.update(ACCOUNTS, self.from);
        set.update(ACCOUNTS, self.to);
    }
    fn run(&self, tx: &mut Transaction) -> Result<i64, Stop> {
        let mut from = tx.get(ACCOUNTS, self.from)?.ok_or(Abort::new("no such account"))?;
        if from.cents < self.cents {
            return Err(Abort::new("not enough money").into());
        }
        from.cents -= self.cents;
        tx.update(ACCOUNTS, self.from, &from)?;
        let mut to = tx.get(ACCOUNTS, self.to)?.ok_or(Abort::new("no such account"))?;
        to.cents += self.cents;
        tx.update(ACCOUNTS, self.to, &to)?;
        Ok(from.cents)
    }
}

fn open() -> Result<Database, Error> {
    let options = Database::options().table(ACCOUNTS);
    let options = options.procedure::<Deposit>().procedure::<Transfer>();
    options.open(std::env::temp_dir().join("bank"))
}

fn sum(db: &Database) -> Result<i64, Error> {
    db.snapshot()?.range(ACCOUNTS, ..).map(|row| Ok(row?.1.cents)).sum()
}

fn main() -> Result<(), Error> {
    let db = open()?;
    (0..10).try_for_each(|account| db.call(Deposit { account, cents: 10_000 }).map(drop))?;
    let before = sum(&db)?;
    let pay = |from, i| db.submit(Transfer { from, to: (from + i) % 10, cents: i as i64 % 7 });
    std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|from| {
            scope.spawn(move || {
                let tickets: Result<Vec<_>, Error> = (1..1000).map(|i| pay(from, i)).collect();
                tickets?.into_iter().try_for_each(|ticket| ticket.wait().map(drop))
            })
        });
        threads.into_iter().try_for_each(|thread| thread.join().expect("payers do not panic"))
    })?;
    let error = db.call(Transfer { from: 1, to: 2, cents: i64::MAX }).expect_err("it is too much");
    println!("{:?} pays everything to account 2: {error}", db.get(ACCOUNTS, 1)?);
    db.close()?;

    let db = open()?;
    println!("{before} cents before the transfers, {} after a restart", sum(&db)?);
    assert_eq!(sum(&db)?, before);
    db.close()
}
