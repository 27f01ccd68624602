//! ALTER TYPE ... OWNER TO and SET SCHEMA, which the parser does not have.

use super::sequence::{are_next, skip};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// ALTER TYPE ... OWNER TO or SET SCHEMA.
#[derive(Clone, Debug)]
pub(crate) struct TypeMove {
    pub(crate) name: ObjectName,
    pub(crate) to: TypePlace,
}

/// Who a type is to belong to, or where it is to be.
#[derive(Clone, Debug)]
pub(crate) enum TypePlace {
    Owner(Ident),
    Schema(Ident),
}

/// The next statement, if it is one of these.
pub(super) fn type_move(parser: &mut Parser<'_>) -> Result<Option<TypeMove>, ParserError> {
    if !are_next(parser, &["alter", "type"]) {
        return Ok(None);
    }
    parser.maybe_parse(|parser| {
        skip(parser, 2);
        let name = parser.parse_object_name(false)?;
        let to = if parser.parse_keywords(&[Keyword::OWNER, Keyword::TO]) {
            TypePlace::Owner(parser.parse_identifier()?)
        } else {
            parser.expect_keywords(&[Keyword::SET, Keyword::SCHEMA])?;
            TypePlace::Schema(parser.parse_identifier()?)
        };
        Ok(TypeMove { name, to })
    })
}
