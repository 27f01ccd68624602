//! Functions that do something beside computing.

use super::binder::Binder;
use super::coerce::Bound;
use super::described::{Described, described};
use super::expression::call;
use crate::ir::{AdvisoryAction, AdvisoryMode, Function, SleepForm, SystemFunction};
use values::{Error, Result, Type};

/// Where expressions are computed once for each row that a statement writes or answers.
const ONCE_A_ROW: &[&str] = &["RETURNING", "ON CONFLICT DO UPDATE"];

/// The function with this name, of which a statement that writes has none. What is `void` in
/// PostgreSQL is text here.
pub(super) fn effect_named(name: &str, count: usize) -> Option<Described<SystemFunction>> {
    use SystemFunction::{Advisory, Sleep};
    use Type::{Bool, Float8, Int4, Int8, Interval, Text, Timestamptz};
    match (name, count) {
        ("pg_sleep", 1) => return described(Sleep(SleepForm::Seconds), &[Float8], Text),
        ("pg_sleep_for", 1) => return described(Sleep(SleepForm::For), &[Interval], Text),
        ("pg_sleep_until", 1) => return described(Sleep(SleepForm::Until), &[Timestamptz], Text),
        ("pg_cancel_backend", 1) => {
            return described(SystemFunction::CancelBackend, &[Int4], Bool);
        }
        ("pg_terminate_backend", 1) => {
            return described(SystemFunction::TerminateBackend, &[Int4], Bool);
        }
        ("pg_advisory_unlock_all", 0) => {
            return described(Advisory(AdvisoryAction::UnlockAll), &[], Text);
        }
        _ => {}
    }
    let arguments: &[Type] = match count {
        1 => &[Int8],
        2 => &[Int4, Int4],
        _ => return None,
    };
    let is_shared = name.ends_with("_shared");
    let mode = |is_of_transaction| AdvisoryMode { is_shared, is_of_transaction };
    let (action, result) = match name.strip_suffix("_shared").unwrap_or(name) {
        "pg_advisory_lock" => (AdvisoryAction::Lock(mode(false)), Text),
        "pg_advisory_xact_lock" => (AdvisoryAction::Lock(mode(true)), Text),
        "pg_try_advisory_lock" => (AdvisoryAction::Try(mode(false)), Bool),
        "pg_try_advisory_xact_lock" => (AdvisoryAction::Try(mode(true)), Bool),
        "pg_advisory_unlock" => (AdvisoryAction::Unlock { is_shared }, Bool),
        _ => return None,
    };
    described(Advisory(action), arguments, result)
}

impl Binder<'_> {
    /// `pg_notify`, which statements that write may have, too.
    pub(super) fn notify(&mut self, all: Vec<Bound>) -> Result<Bound> {
        if let Some(place) = self.no_queries.filter(|place| !ONCE_A_ROW.contains(place)) {
            return Err(Error::unsupported(format!("cannot use pg_notify in {place}"), ""));
        }
        let all = self.coerced(all, &[Type::Text, Type::Text])?;
        Ok(call(Function::Notify, all, Type::Text))
    }
}
