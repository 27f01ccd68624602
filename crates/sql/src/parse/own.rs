//! What the parser does not have as PostgreSQL has it: VACUUM, ANALYZE, SET CONSTRAINTS, FETCH and
//! MOVE, and ON and OFF as values of options of COPY; and cursors as queries.

use super::database::{self, DatabaseStatement};
use crate::bind::{name_of, written_name};
use crate::catalog::Written;
use sqlparser::ast::{Declare, DeclareType, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// A statement that has no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// VACUUM of these tables, or of all.
    Vacuum(Vec<Written>),
    /// ANALYZE of these tables, or of all.
    Analyze(Vec<Written>),
    /// SET CONSTRAINTS
    SetConstraints(SetConstraints),
    /// CHECKPOINT
    Checkpoint,
    /// CREATE DATABASE, DROP DATABASE
    Database(DatabaseStatement),
    /// A statement of PostgreSQL that neither the parser has nor anything else, by its first word.
    Refused(String),
}

/// When constraints are checked for the rest of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetConstraints {
    /// Their names; none for all.
    pub names: Vec<Written>,
    /// DEFERRED rather than IMMEDIATE.
    pub is_deferred: bool,
}

/// FETCH or MOVE of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The cursor.
    pub cursor: String,
    /// Where to.
    pub to: FetchTo,
    /// MOVE, which answers no rows.
    pub is_move: bool,
}

/// Where a cursor goes, from where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchTo {
    /// So many rows on, or back if the number is negative; all those between are meant.
    Forward(i64),
    /// Behind the last row.
    End,
    /// Before the first row.
    Begin,
    /// To the row with this number; from the end if it is negative.
    Absolute(i64),
    /// To the row that is so many behind this one.
    Relative(i64),
}

/// DECLARE of a cursor, whose query is a statement of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The cursor.
    pub name: String,
    /// WITH HOLD: whether it is there after its block.
    pub is_held: bool,
    /// Whether NO SCROLL forbids it to go back.
    pub is_forward: bool,
    /// Whether it is BINARY.
    pub is_binary: bool,
}

/// Statements that the parser does not have.
const REFUSED: &[&str] = &["cluster", "do", "import", "reassign", "refresh", "reindex", "security"];
/// Words that may be before the tables, if there are no brackets.
const VACUUM_WORDS: &[&str] = &["full", "freeze", "verbose", "analyze", "analyse"];
const ANALYZE_WORDS: &[&str] = &["verbose"];

/// The next statement, if it is one of these.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Option<Own>, ParserError> {
    if let Some(statement) = database::parse(parser)? {
        return Ok(Some(Own::Database(statement)));
    }
    let second = word(&parser.peek_nth_token_ref(1).token);
    Ok(match (word(&parser.peek_token_ref().token).as_deref(), second.as_deref()) {
        (Some("vacuum"), _) => Some(Own::Vacuum(maintained(parser, VACUUM_WORDS)?)),
        (Some("analyze" | "analyse"), _) => Some(Own::Analyze(maintained(parser, ANALYZE_WORDS)?)),
        (Some("set"), Some("constraints")) => Some(Own::SetConstraints(constraints(parser)?)),
        (Some("alter"), Some("database")) => {
            let word = word(&parser.peek_nth_token_ref(3).token).unwrap_or_default();
            skip_statement(parser);
            Some(Own::Refused(format!("ALTER DATABASE ... {}", word.to_ascii_uppercase())))
        }
        (Some("checkpoint"), _) => {
            parser.next_token();
            Some(Own::Checkpoint)
        }
        (Some(word), _) if REFUSED.contains(&word) => {
            let word = word.to_ascii_uppercase();
            skip_statement(parser);
            Some(Own::Refused(word))
        }
        _ => None,
    })
}

/// Goes to the end of a statement.
fn skip_statement(parser: &mut Parser<'_>) {
    while !matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
        parser.next_token();
    }
}

/// The next statement, if it is FETCH or MOVE.
pub(super) fn fetch(parser: &mut Parser<'_>) -> Result<Option<Fetch>, ParserError> {
    let is_move = match word(&parser.peek_token_ref().token).as_deref() {
        Some("fetch") => false,
        Some("move") => true,
        _ => return Ok(None),
    };
    parser.next_token();
    let to = fetch_to(parser)?;
    let _ = parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]);
    Ok(Some(Fetch { cursor: name_of(&parser.parse_identifier()?), to, is_move }))
}

