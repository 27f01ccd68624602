use nvcaracal::{Database, HashTable, Table};

const SEATS: HashTable<u64, u64> = Table::hash("seats");

fn sum(db: &Database) -> nvcaracal::Result<usize> {
    Ok(db.snapshot()?.range(SEATS, 1..5).count())
}

fn main() {
    let _ = sum;
}
