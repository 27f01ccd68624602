//! The rules of the serial oracle, each on a handful of rows.

use std::ops::ControlFlow;

use workloads::oracle::{Oracle, OracleAnswer};
use workloads::{
    Abort, Allocate, Declare, IndexKind, Observer, Procedure, ProcedureId, Register, StreamEpoch,
    TableId, TableSpec, Tx, View, Workload,
};

const ROWS: TableId = TableId(0);
const NUMBERS: TableId = TableId(1);

/// Arguments: key, value. Inserts; `v` in place of the value reports what a lookup and the body's
/// read say.
enum Insert {}

impl Procedure for Insert {
    const NAME: &'static str = "insert";
    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        declare.insert(ROWS, &args[..1]);
        Ok(())
    }
    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        tx.insert(ROWS, &args[..1], &args[1..])
    }
}

/// Arguments: key, one-byte key to look up first. Aborts with 7 if there is none, else copies it to
/// the key.
enum CopyLookedUp {}

impl Procedure for CopyLookedUp {
    const NAME: &'static str = "copy_looked_up";
    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        if declare.lookup(ROWS, &args[1..])?.is_none() {
            return Err(Abort(7).into());
        }
        declare.insert(ROWS, &args[..1]);
        Ok(())
    }
    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let value = tx.get(ROWS, &args[1..])?.map(<[u8]>::to_vec).unwrap_or_default();
        tx.insert(ROWS, &args[..1], &value)
    }
}

/// Sequences; aborts in `sequences` on `a`, in the body on `b`. Answers the allocated number and
/// where the epoch began.
enum Number {}

impl Procedure for Number {
    const NAME: &'static str = "number";
    const SEQUENCES: bool = true;
    fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
        if args == b"a" {
            return Err(Abort(1).into());
        }
        allocate.allocate(NUMBERS, &[0; 8]);
        Ok(())
    }
    fn write_set<D: Declare>(_: &[u8], declare: &mut D) -> Result<(), D::Error> {
        assert!(declare.sequence_number(0) >= declare.sequence_start(NUMBERS, &[0; 8]));
        Ok(())
    }
    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        if args == b"b" {
            return Err(Abort(2).into());
        }
        let (allocation, start) =
            (tx.sequence_number(0) as u8, tx.sequence_start(NUMBERS, &[0; 8]) as u8);
        tx.output().extend_from_slice(&[allocation, start]);
        Ok(())
    }
}

/// Looks up a range (up to its first row if the arguments say `1`), then deletes all of it.
enum DeleteRange {}

impl Procedure for DeleteRange {
    const NAME: &'static str = "delete_range";
    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        declare.lookup_scan(ROWS, &args[..1], &args[1..2], &mut |_, _| {
            if args.len() > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        declare.update_range(ROWS, &args[..1], &args[1..2]);
        Ok(())
    }
    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let mut keys = Vec::new();
        tx.scan(ROWS, &args[..1], &args[1..2], true, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        for key in &keys {
            assert!(tx.delete(ROWS, key)?);
            assert!(!tx.delete(ROWS, key)?);
            tx.output().extend_from_slice(key);
        }
        Ok(())
    }
}

/// Writes a declared key, then does what it has not declared.
enum Undeclared {}

impl Procedure for Undeclared {
    const NAME: &'static str = "undeclared";
    fn write_set<D: Declare>(_: &[u8], declare: &mut D) -> Result<(), D::Error> {
        declare.update(ROWS, b"a");
        Ok(())
    }
    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        tx.update(ROWS, b"a", b"lost")?;
        match args {
            b"update" => drop(tx.update(ROWS, b"b", b"")?),
            b"insert" => tx.insert(ROWS, b"a", b"")?,
            _ => drop(tx.modify(ROWS, b"c", |_| ())?),
        }
        Ok(())
    }
}

/// Updates two rows, the second one behind a commit point; then makes the mistake that is named.
enum CommitPoint {}

impl Procedure for CommitPoint {
    const NAME: &'static str = "commit_point";
    fn write_set<D: Declare>(_: &[u8], declare: &mut D) -> Result<(), D::Error> {
        declare.update(ROWS, b"a");
        declare.update(ROWS, b"b");
        Ok(())
    }
    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        tx.update(ROWS, b"a", b"early")?;
        tx.commit_point()?;
        tx.update(ROWS, b"b", b"late")?;
        match args {
            b"abort" => Err(Abort(3).into()),
            b"again" => tx.update(ROWS, b"a", b"").map(drop),
            b"undeclared" => tx.update(ROWS, b"c", b"").map(drop),
            _ => Ok(()),
        }
    }
}

struct Six;

impl Workload for Six {
    fn name(&self) -> &'static str {
        "six"
    }
    fn tables(&self) -> Vec<TableSpec> {
        let table = |name, index| TableSpec { name, index, key_bytes_max: 8, value_bytes_max: 8 };
        vec![table("rows", IndexKind::Ordered), table("numbers", IndexKind::Sequence)]
    }
    fn register<R: Register>(&self, to: &mut R) {
        to.procedure::<Insert>();
        to.procedure::<CopyLookedUp>();
        to.procedure::<Number>();
        to.procedure::<DeleteRange>();
        to.procedure::<Undeclared>();
        to.procedure::<CommitPoint>();
    }
    fn load_count(&self) -> u64 {
        3
    }
    fn load(&self, i: u64, args: &mut Vec<u8>) -> ProcedureId {
        args.extend_from_slice(&[b'a' + i as u8, b'0' + i as u8]);
        0
    }
    fn generate(&self, _: StreamEpoch, _: u64, _: &mut Vec<u8>) -> ProcedureId {
        0
    }
    fn observer(&self, _: &dyn View) -> Box<dyn Observer> {
        unreachable!("these tests look at the state themselves")
    }
}

