use nvcaracal::{Data, Database};

#[derive(Data)]
struct Deposit {
    cents: u64,
}

fn deposit(db: &Database) {
    let _ = db.call(Deposit { cents: 1 });
}

fn main() {
    let _ = deposit;
}
