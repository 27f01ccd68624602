use std::collections::HashMap;

use nvcaracal::Data;

#[derive(Data)]
struct Basket {
    items: HashMap<u64, u32>,
}

fn main() {}
