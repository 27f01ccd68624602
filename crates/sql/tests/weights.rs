//! A bound in steps is a bound in time: whatever a step is of, it takes at most some microseconds.
//!
//! Each function, operator, cast, aggregate and clause runs with small and with large values, and
//! the time of the thread is divided by the steps that it took. The table of functions comes from
//! the program: one without a case fails the test. The steps themselves are in a golden file, which
//! `GOLDEN=write cargo test -p nvcaracal-sql --test weights` writes anew.
//!
//! The bound in CI is wide, as machines and builds differ. NVCARACAL_STEP_NS is a sharp one, for a
//! build for release (`scripts/long.sh`); NVCARACAL_STEPS_SHOWN prints what each case costs.

mod session;
mod weighing;

use sql::ir::{Function, SystemFunction};
use sql::parse::with_stack;
use std::fmt::Debug;
use weighing::cases::{CALLS, Case, OUTSIDE, QUERIES};
use weighing::measure::{Cost, Measured};

/// The most nanoseconds of a step in a build for tests.
const STEP_NS: u64 = 20_000;

fn step_ns_max() -> u64 {
    let stated = std::env::var("NVCARACAL_STEP_NS").ok();
    stated.map_or(STEP_NS, |text| text.parse().expect("NVCARACAL_STEP_NS is a number"))
}

fn cases() -> impl Iterator<Item = &'static Case> {
    CALLS.iter().chain(QUERIES).chain(OUTSIDE)
}

/// The values of an enum without fields, in its order.
fn all<T: serde::de::DeserializeOwned>() -> Vec<T> {
    let values = (0..u8::MAX).map_while(|number| postcard::from_bytes(&[number, 0, 0]).ok());
    values.collect()
}

/// Asserts that each of these is in a plan of the cases.
fn check_named<T: Debug>(
    all: &[T],
    plans: &[String],
    form: impl Fn(&T) -> String,
    absent: &[&str],
) {
    assert!(!all.is_empty(), "the table of functions is read");
    for one in all {
        let (name, own) = (format!("{one:?}"), form(one));
        let is_there = plans.iter().any(|plan| plan.contains(&own));
        assert!(
            is_there != absent.contains(&&*name),
            "{name} needs a case of large values in tests/weighing/cases.rs, or is no longer absent"
        );
    }
}

#[test]
fn each_function_has_a_case() {
    with_stack(|| {
        let plans: Vec<String> = cases().map(|case| Measured::of(case, 64, 1).plan()).collect();
        let call = |one: &Function| format!("Call({one:?}, ");
        // What setval is made of, which is a statement of its own, and what older plans have.
        check_named(
            &all::<Function>(),
            &plans,
            call,
            &["SequenceNumber", "SequenceNumberAfter", "Power"],
        );
        let system = |one: &SystemFunction| format!("System({one:?}, ");
        let own = all::<SystemFunction>();
        let own: Vec<SystemFunction> = own.into_iter().filter(is_of_text).collect();
        check_named(&own, &plans, system, &[]);
    });
}

/// Weights are a part of what logged calls mean: a call ends at the same step when it runs again.
/// With another weight the server's calls are of other semantics (`store/procedure.rs`), unless the
/// last ones were in no release.
#[test]
fn steps_are_those_of_before() {
    let steps = with_stack(|| {
        let line = |case: &Case| {
            let steps = case.sizes().map(|(bytes, rows)| Measured::of(case, bytes, rows).steps());
            format!("{} {} {}\n", steps[0], steps[1], case.text)
        };
        CALLS.iter().chain(QUERIES).map(line).collect::<String>()
    });
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/steps.golden");
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(path, &steps).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (own, golden) in steps.lines().zip(golden.lines()) {
        assert_eq!(own, golden, "steps with small values, with large ones, of what");
    }
    assert_eq!(steps.lines().count(), golden.lines().count());
}

/// Whether the time of a function of the session depends on the lengths of its arguments; others
/// look something up in the catalog.
fn is_of_text(function: &SystemFunction) -> bool {
    use SystemFunction as S;
    matches!(
        function,
        S::Matches | S::RegexReplace | S::RegexMatch | S::QuoteIdentifier | S::QuoteLiteral
    )
}

#[test]
fn no_step_is_long() {
    with_stack(|| {
        let mut failed = Vec::new();
        for case in cases() {
            for cost in Cost::of(case) {
                if std::env::var_os("NVCARACAL_STEPS_SHOWN").is_some() {
                    println!("{cost}");
                }
                if cost.step_ns() > step_ns_max() {
                    failed.push(cost.to_string());
                }
            }
        }
        let max = step_ns_max();
        assert!(failed.is_empty(), "steps of more than {max} ns:\n{}", failed.join("\n"));
    });
}
