//! The settings of a session: those that clients look at or set.

use super::modes::{LEVELS, TransactionModes, level_of};
use super::units::Measure;
use super::zones::zone;
use crate::codec::Messages;
use crate::config::NAME;
use crate::store::Environment;
use sql::catalog::Path;
use sql::parse::BlockModes;
use sql::system::{SERVER_VERSION, quoted};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use values::{Error, Result, SqlState, Zone};

/// What may be set.
#[derive(Clone, Copy)]
enum Rule {
    /// Only what it is already.
    Fixed,
    /// Any text.
    Free,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// On or off.
    Switch,
    /// A mode of the transaction that runs, one of these words: set by SET TRANSACTION.
    Mode(&'static [&'static str]),
    /// One of these words, of which all but the first change nothing.
    NoEffect(&'static [&'static str]),
    /// Memory of at least so many kilobytes, which changes nothing.
    Memory(i32),
    /// A zone.
    Zone,
    /// A spelling of UTF8.
    Encoding,
    /// `ISO` with an order of year, month and day that changes nothing.
    DateStyle,
    /// The user that there is, or also `none`.
    User { may_be_none: bool },
    /// Names of schemas.
    SearchPath,
    /// A time; 0 for none.
    Time,
    /// From which level on a client is told of what is no error.
    MessageLevel,
    /// How many digits floats have more than all machines keep; all that they need from 1 on.
    FloatDigits,
}

struct Known {
    name: &'static str,
    value: &'static str,
    rule: Rule,
    /// Whether clients are told its value at the beginning and whenever it changes.
    is_reported: bool,
}

const fn told(name: &'static str, value: &'static str, rule: Rule) -> Known {
    Known { name, value, rule, is_reported: true }
}

const fn quiet(name: &'static str, value: &'static str, rule: Rule) -> Known {
    Known { name, value, rule, is_reported: false }
}

const SWITCH: &[&str] = &["off", "on"];
/// The levels in PostgreSQL's order.
const LEVELS_SHOWN: &[&str] =
    &["serializable", "repeatable read", "read committed", "read uncommitted"];
/// From what is least important on.
const MESSAGE_LEVELS: &[&str] =
    &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];
/// Values of `extra_float_digits`.
const FLOAT_DIGITS: std::ops::RangeInclusive<i32> = -15..=3;

/// By their names in lower case.
const KNOWN: &[Known] = &[
    told("application_name", "", Rule::Free),
    quiet("array_nulls", "on", Rule::Fixed),
    quiet("bytea_output", "hex", Rule::Fixed),
    quiet("check_function_bodies", "on", Rule::NoEffect(&["on", "off"])),
    told("client_encoding", "UTF8", Rule::Encoding),
    quiet("client_min_messages", "notice", Rule::MessageLevel),
    told("DateStyle", "ISO, MDY", Rule::DateStyle),
    quiet("default_table_access_method", "heap", Rule::Fixed),
    quiet("default_tablespace", "", Rule::Fixed),
    quiet("default_toast_compression", "pglz", Rule::Fixed),
    quiet("default_transaction_deferrable", "off", Rule::Switch),
    quiet("default_transaction_isolation", "read committed", Rule::OneOf(LEVELS)),
    told("default_transaction_read_only", "off", Rule::Switch),
    quiet("escape_string_warning", "on", Rule::NoEffect(&["on", "off"])),
    quiet("extra_float_digits", "1", Rule::FloatDigits),
    quiet("idle_in_transaction_session_timeout", "0", Rule::Time),
    quiet("idle_session_timeout", "0", Rule::Fixed),
    told("in_hot_standby", "off", Rule::Fixed),
    told("integer_datetimes", "on", Rule::Fixed),
    told("IntervalStyle", "postgres", Rule::Fixed),
    told("is_superuser", "on", Rule::Fixed),
    quiet("jit", "off", Rule::NoEffect(&["off", "on"])),
    quiet("lc_collate", "C", Rule::Fixed),
    quiet("lc_ctype", "C", Rule::Fixed),
    quiet("lc_messages", "C", Rule::Fixed),
    quiet("lc_monetary", "C", Rule::Fixed),
    quiet("lc_numeric", "C", Rule::Fixed),
    quiet("lc_time", "C", Rule::Fixed),
    quiet("lock_timeout", "0", Rule::Time),
    quiet("maintenance_work_mem", "64MB", Rule::Memory(1024)),
    quiet("max_identifier_length", "63", Rule::Fixed),
    quiet("max_index_keys", "32", Rule::Fixed),
    quiet("quote_all_identifiers", "off", Rule::Fixed),
    quiet("role", "none", Rule::User { may_be_none: true }),
    quiet("row_security", "on", Rule::NoEffect(&["on", "off"])),
    quiet("search_path", "\"$user\", public", Rule::SearchPath),
    told("server_encoding", "UTF8", Rule::Fixed),
    told("server_version", SERVER_VERSION, Rule::Fixed),
    quiet("server_version_num", "150000", Rule::Fixed),
    told("session_authorization", NAME, Rule::User { may_be_none: false }),
    told("standard_conforming_strings", "on", Rule::Fixed),
    quiet("statement_timeout", "0", Rule::Time),
    quiet("synchronize_seqscans", "on", Rule::NoEffect(&["on", "off"])),
    quiet(
        "synchronous_commit",
        "on",
        Rule::NoEffect(&["on", "off", "local", "remote_write", "remote_apply"]),
    ),
    told("TimeZone", "UTC", Rule::Zone),
    quiet("transaction_deferrable", "off", Rule::Mode(SWITCH)),
    quiet("transaction_isolation", "read committed", Rule::Mode(LEVELS)),
    quiet("transaction_read_only", "off", Rule::Mode(SWITCH)),
    quiet("work_mem", "4MB", Rule::Memory(64)),
    quiet("xmloption", "content", Rule::NoEffect(&["content", "document"])),
];

