//! The text of a view's query, as the catalog keeps it.

use super::position::Lines;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::collections::BTreeMap;
use values::{Error, Result, SqlState};

/// Where each `*` is that stands for columns, and those columns.
pub(crate) type Stars = BTreeMap<Location, String>;

/// The text with other words in place of those that begin at these places.
pub(crate) fn with_words(text: &str, words: &BTreeMap<Location, String>) -> Option<String> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().ok()?;
    let lines = Lines::of(text);
    let (mut made, mut from, mut count) = (String::new(), 0, 0);
    for TokenWithSpan { span, .. } in tokens {
        if let Some(word) = words.get(&span.start) {
            made.push_str(text.get(from..offset(text, &lines, span.start)?)?);
            made.push_str(word);
            from = offset(text, &lines, span.end)?;
            count += 1;
        }
    }
    made.push_str(text.get(from..)?);
    (count == words.len()).then_some(made)
}

/// The offset in bytes of a place in a text.
fn offset(text: &str, lines: &Lines, location: Location) -> Option<usize> {
    let number = lines.position(location)?.number() as usize - 1;
    Some(text.char_indices().nth(number).map_or(text.len(), |(at, _)| at))
}

/// The query behind AS of the view with its name at this place, with other words in place of those
/// that begin at these places: columns for each `*`, and names with their schemas.
pub(crate) fn query_text(text: &str, name: Location, words: &Stars) -> Result<String> {
    let damaged = || Error::new(SqlState::INTERNAL, "the text of a view is not found");
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
    let tokens = tokens.map_err(|_| damaged())?;
    let mut depth = 0_usize;
    let mut behind_name = tokens.iter().skip_while(|token| token.span.start != name);
    let is_as = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::AS);
    behind_name
        .by_ref()
        .find(|token| {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && is_as(&token.token)
        })
        .ok_or_else(damaged)?;
    let mut rest = behind_name.skip_while(|token| matches!(token.token, Token::Whitespace(_)));
    let begin = rest.next().ok_or_else(damaged)?.span.start;
    let end = rest.find(|token| matches!(token.token, Token::SemiColon | Token::EOF));
    let lines = Lines::of(text);
    let place = |location| offset(text, &lines, location).ok_or_else(damaged);
    let end = match end {
        Some(token) if token.token == Token::SemiColon => place(token.span.start)?,
        _ => text.len(),
    };
    let (mut query, mut from) = (String::new(), place(begin)?);
    for token in tokens.iter() {
        let Some(word) = words.get(&token.span.start) else { continue };
        let before = text.get(from..place(token.span.start)?).ok_or_else(damaged)?;
        query.push_str(before);
        query.push_str(word);
        from = place(token.span.end)?;
    }
    query.push_str(text.get(from..end).ok_or_else(damaged)?.trim_end());
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_a_view_is_what_is_behind_as() {
        let text =
            "SELECT ';'; CREATE VIEW \"as\" (a) AS\n SELECT '\u{e9};' AS a, * FROM t ; SELECT 2";
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
        let name = tokens.iter().find(|token| token.to_string() == "\"as\"").unwrap();
        let star = tokens.iter().find(|token| token.token == Token::Mul).unwrap();
        let stars = Stars::from([(star.span.start, "\"x\", \"y\"".to_owned())]);
        assert_eq!(
            query_text(text, name.span.start, &stars).unwrap(),
            "SELECT '\u{e9};' AS a, \"x\", \"y\" FROM t"
        );
    }
}
