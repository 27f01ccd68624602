//! Names of databases, and of their directories.

use std::path::PathBuf;
use values::{Error, Result, SqlState};

/// The longest name, as of all that has a name.
const BYTES_MAX: usize = 63;
/// The beginning of names of directories that are no databases: no encoded name has it.
const NO_DATABASE: &str = "%-";

/// PostgreSQL's templates, which are always there.
pub(super) const TEMPLATES: [&str; 2] = ["template0", "template1"];

/// Refuses names that a database cannot have.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(name: &str) -> Result<()> {
    let is_wrong = name.is_empty() || name.len() > BYTES_MAX || name.starts_with('.');
    if is_wrong || name.contains(['/', '\0']) {
        return Err(Error::new(
            SqlState::INVALID_NAME,
            format!("invalid database name \"{name}\""),
        )
        .with_hint("A name has 1 to 63 bytes, no slash, and no dot at its beginning."));
    }
    Ok(())
}

/// The error of a database that does not exist.
pub(crate) fn missing(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_DATABASE, format!("database \"{name}\" does not exist"))
}

/// The name of a database's directory: letters and digits of ASCII, `_`, `-` and dots are as they
/// are, and every other byte is `%` with two digits.
pub(super) fn encoded(name: &str) -> String {
    let mut folder = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                folder.push(char::from(byte));
            }
            _ => folder.push_str(&format!("%{byte:02X}")),
        }
    }
    folder
}

/// The database whose directory has this name; `None` if it is none's.
pub(super) fn decoded(folder: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(folder.len());
    let mut rest = folder.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
    }
    let name = String::from_utf8(bytes).ok()?;
    (check(&name).is_ok() && encoded(&name) == folder).then_some(name)
}

/// The directory in which a database is made.
pub(super) fn being_made(name: &str) -> PathBuf {
    format!("{NO_DATABASE}new-{}", encoded(name)).into()
}

/// The directory of a database that was dropped.
pub(super) fn dropped(name: &str) -> PathBuf {
    format!("{NO_DATABASE}old-{}", encoded(name)).into()
}

/// Whether a directory has what is left of a database that was being made or was dropped.
pub(super) fn is_left_over(folder: &str) -> bool {
    ["new-", "old-"].iter().any(|kind| {
        let rest = folder.strip_prefix(NO_DATABASE).and_then(|rest| rest.strip_prefix(kind));
        rest.is_some_and(|rest| decoded(rest).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_have_the_names_of_databases() {
        let long = "\u{e4}".repeat(31);
        for (name, folder) in [
            ("shop", "shop"),
            ("Test_1-2.x", "Test_1-2.x"),
            ("a b%", "a%20b%25"),
            ("\u{e4}", "%C3%A4"),
            (&long, &"%C3%A4".repeat(31)),
        ] {
            assert_eq!(encoded(name), folder);
            assert_eq!(decoded(folder).as_deref(), Some(name));
            assert!(!is_left_over(folder));
        }
        for folder in [".x", "", "a%2", "a%2f", "a%2Fb", "%61", "%C3", "%-new-a", "%00", "a b"] {
            assert_eq!(decoded(folder), None, "{folder}");
        }
        for left in [being_made("a b"), dropped("a")] {
            let left = left.to_str().unwrap();
            assert!(is_left_over(left) && decoded(left).is_none(), "{left}");
        }
        assert!(!is_left_over("%-new-/") && !is_left_over("%-x"));
    }

    #[test]
    fn names_that_are_no_folders_are_refused() {
        for name in ["", ".", "..", ".x", "a/b", "a\0b", &"a".repeat(64)] {
            assert_eq!(check(name).unwrap_err().state(), SqlState::INVALID_NAME, "{name:?}");
        }
        assert!(check(&"a".repeat(63)).is_ok() && check("%-new-a").is_ok());
    }
}
