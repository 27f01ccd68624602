//! What procedures know besides their arguments: their own database's tables and context.

use nvcaracal::{
    Abort, Database, DeviceSpec, HashTable, Piece, PieceResult, PieceResults, Procedure, Sequence,
    Sequences, Stop, Table, Transaction, WriteSet, plain,
};

const COUNTERS: HashTable<u64, u64> = Table::hash("counters");
const NUMBERS: Sequence = Sequence::new("numbers");

/// How far a step goes.
struct Stride(u64);

plain! {
    struct Step { counter: u64 }
}

impl Procedure for Step {
    const NAME: &'static str = "step";
    const PIECES: bool = true;
    type Output = u64;

    fn sequences(&self, sequences: &mut Sequences) -> Result<(), Abort> {
        if sequences.context::<Stride>().is_some_and(|stride| stride.0 > 1) {
            sequences.allocate(NUMBERS);
        }
        Ok(())
    }

    fn write_set(&self, set: &mut WriteSet) {
        if set.context::<Stride>().is_some() {
            set.update_piece(COUNTERS, self.counter, 1);
            set.insert(COUNTERS, 1000 + self.counter);
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
        tx.insert(COUNTERS, 1000 + self.counter, &tx.context::<Stride>()?.0)?;
        Ok(0)
    }

    fn piece(&self, piece: &mut Piece) -> Result<PieceResult, Stop> {
        let stride = piece.context::<Stride>()?.0;
        let count = piece.value::<u64>()?.unwrap_or(0) + stride;
        piece.update(&count)?;
        Ok(count.into())
    }

    fn finish(&self, _: u64, results: PieceResults) -> u64 {
        results.get(0)
    }
}

plain! {
    struct Open { counter: u64 }
}

impl Procedure for Open {
    const NAME: &'static str = "open";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        tx.insert(COUNTERS, self.counter, &0)
    }
}

/// Databases of one process have as many schemas and contexts as there are databases.
#[test]
fn each_database_has_its_own_tables_and_context() {
    let open = |i: u64| {
        let mut options = Database::options().procedure::<Step>().procedure::<Open>();
        // The same handle means another number in each.
        for name in ["a", "b", "c", "d", "e"].iter().take(i as usize % 6) {
            options = options.table(HashTable::<u64, u64>::hash(name));
        }
        let options = options.table(COUNTERS).sequence(NUMBERS).context(Stride(i)).workers(1);
        let db = options.data_bytes_max(1 << 26).log_bytes_max(1 << 26);
        let db = db.open_device(DeviceSpec::Dram).unwrap();
        db.call(Open { counter: 7 }).unwrap();
        db
    };
    let databases: Vec<_> = (0..40).map(open).collect();
    for round in 1..=3 {
        for (db, i) in databases.iter().zip(0..) {
            assert_eq!(db.call(Step { counter: 7 }).unwrap(), round * i);
        }
    }
    for (db, i) in databases.iter().zip(0..) {
        let snapshot = db.snapshot().unwrap();
        assert_eq!(snapshot.get(COUNTERS, 1007).unwrap(), Some(i));
        let allocation = if i > 1 { 3 } else { 0 };
        assert_eq!(snapshot.sequence(NUMBERS).unwrap(), allocation);
    }
}

#[test]
fn a_context_of_another_type_is_a_mistake() {
    let options = || Database::options().table(COUNTERS).sequence(NUMBERS).procedure::<Step>();
    let without = options().open_device(DeviceSpec::Dram).unwrap();
    let other = options().context(3u64).open_device(DeviceSpec::Dram).unwrap();
    for db in [without, other] {
        let error = db.call(Step { counter: 1 }).unwrap_err();
        assert!(error.is_failed(), "{error}");
        let words = error.to_string();
        assert!(
            words.contains("the database has no context of type all::context::Stride"),
            "{words}"
        );
        assert!(words.contains("add it to its options"), "{words}");
    }
}
