//! The list of what may differ, each with its reason. Everything else is a fault.

use crate::generate::{Sending, Step};
use crate::wire::Event;

/// The SQLSTATE of the first error, or what ended the connection.
pub(crate) fn kind_of_error(events: &[Event]) -> Option<&str> {
    events.iter().find_map(|event| match event {
        Event::Failed { code, .. } => Some(code.as_str()),
        Event::Lost(_) => Some("no answer"),
        _ => None,
    })
}

fn message(events: &[Event]) -> &str {
    let found = events.iter().find_map(|event| match event {
        Event::Failed { message, .. } => Some(message.as_str()),
        _ => None,
    });
    found.unwrap_or_default()
}

/// Why the answers to a step may differ; `None` if they may not.
pub(crate) fn excuse(step: &Step, theirs: &[Event], ours: &[Event]) -> Option<String> {
    let ours = without_rerun(step, ours);
    let (their_code, our_code) = (kind_of_error(theirs), kind_of_error(ours));
    if our_code == Some("0A000") {
        return Some(format!("refused, 0A000: {}", words(message(ours))));
    }
    if in_class(our_code, "54") {
        return Some("refused: a limit that docs/sql.md lists".to_owned());
    }
    let reason = match their_code.is_some() && our_code.is_some() {
        true => of_two_errors(step, theirs, ours),
        false => None,
    };
    reason.or_else(|| of_values(step, theirs, ours)).map(str::to_owned)
}

/// Why one error may stand for another one.
fn of_two_errors(step: &Step, theirs: &[Event], ours: &[Event]) -> Option<&'static str> {
    let (their_code, our_code) = (kind_of_error(theirs), kind_of_error(ours));
    let is_of_row = |code| in_class(code, "22") || in_class(code, "23") || code == Some("21000");
    if their_code == our_code && without_columns(theirs) == without_columns(ours) {
        return Some("an error of Execute here, of Parse or Bind there");
    }
    if their_code == our_code && in_class(our_code, "22") {
        return Some("rows come before a value fails there, and none here");
    }
    if their_code == Some("42601") && our_code == Some("25P02") {
        return Some("in a failed block, an error of the grammar is not told");
    }
    if in_class(their_code, "23") && in_class(our_code, "23") {
        return Some("rows break several constraints, and another one is told");
    }
    let are_of_row = (is_of_row(their_code) || is_infinity(theirs)) && is_of_row(our_code);
    if are_of_row && (!is_strict(step) || writes(step)) {
        return Some("several values fail, and another one is told");
    }
    None
}

/// Why a value may fail on one of the servers, or a row be refused.
fn of_values(step: &Step, theirs: &[Event], ours: &[Event]) -> Option<&'static str> {
    let (their_code, our_code) = (kind_of_error(theirs), kind_of_error(ours));
    let theirs_fails = in_class(their_code, "22") || is_infinity(theirs) || is_format(theirs);
    if !is_strict(step) && (theirs_fails || in_class(our_code, "22")) {
        return Some("a value fails where the order of evaluation is free");
    }
    if theirs_fails && writes(step) && changes_nothing(theirs, ours) {
        return Some("constants fail there although no row needs them");
    }
    if theirs_fails && has_word(step, "DO UPDATE") && our_code.is_none() {
        return Some("constants of DO UPDATE fail there although no row conflicts");
    }
    if in_class(our_code, "22") && is_limited_there(theirs, ours) {
        return Some("a row behind a row limit fails with the first Execute");
    }
    if their_code.is_none() && message(ours) == INFINITE && has_word(step, "age(") {
        return Some("age of an infinite time is an error");
    }
    if their_code == Some("23505") && our_code.is_none() && has_word(step, "UPDATE") {
        return Some("uniqueness is that of the rows after the statement");
    }
    None
}

/// Why numbers of sequences may be others behind a step whose answers are the same.
pub(crate) fn numbers_taken(step: &Step, theirs: &[Event]) -> Option<String> {
    let is_query = step.statements.iter().all(|one| one.tree.to_sql().starts_with("SELECT"));
    let reason = if is_query && theirs.contains(&Event::Suspended) {
        "numbers are taken for the rows behind a row limit, too"
    } else if !is_query && kind_of_error(theirs).is_some() {
        "a statement that fails takes the numbers of all its rows"
    } else {
        return None;
    };
    step.statements.iter().any(|one| one.takes_numbers).then(|| reason.to_owned())
}

