//! What paths of JSON find. As in PostgreSQL, what is wrong with an item makes a condition unknown,
//! and a query that is silent NULL; what is wrong with the path or its variables is an error.

use super::json_change::type_name;
use super::json_layout::offset_of;
use super::patterns::{Count, Patterns};
use crate::ir::PathQuery;
use values::json::path::{
    Arithmetic, Comparison, Condition, DEEPEST, Head, JsonPath, Method, PathExpr, Pattern, Step,
    Subscript,
};
use values::{Datum, Error, Json, Numeric, Result, SqlState, float};

/// Why a search ends.
enum Stop {
    /// An item is not what the path takes.
    Item(Error),
    /// The path cannot be followed at all.
    Whole(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Whole(error)
    }
}

/// Whether there is an item, unless the search has stopped.
type Found = std::result::Result<bool, Stop>;
/// True, false or unknown.
type Truth = std::result::Result<Option<bool>, Stop>;
/// Where items go; `None` if the first one is enough.
type Items<'i> = Option<&'i mut Vec<Json>>;

/// The items that a path finds: arguments are the value, the path, its variables and whether it is
/// silent. `None` if it is and something was wrong.
pub(super) fn found(arguments: &[Datum], count: &mut Count<'_>) -> Result<Option<Vec<Json>>> {
    let mut items = Vec::new();
    let found = with_search(arguments, count, |search, expr| search.expr(expr, Some(&mut items)))?;
    Ok(found.map(|_| items))
}

/// The result of a function with these arguments.
pub(super) fn call(query: PathQuery, arguments: &[Datum], count: &mut Count<'_>) -> Result<Datum> {
    let json = |json| Datum::Jsonb(Box::new(json));
    if query == PathQuery::Exists {
        let found = with_search(arguments, count, |search, expr| search.has_item(expr))?;
        return Ok(found.map_or(Datum::Null, Datum::Bool));
    }
    let Some(mut items) = found(arguments, count)? else { return Ok(Datum::Null) };
    Ok(match query {
        PathQuery::All => json(Json::Array(items)),
        PathQuery::First => items.into_iter().next().map_or(Datum::Null, json),
        PathQuery::Exists | PathQuery::Match => match (items.pop(), items.is_empty()) {
            (Some(Json::Bool(value)), true) => Datum::Bool(value),
            (Some(Json::Null), true) => Datum::Null,
            _ if matches!(arguments.last(), Some(Datum::Bool(true))) => Datum::Null,
            _ => {
                let message = "single boolean result is expected";
                return Err(Error::new(SqlState::JSON_NOT_SINGLE, message));
            }
        },
    })
}

fn with_search(
    arguments: &[Datum],
    count: &mut Count<'_>,
    run: impl FnOnce(&mut Search<'_, '_>, &PathExpr) -> Found,
) -> Result<Option<bool>> {
    let [Datum::Jsonb(root), Datum::Jsonpath(path), Datum::Jsonb(vars), Datum::Bool(is_silent)] =
        arguments
    else {
        return Err(super::evaluate::malformed());
    };
    if !matches!(**vars, Json::Object(_)) {
        let error = Error::new(SqlState::INVALID_PARAMETER, "\"vars\" argument is not an object");
        let detail = "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
        return Err(error.with_detail(detail));
    }
    let path = JsonPath::parse(path)?;
    let (is_lax, patterns) = (!path.is_strict, Patterns::default());
    let mut search = Search {
        is_lax,
        ignores: is_lax,
        root,
        vars,
        current: root.as_ref().clone(),
        size: None,
        patterns,
        count,
    };
    match run(&mut search, &path.expr) {
        Ok(found) => Ok(Some(found)),
        Err(Stop::Item(_)) if *is_silent => Ok(None),
        Err(Stop::Item(error) | Stop::Whole(error)) => Err(error),
    }
}

