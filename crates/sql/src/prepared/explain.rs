//! How a plan finds, joins, groups and sorts its rows.

use super::shown::Step;
use crate::catalog::Catalog;
use crate::ir::{
    Access, Action, Composed, Expression, Function, Input, Insert, InsertRows, Item, ItemRows,
    JoinKind, Joins, Main, Method, Op, Plan, Query, QueryNumber, Relation, Select, SetOperator,
    Source, Writing,
};
use crate::system::{Writer, expression_text, key_text};
use std::collections::BTreeSet;

/// The plan as lines of text, in PostgreSQL's words where they mean the same.
pub fn explain(catalog: &Catalog, plan: &Plan) -> Vec<String> {
    let mut explained = Explained { catalog, queries: &[], seen: BTreeSet::new() };
    explained.plan(plan).lines()
}

struct Explained<'p> {
    catalog: &'p Catalog,
    queries: &'p [Query],
    /// Queries that have been shown: those of WITH may be read several times.
    seen: BTreeSet<QueryNumber>,
}

impl<'p> Explained<'p> {
    fn plan(&mut self, plan: &'p Plan) -> Step {
        match plan {
            Plan::Select(select) => self.select(select, None),
            Plan::Insert(insert) => self.insert(insert),
            Plan::Update(update) => self.change("Update", &update.source),
            Plan::Delete(delete) => self.change("Delete", &delete.source),
            Plan::Composed(composed) => self.composed(composed),
            Plan::Guarded(guarded) => {
                let step = self.plan(&guarded.plan);
                let names: Vec<&str> = guarded.keys.iter().map(|key| key.name.as_str()).collect();
                step.with("Foreign Keys", Some(names.join(", ")))
            }
            Plan::Writing(writing) => self.writing(writing),
        }
    }

    /// The statement itself, with the parts that it has in its WITH below.
    fn writing(&mut self, writing: &'p Writing) -> Step {
        self.queries = &writing.queries;
        let mut steps: Vec<Step> = writing.parts.iter().map(|part| self.main(&part.main)).collect();
        let mut last = steps.pop().unwrap_or_else(|| Step::new("Result", Vec::new()));
        let parts = steps.into_iter().enumerate();
        last.below.extend(parts.map(|(at, step)| Step::new(format!("CTE {}", at + 1), vec![step])));
        last
    }

    fn composed(&mut self, composed: &'p Composed) -> Step {
        self.queries = &composed.queries;
        self.main(&composed.main)
    }

    fn main(&mut self, main: &'p Main) -> Step {
        match main {
            Main::Query(number) => self.query(*number),
            Main::Insert(insert) => self.insert(insert),
            Main::Update(update) => self.change("Update", &update.source),
            Main::Delete(delete) => self.change("Delete", &delete.source),
            Main::Change(change) => {
                let word = if change.assignments.is_some() { "Update" } else { "Delete" };
                let below = vec![self.query(change.rows)];
                Step::new(format!("{word} on {}", change.relation.name), below)
            }
        }
    }

    fn insert(&mut self, insert: &'p Insert) -> Step {
        let below = match &insert.rows {
            InsertRows::Listed(rows) if rows.len() == 1 => Step::new("Result", Vec::new()),
            InsertRows::Listed(_) => Step::new("Values Scan", Vec::new()),
            InsertRows::Queried(select, _) => self.select(select, None),
            InsertRows::Composed(number, _) => self.query(*number),
            InsertRows::Copied(..) => Step::new("Copied Rows", Vec::new()),
        };
        let conflict = insert.conflict.as_ref().map(|conflict| match conflict.action {
            Action::Nothing => "NOTHING".to_owned(),
            Action::Update { .. } => "UPDATE".to_owned(),
        });
        Step::new(format!("Insert on {}", insert.relation.name), vec![below])
            .with("Conflict Resolution", conflict)
    }

    fn change(&mut self, word: &str, source: &'p Source) -> Step {
        let name = source.relation.as_ref().map_or("", |relation| &relation.name);
        let mut step = self.source(source);
        self.subqueries(|each| source.each_expression(each), source.access.query(), &mut step);
        Step::new(format!("{word} on {name}"), vec![step])
    }

    fn query(&mut self, number: QueryNumber) -> Step {
        let Some(query) = self.queries.get(usize::from(number)) else {
            return Step::new("Result", Vec::new());
        };
        if !self.seen.insert(number) {
            return Step::new(format!("CTE Scan on query {}", usize::from(number) + 1), Vec::new());
        }
        self.select(&query.select, Some(&query.input))
    }

