//! How a plan finds, joins, groups and sorts its rows.

use super::columns::{names_of_table, names_with_table};
use super::shown::{Explained, Step};
use crate::catalog::Catalog;
use crate::ir::{
    Access, Action, Composed, Expression, Function, Input, Insert, InsertRows, Item, ItemRows,
    JoinKind, Joins, Main, Method, Op, Plan, Query, QueryNumber, Relation, Select, SetOperator,
    Source, Writing,
};
use crate::system::{ColumnName, Columns, Names, Writer, expression_text, key_text};
use std::collections::{BTreeMap, BTreeSet};

/// The steps of a plan, in PostgreSQL's words where they mean the same.
pub fn explain(catalog: &Catalog, plan: &Plan) -> Explained {
    let mut explainer = Explainer {
        catalog,
        queries: &[],
        outputs: Vec::new(),
        outer: BTreeMap::new(),
        seen: BTreeSet::new(),
    };
    Explained::new(explainer.plan(plan))
}

pub(super) struct Explainer<'p> {
    pub(super) catalog: &'p Catalog,
    pub(super) queries: &'p [Query],
    /// What the columns of their answers are called.
    pub(super) outputs: Vec<Vec<ColumnName>>,
    /// What the columns of the rows around a query are called, by the depths of their queries.
    outer: BTreeMap<u16, Vec<ColumnName>>,
    /// Queries that have been shown: those of WITH may be read several times.
    seen: BTreeSet<QueryNumber>,
}

impl<'p> Explainer<'p> {
    fn plan(&mut self, plan: &'p Plan) -> Step {
        match plan {
            Plan::Select(select) => self.select(select, None, 0),
            Plan::Insert(insert) => self.insert(insert),
            Plan::Update(update) => self.change("Update", &update.source),
            Plan::Delete(delete) => self.change("Delete", &delete.source),
            Plan::Composed(composed) => self.composed(composed),
            Plan::Guarded(guarded) => {
                let step = self.plan(&guarded.plan);
                let names: Vec<&str> = guarded.keys.iter().map(|key| key.name.as_str()).collect();
                step.with("Foreign Keys", Some(names.join(", ")))
            }
            Plan::Writing(writing) | Plan::Merge(writing) => self.writing(writing),
        }
    }

    /// The statement itself, with the parts that it has in its WITH below.
    fn writing(&mut self, writing: &'p Writing) -> Step {
        self.name_queries(&writing.queries);
        let mut steps: Vec<Step> = writing.parts.iter().map(|part| self.main(&part.main)).collect();
        let mut last = steps.pop().unwrap_or_else(|| Step::new("Result", Vec::new()));
        let parts = steps.into_iter().enumerate();
        for (at, step) in parts {
            last.add(Step::new(format!("CTE {}", at + 1), vec![step]));
        }
        last
    }

