//! Statements about the session, which neither read rows nor change any.

use super::cast::{CastChange, CastStatement};
use super::locks::{LockTable, lock_table};
use super::modes::{BlockModes, Verb};
use super::own::{Fetch, Own};
use super::statement::Statement;
use crate::bind::{interval_of, kind_of_interval, name_of};
use sqlparser::ast::{
    CloseCursor, ContextModifier, DataType, DiscardObject, Expr, ObjectName, Reset, Set,
    SetSessionAuthorizationParam, SetSessionAuthorizationParamKind, Statement as Tree,
    UnaryOperator, Value,
};
use values::Interval;

/// The setting of SET SESSION AUTHORIZATION.
const AUTHORIZATION: &str = "session_authorization";

/// What a statement says about the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// BEGIN
    Begin(BlockModes),
    /// START TRANSACTION, which is the same
    Start(BlockModes),
    /// SET TRANSACTION
    SetTransaction(BlockModes),
    /// COMMIT, END; whether AND CHAIN begins another block
    Commit(bool),
    /// ROLLBACK; whether AND CHAIN begins another block
    Rollback(bool),
    /// SAVEPOINT
    Savepoint(String),
    /// ROLLBACK TO
    RollbackTo(String),
    /// RELEASE
    Release(String),
    /// SET of a setting; its values as text, of which most settings have one.
    Set(String, Vec<String>),
    /// SET LOCAL
    SetLocal(String, Vec<String>),
    /// SET or SET LOCAL of a setting to DEFAULT, and SET TIME ZONE LOCAL
    SetDefault {
        /// The setting.
        name: String,
        /// Whether it is SET LOCAL.
        is_local: bool,
    },
    /// RESET of a setting, or of all.
    Reset(Option<String>),
    /// SHOW
    Show(String),
    /// DISCARD ALL
    DiscardAll,
    /// DISCARD TEMP
    DiscardTemporary,
    /// DISCARD of things that no session has, by the statement's tag
    DiscardNothing(&'static str),
    /// DEALLOCATE of a prepared statement, or of all
    Deallocate(Option<String>),
    /// SET SESSION CHARACTERISTICS: the modes of transactions from the next one on.
    Characteristics(BlockModes),
    /// VACUUM, ANALYZE, SET CONSTRAINTS
    Own(Own),
    /// FETCH, MOVE
    Fetch(Fetch),
    /// CLOSE of a cursor, or of all
    Close(Option<String>),
    /// LOCK TABLE
    Lock(LockTable),
    /// LISTEN to a channel
    Listen(String),
    /// UNLISTEN of a channel, or of all
    Unlisten(Option<String>),
}

impl Control {
    /// SET SCHEMA of the session.
    pub(super) fn of_path(schema: String, is_local: bool) -> Control {
        set("search_path", schema, is_local)
    }

    /// The statement that states modes of transactions.
    pub(super) fn of_modes(verb: Verb, modes: BlockModes) -> Control {
        match verb {
            Verb::Begin => Control::Begin(modes),
            Verb::Start => Control::Start(modes),
            Verb::Set => Control::SetTransaction(modes),
            Verb::SetDefaults => Control::Characteristics(modes),
        }
    }
}

