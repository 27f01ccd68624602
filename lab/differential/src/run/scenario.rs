//! One scenario on both servers, from fresh stores to the contents behind a kill.

use super::servers::Servers;
use super::steps::{Forms, both};
use crate::compare::{Verdict, compare, contents};
use crate::generate::{Script, Sending, Statement, Step};
use crate::wire::{Address, Event};
use std::io;
use std::path::Path;

/// What two answers differ in.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Difference {
    /// The same for differences that are one, as `rows` or `error 0A000 for 23505`.
    pub(crate) label: String,
    pub(crate) theirs: Vec<Event>,
    pub(crate) ours: Vec<Event>,
}

/// Where servers and files are.
pub(crate) struct Found<'a> {
    pub(crate) postgresql: &'a Address,
    pub(crate) program: &'a Path,
    pub(crate) room: &'a Path,
    /// Binary forms that are known.
    pub(crate) forms: Forms,
}

/// How a scenario ended.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum End {
    /// All answers are the same but for the steps that `reasons` excuse.
    Same,
    /// The step at `at` has another answer for a reason that is listed, and what follows depends on
    /// it: it cannot be in this scenario.
    Excused { at: usize },
    /// The step at `at` has another answer; behind the last step it is the contents.
    Differs { at: usize, difference: Difference },
}

/// Runs `script` on fresh stores. Adds to `reasons` why steps may have other answers.
pub(crate) fn run(
    found: &mut Found,
    script: &Script,
    reasons: &mut Vec<String>,
) -> io::Result<End> {
    let mut servers = Servers::fresh(found.postgresql, found.program, found.room)?;
    for (at, step) in script.steps.iter().enumerate() {
        let (theirs, ours) = both(step, &mut servers, &mut found.forms);
        match compare(step, &theirs, &ours) {
            Verdict::Same => {}
            Verdict::Excused { reason, is_harmless } => {
                reasons.push(reason);
                if !is_harmless {
                    return Ok(End::Excused { at });
                }
            }
            Verdict::Differs(label) => {
                let difference = Difference { label, theirs, ours };
                return Ok(End::Differs { at, difference });
            }
        }
    }
    let at = script.steps.len();
    if let Some(difference) = compare_contents(script, &mut servers, "contents") {
        return Ok(End::Differs { at, difference });
    }
    if let Err(error) = servers.kill_and_open() {
        let difference = Difference {
            label: "not opened behind a kill".to_owned(),
            theirs: Vec::new(),
            ours: vec![Event::Lost(error.to_string())],
        };
        return Ok(End::Differs { at, difference });
    }
    if let Some(difference) = compare_contents(script, &mut servers, "contents behind a kill") {
        return Ok(End::Differs { at, difference });
    }
    Ok(End::Same)
}

/// Compares all rows of the script's tables.
fn compare_contents(script: &Script, servers: &mut Servers, label: &str) -> Option<Difference> {
    // A block that a scenario left open ends, so that only what is committed counts.
    servers.theirs.simple("ROLLBACK");
    servers.ours.simple("ROLLBACK");
    for table in &script.tables {
        let step = Step {
            statements: vec![Statement::text(format!("SELECT * FROM {table}"))],
            sending: Sending::Simple,
        };
        let (theirs, ours) = both(&step, servers, &mut Forms::default());
        if !contents(&theirs, &ours) {
            return Some(Difference { label: label.to_owned(), theirs, ours });
        }
    }
    None
}
