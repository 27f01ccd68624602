//! ALTER VIEW ... RENAME TO and OWNER TO, which the parser does not have.

use super::sequence::{are_next, skip};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// ALTER VIEW ... RENAME TO or OWNER TO.
#[derive(Clone, Debug)]
pub(crate) struct ViewChange {
    pub(crate) name: ObjectName,
    pub(crate) if_exists: bool,
    pub(crate) to: ViewPlace,
}

/// What a view is to be called, or who it is to belong to.
#[derive(Clone, Debug)]
pub(crate) enum ViewPlace {
    Name(Ident),
    Owner(Ident),
}

/// The next statement, if it is one of these.
pub(super) fn view_change(parser: &mut Parser<'_>) -> Result<Option<ViewChange>, ParserError> {
    if !are_next(parser, &["alter", "view"]) {
        return Ok(None);
    }
    parser.maybe_parse(|parser| {
        skip(parser, 2);
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = parser.parse_object_name(false)?;
        let to = if parser.parse_keywords(&[Keyword::OWNER, Keyword::TO]) {
            ViewPlace::Owner(parser.parse_identifier()?)
        } else {
            parser.expect_keywords(&[Keyword::RENAME, Keyword::TO])?;
            ViewPlace::Name(parser.parse_identifier()?)
        };
        Ok(ViewChange { name, if_exists, to })
    })
}
