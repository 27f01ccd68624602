//! LISTEN, UNLISTEN and NOTIFY. The last one is a query of `pg_notify`, whose row no client sees.

use super::own::word;
use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A statement about channels.
pub(super) enum ChannelStatement {
    /// LISTEN
    Listen(String),
    /// UNLISTEN of a channel, or of all.
    Unlisten(Option<String>),
    /// NOTIFY, as a query.
    Notify(Box<Statement>),
}

/// The next statement, if it is one of these.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Option<ChannelStatement>, ParserError> {
    let verb = word(&parser.peek_token_ref().token);
    let verb = verb.as_deref().filter(|verb| matches!(*verb, "listen" | "unlisten" | "notify"));
    let Some(verb) = verb else { return Ok(None) };
    parser.next_token();
    if verb == "unlisten" && parser.consume_token(&Token::Mul) {
        return Ok(Some(ChannelStatement::Unlisten(None)));
    }
    if !matches!(parser.peek_token_ref().token, Token::Word(_)) {
        return parser.expected_ref("a channel", parser.peek_token_ref());
    }
    let channel = crate::bind::name_of(&parser.parse_identifier()?);
    Ok(Some(match verb {
        "listen" => ChannelStatement::Listen(channel),
        "unlisten" => ChannelStatement::Unlisten(Some(channel)),
        _ => {
            let has_payload = parser.consume_token(&Token::Comma);
            let payload = if has_payload { text(parser)? } else { String::new() };
            ChannelStatement::Notify(Box::new(query(&channel, &payload)?))
        }
    }))
}

fn text(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let next = parser.next_token();
    match next.token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => Ok(text),
        _ => parser.expected("a text", next),
    }
}

fn query(channel: &str, payload: &str) -> Result<Statement, ParserError> {
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let (channel, payload) = (literal(channel), literal(payload));
    let text = format!("SELECT pg_catalog.pg_notify({channel}, {payload})");
    Parser::new(&PostgreSqlDialect {}).try_with_sql(&text)?.parse_statement()
}

#[cfg(test)]
mod tests {
    use super::super::{Control, parse};

    #[test]
    fn statements_about_channels_are_told_apart() {
        let control = |text: &str| parse(text).unwrap()[0].control();
        assert_eq!(control("LISTEN Foo"), Some(Control::Listen("foo".to_owned())));
        assert_eq!(control("listen \"Foo\""), Some(Control::Listen("Foo".to_owned())));
        assert_eq!(control("UNLISTEN a"), Some(Control::Unlisten(Some("a".to_owned()))));
        assert_eq!(control("UNLISTEN *"), Some(Control::Unlisten(None)));
        for text in ["NOTIFY a", "notify \"a'b\", 'it''s \\'", "NOTIFY a, E'\\n'"] {
            let parsed = &parse(text).unwrap()[0];
            assert!(parsed.is_notify() && parsed.control().is_none() && !parsed.is_query());
        }
        for wrong in ["LISTEN", "LISTEN *", "LISTEN 'a'", "NOTIFY a, b", "NOTIFY a,", "LISTEN a b"]
        {
            assert_eq!(parse(wrong).unwrap_err().state().code(), "42601", "{wrong}");
        }
    }
}
