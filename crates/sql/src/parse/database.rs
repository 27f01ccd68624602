//! CREATE DATABASE and DROP DATABASE, which the parser has otherwise than PostgreSQL.

use super::own::word;
use crate::bind::name_of;
use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// CREATE DATABASE or DROP DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseStatement {
    /// CREATE DATABASE
    Create {
        /// Its name.
        name: String,
        /// The options, in order.
        options: Vec<DatabaseOption>,
    },
    /// DROP DATABASE
    Drop {
        /// Its name.
        name: String,
        /// IF EXISTS
        if_exists: bool,
        /// Whether sessions of the database end.
        is_forced: bool,
    },
}

/// An option of CREATE DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseOption {
    /// Its name, in lower case.
    pub(crate) name: String,
    /// `None` of DEFAULT.
    pub(crate) value: Option<Ident>,
}

/// The next statement, if it is one of these.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Option<DatabaseStatement>, ParserError> {
    let first = word(&parser.peek_token_ref().token);
    let second = word(&parser.peek_nth_token_ref(1).token);
    Ok(match (first.as_deref(), second.as_deref()) {
        (Some("create"), Some("database")) => {
            let name = database(parser)?;
            Some(DatabaseStatement::Create { name, options: options(parser)? })
        }
        (Some("drop"), Some("database")) => {
            parser.next_token();
            parser.next_token();
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let name = name_of(&parser.parse_identifier()?);
            let is_forced = forced(parser)?;
            Some(DatabaseStatement::Drop { name, if_exists, is_forced })
        }
        _ => None,
    })
}

/// The name behind two words.
fn database(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    parser.next_token();
    parser.next_token();
    Ok(name_of(&parser.parse_identifier()?))
}

/// `[WITH] name [=] value ...`
fn options(parser: &mut Parser<'_>) -> Result<Vec<DatabaseOption>, ParserError> {
    let _ = parser.parse_keyword(Keyword::WITH);
    let mut all = Vec::new();
    while !matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
        let mut name = name_of(&parser.parse_identifier()?);
        if name == "connection" {
            parser.expect_keyword(Keyword::LIMIT)?;
            name.push_str(" limit");
        }
        let _ = parser.consume_token(&Token::Eq);
        all.push(DatabaseOption { name, value: value(parser)? });
    }
    Ok(all)
}

/// The value of an option: a name, a string or a number; `None` of DEFAULT.
fn value(parser: &mut Parser<'_>) -> Result<Option<Ident>, ParserError> {
    if parser.parse_keyword(Keyword::DEFAULT) {
        return Ok(None);
    }
    let is_negative = parser.consume_token(&Token::Minus);
    if is_negative || matches!(parser.peek_token_ref().token, Token::Number(..)) {
        return Ok(Some(Ident::new(parser.parse_literal_uint()?.to_string())));
    }
    parser.parse_identifier().map(Some)
}

/// `[[WITH] (FORCE)]`
fn forced(parser: &mut Parser<'_>) -> Result<bool, ParserError> {
    let _ = parser.parse_keyword(Keyword::WITH);
    if !parser.consume_token(&Token::LParen) {
        return Ok(false);
    }
    let options = parser.parse_comma_separated(Parser::parse_identifier)?;
    parser.expect_token(&Token::RParen)?;
    if options.iter().all(|option| name_of(option) == "force") {
        return Ok(true);
    }
    Err(ParserError::ParserError("unrecognized DROP DATABASE option".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::{Control, Own, parse};
    use super::*;

    #[track_caller]
    fn parsed(text: &str) -> DatabaseStatement {
        match parse(text).unwrap()[0].control() {
            Some(Control::Own(Own::Database(statement))) => statement,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn options_are_names_with_values() {
        let text = "create database \"A b\" with owner = x encoding 'UTF8' connection limit -1 \
                    lc_collate=DEFAULT template template0";
        let DatabaseStatement::Create { name, options } = parsed(text) else { panic!("{text}") };
        let option = |option: &DatabaseOption| {
            let value = option.value.as_ref().map_or_else(String::new, name_of);
            format!("{}:{value}", option.name)
        };
        let shown: Vec<String> = options.iter().map(option).collect();
        let expected =
            ["owner:x", "encoding:UTF8", "connection limit:1", "lc_collate:", "template:template0"];
        assert_eq!((name.as_str(), &shown[..]), ("A b", &expected.map(str::to_owned)[..]));
    }

    #[test]
    fn a_drop_may_be_forced() {
        let dropped = |if_exists, is_forced| DatabaseStatement::Drop {
            name: "a".to_owned(),
            if_exists,
            is_forced,
        };
        assert_eq!(parsed("DROP DATABASE A"), dropped(false, false));
        assert_eq!(parsed("DROP DATABASE IF EXISTS a WITH (FORCE)"), dropped(true, true));
        assert_eq!(parsed("DROP DATABASE a (force, force)"), dropped(false, true));
        assert!(parse("DROP DATABASE a WITH (other)").is_err());
        assert!(parse("DROP DATABASE a, b").is_err());
    }
}
