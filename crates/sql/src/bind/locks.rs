//! FOR UPDATE and FOR SHARE. Nothing is locked, so that nothing waits or is left out; but rows of
//! tables are not locked where nothing may be written.

use super::binder::{Binder, name_of, table_name};
use sqlparser::ast::{
    Distinct, GroupByExpr, JoinOperator, LockClause, LockType, Select, SetExpr, TableFactor,
    TableWithJoins,
};
use values::{Error, Result, SqlState};

/// Refuses clauses of locks where rows of the answer are no rows of tables; `what` says why.
pub(super) fn refuse_locks(locks: &[LockClause], what: &str) -> Result<()> {
    match locks.first() {
        Some(lock) => Err(refused(lock.lock_type, &format!("is not allowed with {what}"))),
        None => Ok(()),
    }
}

/// Refuses clauses of locks of VALUES.
pub(super) fn refuse_locks_of_values(locks: &[LockClause]) -> Result<()> {
    let lock = locks.first().map(|lock| lock.lock_type);
    lock.map_or(Ok(()), |lock| Err(refused(lock, "cannot be applied to VALUES")))
}

/// Why rows of a select are no rows of tables, as far as its tree says it.
pub(super) fn without_rows(tree: &Select) -> Option<&'static str> {
    let is_grouped = !matches!(&tree.group_by,
        GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty());
    if tree.distinct.as_ref().is_some_and(|distinct| !matches!(distinct, Distinct::All)) {
        Some("DISTINCT clause")
    } else if is_grouped {
        Some("GROUP BY clause")
    } else {
        tree.having.as_ref().map(|_| "HAVING clause")
    }
}

fn refused(lock: LockType, why: &str) -> Error {
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, format!("FOR {lock} {why}"))
}

/// Refuses to lock an item of FROM that may be NULL, or whose rows are no rows of tables.
fn check_lockable(item: &TableFactor, lock: LockType, is_nullable: bool) -> Result<()> {
    if is_nullable {
        return Err(refused(lock, "cannot be applied to the nullable side of an outer join"));
    }
    let TableFactor::Derived { subquery, .. } = item else { return Ok(()) };
    let what = match &*subquery.body {
        SetExpr::SetOperation { .. } => Some("UNION/INTERSECT/EXCEPT"),
        SetExpr::Select(select) => without_rows(select),
        _ => None,
    };
    what.map_or(Ok(()), |what| Err(refused(lock, &format!("is not allowed with {what}"))))
}

/// The items of a FROM, and whether an outer join may fill them up with NULL.
fn items_of(tables: &TableWithJoins) -> Vec<(&TableFactor, bool)> {
    let mut items = vec![(&tables.relation, false)];
    for join in &tables.joins {
        use JoinOperator::{FullOuter, Left, LeftOuter, Right, RightOuter};
        let (fills_before, fills_own) = match &join.join_operator {
            Left(_) | LeftOuter(_) => (false, true),
            Right(_) | RightOuter(_) => (true, false),
            FullOuter(_) => (true, true),
            _ => (false, false),
        };
        items.iter_mut().for_each(|(_, is_nullable)| *is_nullable |= fills_before);
        items.push((&join.relation, fills_own));
    }
    items
}

