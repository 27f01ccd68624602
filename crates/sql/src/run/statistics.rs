//! Aggregates of squares and products, of bits, and of values by their places in an order.
//!
//! Sums of floats depend on the order of rows: the canonical one, or that of the aggregate.

use crate::ir::Statistic;
use values::time::scaled;
use values::{Array, Datum, Error, Interval, Numeric, Result, SqlState, Type};

/// The most values of a sum of pairs: their count, both sums, and three of products.
const SUMS: usize = 6;

fn malformed() -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "plan has a malformed aggregate")
}

/// Adds a row to the sums.
pub(super) fn take(statistic: Statistic, sums: &mut Vec<Datum>, row: &[Datum]) -> Result<()> {
    match row {
        _ if statistic == Statistic::RegressionCount => {}
        [Datum::Float8(y), Datum::Float8(x)] => {
            *sums = Floats::read(sums)?.with(*x, *y, statistic.is_of_pairs())?.to_datums();
        }
        [Datum::Float8(x)] => *sums = Floats::read(sums)?.with(*x, 0.0, false)?.to_datums(),
        [Datum::Numeric(value)] => {
            let square = value.multiply(value)?;
            *sums = match &sums[..] {
                [] => vec![Datum::Numeric(value.clone()), Datum::Numeric(square)],
                [Datum::Numeric(sum), Datum::Numeric(squares)] => {
                    vec![Datum::Numeric(sum.add(value)?), Datum::Numeric(squares.add(&square)?)]
                }
                _ => return Err(malformed()),
            };
        }
        _ => return Err(malformed()),
    }
    Ok(())
}

/// What a statistic of so many rows comes to.
pub(super) fn result(statistic: Statistic, sums: &[Datum], count: i64) -> Result<Datum> {
    match sums {
        _ if statistic == Statistic::RegressionCount => Ok(Datum::Int8(count)),
        [] => Ok(Datum::Null),
        [Datum::Numeric(sum), Datum::Numeric(squares)] => exact(statistic, sum, squares, count),
        _ => {
            let value = Floats::read(sums)?.result(statistic);
            Ok(value.map_or(Datum::Null, Datum::Float8))
        }
    }
}

/// Variance and deviation of exact numbers.
fn exact(statistic: Statistic, sum: &Numeric, squares: &Numeric, count: i64) -> Result<Datum> {
    use Statistic::{DeviationPopulation, DeviationSample, VariancePopulation, VarianceSample};
    let is_sample = matches!(statistic, DeviationSample | VarianceSample);
    if is_sample && count < 2 {
        return Ok(Datum::Null);
    }
    if !sum.is_finite() || !squares.is_finite() {
        return Ok(Datum::Numeric(Numeric::NAN));
    }
    let own = Numeric::from(count);
    let difference = own.multiply(squares)?.subtract(&sum.multiply(sum)?)?;
    if difference.signum() <= 0 {
        return Ok(Datum::Numeric(Numeric::ZERO));
    }
    let divisor = own.multiply(&Numeric::from(count - i64::from(is_sample)))?;
    let variance = difference.divide(&divisor)?;
    Ok(Datum::Numeric(match statistic {
        VariancePopulation | VarianceSample => variance,
        DeviationPopulation | DeviationSample => variance.sqrt_scaled(variance.scale())?,
        _ => return Err(malformed()),
    }))
}

/// Sums of floats, by the algorithm of Youngs and Cramer.
#[derive(Clone, Copy, Default)]
struct Floats {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Floats {
    fn read(sums: &[Datum]) -> Result<Floats> {
        let value = |datum: &Datum| match datum {
            Datum::Float8(value) => Ok(*value),
            _ => Err(malformed()),
        };
        match &sums.iter().map(value).collect::<Result<Vec<f64>>>()?[..] {
            [] => Ok(Floats::default()),
            &[count, x, y, xx, yy, xy] => Ok(Floats { count, x, y, xx, yy, xy }),
            _ => Err(malformed()),
        }
    }

    fn to_datums(self) -> Vec<Datum> {
        let all: [f64; SUMS] = [self.count, self.x, self.y, self.xx, self.yy, self.xy];
        all.map(Datum::Float8).to_vec()
    }

    /// The sums with a pair more.
    fn with(&self, x: f64, y: f64, is_of_pairs: bool) -> Result<Floats> {
        let (count, both) = (self.count + 1.0, [self.x + x, self.y + y]);
        let mut next = Floats { count, x: both[0], y: both[1], ..*self };
        if self.count == 0.0 {
            let [of_x, of_y] = [x, y].map(|value| if value.is_finite() { 0.0 } else { f64::NAN });
            (next.xx, next.yy, next.xy) = (of_x, of_y, of_x + of_y);
            return Ok(next);
        }
        let (from_x, from_y) = (x * next.count - next.x, y * next.count - next.y);
        let weight = next.count * self.count;
        if is_of_pairs {
            let scale = 1.0 / weight;
            next.xx += from_x * from_x * scale;
            next.yy += from_y * from_y * scale;
            next.xy += from_x * from_y * scale;
        } else {
            next.xx += from_x * from_x / weight;
        }
        next.checked([self.x, self.y, x, y].iter().all(|value| value.is_finite()))
    }

