//! WITH RECURSIVE: queries that name themselves, or those behind them.

use super::binder::{Binder, Named, name_of};
use super::coerce::Bound;
use super::from::FromRows;
use super::items::{Bounded, Item, Untyped, identity};
use super::kinds::Willing;
use super::parts::is_written;
use super::sets::query_of;
use super::working::{Reference, Use, error, reference_error};
use crate::ir::{Input, QueryNumber, Recursive, Select};
use sqlparser::ast::{
    Cte, LimitClause, OrderByKind, Query, SetExpr, SetOperator, SetQuantifier, With,
};
use values::{Error, Position, Result, SqlState, Type};

/// The parts of a query that may be recursive.
struct Terms<'q> {
    first: &'q SetExpr,
    step: &'q SetExpr,
    all: bool,
}

impl Binder<'_> {
    /// The queries of WITH RECURSIVE, those first that others need.
    pub(super) fn with_recursive(&mut self, with: &With) -> Result<()> {
        let begin = self.named.len();
        for query in &with.cte_tables {
            self.name_for(query, Reference::Later);
        }
        let mut open: Vec<&Cte> = with.cte_tables.iter().collect();
        while !open.is_empty() {
            let mut later = Vec::new();
            for query in &open {
                let (queries, uses) = (self.queries.len(), self.recursion.uses.len());
                let named = self.named.len();
                match self.recursive_item(query) {
                    Ok(named) => self.named.push(named),
                    Err(_) if std::mem::take(&mut self.recursion.named_later) => {
                        self.queries.truncate(queries);
                        self.recursion.uses.truncate(uses);
                        self.named.truncate(named);
                        later.push(*query);
                    }
                    Err(error) => return Err(error),
                }
            }
            if later.len() == open.len() {
                let message = "mutual recursion between WITH items is not implemented";
                let at = self.position_of_name(&open[0].alias.name);
                return Err(Error::unsupported(message, "").at(at));
            }
            open = later;
        }
        self.named.drain(begin..begin + with.cte_tables.len());
        Ok(())
    }

    /// What the name of a query means from now on.
    fn name_for(&mut self, query: &Cte, reference: Reference) {
        self.named.push(Named {
            name: name_of(&query.alias.name),
            number: QueryNumber::at(0),
            columns: Vec::new(),
            reaches: usize::MAX,
            reference,
        });
    }

    /// Binds with a name that means something else meanwhile.
    fn named_as<T>(
        &mut self,
        query: &Cte,
        reference: Reference,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = self.named.len();
        self.name_for(query, reference);
        let result = work(self);
        self.named.truncate(before);
        result
    }

    fn recursive_item(&mut self, tree: &Cte) -> Result<Named> {
        if is_written(&tree.query) {
            return self.part(tree);
        }
        let Some(terms) = terms(&tree.query) else {
            let at = self.position_of_name(&tree.alias.name);
            return self.named_as(tree, Reference::Malformed(at), |binder| binder.item(tree));
        };
        let (queries, uses) = (self.queries.len(), self.recursion.uses.len());
        let before = std::mem::replace(&mut self.reaches, usize::MAX);
        let working = std::mem::take(&mut self.recursion.working);
        let found = self.apart(|binder| binder.recursive_query(tree, &terms));
        let reaches = std::mem::replace(&mut self.reaches, before);
        let needed = std::mem::replace(&mut self.recursion.working, working);
        match found? {
            Some(bound) => self.named_item(tree, bound, reaches, needed),
            None => {
                // It does not name itself, so it is a query as any other one.
                self.queries.truncate(queries);
                self.recursion.uses.truncate(uses);
                self.item(tree)
            }
        }
    }

    /// The rows of a query that names itself; `None` if it does not.
    fn recursive_query(&mut self, tree: &Cte, terms: &Terms<'_>) -> Result<Option<Bounded>> {
        let named = self.named.len();
        if let Some(with) = &tree.query.with {
            let refused = Reference::Refused("within a subquery");
            let before = self.named.len();
            self.name_for(tree, refused);
            self.with(with)?;
            self.named.remove(before);
        }
        let refused = Reference::Refused("within its non-recursive term");
        let first = query_of(terms.first);
        let first = self.named_as(tree, refused, |binder| binder.query(&first, Untyped::Text))?;
        let working = self.recursion.count;
        self.recursion.count = working.checked_add(1).ok_or_else(|| {
            Error::new(SqlState::STATEMENT_TOO_COMPLEX, "too many recursive queries")
        })?;
        let own = self.working_table(tree, &first.items, working)?;
        self.named.push(own);
        let uses = self.recursion.uses.len();
        let step = self.query(&query_of(terms.step), Untyped::Kept);
        self.named.truncate(named);
        let step = step?;
        let is_recursive = self.recursion.uses[uses..].iter().any(|own| own.working == working);
        self.recursion.uses.retain(|own| own.working != working);
        self.recursion.working.remove(&working);
        if !is_recursive {
            return Ok(None);
        }
        self.refuse_clauses(&tree.query)?;
        let step = self.of_types(tree, &first.items, step)?;
        let items = super::query::over_columns(first.items);
        let width = items.len();
        let first = self.push_query(first.plan)?;
        let step = self.push_query(step.plan)?;
        let input = Input::Recursive(Recursive { first, step, working, all: terms.all });
        let plan = self.plan(input, Select::of(identity(width)));
        Ok(Some(Bounded { plan, items, table: None }))
    }

    /// The rows of the last step as a query that can be named.
    fn working_table(&mut self, tree: &Cte, items: &[Item], working: u16) -> Result<Named> {
        let width = items.len();
        let plan = self.apart(|binder| {
            binder.recursion.working.insert(working);
            Ok(binder.plan(Input::Working(working), Select::of(identity(width))))
        })?;
        self.recursion.working.remove(&working);
        let expressions = self.recursion.expressions;
        Ok(Named {
            name: name_of(&tree.alias.name),
            number: self.push_query(plan)?,
            columns: self.with_columns(tree, items)?,
            reaches: usize::MAX,
            reference: Reference::Working(working, expressions),
        })
    }

    /// The step's columns as those of the first rows.
    fn of_types(&mut self, tree: &Cte, first: &[Item], mut step: Bounded) -> Result<Bounded> {
        if step.items.len() != first.len() {
            let message = "each UNION query must have the same number of columns";
            let at = step.items.first().and_then(|item| self.position_of_item(item));
            return Err(Error::new(SqlState::SYNTAX_ERROR, message).at(at));
        }
        for (at, own) in first.iter().enumerate() {
            let ty = own.bound.ty().unwrap_or(Type::Text);
            let item = &step.items[at];
            let position = self.position_of_item(own);
            let matched = self.matched("UNION", Some(ty), item.bound.ty());
            let matched = matched.map_err(|error| error.at(self.position_of_item(item)))?;
            if let Some(overall) = matched.filter(|overall| *overall != ty) {
                let name = name_of(&tree.alias.name);
                let message = format!(
                    "recursive query \"{name}\" column {} has type {} in non-recursive term but \
                     type {} overall",
                    at + 1,
                    ty.name(),
                    overall.name()
                );
                let hint = "Cast the output of the non-recursive term to the correct type.";
                let error = Error::new(SqlState::DATATYPE_MISMATCH, message).with_hint(hint);
                return Err(error.at(position));
            }
            let output = &mut step.plan.select.output[at];
            let bound = match item.bound.kind {
                Some(kind) => Bound::new(std::mem::take(&mut output.code), kind),
                None => item.bound.clone(),
            };
            *output = self.coerce(bound, ty, Willing::Implicit)?.expression();
        }
        Ok(step)
    }

    /// Refuses clauses behind the terms, which no recursive query has.
    fn refuse_clauses(&self, query: &Query) -> Result<()> {
        let order = match query.order_by.as_ref().map(|order| &order.kind) {
            Some(OrderByKind::Expressions(order)) => order.first().map(|each| &each.expr),
            _ => None,
        };
        let limit = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, .. }) => limit.as_ref(),
            _ => None,
        };
        let has_limit = query.limit_clause.is_some() || query.fetch.is_some();
        let refused = [
            (query.order_by.is_some(), "ORDER BY", order),
            (has_limit, "LIMIT", limit),
            (!query.locks.is_empty(), "FOR UPDATE/SHARE", None),
        ];
        match refused.iter().find(|(is_there, ..)| *is_there) {
            Some((_, name, expr)) => {
                let message = format!("{name} in a recursive query is not implemented");
                let position = expr.and_then(|expr| self.position(expr));
                Err(Error::unsupported(message, "").at(position))
            }
            None => Ok(()),
        }
    }

    /// Notes that a name of WITH stands in FROM.
    pub(super) fn use_reference(
        &mut self,
        named: &Named,
        position: Option<Position>,
    ) -> Result<()> {
        let name = &named.name;
        match &named.reference {
            Reference::Rows(working) => self.recursion.working.extend(working),
            Reference::Refused(place) => return Err(reference_error(name, place).at(position)),
            Reference::Malformed(at) => {
                let message = format!(
                    "recursive query \"{name}\" does not have the form non-recursive-term UNION \
                     [ALL] recursive-term"
                );
                return Err(error(message).at(*at));
            }
            Reference::Silent => {
                let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                return Err(Error::unsupported(message, "").at(position));
            }
            Reference::Later => {
                self.recursion.named_later = true;
                return Err(Error::unsupported("a query of WITH before its definition", ""));
            }
            Reference::Working(working, expressions) => {
                if self.recursion.expressions > *expressions {
                    return Err(reference_error(name, "within a subquery").at(position));
                }
                if self.recursion.uses.iter().any(|own| own.working == *working) {
                    return Err(reference_error(name, "more than once").at(position));
                }
                let (working, name) = (*working, name.clone());
                self.recursion.uses.push(Use { working, name, position });
                self.recursion.working.insert(working);
            }
        }
        Ok(())
    }

    /// Whether the rows are those of a working table.
    pub(super) fn is_working(&self, rows: &FromRows) -> bool {
        match rows {
            FromRows::Query(number) => {
                matches!(self.queries[usize::from(*number)].input, Input::Working(_))
            }
            _ => false,
        }
    }
}

/// The two terms of a query that may be recursive.
fn terms(query: &Query) -> Option<Terms<'_>> {
    let SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } =
        &*query.body
    else {
        return None;
    };
    let all = match set_quantifier {
        SetQuantifier::All => true,
        SetQuantifier::Distinct | SetQuantifier::None => false,
        _ => return None,
    };
    Some(Terms { first: left, step: right, all })
}
