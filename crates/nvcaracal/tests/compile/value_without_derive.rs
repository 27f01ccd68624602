use nvcaracal::{HashTable, Table};

struct Seat {
    cents: u64,
}

const SEATS: HashTable<u64, Seat> = Table::hash("seats");

fn main() {
    let _ = (SEATS, Seat { cents: 1 }.cents);
}
