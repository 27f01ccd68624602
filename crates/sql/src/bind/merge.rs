//! MERGE as a statement with parts that write: one for each action. All of them read what was there
//! before the statement, so their order changes nothing but which error is told first.

use super::binder::{name_of, unsupported};
use super::door::refuse;
use sqlparser::ast::{
    BinaryOperator, Cte, Delete, Expr, FromTable, Ident, Insert, Merge, MergeAction, MergeClause,
    MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, MergeUpdateKind,
    ObjectName, Query, Select, SelectItem, SetExpr, Statement as Tree, TableFactor, TableObject,
    TableWithJoins, Update, UpdateTableFromKind, Values,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};
use values::{Error, Result, SqlState};

/// The most clauses of a statement: each repeats the condition, and those before it.
const CLAUSES_MAX: usize = 16;

/// Functions with another result at each call.
const VOLATILE: [&str; 5] = ["random", "gen_random_uuid", "uuid_generate_v4", "nextval", "setval"];

/// The statement that does what MERGE says.
pub(super) fn as_written(merge: &Merge) -> Result<Tree> {
    let Merge { merge_token: _, optimizer_hints, into, table, source, on: _, clauses, output } =
        merge;
    refuse(&[
        (!optimizer_hints.is_empty() || !into, "this form of MERGE"),
        (output.is_some(), "MERGE with RETURNING"),
    ])?;
    if clauses.len() > CLAUSES_MAX {
        let message = format!("MERGE has more than {CLAUSES_MAX} clauses");
        return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    if clauses.len() > 1 {
        check_repeated(merge)?;
    }
    let TableFactor::Table { name, .. } = table else {
        return Err(unsupported("MERGE into what is no table"));
    };
    let merging = Merging { merge, name, source: vec![alone(source)] };
    let mut parts = merging.parts()?;
    let (first, mut query) = template("WITH p AS (DELETE FROM t WHERE false) DELETE FROM t")?;
    let named = |tree: Tree, at: usize| {
        let mut part = first.clone();
        // No statement names them.
        part.alias.name = Ident::with_quote('"', format!("merge {at}"));
        part.query.body = Box::new(body(tree));
        part
    };
    // A statement without an action has one that finds nothing.
    let last = parts.pop().unwrap_or(merging.nothing()?);
    let others: Vec<Cte> = [merging.nothing()?]
        .into_iter()
        .chain(parts)
        .zip(0..)
        .map(|(tree, at)| named(tree, at))
        .collect();
    if let Some(with) = &mut query.with {
        with.cte_tables = others;
    }
    query.body = Box::new(body(last));
    Ok(Tree::Query(query))
}

/// Refuses functions with another result at each call in what several parts repeat: the source and
/// the conditions.
fn check_repeated(merge: &Merge) -> Result<()> {
    let conditions = merge.clauses.iter().filter_map(|clause| clause.predicate.as_ref());
    let repeated = conditions.chain([&*merge.on]).map(ToString::to_string);
    for text in repeated.chain([merge.source.to_string()]) {
        let mut tokens =
            Tokenizer::new(&PostgreSqlDialect {}, &text).tokenize().map_err(|_| bug())?;
        tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
        let is_volatile = |pair: &&[Token]| match pair {
            [Token::Word(word), Token::LParen] => VOLATILE.contains(&&*word.value.to_lowercase()),
            _ => false,
        };
        if let Some([Token::Word(word), _]) = tokens.windows(2).find(is_volatile) {
            let message = format!("{}() in the source or a condition of MERGE", word.value);
            let hint = "Put its results into a temporary table before.";
            return Err(Error::unsupported(message, hint));
        }
    }
    Ok(())
}

fn body(tree: Tree) -> SetExpr {
    match tree {
        Tree::Insert(_) => SetExpr::Insert(tree),
        Tree::Update(_) => SetExpr::Update(tree),
        tree => SetExpr::Delete(tree),
    }
}

fn alone(relation: &TableFactor) -> TableWithJoins {
    TableWithJoins { relation: relation.clone(), joins: Vec::new() }
}

fn bug() -> Error {
    Error::new(SqlState::INTERNAL, "a template of MERGE has another form")
}

/// The tree of a statement whose parts are replaced.
fn parsed(text: &str) -> Result<Tree> {
    let mut trees = Parser::parse_sql(&PostgreSqlDialect {}, text).map_err(|_| bug())?;
    trees.pop().ok_or_else(bug)
}

fn template(text: &str) -> Result<(Cte, Box<Query>)> {
    let Tree::Query(query) = parsed(text)? else { return Err(bug()) };
    let part = query.with.as_ref().and_then(|with| with.cte_tables.first());
    Ok((part.cloned().ok_or_else(bug)?, query))
}

fn both(left: Expr, right: Expr) -> Expr {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op: BinaryOperator::And, right: nested(right) }
}

