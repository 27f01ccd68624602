//! The example of the README.

use nvcaracal::{Data, Database, Error, HashTable, Stop, Table, Transaction, procedure};

const ACCOUNTS: HashTable<u64, Account> = Table::hash("accounts");

#[derive(Data)]
struct Account {
    owner: String,
    cents: i64,
}

#[procedure]
fn open_account(tx: &mut Transaction, account: u64, owner: String) -> Result<(), Stop> {
    tx.insert(ACCOUNTS, account, &Account { owner, cents: 0 })
}

#[procedure]
fn deposit(tx: &mut Transaction, account: u64, cents: i64) -> Result<i64, Stop> {
    let mut of = tx.get(ACCOUNTS, account)?.ok_or("there is no such account")?;
    of.cents += cents;
    tx.update(ACCOUNTS, account, &of)?;
    Ok(of.cents)
}

fn main() -> Result<(), Error> {
    let options = Database::options().table(ACCOUNTS);
    let db = options.procedure::<OpenAccount>().procedure::<Deposit>().open("bank")?;
    db.call(OpenAccount { account: 1, owner: "Ada".into() })?; // durable when it returns
    let ticket = db.submit(Deposit { account: 1, cents: 500 })?; // from any thread
    println!("account 1 has {} cents", ticket.wait()?);
    db.close()
}
