//! Window functions, and the windows that they see rows through.

use super::aggregates::{BoundAggregate, Written, aggregate_named};
use super::binder::{Binder, name_of};
use super::coerce::Bound;
use super::functions::no_function;
use super::kinds::Willing;
use super::order::{direction, sort_key};
use super::window_list::{Place, Spec, error, is_window_function, whole};
use crate::ir::{Expression, SortKey, Window, WindowCall, WindowFunction};
use sqlparser::ast::{
    Function as Call, Ident, NamedWindowDefinition, NamedWindowExpr, WindowSpec, WindowType,
};
use values::{Error, Position, Result, SqlState, Type};

impl Binder<'_> {
    /// Binds with window functions allowed, or not, as they are at this place.
    pub(super) fn at_place<T>(
        &mut self,
        place: Place,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let set = |binder: &mut Self, place| {
            let grouping = binder.grouping.as_mut();
            grouping.map(|grouping| std::mem::replace(&mut grouping.windows.place, place))
        };
        let before = set(self, place);
        let result = work(self);
        if let Some(before) = before {
            set(self, before);
        }
        result
    }

    /// WINDOW
    pub(super) fn named_windows(&mut self, definitions: &[NamedWindowDefinition]) -> Result<()> {
        for NamedWindowDefinition(ident, expr) in definitions {
            let name = name_of(ident);
            let NamedWindowExpr::WindowSpec(spec) = expr else {
                return Err(super::binder::unsupported("a window that is another one"));
            };
            if self.named_window(ident).is_ok() {
                let message = format!("window \"{name}\" is already defined");
                let position = self.position_of_name(ident).map_or(0, |position| position.number());
                // The bracket of the definition, as it is usually written.
                let bracket = position + ident.to_string().len() as u32 + " AS ".len() as u32;
                let position = Position::new(bracket).filter(|_| position > 0);
                return Err(error(message).at(position));
            }
            let spec = self.window_spec(spec, false)?;
            if let Some(grouping) = &mut self.grouping {
                grouping.windows.named.push((name, spec));
            }
        }
        Ok(())
    }

    fn named_window(&self, ident: &Ident) -> Result<Spec> {
        let name = name_of(ident);
        let all = self.grouping.iter().flat_map(|grouping| &grouping.windows.named);
        let mut found = all.filter(|(own, _)| *own == name);
        found.next().map(|(_, spec)| spec.clone()).ok_or_else(|| {
            let message = format!("window \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_OBJECT, message).at(self.position_of_name(ident))
        })
    }

    /// A function with OVER.
    pub(super) fn window_call(
        &mut self,
        name: &str,
        written: &Written<'_>,
        function: &Call,
        over: &WindowType,
    ) -> Result<Bound> {
        let position = self.position(&function.name);
        self.check_place().map_err(|error| error.at(position))?;
        refuse_parts(name, written, function).map_err(|error| error.at(position))?;
        let (function, arguments, bound) =
            self.at_place(Place::Call, |binder| match aggregate_named(name) {
                Some(kind) => {
                    let bound = binder.aggregate_parts(kind, written, function)?;
                    let function = WindowFunction::Aggregate(bound.aggregate.clone());
                    Ok((function, Vec::new(), bound))
                }
                None => binder.window_function(name, written, position),
            })?;
        let spec = match over {
            WindowType::NamedWindow(ident) => self.named_window(ident)?,
            WindowType::WindowSpec(spec) => self.window_spec(spec, true)?,
        };
        let Some(grouping) = &mut self.grouping else { return Err(error("no rows")) };
        let window = Window { partition: spec.partition, order: spec.order };
        let frame = spec.frame;
        let column = grouping.windows.add(window, |window| WindowCall {
            window,
            function,
            arguments,
            frame,
        })?;
        Ok(bound.over(column))
    }

    /// Refuses window functions where none may be.
    fn check_place(&self) -> Result<()> {
        let Some(grouping) = &self.grouping else {
            let clause = self.shown_clause();
            return Err(error(format!("window functions are not allowed {clause}")));
        };
        if grouping.inside {
            let message = "aggregate function calls cannot contain window function calls";
            return Err(Error::new(SqlState::GROUPING_ERROR, message));
        }
        match grouping.windows.place {
            Place::Columns => Ok(()),
            Place::Before => Err(error("window functions are not allowed in HAVING")),
            Place::Call => Err(error("window function calls cannot be nested")),
            Place::Definition => {
                Err(error("window functions are not allowed in window definitions"))
            }
        }
    }

    /// A function that is no aggregate, its arguments and its type.
    fn window_function(
        &mut self,
        name: &str,
        written: &Written<'_>,
        position: Option<Position>,
    ) -> Result<(WindowFunction, Vec<Expression>, BoundAggregate)> {
        let all = written.arguments.iter().map(|argument| self.expression(argument));
        let mut all = all.collect::<Result<Vec<_>>>()?;
        let shown: Vec<String> = all.iter().map(Bound::type_name).collect();
        use WindowFunction::{
            CumulativeDistribution, DenseRank, FirstValue, Lag, LastValue, Lead, NthValue,
            PercentRank, Rank, RowNumber, Tile,
        };
        let (function, ty) = match (name, all.len()) {
            ("row_number", 0) => (RowNumber, Type::Int8),
            ("rank", 0) => (Rank, Type::Int8),
            ("dense_rank", 0) => (DenseRank, Type::Int8),
            ("percent_rank", 0) => (PercentRank, Type::Float8),
            ("cume_dist", 0) => (CumulativeDistribution, Type::Float8),
            ("ntile", 1) => {
                all[0] = self.coerce(all[0].clone(), Type::Int4, Willing::Implicit)?;
                (Tile, Type::Int4)
            }
            ("lag" | "lead", 1..=3) => {
                let ty = self.shifted_arguments(&mut all)?;
                (if name == "lag" { Lag } else { Lead }, ty)
            }
            ("first_value" | "last_value", 1) => {
                all[0] = self.settle(all[0].clone())?;
                let function = if name == "first_value" { FirstValue } else { LastValue };
                (function, all[0].ty().unwrap_or(Type::Text))
            }
            ("nth_value", 2) => {
                all[0] = self.settle(all[0].clone())?;
                all[1] = self.coerce(all[1].clone(), Type::Int4, Willing::Implicit)?;
                (NthValue, all[0].ty().unwrap_or(Type::Text))
            }
            _ => return Err(no_function(name, &shown).at(position)),
        };
        let aggregate = crate::ir::Aggregate {
            kind: crate::ir::AggregateKind::First,
            arguments: Vec::new(),
            distinct: false,
            filter: None,
        };
        let arguments = all.into_iter().map(Bound::expression).collect();
        Ok((function, arguments, BoundAggregate { aggregate, raw: ty, result: ty }))
    }

    /// The value, the offset and the default of `lag` and `lead`; the type of the result.
    fn shifted_arguments(&mut self, all: &mut [Bound]) -> Result<Type> {
        if let [value, _, default] = all {
            let both = self.of_one_kind(vec![value.clone(), default.clone()], "");
            let (both, _) = both.map_err(|error| {
                let message = "lag and lead have no default of another type than the value";
                Error::new(SqlState::UNDEFINED_FUNCTION, message).at(error.position())
            })?;
            let [first, second] = <[Bound; 2]>::try_from(both).expect("two in, two out");
            (*value, *default) = (first, second);
        } else {
            all[0] = self.settle(all[0].clone())?;
        }
        if let Some(offset) = all.get_mut(1) {
            *offset = self.coerce(offset.clone(), Type::Int4, Willing::Implicit)?;
        }
        Ok(all[0].ty().unwrap_or(Type::Text))
    }

    /// A window as it is written, after the one that it begins with.
    fn window_spec(&mut self, tree: &WindowSpec, is_over: bool) -> Result<Spec> {
        let base = match &tree.window_name {
            Some(ident) => Some(self.base_window(ident, tree, is_over)?),
            None => None,
        };
        let (partition, order, ordered) =
            self.at_place(Place::Definition, |binder| binder.window_order(tree))?;
        let mut spec = match base {
            Some(base) if tree.order_by.is_empty() => base,
            Some(base) => Spec { order, ordered, ..base },
            None => {
                let frame = whole();
                Spec { partition, order, ordered, frame, has_frame: false }
            }
        };
        if let Some(frame) = &tree.window_frame {
            let first = spec.order.first().cloned().zip(spec.ordered);
            let (count, place) = (spec.order.len(), Place::Definition);
            spec.frame = self.at_place(place, |binder| binder.frame(frame, count, first))?;
            spec.has_frame = true;
        }
        Ok(spec)
    }

    fn window_order(
        &mut self,
        tree: &WindowSpec,
    ) -> Result<(Vec<Expression>, Vec<SortKey>, Option<Type>)> {
        let mut partition = Vec::new();
        for expr in &tree.partition_by {
            let bound = self.expression(expr)?;
            partition.push(self.settle(bound)?.expression());
        }
        let (mut order, mut ordered) = (Vec::new(), None);
        for each in &tree.order_by {
            let bound = self.expression(&each.expr)?;
            let bound = self.settle(bound)?;
            ordered = ordered.or(bound.ty());
            order.push(sort_key(bound, direction(each)?));
        }
        Ok((partition, order, ordered))
    }

    /// The window that another one begins with.
    fn base_window(&self, ident: &Ident, tree: &WindowSpec, is_over: bool) -> Result<Spec> {
        let base = self.named_window(ident)?;
        let name = name_of(ident);
        let position = self.position_of_name(ident).map_or(0, |position| position.number());
        // The bracket before it.
        let position = Position::new(position.saturating_sub(1));
        let refused = |message: String| Err(error(message).at(position));
        if !tree.partition_by.is_empty() {
            let message = format!("cannot override PARTITION BY clause of window \"{name}\"");
            return refused(message);
        }
        if !tree.order_by.is_empty() && !base.order.is_empty() {
            return refused(format!("cannot override ORDER BY clause of window \"{name}\""));
        }
        if base.has_frame {
            let message = format!("cannot copy window \"{name}\" because it has a frame clause");
            let mut refused = error(message).at(position);
            if is_over && tree.order_by.is_empty() && tree.window_frame.is_none() {
                refused = refused.with_hint("Omit the parentheses in this OVER clause.");
            }
            return Err(refused);
        }
        Ok(base)
    }
}

