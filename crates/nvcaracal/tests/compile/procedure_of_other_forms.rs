use nvcaracal::{Stop, Transaction, procedure};

#[procedure]
fn without_transaction() -> Result<(), Stop> {
    Ok(())
}

#[procedure]
fn without_result(tx: &mut Transaction) -> u64 {
    1
}

#[procedure]
fn with_a_pattern(tx: &mut Transaction, (a, b): (u64, u64)) -> Result<u64, Stop> {
    Ok(a + b)
}

#[procedure]
async fn asynchronous(tx: &mut Transaction) -> Result<(), Stop> {
    Ok(())
}

#[procedure(pieces)]
fn with_another_option(tx: &mut Transaction) -> Result<(), Stop> {
    Ok(())
}

struct Foreign;

#[procedure]
fn with_another_type(tx: &mut Transaction, foreign: &Foreign) -> Result<(), Stop> {
    let _ = (tx, foreign);
    Ok(())
}

fn main() {}
