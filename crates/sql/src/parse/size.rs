//! Bounds the memory of a text's tokens and tree before there are any. A token and a node of the
//! tree are large beside the few characters that they come from.

use super::limits::refused;
use sqlparser::ast::{
    CaseWhen, Expr, FunctionArg, Join, Parens, Query, Select, SelectItem, SetExpr, Statement,
    TableWithJoins,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use values::Result;

/// The most memory of the tokens and the trees of a text.
pub const PARSER_BYTES_MAX: usize = 256 << 20;

/// A token, and its text.
const TOKEN: usize = size_of::<TokenWithSpan>() + 32;
const EXPRESSION: usize = size_of::<Expr>();
/// An operand, and the operator in its box.
const OPERATOR: usize = 2 * EXPRESSION;
/// Vectors begin with room for so many.
const ROOM: usize = 4;
/// While a full vector moves, its items take their own room and twice that.
const GROWTH: usize = 3;
const SELECT: usize = size_of::<Query>()
    + size_of::<SetExpr>()
    + size_of::<Select>()
    + ROOM * size_of::<SelectItem>();
/// The tree of a statement, and what is beside it.
const STATEMENT: usize = 4 * size_of::<Statement>();

/// The items between commas that are open.
struct List {
    /// What an item takes.
    item: usize,
    /// How many fit the room that is counted already.
    room: usize,
}

impl List {
    /// Values in brackets.
    fn of_values() -> List {
        List { item: GROWTH * EXPRESSION, room: ROOM - 1 }
    }

    /// The arguments of a call.
    fn of_arguments() -> List {
        List { item: GROWTH * size_of::<FunctionArg>(), room: ROOM - 1 }
    }

    /// A list of whatever is largest.
    fn of_clause() -> List {
        List::of(size_of::<TableWithJoins>())
    }

    fn of(item: usize) -> List {
        List { item: GROWTH * item, room: 0 }
    }

    /// The list behind a keyword, if one begins there.
    fn behind(keyword: Keyword, last: Keyword) -> Option<List> {
        Some(match keyword {
            // Rows, without what is in their brackets.
            Keyword::VALUES => List::of(size_of::<Parens<Vec<Expr>>>()),
            Keyword::SELECT | Keyword::RETURNING => List::of(size_of::<SelectItem>()),
            Keyword::BY if matches!(last, Keyword::GROUP | Keyword::PARTITION) => {
                List::of(EXPRESSION)
            }
            Keyword::FROM | Keyword::USING | Keyword::BY | Keyword::SET => List::of_clause(),
            _ => return None,
        })
    }
}

/// At most as much memory as a text takes.
pub(super) struct Bytes {
    pub(super) of_tokens: usize,
    pub(super) of_trees: usize,
}

/// The memory of a text's tokens before they are made, unless it is too much.
pub(super) fn check_text(text: &str) -> Result<usize> {
    let bytes = tokens_at_most(text).saturating_mul(TOKEN);
    refuse(bytes)?;
    Ok(bytes)
}

/// The memory of tokens and their trees before the trees are made, unless it is too much.
pub(super) fn check_tokens(tokens: &[TokenWithSpan]) -> Result<Bytes> {
    let bytes = Bytes { of_tokens: tokens.len() * TOKEN, of_trees: bytes_of_trees(tokens) };
    refuse(bytes.of_tokens + bytes.of_trees)?;
    Ok(bytes)
}

/// The memory of the trees that tokens can make.
fn bytes_of_trees(tokens: &[TokenWithSpan]) -> usize {
    let mut bytes = STATEMENT;
    let mut lists = vec![List::of_clause()];
    let (mut is_behind_word, mut last) = (false, Keyword::NoKeyword);
    for token in tokens {
        let list = lists.last_mut().expect("the outermost list stays");
        bytes += match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen if is_behind_word => {
                lists.push(List::of_arguments());
                ROOM * size_of::<FunctionArg>() + OPERATOR
            }
            Token::LParen | Token::LBracket | Token::LBrace => {
                lists.push(List::of_values());
                ROOM * EXPRESSION
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if lists.len() > 1 {
                    lists.pop();
                }
                0
            }
            Token::Comma if list.room > 0 => {
                list.room -= 1;
                0
            }
            Token::Comma => list.item,
            Token::SemiColon => STATEMENT,
            Token::Word(word) if word.keyword != Keyword::NoKeyword => {
                if let Some(begun) = List::behind(word.keyword, last) {
                    *list = begun;
                }
                last = word.keyword;
                of_keyword(word.keyword)
            }
            Token::Word(_) | Token::Number(..) => 0,
            Token::SingleQuotedString(_) | Token::Placeholder(_) => 0,
            _ => OPERATOR,
        };
        is_behind_word = matches!(&token.token, Token::Word(word) if is_name(word.keyword));
    }
    bytes
}

