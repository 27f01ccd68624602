//! FOR UPDATE and FOR SHARE: a query claims the rows of tables that its answer is made of. A
//! condition passes by rows that others have claimed, where SKIP LOCKED says so, and the first
//! column of the answer claims what is left, as it is computed once for each row of the answer.

use super::binder::{Binder, name_of, own_name};
use super::coerce::Bound;
use super::conditions::Conjunct;
use super::from::{FromItem, FromRows};
use super::operators::joined;
use crate::ir::{
    Claim, ClaimKey, ColumnNumber, Expression, Function, Input, ItemRows, JoinKind, KeyColumn,
    Kind, Op, Query, QueryNumber, Relation, Select, Strength, Value, Wait,
};
use crate::parse::strength_of;
use sqlparser::ast::{
    Distinct, GroupByExpr, Ident, JoinOperator, LockClause, LockType, NonBlock, Select as Tree,
    SetExpr, TableFactor, TableWithJoins,
};
use values::{Datum, Error, Result, SqlState, Type};

/// A clause of locks.
struct Clause<'t> {
    strength: Strength,
    wait: Wait,
    /// The tables that it names, and the words that do; `None` if it is for all.
    of: Option<Vec<(String, Option<&'t Ident>)>>,
}

impl<'t> Clause<'t> {
    fn of(lock: &'t LockClause) -> Result<Clause<'t>> {
        let plain = match lock.lock_type {
            LockType::Update => Strength::Update,
            LockType::Share => Strength::Share,
        };
        let wait = match lock.nonblock {
            None => Wait::Wait,
            Some(NonBlock::SkipLocked) => Wait::Skip,
            Some(NonBlock::Nowait) => Wait::Fail,
        };
        let Some(name) = &lock.of else { return Ok(Clause { strength: plain, wait, of: None }) };
        let mut idents = name.0.iter().filter_map(|part| part.as_ident());
        let Some(strength) = name.0.first().and_then(|part| part.as_ident()).and_then(strength_of)
        else {
            let of = Some(vec![(own_name(name)?, idents.next_back())]);
            return Ok(Clause { strength: plain, wait, of });
        };
        let named: Vec<_> = idents.skip(1).map(|ident| (name_of(ident), Some(ident))).collect();
        Ok(Clause { strength, wait, of: (!named.is_empty()).then_some(named) })
    }

    /// Whether it is for a table that is called so.
    fn names(&self, name: Option<&str>) -> bool {
        let is_named =
            |of: &Vec<(String, _)>| name.is_some_and(|name| of.iter().any(|own| own.0 == name));
        self.of.as_ref().is_none_or(is_named)
    }
}

/// A table whose rows a query claims.
pub(super) struct LockedRow {
    /// The columns of its primary key in the row.
    key: Vec<ColumnNumber>,
    claim: Claim,
}

/// Which tables of a query are locked, and how.
struct Lock {
    strength: Strength,
    wait: Wait,
    /// Their first columns; `None` if all of them are.
    begins: Option<Vec<usize>>,
}

impl Lock {
    /// The part of it that is for columns from `begin` on and before `end`, which begin at 0 then.
    fn within(&self, begin: usize, end: usize) -> Option<Lock> {
        let begins = self.begins.as_ref().map(|begins| {
            let own = begins.iter().filter(|own| (begin..end).contains(*own));
            own.map(|own| own - begin).collect::<Vec<_>>()
        });
        let is_none = begins.as_ref().is_some_and(Vec::is_empty);
        (!is_none).then_some(Lock { begins, ..*self })
    }
}

impl LockedRow {
    fn of(relation: &Relation, begin: usize, strength: Strength, wait: Wait) -> LockedRow {
        let column = |at: ColumnNumber| ColumnNumber::at(begin + usize::from(at));
        let key = relation.primary.iter().map(|key| column(key.column)).collect();
        let claim_key = |key: &KeyColumn| ClaimKey {
            descending: key.descending,
            nulls_first: key.nulls_first,
            nullable: relation.is_nullable(key),
        };
        let claimed = relation.primary.iter().map(claim_key).collect();
        let claim = Claim { relation: relation.id, key: claimed, strength, wait };
        LockedRow { key, claim }
    }

    /// The condition that passes by rows which others have claimed, if it does.
    pub(super) fn condition(&self) -> Option<Conjunct> {
        (self.claim.wait == Wait::Skip).then(|| {
            let code = self.code(Op::Unclaimed(Box::new(self.claim.clone())));
            let bound = Bound::new(code, Kind::plain(Type::Bool));
            Conjunct { bound, notes: Vec::new() }
        })
    }

