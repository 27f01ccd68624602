//! Pieces of transactions: many buyers, one row that counts what is left.

use crate::common::dram;
use nvcaracal::{
    Abort, Database, HashTable, Options, Piece, PieceResult, PieceResults, Procedure, Stop, Table,
    Transaction, Tuning, WriteSet, plain,
};

const LEFT: HashTable<u64, i64> = Table::hash("left");
const SALES: Table<u64, u64> = Table::ordered("sales");

plain! {
    struct Stock { event: u64, seats: i64 }
    /// Gives up in its body if its number is divisible by 7.
    struct Buy { sale: u64, event: u64, ask: u64 }
    struct NoPieces { event: u64 }
}

impl Procedure for Stock {
    const NAME: &'static str = "stock";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(LEFT, self.event);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        tx.insert(LEFT, self.event, &self.seats)
    }
}

impl Procedure for Buy {
    const NAME: &'static str = "buy";
    /// The seat, and what the body was told of it.
    type Output = (u64, u64);
    const PIECES: bool = true;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(SALES, self.sale);
        set.update_piece(LEFT, self.event, 1);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(u64, u64), Stop> {
        tx.insert(SALES, self.sale, &self.event)?;
        if self.sale.is_multiple_of(7) {
            return Err(Abort::new("changed my mind").into());
        }
        Ok((0, if self.ask > 0 { tx.piece_result(0)? } else { 0 }))
    }

    fn piece(&self, piece: &mut Piece) -> Result<PieceResult, Stop> {
        assert_eq!(piece.number(), 0);
        let Some(left) = piece.value::<i64>()? else {
            return Ok(0.into());
        };
        piece.update(&(left - 1))?;
        Ok((left as u64).into())
    }

    fn finish(&self, (_, told): (u64, u64), results: PieceResults) -> (u64, u64) {
        (results.get(0), told)
    }
}

impl Procedure for NoPieces {
    const NAME: &'static str = "no_pieces";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.update_piece(LEFT, self.event, 1);
    }

    fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
        Ok(())
    }
}

fn options() -> Options {
    let options = Database::options().table(LEFT).table(SALES);
    options.procedure::<Stock>().procedure::<Buy>().procedure::<NoPieces>()
}

/// O-03: every seat is sold once, in serial order, and none to those who gave up.
#[test]
fn every_seat_is_sold_once_whether_pieces_are_split_off_or_not() {
    for threshold in [0, 2] {
        for workers in [1, 3] {
            let db = dram(
                options()
                    .workers(workers)
                    .tuning(Tuning { split_threshold: threshold, ..Tuning::default() }),
            );
            db.call(Stock { event: 1, seats: 5000 }).unwrap();
            // The first call of a procedure runs alone, and shows that it has a write set.
            assert!(db.call(Buy { sale: 7, event: 1, ask: 0 }).is_err());
            let mut batch = db.batch();
            let buy = |sale| Buy { sale, event: 1, ask: sale % 3 };
            let added: Vec<_> =
                (1..=3000).map(|sale| (sale, batch.add(&buy(sale)).unwrap())).collect();
            let submitted = batch.submit().unwrap();
            let mut next = 5000;
            for (sale, added) in added {
                let answer = submitted.ticket(added).wait();
                if sale.is_multiple_of(7) {
                    assert!(answer.is_err(), "sale {sale}");
                    continue;
                }
                let (seat, told) = answer.unwrap();
                assert_eq!((seat, told), (next, if sale % 3 > 0 { next } else { 0 }));
                next -= 1;
            }
            assert_eq!(db.get(LEFT, 1).unwrap(), Some(next as i64));
            let split = db.stats().last_epoch.work.pieces_split;
            assert_eq!(split > 2000, threshold > 0, "{split} of 3000 pieces were split off");
        }
    }
}

#[test]
fn a_piece_without_a_row_updates_nothing_and_one_without_a_function_fails_its_call() {
    let db = dram(options());
    assert_eq!(db.call(Buy { sale: 1, event: 9, ask: 1 }).unwrap(), (0, 0));
    assert_eq!(db.get(LEFT, 9).unwrap(), None);
    let error = db.call(NoPieces { event: 9 }).unwrap_err().to_string();
    assert!(error.contains("has no function for it"), "{error}");
}
