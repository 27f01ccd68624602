//! Aggregates of numbers, and those of places in an order (WITHIN GROUP).

use super::aggregates::Written;
use super::binder::Binder;
use super::coerce::Bound;
use super::kinds::Willing;
use super::order::direction;
use crate::ir::{AggregateKind, Direction, Op, Statistic};
use sqlparser::ast::Expr;
use values::{Error, Result, SqlState, Type};

/// What rows are ordered by.
type Ordering = Vec<(Bound, Direction)>;

/// The aggregate of numbers with this name.
pub(super) fn statistic_named(name: &str) -> Option<AggregateKind> {
    use Statistic as S;
    let statistic = match name {
        "bit_and" => return Some(AggregateKind::BitAnd),
        "bit_or" => return Some(AggregateKind::BitOr),
        "bit_xor" => return Some(AggregateKind::BitXor),
        "percentile_cont" => return Some(AggregateKind::Interpolated),
        "percentile_disc" => return Some(AggregateKind::Percentile),
        "mode" => return Some(AggregateKind::Mode),
        "var_pop" => S::VariancePopulation,
        "var_samp" | "variance" => S::VarianceSample,
        "stddev_pop" => S::DeviationPopulation,
        "stddev_samp" | "stddev" => S::DeviationSample,
        "corr" => S::Correlation,
        "covar_pop" => S::CovariancePopulation,
        "covar_samp" => S::CovarianceSample,
        "regr_count" => S::RegressionCount,
        "regr_avgx" => S::RegressionAverageX,
        "regr_avgy" => S::RegressionAverageY,
        "regr_sxx" => S::RegressionXX,
        "regr_sxy" => S::RegressionXY,
        "regr_syy" => S::RegressionYY,
        "regr_slope" => S::RegressionSlope,
        "regr_intercept" => S::RegressionIntercept,
        "regr_r2" => S::RegressionR2,
        _ => return None,
    };
    Some(AggregateKind::Statistic(statistic))
}

/// True if the aggregate is one of an order that WITHIN GROUP states.
pub(super) fn is_of_order(kind: &AggregateKind) -> bool {
    matches!(kind, AggregateKind::Interpolated | AggregateKind::Percentile | AggregateKind::Mode)
}

/// The count of arguments between the brackets of an aggregate of numbers or places.
pub(super) fn arguments_wanted(kind: &AggregateKind) -> usize {
    match kind {
        AggregateKind::Statistic(statistic) if statistic.is_of_pairs() => 2,
        AggregateKind::Mode => 0,
        _ => 1,
    }
}

/// Refuses WITHIN GROUP where it may not be, and its absence where it must be.
pub(super) fn check_order(name: &str, kind: &AggregateKind, written: &Written<'_>) -> Result<()> {
    let absent = |what: &str| {
        let message = format!("function {name} does not exist {what} WITHIN GROUP");
        Err(Error::new(SqlState::UNDEFINED_FUNCTION, message))
    };
    match (is_of_order(kind), written.within.is_empty()) {
        (false, true) => Ok(()),
        (false, false) => absent("with"),
        (true, true) => absent("without"),
        (true, false) if written.distinct => {
            let message = "cannot use DISTINCT with WITHIN GROUP";
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
        (true, false) if !written.order.is_empty() => {
            let message = "cannot use multiple ORDER BY clauses with WITHIN GROUP";
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
        (true, false) => Ok(()),
    }
}

/// The types of what the interpreter computes, and of the result; `None` for another aggregate.
pub(super) fn statistic_types(
    kind: &AggregateKind,
    arguments: &[Option<Type>],
) -> Option<(Type, Type)> {
    let own = arguments.first().copied().flatten().unwrap_or(Type::Text);
    let is_of_fractions = matches!(arguments.get(1), Some(Some(Type::Array(_))));
    let ty = match kind {
        AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => own,
        AggregateKind::Statistic(Statistic::RegressionCount) => Type::Int8,
        AggregateKind::Statistic(_) => own,
        AggregateKind::Interpolated | AggregateKind::Percentile if is_of_fractions => {
            own.array().unwrap_or(own)
        }
        AggregateKind::Interpolated | AggregateKind::Percentile | AggregateKind::Mode => own,
        _ => return None,
    };
    Some((ty, ty))
}

impl Binder<'_> {
    /// An argument of an aggregate of numbers, as it is computed.
    pub(super) fn statistic_argument(
        &mut self,
        kind: &AggregateKind,
        name: &str,
        bound: Bound,
    ) -> Result<Bound> {
        let refused = |bound: &Bound| {
            let message = format!("function {name}({}) does not exist", bound.type_name());
            Error::new(SqlState::UNDEFINED_FUNCTION, message)
        };
        let ty = match (kind, bound.ty()) {
            (AggregateKind::Statistic(statistic), own) => match own {
                _ if statistic.is_of_pairs() => Type::Float8,
                Some(Type::Float4 | Type::Float8) | None => Type::Float8,
                Some(ty) if ty.is_number() => Type::Numeric,
                _ => return Err(refused(&bound)),
            },
            (_, Some(ty)) if ty.is_integer() => ty,
            _ => return Err(refused(&bound)),
        };
        self.coerce(bound, ty, Willing::Implicit)
    }

    /// The value that WITHIN GROUP puts in an order, and the fraction, if there is one; and the
    /// order.
    pub(super) fn ordered_arguments(
        &mut self,
        kind: &AggregateKind,
        name: &str,
        written: &Written<'_>,
    ) -> Result<(Vec<Bound>, Ordering)> {
        let [by] = written.within else {
            let message = format!("function {name} has another count of columns in WITHIN GROUP");
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        };
        let value = self.expression(&by.expr)?;
        let value = match (kind, value.ty()) {
            (AggregateKind::Interpolated, Some(Type::Interval)) => value,
            (AggregateKind::Interpolated, _) => {
                self.coerce(value, Type::Float8, Willing::Implicit)?
            }
            _ => self.settle(value)?,
        };
        let order = vec![(value.clone(), direction(by)?)];
        let mut own = vec![value];
        if let Some(fraction) = written.arguments.first() {
            let bound = self.expression(fraction)?;
            if bound.code.iter().any(|op| matches!(op, Op::Column(_))) {
                self.check_direct(fraction)?;
            }
            let is_array = bound.ty().is_some_and(|ty| ty.element().is_some());
            let ty = match is_array {
                true => Type::Float8.array().unwrap_or(Type::Float8),
                false => Type::Float8,
            };
            let willing = if is_array { Willing::Explicit } else { Willing::Implicit };
            own.push(self.coerce(bound, ty, willing)?);
        }
        Ok((own, order))
    }

    /// Refuses a direct argument of columns that rows are not grouped by. It is computed for each
    /// row of its group, and has one value for all of them.
    fn check_direct(&mut self, argument: &Expr) -> Result<()> {
        let Some(grouping) = &mut self.grouping else { return Ok(()) };
        grouping.inside = false;
        let bound = self.expression(argument);
        let Some(grouping) = &mut self.grouping else { return Ok(()) };
        grouping.inside = true;
        bound?;
        let detail = "Direct arguments of an ordered-set aggregate must use only grouped columns.";
        grouping.ungrouped.take().map_or(Ok(()), |error| Err(error.with_detail(detail)))
    }
}
