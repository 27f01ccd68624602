//! CREATE CAST and DROP CAST, which the parser does not have.

use super::sequence::{are_next, skip};
use crate::catalog::CastUse;
use sqlparser::ast::DataType;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// CREATE CAST or DROP CAST.
#[derive(Clone, Debug)]
pub(crate) struct CastStatement {
    pub(crate) from: DataType,
    pub(crate) to: DataType,
    pub(crate) change: CastChange,
}

/// What becomes of a cast.
#[derive(Clone, Debug)]
pub(crate) enum CastChange {
    Create { way: CastWay, use_in: CastUse },
    Drop { if_exists: bool },
}

/// How a cast comes to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CastWay {
    /// By the value's text.
    Text,
    /// The bytes are the same.
    WithoutFunction,
    Function,
}

/// The next statement, if it is one of these.
pub(super) fn cast(parser: &mut Parser<'_>) -> Result<Option<CastStatement>, ParserError> {
    let is_drop = are_next(parser, &["drop", "cast"]);
    if !is_drop && !are_next(parser, &["create", "cast"]) {
        return Ok(None);
    }
    skip(parser, 2);
    let if_exists = is_drop && parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    parser.expect_token(&Token::LParen)?;
    let from = parser.parse_data_type()?;
    parser.expect_keyword(Keyword::AS)?;
    let to = parser.parse_data_type()?;
    parser.expect_token(&Token::RParen)?;
    let change = match is_drop {
        true => {
            // Nothing depends on a cast.
            let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
            CastChange::Drop { if_exists }
        }
        false => CastChange::Create { way: way(parser)?, use_in: use_in(parser)? },
    };
    Ok(Some(CastStatement { from, to, change }))
}

fn way(parser: &mut Parser<'_>) -> Result<CastWay, ParserError> {
    if are_next(parser, &["with", "inout"]) {
        skip(parser, 2);
        return Ok(CastWay::Text);
    }
    if parser.parse_keywords(&[Keyword::WITHOUT, Keyword::FUNCTION]) {
        return Ok(CastWay::WithoutFunction);
    }
    parser.expect_keywords(&[Keyword::WITH, Keyword::FUNCTION])?;
    parser.parse_object_name(false)?;
    if parser.consume_token(&Token::LParen) && !parser.consume_token(&Token::RParen) {
        parser.parse_comma_separated(Parser::parse_data_type)?;
        parser.expect_token(&Token::RParen)?;
    }
    Ok(CastWay::Function)
}

fn use_in(parser: &mut Parser<'_>) -> Result<CastUse, ParserError> {
    for (word, use_in) in [("assignment", CastUse::Assignment), ("implicit", CastUse::Implicit)] {
        if are_next(parser, &["as", word]) {
            skip(parser, 2);
            return Ok(use_in);
        }
    }
    Ok(CastUse::Explicit)
}
