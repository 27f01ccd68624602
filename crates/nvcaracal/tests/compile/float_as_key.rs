use nvcaracal::{HashTable, Table};

const PRICES: HashTable<f64, String> = Table::hash("prices");

fn main() {
    let _ = PRICES;
}
