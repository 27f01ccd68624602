//! Small histories, good ones and each kind of bad one.

use super::{Access, Lists, Observed, Outcome, check};

/// A transaction from words: `a1:7` appends 7 to row 1, `r1:7,8` read that, `r1:` read nothing.
fn one(name: &str, began: u64, ended: u64, words: &str) -> Observed {
    let access = |word: &str| {
        let (row, values) = word[1..].split_once(':').unwrap();
        let row = row.parse().unwrap();
        match &word[..1] {
            "a" => Access::Append { row, value: values.parse().unwrap() },
            _ => Access::Read { row, seen: list(values) },
        }
    };
    let accesses = words.split_whitespace().map(access).collect();
    Observed { name: name.to_owned(), began, ended, outcome: Outcome::Committed, accesses }
}

fn with(outcome: Outcome, transaction: Observed) -> Observed {
    Observed { outcome, ..transaction }
}

fn list(values: &str) -> Vec<u64> {
    values
        .split(',')
        .filter(|value| !value.is_empty())
        .map(|value| value.parse().unwrap())
        .collect()
}

fn lists(rows: &[(u64, &str)]) -> Lists {
    rows.iter().map(|(row, values)| (*row, list(values))).collect()
}

#[track_caller]
fn bad(history: &[Observed], last: &Lists, said: &str) {
    let error = check(history, last).unwrap_err();
    assert!(error.contains(said), "{said:?} is not in {error:?}");
}

#[test]
fn histories_that_have_an_order_pass() {
    let last = lists(&[(1, "7,8,9"), (2, "20,21")]);
    // All at the same time, so any order will do.
    let history = [
        one("A", 0, 91, "r1: a1:7 r1:7 a2:20"),
        one("B", 1, 92, "r2:20 a1:8 a1:9 r1:7,8,9"),
        one("C", 2, 93, "r1:7 r2:20"),
        one("D", 3, 94, "a2:21"),
        one("E", 4, 90, "r1: r2:"),
    ];
    check(&history, &last).unwrap();
    check(&[], &lists(&[])).unwrap();
}

#[test]
fn appends_of_a_transaction_are_there_or_not() {
    let both = [one("A", 0, 1, "a1:7 a2:8")];
    bad(&both, &lists(&[(1, "7")]), "1 of 2 appends of A are there");
    bad(&both, &lists(&[]), "0 of 2");
    bad(&[with(Outcome::Aborted, both[0].clone())], &lists(&[(1, "7")]), "1 of 2");
    let unknown = both.map(|both| with(Outcome::Unknown, both));
    check(&unknown, &lists(&[])).unwrap();
    check(&unknown, &lists(&[(1, "7"), (2, "8")])).unwrap();
    bad(&unknown, &lists(&[(2, "8")]), "1 of 2");
    bad(&[one("A", 0, 1, "a1:7")], &lists(&[(1, "7,7")]), "more than once");
    bad(&[one("A", 0, 1, "a1:7")], &lists(&[(2, "7")]), "never appended");
    let apart = [one("A", 0, 9, "a1:7 a1:8"), one("B", 1, 8, "a1:9")];
    bad(&apart, &lists(&[(1, "7,9,8")]), "apart");
}

#[test]
fn what_was_read_was_there() {
    let aborted = with(Outcome::Aborted, one("A", 0, 9, "a1:7"));
    bad(&[aborted, one("B", 1, 8, "r1:7")], &lists(&[]), "no beginning");
    let two = one("A", 0, 9, "a1:7 a1:8");
    bad(&[two, one("B", 1, 8, "r1:7")], &lists(&[(1, "7,8")]), "B read half of A");
    bad(&[one("A", 0, 9, "a1:7 r1:")], &lists(&[(1, "7")]), "without its own");
}

#[test]
fn cycles_are_found() {
    // A lost update: both read the list as it was before the other's append.
    let lost = [one("A", 0, 9, "r1: a1:7"), one("B", 1, 8, "r1: a1:8")];
    bad(&lost, &lists(&[(1, "7,8")]), "read row 1 before the append of");
    // Write skew.
    let skew = [one("A", 0, 9, "r1: a2:7"), one("B", 1, 8, "r2: a1:8")];
    bad(&skew, &lists(&[(1, "8"), (2, "7")]), "no serial order");
    // Two reads of one transaction that are of different moments.
    let last = lists(&[(1, "7"), (2, "8")]);
    bad(&[one("A", 0, 9, "a1:7 a2:8"), one("B", 1, 8, "r1: r2:8")], &last, "no serial order");
    // Appends of two that are in different orders.
    let crossed = [one("A", 0, 9, "a1:1 a2:2"), one("B", 1, 8, "a1:3 a2:4")];
    bad(&crossed, &lists(&[(1, "1,3"), (2, "4,2")]), "no serial order");
}

#[test]
fn the_clock_counts() {
    let last = lists(&[(1, "7")]);
    let write = one("A", 0, 1, "a1:7");
    check(&[write.clone(), one("B", 2, 3, "r1:7")], &last).unwrap();
    bad(&[write.clone(), one("B", 2, 3, "r1:")], &last, "A (0 to 1) ended before the begin of B");
    // Through one that has to do with neither.
    let history = [write, one("C", 2, 3, "r2:"), one("B", 4, 5, "r1:")];
    bad(&history, &last, "no serial order");
    // What was read of a transaction without an answer has taken place by then.
    let unknown = with(Outcome::Unknown, one("A", 0, 1, "a1:7"));
    check(&[unknown.clone(), one("B", 2, 3, "r1:")], &last).unwrap();
    let history = [unknown, one("B", 2, 3, "r1:7"), one("C", 4, 5, "r1:")];
    bad(&history, &last, "no serial order");
}
