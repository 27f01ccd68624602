//! CREATE TABLE AS and SELECT INTO: the parser has neither names of columns without types nor
//! WITH NO DATA.

use super::sequence::{are_next, skip};
use sqlparser::ast::{Expr, Ident, ObjectName, OnCommit, SetExpr, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A table that is made of the rows of a query.
#[derive(Clone, Debug)]
pub(crate) struct TableAs {
    pub(crate) name: ObjectName,
    pub(crate) if_not_exists: bool,
    pub(crate) is_temporary: bool,
    /// What becomes of a temporary table at the end of a transaction.
    pub(crate) on_commit: Option<OnCommit>,
    /// The names that its first columns get.
    pub(crate) columns: Vec<Ident>,
    /// The query, as a statement of its own.
    pub(crate) query: Statement,
    /// Whether it gets the rows, and not only the columns.
    pub(crate) has_data: bool,
}

/// The next statement, if it is CREATE TABLE AS.
pub(super) fn create_table_as(parser: &mut Parser<'_>) -> Result<Option<TableAs>, ParserError> {
    if !is_next(parser) {
        return Ok(None);
    }
    let Some(head) = parser.maybe_parse(head)? else { return Ok(None) };
    let query = Statement::Query(parser.parse_query()?);
    let has_data = !parser.parse_keywords(&[Keyword::WITH, Keyword::NO, Keyword::DATA]);
    if has_data {
        let _ = parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]);
    }
    let Head { name, if_not_exists, is_temporary, on_commit, columns } = head;
    Ok(Some(TableAs { name, if_not_exists, is_temporary, on_commit, columns, query, has_data }))
}

/// Whether CREATE TABLE is next, perhaps with a word that says how the table is kept.
fn is_next(parser: &Parser<'_>) -> bool {
    let words = ["temp", "temporary", "unlogged"];
    let has_word = |word: &&str| are_next(parser, &["create", word, "table"]);
    let has_scope = |word: &&str| {
        are_next(parser, &["create", "local", word, "table"])
            || are_next(parser, &["create", "global", word, "table"])
    };
    are_next(parser, &["create", "table"])
        || words.iter().any(has_word)
        || words[..2].iter().any(has_scope)
}

/// What is before the query.
struct Head {
    name: ObjectName,
    if_not_exists: bool,
    is_temporary: bool,
    on_commit: Option<OnCommit>,
    columns: Vec<Ident>,
}

fn head(parser: &mut Parser<'_>) -> Result<Head, ParserError> {
    skip(parser, 1);
    let _ = parser.parse_one_of_keywords(&[Keyword::LOCAL, Keyword::GLOBAL]);
    let kept =
        parser.parse_one_of_keywords(&[Keyword::TEMP, Keyword::TEMPORARY, Keyword::UNLOGGED]);
    let is_temporary = kept.is_some_and(|word| word != Keyword::UNLOGGED);
    parser.expect_keyword(Keyword::TABLE)?;
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let mut columns = Vec::new();
    if parser.consume_token(&Token::LParen) {
        columns = parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_token(&Token::RParen)?;
    }
    let on_commit = on_commit(parser)?;
    parser.expect_keyword(Keyword::AS)?;
    Ok(Head { name, if_not_exists, is_temporary, on_commit, columns })
}

fn on_commit(parser: &mut Parser<'_>) -> Result<Option<OnCommit>, ParserError> {
    if !parser.parse_keywords(&[Keyword::ON, Keyword::COMMIT]) {
        return Ok(None);
    }
    if parser.parse_keyword(Keyword::DROP) {
        return Ok(Some(OnCommit::Drop));
    }
    let is_kept = parser.parse_keyword(Keyword::PRESERVE);
    if !is_kept {
        parser.expect_keyword(Keyword::DELETE)?;
    }
    parser.expect_keyword(Keyword::ROWS)?;
    Ok(Some(if is_kept { OnCommit::PreserveRows } else { OnCommit::DeleteRows }))
}

/// What SELECT INTO means; `None` of any other statement, which stays as it is.
pub(super) fn select_into(tree: &mut Statement) -> Option<TableAs> {
    let (name, is_temporary) = name_of_into(tree)?;
    let (if_not_exists, columns, has_data) = (false, Vec::new(), true);
    let (query, on_commit) = (tree.clone(), None);
    Some(TableAs { name, if_not_exists, is_temporary, on_commit, columns, query, has_data })
}

/// Takes out where SELECT INTO puts its rows, and whether that is a temporary table.
fn name_of_into(tree: &mut Statement) -> Option<(ObjectName, bool)> {
    let Statement::Query(query) = tree else { return None };
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let into = select.into.as_ref()?;
    let is_temporary = into.temporary;
    let name = match &into.targets[..] {
        [Expr::Identifier(name)] => vec![name.clone()],
        [Expr::CompoundIdentifier(parts)] => parts.clone(),
        _ => return None,
    };
    select.into = None;
    Some((ObjectName::from(name), is_temporary))
}
