//! Functions that are written without brackets, where a table may be.

use super::binder::name_of;
use sqlparser::ast::ObjectName;

/// Functions that are written without brackets.
const WITHOUT_BRACKETS: [&str; 11] = [
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "current_user",
    "session_user",
    "user",
    "current_role",
    "current_catalog",
    "current_schema",
];

/// True if a name in FROM is that of a function which has no brackets.
pub(super) fn is_function_name(name: &ObjectName) -> bool {
    match &name.0[..] {
        [part] => part.as_ident().is_some_and(|ident| {
            ident.quote_style.is_none() && WITHOUT_BRACKETS.contains(&name_of(ident).as_str())
        }),
        _ => false,
    }
}
