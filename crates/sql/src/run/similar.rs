//! Patterns of SIMILAR TO as regular expressions.

use super::strings::bounded;
use values::{Error, Result, SqlState};

/// The regular expression that matches a whole text as the pattern does. An escape makes the next
/// character stand for itself; there is none if it is empty.
pub(super) fn pattern(pattern: &str, escape: &str) -> Result<String> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        let message = "invalid escape string";
        let hint = "Escape string must be empty or one character.";
        return Err(Error::new(SqlState::INVALID_ESCAPE, message).with_hint(hint));
    }
    bounded(pattern.len().saturating_mul(4))?;
    let (mut made, mut in_class, mut letters) = (String::from("^(?:"), false, pattern.chars());
    while let Some(c) = letters.next() {
        match c {
            _ if Some(c) == escape => match letters.next() {
                Some('"') if !in_class => {
                    let message = "a separator of a pattern outside of SUBSTRING";
                    return Err(Error::unsupported(message, ""));
                }
                Some(next) => {
                    if !next.is_alphanumeric() && next.is_ascii() {
                        made.push('\\');
                    }
                    made.push(next);
                }
                None => made.push_str("\\\\"),
            },
            _ if in_class => {
                in_class = c != ']';
                made.push_str(if c == '\\' { "\\\\" } else { "" });
                made.extend((c != '\\').then_some(c));
            }
            '[' => {
                in_class = true;
                made.push(c);
            }
            '%' => made.push_str(".*"),
            '_' => made.push('.'),
            '(' => made.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                made.push('\\');
                made.push(c);
            }
            _ => made.push(c),
        }
    }
    made.push_str(")$");
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_regular_expressions() {
        let check = |text, escape, expected: &str| {
            assert_eq!(pattern(text, escape).unwrap(), expected, "{text}");
        };
        check("a%_", "\\", "^(?:a.*.)$");
        check("(a|b)*", "\\", "^(?:(?:a|b)*)$");
        check("a.b^$", "\\", "^(?:a\\.b\\^\\$)$");
        check("a#%b", "#", "^(?:a\\%b)$");
        check("[a%]_", "\\", "^(?:[a%].)$");
        check("a\\b", "", "^(?:a\\\\b)$");
        assert!(pattern("a", "xy").is_err());
    }
}