struct Search<'s, 'c> {
    /// Whether arrays are their items where no array is taken, and the other way round.
    is_lax: bool,
    /// Whether what is not there is no error.
    ignores: bool,
    root: &'s Json,
    vars: &'s Json,
    /// The item of the filter.
    current: Json,
    /// The length of the innermost array whose items are taken.
    size: Option<usize>,
    patterns: Patterns,
    count: &'s mut Count<'c>,
}

/// The depths of items that a step leads to.
#[derive(Clone, Copy)]
struct Levels {
    first: u32,
    last: u32,
    /// Whether what is not there is no error for the steps behind it.
    ignores: bool,
}

/// The items right below a value.
const ITEMS: Levels = Levels { first: 1, last: 1, ignores: false };

fn wrong(state: SqlState, message: impl Into<String>) -> Stop {
    Stop::Item(Error::new(state, message))
}

/// What is in an array or object.
fn children(value: &Json) -> Vec<&Json> {
    match value {
        Json::Array(items) => items.iter().collect(),
        Json::Object(members) => members.iter().map(|member| &member.1).collect(),
        _ => Vec::new(),
    }
}

fn is_container(value: &Json) -> bool {
    matches!(value, Json::Array(_) | Json::Object(_))
}

impl Search<'_, '_> {
    fn has_item(&mut self, expr: &PathExpr) -> Found {
        if self.is_lax {
            return self.expr(expr, None);
        }
        let mut items = Vec::new();
        self.expr(expr, Some(&mut items))?;
        Ok(!items.is_empty())
    }

    /// Computes a value and follows its steps.
    fn expr(&mut self, expr: &PathExpr, mut items: Items<'_>) -> Found {
        (self.count)(1)?;
        let steps = &expr.steps[..];
        let number = |number| Json::Number(number);
        let value = match &expr.head {
            Head::Root => return self.steps(steps, self.root, items),
            Head::Current => self.current.clone(),
            Head::Null => Json::Null,
            Head::Bool(value) => Json::Bool(*value),
            Head::Number(value) => number(value.clone()),
            Head::String(text) => Json::String(text.clone()),
            Head::Variable(name) => self.variable(name)?,
            Head::Last => {
                let size = self.size.ok_or_else(super::evaluate::malformed)?;
                number(Numeric::from(size as i64 - 1))
            }
            Head::Binary(operator, left, right) => number(self.arithmetic(*operator, left, right)?),
            Head::Signed(is_minus, inner) => {
                let mut found = false;
                for operand in self.operand(inner)? {
                    let value = match operand {
                        Json::Number(value) if *is_minus => value.negate(),
                        Json::Number(value) => value,
                        _ if items.is_none() && steps.is_empty() => continue,
                        _ => {
                            let sign = if *is_minus { "-" } else { "+" };
                            let message = format!(
                                "operand of unary jsonpath operator {sign} is not a numeric value"
                            );
                            return Err(wrong(SqlState::JSON_NO_NUMBER, message));
                        }
                    };
                    found |= self.steps(steps, &number(value), items.as_deref_mut())?;
                }
                return Ok(found);
            }
            Head::Condition(condition) => self.condition(condition)?.map_or(Json::Null, Json::Bool),
        };
        self.steps(steps, &value, items)
    }

    fn variable(&self, name: &str) -> std::result::Result<Json, Stop> {
        self.vars.get(name).cloned().ok_or_else(|| {
            let message = format!("could not find jsonpath variable \"{name}\"");
            Stop::Whole(Error::new(SqlState::UNDEFINED_OBJECT, message))
        })
    }

    /// The items of an operand; arrays are their items, of a lax path.
    fn operand(&mut self, expr: &PathExpr) -> std::result::Result<Vec<Json>, Stop> {
        let mut items = Vec::new();
        self.expr(expr, Some(&mut items))?;
        if !self.is_lax {
            return Ok(items);
        }
        let unwrapped = items.into_iter().flat_map(|item| match item {
            Json::Array(items) => items,
            other => vec![other],
        });
        Ok(unwrapped.collect())
    }

