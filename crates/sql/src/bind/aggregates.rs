//! Aggregates by their names.

use super::binder::Binder;
use super::coerce::Bound;
use super::kinds::Willing;
use super::order::direction;
use super::scope::AMONG_COLUMNS;
use super::statistics::{
    arguments_wanted, check_order, is_of_order, statistic_named, statistic_types,
};
use crate::ir::{Aggregate, AggregateKind, Direction, Kind, Op, OrderedKind};
use sqlparser::ast::{Expr, Function as Call, OrderByExpr};
use values::{Error, Result, SqlState, Type};

/// What a call was written with.
pub(super) struct Written<'a> {
    pub(super) arguments: Vec<&'a Expr>,
    pub(super) star: bool,
    pub(super) distinct: bool,
    /// ORDER BY among the arguments.
    pub(super) order: &'a [OrderByExpr],
    /// ORDER BY of WITHIN GROUP.
    pub(super) within: &'a [OrderByExpr],
    pub(super) filter: Option<&'a Expr>,
}

impl Written<'_> {
    /// What it has and only aggregates may have.
    pub(super) fn only_of_aggregates(&self) -> Option<&'static str> {
        let all = [
            (self.star, "*"),
            (self.distinct, "DISTINCT"),
            (!self.order.is_empty(), "ORDER BY"),
            (self.filter.is_some(), "FILTER"),
        ];
        all.into_iter().find(|(is_there, _)| *is_there).map(|(_, what)| what)
    }
}

/// An aggregate with its type.
pub(super) struct BoundAggregate {
    pub(super) aggregate: Aggregate,
    /// The type that the interpreter computes.
    pub(super) raw: Type,
    pub(super) result: Type,
}

impl BoundAggregate {
    /// The result, which stands in a column.
    pub(super) fn over(&self, column: Op) -> Bound {
        let mut code = vec![column];
        if self.raw != self.result {
            code.push(Op::Cast(Kind::plain(self.result), true));
        }
        Bound::new(code, Kind::plain(self.result))
    }
}

/// The arguments of an aggregate while it is bound.
struct Arguments {
    kind: AggregateKind,
    own: Vec<Bound>,
    /// What rows are put in order by.
    order: Vec<(Bound, Direction)>,
    filter: Option<Bound>,
}