/// What `age` says here; PostgreSQL 15 computes with the numbers that stand for infinity.
const INFINITE: &str = "cannot subtract infinite timestamps";

fn in_class(code: Option<&str>, class: &str) -> bool {
    code.is_some_and(|code| code.starts_with(class))
}

fn is_strict(step: &Step) -> bool {
    step.statements.iter().all(|one| one.is_strict)
}

fn writes(step: &Step) -> bool {
    ["INSERT", "UPDATE", "DELETE"].iter().any(|word| has_word(step, word))
}

/// Whether a value without end became none of another type, which is a feature that is missing
/// there.
fn is_infinity(theirs: &[Event]) -> bool {
    let begins = |start| message(theirs).starts_with(start);
    kind_of_error(theirs) == Some("0A000")
        && (begins("cannot convert infinity to ") || begins("cannot convert NaN to "))
}

/// Whether a format of a number is wrong, which is seen there when a value is made by it.
fn is_format(theirs: &[Event]) -> bool {
    kind_of_error(theirs) == Some("42601")
        && message(theirs).starts_with("cannot use ")
        && message(theirs).ends_with(" together")
}

/// Whether the statement that fails there was answered here, and wrote no row.
fn changes_nothing(theirs: &[Event], ours: &[Event]) -> bool {
    fn tag(event: &Event) -> Option<&str> {
        match event {
            Event::Complete(tag) => Some(tag),
            _ => None,
        }
    }
    let before = theirs.iter().filter_map(tag).count();
    let own = ours.iter().filter_map(tag).nth(before);
    kind_of_error(ours).is_none() && own.is_some_and(|tag| tag.ends_with(" 0"))
}

/// Whether both say the same up to an error here, and go on there with rows up to a row limit.
fn is_limited_there(theirs: &[Event], ours: &[Event]) -> bool {
    let Some(at) = ours.iter().position(|event| matches!(event, Event::Failed { .. })) else {
        return false;
    };
    let without_values = |event: &Event| match event {
        Event::Row(_) => Event::Row(Vec::new()),
        other => other.clone(),
    };
    let is_same = theirs.len() > at
        && theirs[..at].iter().map(without_values).eq(ours[..at].iter().map(without_values));
    let mut behind = theirs.iter().skip(at).skip_while(|event| matches!(event, Event::Row(_)));
    is_same
        && matches!(theirs.get(at), Some(Event::Row(_)))
        && behind.next() == Some(&Event::Suspended)
}

/// An answer without descriptions and the words of errors.
fn without_columns(events: &[Event]) -> Vec<Event> {
    let kept = events.iter().filter(|event| !matches!(event, Event::Columns(_) | Event::NoColumns));
    kept.map(|event| match event {
        Event::Failed { code, .. } => Event::Failed { code: code.clone(), message: String::new() },
        other => other.clone(),
    })
    .collect()
}

/// An answer up to where a portal that has no rows is executed again, which it cannot be: the
/// statement took place.
fn without_rerun<'e>(step: &Step, events: &'e [Event]) -> &'e [Event] {
    let runs_again = matches!(step.sending, Sending::Extended(choices) if choices.again > 0);
    let is_rerun = |pair: &[Event]| match pair {
        [Event::Complete(_), Event::Failed { code, .. }] => code == "55000",
        _ => false,
    };
    match events.windows(2).position(is_rerun) {
        Some(at) if runs_again => &events[..=at],
        _ => events,
    }
}

fn has_word(step: &Step, word: &str) -> bool {
    step.statements.iter().any(|one| one.tree.to_sql().contains(word))
}