    fn arithmetic(
        &mut self,
        operator: Arithmetic,
        left: &PathExpr,
        right: &PathExpr,
    ) -> std::result::Result<Numeric, Stop> {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let number = |operand: Vec<Json>, side: &str| match &operand[..] {
            [Json::Number(number)] => Ok(number.clone()),
            _ => {
                let sign = operator.sign();
                let message = format!(
                    "{side} operand of jsonpath operator {sign} is not a single numeric value"
                );
                Err(wrong(SqlState::JSON_NOT_SINGLE, message))
            }
        };
        let (left, right) = (number(left, "left")?, number(right, "right")?);
        (self.count)(1)?;
        let result = match operator {
            Arithmetic::Add => left.add(&right),
            Arithmetic::Subtract => left.subtract(&right),
            Arithmetic::Multiply => left.multiply(&right),
            Arithmetic::Divide => left.divide(&right),
            Arithmetic::Modulo => left.remainder(&right),
        };
        result.map_err(Stop::Item)
    }

    /// Follows the steps from a value.
    fn steps(&mut self, steps: &[Step], value: &Json, items: Items<'_>) -> Found {
        match steps {
            [] => {
                if let Some(items) = items {
                    let bytes = Datum::Jsonb(Box::new(value.clone())).heap_bytes();
                    (self.count)(1 + bytes as u64 / 64)?;
                    items.push(value.clone());
                }
                Ok(true)
            }
            steps => self.step(steps, value, items, self.is_lax),
        }
    }

    /// Takes the first step from a value, and follows the others. If it `unwraps`, an array is its
    /// items where the step takes none.
    fn step(&mut self, steps: &[Step], value: &Json, items: Items<'_>, unwraps: bool) -> Found {
        (self.count)(1)?;
        let [step, rest @ ..] = steps else { return self.steps(steps, value, items) };
        let is_array = matches!(value, Json::Array(_));
        let takes_array = matches!(
            step,
            Step::AnyItem
                | Step::Items(_)
                | Step::Descend(..)
                | Step::Method(Method::Type | Method::Size)
        );
        if is_array && !takes_array && unwraps {
            return self.each(steps, value, items, ITEMS, false);
        }
        match step {
            Step::Key(key) => self.key(key, rest, value, items),
            Step::AnyKey if matches!(value, Json::Object(_)) => {
                self.each(rest, value, items, ITEMS, self.is_lax)
            }
            Step::AnyKey => self.missing(
                SqlState::JSON_NO_OBJECT,
                "jsonpath wildcard member accessor can only be applied to an object",
            ),
            Step::AnyItem if is_array => self.each(rest, value, items, ITEMS, self.is_lax),
            Step::AnyItem if self.is_lax => self.steps(rest, value, items),
            Step::AnyItem => self.missing(
                SqlState::JSON_NO_ARRAY,
                "jsonpath wildcard array accessor can only be applied to an array",
            ),
            Step::Items(subscripts) => self.items(subscripts, rest, value, items),
            Step::Descend(first, last) => self.descend(*first, *last, rest, value, items),
            Step::Filter(condition) => {
                let outer = std::mem::replace(&mut self.current, value.clone());
                let truth = self.condition(condition);
                self.current = outer;
                match truth? {
                    Some(true) => self.steps(rest, value, items),
                    _ => Ok(false),
                }
            }
            Step::Method(Method::KeyValue) => self.members(rest, value, items),
            Step::Method(method) => {
                let Some(result) = self.method(*method, value)? else { return Ok(false) };
                self.steps(rest, &result, items)
            }
        }
    }

    /// The error of what is not there, if that is one.
    fn missing(&self, state: SqlState, message: &str) -> Found {
        if self.ignores { Ok(false) } else { Err(wrong(state, message)) }
    }