impl Statement {
    /// What it says about the session; `None` of statements that [`crate::prepare`] or
    /// [`crate::define`] take, and of those that nothing takes.
    pub fn control(&self) -> Option<Control> {
        if let Some(own) = &self.own {
            return Some(own.clone());
        }
        if self.has_no_tree() {
            return None;
        }
        Some(match &self.tree {
            Tree::Commit { chain, .. } => Control::Commit(*chain),
            Tree::Rollback { savepoint: None, chain } => Control::Rollback(*chain),
            Tree::Rollback { savepoint: Some(name), .. } => Control::RollbackTo(name_of(name)),
            Tree::Savepoint { name } => Control::Savepoint(name_of(name)),
            Tree::ReleaseSavepoint { name } => Control::Release(name_of(name)),
            Tree::Set(Set::SingleAssignment { scope, hivevar: false, variable, values }) => {
                let is_local = *scope == Some(ContextModifier::Local);
                assignment(setting_name(variable), values, is_local)?
            }
            Tree::Set(Set::SetTimeZone { local, value }) => time_zone(value, *local)?,
            Tree::Set(Set::SetRole { context_modifier, role_name }) => {
                let is_local = *context_modifier == Some(ContextModifier::Local);
                let role = role_name.as_ref().map_or_else(|| "none".to_owned(), name_of);
                set("role", role, is_local)
            }
            Tree::Set(Set::SetSessionAuthorization(asked)) => authorization(asked),
            Tree::Reset(reset) => match &reset.reset {
                Reset::ALL => Control::Reset(None),
                Reset::ConfigurationParameter(name) => Control::Reset(Some(setting_name(name))),
                Reset::SessionAuthorization => Control::Reset(Some(AUTHORIZATION.to_owned())),
            },
            Tree::ShowVariable { variable } => {
                let words: Vec<String> = variable.iter().map(name_of).collect();
                Control::Show(match words.join(" ").as_str() {
                    "time zone" => "timezone".to_owned(),
                    "session authorization" => AUTHORIZATION.to_owned(),
                    "transaction isolation level" => "transaction_isolation".to_owned(),
                    name => name.replace(' ', "."),
                })
            }
            Tree::Discard { object_type } => match object_type {
                DiscardObject::ALL => Control::DiscardAll,
                DiscardObject::PLANS => Control::DiscardNothing("DISCARD PLANS"),
                DiscardObject::SEQUENCES => Control::DiscardNothing("DISCARD SEQUENCES"),
                DiscardObject::TEMP => Control::DiscardTemporary,
            },
            Tree::Lock(lock) => Control::Lock(lock_table(lock).ok()?),
            Tree::Close { cursor: CloseCursor::All } => Control::Close(None),
            Tree::Close { cursor: CloseCursor::Specific { name } } => {
                Control::Close(Some(name_of(name)))
            }
            Tree::Deallocate { name, .. } => match name_of(name).as_str() {
                "all" if name.quote_style.is_none() => Control::Deallocate(None),
                name => Control::Deallocate(Some(name.to_owned())),
            },
            Tree::Set(Set::SetNames { charset_name, collation_name: None }) => {
                Control::Set("client_encoding".to_owned(), vec![charset_name.value.clone()])
            }
            _ => return None,
        })
    }

    /// Whether it is one that [`crate::define`] takes.
    pub fn is_definition(&self) -> bool {
        let is_tree_of_one = matches!(
            &self.tree,
            Tree::CreateTable(_)
                | Tree::CreateView(_)
                | Tree::CreateIndex(_)
                | Tree::CreateSequence { .. }
                | Tree::CreateSchema { .. }
                | Tree::AlterSchema(_)
                | Tree::CreateExtension(_)
                | Tree::CreateType { .. }
                | Tree::AlterType(_)
                | Tree::Drop { .. }
                | Tree::Truncate(_)
                | Tree::CreatePolicy(_)
                | Tree::AlterTable(_)
                | Tree::AlterIndex { .. }
        );
        self.has_no_tree() || is_tree_of_one || self.sets_value()
    }

    /// The command of a definition that reads nothing before it writes; `None` of CREATE TABLE AS
    /// and of queries, which do, and of what is no definition.
    pub fn command(&self) -> Option<String> {
        if let Some(tree) = &self.set_schema {
            return Some(tree.kind.command().to_owned());
        }
        let command = match &self.tree {
            _ if self.table_as.is_some() || self.sets_value() => return None,
            _ if self.sequence.is_some() => "ALTER SEQUENCE",
            _ if self.type_move.is_some() => "ALTER TYPE",
            _ if self.cast.is_some() => self.command_of_cast(),
            _ if self.comment.is_some() => "COMMENT",
            _ if self.view_change.is_some() => "ALTER VIEW",
            Tree::CreateTable(_) => "CREATE TABLE",
            Tree::CreateView(_) => "CREATE VIEW",
            Tree::CreateIndex(_) => "CREATE INDEX",
            Tree::CreateSequence { .. } => "CREATE SEQUENCE",
            Tree::CreateSchema { .. } => "CREATE SCHEMA",
            Tree::AlterSchema(_) => "ALTER SCHEMA",
            Tree::CreateExtension(_) => "CREATE EXTENSION",
            Tree::CreateType { .. } => "CREATE TYPE",
            Tree::AlterType(_) => "ALTER TYPE",
            Tree::Drop { object_type, .. } => return Some(format!("DROP {object_type}")),
            Tree::CreatePolicy(_) => "CREATE POLICY",
            Tree::Truncate(_) => "TRUNCATE TABLE",
            Tree::AlterTable(_) => "ALTER TABLE",
            Tree::AlterIndex { .. } => "ALTER INDEX",
            _ => return None,
        };
        Some(command.to_owned())
    }