    /// The sums, none of which may be too large if all that was added is finite.
    fn checked(mut self, are_finite: bool) -> Result<Floats> {
        let sums = [&mut self.xx, &mut self.yy, &mut self.xy];
        let mut is_beyond = sums.iter().any(|sum| sum.is_infinite());
        for sum in sums {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        is_beyond |= self.x.is_infinite() || self.y.is_infinite();
        if is_beyond && are_finite {
            let message = "value out of range: overflow";
            return Err(Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
        }
        Ok(self)
    }

    fn result(&self, statistic: Statistic) -> Option<f64> {
        use Statistic as S;
        let Floats { count, x, y, xx, yy, xy } = *self;
        let of_sample = (count > 1.0).then_some(count - 1.0);
        match statistic {
            S::VariancePopulation => Some(xx / count),
            S::VarianceSample => of_sample.map(|divisor| xx / divisor),
            S::DeviationPopulation => Some((xx / count).sqrt()),
            S::DeviationSample => of_sample.map(|divisor| (xx / divisor).sqrt()),
            S::CovariancePopulation => Some(xy / count),
            S::CovarianceSample => of_sample.map(|divisor| xy / divisor),
            S::Correlation => (xx != 0.0 && yy != 0.0).then(|| xy / (xx * yy).sqrt()),
            S::RegressionCount => Some(count),
            S::RegressionAverageX => Some(x / count),
            S::RegressionAverageY => Some(y / count),
            S::RegressionXX => Some(xx),
            S::RegressionXY => Some(xy),
            S::RegressionYY => Some(yy),
            S::RegressionSlope => (xx != 0.0).then(|| xy / xx),
            S::RegressionIntercept => (xx != 0.0).then(|| (y - x * xy / xx) / count),
            S::RegressionR2 if xx == 0.0 => None,
            S::RegressionR2 => Some(if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) }),
        }
    }
}

/// The bits of two whole numbers.
pub(super) fn bits(left: &Datum, right: &Datum, both: fn(i64, i64) -> i64) -> Result<Datum> {
    Ok(match (left, right) {
        (Datum::Int2(left), Datum::Int2(right)) => {
            Datum::Int2(both(i64::from(*left), i64::from(*right)) as i16)
        }
        (Datum::Int4(left), Datum::Int4(right)) => {
            Datum::Int4(both(i64::from(*left), i64::from(*right)) as i32)
        }
        (Datum::Int8(left), Datum::Int8(right)) => Datum::Int8(both(*left, *right)),
        _ => return Err(malformed()),
    })
}

/// The values of an order at a fraction of it, or at each of an array of fractions: between two of
/// them if it is `continuous`.
pub(super) fn at_fraction(values: &[Datum], fraction: &Datum, continuous: bool) -> Result<Datum> {
    let one = |fraction: &Datum| match fraction {
        Datum::Float8(fraction) => place(values, *fraction, continuous),
        Datum::Null => Ok(Datum::Null),
        _ => Err(malformed()),
    };
    match fraction {
        _ if values.is_empty() => Ok(Datum::Null),
        Datum::Array(fractions) => {
            let found = fractions.items().iter().map(one).collect::<Result<Vec<_>>>()?;
            let element = values.first().and_then(Datum::kind).unwrap_or(Type::Text);
            let dimensions = fractions.dimensions().to_vec();
            Ok(Datum::Array(Box::new(Array::with_dimensions(element, dimensions, found)?)))
        }
        fraction => one(fraction),
    }
}

fn place(values: &[Datum], fraction: f64, continuous: bool) -> Result<Datum> {
    if fraction.is_nan() || !(0.0..=1.0).contains(&fraction) {
        let message = format!("percentile value {fraction} is not between 0 and 1");
        return Err(Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    }
    let count = values.len();
    let at = |place: f64| values.get(place as usize).cloned().ok_or_else(malformed);
    if !continuous {
        return at(((fraction * count as f64).ceil() - 1.0).max(0.0));
    }
    let exact = fraction * (count - 1) as f64;
    let (first, second) = (at(exact.floor())?, at(exact.ceil())?);
    let part = exact - exact.floor();
    if part == 0.0 {
        return Ok(first);
    }
    Ok(match (first, second) {
        (Datum::Float8(first), Datum::Float8(second)) => {
            Datum::Float8(first + part * (second - first))
        }
        (Datum::Interval(first), Datum::Interval(second)) => {
            Datum::Interval(between(first, second, part)?)
        }
        _ => return Err(malformed()),
    })
}

fn between(first: Interval, second: Interval, part: f64) -> Result<Interval> {
    let difference = second.add(&first.negate()?)?;
    first.add(&scaled(difference, part)?)
}

/// The value that is there most often, the first of them in an order.
pub(super) fn most_frequent(values: &[Datum]) -> Datum {
    let (mut best, mut most) = (&Datum::Null, 0);
    for run in values.chunk_by(|left, right| left == right) {
        if run.len() > most {
            (best, most) = (&run[0], run.len());
        }
    }
    best.clone()
}