fn rows(oracle: &Oracle) -> String {
    let mut text = String::new();
    oracle.for_each(ROWS, &mut |key, value| {
        text += &format!("{}{} ", key.escape_ascii(), value.escape_ascii());
    });
    text
}

fn committed(output: &[u8]) -> OracleAnswer {
    OracleAnswer::Committed(output.to_vec())
}

#[test]
fn a_lookup_that_no_longer_holds_is_deferred() {
    let mut oracle = Oracle::loaded(&Six);
    let calls: &[(ProcedureId, &[u8])] = &[(1, b"xa"), (0, b"aZ"), (1, b"ya"), (1, b"zb")];
    let answers = oracle.run_epoch(calls, 0);
    let ok = committed(b"");
    assert_eq!(answers, [ok.clone(), ok.clone(), OracleAnswer::Deferred, ok.clone()]);
    assert_eq!(rows(&oracle), "aZ b1 c2 x0 z1 ");
    assert_eq!(oracle.run_epoch(&[(1, b"ya")], 1), [ok]);
    assert_eq!(rows(&oracle), "aZ b1 c2 x0 yZ z1 ");
}

#[test]
fn an_abort_while_declaring_counts_only_if_its_lookups_hold() {
    let mut oracle = Oracle::loaded(&Six);
    let answers = oracle.run_epoch(&[(1, b"xq"), (0, b"q!"), (1, b"xq")], 0);
    let aborted = OracleAnswer::Aborted(7);
    assert_eq!(answers, [aborted, committed(b""), OracleAnswer::Deferred]);
    assert_eq!(oracle.run_epoch(&[(1, b"xq")], 1), [committed(b"")]);
}

#[test]
fn sequence_numbers_are_ranks_and_only_early_aborts_leave_no_gap() {
    let mut oracle = Oracle::loaded(&Six);
    let answers = oracle.run_epoch(&[(2, b""), (2, b"a"), (2, b"b"), (2, b"")], 0);
    assert_eq!(
        answers,
        [
            committed(&[0, 0]),
            OracleAnswer::Aborted(1),
            OracleAnswer::Aborted(2),
            committed(&[2, 0])
        ]
    );
    assert_eq!(
        oracle.run_epoch(&[(2, b""), (2, b"")], 0),
        [committed(&[3, 3]), committed(&[4, 3])]
    );
    assert_eq!(oracle.get(NUMBERS, &[0; 8]), Some(5_u64.to_le_bytes().to_vec()));
}

#[test]
fn ranges_see_what_came_before_and_phantoms_defer() {
    let mut oracle = Oracle::loaded(&Six);
    // The second looks only at the first row, so the row that comes after does not matter to it.
    let answers = oracle.run_epoch(&[(0, b"bb"), (3, b"ac"), (3, b"ac1"), (0, b"ad")], 0);
    let ok = committed(b"");
    assert_eq!(answers, [ok.clone(), OracleAnswer::Deferred, committed(b"ba"), ok.clone()]);
    assert_eq!(rows(&oracle), "ad c2 ");
    let answers = oracle.run_epoch(&[(0, b"bb"), (3, b"ac"), (3, b"ca")], 0);
    assert_eq!(answers, [ok.clone(), OracleAnswer::Deferred, ok]);
}

#[test]
fn undeclared_writes_are_undone_and_made_in_the_next_epoch() {
    let mut oracle = Oracle::loaded(&Six);
    let calls: &[(ProcedureId, &[u8])] = &[(4, b"update"), (4, b"insert"), (4, b"modify")];
    let answers = oracle.run_epoch(calls, 0);
    assert_eq!(answers, [OracleAnswer::Deferred, OracleAnswer::Deferred, OracleAnswer::Deferred]);
    assert_eq!(rows(&oracle), "a0 b1 c2 ");
    let ok = committed(b"");
    assert_eq!(oracle.run_epoch(calls, 3), [ok.clone(), ok.clone(), ok]);
    assert_eq!(rows(&oracle), "alost b c2 ");
}

#[test]
fn a_call_that_passes_its_commit_point_commits() {
    let mut oracle = Oracle::loaded(&Six);
    assert_eq!(oracle.run_epoch(&[(5, b""), (0, b"x!")], 0), [committed(b""), committed(b"")]);
    assert_eq!(rows(&oracle), "aearly blate c2 x! ");
    assert_eq!(oracle.commit_points(), 1);
    // In the serial part there is none.
    assert_eq!(oracle.run_epoch(&[(5, b"abort")], 1), [OracleAnswer::Aborted(3)]);
    assert_eq!(oracle.commit_points(), 1);
}

#[test]
#[should_panic(expected = "procedure 5 ended after its commit point without committing")]
fn an_abort_after_the_commit_point_is_a_mistake() {
    Oracle::loaded(&Six).run_epoch(&[(5, b"abort")], 0);
}

#[test]
#[should_panic(expected = "procedure 5 ended after its commit point without committing")]
fn writing_a_row_again_after_the_commit_point_is_a_mistake() {
    Oracle::loaded(&Six).run_epoch(&[(5, b"again")], 0);
}

#[test]
#[should_panic(expected = "procedure 5 ended after its commit point without committing")]
fn a_write_after_the_commit_point_that_was_not_declared_is_a_mistake() {
    Oracle::loaded(&Six).run_epoch(&[(5, b"undeclared")], 0);
}
