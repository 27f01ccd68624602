//! COMMENT ON, of which the parser knows too few objects.

use super::own::word;
use super::sequence::{are_next, skip};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// COMMENT ON
#[derive(Clone, Debug)]
pub(crate) struct CommentOn {
    pub(crate) target: CommentTarget,
    /// `None` of NULL, which removes it.
    pub(crate) text: Option<String>,
}

/// The object of COMMENT ON.
#[derive(Clone, Debug)]
pub(crate) enum CommentTarget {
    Table(ObjectName),
    Column(ObjectName),
    Index(ObjectName),
    Sequence(ObjectName),
    View(ObjectName),
    Type(ObjectName),
    Constraint(Ident, ObjectName),
    Schema(Ident),
    Database(Ident),
    Extension(Ident),
    /// One of which there are none here, by its word.
    Other(String),
}

/// The next statement, if it is COMMENT ON.
pub(super) fn comment_on(parser: &mut Parser<'_>) -> Result<Option<CommentOn>, ParserError> {
    if !are_next(parser, &["comment", "on"]) {
        return Ok(None);
    }
    skip(parser, 2);
    let target = target(parser)?;
    if let CommentTarget::Other(_) = target {
        while !matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
            parser.next_token();
        }
        return Ok(Some(CommentOn { target, text: None }));
    }
    parser.expect_keyword(Keyword::IS)?;
    let text = match parser.next_token() {
        next if word(&next.token).as_deref() == Some("null") => None,
        next => match next.token {
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::UnicodeStringLiteral(text) => Some(text),
            _ => return parser.expected("a string or NULL", next),
        },
    };
    Ok(Some(CommentOn { target, text }))
}

fn target(parser: &mut Parser<'_>) -> Result<CommentTarget, ParserError> {
    let kind = word(&parser.peek_token_ref().token).unwrap_or_default();
    parser.next_token();
    Ok(match kind.as_str() {
        "table" => CommentTarget::Table(parser.parse_object_name(false)?),
        "column" => CommentTarget::Column(parser.parse_object_name(false)?),
        "index" => CommentTarget::Index(parser.parse_object_name(false)?),
        "sequence" => CommentTarget::Sequence(parser.parse_object_name(false)?),
        "view" => CommentTarget::View(parser.parse_object_name(false)?),
        "type" => CommentTarget::Type(parser.parse_object_name(false)?),
        "schema" => CommentTarget::Schema(parser.parse_identifier()?),
        "database" => CommentTarget::Database(parser.parse_identifier()?),
        "extension" => CommentTarget::Extension(parser.parse_identifier()?),
        "constraint" => {
            let name = parser.parse_identifier()?;
            parser.expect_keyword(Keyword::ON)?;
            match word(&parser.peek_token_ref().token).as_deref() {
                Some("domain") => CommentTarget::Other("CONSTRAINT ON DOMAIN".to_owned()),
                _ => CommentTarget::Constraint(name, parser.parse_object_name(false)?),
            }
        }
        kind => CommentTarget::Other(kind.to_ascii_uppercase()),
    })
}