    fn key(&mut self, key: &str, rest: &[Step], value: &Json, items: Items<'_>) -> Found {
        match (value, value.get(key)) {
            (_, Some(member)) => self.steps(rest, member, items),
            (Json::Object(_), None) => {
                let message = format!("JSON object does not contain key \"{key}\"");
                self.missing(SqlState::JSON_NO_MEMBER, &message)
            }
            _ => self.missing(
                SqlState::JSON_NO_MEMBER,
                "jsonpath member accessor can only be applied to an object",
            ),
        }
    }

    /// Follows the steps from all that is within a value at these depths.
    fn each(
        &mut self,
        steps: &[Step],
        value: &Json,
        items: Items<'_>,
        levels: Levels,
        unwraps: bool,
    ) -> Found {
        self.within(steps, value, items, Depth { levels, unwraps, level: 1 })
    }

    fn within(&mut self, steps: &[Step], value: &Json, mut items: Items<'_>, at: Depth) -> Found {
        let Levels { first, last, ignores } = at.levels;
        let (mut found, is_first_enough) = (false, items.is_none());
        if at.level > last {
            return Ok(false);
        }
        for child in children(value) {
            (self.count)(1)?;
            let is_leaf = first == DEEPEST && last == DEEPEST && !is_container(child);
            if at.level >= first || is_leaf {
                let outer = self.ignores;
                self.ignores |= ignores;
                let result = match steps {
                    [] => self.steps(steps, child, items.as_deref_mut()),
                    steps => self.step(steps, child, items.as_deref_mut(), at.unwraps),
                };
                self.ignores = outer;
                found |= result?;
                if found && is_first_enough {
                    return Ok(true);
                }
            }
            if at.level < last && is_container(child) {
                let deeper = Depth { level: at.level + 1, ..at };
                found |= self.within(steps, child, items.as_deref_mut(), deeper)?;
                if found && is_first_enough {
                    return Ok(true);
                }
            }
        }
        Ok(found)
    }

    /// `.**`
    fn descend(
        &mut self,
        first: u32,
        last: u32,
        rest: &[Step],
        value: &Json,
        mut items: Items<'_>,
    ) -> Found {
        let mut found = false;
        if first == 0 {
            let outer = std::mem::replace(&mut self.ignores, true);
            let result = self.steps(rest, value, items.as_deref_mut());
            self.ignores = outer;
            found = result?;
            if found && items.is_none() {
                return Ok(true);
            }
        }
        let levels = Levels { first, last, ignores: true };
        Ok(self.each(rest, value, items, levels, self.is_lax)? || found)
    }

    /// `[...]`
    fn items(
        &mut self,
        subscripts: &[Subscript],
        rest: &[Step],
        value: &Json,
        mut items: Items<'_>,
    ) -> Found {
        let all = match value {
            Json::Array(all) => &all[..],
            value if self.is_lax => std::slice::from_ref(value),
            _ => {
                let message = "jsonpath array accessor can only be applied to an array";
                return self.missing(SqlState::JSON_NO_ARRAY, message);
            }
        };
        let (mut found, is_first_enough) = (false, items.is_none());
        for subscript in subscripts {
            let outer = self.size.replace(all.len());
            let range = self.range(subscript, all.len());
            self.size = outer;
            for item in &all[range?] {
                found |= self.steps(rest, item, items.as_deref_mut())?;
                if found && is_first_enough {
                    return Ok(true);
                }
            }
        }
        Ok(found)
    }

    /// The places of items, of which there are so many.
    fn range(
        &mut self,
        subscript: &Subscript,
        count: usize,
    ) -> std::result::Result<std::ops::Range<usize>, Stop> {
        let from = i64::from(self.index(&subscript.from)?);
        let to = match &subscript.to {
            Some(to) => i64::from(self.index(to)?),
            None => from,
        };
        let end = count as i64;
        if !self.ignores && (from < 0 || from > to || to >= end) {
            let message = "jsonpath array subscript is out of bounds";
            return Err(wrong(SqlState::JSON_SUBSCRIPT, message));
        }
        let (from, to) = (from.max(0), to.min(end - 1));
        Ok(if from > to { 0..0 } else { from as usize..to as usize + 1 })
    }

