use nvcaracal::{Data, Key};

#[derive(Data)]
enum Never {}

#[derive(Key)]
union Either {
    a: u32,
    b: i32,
}

fn main() {}
