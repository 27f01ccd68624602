//! Each recursive rule of the grammar, repeated up to ten thousand times, and one a million times,
//! is answered with a result or an error. A stack that overflows ends the process, so the rules run
//! in a child of the test, on half of the stack that the product has.

mod depth {
    pub(crate) mod rules;
}
mod session;

use depth::rules::{RULES, Rule};
use session::Session;
use sql::parse::{STACK_BYTES, parse};
use std::process::Command;
use std::time::{Duration, Instant};

/// Says to the child that it is one, and which rules it takes: all from a number on.
const CHILD: &str = "NVCARACAL_DEPTH_CHILD";

/// A rule that takes longer does work that grows faster than its texts.
const TIME_MAX: Duration = Duration::from_secs(300);

fn on_half_of_the_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES / 2);
        thread.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

/// What becomes of a text: `ok` or the code of its error.
fn outcome(session: &Session, text: &str) -> String {
    on_half_of_the_stack(|| {
        let state = |error: values::Error| error.state().code().to_owned();
        let statements = match parse(text) {
            Ok(statements) => statements,
            Err(error) => return state(error),
        };
        // What a server asks of a statement before it plans it.
        for statement in &statements {
            let _ = (statement.control(), statement.is_definition(), statement.is_query());
        }
        if statements.len() != 1 {
            return "ok".to_owned();
        }
        drop(statements);
        session.clone().run(text).map_or_else(state, |_| "ok".to_owned())
    })
}

/// The most repeats of a rule that the limits let through.
fn most_accepted(rule: &Rule, upto: usize) -> usize {
    let (mut low, mut high) = (0, upto);
    // As near as makes no difference to a stack.
    while low + 1 + low / 64 < high {
        let middle = low.midpoint(high);
        let parsed = on_half_of_the_stack(|| parse(&rule.text(middle)).err());
        match parsed {
            Some(error) if error.state().code().starts_with("54") => high = middle,
            _ => low = middle,
        }
    }
    low
}

fn check(rule: &Rule, session: &Session) {
    let begun = Instant::now();
    let mut limit = None;
    for count in [10, 1_000, 10_000] {
        let code = outcome(session, &rule.text(count));
        assert!(!code.starts_with("XX"), "{} times {count}: {code}", rule.name());
        if code.starts_with("54") && limit.is_none() {
            limit = Some(count);
        }
    }
    // The deepest tree is just below the limit.
    let most = limit.map(|limit| most_accepted(rule, limit));
    let code = most.map(|most| outcome(session, &rule.text(most)));
    println!("{:?} {} -> {most:?} {code:?}", begun.elapsed(), rule.name());
    assert!(begun.elapsed() < TIME_MAX, "{}", rule.name());
}

#[test]
fn no_rule_of_the_grammar_overflows_a_stack() {
    if let Ok(from) = std::env::var(CHILD) {
        let mut session = Session::new();
        session.run("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
        for (at, rule) in RULES.iter().enumerate().skip(from.parse().unwrap()) {
            println!("{at}: {}", rule.name());
            check(rule, &session);
        }
        let long = format!("SELECT 1{}", " NOTNULL".repeat(1_000_000));
        assert_eq!(outcome(&session, &long), "54001");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let child = Command::new(own)
        .args(["--exact", "no_rule_of_the_grammar_overflows_a_stack", "--nocapture"])
        .env(CHILD, "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let last = said.lines().next_back().unwrap_or_default();
    let error = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "at {last}: {error}");
}
