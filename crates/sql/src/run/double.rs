//! Exponentials, logarithms and powers of `double precision` by pairs of floats: results are
//! rounded once, and PostgreSQL's differ in the last digit only where its library rounds otherwise.
//!
//! Sums and products of floats alone are used, which are the same on every machine.

/// The unevaluated sum of two floats, the second of which is below the last digit of the first.
#[derive(Clone, Copy)]
pub(super) struct Double {
    high: f64,
    low: f64,
}

const LN_2: Double = Double { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
const LN_10: Double = Double { high: std::f64::consts::LN_10, low: -2.170_756_223_382_249_4e-16 };
/// Multiplies a float so that its upper half can be split off.
const SPLITTER: f64 = 134_217_729.0;
/// How often the argument of a series is halved, and how many terms it has then.
const HALVINGS: i32 = 8;
const TERMS: u32 = 10;
/// Beyond this an exponential is infinite, and below its negative zero.
const EXPONENT_MAX: f64 = 800.0;

/// The sum of two floats.
fn sum(left: f64, right: f64) -> Double {
    let high = left + right;
    let part = high - left;
    Double { high, low: (left - (high - part)) + (right - part) }
}

/// The product of two floats.
fn product(left: f64, right: f64) -> Double {
    let split = |value: f64| {
        let scaled = SPLITTER * value;
        let upper = scaled - (scaled - value);
        (upper, value - upper)
    };
    let high = left * right;
    let ((a, b), (c, d)) = (split(left), split(right));
    Double { high, low: ((a * c - high) + a * d + b * c) + b * d }
}

impl Double {
    fn of(value: f64) -> Double {
        Double { high: value, low: 0.0 }
    }

    fn add(self, other: Double) -> Double {
        let high = sum(self.high, other.high);
        let low = sum(self.low, other.low);
        let first = sum(high.high, high.low + low.high);
        sum(first.high, first.low + low.low)
    }

    fn multiply(self, other: Double) -> Double {
        let exact = product(self.high, other.high);
        sum(exact.high, exact.low + (self.high * other.low + self.low * other.high))
    }

    fn divide(self, divisor: Double) -> Double {
        let first = self.high / divisor.high;
        let rest = self.add(divisor.multiply(Double::of(-first)));
        let second = rest.high / divisor.high;
        let rest = rest.add(divisor.multiply(Double::of(-second)));
        sum(first, second).add(Double::of(rest.high / divisor.high))
    }

    fn scaled(self, exponent: i32) -> Double {
        Double { high: libm::scalbn(self.high, exponent), low: libm::scalbn(self.low, exponent) }
    }

    /// The value, rounded once.
    pub(super) fn value(self) -> f64 {
        self.high + self.low
    }

    /// The exponential less one of a number between -1 and 1.
    fn exp_less_one(self) -> Double {
        let small = self.scaled(-HALVINGS);
        // The series from its last term on.
        let mut series = Double::of(0.0);
        for number in (1..=TERMS).rev() {
            let factor = small.divide(Double::of(f64::from(number)));
            series = factor.multiply(series.add(Double::of(1.0)));
        }
        for _ in 0..HALVINGS {
            series = series.scaled(1).add(series.multiply(series));
        }
        series
    }

    /// The exponential.
    pub(super) fn exp(self) -> f64 {
        if self.high.abs() > EXPONENT_MAX {
            return if self.high > 0.0 { f64::INFINITY } else { 0.0 };
        }
        let times = (self.high / LN_2.high).round_ties_even();
        let rest = self.add(LN_2.multiply(Double::of(-times)));
        let fraction = rest.exp_less_one().add(Double::of(1.0));
        libm::scalbn(fraction.value(), times as i32)
    }
}

/// The exponential.
pub(super) fn exp(value: f64) -> f64 {
    Double::of(value).exp()
}

/// The natural logarithm of a finite number above zero.
pub(super) fn ln(value: f64) -> Double {
    let (mut fraction, mut exponent) = libm::frexp(value);
    if fraction < std::f64::consts::FRAC_1_SQRT_2 {
        (fraction, exponent) = (2.0 * fraction, exponent - 1);
    }
    // Of fraction / e^rough, which is almost one.
    let rough = libm::log(fraction);
    let less_one = Double::of(-rough).exp_less_one();
    let rest = sum(fraction, -1.0).add(less_one.multiply(Double::of(fraction)));
    let square = rest.multiply(rest).scaled(-1);
    let own = Double::of(rough).add(rest).add(Double { high: -square.high, low: -square.low });
    LN_2.multiply(Double::of(f64::from(exponent))).add(own)
}

/// The decimal logarithm of a finite number above zero.
pub(super) fn log10(value: f64) -> f64 {
    ln(value).divide(LN_10).value()
}

/// The power of a finite number above zero with a finite exponent.
pub(super) fn power(base: f64, exponent: f64) -> f64 {
    let ln = ln(base);
    let rough = ln.high * exponent;
    if rough.is_nan() || rough.abs() > EXPONENT_MAX {
        return Double::of(rough).exp();
    }
    ln.multiply(Double::of(exponent)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::Numeric;

    /// A number with 450 digits behind the point.
    fn exact(value: f64) -> Numeric {
        let number: Numeric = format!("{value:.50}").parse().unwrap();
        number.round(450).unwrap()
    }

    #[test]
    fn results_are_rounded_once() {
        let values = [1.0, 0.5, 2.0, 10.25, 0.001, 1.000_000_000_1, 3.7, 123.456, 1e-9, 99.99];
        for value in values {
            let number = exact(value);
            for value in [value, -value] {
                let expected = exact(value).exp().unwrap().to_f64().unwrap();
                assert_eq!(exp(value), expected, "exp({value})");
            }
            assert_eq!(ln(value).value(), number.ln().unwrap().to_f64().unwrap(), "ln({value})");
            let logarithm = Numeric::from(10).logarithm(&number).unwrap();
            assert_eq!(log10(value), logarithm.to_f64().unwrap(), "log10({value})");
            for exponent in [0.5, 1.5, -2.25, 7.125, 100.0 / 3.0] {
                let expected = number.raised(&exact(exponent)).unwrap().to_f64().unwrap();
                assert_eq!(power(value, exponent), expected, "{value} ^ {exponent}");
            }
        }
        assert_eq!(log10(1_000.0), 3.0);
        assert_eq!(power(10.0, 22.0), 1e22);
        assert_eq!(exp(1.0), std::f64::consts::E);
        assert_eq!((exp(710.0), exp(-800.0)), (f64::INFINITY, 0.0));
        assert_eq!(ln(f64::MIN_POSITIVE / 4.0).value(), -709.782_712_893_384);
    }
}
