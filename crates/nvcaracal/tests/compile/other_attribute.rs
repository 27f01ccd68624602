use nvcaracal::Data;

#[derive(Data)]
struct Seat {
    #[data(default = "7")]
    cents: u64,
}

#[derive(Data)]
#[data(rename = "x")]
struct Other;

fn main() {}