    fn index(&mut self, expr: &PathExpr) -> std::result::Result<i32, Stop> {
        let mut items = Vec::new();
        self.expr(expr, Some(&mut items))?;
        let [Json::Number(number)] = &items[..] else {
            let message = "jsonpath array subscript is not a single numeric value";
            return Err(wrong(SqlState::JSON_SUBSCRIPT, message));
        };
        let whole = number.truncate(0).and_then(|whole| whole.to_i32());
        whole.map_err(|_| {
            let message = "jsonpath array subscript is out of integer range";
            wrong(SqlState::JSON_SUBSCRIPT, message)
        })
    }

    /// The result of a method but `keyvalue`; `None` if what is not there is no error.
    fn method(&self, method: Method, value: &Json) -> std::result::Result<Option<Json>, Stop> {
        let name = method.name();
        let number = match (method, value) {
            (Method::Type, value) => return Ok(Some(Json::String(type_name(value).into()))),
            (Method::Size, Json::Array(items)) => Numeric::from(items.len() as i64),
            (Method::Size, _) if self.is_lax => Numeric::from(1),
            (Method::Size, _) => {
                let message = "jsonpath item method .size() can only be applied to an array";
                return self.missing(SqlState::JSON_NO_ARRAY, message).map(|_| None);
            }
            (Method::Double, value) => double(value)?,
            (method, Json::Number(number)) => match method {
                Method::Abs => number.abs(),
                Method::Floor => number.floor().map_err(Stop::Item)?,
                _ => number.ceiling().map_err(Stop::Item)?,
            },
            _ => {
                let message = format!(
                    "jsonpath item method .{name}() can only be applied to a numeric value"
                );
                return Err(wrong(SqlState::JSON_NOT_NUMERIC, message));
            }
        };
        Ok(Some(Json::Number(number)))
    }

    /// `.keyvalue()`
    fn members(&mut self, rest: &[Step], value: &Json, mut items: Items<'_>) -> Found {
        let Json::Object(members) = value else {
            let message = "jsonpath item method .keyvalue() can only be applied to an object";
            return Err(wrong(SqlState::JSON_NO_OBJECT, message));
        };
        let id = offset_of(self.root, value).unwrap_or(0);
        let (mut found, is_first_enough) = (false, items.is_none());
        for (key, member) in members {
            let member = Json::object(vec![
                ("id".into(), Json::Number(Numeric::from(id))),
                ("key".into(), Json::String(key.clone())),
                ("value".into(), member.clone()),
            ]);
            found |= self.steps(rest, &member, items.as_deref_mut())?;
            if found && is_first_enough {
                return Ok(true);
            }
        }
        Ok(found)
    }

    /// Whether a condition holds; `None` if that is unknown.
    fn condition(&mut self, condition: &Condition) -> Truth {
        (self.count)(1)?;
        match condition {
            Condition::And(left, right) => match self.condition(left)? {
                Some(false) => Ok(Some(false)),
                left => match self.condition(right)? {
                    Some(true) => Ok(left),
                    right => Ok(right),
                },
            },
            Condition::Or(left, right) => match self.condition(left)? {
                Some(true) => Ok(Some(true)),
                left => match self.condition(right)? {
                    Some(false) => Ok(left),
                    right => Ok(right),
                },
            },
            Condition::Not(inner) => Ok(self.condition(inner)?.map(|truth| !truth)),
            Condition::IsUnknown(inner) => Ok(Some(self.condition(inner)?.is_none())),
            Condition::Exists(expr) => match self.has_item(expr) {
                Ok(found) => Ok(Some(found)),
                Err(Stop::Item(_)) => Ok(None),
                Err(stop) => Err(stop),
            },
            Condition::Compare(comparison, left, right) => {
                let Some(left) = self.known(left)? else { return Ok(None) };
                let Some(right) = self.known(right)? else { return Ok(None) };
                self.any(&left, &right, |_, left, right| Ok(compared(*comparison, left, right)))
            }
            Condition::StartsWith(whole, initial) => {
                let Some(whole) = self.known(whole)? else { return Ok(None) };
                let mut initials = Vec::new();
                self.expr(initial, Some(&mut initials))?;
                self.any(&whole, &initials, |_, whole, initial| {
                    Ok(match (whole, initial) {
                        (Json::String(whole), Json::String(initial)) => {
                            Some(whole.starts_with(&**initial))
                        }
                        _ => None,
                    })
                })
            }
            Condition::LikeRegex(expr, pattern) => {
                let Some(texts) = self.known(expr)? else { return Ok(None) };
                self.any(&texts, &[Json::Null], |search, text, _| search.matches(text, pattern))
            }
        }
    }

