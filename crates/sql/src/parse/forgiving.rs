//! DO of one definition that may fail: `DO $$BEGIN ...; EXCEPTION WHEN duplicate_object THEN NULL;
//! END$$`, which tools write for what has no IF NOT EXISTS. There are no other blocks of code.

use super::own::word;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use values::SqlState;

/// The longest block.
const BYTES_MAX: usize = 64 << 10;

/// A block of one statement.
pub(super) struct ForgivingBlock {
    /// The statement.
    pub(super) text: String,
    /// The errors with which it does nothing.
    pub(super) forgiven: Vec<SqlState>,
    /// The tokens of the whole DO.
    pub(super) tokens: usize,
}

/// The next statement, if it is such a DO.
pub(super) fn next_block(parser: &Parser<'_>) -> Option<ForgivingBlock> {
    if word(&parser.peek_token_ref().token).as_deref() != Some("do") {
        return None;
    }
    let (mut tokens, mut body, mut is_known) = (1, None, true);
    loop {
        match &parser.peek_nth_token_ref(tokens).token {
            Token::EOF | Token::SemiColon => break,
            Token::SingleQuotedString(text) => body = Some(text.clone()),
            other => is_known &= matches!(word(other).as_deref(), Some("language" | "plpgsql")),
        }
        tokens += 1;
    }
    let body = body.filter(|body| is_known && body.len() <= BYTES_MAX)?;
    let (text, forgiven) = statement_of(&body)?;
    Some(ForgivingBlock { text, forgiven, tokens })
}

/// The text of the statement of a block, with the errors that are forgiven.
fn statement_of(body: &str) -> Option<(String, Vec<SqlState>)> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, body).tokenize_with_location().ok()?;
    let tokens: Vec<TokenWithSpan> =
        tokens.into_iter().filter(|own| !matches!(own.token, Token::Whitespace(_))).collect();
    let is = |at: usize, name: &str| {
        tokens.get(at).is_some_and(|own| word(&own.token).as_deref() == Some(name))
    };
    let ends = |at: usize| tokens.get(at).is_some_and(|own| own.token == Token::SemiColon);
    let handler = (2..tokens.len()).find(|at| is(*at, "exception") && ends(*at - 1))?;
    if !is(0, "begin") || !is(handler + 1, "when") {
        return None;
    }
    let mut forgiven = vec![state(&tokens.get(handler + 2)?.token)?];
    let mut at = handler + 3;
    while is(at, "or") {
        forgiven.push(state(&tokens.get(at + 1)?.token)?);
        at += 2;
    }
    let is_nothing = is(at, "then")
        && is(at + 1, "null")
        && ends(at + 2)
        && is(at + 3, "end")
        && tokens[at + 4..].iter().all(|own| own.token == Token::SemiColon);
    let inner = &tokens[1..handler - 1];
    if !is_nothing || inner.is_empty() || inner.iter().any(|own| own.token == Token::SemiColon) {
        return None;
    }
    let begin = offset(body, &tokens[0], true)?;
    let text = body.get(begin..offset(body, &tokens[handler - 1], false)?)?;
    Some((text.to_owned(), forgiven))
}

/// The offset of a token, or of what is behind it.
fn offset(text: &str, token: &TokenWithSpan, is_behind: bool) -> Option<usize> {
    let place = if is_behind { token.span.end } else { token.span.start };
    let line =
        text.split_inclusive('\n').take(place.line as usize - 1).map(str::len).sum::<usize>();
    let column = text.get(line..)?.char_indices().nth(place.column as usize - 1);
    Some(column.map_or(text.len(), |(at, _)| line + at))
}

/// The code of an error by its name.
fn state(name: &Token) -> Option<SqlState> {
    Some(match word(name)?.as_str() {
        "duplicate_object" => SqlState::DUPLICATE_OBJECT,
        "duplicate_table" => SqlState::DUPLICATE_TABLE,
        "duplicate_column" => SqlState::DUPLICATE_COLUMN,
        "undefined_object" => SqlState::UNDEFINED_OBJECT,
        "undefined_table" => SqlState::UNDEFINED_TABLE,
        "undefined_column" => SqlState::UNDEFINED_COLUMN,
        "invalid_table_definition" => SqlState::INVALID_TABLE_DEFINITION,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use values::SqlState;

    #[test]
    fn a_definition_may_fail_within_do() {
        let text = "DO $$ BEGIN\n CREATE TYPE a AS ENUM ('x;');\nEXCEPTION\n WHEN duplicate_object \
                    OR duplicate_table THEN null;\nEND $$; SELECT 1";
        let found = parse(text).unwrap();
        assert_eq!(found.len(), 2);
        let forgiven = [SqlState::DUPLICATE_OBJECT, SqlState::DUPLICATE_TABLE];
        assert_eq!(found[0].forgiven.as_deref(), Some(&forgiven[..]));
        assert_eq!(found[0].tree.to_string(), "CREATE TYPE a AS ENUM ('x;')");
        for text in [
            "DO 'BEGIN CREATE TABLE a (b INT); END'",
            "DO 'BEGIN DELETE FROM a; EXCEPTION WHEN duplicate_object THEN NULL; END'",
            "DO 'BEGIN DROP TABLE a; DROP TABLE b; EXCEPTION WHEN duplicate_object THEN NULL; END'",
            "DO 'BEGIN DROP TABLE a; EXCEPTION WHEN duplicate_object THEN RAISE; END'",
        ] {
            assert_eq!(parse(text).unwrap()[0].forgiven, None, "{text}");
        }
    }
}
