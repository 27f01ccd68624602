//! The list of what may differ, each with its reason. Everything else is a fault.

use crate::generate::Step;
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
    let (their_code, our_code) = (kind_of_error(theirs), kind_of_error(ours));
    let is_strict = step.statements.iter().all(|one| one.is_strict);
    let both_fail = their_code.is_some() && our_code.is_some();
    let in_class =
        |code: Option<&str>, class: &str| code.is_some_and(|code| code.starts_with(class));
    if our_code == Some("0A000") {
        return Some(format!("refused, 0A000: {}", words(message(ours))));
    }
    if in_class(our_code, "54") {
        return Some("refused: a limit that docs/sql.md lists".to_owned());
    }
    if both_fail && their_code == our_code && without_columns(theirs) == without_columns(ours) {
        return Some("an error of Execute here, of Parse or Bind there".to_owned());
    }
    if both_fail && their_code == our_code && in_class(our_code, "22") {
        return Some("rows come before a value fails there, and none here".to_owned());
    }
    if their_code == Some("42601") && our_code == Some("25P02") {
        return Some("in a failed block, an error of the grammar is not told".to_owned());
    }
    if both_fail && in_class(their_code, "23") && in_class(our_code, "23") {
        return Some("rows break several constraints, and another one is told".to_owned());
    }
    let is_of_values = |code| in_class(code, "22") || in_class(code, "23") || code == Some("21000");
    if both_fail && !is_strict && is_of_values(their_code) && is_of_values(our_code) {
        return Some("several values fail, and another one is told".to_owned());
    }
    if !is_strict && (in_class(their_code, "22") || in_class(our_code, "22")) {
        return Some("a value fails where the order of evaluation is free".to_owned());
    }
    if their_code == Some("23505") && our_code.is_none() && has_word(step, "UPDATE") {
        return Some("uniqueness is that of the rows after the statement".to_owned());
    }
    None
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