    /// A query: what its rows come from, and what is done with them.
    fn select(&mut self, select: &'p Select, input: Option<&'p Input>) -> Step {
        let mut step = match input {
            None | Some(Input::Source) => self.source(&select.source),
            Some(input) => self.input(input),
        };
        let query = select.source.access.query();
        self.subqueries(|each| select.each_expression(each), query, &mut step);
        let relation = match (input, &select.source.relation) {
            (None | Some(Input::Source), Some(relation)) if select.group.is_none() => {
                Some(relation)
            }
            _ => None,
        };
        if let Some(group) = &select.group {
            let own = select.source.relation.as_ref();
            let keys: Option<Vec<String>> =
                group.keys.iter().map(|key| self.text(own, key)).collect();
            let keys = keys.filter(|keys| !keys.is_empty()).map(|keys| keys.join(", "));
            let title = if group.keys.is_empty() { "Aggregate" } else { "HashAggregate" };
            step = Step::new(title, vec![step]).with("Group Key", keys);
        }
        if select.having.is_some() && select.group.is_some() {
            step = step.with("Filter", Some("HAVING".to_owned()));
        }
        if select.distinct {
            step = Step::new("Unique", vec![step]);
        }
        if !select.sort.is_empty() {
            let key = |key: &crate::ir::SortKey| {
                let order = if key.descending { " DESC" } else { "" };
                self.text(relation, &key.value).map(|text| text + order)
            };
            let keys: Option<Vec<String>> = select.sort.iter().map(key).collect();
            step = Step::new("Sort", vec![step]).with("Sort Key", keys.map(|keys| keys.join(", ")));
        }
        if select.output.iter().chain(&select.having).any(|each| each.claims().next().is_some()) {
            step = Step::new("LockRows", vec![step]);
        }
        if select.limit.is_some() || select.offset.is_some() {
            step = Step::new("Limit", vec![step]);
        }
        step
    }

    fn input(&mut self, input: &'p Input) -> Step {
        match input {
            Input::Source => Step::new("Result", Vec::new()),
            Input::Values(_) => Step::new("Values Scan", Vec::new()),
            Input::Set(first, steps) => {
                let is_append =
                    |step: &crate::ir::SetStep| step.operator == SetOperator::Union && step.all;
                let mut whole = self.query(*first);
                if steps.is_empty() {
                    return whole;
                }
                if steps.iter().all(is_append) {
                    let rest = steps.iter().map(|step| self.query(step.query));
                    let below = [whole].into_iter().chain(rest).collect();
                    return Step::new("Append", below);
                }
                for step in steps {
                    let all = if step.all { " All" } else { "" };
                    let other = self.query(step.query);
                    whole =
                        Step::new(format!("SetOp {:?}{all}", step.operator), vec![whole, other]);
                }
                whole
            }
            Input::Joins(joins) => self.joins(joins),
            Input::System(name) => Step::new(format!("Seq Scan on {name}"), Vec::new()),
            Input::Functions(..) => Step::new("Function Scan", Vec::new()),
            Input::Windows(windows) => Step::new("WindowAgg", vec![self.query(windows.rows)]),
            Input::Distinct(query, _) => Step::new("Unique", vec![self.query(*query)]),
            Input::Recursive(recursive) => {
                let below = vec![self.query(recursive.first), self.query(recursive.step)];
                Step::new("Recursive Union", below)
            }
            Input::Working(_) => Step::new("WorkTable Scan", Vec::new()),
            Input::Returned(part) => {
                Step::new(format!("CTE Scan on part {}", part + 1), Vec::new())
            }
        }
    }

    fn joins(&mut self, joins: &'p Joins) -> Step {
        let mut whole: Option<Step> = None;
        for item in &joins.items {
            let own = match &item.rows {
                ItemRows::Table(source) => self.source(source),
                ItemRows::Query(number) => self.query(*number),
            };
            whole = Some(match whole {
                None => own,
                Some(before) => Step::new(title_of_join(item), vec![before, own]),
            });
        }
        whole.unwrap_or_else(|| Step::new("Result", Vec::new()))
    }

    /// The rows of a table, or one row without columns.
    fn source(&mut self, source: &'p Source) -> Step {
        let Some(relation) = &source.relation else {
            return Step::new("Result", Vec::new());
        };
        let filter = source.filter.as_ref().and_then(without_claims);
        let shown = filter.and_then(|filter| self.text(Some(relation), &filter));
        let shown = shown.map(|text| format!("({text})"));
        let access = &source.access;
        if access.is_whole() {
            return Step::new(format!("Seq Scan on {}", relation.name), Vec::new())
                .with("Filter", shown);
        }
        let index = access.index.and_then(|at| relation.indexes.get(usize::from(at)));
        let name = index.map_or(&relation.primary_name, |index| &index.name);
        let is_backward = access.order.is_some_and(|order| order.is_backward);
        let backward = if is_backward { " Backward" } else { "" };
        let conditions = self.index_conditions(relation, access);
        let conditions =
            (!conditions.is_empty()).then(|| format!("({})", conditions.join(" AND ")));
        Step::new(format!("Index Scan{backward} using {name} on {}", relation.name), Vec::new())
            .with("Index Cond", conditions)
            .with("Filter", shown)
    }