/// A statement while it becomes parts.
struct Merging<'m> {
    merge: &'m Merge,
    name: &'m ObjectName,
    source: Vec<TableWithJoins>,
}

impl Merging<'_> {
    /// The actions, those that remove rows first and those that add some last.
    fn parts(&self) -> Result<Vec<Tree>> {
        // The conditions of the clauses so far, by whether they are about rows that match.
        let mut before: [Vec<&Expr>; 2] = [Vec::new(), Vec::new()];
        let mut is_decided = [false; 2];
        let (mut removing, mut changing, mut adding) = (Vec::new(), Vec::new(), Vec::new());
        for MergeClause { when_token: _, clause_kind, predicate, action } in &self.merge.clauses {
            let is_matched = match clause_kind {
                MergeClauseKind::Matched => true,
                MergeClauseKind::NotMatched => false,
                MergeClauseKind::NotMatchedByTarget | MergeClauseKind::NotMatchedBySource => {
                    return Err(unsupported("WHEN NOT MATCHED BY"));
                }
            };
            let side = usize::from(is_matched);
            if is_decided[side] {
                let message = "unreachable WHEN clause specified after unconditional WHEN clause";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            let own = before[side].iter().fold(predicate.clone(), |own, earlier| {
                let others = Expr::IsNotTrue(Box::new(Expr::Nested(Box::new((*earlier).clone()))));
                Some(match own {
                    Some(own) => both(others, own),
                    None => others,
                })
            });
            match (action, is_matched) {
                (MergeAction::DoNothing { do_token: _, nothing_token: _ }, _) => {}
                (MergeAction::Delete { delete_token: _ }, true) => removing.push(self.delete(own)?),
                (MergeAction::Update(update), true) => changing.push(self.update(update, own)?),
                (MergeAction::Insert(insert), false) => adding.push(self.insert(insert, own)?),
                (action, _) => {
                    let shown = action.to_string();
                    let word = shown.split_whitespace().next().unwrap_or_default();
                    let message = format!("syntax error at or near \"{word}\"");
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
            }
            match predicate {
                Some(predicate) => before[side].push(predicate),
                None => is_decided[side] = true,
            }
        }
        Ok(removing.into_iter().chain(changing).chain(adding).collect())
    }

    /// The condition for rows that match.
    fn matched(&self, own: Option<Expr>) -> Expr {
        let on = (*self.merge.on).clone();
        match own {
            Some(own) => both(on, own),
            None => on,
        }
    }

    /// What finds no row, and looks at the target all the same.
    fn nothing(&self) -> Result<Tree> {
        let mut tree = parsed("DELETE FROM t WHERE false")?;
        let Tree::Delete(delete) = &mut tree else { return Err(bug()) };
        delete.from = FromTable::WithFromKeyword(vec![alone(&self.merge.table)]);
        Ok(tree)
    }

    fn delete(&self, own: Option<Expr>) -> Result<Tree> {
        let mut tree = self.nothing()?;
        let Tree::Delete(Delete { using, selection, .. }) = &mut tree else { return Err(bug()) };
        (*using, *selection) = (Some(self.source.clone()), Some(self.matched(own)));
        Ok(tree)
    }

    fn update(&self, written: &MergeUpdateExpr, own: Option<Expr>) -> Result<Tree> {
        let MergeUpdateExpr { update_token: _, kind, update_predicate, delete_predicate } = written;
        let has_more = update_predicate.is_some() || delete_predicate.is_some();
        refuse(&[(has_more, "this form of MERGE")])?;
        let MergeUpdateKind::Set(list) = kind else {
            return Err(unsupported("this form of MERGE"));
        };
        let mut tree = parsed("UPDATE t SET a = 1 FROM s WHERE true")?;
        let Tree::Update(Update { table, assignments, from, selection, .. }) = &mut tree else {
            return Err(bug());
        };
        *table = alone(&self.merge.table);
        assignments.clone_from(list);
        *from = Some(UpdateTableFromKind::AfterSet(self.source.clone()));
        *selection = Some(self.matched(own));
        Ok(tree)
    }

    fn insert(&self, written: &MergeInsertExpr, own: Option<Expr>) -> Result<Tree> {
        let MergeInsertExpr { insert_token: _, columns, kind_token: _, kind, insert_predicate } =
            written;
        refuse(&[(insert_predicate.is_some(), "this form of MERGE")])?;
        let MergeInsertKind::Values(Values { explicit_row: _, value_keyword: _, rows }) = kind
        else {
            return Err(unsupported("this form of MERGE"));
        };
        let [row] = &rows[..] else {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "MERGE inserts one row of values"));
        };
        let (names, values) = without_defaults(columns, &row.content)?;
        let text = "INSERT INTO t SELECT 1 FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE true)";
        let mut tree = parsed(text)?;
        let Tree::Insert(Insert { table, columns, source: Some(query), .. }) = &mut tree else {
            return Err(bug());
        };
        *table = TableObject::TableName(self.name.clone());
        *columns = names;
        let SetExpr::Select(select) = &mut *query.body else { return Err(bug()) };
        select.projection = values.into_iter().map(SelectItem::UnnamedExpr).collect();
        select.from.clone_from(&self.source);
        let selection = select.selection.take().ok_or_else(bug)?;
        let missing = self.missing(selection)?;
        select.selection = Some(match own {
            Some(own) => both(missing, own),
            None => missing,
        });
        Ok(tree)
    }

    /// The condition that no row of the target matches.
    fn missing(&self, template: Expr) -> Result<Expr> {
        let mut selection = template;
        let subquery = match &mut selection {
            Expr::Exists { subquery, .. } => subquery,
            Expr::UnaryOp { expr, .. } => match &mut **expr {
                Expr::Exists { subquery, .. } => subquery,
                _ => return Err(bug()),
            },
            _ => return Err(bug()),
        };
        let SetExpr::Select(select) = &mut *subquery.body else { return Err(bug()) };
        let Select { from, selection: condition, .. } = &mut **select;
        *from = vec![alone(&self.merge.table)];
        *condition = Some((*self.merge.on).clone());
        Ok(selection)
    }
}

/// The columns and values of a row, without those that are DEFAULT.
fn without_defaults(columns: &[ObjectName], row: &[Expr]) -> Result<(Vec<ObjectName>, Vec<Expr>)> {
    let is_default = |expr: &Expr| match expr {
        Expr::Identifier(word) => word.quote_style.is_none() && name_of(word) == "default",
        _ => false,
    };
    if !row.iter().any(is_default) {
        return Ok((columns.to_vec(), row.to_vec()));
    }
    if columns.len() != row.len() {
        let message = "DEFAULT in MERGE without a list of columns is not supported";
        return Err(Error::unsupported(message, "Name the columns, without that one."));
    }
    let kept = columns.iter().zip(row).filter(|(_, value)| !is_default(value));
    let (names, values): (Vec<_>, Vec<_>) =
        kept.map(|(name, value)| (name.clone(), value.clone())).unzip();
    if names.is_empty() {
        return Err(Error::unsupported("MERGE of a row of defaults is not supported", ""));
    }
    Ok((names, values))
}
