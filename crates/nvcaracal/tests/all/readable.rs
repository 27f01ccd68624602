//! Values that can be written and not read. An answer that did not read back was told as "failed,
//! its writes did not take place", and they had; a row like that was found by whoever read it, or
//! never. Now the call fails where the value is written, and nothing takes place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::common::{ACCOUNTS, Deposit, dram, options};
use nvcaracal::{
    Data, Database, HashTable, Key, KeyBuffer, Piece, PieceResult, PieceResults, Procedure, Serde,
    Stop, Table, Transaction, Tuning, WriteSet, procedure,
};

/// Read back only by formats that describe themselves.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
}

/// Without `b` what follows is read as `b`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Sparse {
    a: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<u32>,
    c: u32,
    d: u32,
}

/// A form of its own, of which odd numbers are not read back.
#[derive(Debug, Clone, PartialEq)]
struct Even(u8);

impl Data for Even {
    fn encode(&self, into: &mut Vec<u8>) {
        into.push(self.0);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        <u8 as Data>::decode(from).filter(|number| number % 2 == 0).map(Self)
    }
}

impl fmt::Display for Even {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is the reason", self.0)
    }
}

impl Key for Even {
    type Owned = Self;
    const BYTES: Option<usize> = Some(1);

    fn encode(&self, into: &mut KeyBuffer) {
        into.push(&[self.0]);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        <u8 as Key>::decode(from).filter(|number| number % 2 == 0).map(Self)
    }
}

/// One of each, somewhere inside.
#[derive(Debug, Clone, PartialEq, Data)]
enum Any {
    Number(u64),
    Untagged(Serde<Untagged>),
    Sparse {
        #[data(serde)]
        sparse: Sparse,
    },
    Even(Vec<Option<Even>>),
    Units(Vec<()>),
    Nested(Vec<Any>),
}

const VALUES: HashTable<u64, Any> = Table::hash("values").with_value_bytes(200);
const EVEN: HashTable<u64, Even> = Table::hash("even");
const UNITS: HashTable<u64, Vec<()>> = Table::hash("units").with_value_bytes(8);
const BY_EVEN: HashTable<(Even, u8), u64> = Table::hash("by even");

/// Writes, and answers, what its number says.
#[derive(Debug, Clone, PartialEq, Data)]
struct Write {
    how: u64,
    value: u8,
}

fn sparse(b: Option<u32>) -> Sparse {
    Sparse { a: 1, b, c: 1, d: 0 }
}

/// What cannot be read back, or what can, of the same kind.
fn any(how: u64, is_readable: bool) -> Any {
    let value = u8::from(!is_readable);
    match how {
        0 if is_readable => Any::Number(0),
        0 => Any::Untagged(Serde(Untagged::Number(7))),
        1 => Any::Sparse { sparse: sparse(is_readable.then_some(7)) },
        2 => Any::Even(vec![None, Some(Even(value))]),
        3 => Any::Units(vec![(); usize::from(value)]),
        _ => Any::Nested(vec![Any::Number(1), any(how - 4, is_readable)]),
    }
}

impl Procedure for Write {
    const NAME: &'static str = "write";
    type Output = Option<Any>;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(ACCOUNTS, 1);
        set.insert(VALUES, 1);
        set.insert(EVEN, 1);
        set.insert(UNITS, 1);
        set.insert(BY_EVEN, (Even(self.value), 1));
    }

    fn run(&self, tx: &mut Transaction) -> Result<Option<Any>, Stop> {
        tx.insert(ACCOUNTS, 1, &1_000_000)?;
        let is_readable = self.value == 0;
        match self.how {
            0..8 => return Ok(Some(any(self.how, is_readable))),
            8..16 => tx.insert(VALUES, 1, &any(self.how - 8, is_readable))?,
            16 => tx.insert(EVEN, 1, &Even(self.value))?,
            17 => tx.insert(UNITS, 1, &vec![(); usize::from(self.value)])?,
            18 => tx.insert(BY_EVEN, (Even(self.value), 1), &1)?,
            _ if is_readable => {}
            _ => return Err(Even(self.value).into()),
        }
        Ok(None)
    }
}

/// Arguments that do not read back.
#[procedure]
fn take(_tx: &mut Transaction, value: Serde<Untagged>) -> Result<u64, Stop> {
    Ok(match value.0 {
        Untagged::Number(number) => number,
    })
}

fn open(serial_calls_max: usize) -> Database {
    let options = options().table(VALUES).table(EVEN).table(UNITS).table(BY_EVEN);
    let options = options.procedure::<Write>().procedure::<Take>();
    dram(options.tuning(Tuning { serial_calls_max, ..Tuning::default() }))
}

