//! Modes of transactions, which BEGIN, SET TRANSACTION and SET SESSION CHARACTERISTICS state.

use super::own::word;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// What BEGIN and SET TRANSACTION say of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockModes {
    /// The isolation level, in lower case.
    pub level: Option<String>,
    /// READ ONLY or READ WRITE.
    pub is_read_only: Option<bool>,
    /// DEFERRABLE or NOT DEFERRABLE.
    pub is_deferrable: Option<bool>,
}

/// What a statement does with modes.
#[derive(Clone, Copy)]
pub(super) enum Verb {
    /// BEGIN
    Begin,
    /// START TRANSACTION
    Start,
    /// SET TRANSACTION
    Set,
    /// SET SESSION CHARACTERISTICS
    SetDefaults,
}

/// Reads the next statement, if it states modes of transactions.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Option<(Verb, BlockModes)>, ParserError> {
    let word_at = |at| word(&parser.peek_nth_token_ref(at).token).unwrap_or_default();
    let words: [String; 5] = std::array::from_fn(word_at);
    let (count, verb) = match words.each_ref().map(String::as_str) {
        ["begin", "work" | "transaction", ..] => (2, Verb::Begin),
        ["begin", ..] => (1, Verb::Begin),
        ["start", "transaction", ..] => (2, Verb::Start),
        ["set", "transaction", "snapshot", ..] => return Ok(None),
        ["set", "transaction", ..] => (2, Verb::Set),
        ["set", "local" | "session", "transaction", ..] => (3, Verb::Set),
        ["set", "session", "characteristics", "as", "transaction"] => (5, Verb::SetDefaults),
        _ => return Ok(None),
    };
    let may_be_none = words[0] != "set";
    for _ in 0..count {
        parser.next_token();
    }
    let is_end = matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon);
    if may_be_none && is_end {
        return Ok(Some((verb, BlockModes::default())));
    }
    Ok(Some((verb, modes(parser)?)))
}

/// Reads modes, with commas between them or without. Of two that contradict the later one counts.
fn modes(parser: &mut Parser<'_>) -> Result<BlockModes, ParserError> {
    let mut modes = BlockModes::default();
    loop {
        mode(parser, &mut modes)?;
        let has_comma = parser.consume_token(&Token::Comma);
        let is_end = matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon);
        if is_end && !has_comma {
            return Ok(modes);
        }
    }
}

fn mode(parser: &mut Parser<'_>, modes: &mut BlockModes) -> Result<(), ParserError> {
    use Keyword::{COMMITTED, DEFERRABLE, ISOLATION, LEVEL, NOT, ONLY, READ, REPEATABLE};
    use Keyword::{SERIALIZABLE, UNCOMMITTED, WRITE};
    if parser.parse_keywords(&[ISOLATION, LEVEL]) {
        let levels: [(&[Keyword], &str); 4] = [
            (&[SERIALIZABLE], "serializable"),
            (&[REPEATABLE, READ], "repeatable read"),
            (&[READ, COMMITTED], "read committed"),
            (&[READ, UNCOMMITTED], "read uncommitted"),
        ];
        let Some((_, level)) = levels.iter().find(|(words, _)| parser.parse_keywords(words)) else {
            return parser.expected_ref("an isolation level", parser.peek_token_ref());
        };
        modes.level = Some((*level).to_owned());
    } else if parser.parse_keywords(&[READ, ONLY]) {
        modes.is_read_only = Some(true);
    } else if parser.parse_keywords(&[READ, WRITE]) {
        modes.is_read_only = Some(false);
    } else if parser.parse_keyword(DEFERRABLE) {
        modes.is_deferrable = Some(true);
    } else if parser.parse_keywords(&[NOT, DEFERRABLE]) {
        modes.is_deferrable = Some(false);
    } else {
        return parser.expected_ref("a mode of transactions", parser.peek_token_ref());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{BlockModes, Control, parse};

    #[test]
    fn modes_are_read_in_any_order() {
        let modes = |level: &str, is_read_only, is_deferrable| BlockModes {
            level: (!level.is_empty()).then(|| level.to_owned()),
            is_read_only,
            is_deferrable,
        };
        for (text, expected) in [
            ("begin", Control::Begin(modes("", None, None))),
            ("BEGIN WORK ISOLATION LEVEL REPEATABLE READ", {
                Control::Begin(modes("repeatable read", None, None))
            }),
            ("BEGIN READ ONLY, ISOLATION LEVEL SERIALIZABLE, DEFERRABLE", {
                Control::Begin(modes("serializable", Some(true), Some(true)))
            }),
            ("START TRANSACTION READ WRITE NOT DEFERRABLE", {
                Control::Start(modes("", Some(false), Some(false)))
            }),
            ("BEGIN TRANSACTION READ ONLY READ WRITE", {
                Control::Begin(modes("", Some(false), None))
            }),
            ("SET LOCAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", {
                Control::SetTransaction(modes("read uncommitted", None, None))
            }),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION NOT DEFERRABLE", {
                Control::Characteristics(modes("", None, Some(false)))
            }),
        ] {
            assert_eq!(parse(text).unwrap()[0].control(), Some(expected), "{text}");
        }
        for wrong in [
            "BEGIN READ ONLY,",
            "START TRANSACTION, READ ONLY",
            "BEGIN NOT",
            "BEGIN ISOLATION LEVEL",
            "BEGIN ISOLATION LEVEL SNAPSHOT",
            "BEGIN READ",
            "SET TRANSACTION",
            "SET SESSION CHARACTERISTICS AS TRANSACTION",
            "BEGIN SELECT 1",
        ] {
            assert_eq!(parse(wrong).unwrap_err().state().code(), "42601", "{wrong}");
        }
        assert_eq!(parse("BEGIN; SELECT 1; COMMIT").unwrap().len(), 3);
    }
}
