use nvcaracal::Data;

#[derive(Data)]
struct SeatV1 {
    cents: u64,
}

#[derive(Data)]
#[data(was = SeatV1)]
struct Seat {
    cents: u64,
    row: u32,
}

fn main() {}