    /// What a key is searched for. Values are of the row itself, or of those before it in a join:
    /// there are no names for these.
    fn index_conditions(&self, relation: &Relation, access: &Access) -> Vec<String> {
        let index = access.index.and_then(|at| relation.indexes.get(usize::from(at)));
        let key = index.map_or(&relation.primary, |index| &index.columns);
        let column = |at: usize| {
            let behind = || relation.primary.get(at.checked_sub(key.len())?);
            let Some(key) = key.get(at).or_else(behind) else { return String::new() };
            match index.and_then(|index| index.expression_of(key)) {
                Some(computed) => {
                    let writer =
                        Writer { catalog: self.catalog, relation, pretty: true, source: None };
                    key_text(&writer, &computed.value)
                }
                None => relation.columns[usize::from(key.column)].name.clone(),
            }
        };
        let value = |value: &Expression| {
            let text = self.text(Some(relation), value).filter(|_| value.is_fixed());
            text.unwrap_or_else(|| "...".to_owned())
        };
        let is_equal = |(at, own): (usize, &Expression)| format!("{} = {}", column(at), value(own));
        let mut conditions: Vec<String> = access.equal.iter().enumerate().map(is_equal).collect();
        let begin = access.equal.len();
        if let Some(among) = &access.among {
            let columns: Vec<String> = (begin..begin + among.width()).map(column).collect();
            let stated = among.condition.as_ref().and_then(|it| self.text(Some(relation), it));
            let unstated = || format!("{} = ANY (...)", row_text(columns));
            conditions.push(stated.unwrap_or_else(unstated));
            let behind = among.equal.iter().enumerate();
            conditions.extend(behind.map(|(at, own)| is_equal((begin + among.width() + at, own))));
        }
        let (next, (lower_rest, upper_rest)) = (access.columns_count(), access.rest());
        for (bound, rest, sign) in
            [(&access.lower, lower_rest, '>'), (&access.upper, upper_rest, '<')]
        {
            let Some(bound) = bound else { continue };
            let equals = if bound.inclusive { "=" } else { "" };
            let own = row_text((next..=next + rest.len()).map(column).collect());
            let values = std::iter::once(&bound.value).chain(rest).map(value).collect();
            conditions.push(format!("{own} {sign}{equals} {}", row_text(values)));
        }
        conditions
    }

    /// The queries in expressions, and one whose rows are looked for.
    fn subqueries(
        &mut self,
        each_expression: impl Fn(&mut dyn FnMut(&Expression)),
        looked_for: Option<QueryNumber>,
        step: &mut Step,
    ) {
        let mut found: Vec<QueryNumber> = looked_for.into_iter().collect();
        each_expression(&mut |expression| {
            for op in &expression.code {
                if let Op::Query(_, number) = op {
                    found.push(*number);
                }
            }
        });
        for number in found {
            if !self.seen.contains(&number) {
                let below = self.query(number);
                step.below.push(Step::new("SubPlan", vec![below]));
            }
        }
    }

    /// An expression over the rows of a table, if there is a text for it.
    fn text(&self, relation: Option<&Relation>, expression: &Expression) -> Option<String> {
        expression_text(self.catalog, relation?, expression)
    }
}

/// A condition without its last parts, which say of rows that others have not claimed them.
fn without_claims(filter: &Expression) -> Option<Expression> {
    let mut code = &filter.code[..];
    loop {
        let claim = match code {
            [.., Op::Unclaimed(_)] => return None,
            [.., Op::Unclaimed(claim), Op::Call(Function::And, 2)] => claim,
            _ => return Some(Expression { code: code.to_vec() }),
        };
        // The jump, the key, the condition itself, and AND.
        code = &code[..code.len().checked_sub(claim.key.len() + 3)?];
    }
}

/// A value, or a row of several.
fn row_text(values: Vec<String>) -> String {
    match &values[..] {
        [value] => value.clone(),
        _ => format!("({})", values.join(", ")),
    }
}

fn title_of_join(item: &Item) -> String {
    let kind = match item.kind {
        JoinKind::Inner => "",
        JoinKind::Left => " Left",
        JoinKind::Right => " Right",
        JoinKind::Full => " Full",
    };
    match item.method {
        Method::Map { .. } => format!("Hash{kind} Join"),
        Method::Loop | Method::Lookup if kind.is_empty() => "Nested Loop".to_owned(),
        Method::Loop | Method::Lookup => format!("Nested Loop{kind} Join"),
    }
}