/// Whether a bracket behind a word opens the arguments of a call: other keywords have lists.
fn is_name(keyword: Keyword) -> bool {
    !matches!(keyword, Keyword::VALUES | Keyword::IN | Keyword::AS | Keyword::CONFLICT)
}

fn of_keyword(keyword: Keyword) -> usize {
    match keyword {
        Keyword::SELECT | Keyword::VALUES | Keyword::TABLE | Keyword::WITH => SELECT,
        Keyword::INSERT | Keyword::UPDATE | Keyword::DELETE => STATEMENT,
        Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => 2 * size_of::<SetExpr>(),
        Keyword::FROM | Keyword::USING | Keyword::BY => ROOM * size_of::<TableWithJoins>(),
        Keyword::JOIN => ROOM * size_of::<Join>(),
        Keyword::WHEN => GROWTH * size_of::<CaseWhen>(),
        Keyword::NULL | Keyword::TRUE | Keyword::FALSE => 0,
        _ => OPERATOR,
    }
}

fn refuse(bytes: usize) -> Result<()> {
    if bytes <= PARSER_BYTES_MAX {
        return Ok(());
    }
    Err(refused(format!(
        "text would take more than {} MiB of memory in the parser",
        PARSER_BYTES_MAX >> 20
    )))
}

/// At least as many tokens as the text has.
fn tokens_at_most(text: &str) -> usize {
    let mut rest = text;
    let mut count = 0;
    let mut last = ' ';
    while let Some(first) = rest.chars().next() {
        let (tokens, bytes) = match first {
            // To the tokenizer it is a part of the word, or begins a text behind a number.
            '$' if is_of_word(last) || last == '$' || !last.is_ascii() => {
                return count + rest.len();
            }
            '\'' if (is_of_word(last) || last == '\'') && has_escape(rest) => {
                return count + rest.len();
            }
            // The tokenizer skips what is behind some operators of geometry.
            '<' | '>' if last == '&' => return count + rest.len(),
            // The tokenizer has longer operators than PostgreSQL, which may hide a comment.
            '-' | '/'
                if is_of_operator(last) && (rest.starts_with("--") || rest.starts_with("/*")) =>
            {
                return count + rest.len();
            }
            '\'' | '"' => (1, 1 + end_of(&rest[1..], &rest[..1])),
            '$' => match dollar_tag(rest) {
                Some(tag) => (1, tag.len() + end_of(&rest[tag.len()..], tag)),
                None => (1, 1),
            },
            // The end of the line is a token of its own.
            '-' if rest.starts_with("--") => (1, rest.find(['\n', '\r']).unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (1, 2 + end_of_comment(&rest[2..])),
            first if is_of_word(first) => word(rest),
            first => (1, first.len_utf8()),
        };
        let (taken, behind) = rest.split_at(bytes.min(rest.len()));
        last = taken.chars().next_back().unwrap_or(' ');
        (count, rest) = (count + tokens, behind);
    }
    count
}

/// Whether a text in quotes may go on behind a quote with a backslash.
fn has_escape(text: &str) -> bool {
    let end = end_of(&text[1..], "'");
    text[..(end + 1).min(text.len())].contains('\\')
}

/// The bytes up to a mark and with it, or all.
fn end_of(text: &str, mark: &str) -> usize {
    text.find(mark).map_or(text.len(), |at| at + mark.len())
}

/// `$$` or `$tag$` at the beginning.
fn dollar_tag(text: &str) -> Option<&str> {
    let behind = &text[1..];
    let end = behind.find(|char| !is_of_word(char))?;
    behind[end..].starts_with('$').then(|| &text[..end + 2])
}

/// The bytes of a comment, in which may be others, behind its beginning.
fn end_of_comment(text: &str) -> usize {
    let (mut depth, mut at) = (1_usize, 0);
    while depth > 0 {
        let Some(next) = text[at..].find(['*', '/']) else { return text.len() };
        at += next;
        let (taken, change) = match text.get(at..at + 2) {
            Some("*/") => (2, -1),
            Some("/*") => (2, 1),
            _ => (1, 0),
        };
        at += taken;
        depth = depth.saturating_add_signed(change);
    }
    at
}

fn is_of_operator(char: char) -> bool {
    "+-*/<>=~!@#%^&|`?:".contains(char)
}

fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// The tokens and bytes of letters and digits: letters behind a digit may begin another token.
fn word(text: &str) -> (usize, usize) {
    let end = text.find(|char| !is_of_word(char)).unwrap_or(text.len());
    let word = &text.as_bytes()[..end];
    let begins =
        word.windows(2).filter(|pair| pair[0].is_ascii_digit() && !pair[1].is_ascii_digit());
    (1 + begins.count(), end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    #[test]
    fn there_are_no_more_tokens_than_were_counted() {
        const PARTS: &[&str] = &[
            "'", "''", "\"", "\\", "\\'", "e", "E", "1", "1e", ".5", "0x", "$", "$$", "$a$", "$1",
            "--", "\n", "\r", "/*", "*/", "/", "*", " ", "a", "_b", "\u{e9}", "\u{2028}", "U&'",
            "u&\"", "B'", "x'", "N'", "n", "r'", "q'", "@", "#", "->", "-", "+", "::", ":=", "(",
            ")", "[", "]", ",", ";", "!", "`", "{", "}", "~", "<", ">", "=", "|", "&", "?", "%",
            "^", "select", "COPY", "FROM", "STDIN", "9", "1_0",
        ];
        let seed = 11_u64;
        let mut state = seed;
        let mut below = |count: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % count
        };
        let mut wrong = Vec::new();
        for round in 0..200_000 {
            let count = 1 + below(23);
            let parts = (0..count).map(|_| PARTS[below(PARTS.len())]);
            let text: String = parts.collect();
            let mut tokens = Vec::new();
            let dialect = PostgreSqlDialect {};
            let _ = Tokenizer::new(&dialect, &text).tokenize_with_location_into_buf(&mut tokens);
            let (own, most) = (tokens.len(), tokens_at_most(&text));
            if own > most {
                wrong.push(format!("round {round}: {own} > {most}: {text:?}"));
            }
        }
        wrong.sort_by_key(String::len);
        wrong.truncate(20);
        assert!(wrong.is_empty(), "seed {seed}: {}", wrong.join("\n"));
    }

    #[test]
    fn the_parser_takes_no_more_memory_than_was_counted() {
        const TEXTS: &[(&str, &str, &str, usize)] = &[
            ("SELECT 1", "+1", "", 1_900),
            ("SELECT 1", " NOTNULL", "", 1_900),
            ("SELECT 1", ",1", "", 3_000),
            ("SELECT 1 IN (1", ",1", ")", 3_000),
            ("SELECT 1 FROM a", ",a", "", 3_000),
            ("SELECT 1 FROM a", " JOIN a ON true", "", 90),
            ("SELECT 1 ORDER BY 1", ",1", "", 3_000),
            ("VALUES (1)", ",(1)", "", 3_000),
            ("VALUES (1,2,3,4,5)", ",(1,2,3,4,5)", "", 3_000),
            ("SELECT (SELECT 1)", ",(SELECT 1)", "", 1_000),
            ("SELECT f(1)", ",f(1)", "", 3_000),
            ("SELECT ARRAY[1]", ",ARRAY[1]", "", 3_000),
            ("SELECT 1", ";SELECT 1", "", 1_000),
            ("SELECT 1", " UNION SELECT 1", "", 900),
            ("SELECT CASE", " WHEN true THEN 1", " END", 3_000),
            ("CREATE TABLE t (a int", ",a int", ")", 1_000),
            ("ALTER TABLE t ADD a int", ",ADD a int", "", 1_000),
            ("WITH a AS (SELECT 1)", ",a AS (SELECT 1)", " SELECT 1", 1_000),
            ("UPDATE t SET a=1", ",a=1", "", 3_000),
            ("SELECT a.b.c", ",a.b.c", "", 3_000),
            ("SELECT 'a'", ",'a'", "", 3_000),
            ("SELECT NULL::int", "[]", "", 1_900),
            ("SELECT ", "((((1)))),", "1", 1_000),
        ];
        let mut wrong = Vec::new();
        for (head, part, tail, count) in TEXTS {
            let text = format!("{head}{}{tail}", part.repeat(*count));
            let dialect = PostgreSqlDialect {};
            let tokens = Tokenizer::new(&dialect, &text).tokenize_with_location().unwrap();
            let counted = (tokens.len() * TOKEN + bytes_of_trees(&tokens)) as u64;
            drop(tokens);
            let taken = crate::parse::with_stack(|| {
                let parsed = || drop(crate::parse::parse(&text).unwrap());
                allocation_counter::measure(parsed).bytes_max
            });
            if taken > counted {
                wrong.push(format!("{head}[{part}]{tail}: {taken} of {counted}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn texts_in_quotes_and_comments_are_one_token() {
        for (text, tokens) in [
            ("SELECT 'a b, c''d'", 4),
            ("$x$ a 'b $x$", 1),
            ("e'a b'", 2),
            ("/* a /* b */ c */ d", 3),
            ("-- a b c\nd", 3),
            ("a1b, 2", 5),
        ] {
            assert_eq!(tokens_at_most(text), tokens, "{text}");
        }
    }
}
