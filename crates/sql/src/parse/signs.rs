//! Tokens as PostgreSQL has them, where the parser's are others: signs behind an operator, and
//! DROP INDEX CONCURRENTLY.

use super::own::word;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Characters with which an operator may end in a sign.
const SPECIAL: [char; 10] = ['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'];

/// So many signs are no number's.
const SIGNS_MAX: usize = 100;

/// Takes the signs off operators that they are no part of (`a->>-1`), and leaves out CONCURRENTLY
/// behind DROP INDEX, as nothing waits for an index that goes.
pub(super) fn mended(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut mended = Vec::with_capacity(tokens.len());
    let mut words: [Option<String>; 2] = [None, None];
    for token in tokens {
        match &token.token {
            Token::CustomBinaryOperator(operator) => match parted(operator) {
                Some(parts) => {
                    let span = token.span;
                    mended.extend(parts.into_iter().map(|token| TokenWithSpan { token, span }));
                    continue;
                }
                None => words = [None, None],
            },
            Token::Whitespace(_) => {}
            other => {
                let found = word(other);
                let is_drop = words == [Some("drop".to_owned()), Some("index".to_owned())];
                if is_drop && found.as_deref() == Some("concurrently") {
                    continue;
                }
                let [_, last] = words;
                words = [last, found];
            }
        }
        mended.push(token);
    }
    mended
}

/// The operator without the signs at its end, and those.
fn parted(operator: &str) -> Option<Vec<Token>> {
    if operator.contains(SPECIAL) {
        return None;
    }
    let own = operator.trim_end_matches(['+', '-']).len().max(1);
    let (own, signs) = operator.split_at(own);
    if signs.is_empty() || signs.len() > SIGNS_MAX {
        return None;
    }
    let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, own).tokenize().ok()?;
    if tokens.len() != 1 {
        return None;
    }
    tokens.extend(signs.chars().map(|sign| if sign == '-' { Token::Minus } else { Token::Plus }));
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn signs_belong_to_what_is_behind_them() {
        let shown = |text: &str| parse(text).unwrap()[0].tree.to_string();
        assert_eq!(shown("SELECT a->>-1"), "SELECT a ->> -1");
        assert_eq!(shown("SELECT a->-1"), "SELECT a -> -1");
        assert_eq!(shown("SELECT a=-1, a<=-1, a<>-1"), "SELECT a = -1, a <= -1, a <> -1");
        assert_eq!(shown("SELECT 2*-1, 2+-1"), "SELECT 2 * -1, 2 + -1");
        assert_eq!(shown("DROP INDEX CONCURRENTLY IF EXISTS a"), "DROP INDEX IF EXISTS a");
    }

    #[test]
    fn signs_count_as_operators() {
        let chain = format!("SELECT {}", "1 +-+-+- ".repeat(10_000));
        assert!(parse(&format!("{chain} 1")).is_err());
        assert!(parse(&format!("SELECT 1 {} 1", "+-".repeat(10_000))).is_err());
        let chain = format!("SELECT {}1", "1 +-+-+-".repeat(1_000));
        let refused = parse(&chain).unwrap_err();
        assert_eq!(refused.state(), values::SqlState::STATEMENT_TOO_COMPLEX);
    }
}
