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

use sql::ir::{
    ArrayFunction, ByteFunction, Function, MathFunction, PatternFunction, TextFunction,
    TimeFunction,
};
use sql::parse::with_stack;
use std::fmt::Debug;
use weighing::cases::{CALLS, Case, OUTSIDE, QUERIES};
use weighing::families::FAMILIES;
use weighing::measure::{Cost, Measured};

/// The most nanoseconds of a step in a build for tests.
const STEP_NS: u64 = 20_000;

fn step_ns_max() -> u64 {
    let stated = std::env::var("NVCARACAL_STEP_NS").ok();
    stated.map_or(STEP_NS, |text| text.parse().expect("NVCARACAL_STEP_NS is a number"))
}

fn cases() -> impl Iterator<Item = &'static Case> {
    CALLS.iter().chain(QUERIES).chain(OUTSIDE).chain(FAMILIES)
}

/// The values of an enum without fields, in its order, as far as their numbers are of one byte.
fn all<T: serde::de::DeserializeOwned>() -> Vec<T> {
    let values = (0..128_u8).map_while(|number| postcard::from_bytes(&[number, 0, 0]).ok());
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
            &["SequenceNumber", "SequenceNumberAfter", "Power", "PowerRounded"],
        );
        let plans = &plans;
        check_family::<MathFunction>("Math", plans);
        check_family::<ByteFunction>("Bytes", plans);
        check_family::<TextFunction>("Text", plans);
        check_family::<TimeFunction>("Time", plans);
        check_family::<PatternFunction>("Pattern", plans);
        check_family::<ArrayFunction>("Array", plans);
    });
}

/// Asserts that each function of a family is in a plan of the cases.
fn check_family<T: Debug + serde::de::DeserializeOwned>(family: &str, plans: &[String]) {
    let call = |one: &T| format!("Call({family}({one:?}), ");
    check_named(&all::<T>(), plans, call, &[]);
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
        CALLS.iter().chain(QUERIES).chain(FAMILIES).map(line).collect::<String>()
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