impl Binder<'_> {
    /// An aggregate of the groups of the current query.
    pub(super) fn aggregate(
        &mut self,
        kind: AggregateKind,
        written: &Written<'_>,
        function: &Call,
    ) -> Result<Bound> {
        let refused = |message: &str| Error::new(SqlState::GROUPING_ERROR, message.to_owned());
        let position = self.position(&function.name);
        match &mut self.grouping {
            None if self.clause == AMONG_COLUMNS => {
                let message = "an aggregate within a function that returns rows is not supported";
                let hint = "Compute it in a query in FROM: SELECT unnest(a) FROM (SELECT \
                            array_agg(id) AS a FROM t) x.";
                return Err(Error::unsupported(message, hint).at(position));
            }
            None => {
                let clause = self.shown_clause();
                let message = format!("aggregate functions are not allowed {clause}");
                return Err(refused(&message).at(position));
            }
            Some(grouping) if grouping.inside => {
                return Err(refused("aggregate function calls cannot be nested").at(position));
            }
            Some(grouping) => {
                grouping.inside = true;
                grouping.position = grouping.position.or(position);
            }
        }
        let queries = self.queries.len();
        let bound = self.aggregate_parts(kind, written, function);
        if let Some(grouping) = &mut self.grouping {
            grouping.inside = false;
        }
        let bound = bound?;
        self.refuse_outer(&bound.aggregate, queries)?;
        let Some(grouping) = &mut self.grouping else { return Err(refused("no groups")) };
        let column = grouping.place(bound.aggregate.clone())?;
        Ok(bound.over(Op::Column(column)))
    }

    /// Refuses an aggregate of columns of outer queries only, which in PostgreSQL is one of such a
    /// query. The queries from number `queries` on are in the aggregate.
    fn refuse_outer(&self, aggregate: &Aggregate, queries: usize) -> Result<()> {
        let depth = self.levels.len();
        let (mut is_own, mut is_outer) = (false, false);
        let mut note = |op: &Op, is_within: bool| match op {
            Op::Column(_) if !is_within => is_own = true,
            Op::Outer(at, _) if usize::from(*at) == depth => is_own = true,
            Op::Outer(at, _) if usize::from(*at) < depth => is_outer = true,
            _ => {}
        };
        let parts = aggregate.arguments.iter().chain(&aggregate.filter);
        parts.flat_map(|part| &part.code).for_each(|op| note(op, false));
        for query in &self.queries[queries..] {
            query.each_expression(&mut |part| part.code.iter().for_each(|op| note(op, true)));
        }
        if is_outer && !is_own {
            return Err(Error::unsupported(
                "an aggregate of columns of an outer query is not supported",
                "Compute it in the outer query, and name it there.",
            ));
        }
        Ok(())
    }

    /// The clause that is bound, for messages.
    pub(super) fn shown_clause(&self) -> String {
        match self.clause {
            "" => "here".to_owned(),
            "JOIN/ON" => "in JOIN conditions".to_owned(),
            clause => format!("in {clause}"),
        }
    }

    /// An aggregate, over the rows that the binder's scope has now.
    pub(super) fn aggregate_parts(
        &mut self,
        kind: AggregateKind,
        written: &Written<'_>,
        function: &Call,
    ) -> Result<BoundAggregate> {
        let bound = self.aggregate_arguments(kind, written, function)?;
        let types: Vec<Option<Type>> = bound.own.iter().map(Bound::ty).collect();
        let (raw, result) = match statistic_types(&bound.kind, &types) {
            Some(found) => found,
            None => aggregate_types(&bound.kind, types.first().copied().flatten())?,
        };
        let Arguments { kind, own, order, filter } = bound;
        let (kind, order) = ordered(kind, &own, order, written.distinct);
        let arguments = own.into_iter().chain(order).map(Bound::expression).collect();
        let (distinct, filter) = (written.distinct, filter.map(Bound::expression));
        Ok(BoundAggregate {
            aggregate: Aggregate { kind, arguments, distinct, filter },
            raw,
            result,
        })
    }

    fn aggregate_arguments(
        &mut self,
        kind: AggregateKind,
        written: &Written<'_>,
        function: &Call,
    ) -> Result<Arguments> {
        use AggregateKind::{
            BitAnd, BitOr, BitXor, BoolAnd, BoolOr, Count, CountRows, JsonAggregate,
            JsonObjectAggregate, JsonObjectText, JsonText, Statistic, StringAggregate,
        };
        let name = function.name.to_string().to_ascii_lowercase();
        check_order(&name, &kind, written)?;
        let wanted = match kind {
            StringAggregate | JsonObjectAggregate | JsonObjectText => 2,
            _ => arguments_wanted(&kind),
        };
        let counts_rows = kind == Count && written.star;
        if !counts_rows && (written.arguments.len() != wanted || written.star) {
            let message = format!("function {}() has other arguments", function.name);
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        if is_of_order(&kind) {
            let (own, order) = self.ordered_arguments(&kind, &name, written)?;
            let filter = self.filter_of(written)?;
            return Ok(Arguments { kind, own, order, filter });
        }
        let mut own = Vec::new();
        for (at, argument) in written.arguments.iter().enumerate() {
            let bound = match kind {
                JsonAggregate | JsonText => self.json_argument(argument)?,
                _ => self.expression(argument)?,
            };
            own.push(match kind {
                StringAggregate => self.coerce(bound, Type::Text, Willing::Implicit)?,
                BoolAnd | BoolOr => self.coerce(bound, Type::Bool, Willing::Implicit)?,
                JsonObjectAggregate | JsonObjectText if at == 0 => self.json_key(bound)?,
                JsonAggregate | JsonObjectAggregate | JsonText | JsonObjectText => {
                    self.json_value(bound)?
                }
                Statistic(_) | BitAnd | BitOr | BitXor => {
                    self.statistic_argument(&kind, &name, bound)?
                }
                _ => self.settle(bound)?,
            });
        }
        let mut order = Vec::new();
        for each in written.order {
            let bound = self.expression(&each.expr)?;
            let bound = self.settle(bound)?;
            let is_argument = own.iter().any(|own| own.code == bound.code);
            if written.distinct && !is_argument {
                let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in \
                               argument list";
                return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
                    .at(self.position(&each.expr)));
            }
            order.push((bound, direction(each)?));
        }
        let filter = self.filter_of(written)?;
        Ok(Arguments { kind: if counts_rows { CountRows } else { kind }, own, order, filter })
    }

    fn filter_of(&mut self, written: &Written<'_>) -> Result<Option<Bound>> {
        written.filter.map(|filter| self.condition(filter, "FILTER")).transpose()
    }
}