    /// The items of an operand of a condition; `None` if one of them is not what its path takes.
    fn known(&mut self, expr: &PathExpr) -> std::result::Result<Option<Vec<Json>>, Stop> {
        match self.operand(expr) {
            Ok(items) => Ok(Some(items)),
            Err(Stop::Item(_)) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// Whether a condition holds for a pair. In a strict path no pair may be unknown.
    fn any(
        &mut self,
        left: &[Json],
        right: &[Json],
        mut holds: impl FnMut(&mut Self, &Json, &Json) -> Truth,
    ) -> Truth {
        let (mut found, mut is_unknown) = (false, false);
        for left in left {
            for right in right {
                (self.count)(1)?;
                match holds(self, left, right)? {
                    None if !self.is_lax => return Ok(None),
                    None => is_unknown = true,
                    Some(true) if self.is_lax => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(if found { Some(true) } else { (!is_unknown).then_some(false) })
    }

    fn matches(&mut self, text: &Json, pattern: &Pattern) -> Truth {
        let Json::String(text) = text else { return Ok(None) };
        let own = match pattern.is_text {
            true => regex_lite::escape(&pattern.text),
            false => {
                let dot = if pattern.dot_all { "s" } else { "-s" };
                let lines = if pattern.multi_line { "m" } else { "" };
                format!("(?{lines}{dot}:{})", pattern.text)
            }
        };
        let found = self.patterns.matches(text, &own, pattern.any_case, self.count);
        Ok(Some(found?))
    }
}

/// Where a search is among the depths of items.
#[derive(Clone, Copy)]
struct Depth {
    levels: Levels,
    unwraps: bool,
    level: u32,
}

/// `.double()`
fn double(value: &Json) -> std::result::Result<Numeric, Stop> {
    let message = match value {
        Json::Number(number) => match number.to_f64() {
            Ok(double) if double.is_finite() => return Ok(number.clone()),
            _ => {
                "numeric argument of jsonpath item method .double() is out of range for type \
                 double precision"
            }
        },
        Json::String(text) => match float::parse_f64(text) {
            Ok(double) if double.is_finite() => {
                return Numeric::from_f64(double).map_err(Stop::Item);
            }
            _ => {
                "string argument of jsonpath item method .double() is not a valid representation \
                 of a double precision number"
            }
        },
        _ => "jsonpath item method .double() can only be applied to a string or numeric value",
    };
    Err(wrong(SqlState::JSON_NOT_NUMERIC, message))
}

/// Whether two items compare so; `None` if nothing compares them.
fn compared(comparison: Comparison, left: &Json, right: &Json) -> Option<bool> {
    let order = match (left, right) {
        (Json::Null, Json::Null) => std::cmp::Ordering::Equal,
        (Json::Null, _) | (_, Json::Null) => return Some(comparison == Comparison::NotEqual),
        (Json::Bool(left), Json::Bool(right)) => left.cmp(right),
        (Json::Number(left), Json::Number(right)) => left.cmp(right),
        (Json::String(left), Json::String(right)) => left.cmp(right),
        _ => return None,
    };
    Some(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterEqual => order.is_ge(),
    })
}