impl Binder<'_> {
    /// Notes what the clauses of a query over `from` lock, and refuses FOR UPDATE OF what is not in
    /// FROM.
    pub(super) fn check_locked(
        &mut self,
        locks: &[LockClause],
        from: &[TableWithJoins],
    ) -> Result<()> {
        for LockClause { lock_type, of, nonblock: _ } in locks {
            let only = of.as_ref().map(table_name).transpose()?;
            if let (Some(name), Some(of)) = (&only, of)
                && !self.scope.has_table(name)
            {
                let message = format!(
                    "relation \"{name}\" in FOR {lock_type} clause not found in FROM clause"
                );
                return Err(Error::new(SqlState::UNDEFINED_TABLE, message).at(self.position(of)));
            }
            for (item, is_nullable) in from.iter().flat_map(items_of) {
                if self.has_rows_of(item, only.as_deref()) {
                    check_lockable(item, *lock_type, is_nullable)?;
                }
            }
            if from.iter().any(|tables| self.has_rows(tables, only.as_deref())) {
                self.locking.get_or_insert(match lock_type {
                    LockType::Update => "SELECT FOR UPDATE",
                    LockType::Share => "SELECT FOR SHARE",
                });
            }
        }
        Ok(())
    }

    /// Whether rows of a table are among these, of the item called `only` if it is given.
    fn has_rows(&self, tables: &TableWithJoins, only: Option<&str>) -> bool {
        let joined = tables.joins.iter().map(|join| &join.relation);
        std::iter::once(&tables.relation).chain(joined).any(|item| self.has_rows_of(item, only))
    }

    fn has_rows_of(&self, item: &TableFactor, only: Option<&str>) -> bool {
        let is_meant = |own: Option<String>| only.is_none_or(|only| own.as_deref() == Some(only));
        match item {
            TableFactor::Table { name, alias, args: None, .. } => {
                let own = name.0.last().and_then(|part| part.as_ident()).map(name_of);
                let is_named = own.as_ref().is_some_and(|own| {
                    name.0.len() == 1 && self.named.iter().any(|named| named.name == *own)
                });
                let called = alias.as_ref().map(|alias| name_of(&alias.name)).or(own);
                !is_named && is_meant(called)
            }
            TableFactor::Derived { subquery, alias, .. } => {
                is_meant(alias.as_ref().map(|alias| name_of(&alias.name)))
                    && self.reads_rows(&subquery.body)
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.has_rows(table_with_joins, only)
            }
            _ => false,
        }
    }

    fn reads_rows(&self, body: &SetExpr) -> bool {
        match body {
            SetExpr::Select(select) => select.from.iter().any(|tables| self.has_rows(tables, None)),
            SetExpr::Query(inner) => self.reads_rows(&inner.body),
            SetExpr::SetOperation { left, right, .. } => {
                self.reads_rows(left) || self.reads_rows(right)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, prepare};
    use crate::catalog::Catalog;
    use crate::parse::parse;

    #[test]
    fn rows_of_tables_are_locked_and_nothing_else() {
        let catalog = Catalog::open(std::iter::empty()).unwrap();
        let check = |text: &str, expected: Option<&str>| {
            let statement = &parse(text).unwrap()[0];
            let prepared = prepare(&catalog, statement, &Options::default()).unwrap();
            assert_eq!(prepared.locking, expected, "{text}");
        };
        let (update, share) = (Some("SELECT FOR UPDATE"), Some("SELECT FOR SHARE"));
        check("SELECT 1 FROM pg_class", None);
        check("SELECT 1 FROM pg_class FOR UPDATE", update);
        check("SELECT 1 FROM pg_class a JOIN pg_type b ON true FOR KEY SHARE OF b", share);
        check("SELECT 1 FROM (SELECT 2 FROM pg_class) x FOR SHARE", share);
        check("SELECT 1 FROM (SELECT 2 FROM pg_class FOR UPDATE) x", update);
        check("SELECT 1 WHERE EXISTS (SELECT FROM pg_class FOR UPDATE)", update);
        check("WITH w AS (SELECT 2 FROM pg_class) SELECT 1 FROM w FOR UPDATE", None);
        check("WITH w AS (SELECT 2 FROM pg_class FOR UPDATE) SELECT 1 FROM w", update);
        check("SELECT 1 FROM generate_series(1, 2) a FOR UPDATE", None);
        check("SELECT 1 FROM (SELECT 2) x, pg_class y FOR UPDATE OF x", None);
        check("SELECT 1 FROM pg_class FOR READ ONLY", None);
    }
}