#[test]
fn what_does_not_read_back_fails_and_nothing_was_written() {
    for serial_calls_max in [64, 0] {
        let db = open(serial_calls_max);
        for how in 0..20 {
            let error = db.call(Write { how, value: 1 }).unwrap_err();
            assert!(error.is_failed(), "{how}: {error}");
            assert!(error.to_string().contains("cannot be read back"), "{how}: {error}");
            assert_eq!(db.get(ACCOUNTS, 1).unwrap(), None, "{how}");
            // What is wrong with one value is not laid to the next.
            assert_eq!(db.call(Deposit { account: 2, cents: 0 }).unwrap(), 0);
        }
        for how in 0..20 {
            let answer = db.call(Write { how, value: 0 }).unwrap();
            assert_eq!(answer, (how < 8).then(|| any(how, true)));
            if (8..16).contains(&how) {
                assert_eq!(db.get(VALUES, 1).unwrap(), Some(any(how - 8, true)));
            }
        }
        assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(1_000_000));
        db.close().unwrap();
    }
}

#[test]
fn arguments_that_do_not_read_back_are_refused() {
    let db = open(64);
    let take = || Take { value: Serde(Untagged::Number(5)) };
    let mut batch = db.batch();
    let errors = [
        db.call(take()).unwrap_err(),
        db.submit(take()).unwrap_err(),
        batch.add(&take()).unwrap_err(),
    ];
    for error in errors {
        assert!(error.is_mistake(), "{error}");
        assert!(error.to_string().contains("cannot be read back"), "{error}");
    }
    assert!(batch.is_empty());
    assert_eq!(db.stats().epochs, 0);
}

/// Adds by a piece, and makes its answer at the end.
#[derive(Debug, Clone, PartialEq, Data)]
struct AddByPiece {
    how: u64,
    is_readable: bool,
}

impl Procedure for AddByPiece {
    const NAME: &'static str = "add by piece";
    const PIECES: bool = true;
    type Output = Option<Any>;

    fn write_set(&self, set: &mut WriteSet) {
        set.update_piece(ACCOUNTS, 1, 1);
        set.insert(ACCOUNTS, 2);
    }

    fn run(&self, tx: &mut Transaction) -> Result<Option<Any>, Stop> {
        tx.insert(ACCOUNTS, 2, &1)?;
        Ok(None)
    }

    fn piece(&self, piece: &mut Piece) -> Result<PieceResult, Stop> {
        let cents = piece.value::<i64>()?.unwrap_or(0) + 1;
        piece.update(&cents)?;
        Ok((cents as u64).into())
    }

    fn finish(&self, _: Option<Any>, _: PieceResults) -> Option<Any> {
        Some(any(self.how, self.is_readable))
    }
}

/// Such an answer was made after its call had committed, and stopped the database.
#[test]
fn an_answer_of_pieces_that_does_not_read_back_fails_its_call_alone() {
    for serial_calls_max in [64, 0] {
        let db = dram(
            options()
                .tuning(Tuning { serial_calls_max, ..Tuning::default() })
                .workers(2)
                .procedure::<AddByPiece>(),
        );
        assert_eq!(db.call(Deposit { account: 1, cents: 100 }).unwrap(), 100);
        let mut committed = 0;
        for round in 0..5 {
            let mut batch = db.batch();
            let adds: Vec<_> = (0..24)
                .map(|at| {
                    let (how, is_readable) = (at % 8, (at + round) % 3 != 0);
                    let add = AddByPiece { how, is_readable };
                    let deposit = batch.add(&Deposit { account: 1, cents: 1 }).unwrap();
                    (add.clone(), batch.add(&add).unwrap(), deposit)
                })
                .collect();
            let submitted = batch.submit().unwrap();
            for (add, added, deposit) in adds {
                let answer = submitted.ticket(added).wait();
                submitted.ticket(deposit).wait().unwrap();
                match add.is_readable {
                    true => assert_eq!(answer.unwrap(), Some(any(add.how, true))),
                    false => {
                        let error = answer.unwrap_err();
                        assert!(error.is_failed(), "{add:?}: {error}");
                        assert!(error.to_string().contains("cannot be read back"), "{error}");
                    }
                }
                committed += 1 + i64::from(add.is_readable);
            }
            assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(100 + committed));
        }
        db.close().unwrap();
    }
}

#[test]
fn types_of_which_each_value_reads_back_say_so() {
    #[derive(Debug, Clone, PartialEq, Data)]
    struct Tree<T> {
        value: (T, String),
        pair: [Option<u16>; 2],
        more: BTreeMap<u8, Vec<Tree<T>>>,
    }
    #[derive(Debug, Clone, PartialEq, Data)]
    struct Nothing;
    let certain = [
        <()>::always_reads_back(),
        u64::always_reads_back(),
        Nothing::always_reads_back(),
        Tree::<Result<u8, Nothing>>::always_reads_back(),
        BTreeSet::<(u8, Option<()>)>::always_reads_back(),
        BTreeMap::<u8, ()>::always_reads_back(),
        Vec::<std::time::SystemTime>::always_reads_back(),
        Option::<rust_decimal::Decimal>::always_reads_back(),
        Vec::<uuid::Uuid>::always_reads_back(),
    ];
    assert_eq!(certain, [true; 9]);
    let others = [
        Any::always_reads_back(),
        Tree::<Even>::always_reads_back(),
        Tree::<Vec<Nothing>>::always_reads_back(),
        Option::<Serde<u64>>::always_reads_back(),
        Vec::<[u8; 0]>::always_reads_back(),
        BTreeMap::<(), ()>::always_reads_back(),
    ];
    assert_eq!(others, [false; 6]);
}