fn known(name: &str) -> Result<&'static Known> {
    let found = KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let message = format!("unrecognized configuration parameter \"{name}\"");
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

/// The settings of one session. A clone shares the values until one of the two changes.
#[derive(Clone)]
pub(super) struct Settings {
    kept: Arc<Kept>,
    /// The modes of the transaction that runs; `None` before its first statement.
    modes: Option<TransactionModes>,
}

#[derive(Clone)]
struct Kept {
    /// Values that are not the defaults.
    values: BTreeMap<&'static str, String>,
    /// Those that the client began with, which RESET comes back to.
    initial: BTreeMap<&'static str, String>,
    zone: Arc<Zone>,
    path: Path,
    /// Settings of the application, which have a period in their name.
    own: BTreeMap<String, String>,
}

/// What a client is told of a change, though it is no error.
pub(super) type Notice = Option<String>;

impl Settings {
    /// The settings that a client asks for at the beginning.
    pub(super) fn new<'a>(asked: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Settings> {
        let zone = Arc::new(Zone::utc());
        let (values, initial, own) = Default::default();
        let kept = Kept { values, initial, zone, path: Path::default(), own };
        let mut settings = Settings { kept: Arc::new(kept), modes: None };
        for (name, value) in asked {
            settings.set(name, value)?;
        }
        let kept = Arc::make_mut(&mut settings.kept);
        kept.initial = kept.values.clone();
        Ok(settings)
    }

    pub(super) fn zone(&self) -> &Arc<Zone> {
        &self.kept.zone
    }

    /// What plans depend on.
    pub(super) fn environment(&self) -> Environment {
        Environment::new((*self.kept.zone).clone(), self.kept.path.clone())
    }

    /// Whether plans depend on the same as those with other settings.
    pub(super) fn has_environment_of(&self, other: &Settings) -> bool {
        Arc::ptr_eq(self.zone(), other.zone()) && self.kept.path == other.kept.path
    }

    /// How long a client may do nothing in a block.
    pub(super) fn idle_in_transaction(&self) -> Option<Duration> {
        self.time("idle_in_transaction_session_timeout")
    }

    /// How long a statement waits for a lock.
    pub(super) fn lock_timeout(&self) -> Option<Duration> {
        self.time("lock_timeout")
    }

    /// How long a statement may take that can be cancelled.
    pub(super) fn statement_timeout(&self) -> Option<Duration> {
        self.time("statement_timeout")
    }

    /// What the client calls itself.
    pub(super) fn application(&self) -> &str {
        self.kept.values.get("application_name").map_or("", String::as_str)
    }

    /// The time that a setting says; none of 0.
    fn time(&self, name: &str) -> Option<Duration> {
        let count = Measure::Milliseconds.read(self.kept.values.get(name)?)?;
        u64::try_from(count).ok().filter(|count| *count > 0).map(Duration::from_millis)
    }

    /// The modes of a transaction that states none.
    pub(super) fn default_modes(&self) -> TransactionModes {
        let level = level_of(self.default_of("transaction_isolation"));
        TransactionModes {
            level: level.expect("the setting has no other values"),
            is_read_only: self.default_of("transaction_read_only") == "on",
            is_deferrable: self.default_of("transaction_deferrable") == "on",
        }
    }

    /// The value of a mode of transactions that do not state it.
    fn default_of(&self, mode: &str) -> &str {
        let (setting, first) = match mode {
            "transaction_isolation" => ("default_transaction_isolation", LEVELS[0]),
            "transaction_read_only" => ("default_transaction_read_only", SWITCH[0]),
            _ => ("default_transaction_deferrable", SWITCH[0]),
        };
        self.kept.values.get(setting).map_or(first, String::as_str)
    }

    /// What SET of a setting says about the transaction that runs; `None` of other settings.
    /// Without a `value` it is what PostgreSQL begins with, whatever the defaults of transactions.
    pub(super) fn modes_of(name: &str, value: Option<&str>) -> Result<Option<BlockModes>> {
        if name.contains('.') {
            return Ok(None);
        }
        let known = known(name)?;
        let Rule::Mode(words) = known.rule else { return Ok(None) };
        let value = match value {
            None => known.value.to_owned(),
            Some(value) => word_of(words, value).ok_or_else(|| invalid(known, value))?,
        };
        let is_on = Some(value == "on");
        let modes = BlockModes::default();
        Ok(Some(match known.name {
            "transaction_isolation" => BlockModes { level: Some(value), ..modes },
            "transaction_read_only" => BlockModes { is_read_only: is_on, ..modes },
            _ => BlockModes { is_deferrable: is_on, ..modes },
        }))
    }

    /// The modes of the transaction that runs; before its first statement those of the next one.
    pub(super) fn modes(&self) -> TransactionModes {
        self.modes.unwrap_or_else(|| self.default_modes())
    }

    /// Whether a transaction runs.
    pub(super) fn has_modes(&self) -> bool {
        self.modes.is_some()
    }

    /// Sets the modes of the transaction that runs.
    pub(super) fn set_modes(&mut self, modes: TransactionModes) {
        self.modes = Some(modes);
    }

    /// Forgets the modes of a transaction that has ended.
    pub(super) fn unset_modes(&mut self) {
        self.modes = None;
    }

    /// These values with the modes of the transaction that `other` has.
    pub(super) fn with_modes_of(self, other: &Settings) -> Settings {
        Settings { modes: other.modes, ..self }
    }

    /// The name of a setting as it is shown, and its value.
    pub(super) fn show(&self, name: &str) -> Result<(String, String)> {
        if let Some((name, value)) = self.kept.own.get_key_value(&name.to_ascii_lowercase()) {
            return Ok((name.clone(), value.clone()));
        }
        let known = known(name)?;
        Ok((known.name.to_owned(), self.value(known).to_owned()))
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.kept.own.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        KNOWN.iter().map(|known| (known.name, self.value(known))).chain(own)
    }

    fn value(&self, known: &'static Known) -> &str {
        if !matches!(known.rule, Rule::Mode(_)) {
            return self.kept.values.get(known.name).map_or(known.value, String::as_str);
        }
        let modes = self.modes();
        match known.name {
            "transaction_isolation" => modes.level,
            "transaction_read_only" => SWITCH[usize::from(modes.is_read_only)],
            _ => SWITCH[usize::from(modes.is_deferrable)],
        }
    }

    /// Whether the client wants to see notices.
    pub(super) fn wants_notices(&self) -> bool {
        !matches!(self.message_level(), "warning" | "error")
    }

    /// Whether the client wants to see warnings.
    pub(super) fn wants_warnings(&self) -> bool {
        self.message_level() != "error"
    }

    fn message_level(&self) -> &str {
        self.kept.values.get("client_min_messages").map_or("notice", String::as_str)
    }

    /// Whether these are the values of `other`, of which one is a clone that has not changed.
    pub(super) fn is_as(&self, other: &Settings) -> bool {
        Arc::ptr_eq(&self.kept, &other.kept)
    }

    /// Writes the values that clients learn without asking into `out`: of all settings, or of those
    /// that differ from what the client was `told` before.
    pub(super) fn report(&self, told: Option<&Settings>, out: &mut Messages) {
        for known in KNOWN.iter().filter(|known| known.is_reported) {
            let value = self.value(known);
            if told.is_none_or(|told| told.value(known) != value) {
                out.parameter_status(known.name, value);
            }
        }
    }

    /// Sets a value.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<Notice> {
        if name.contains('.') {
            check_own(name)?;
            let own = &mut Arc::make_mut(&mut self.kept).own;
            own.insert(name.to_ascii_lowercase(), value.to_owned());
            return Ok(None);
        }
        let known = known(name)?;
        let mut value = accepted(known, value)?;
        let kept = Arc::make_mut(&mut self.kept);
        if matches!(known.rule, Rule::Zone) {
            let zone = zone(&value).map_err(|error| {
                let invalid = invalid(known, &value);
                error.detail().map_or(invalid.clone(), |detail| invalid.with_detail(detail))
            })?;
            value = zone.name().to_owned();
            kept.zone = Arc::new(zone);
        }
        if matches!(known.rule, Rule::SearchPath) {
            kept.path = Path::parse(&value).ok_or_else(|| invalid(known, &value))?;
        }
        let has_no_effect = match known.rule {
            Rule::Memory(_) => value != known.value,
            Rule::NoEffect(words) => value != words[0],
            _ => false,
        };
        kept.values.insert(known.name, value);
        Ok(has_no_effect.then(|| format!("{} has no effect here", known.name)))
    }

    /// Knows the application's settings that others have, without their values: once there was one
    /// of a name, there is one until the session ends.
    pub(super) fn know_own_of(&mut self, others: &Settings) {
        let is_new = |name: &&String| !self.kept.own.contains_key(*name);
        let new: Vec<String> = others.kept.own.keys().filter(is_new).cloned().collect();
        if !new.is_empty() {
            let own = &mut Arc::make_mut(&mut self.kept).own;
            own.extend(new.into_iter().map(|name| (name, String::new())));
        }
    }

    fn reset(&mut self, known: &'static Known) {
        let kept = Arc::make_mut(&mut self.kept);
        match kept.initial.get(known.name) {
            Some(value) => kept.values.insert(known.name, value.clone()),
            None => kept.values.remove(known.name),
        };
        if matches!(known.rule, Rule::Zone) {
            let name = kept.values.get(known.name).map_or(known.value, String::as_str);
            kept.zone = Arc::new(zone(name).expect("it was a zone when it was set"));
        }
        if matches!(known.rule, Rule::SearchPath) {
            let text = kept.values.get(known.name).map_or(known.value, String::as_str);
            kept.path = Path::parse(text).expect("it was a path when it was set");
        }
    }

    /// Sets one value, or all, to what the client began with. Modes of the transaction that runs
    /// stay as they are.
    pub(super) fn reset_named(&mut self, name: Option<&str>) -> Result<Notice> {
        if let Some(name) = name {
            if name.contains('.') {
                return self.set(name, "");
            }
            self.reset(known(name)?);
            return Ok(None);
        }
        KNOWN.iter().for_each(|known| self.reset(known));
        Arc::make_mut(&mut self.kept).own.values_mut().for_each(String::clear);
        Ok(None)
    }
}

