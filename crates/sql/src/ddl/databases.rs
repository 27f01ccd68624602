//! The options of CREATE DATABASE. Databases are the server's: no statement of a store makes one.

use super::definition::refuse_owner;
use crate::bind::name_of;
use crate::parse::DatabaseOption;
use values::{Error, Result, SqlState};

/// Encodings that are UTF8, without hyphens and underscores.
const UTF8: &[&str] = &["utf8", "unicode", "6"];
/// Options whose value makes no difference here.
const IGNORED: &[&str] = &[
    "tablespace",
    "lc_collate",
    "lc_ctype",
    "locale",
    "collation_version",
    "allow_connections",
    "connection limit",
    "connection_limit",
    "strategy",
    "is_template",
    "oid",
];

/// Refuses options of CREATE DATABASE that a database cannot have.
///
/// # Errors
/// What is not supported.
pub fn check_database_options(options: &[DatabaseOption]) -> Result<()> {
    options.iter().try_for_each(check)
}

fn check(option: &DatabaseOption) -> Result<()> {
    let Some(value) = &option.value else { return Ok(()) };
    let text = name_of(value);
    match option.name.as_str() {
        "owner" => refuse_owner(value),
        "encoding" => {
            let plain = text.to_ascii_lowercase().replace(['-', '_'], "");
            if UTF8.contains(&plain.as_str()) {
                return Ok(());
            }
            let message = format!("encoding \"{text}\" is not supported");
            Err(Error::unsupported(message, "Databases have encoding UTF8."))
        }
        "template" if matches!(text.as_str(), "template0" | "template1") => Ok(()),
        "template" => {
            let message = format!("template \"{text}\" is not supported");
            Err(Error::unsupported(message, "A new database is empty, as template0 is."))
        }
        "locale_provider" if text.eq_ignore_ascii_case("libc") => Ok(()),
        name if IGNORED.contains(&name) => Ok(()),
        name @ ("locale_provider" | "icu_locale" | "icu_rules") => {
            let message = format!("{} \"{text}\" is not supported", name.to_ascii_uppercase());
            Err(Error::unsupported(message, "Databases have locale C."))
        }
        name => {
            let message = format!("option \"{name}\" not recognized");
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}