/// The aggregate of rows in an order, and what is compared, where the order shows. Different
/// values come in their order, as in PostgreSQL.
fn ordered(
    kind: AggregateKind,
    own: &[Bound],
    mut order: Vec<(Bound, Direction)>,
    distinct: bool,
) -> (AggregateKind, Vec<Bound>) {
    let is_float = || matches!(own[0].ty(), Some(Type::Float4 | Type::Float8));
    let ordered = match kind {
        AggregateKind::Sum if is_float() => OrderedKind::Sum,
        AggregateKind::Average if is_float() => OrderedKind::Average,
        AggregateKind::StringAggregate => OrderedKind::StringAggregate,
        AggregateKind::ArrayAggregate => OrderedKind::ArrayAggregate,
        AggregateKind::JsonAggregate => OrderedKind::JsonAggregate,
        AggregateKind::JsonObjectAggregate => OrderedKind::JsonObjectAggregate,
        AggregateKind::JsonText => OrderedKind::JsonText,
        AggregateKind::JsonObjectText => OrderedKind::JsonObjectText,
        AggregateKind::Statistic(statistic) if is_float() => OrderedKind::Statistic(statistic),
        AggregateKind::Interpolated => OrderedKind::Interpolated,
        AggregateKind::Percentile => OrderedKind::Percentile,
        AggregateKind::Mode => OrderedKind::Mode,
        kind => return (kind, Vec::new()),
    };
    if distinct {
        for bound in own {
            if order.iter().all(|(other, _)| other.code != bound.code) {
                order.push((bound.clone(), Direction { descending: false, nulls_first: false }));
            }
        }
    }
    if order.is_empty() {
        return (kind, Vec::new());
    }
    let (values, directions) = order.into_iter().unzip();
    (AggregateKind::Ordered(ordered, directions), values)
}

pub(super) fn aggregate_named(name: &str) -> Option<AggregateKind> {
    Some(match name {
        "count" => AggregateKind::Count,
        "sum" => AggregateKind::Sum,
        "avg" => AggregateKind::Average,
        "min" => AggregateKind::Minimum,
        "max" => AggregateKind::Maximum,
        "bool_and" | "every" => AggregateKind::BoolAnd,
        "bool_or" => AggregateKind::BoolOr,
        "string_agg" => AggregateKind::StringAggregate,
        "array_agg" => AggregateKind::ArrayAggregate,
        "json_agg" => AggregateKind::JsonText,
        "json_object_agg" => AggregateKind::JsonObjectText,
        "jsonb_agg" => AggregateKind::JsonAggregate,
        "jsonb_object_agg" => AggregateKind::JsonObjectAggregate,
        _ => return statistic_named(name),
    })
}

/// The type that the interpreter computes, and that of the result.
fn aggregate_types(kind: &AggregateKind, argument: Option<Type>) -> Result<(Type, Type)> {
    let own = argument.unwrap_or(Type::Text);
    let refused = |name: &str| {
        let message = format!("function {name}({}) does not exist", own.name());
        Error::new(SqlState::UNDEFINED_FUNCTION, message)
    };
    let both = |ty| Ok((ty, ty));
    match kind {
        AggregateKind::CountRows | AggregateKind::Count => both(Type::Int8),
        AggregateKind::Sum => match own {
            Type::Int2 | Type::Int4 => Ok((Type::Numeric, Type::Int8)),
            Type::Int8 | Type::Numeric => both(Type::Numeric),
            Type::Float4 | Type::Float8 | Type::Interval => both(own),
            _ => Err(refused("sum")),
        },
        AggregateKind::Average => match own {
            Type::Float4 | Type::Float8 => both(Type::Float8),
            Type::Interval => both(Type::Interval),
            ty if ty.is_number() => both(Type::Numeric),
            _ => Err(refused("avg")),
        },
        AggregateKind::Minimum | AggregateKind::Maximum => {
            if matches!(own, Type::Bool | Type::Jsonb | Type::Json | Type::Uuid) {
                return Err(refused("min"));
            }
            both(if own.is_text() && own != Type::Char { Type::Text } else { own })
        }
        AggregateKind::First => both(own),
        AggregateKind::BoolAnd | AggregateKind::BoolOr => both(Type::Bool),
        AggregateKind::StringAggregate => both(Type::Text),
        AggregateKind::JsonAggregate | AggregateKind::JsonObjectAggregate => both(Type::Jsonb),
        AggregateKind::JsonText | AggregateKind::JsonObjectText => both(Type::Json),
        AggregateKind::ArrayAggregate => {
            let ty = own.array().ok_or_else(|| refused("array_agg"))?;
            // Of NULLs only, the interpreter makes an array of text.
            Ok((Type::Text.array().unwrap_or(ty), ty))
        }
        // Only what the binder begins with, and no statistic, is asked for.
        _ => Err(refused("an ordered aggregate")),
    }
}