/// Refuses what no window function is written with.
fn refuse_parts(name: &str, written: &Written<'_>, function: &Call) -> Result<()> {
    let is_aggregate = aggregate_named(name).is_some();
    if !is_aggregate && !is_window_function(name) {
        let message = format!(
            "OVER specified, but {name} is not a window function nor an aggregate function"
        );
        return Err(Error::new(SqlState::WRONG_OBJECT, message));
    }
    let refused = [
        (written.distinct, "DISTINCT is not implemented for window functions"),
        (!written.order.is_empty(), "aggregate ORDER BY is not implemented for window functions"),
        (
            written.filter.is_some() && !is_aggregate,
            "FILTER is not implemented for non-aggregate window functions",
        ),
        (!written.within.is_empty(), "OVER is not supported for ordered-set aggregates"),
        (function.null_treatment.is_some(), "IGNORE NULLS and RESPECT NULLS are not supported"),
    ];
    match refused.into_iter().find(|(is_there, _)| *is_there) {
        Some((_, message)) => Err(Error::unsupported(message, "")),
        None if written.star && !is_aggregate => {
            let message = format!("{name}(*) specified, but {name} is not an aggregate function");
            Err(Error::new(SqlState::WRONG_OBJECT, message))
        }
        None => Ok(()),
    }
}
