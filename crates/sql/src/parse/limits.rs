//! Counts tokens before the parser sees them: it builds trees that are as deep as the text is
//! nested, or as an unparenthesised chain of operators is long, and drops them by recursion.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use values::{Error, Result, SqlState};

/// The longest text of one message.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Levels of brackets and CASE.
pub const DEPTH_MAX: usize = 50;
/// Operators of one expression, without commas between them.
pub const CHAIN_MAX: usize = 2_000;
/// UNION, INTERSECT and EXCEPT of one statement.
pub const SET_OPERATIONS_MAX: usize = 1_000;
/// Statements of one text.
pub(super) const STATEMENTS_MAX: usize = 10_000;
/// Items between commas of one list.
const LIST_MAX: usize = 65_535;

fn refused(what: String) -> Error {
    Error::new(SqlState::STATEMENT_TOO_COMPLEX, what)
        .with_hint("Split the statement, or give the values as parameters or an array.")
}

/// What is open at a token.
#[derive(Default)]
struct Level {
    chain: usize,
    items: usize,
}

/// Refuses text that is too deep or too long for a tree.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut levels = vec![Level::default()];
    let (mut set_operations, mut statements) = (0, 0);
    for token in tokens {
        let depth = levels.len();
        let level = levels.last_mut().expect("the outermost level stays");
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => levels.push(Level::default()),
            Token::RParen | Token::RBracket | Token::RBrace if depth > 1 => {
                levels.pop();
            }
            Token::Comma => {
                level.items += 1;
                level.chain = 0;
            }
            Token::SemiColon => {
                levels = vec![Level::default()];
                set_operations = 0;
                statements += 1;
                if statements > STATEMENTS_MAX {
                    return Err(refused(format!("text has more than {STATEMENTS_MAX} statements")));
                }
            }
            Token::Word(word) => match word.keyword {
                Keyword::CASE => levels.push(Level::default()),
                Keyword::END if depth > 1 => {
                    levels.pop();
                }
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => {
                    set_operations += 1;
                    level.chain = 0;
                }
                keyword if is_operator(keyword) => level.chain += 1,
                _ => {}
            },
            Token::Whitespace(_)
            | Token::EOF
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period => {}
            _ => level.chain += 1,
        }
        check_level(levels.len(), levels.last(), set_operations)?;
    }
    Ok(())
}

/// Words that stand between the operands of an expression, or before one.
fn is_operator(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::IS
            | Keyword::IN
            | Keyword::BETWEEN
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::JOIN
            | Keyword::SIMILAR
            | Keyword::OPERATOR
            | Keyword::SELECT
            | Keyword::EXPLAIN
    )
}

fn check_level(depth: usize, level: Option<&Level>, set_operations: usize) -> Result<()> {
    if depth > DEPTH_MAX + 1 {
        return Err(refused(format!("statement is nested deeper than {DEPTH_MAX} levels")));
    }
    if set_operations > SET_OPERATIONS_MAX {
        return Err(refused(format!(
            "statement has more than {SET_OPERATIONS_MAX} set operations"
        )));
    }
    match level {
        Some(level) if level.chain > CHAIN_MAX => {
            Err(refused(format!("expression has more than {CHAIN_MAX} operators")))
        }
        Some(level) if level.items > LIST_MAX => {
            Err(refused(format!("list has more than {LIST_MAX} items")))
        }
        _ => Ok(()),
    }
}
