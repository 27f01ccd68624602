//! SET SCHEMA of tables, views, sequences and sessions, which the parser does not have.

use super::own::word;
use super::sequence::{are_next, skip};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// ALTER TABLE, VIEW or SEQUENCE ... SET SCHEMA.
#[derive(Clone, Debug)]
pub(crate) struct SetSchema {
    pub(crate) kind: MovedKind,
    pub(crate) name: ObjectName,
    pub(crate) if_exists: bool,
    pub(crate) schema: Ident,
}

/// What SET SCHEMA is said of. TABLE may be said of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MovedKind {
    Table,
    View,
    Sequence,
}

impl MovedKind {
    /// The command.
    pub(crate) fn command(self) -> &'static str {
        match self {
            MovedKind::Table => "ALTER TABLE",
            MovedKind::View => "ALTER VIEW",
            MovedKind::Sequence => "ALTER SEQUENCE",
        }
    }
}

/// SET SCHEMA of the session: its path has this schema only.
pub(super) struct SetPath {
    pub(super) schema: String,
    pub(super) is_local: bool,
}

/// The next statement, if it is SET SCHEMA of the session.
pub(super) fn set_path(parser: &mut Parser<'_>) -> Result<Option<SetPath>, ParserError> {
    let is_local = are_next(parser, &["set", "local", "schema"]);
    if !is_local && !are_next(parser, &["set", "schema"]) {
        return Ok(None);
    }
    parser.maybe_parse(|parser| {
        skip(parser, 2 + usize::from(is_local));
        let next = parser.next_token();
        let Token::SingleQuotedString(schema) = next.token else {
            return parser.expected("a string", next);
        };
        Ok(SetPath { schema, is_local })
    })
}

/// The next statement, if it is one of these.
pub(super) fn set_schema(parser: &mut Parser<'_>) -> Result<Option<SetSchema>, ParserError> {
    if !are_next(parser, &["alter"]) {
        return Ok(None);
    }
    let kind = match word(&parser.peek_nth_token_ref(1).token).as_deref() {
        Some("table") => MovedKind::Table,
        Some("view") => MovedKind::View,
        Some("sequence") => MovedKind::Sequence,
        _ => return Ok(None),
    };
    parser.maybe_parse(|parser| {
        skip(parser, 2);
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        if kind == MovedKind::Table {
            let _ = parser.parse_keyword(Keyword::ONLY);
        }
        let name = parser.parse_object_name(false)?;
        parser.expect_keywords(&[Keyword::SET, Keyword::SCHEMA])?;
        Ok(SetSchema { kind, name, if_exists, schema: parser.parse_identifier()? })
    })
}
