//! Each recursive rule of the grammar, repeated up to ten thousand times, and one a million times,
//! is answered with a result or an error. A stack that overflows ends the process, so the rules run
//! in children of the test, on half of the stack that the product has: as many at once as there are
//! processors, each with its share of the rules.
//!
//! Of each rule the deepest tree that the limits let through is run, and a longer text refused.
//! With NVCARACAL_DEPTH=whole (scripts/long.sh) short texts are run, too, and the limit is found
//! exactly.

mod depth {
    pub(crate) mod rules;
}
mod session;

use depth::rules::{RULES, Rule};
use session::Session;
use sql::parse::{STACK_BYTES, parse};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Says to a child that it is one, and which rules it takes: its number, and how many there are.
const CHILD: &str = "NVCARACAL_DEPTH_CHILD";

/// How thorough the test is.
const WHOLE: &str = "NVCARACAL_DEPTH";

fn is_whole() -> bool {
    std::env::var(WHOLE).is_ok_and(|value| value == "whole")
}

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
    // As near as makes no difference to half of a stack.
    let near = if is_whole() { usize::MAX } else { 16 };
    while low + 1 + low / near < high {
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
    let counts: &[usize] = if is_whole() { &[10, 1_000, 10_000] } else { &[10_000] };
    for &count in counts {
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

/// Runs each rule whose number leaves `own` when it is divided by `children`.
fn run_share(own: usize, children: usize) {
    let mut session = Session::new();
    session.run("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
    for (at, rule) in RULES.iter().enumerate().skip(own).step_by(children) {
        println!("{at}: {}", rule.name());
        check(rule, &session);
    }
    if own == 0 {
        let long = format!("SELECT 1{}", " NOTNULL".repeat(1_000_000));
        assert_eq!(outcome(&session, &long), "54001");
    }
}

fn child(own: usize, children: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "no_rule_of_the_grammar_overflows_a_stack", "--nocapture"])
        .env(CHILD, format!("{own}/{children}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn no_rule_of_the_grammar_overflows_a_stack() {
    if let Ok(share) = std::env::var(CHILD) {
        let (own, children) = share.split_once('/').unwrap();
        return run_share(own.parse().unwrap(), children.parse().unwrap());
    }
    let children = std::thread::available_parallelism().map_or(1, usize::from);
    // Each has a reader of its own, or it would stop when its pipe is full.
    let all: Vec<_> = (0..children)
        .map(|own| child(own, children))
        .map(|child| std::thread::spawn(|| child.wait_with_output().unwrap()))
        .collect();
    for child in all.into_iter().map(|reader| reader.join().unwrap()) {
        let said = String::from_utf8_lossy(&child.stdout);
        println!("{said}");
        let last = said.lines().next_back().unwrap_or_default();
        let error = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "at {last}: {error}");
    }
}
