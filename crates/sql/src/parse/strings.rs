//! String constants over several lines, which are one: the parser knows those of one line only.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

/// Joins each constant with the quoted texts behind it that only blanks, comments of a line and at
/// least one line break are before.
pub(super) fn joined(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Where the last constant is, while it may go on, and whether its line has ended.
    let (mut constant, mut has_break): (Option<usize>, bool) = (None, false);
    for token in tokens {
        match &token.token {
            Token::Whitespace(Whitespace::MultiLineComment(_)) => constant = None,
            Token::Whitespace(Whitespace::Space | Whitespace::Tab) => {}
            Token::Whitespace(_) => has_break = true,
            Token::SingleQuotedString(text) if has_break => {
                if let Some(at) = constant
                    && append(&mut joined[at].token, text)
                {
                    joined[at].span.end = token.span.end;
                    joined.truncate(at + 1);
                    has_break = false;
                    continue;
                }
                (constant, has_break) = (Some(joined.len()), false);
            }
            other => {
                (constant, has_break) = (is_constant(other).then_some(joined.len()), false);
            }
        }
        joined.push(token);
    }
    joined
}

fn is_constant(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
    )
}

/// Appends `more`, in which escapes mean what they do in the constant. False if it cannot be read.
fn append(constant: &mut Token, more: &str) -> bool {
    let (prefix, own) = match constant {
        Token::EscapedStringLiteral(own) => ("E", own),
        Token::UnicodeStringLiteral(own) => ("U&", own),
        Token::SingleQuotedString(own)
        | Token::NationalStringLiteral(own)
        | Token::HexStringLiteral(own)
        | Token::SingleQuotedByteStringLiteral(own) => {
            own.push_str(more);
            return true;
        }
        _ => return false,
    };
    let text = format!("{prefix}'{}'", more.replace('\'', "''"));
    match Tokenizer::new(&PostgreSqlDialect {}, &text).tokenize().as_deref() {
        Ok([Token::EscapedStringLiteral(more) | Token::UnicodeStringLiteral(more)]) => {
            own.push_str(more);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn a_constant_goes_on_behind_a_line_break() {
        let shown = |text: &str| parse(text).map(|found| found[0].tree.to_string());
        for (text, expected) in [
            ("SELECT 'a'\n  'b'", "SELECT 'ab'"),
            ("SELECT 'a' -- x\n\n-- y\n'b''' \r\n 'c', 1", "SELECT 'ab''c', 1"),
            ("SELECT E'a\\n'\n'b\\tc'''", "SELECT E'a\\nb\\tc\\''"),
            ("SELECT U&'\\0061'\n'\\0062'", "SELECT U&'ab'"),
            ("SELECT X'1'\n'F'", "SELECT X'1F'"),
            ("SELECT date '2024-'\n'01-01'", "SELECT DATE '2024-01-01'"),
        ] {
            assert_eq!(shown(text).unwrap(), expected, "{text}");
        }
        for text in [
            "SELECT 'a' 'b'",
            "SELECT 'a' /* \n */\n'b'",
            "SELECT $$a$$\n'b'",
            "SELECT E'a'\n'\\''",
        ] {
            assert!(shown(text).is_err(), "{text}");
        }
    }
}