    fn composed(&mut self, composed: &'p Composed) -> Step {
        self.name_queries(&composed.queries);
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
                change_step(word, &change.relation.name, below)
            }
        }
    }

    fn insert(&mut self, insert: &'p Insert) -> Step {
        let below = match &insert.rows {
            InsertRows::Listed(rows) if rows.len() == 1 => Step::new("Result", Vec::new()),
            InsertRows::Listed(_) => Step::new("Values Scan", Vec::new()),
            InsertRows::Queried(select, _) => self.select(select, None, 0),
            InsertRows::Composed(number, _) => self.query(*number),
            InsertRows::Copied(..) => Step::new("Copied Rows", Vec::new()),
        };
        let conflict = insert.conflict.as_ref().map(|conflict| match conflict.action {
            Action::Nothing => "NOTHING".to_owned(),
            Action::Update { .. } => "UPDATE".to_owned(),
        });
        change_step("Insert", &insert.relation.name, vec![below])
            .with("Conflict Resolution", conflict)
    }

    fn change(&mut self, word: &str, source: &'p Source) -> Step {
        let name = source.relation.as_ref().map_or("", |relation| &relation.name);
        let mut step = self.source(source, &[]);
        let names = source.relation.as_ref().map(names_with_table).unwrap_or_default();
        self.outer.insert(0, names);
        self.subqueries(|each| source.each_expression(each), source.access.query(), &mut step);
        change_step(word, name, vec![step])
    }

    fn query(&mut self, number: QueryNumber) -> Step {
        let Some(query) = self.queries.get(usize::from(number)) else {
            return Step::new("Result", Vec::new());
        };
        if !self.seen.insert(number) {
            return Step::new(format!("CTE Scan on query {}", usize::from(number) + 1), Vec::new());
        }
        self.select(&query.select, Some(&query.input), query.depth)
    }

    /// A query of this depth: what its rows come from, and what is done with them.
    fn select(&mut self, select: &'p Select, input: Option<&'p Input>, depth: u16) -> Step {
        let rows = self.names_before(select, input);
        let mut step = match input {
            None | Some(Input::Source) => self.source(&select.source, &[]),
            Some(Input::Joins(joins)) => self.joins(joins, &rows, depth),
            Some(input) => self.input(input),
        };
        if !matches!(input, None | Some(Input::Source)) {
            step = step.with("Filter", self.condition(&rows, select.source.filter.as_ref()));
        }
        let around = match (input, &select.source.relation) {
            (None | Some(Input::Source), Some(relation)) => names_with_table(relation),
            _ => rows.clone(),
        };
        self.outer.insert(depth, around);
        let query = select.source.access.query();
        self.subqueries(|each| select.each_expression(each), query, &mut step);
        let step = self.grouped(select, &rows, step);
        self.ordered(select, rows, step)
    }

    /// The groups of rows with these names, and which of them count.
    fn grouped(&self, select: &Select, rows: &[ColumnName], step: Step) -> Step {
        let Some(group) = &select.group else { return step };
        let keys: Option<Vec<String>> = group.keys.iter().map(|key| self.text(rows, key)).collect();
        let keys = keys.filter(|keys| !keys.is_empty());
        let (title, strategy) = match group.keys.is_empty() {
            true => ("Aggregate", "Plain"),
            false => ("HashAggregate", "Hashed"),
        };
        let groups = self.names_of_groups(group, rows);
        let shown = |having: &Expression| {
            self.condition(&groups, Some(having)).unwrap_or_else(|| "HAVING".to_owned())
        };
        Step::new(title, vec![step])
            .of_node(&[("Node Type", "Aggregate"), ("Strategy", strategy)])
            .with_list("Group Key", keys)
            .with("Filter", select.having.as_ref().map(shown))
    }

    /// What is done with the rows that count: DISTINCT, ORDER BY, locks, LIMIT.
    fn ordered(&self, select: &Select, rows: Vec<ColumnName>, mut step: Step) -> Step {
        let rows = match &select.group {
            Some(group) => self.names_of_groups(group, &rows),
            None => rows,
        };
        if select.distinct {
            step = Step::new("Unique", vec![step]);
        }
        if !select.sort.is_empty() {
            let key = |key: &crate::ir::SortKey| {
                let order = if key.descending { " DESC" } else { "" };
                self.text(&rows, &key.value).map(|text| text + order)
            };
            let keys: Option<Vec<String>> = select.sort.iter().map(key).collect();
            step = Step::new("Sort", vec![step]).with_list("Sort Key", keys);
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
            Input::Joins(_) => unreachable!("they have names of their own"),
            Input::System(name) => scan_step(name),
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

    /// The items of a FROM, whose joined rows have these names.
    fn joins(&mut self, joins: &'p Joins, rows: &[ColumnName], depth: u16) -> Step {
        let mut whole: Option<Step> = None;
        for item in &joins.items {
            self.outer.insert(depth, rows.to_vec());
            let own = match &item.rows {
                ItemRows::Table(source) => self.source(source, rows),
                ItemRows::Query(number) => self.query(*number),
            };
            let step = match whole {
                None => own,
                Some(before) => self.join(item, rows, vec![before, own]),
            };
            let mut step = step.with("Filter", self.condition(rows, item.filter.as_ref()));
            self.outer.insert(depth, rows.to_vec());
            let conditions = || item.condition.iter().chain(&item.filter);
            self.subqueries(|each| conditions().for_each(each), None, &mut step);
            whole = Some(step);
        }
        whole.unwrap_or_else(|| Step::new("Result", Vec::new()))
    }

    fn join(&self, item: &Item, rows: &[ColumnName], below: Vec<Step>) -> Step {
        let hashed = match &item.method {
            Method::Map { own, other } => {
                let pair = |(own, other)| {
                    Some(format!("({} = {})", self.operand(rows, other)?, self.operand(rows, own)?))
                };
                let pairs: Option<Vec<String>> = own.iter().zip(other).map(pair).collect();
                pairs.map(|pairs| match &pairs[..] {
                    [pair] => pair.clone(),
                    _ => format!("({})", pairs.join(" AND ")),
                })
            }
            Method::Loop | Method::Lookup => None,
        };
        join_step(item, below)
            .with("Hash Cond", hashed)
            .with("Join Filter", self.condition(rows, item.condition.as_ref()))
    }

    /// The rows of a table, or one row without columns. `joined` are the names of the rows of a
    /// join, whose parts before may find those of the table.
    fn source(&mut self, source: &'p Source, joined: &[ColumnName]) -> Step {
        let Some(relation) = &source.relation else {
            return Step::new("Result", Vec::new());
        };
        let filter = source.filter.as_ref().and_then(without_claims);
        let shown = self.condition(&names_of_table(relation), filter.as_ref());
        let access = &source.access;
        if access.is_whole() {
            return scan_step(&relation.name).with("Filter", shown);
        }
        let index = access.index.and_then(|at| relation.indexes.get(usize::from(at)));
        let name = index.map_or(&relation.primary_name, |index| &index.name);
        let is_backward = access.order.is_some_and(|order| order.is_backward);
        let backward = if is_backward { " Backward" } else { "" };
        let conditions = self.index_conditions(relation, access, joined);
        let conditions =
            (!conditions.is_empty()).then(|| format!("({})", conditions.join(" AND ")));
        let direction = if is_backward { "Backward" } else { "Forward" };
        Step::new(format!("Index Scan{backward} using {name} on {}", relation.name), Vec::new())
            .of_node(&[
                ("Node Type", "Index Scan"),
                ("Scan Direction", direction),
                ("Index Name", name),
                ("Relation Name", &relation.name),
            ])
            .with("Index Cond", conditions)
            .with("Filter", shown)
    }

    /// What a key is searched for. Values are of the rows before it in a join.
    fn index_conditions(
        &self,
        relation: &Relation,
        access: &Access,
        joined: &[ColumnName],
    ) -> Vec<String> {
        let index = access.index.and_then(|at| relation.indexes.get(usize::from(at)));
        let key = index.map_or(&relation.primary, |index| &index.columns);
        let column = |at: usize| {
            let behind = || relation.primary.get(at.checked_sub(key.len())?);
            let Some(key) = key.get(at).or_else(behind) else { return String::new() };
            match index.and_then(|index| index.expression_of(key)) {
                Some(computed) => {
                    let columns = Columns::Of(relation);
                    let writer =
                        Writer { catalog: self.catalog, columns, pretty: true, source: None };
                    key_text(&writer, &computed.value)
                }
                None => relation.columns[usize::from(key.column)].name.clone(),
            }
        };
        let value =
            |value: &Expression| self.text(joined, value).unwrap_or_else(|| "...".to_owned());
        let is_equal = |(at, own): (usize, &Expression)| format!("{} = {}", column(at), value(own));
        let mut conditions: Vec<String> = access.equal.iter().enumerate().map(is_equal).collect();
        let begin = access.equal.len();
        if let Some(among) = &access.among {
            let columns: Vec<String> = (begin..begin + among.width()).map(column).collect();
            let own = names_of_table(relation);
            let stated = among.condition.as_ref().and_then(|it| self.text(&own, it));
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
                let title = format!("SubPlan {}", usize::from(number) + 1);
                step.add(Step::new(title, vec![below]));
            }
        }
    }

    /// An expression over rows with these names, if there is a text for it.
    pub(super) fn text(&self, rows: &[ColumnName], expression: &Expression) -> Option<String> {
        let names = Names { own: rows, outer: &self.outer };
        expression_text(self.catalog, Columns::Named(names), expression)
    }

    /// A side of a comparison.
    fn operand(&self, rows: &[ColumnName], expression: &Expression) -> Option<String> {
        let text = self.text(rows, expression)?;
        Some(if text.contains(' ') { format!("({text})") } else { text })
    }

    /// A condition over rows with these names, in brackets.
    fn condition(&self, rows: &[ColumnName], condition: Option<&Expression>) -> Option<String> {
        self.text(rows, condition?).map(|text| format!("({text})"))
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

/// A step that changes rows of a table.
fn change_step(word: &str, table: &str, below: Vec<Step>) -> Step {
    Step::new(format!("{word} on {table}"), below).of_node(&[
        ("Node Type", "ModifyTable"),
        ("Operation", word),
        ("Relation Name", table),
    ])
}

/// A step that reads a whole table.
fn scan_step(table: &str) -> Step {
    Step::new(format!("Seq Scan on {table}"), Vec::new())
        .of_node(&[("Node Type", "Seq Scan"), ("Relation Name", table)])
}

fn join_step(item: &Item, below: Vec<Step>) -> Step {
    let kind = match item.kind {
        JoinKind::Inner => "Inner",
        JoinKind::Left => "Left",
        JoinKind::Right => "Right",
        JoinKind::Full => "Full",
    };
    let node = match item.method {
        Method::Map { .. } => "Hash Join",
        Method::Loop | Method::Lookup => "Nested Loop",
    };
    let title = match (node, item.kind) {
        (_, JoinKind::Inner) => node.to_owned(),
        ("Hash Join", _) => format!("Hash {kind} Join"),
        _ => format!("{node} {kind} Join"),
    };
    Step::new(title, below).of_node(&[("Node Type", node), ("Join Type", kind)])
}