/// A message without what is particular to a statement.
fn words(message: &str) -> String {
    let mut found = String::new();
    for letter in message.chars().take(70) {
        found.push(if letter.is_ascii_digit() { '#' } else { letter });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Extended, Statement};

    fn step(text: &str) -> Step {
        Step { statements: vec![Statement::text(text)], sending: Sending::Simple }
    }

    fn failed(code: &str, message: &str) -> Event {
        Event::Failed { code: code.to_owned(), message: message.to_owned() }
    }

    fn complete(tag: &str) -> Event {
        Event::Complete(tag.to_owned())
    }

    #[test]
    fn an_error_stands_for_rows_behind_a_row_limit_only() {
        let row = || Event::Row(vec![Some(b"1".to_vec())]);
        let (limited, fails) = (Event::Suspended, failed("22012", ""));
        let query = step("SELECT 1 / a FROM t");
        let ours = [Event::Columns(Vec::new()), fails];
        let theirs = |rest: &[Event]| [&[Event::Columns(Vec::new())], rest].concat();
        assert!(excuse(&query, &theirs(&[row(), row(), limited.clone()]), &ours).is_some());
        assert_eq!(excuse(&query, &theirs(&[row(), complete("SELECT 1")]), &ours), None);
        assert_eq!(excuse(&query, &theirs(std::slice::from_ref(&limited)), &ours), None);
        // A row of the statement before is missing.
        let done = || complete("SELECT 1");
        let ours = [done(), failed("22012", "")];
        assert_eq!(excuse(&query, &[row(), done(), row(), limited], &ours), None);
    }

    #[test]
    fn formats_fail_where_the_order_of_evaluation_is_free() {
        let mut query = step("SELECT 1 FROM t WHERE to_char(a, 'SPR') = '1'");
        query.statements[0].is_strict = false;
        let format = [failed("42601", "cannot use \"PR\" and \"S\" together")];
        assert!(excuse(&query, &format, &[complete("SELECT 0")]).is_some());
        let syntax = [failed("42601", "syntax error at or near \"PR\"")];
        assert_eq!(excuse(&query, &syntax, &[complete("SELECT 0")]), None);
    }

    #[test]
    fn constants_fail_for_nothing_only() {
        let insert = step("INSERT INTO t SELECT '70000'::int::smallint FROM t");
        let theirs = [failed("22003", "")];
        assert!(excuse(&insert, &theirs, &[complete("INSERT 0 0")]).is_some());
        assert_eq!(excuse(&insert, &theirs, &[complete("INSERT 0 1")]), None);
        assert_eq!(excuse(&step("SELECT 1"), &theirs, &[complete("SELECT 0")]), None);
        let upsert = step("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 1 / 0");
        assert!(excuse(&upsert, &[failed("22012", "")], &[complete("INSERT 0 1")]).is_some());
        // The second statement of a text.
        let theirs = [complete("INSERT 0 2"), failed("22003", "")];
        let ours = |second| [complete("INSERT 0 2"), complete(second), complete("INSERT 0 1")];
        assert!(excuse(&insert, &theirs, &ours("INSERT 0 0")).is_some());
        assert_eq!(excuse(&insert, &theirs, &ours("INSERT 0 1")), None);
    }

    #[test]
    fn a_statement_that_writes_may_tell_another_error_but_not_succeed() {
        let insert = step("INSERT INTO t VALUES (1)");
        let (key, value) = ([failed("23505", "")], [failed("22003", "")]);
        assert!(excuse(&insert, &key, &value).is_some());
        let infinity = [failed("0A000", "cannot convert infinity to bigint")];
        assert!(excuse(&insert, &infinity, &key).is_some());
        assert_eq!(excuse(&insert, &[failed("0A000", "not there")], &key), None);
        assert_eq!(excuse(&insert, &key, &[complete("INSERT 0 1")]), None);
        assert_eq!(excuse(&insert, &[failed("42703", "")], &value), None);
        assert_eq!(excuse(&step("SELECT 1"), &[failed("22008", "")], &value), None);
    }

    #[test]
    fn what_took_place_here_cannot_run_again() {
        let theirs = [failed("23505", "")];
        let ours = [complete("UPDATE 2"), failed("55000", "")];
        let once = step("UPDATE t SET a = a + 1");
        assert_eq!(excuse(&once, &theirs, &ours), None);
        let again = Sending::Extended(Extended { again: 1, ..Extended::default() });
        assert!(excuse(&Step { sending: again, ..once }, &theirs, &ours).is_some());
        let insert = Step { sending: again, ..step("INSERT INTO t SELECT 1 FROM t") };
        let answer = |tag: &str| [complete(tag), failed("55000", "")];
        assert!(excuse(&insert, &[failed("22003", "")], &answer("INSERT 0 0")).is_some());
        assert_eq!(excuse(&insert, &[failed("22003", "")], &answer("INSERT 0 1")), None);
        assert_eq!(excuse(&insert, &[complete("INSERT 0 0")], &answer("INSERT 0 0")), None);
    }
}