    fn code(&self, op: Op) -> Vec<Op> {
        self.key.iter().map(|column| Op::Column(*column)).chain([op]).collect()
    }
}

/// Lets a query claim rows as it computes its answer.
pub(super) fn claim_rows(select: &mut Select, locked: &[LockedRow]) {
    if locked.is_empty() {
        return;
    }
    let claims = locked.iter().flat_map(|row| row.code(Op::Claim(Box::new(row.claim.clone()))));
    match select.output.first_mut() {
        Some(first) => first.code.extend(claims),
        None => {
            // What follows is as true as without it.
            let mut code = vec![Op::Constant(Value(Datum::Bool(true)))];
            code.extend(claims);
            select.having = Some(Expression { code });
        }
    }
}

/// Refuses clauses of locks where rows of the answer are no rows of tables; `what` says why.
pub(super) fn refuse_locks(locks: &[LockClause], what: &str) -> Result<()> {
    match locks.first() {
        Some(lock) => {
            Err(refused(Clause::of(lock)?.strength, &format!("is not allowed with {what}")))
        }
        None => Ok(()),
    }
}

/// Refuses clauses of locks of VALUES.
pub(super) fn refuse_locks_of_values(locks: &[LockClause]) -> Result<()> {
    let lock = locks.first().map(Clause::of).transpose()?;
    lock.map_or(Ok(()), |lock| Err(refused(lock.strength, "cannot be applied to VALUES")))
}

/// Why rows of a select are no rows of tables, as far as its tree says it.
pub(super) fn without_rows(tree: &Tree) -> Option<&'static str> {
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

/// Why rows of a query are no rows of tables.
fn without_rows_of(query: &Query) -> Option<&'static str> {
    match (&query.input, &query.select) {
        (Input::Set(_, steps), _) if !steps.is_empty() => Some("UNION/INTERSECT/EXCEPT"),
        (Input::Windows(_), _) => Some("window functions"),
        (Input::Distinct(..), _) | (_, Select { distinct: true, .. }) => Some("DISTINCT clause"),
        (_, Select { group: Some(group), .. }) if group.keys.is_empty() => {
            Some("aggregate functions")
        }
        (_, Select { group: Some(_), .. }) => Some("GROUP BY clause"),
        _ => None,
    }
}

fn refused(lock: Strength, why: &str) -> Error {
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, format!("FOR {lock} {why}"))
}

const NULLABLE: &str = "cannot be applied to the nullable side of an outer join";

