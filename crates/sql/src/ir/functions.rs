//! Functions by what they are of, which [`super::Function`] has as one each.

use serde::{Deserialize, Serialize};

/// Functions of numbers. Those of angles have a form for degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after PostgreSQL's functions")]
pub enum MathFunction {
    Exp,
    Ln,
    Log10,
    /// The logarithm of the second argument to the base of the first.
    Log,
    Power,
    CubeRoot,
    Degrees,
    Radians,
    Sin,
    Cos,
    Tan,
    Cot,
    Asin,
    Acos,
    Atan,
    Atan2,
    SinOfDegrees,
    CosOfDegrees,
    TanOfDegrees,
    CotOfDegrees,
    AsinInDegrees,
    AcosInDegrees,
    AtanInDegrees,
    Atan2InDegrees,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Factorial,
    GreatestDivisor,
    LeastMultiple,
    Scale,
    MinScale,
    TrimScale,
    WidthBucket,
    /// The bucket among sorted bounds.
    BucketOfBounds,
}

/// Functions of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after PostgreSQL's functions")]
pub enum ByteFunction {
    Md5,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Encode,
    Decode,
    ConvertFrom,
    ConvertTo,
    GetByte,
    SetByte,
    GetBit,
    SetBit,
    BitCount,
    Trim,
    TrimLeft,
    TrimRight,
    Substring,
    Overlay,
    Position,
}

/// More functions of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after PostgreSQL's functions")]
pub enum TextFunction {
    Format,
    QuoteIdentifier,
    QuoteLiteral,
    QuoteNullable,
    /// The count of arguments that are NULL, and of those that are not.
    CountNulls,
    CountValues,
    Unescape,
    ParseIdentifier,
}

/// More functions of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after PostgreSQL's functions")]
pub enum TimeFunction {
    MakeInterval,
    /// On clocks of the session's zone, or of the zone that the last argument names.
    MakeZoned,
    JustifyDays,
    JustifyHours,
    JustifyInterval,
    ToDate,
    ToTimestamp,
    /// Whether an interval is finite: all are.
    IsFiniteInterval,
}

/// Functions of regular expressions. The last argument of all but the first and the last are flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternFunction {
    /// `~`; the third argument is whether large and small letters are the same.
    Matches,
    /// `regexp_replace` of text, pattern, replacement, where to begin and which match.
    Replace,
    /// `regexp_match`
    First,
    /// `regexp_like`
    Like,
    /// `regexp_count` of text, pattern and where to begin.
    Count,
    /// `regexp_instr` of text, pattern, where to begin, which match, whether its end, and group.
    Position,
    /// `regexp_substr` of text, pattern, where to begin, which match, and group.
    Substring,
    /// `regexp_split_to_array`
    Split,
    /// `substring(text from pattern)`: its first group, or the match.
    Part,
    /// The regular expression of a pattern of SIMILAR TO, with an escape.
    OfSimilar,
}

/// More functions of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after PostgreSQL's functions")]
pub enum ArrayFunction {
    Replace,
    Positions,
    Dimensions,
    DimensionCount,
    Trim,
    /// Whether a value compares so with an item, and with all: the second argument is the
    /// comparison's number.
    CompareAny,
    CompareAll,
    /// An array of arrays of the same dimensions.
    Nest,
    /// The item at several subscripts.
    Item,
    /// The part between pairs of bounds; `false` for one that is left out.
    Slice,
}

/// An aggregate of the squares of numbers and of products of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after PostgreSQL's aggregates")]
pub enum Statistic {
    VariancePopulation,
    VarianceSample,
    DeviationPopulation,
    DeviationSample,
    Correlation,
    CovariancePopulation,
    CovarianceSample,
    RegressionCount,
    RegressionAverageX,
    RegressionAverageY,
    RegressionXX,
    RegressionXY,
    RegressionYY,
    RegressionSlope,
    RegressionIntercept,
    RegressionR2,
}

impl Statistic {
    /// True if it is of pairs.
    pub fn is_of_pairs(self) -> bool {
        use Statistic::{DeviationPopulation, DeviationSample, VariancePopulation, VarianceSample};
        !matches!(self, DeviationPopulation | DeviationSample | VariancePopulation | VarianceSample)
    }
}

/// What is asked of what a path of JSON finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathQuery {
    /// `jsonb_path_exists`
    Exists,
    /// `jsonb_path_match`
    Match,
    /// `jsonb_path_query_array`
    All,
    /// `jsonb_path_query_first`
    First,
}

/// Functions of addresses of the internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after PostgreSQL's functions")]
pub enum NetworkFunction {
    Host,
    MaskLength,
    Network,
    Family,
    Text,
}