fn fetch_to(parser: &mut Parser<'_>) -> Result<FetchTo, ParserError> {
    let first = word(&parser.peek_token_ref().token).unwrap_or_default();
    let is_backward = first == "backward";
    let to = match first.as_str() {
        "next" => FetchTo::Forward(1),
        "prior" => FetchTo::Forward(-1),
        "first" => FetchTo::Absolute(1),
        "last" => FetchTo::Absolute(-1),
        "all" => FetchTo::End,
        "absolute" | "relative" => {
            parser.next_token();
            let Some(number) = signed(parser)? else {
                return parser.expected_ref("a number", parser.peek_token_ref());
            };
            let is_absolute = first == "absolute";
            return Ok(if is_absolute {
                FetchTo::Absolute(number)
            } else {
                FetchTo::Relative(number)
            });
        }
        "forward" | "backward" => {
            parser.next_token();
            if parser.parse_keyword(Keyword::ALL) {
                return Ok(if is_backward { FetchTo::Begin } else { FetchTo::End });
            }
            let count = signed(parser)?.unwrap_or(1);
            return Ok(FetchTo::Forward(if is_backward { -count } else { count }));
        }
        _ => return Ok(FetchTo::Forward(signed(parser)?.unwrap_or(1))),
    };
    parser.next_token();
    Ok(to)
}

/// A number with its sign, if one is next. Counts are of 32 bits.
fn signed(parser: &mut Parser<'_>) -> Result<Option<i64>, ParserError> {
    let is_negative = match &parser.peek_token_ref().token {
        Token::Minus => true,
        Token::Plus | Token::Number(..) => false,
        _ => return Ok(None),
    };
    if !matches!(parser.peek_token_ref().token, Token::Number(..)) {
        parser.next_token();
    }
    let number = i32::try_from(parser.parse_literal_uint()?);
    let number = i64::from(number.map_err(|_| {
        ParserError::ParserError("a number of rows has at most 32 bits".to_owned())
    })?);
    Ok(Some(if is_negative { -number } else { number }))
}

/// A statement that declares a cursor becomes its query.
pub(super) fn cursor(tree: Statement) -> (Statement, Option<Declared>) {
    let Statement::Declare { mut stmts, separator } = tree else { return (tree, None) };
    let is_cursor = matches!(
        &stmts[..],
        [Declare { declare_type: Some(DeclareType::Cursor), for_query: Some(_), .. }]
    );
    let declared = stmts.pop().filter(|_| is_cursor);
    match declared {
        Some(Declare { names, hold, scroll, binary, for_query: Some(query), .. })
            if names.len() == 1 =>
        {
            let (name, is_held) = (name_of(&names[0]), hold == Some(true));
            let (is_forward, is_binary) = (scroll == Some(false), binary == Some(true));
            let declared = Declared { name, is_held, is_forward, is_binary };
            (Statement::Query(query), Some(declared))
        }
        other => (Statement::Declare { stmts: other.into_iter().collect(), separator }, None),
    }
}

/// The tables of VACUUM and ANALYZE.
fn maintained(parser: &mut Parser<'_>, words: &[&str]) -> Result<Vec<Written>, ParserError> {
    parser.next_token();
    if parser.consume_token(&Token::LParen) {
        parser.parse_comma_separated(option)?;
        parser.expect_token(&Token::RParen)?;
    } else {
        while word(&parser.peek_token_ref().token).is_some_and(|word| words.contains(&&word[..])) {
            parser.next_token();
        }
    }
    match &parser.peek_token_ref().token {
        Token::EOF | Token::SemiColon => Ok(Vec::new()),
        _ => parser.parse_comma_separated(table),
    }
}

fn constraints(parser: &mut Parser<'_>) -> Result<SetConstraints, ParserError> {
    parser.next_token();
    parser.next_token();
    let names = match parser.parse_keyword(Keyword::ALL) {
        true => Vec::new(),
        false => parser.parse_comma_separated(name)?,
    };
    let is_deferred = match word(&parser.peek_token_ref().token).as_deref() {
        Some("deferred") => true,
        Some("immediate") => false,
        _ => return parser.expected_ref("DEFERRED or IMMEDIATE", parser.peek_token_ref()),
    };
    parser.next_token();
    Ok(SetConstraints { names, is_deferred })
}

/// A word without quotes, in lower case.
pub(super) fn word(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// An option in brackets: a word, and another one or a number behind it.
fn option(parser: &mut Parser<'_>) -> Result<(), ParserError> {
    parser.parse_identifier()?;
    match &parser.peek_token_ref().token {
        Token::Comma | Token::RParen => {}
        Token::Word(_) | Token::Number(..) => drop(parser.next_token()),
        _ => return parser.expected_ref("a word or a number", parser.peek_token_ref()),
    }
    Ok(())
}

/// A table, maybe with columns.
fn table(parser: &mut Parser<'_>) -> Result<Written, ParserError> {
    let name = name(parser)?;
    if parser.consume_token(&Token::LParen) {
        parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_token(&Token::RParen)?;
    }
    Ok(name)
}

/// A name, perhaps after a schema.
fn name(parser: &mut Parser<'_>) -> Result<Written, ParserError> {
    let name = parser.parse_object_name(false)?;
    written_name(&name).map_err(|error| ParserError::ParserError(error.message().to_owned()))
}

/// Where a token is in the options of COPY.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Behind a bracket or a comma, where an option begins.
    Begin,
    /// Behind FREEZE or HEADER there.
    Option,
    Elsewhere,
}