    fn command_of_cast(&self) -> &'static str {
        match self.cast.as_deref() {
            Some(CastStatement { change: CastChange::Drop { .. }, .. }) => "DROP CAST",
            _ => "CREATE CAST",
        }
    }

    /// Whether it is a definition that has no tree.
    fn has_no_tree(&self) -> bool {
        let is_of_types = self.type_move.is_some() || self.cast.is_some() || self.comment.is_some();
        let is_of_views = self.view_change.is_some() || self.set_schema.is_some();
        self.sequence.is_some() || self.table_as.is_some() || is_of_types || is_of_views
    }
}

fn set(name: &str, value: String, is_local: bool) -> Control {
    match is_local {
        true => Control::SetLocal(name.to_owned(), vec![value]),
        false => Control::Set(name.to_owned(), vec![value]),
    }
}

/// SET SESSION AUTHORIZATION
fn authorization(asked: &SetSessionAuthorizationParam) -> Control {
    let is_local = asked.scope == ContextModifier::Local;
    match &asked.kind {
        SetSessionAuthorizationParamKind::Default => {
            Control::SetDefault { name: AUTHORIZATION.to_owned(), is_local }
        }
        SetSessionAuthorizationParamKind::User(user) => set(AUTHORIZATION, name_of(user), is_local),
    }
}

fn setting_name(name: &ObjectName) -> String {
    name.to_string().to_ascii_lowercase().replace('"', "")
}

/// SET of a setting: its values as they are written.
fn assignment(name: String, values: &[Expr], is_local: bool) -> Option<Control> {
    if let [Expr::Identifier(word)] = values
        && word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case("default")
    {
        return Some(Control::SetDefault { name, is_local });
    }
    let values = values.iter().map(setting).collect::<Option<_>>()?;
    Some(match is_local {
        true => Control::SetLocal(name, values),
        false => Control::Set(name, values),
    })
}