/// Refuses the name of an application's setting that is no list of words.
fn check_own(name: &str) -> Result<()> {
    let is_begin = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_word = |part: &str| {
        part.starts_with(is_begin)
            && part.chars().all(|c| is_begin(c) || c.is_ascii_digit() || c == '$')
    };
    if name.split('.').all(is_word) {
        return Ok(());
    }
    let message = format!("invalid configuration parameter name \"{name}\"");
    let detail = "Custom parameter names must be two or more simple identifiers separated by dots.";
    Err(Error::new(SqlState::INVALID_NAME, message).with_detail(detail))
}

/// Returns the one text that these values of a setting are, which most settings have one of.
///
/// # Errors
/// That there are several, or no such setting.
pub(super) fn joined(name: &str, values: &[String]) -> Result<String> {
    let is_list =
        !name.contains('.') && matches!(known(name)?.rule, Rule::DateStyle | Rule::SearchPath);
    if values.len() > 1 && !is_list {
        let message = format!("SET {name} takes only one argument");
        return Err(Error::new(SqlState::INVALID_PARAMETER, message));
    }
    if is_path(name) {
        return Ok(values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", "));
    }
    Ok(values.join(", "))
}

fn is_path(name: &str) -> bool {
    known(name).is_ok_and(|known| matches!(known.rule, Rule::SearchPath))
}

