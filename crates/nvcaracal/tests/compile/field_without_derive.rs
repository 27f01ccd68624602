use nvcaracal::Data;

enum State {
    Free,
}

#[derive(Data)]
struct Seat {
    state: State,
}

fn main() {
    let _ = Seat { state: State::Free };
}