/// SET TIME ZONE, which has words of its own, and intervals.
fn time_zone(value: &Expr, is_local: bool) -> Option<Control> {
    let name = "timezone".to_owned();
    match value {
        Expr::Identifier(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("local") =>
        {
            Some(Control::SetDefault { name, is_local })
        }
        Expr::Interval(_) | Expr::Cast { .. } => {
            let values = vec![distance(value)?];
            Some(if is_local {
                Control::SetLocal(name, values)
            } else {
                Control::Set(name, values)
            })
        }
        _ => assignment(name, std::slice::from_ref(value), is_local),
    }
}

/// The text of an interval as a zone: hours and minutes, or the text itself where it is none.
fn distance(value: &Expr) -> Option<String> {
    let (constant, kind) = match value {
        Expr::Interval(written) => (&written.value, kind_of_interval(written).ok()?),
        Expr::Cast { expr, data_type: DataType::Interval { fields: None, precision }, .. } => {
            (expr, interval_of(None, *precision).ok()?)
        }
        _ => return None,
    };
    if !matches!(kind.modifier.interval_fields().name(), None | Some("hour" | "hour to minute")) {
        return None;
    }
    let Expr::Value(constant) = &**constant else { return None };
    let Value::SingleQuotedString(text) = &constant.value else { return None };
    let interval = Interval::parse_as(text, kind.modifier.interval_fields());
    let digits = kind.modifier.second_digits().unwrap_or(u32::MAX);
    let shown = match interval.and_then(|interval| interval.round(digits)) {
        Ok(interval) => interval.to_string(),
        Err(_) => text.clone(),
    };
    Some(format!("INTERVAL '{shown}'"))
}

/// The text of a setting's value: names and strings without their quotes. `None` of what is no
/// constant, which may be too deep to be shown on this stack.
fn setting(expr: &Expr) -> Option<String> {
    Some(match expr {
        Expr::Identifier(name) => name_of(name),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner }
            if matches!(**inner, Expr::Value(_)) =>
        {
            expr.to_string()
        }
        Expr::CompoundIdentifier(_) => expr.to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::own::SetConstraints;
    use super::super::parse;
    use super::*;
    use crate::catalog::Written;

    #[test]
    fn statements_about_the_session_are_told_apart() {
        let check = |text: &str, expected: Option<Control>| {
            assert_eq!(parse(text).unwrap()[0].control(), expected, "{text}");
        };
        let modes = |level: &str, is_read_only| BlockModes {
            level: (!level.is_empty()).then(|| level.to_owned()),
            is_read_only,
            is_deferrable: None,
        };
        check("BEGIN", Some(Control::Begin(BlockModes::default())));
        check(
            "START TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            Some(Control::Start(modes("serializable", None))),
        );
        check(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Some(Control::Begin(modes("repeatable read", Some(true)))),
        );
        check("SET TRANSACTION READ WRITE", Some(Control::SetTransaction(modes("", Some(false)))));
        check("COMMIT", Some(Control::Commit(false)));
        check("END", Some(Control::Commit(false)));
        check("ROLLBACK AND CHAIN", Some(Control::Rollback(true)));
        check("ROLLBACK TO SAVEPOINT A", Some(Control::RollbackTo("a".to_owned())));
        check("SAVEPOINT a", Some(Control::Savepoint("a".to_owned())));
        check("RELEASE SAVEPOINT a", Some(Control::Release("a".to_owned())));
        let set =
            |name: &str, value: &str| Some(Control::Set(name.to_owned(), vec![value.to_owned()]));
        let two = vec!["iso".to_owned(), "dmy".to_owned()];
        check("SET DateStyle TO ISO, DMY", Some(Control::Set("datestyle".to_owned(), two)));
        check("SET application_name = 'psql x'", set("application_name", "psql x"));
        let local = Control::SetLocal("timezone".to_owned(), vec!["UTC".to_owned()]);
        check("SET LOCAL timezone = 'UTC'", Some(local));
        check("SET TIME ZONE 'UTC'", set("timezone", "UTC"));
        let local = Control::SetLocal("timezone".to_owned(), vec!["UTC".to_owned()]);
        check("SET LOCAL TIME ZONE 'UTC'", Some(local));
        check("SET application_name = Foo", set("application_name", "foo"));
        check("SET application_name = \"Foo\"", set("application_name", "Foo"));
        check("SET work_mem = -1", set("work_mem", "-1"));
        check("SET work_mem = 1 + 1", None);
        check("RESET ALL", Some(Control::Reset(None)));
        check("SHOW server_version", Some(Control::Show("server_version".to_owned())));
        check("SHOW TIME ZONE", Some(Control::Show("timezone".to_owned())));
        check("DISCARD ALL", Some(Control::DiscardAll));
        check("DISCARD PLANS", Some(Control::DiscardNothing("DISCARD PLANS")));
        check("SET NAMES 'utf8'", set("client_encoding", "utf8"));
        check("SET ROLE nvcaracal", set("role", "nvcaracal"));
        check("SET SESSION ROLE NONE", set("role", "none"));
        check("RESET ROLE", Some(Control::Reset(Some("role".to_owned()))));
        check("SET SESSION AUTHORIZATION \"A\"", set("session_authorization", "A"));
        let name = "session_authorization".to_owned();
        let default = Control::SetDefault { name: name.clone(), is_local: false };
        check("SET SESSION AUTHORIZATION DEFAULT", Some(default));
        check("RESET SESSION AUTHORIZATION", Some(Control::Reset(Some(name))));
        check("DEALLOCATE a", Some(Control::Deallocate(Some("a".to_owned()))));
        check("DEALLOCATE PREPARE ALL", Some(Control::Deallocate(None)));
        check(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            Some(Control::Characteristics(modes("serializable", None))),
        );
        check("SELECT 1", None);
        check(
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            Some(Control::Characteristics(modes("", Some(true)))),
        );
    }

    #[test]
    fn values_of_settings_are_told_apart() {
        let check = |text: &str, expected: Option<Control>| {
            assert_eq!(parse(text).unwrap()[0].control(), expected, "{text}");
        };
        let set =
            |name: &str, value: &str| Some(Control::Set(name.to_owned(), vec![value.to_owned()]));
        let default = |name: &str, is_local| {
            let name = name.to_owned();
            Some(Control::SetDefault { name, is_local })
        };
        check("SET application_name TO DEFAULT", default("application_name", false));
        check("SET LOCAL application_name = default", default("application_name", true));
        check("SET application_name = 'default'", set("application_name", "default"));
        check("SET application_name = \"default\"", set("application_name", "default"));
        check("SET TIME ZONE LOCAL", default("timezone", false));
        check("SET LOCAL TIME ZONE DEFAULT", default("timezone", true));
        check("SET TIME ZONE 'local'", set("timezone", "local"));
        let zone = |text: &str| set("timezone", &format!("INTERVAL '{text}'"));
        check("SET TIME ZONE INTERVAL '-3:30' HOUR TO MINUTE", zone("-03:30:00"));
        check("SET TIME ZONE INTERVAL '3' HOUR", zone("03:00:00"));
        check("SET TIME ZONE INTERVAL(0) '12:34:56.7'", zone("12:34:57"));
        check("SET TIME ZONE INTERVAL 'x'", zone("x"));
        check("SET TIME ZONE INTERVAL '3' DAY", None);
        check("SET timezone = INTERVAL '3' HOUR", None);
    }

    #[test]
    fn commands_of_maintenance_are_told_apart() {
        let check = |text: &str, expected: Option<Control>| {
            assert_eq!(parse(text).unwrap()[0].control(), expected, "{text}");
        };
        let written = |name: &&str| {
            let parts: Vec<String> = name.split('.').map(str::to_owned).collect();
            Written::of_parts(&parts).unwrap()
        };
        let all = |names: &[&str]| names.iter().map(written).collect();
        let vacuum = |names: &[&str]| Some(Control::Own(Own::Vacuum(all(names))));
        check("VACUUM", vacuum(&[]));
        check("vacuum analyze a", vacuum(&["a"]));
        check("VACUUM (FULL, PARALLEL 2) public.a (b, c), \"B\"; ", vacuum(&["public.a", "B"]));
        check("ANALYZE VERBOSE A", Some(Control::Own(Own::Analyze(all(&["a"])))));
        let constraints = |names: &[&str], is_deferred| {
            let set = SetConstraints { names: all(names), is_deferred };
            Some(Control::Own(Own::SetConstraints(set)))
        };
        check("SET CONSTRAINTS ALL IMMEDIATE", constraints(&[], false));
        check("SET CONSTRAINTS \"A\", public.b DEFERRED", constraints(&["A", "public.b"], true));
        for wrong in [
            "VACUUM a b",
            "ANALYZE (",
            "VACUUM (FULL) (a)",
            "VACUUM a SELECT 1",
            "SET CONSTRAINTS a",
        ] {
            assert_eq!(parse(wrong).unwrap_err().state().code(), "42601", "{wrong}");
        }
        assert_eq!(parse("VACUUM a; SELECT 1;; ANALYZE").unwrap().len(), 3);
        assert_eq!(parse("SELECT 1 SELECT 2").unwrap_err().state().code(), "42601");
        assert!(parse("TRUNCATE a").unwrap()[0].is_definition());
        assert!(!parse("DELETE FROM a").unwrap()[0].is_definition());
    }
}