/// A number that is shown with its unit, if it is not below the least one.
fn counted(known: &Known, value: &str, of: Measure, least: i32) -> Result<Option<String>> {
    match of.read(value) {
        Some(count) if count < least => {
            let (name, unit, most) = (known.name, of.unit(), i32::MAX);
            let message = format!(
                "{count} {unit} is outside the valid range for parameter \"{name}\" \
                 ({least} .. {most})"
            );
            Err(Error::new(SqlState::INVALID_PARAMETER, message))
        }
        count => Ok(count.map(|count| of.show(count))),
    }
}

/// The value as it is kept, if it may be set.
fn accepted(known: &Known, value: &str) -> Result<String> {
    let lower = value.to_ascii_lowercase();
    let word = |words: &[&str]| word_of(words, &lower);
    let found = match known.rule {
        Rule::Fixed if value.eq_ignore_ascii_case(known.value) => Some(known.value.to_owned()),
        Rule::Fixed => {
            let message = format!("{} is {} and cannot be changed", known.name, known.value);
            return Err(Error::unsupported(message, ""));
        }
        Rule::Free => Some(value.chars().take(63).collect()),
        Rule::OneOf(words) => word(words),
        Rule::NoEffect(words) => word(words),
        Rule::Switch => word(SWITCH),
        Rule::Mode(_) => {
            let message = format!("{} is set by SET TRANSACTION", known.name);
            return Err(Error::unsupported(message, "Use SET TRANSACTION or BEGIN."));
        }
        Rule::Time => counted(known, value, Measure::Milliseconds, 0)?,
        Rule::Memory(least) => counted(known, value, Measure::Kilobytes, least)?,
        Rule::FloatDigits => float_digits(known, value)?,
        Rule::MessageLevel => match &lower[..] {
            "debug" => Some("debug2".to_owned()),
            "info" => Some(lower.clone()),
            _ => word(MESSAGE_LEVELS),
        },
        Rule::Zone if value.len() <= 100 => Some(value.to_owned()),
        Rule::Zone => None,
        Rule::Encoding => {
            // As PostgreSQL does it: only letters and digits count.
            let name: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
            ["utf8", "unicode"].contains(&&name[..]).then(|| known.value.to_owned())
        }
        Rule::User { may_be_none: true } if value == "none" => Some(value.to_owned()),
        Rule::User { .. } if value == NAME => Some(value.to_owned()),
        Rule::User { .. } => {
            let message = format!("role \"{value}\" does not exist");
            return Err(Error::new(SqlState::INVALID_PARAMETER, message));
        }
        Rule::DateStyle => {
            let mut parts = lower.split(',').map(str::trim);
            let all_fit =
                parts.all(|part| matches!(part, "iso" | "mdy" | "us" | "noneuro" | "noneuropean"));
            all_fit.then(|| known.value.to_owned())
        }
        Rule::SearchPath => Path::parse(value).map(|_| value.to_owned()),
    };
    found.ok_or_else(|| invalid(known, value))
}

