//! LIKE among the columns of CREATE TABLE, of which the parser knows one form only: a column stands
//! for it, of a type that is called as the table, with the options as the type's modifiers.

use super::own::word;
use sqlparser::ast::{ColumnDef, DataType, ObjectName, TypeModifier};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The name of such a column, which no statement can write.
const NAME: &str = "\u{1}like";

/// LIKE with its options.
pub(crate) struct Like<'t> {
    pub(crate) table: &'t ObjectName,
    /// The words INCLUDING or EXCLUDING, each with what it is about behind it.
    words: Vec<&'t str>,
}

impl Like<'_> {
    /// LIKE that a column stands for.
    pub(crate) fn of(column: &ColumnDef) -> Option<Like<'_>> {
        let DataType::Custom(table, modifiers) = &column.data_type else { return None };
        let mut words = Vec::with_capacity(modifiers.len());
        for modifier in modifiers {
            let TypeModifier::String(word) = modifier else { return None };
            words.push(word.as_str());
        }
        (column.name.value == NAME).then_some(Like { table, words })
    }

    /// Whether the last option that is about this or about ALL is INCLUDING.
    pub(crate) fn includes(&self, what: &str) -> bool {
        let mut options = self.words.chunks_exact(2).rev();
        options
            .find(|option| [what, "all"].contains(&option[1]))
            .is_some_and(|it| it[0] == INCLUDING)
    }

    /// An option that there is not.
    pub(crate) fn unknown(&self) -> Option<&str> {
        const KNOWN: [&str; 9] = [
            "all",
            "comments",
            "compression",
            "constraints",
            "defaults",
            "generated",
            "identity",
            "indexes",
            "statistics",
        ];
        let about = self.words.chunks_exact(2).map(|option| option[1]);
        about.into_iter().find(|about| !KNOWN.contains(about) && *about != "storage")
    }
}

const INCLUDING: &str = "including";
const EXCLUDING: &str = "excluding";

/// Puts a column in the place of each LIKE.
pub(super) fn replaced(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_like = |own: &TokenWithSpan| word(&own.token).as_deref() == Some("like");
    if !tokens.iter().any(is_like) {
        return tokens;
    }
    let tokens: Vec<TokenWithSpan> =
        tokens.into_iter().filter(|own| !matches!(own.token, Token::Whitespace(_))).collect();
    let (mut made, mut is_table, mut at) = (Vec::with_capacity(tokens.len()), false, 0);
    while let Some(token) = tokens.get(at) {
        match made.last().map(|last: &TokenWithSpan| &last.token) {
            None | Some(Token::SemiColon) => is_table = begins_table(&tokens[at..]),
            Some(Token::LParen | Token::Comma) if is_table && is_like(token) => {
                if let Some(count) = push_column(&tokens[at..], &mut made) {
                    at += count;
                    continue;
                }
            }
            _ => {}
        }
        made.push(token.clone());
        at += 1;
    }
    made
}

/// Whether these tokens begin with CREATE TABLE, perhaps of another kind than a plain one.
fn begins_table(tokens: &[TokenWithSpan]) -> bool {
    let mut words = tokens.iter().take(4).map(|own| word(&own.token).unwrap_or_default());
    words.next().as_deref() == Some("create") && words.any(|own| own == "table")
}

/// Appends the column that stands for LIKE; the number of LIKE's tokens, if it is one.
fn push_column(tokens: &[TokenWithSpan], made: &mut Vec<TokenWithSpan>) -> Option<usize> {
    let is_option = |own: &TokenWithSpan| {
        word(&own.token).is_some_and(|own| [INCLUDING, EXCLUDING].contains(&own.as_str()))
    };
    let is_name = |own: &&TokenWithSpan| {
        matches!(own.token, Token::Word(_) | Token::Period) && !is_option(own)
    };
    let name: Vec<&TokenWithSpan> = tokens[1..].iter().take_while(is_name).collect();
    let mut end = 1 + name.len();
    let mut options = Vec::new();
    while let [first, about, ..] = &tokens[end..]
        && is_option(first)
    {
        options.extend([word(&first.token)?, word(&about.token)?]);
        end += 2;
    }
    if name.is_empty() || !matches!(tokens.get(end)?.token, Token::Comma | Token::RParen) {
        return None;
    }
    let mut push = |token| made.push(TokenWithSpan { token, span: name[0].span });
    push(quoted(NAME));
    for part in &name {
        push(match &part.token {
            Token::Word(own) if own.quote_style.is_none() => {
                quoted(&own.value.to_ascii_lowercase())
            }
            other => other.clone(),
        });
    }
    if !options.is_empty() {
        push(Token::LParen);
        options.into_iter().for_each(|option| push(Token::SingleQuotedString(option)));
        push(Token::RParen);
    }
    Some(end)
}

fn quoted(name: &str) -> Token {
    let value = name.to_owned();
    Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword })
}
