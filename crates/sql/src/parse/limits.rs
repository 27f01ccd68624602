//! Bounds the tree of a text before it is parsed: the parser builds trees as deep as the text is
//! nested, or as a chain of operators is long, and drops them by recursion.
//!
//! The bound counts tokens instead of grammar rules. Each token that is neither a name, a literal
//! nor a separator may wrap what stands beside it, whatever rule it belongs to, so it counts as a
//! level of the tree. A new operator of the parser is counted without being known here.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use values::{Error, Result, SqlState};

/// The longest text of one message.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Levels of brackets and CASE.
pub const DEPTH_MAX: usize = 50;
/// Levels of the tree: operators and keywords of an expression, and of those that it is inside.
pub const LEVELS_MAX: usize = 4_000;
/// JOINs of one FROM: the parser calls itself for each that waits for its ON.
const JOINS_MAX: usize = 100;
/// UNION, INTERSECT and EXCEPT of one statement.
pub const SET_OPERATIONS_MAX: usize = 1_000;
/// Statements of one text.
pub(super) const STATEMENTS_MAX: usize = 10_000;
/// Items between commas of one list.
const LIST_MAX: usize = 65_535;

pub(super) fn refused(what: String) -> Error {
    Error::new(SqlState::STATEMENT_TOO_COMPLEX, what)
        .with_hint("Split the statement, or give the values as parameters or an array.")
}

/// What closes a group of tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closer {
    /// The end of the statement.
    Statement,
    Bracket,
    /// END of a CASE.
    End,
}

/// A statement, a pair of brackets or a CASE, and the levels of the tree within it.
struct Group {
    closer: Closer,
    /// Levels since the last separator, without those of groups.
    chain: usize,
    /// The levels of the deepest group since the last separator.
    inner: usize,
    /// The levels of the deepest part before the last separator.
    before: usize,
    /// Set operations, whose operands are apart, and which are a chain themselves.
    sets: usize,
    /// Separators.
    items: usize,
    /// JOINs since the last separator.
    joins: usize,
}

impl Group {
    fn new(closer: Closer) -> Group {
        Group { closer, chain: 0, inner: 0, before: 0, sets: 0, items: 0, joins: 0 }
    }

    fn levels(&self) -> usize {
        self.before.max(self.chain + self.inner) + self.sets
    }

    /// What comes is beside what came, not around it.
    fn separate(&mut self) {
        self.items += 1;
        self.before = self.before.max(self.chain + self.inner);
        (self.chain, self.inner, self.joins) = (0, 0, 0);
    }
}

/// The groups that are open at a token.
struct Open {
    groups: Vec<Group>,
    /// Set operations of the statement.
    sets: usize,
    statements: usize,
    /// Whether the last token ends an operand, so that the next word is no name.
    is_behind_operand: bool,
}

/// Refuses text whose tree would be too deep or too wide.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let groups = vec![Group::new(Closer::Statement)];
    let mut open = Open { groups, sets: 0, statements: 0, is_behind_operand: false };
    tokens.iter().try_for_each(|token| open.token(&token.token))
}

impl Open {
    fn token(&mut self, token: &Token) -> Result<()> {
        let is_behind_operand = match token {
            Token::Whitespace(_) => return Ok(()),
            Token::LParen | Token::LBracket | Token::LBrace => {
                self.open(Closer::Bracket);
                false
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                self.close_bracket();
                true
            }
            Token::Comma => {
                self.group().separate();
                false
            }
            Token::SemiColon => {
                self.statements += 1;
                self.sets = 0;
                self.groups = vec![Group::new(Closer::Statement)];
                false
            }
            Token::Word(word) if word.keyword != Keyword::NoKeyword => self.keyword(word.keyword),
            // What follows is a part of the name, whatever word it is.
            Token::Period | Token::EOF => false,
            token if is_operand(token) => true,
            _ => {
                self.group().chain += 1;
                false
            }
        };
        self.is_behind_operand = is_behind_operand;
        self.check()
    }

    /// Counts a keyword; whether it may end an operand.
    fn keyword(&mut self, keyword: Keyword) -> bool {
        use Keyword::{
            CASE, ELSE, END, EXCEPT, FALSE, INTERSECT, JOIN, NULL, THEN, TRUE, UNION, WHEN,
        };
        // What the parser takes for a name where an operand is missing separates nothing.
        let separates = self.is_behind_operand;
        match keyword {
            CASE => self.open(Closer::End),
            END if self.group().closer == Closer::End => {
                self.close();
                return true;
            }
            WHEN | THEN | ELSE if separates && self.group().closer == Closer::End => {
                self.group().separate();
            }
            UNION | INTERSECT | EXCEPT if separates => {
                self.sets += 1;
                let group = self.group();
                group.separate();
                group.sets += 1;
            }
            NULL | TRUE | FALSE => return true,
            JOIN => {
                let group = self.group();
                group.chain += 1;
                group.joins += 1;
            }
            _ => self.group().chain += 1,
        }
        false
    }

    fn group(&mut self) -> &mut Group {
        self.groups.last_mut().expect("the group of the statement stays")
    }

    fn open(&mut self, closer: Closer) {
        self.groups.push(Group::new(closer));
    }

    /// Closes the last bracket, and what was opened in it and has no end.
    fn close_bracket(&mut self) {
        while self.group().closer == Closer::End {
            self.close();
        }
        if self.group().closer == Closer::Bracket {
            self.close();
        }
    }

    /// Closes the last group, which is a level of the one around it.
    fn close(&mut self) {
        let closed = self.groups.pop().expect("it was opened");
        let around = self.group();
        around.inner = around.inner.max(closed.levels());
        around.chain += 1;
    }

    fn check(&mut self) -> Result<()> {
        let depth = self.groups.len();
        let (statements, sets) = (self.statements, self.sets);
        let group = self.group();
        let (levels, items, joins) = (group.levels(), group.items, group.joins);
        let message = if depth > DEPTH_MAX + 1 {
            format!("statement is nested deeper than {DEPTH_MAX} levels")
        } else if sets > SET_OPERATIONS_MAX {
            format!("statement has more than {SET_OPERATIONS_MAX} set operations")
        } else if levels > LEVELS_MAX {
            format!("expression has more than {LEVELS_MAX} operators and keywords")
        } else if joins > JOINS_MAX {
            format!("FROM has more than {JOINS_MAX} joins")
        } else if items > LIST_MAX {
            format!("list has more than {LIST_MAX} items")
        } else if statements > STATEMENTS_MAX {
            format!("text has more than {STATEMENTS_MAX} statements")
        } else {
            return Ok(());
        };
        Err(refused(message))
    }
}

/// Whether a token is a name that is no keyword, or a literal.
fn is_operand(token: &Token) -> bool {
    matches!(
        token,
        Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::Placeholder(_)
    )
}
