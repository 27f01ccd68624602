//! CREATE TABLE AS and SELECT INTO: the parser has neither names of columns without types nor
//! WITH NO DATA.

use super::sequence::{are_next, skip};
use sqlparser::ast::{Expr, Ident, ObjectName, SetExpr, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A table that is made of the rows of a query.
#[derive(Clone, Debug)]
pub(crate) struct TableAs {
    pub(crate) name: ObjectName,
    pub(crate) if_not_exists: bool,
    /// The names that its first columns get.
    pub(crate) columns: Vec<Ident>,
    /// The query, as a statement of its own.
    pub(crate) query: Statement,
    /// Whether it gets the rows, and not only the columns.
    pub(crate) has_data: bool,
}

/// The next statement, if it is CREATE TABLE AS.
pub(super) fn create_table_as(parser: &mut Parser<'_>) -> Result<Option<TableAs>, ParserError> {
    if !are_next(parser, &["create", "table"]) {
        return Ok(None);
    }
    let Some((name, if_not_exists, columns)) = parser.maybe_parse(head)? else { return Ok(None) };
    let query = Statement::Query(parser.parse_query()?);
    let has_data = !parser.parse_keywords(&[Keyword::WITH, Keyword::NO, Keyword::DATA]);
    if has_data {
        let _ = parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]);
    }
    Ok(Some(TableAs { name, if_not_exists, columns, query, has_data }))
}

type Head = (ObjectName, bool, Vec<Ident>);

/// What is before the query.
fn head(parser: &mut Parser<'_>) -> Result<Head, ParserError> {
    skip(parser, 2);
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let mut columns = Vec::new();
    if parser.consume_token(&Token::LParen) {
        columns = parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_token(&Token::RParen)?;
    }
    parser.expect_keyword(Keyword::AS)?;
    Ok((name, if_not_exists, columns))
}

/// What SELECT INTO means; `None` of any other statement, which stays as it is.
pub(super) fn select_into(tree: &mut Statement) -> Option<TableAs> {
    let name = name_of_into(tree)?;
    let (if_not_exists, columns, has_data) = (false, Vec::new(), true);
    Some(TableAs { name, if_not_exists, columns, query: tree.clone(), has_data })
}

/// Takes out where SELECT INTO puts its rows, if that is a table.
fn name_of_into(tree: &mut Statement) -> Option<ObjectName> {
    let Statement::Query(query) = tree else { return None };
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let into = select.into.as_ref().filter(|into| !into.temporary)?;
    let name = match &into.targets[..] {
        [Expr::Identifier(name)] => vec![name.clone()],
        [Expr::CompoundIdentifier(parts)] => parts.clone(),
        _ => return None,
    };
    select.into = None;
    Some(ObjectName::from(name))
}
