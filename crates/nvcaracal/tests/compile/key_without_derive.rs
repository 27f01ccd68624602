use nvcaracal::{Data, HashTable, Table};

#[derive(Debug, Data)]
struct UserId(u64);

const USERS: HashTable<UserId, String> = Table::hash("users");

fn main() {
    let _ = USERS;
}