/// Makes TRUE and FALSE of ON and OFF behind FREEZE and HEADER in the options of COPY.
pub(super) fn replace_on_and_off(tokens: &mut [TokenWithSpan]) {
    let (mut is_first, mut is_copy, mut at) = (true, false, At::Elsewhere);
    for token in tokens {
        let found = match &token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => {
                (is_first, is_copy, at) = (true, false, At::Elsewhere);
                continue;
            }
            Token::Word(found) => found,
            other => {
                let begins = matches!(other, Token::LParen | Token::Comma);
                at = if begins { At::Begin } else { At::Elsewhere };
                is_first = false;
                continue;
            }
        };
        let keyword = found.keyword;
        is_copy = if is_first { keyword == Keyword::COPY } else { is_copy };
        is_first = false;
        let is_option = at == At::Begin && matches!(keyword, Keyword::FREEZE | Keyword::HEADER);
        let value = match keyword {
            Keyword::ON => Some(("true", Keyword::TRUE)),
            Keyword::OFF => Some(("false", Keyword::FALSE)),
            _ => None,
        };
        if let Some((value, keyword)) = value.filter(|_| is_copy && at == At::Option) {
            let value = value.to_owned();
            token.token = Token::Word(Word { value, quote_style: None, keyword });
        }
        at = if is_option { At::Option } else { At::Elsewhere };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Control, parse};
    use super::{Declared, Fetch, FetchTo};

    #[test]
    fn cursors_are_queries_with_a_name() {
        let fetched = |text: &str| match parse(text).unwrap()[0].control() {
            Some(Control::Fetch(Fetch { cursor, to, is_move })) if cursor == "c" => (to, is_move),
            other => panic!("{text}: {other:?}"),
        };
        use FetchTo::{Absolute, Begin, End, Forward, Relative};
        for (text, to) in [
            ("FETCH c", Forward(1)),
            ("fetch next from C", Forward(1)),
            ("FETCH FORWARD IN c", Forward(1)),
            ("FETCH 1 FROM \"c\"", Forward(1)),
            ("FETCH FORWARD 7 FROM c", Forward(7)),
            ("FETCH -1 FROM c", Forward(-1)),
            ("FETCH +2 c", Forward(2)),
            ("FETCH PRIOR c", Forward(-1)),
            ("FETCH BACKWARD c", Forward(-1)),
            ("FETCH BACKWARD 3 IN c", Forward(-3)),
            ("FETCH BACKWARD -3 IN c", Forward(3)),
            ("FETCH ALL c", End),
            ("FETCH FORWARD ALL FROM c", End),
            ("FETCH BACKWARD ALL FROM c", Begin),
            ("FETCH FIRST FROM c", Absolute(1)),
            ("FETCH LAST FROM c", Absolute(-1)),
            ("FETCH ABSOLUTE -3 FROM c", Absolute(-3)),
            ("FETCH RELATIVE 0 FROM c", Relative(0)),
        ] {
            assert_eq!(fetched(text), (to, false), "{text}");
            assert_eq!(fetched(&text.to_lowercase().replace("fetch", "MOVE")), (to, true));
        }
        for text in ["FETCH 3000000000 FROM c", "FETCH ABSOLUTE c", "MOVE", "FETCH - c"] {
            assert_eq!(parse(text).unwrap_err().state().code(), "42601", "{text}");
        }
        let held = parse("DECLARE \"C\" NO SCROLL CURSOR WITH HOLD FOR SELECT 1").unwrap();
        let declared =
            Declared { name: "C".to_owned(), is_held: true, is_forward: true, is_binary: false };
        assert_eq!(held[0].declared(), Some(&declared));
        assert!(held[0].is_query());
        assert_eq!(parse("SELECT 1").unwrap()[0].declared(), None);
    }

    #[test]
    fn on_and_off_are_values_of_options_of_copy() {
        for text in [
            "COPY a FROM STDIN WITH (FREEZE on, HEADER OFF)",
            "COPY a FROM STDIN (FORMAT csv, header ON)",
            "COPY (SELECT 1 FROM a JOIN header ON true JOIN b AS freeze ON true) TO STDOUT",
            "SELECT 1 FROM header ; COPY a FROM STDIN (HEADER on)",
        ] {
            parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        for text in ["SELECT f(header ON)", "COPY a FROM STDIN (FORMAT on, FREEZE off off)"] {
            assert_eq!(parse(text).unwrap_err().state().code(), "42601", "{text}");
        }
    }
}