/// Refuses to lock an item of FROM that may be NULL, or whose rows are no rows of tables.
fn check_lockable(item: &TableFactor, lock: Strength, is_nullable: bool) -> Result<()> {
    if is_nullable {
        return Err(refused(lock, NULLABLE));
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
    /// The tables whose rows the clauses of a query over `tree` lock, which is bound as `from`.
    /// Refuses FOR UPDATE OF what is not in FROM.
    pub(super) fn locked(
        &mut self,
        locks: &[LockClause],
        tree: &[TableWithJoins],
        from: &[FromItem],
    ) -> Result<Vec<LockedRow>> {
        let clauses = locks.iter().map(Clause::of).collect::<Result<Vec<_>>>()?;
        for clause in &clauses {
            self.check_clause(clause, tree)?;
        }
        let mut locked = Vec::new();
        for item in from {
            let mut lock: Option<Lock> = None;
            for clause in &clauses {
                let begin = |(name, _): &(String, _)| self.scope.begin_of(name);
                let begins = clause.of.as_ref().map(|of| of.iter().filter_map(begin).collect());
                let own = Lock { strength: clause.strength, wait: clause.wait, begins };
                let Some(own) = own.within(item.begin, item.begin + item.width.max(1)) else {
                    continue;
                };
                lock = Some(match lock {
                    None => own,
                    Some(lock) => Lock {
                        strength: lock.strength.max(own.strength),
                        wait: lock.wait.max(own.wait),
                        begins: lock
                            .begins
                            .zip(own.begins)
                            .map(|(one, other)| [one, other].concat()),
                    },
                });
            }
            let Some(lock) = lock else { continue };
            match &item.rows {
                FromRows::Table(relation) => {
                    let (strength, wait) = (lock.strength, lock.wait);
                    locked.push(LockedRow::of(relation, item.begin, strength, wait));
                }
                FromRows::Query(number) | FromRows::Lateral(number) => {
                    self.lock_query(*number, &lock)?;
                }
            }
        }
        Ok(locked)
    }

    /// Lets a query of FROM, which is no table, claim the rows of its own tables.
    fn lock_query(&mut self, number: QueryNumber, lock: &Lock) -> Result<()> {
        if self.of_with.contains(&number) {
            return Ok(());
        }
        let query = &self.queries[usize::from(number)];
        if let Some(what) = without_rows_of(query) {
            return Err(refused(lock.strength, &format!("is not allowed with {what}")));
        }
        let (mut locked, mut inner) = (Vec::new(), Vec::new());
        let row = |relation, begin| LockedRow::of(relation, begin, lock.strength, lock.wait);
        match &query.input {
            Input::Source => {
                locked.extend(query.select.source.relation.iter().map(|own| row(own, 0)))
            }
            Input::Set(first, _) => inner.push((*first, Lock { begins: None, ..*lock })),
            Input::Joins(joins) => {
                for (at, item) in joins.items.iter().enumerate() {
                    let begin = usize::from(item.begin);
                    let Some(own) = lock.within(begin, begin + usize::from(item.width).max(1))
                    else {
                        continue;
                    };
                    let behind = joins.items[at + 1..].iter().map(|item| item.kind);
                    let fills = |kind: JoinKind| kind.keeps_own();
                    if item.kind.keeps_other() || behind.clone().any(fills) {
                        return Err(refused(lock.strength, NULLABLE));
                    }
                    match &item.rows {
                        ItemRows::Table(source) => {
                            locked.extend(source.relation.iter().map(|own| row(own, begin)));
                        }
                        ItemRows::Query(number) => inner.push((*number, own)),
                    }
                }
            }
            _ => {}
        }
        for (number, lock) in inner {
            self.lock_query(number, &lock)?;
        }
        let query = &mut self.queries[usize::from(number)];
        for condition in locked.iter().filter_map(LockedRow::condition) {
            let filter = match &mut query.input {
                Input::Joins(joins) => joins.items.last_mut().map(|item| &mut item.filter),
                _ => Some(&mut query.select.source.filter),
            };
            let Some(filter) = filter else { continue };
            let both = match filter.take() {
                Some(before) => {
                    let before = Bound::new(before.code, Kind::plain(Type::Bool));
                    joined(before, condition.bound, false, Function::And)
                }
                None => condition.bound,
            };
            *filter = Some(both.expression());
        }
        claim_rows(&mut query.select, &locked);
        Ok(())
    }

    /// Notes what a clause of a query over `from` locks, and refuses what it cannot lock.
    fn check_clause(&mut self, clause: &Clause<'_>, from: &[TableWithJoins]) -> Result<()> {
        let strength = clause.strength;
        for (name, ident) in clause.of.iter().flatten() {
            if !self.scope.has_table(name) {
                let message = format!(
                    "relation \"{name}\" in FOR {strength} clause not found in FROM clause"
                );
                let at = ident.and_then(|ident| self.position_of_name(ident));
                return Err(Error::new(SqlState::UNDEFINED_TABLE, message).at(at));
            }
        }
        for (item, is_nullable) in from.iter().flat_map(items_of) {
            if self.has_rows_of(item, Some(clause)) {
                check_lockable(item, strength, is_nullable)?;
            }
        }
        if from.iter().any(|tables| self.has_rows(tables, Some(clause))) {
            self.locking.get_or_insert(match strength {
                Strength::Update => "SELECT FOR UPDATE",
                Strength::NoKeyUpdate => "SELECT FOR NO KEY UPDATE",
                Strength::Share => "SELECT FOR SHARE",
                Strength::KeyShare => "SELECT FOR KEY SHARE",
            });
        }
        Ok(())
    }

    /// Whether rows of a table are among these, of the items that a clause is for if it is given.
    fn has_rows(&self, tables: &TableWithJoins, clause: Option<&Clause<'_>>) -> bool {
        let joined = tables.joins.iter().map(|join| &join.relation);
        std::iter::once(&tables.relation).chain(joined).any(|item| self.has_rows_of(item, clause))
    }

    fn has_rows_of(&self, item: &TableFactor, clause: Option<&Clause<'_>>) -> bool {
        let is_meant =
            |own: Option<String>| clause.is_none_or(|clause| clause.names(own.as_deref()));
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
                self.has_rows(table_with_joins, clause)
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
        let key_share = Some("SELECT FOR KEY SHARE");
        check("SELECT 1 FROM pg_class", None);
        check("SELECT 1 FROM pg_class FOR UPDATE", update);
        check("SELECT 1 FROM pg_class a JOIN pg_type b ON true FOR KEY SHARE OF b", key_share);
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