/// How many digits more floats have, if they have all that they need.
fn float_digits(known: &Known, value: &str) -> Result<Option<String>> {
    let number = value.trim().parse::<f64>().ok().map(f64::round_ties_even);
    let Some(number) = number.filter(|number| number.abs() <= f64::from(i32::MAX)) else {
        return Ok(None);
    };
    let (name, digits) = (known.name, number as i32);
    if !FLOAT_DIGITS.contains(&digits) {
        let (least, most) = (FLOAT_DIGITS.start(), FLOAT_DIGITS.end());
        let message = format!(
            "{digits} is outside the valid range for parameter \"{name}\" ({least} .. {most})"
        );
        return Err(Error::new(SqlState::INVALID_PARAMETER, message));
    }
    if digits <= 0 {
        let message = format!("{name} = {digits} is not supported");
        let hint = "Floats are shown with all digits that they need, as with 1; round a value with \
                    round(value::numeric, digits).";
        return Err(Error::unsupported(message, hint));
    }
    Ok(Some(digits.to_string()))
}

/// The word that a value is; switches have several spellings.
fn word_of(words: &[&str], value: &str) -> Option<String> {
    let lower = value.to_ascii_lowercase();
    let meant = match (&lower[..], words.contains(&"on")) {
        ("true" | "yes" | "1", true) => "on",
        ("false" | "no" | "0", true) => "off",
        (other, _) => other,
    };
    words.contains(&meant).then(|| meant.to_owned())
}

fn invalid(known: &Known, value: &str) -> Error {
    let shown: String = value.chars().take(100).collect();
    let message = format!("invalid value for parameter \"{}\": \"{shown}\"", known.name);
    let error = Error::new(SqlState::INVALID_PARAMETER, message);
    let is_number = value.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '-');
    match known.rule {
        Rule::OneOf(words) | Rule::Mode(words) if words == LEVELS => {
            error.with_hint(format!("Available values: {}.", LEVELS_SHOWN.join(", ")))
        }
        Rule::OneOf(words) | Rule::NoEffect(words) | Rule::Mode(words) => {
            error.with_hint(format!("Available values: {}.", words.join(", ")))
        }
        Rule::Time | Rule::Memory(_) if !is_number => error,
        Rule::MessageLevel => {
            error.with_hint(format!("Available values: {}.", MESSAGE_LEVELS.join(", ")))
        }
        Rule::Switch => error.with_hint("Available values: on, off."),
        Rule::Encoding => error.with_hint("The only encoding is UTF8."),
        Rule::Time => {
            error.with_hint("Valid units are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")
        }
        Rule::Memory(_) => {
            error.with_hint("Valid units are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".")
        }
        Rule::SearchPath => error.with_detail("List syntax is invalid."),
        Rule::DateStyle => error.with_hint("Dates are shown as ISO and read as ISO, MDY."),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(asked: &[(&str, &str)]) -> Settings {
        Settings::new(asked.iter().copied()).unwrap()
    }

    #[test]
    fn reset_comes_back_to_what_the_client_began_with() {
        let mut settings = settings(&[("TimeZone", "Europe/Berlin"), ("application_name", "a")]);
        settings.set("timezone", "utc").unwrap();
        assert_eq!(settings.show("TIMEZONE").unwrap(), ("TimeZone".to_owned(), "UTC".to_owned()));
        settings.set("application_name", "b").unwrap();
        settings.reset_named(None).unwrap();
        assert_eq!(settings.zone().name(), "Europe/Berlin");
        assert_eq!(settings.show("application_name").unwrap().1, "a");
    }

    #[test]
    fn what_would_be_something_else_is_refused() {
        let mut settings = settings(&[]);
        let mut check = |name: &str, value: &str, code: &str| {
            let found = settings.set(name, value);
            let found = found.map_or_else(|error| error.state().code().to_owned(), |_| "ok".into());
            assert_eq!(found, code, "{name} = {value}");
        };
        check("client_encoding", "utf-8", "ok");
        check("client_encoding", "'utf-8'", "ok");
        check("client_encoding", "\"UTF_8\"", "ok");
        check("client_encoding", "sql_ascii", "22023");
        check("role", "none", "ok");
        check("role", NAME, "ok");
        check("role", "no_role", "22023");
        check("session_authorization", "none", "22023");
        check("client_encoding", "latin1", "22023");
        check("datestyle", "ISO, MDY", "ok");
        check("datestyle", "ISO, DMY", "22023");
        check("datestyle", "ISO, YMD", "22023");
        check("standard_conforming_strings", "on", "ok");
        check("standard_conforming_strings", "off", "0A000");
        check("search_path", "public", "ok");
        check("search_path", "app, \"My App\"", "ok");
        check("search_path", "app public", "22023");
        check("statement_timeout", "0", "ok");
        check("statement_timeout", "100", "ok");
        check("statement_timeout", "2min", "ok");
        check("statement_timeout", "soon", "22023");
        check("timezone", "+02", "ok");
        check("timezone", "nowhere", "22023");
        check("timezone", "default", "22023");
        check("application_name", "default", "ok");
        check("statement_timeout", "default", "22023");
        check("extra_float_digits", "1.4", "ok");
        check("extra_float_digits", "4", "22023");
        check("extra_float_digits", "few", "22023");
        check("extra_float_digits", "0", "0A000");
        check("extra_float_digits", "-15", "0A000");
        check("extra_float_digits", "-16", "22023");
        check("client_min_messages", "info", "ok");
        check("client_min_messages", "fatal", "22023");
        check("no_such", "1", "42704");
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let mut settings = settings(&[]);
        assert!(settings.set("synchronous_commit", "off").unwrap().is_some());
        assert_eq!(settings.set("synchronous_commit", "on").unwrap(), None);
        assert!(settings.wants_notices());
        settings.set("client_min_messages", "warning").unwrap();
        assert!(!settings.wants_notices() && settings.wants_warnings());
        settings.set("client_min_messages", "debug").unwrap();
        assert!(settings.wants_notices() && settings.wants_warnings());
        assert_eq!(settings.show("client_min_messages").unwrap().1, "debug2");
        settings.set("client_min_messages", "ERROR").unwrap();
        assert!(!settings.wants_notices() && !settings.wants_warnings());
    }
}
