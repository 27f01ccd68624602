//! Names of functions of families, for definitions that are shown.

use crate::ir::{
    ArrayFunction, ByteFunction, Function, MathFunction, NetworkFunction, PathQuery,
    PatternFunction, TextFunction, TimeFunction,
};
use values::Type;

/// The name of a function that is written with the arguments that it is called with.
pub(super) fn name(function: Function) -> Option<&'static str> {
    match function {
        Function::Math(function) => Some(of_numbers(function)),
        Function::Bytes(function) => Some(of_bytes(function)),
        Function::Text(function) => Some(of_text(function)),
        Function::Time(function) => of_times(function),
        Function::Pattern(function) => of_patterns(function),
        Function::Array(function) => of_arrays(function),
        Function::JsonQuery(query) => Some(of_paths(query)),
        Function::Network(function) => Some(of_networks(function)),
        _ => None,
    }
}

/// The type of a result, where it is not that of the first argument.
pub(super) fn result(function: Function) -> Option<Type> {
    Some(match function {
        Function::Bytes(ByteFunction::Md5 | ByteFunction::Encode | ByteFunction::ConvertFrom) => {
            Type::Text
        }
        Function::Network(NetworkFunction::Host | NetworkFunction::Text) => Type::Text,
        Function::Network(NetworkFunction::Network) => Type::Cidr,
        Function::Network(_) => Type::Int4,
        Function::Text(TextFunction::CountNulls | TextFunction::CountValues) => Type::Int4,
        Function::Text(_) => Type::Text,
        Function::Time(TimeFunction::ToDate) => Type::Date,
        Function::Time(TimeFunction::ToTimestamp) => Type::Timestamptz,
        Function::Pattern(PatternFunction::Like)
        | Function::JsonQuery(PathQuery::Exists | PathQuery::Match) => Type::Bool,
        Function::Pattern(PatternFunction::Count | PatternFunction::Position) => Type::Int4,
        _ => return None,
    })
}

fn of_paths(query: PathQuery) -> &'static str {
    match query {
        PathQuery::Exists => "jsonb_path_exists",
        PathQuery::Match => "jsonb_path_match",
        PathQuery::All => "jsonb_path_query_array",
        PathQuery::First => "jsonb_path_query_first",
    }
}

fn of_networks(function: NetworkFunction) -> &'static str {
    match function {
        NetworkFunction::Host => "host",
        NetworkFunction::MaskLength => "masklen",
        NetworkFunction::Network => "network",
        NetworkFunction::Family => "family",
        NetworkFunction::Text => "text",
    }
}

fn of_numbers(function: MathFunction) -> &'static str {
    use MathFunction as M;
    match function {
        M::Exp => "exp",
        M::Ln => "ln",
        M::Log10 | M::Log => "log",
        M::Power => "power",
        M::CubeRoot => "cbrt",
        M::Degrees => "degrees",
        M::Radians => "radians",
        M::Sin => "sin",
        M::Cos => "cos",
        M::Tan => "tan",
        M::Cot => "cot",
        M::Asin => "asin",
        M::Acos => "acos",
        M::Atan => "atan",
        M::Atan2 => "atan2",
        M::SinOfDegrees => "sind",
        M::CosOfDegrees => "cosd",
        M::TanOfDegrees => "tand",
        M::CotOfDegrees => "cotd",
        M::AsinInDegrees => "asind",
        M::AcosInDegrees => "acosd",
        M::AtanInDegrees => "atand",
        M::Atan2InDegrees => "atan2d",
        M::Sinh => "sinh",
        M::Cosh => "cosh",
        M::Tanh => "tanh",
        M::Asinh => "asinh",
        M::Acosh => "acosh",
        M::Atanh => "atanh",
        M::Factorial => "factorial",
        M::GreatestDivisor => "gcd",
        M::LeastMultiple => "lcm",
        M::Scale => "scale",
        M::MinScale => "min_scale",
        M::TrimScale => "trim_scale",
        M::WidthBucket | M::BucketOfBounds => "width_bucket",
    }
}

fn of_bytes(function: ByteFunction) -> &'static str {
    use ByteFunction as B;
    match function {
        B::Md5 => "md5",
        B::Sha224 => "sha224",
        B::Sha256 => "sha256",
        B::Sha384 => "sha384",
        B::Sha512 => "sha512",
        B::Encode => "encode",
        B::Decode => "decode",
        B::ConvertFrom => "convert_from",
        B::ConvertTo => "convert_to",
        B::GetByte => "get_byte",
        B::SetByte => "set_byte",
        B::GetBit => "get_bit",
        B::SetBit => "set_bit",
        B::BitCount => "bit_count",
        B::Trim => "btrim",
        B::TrimLeft => "ltrim",
        B::TrimRight => "rtrim",
        B::Substring => "substr",
        B::Overlay => "overlay",
        B::Position => "position",
    }
}

fn of_text(function: TextFunction) -> &'static str {
    match function {
        TextFunction::Format => "format",
        TextFunction::QuoteIdentifier => "quote_ident",
        TextFunction::QuoteLiteral => "quote_literal",
        TextFunction::QuoteNullable => "quote_nullable",
        TextFunction::CountNulls => "num_nulls",
        TextFunction::CountValues => "num_nonnulls",
        TextFunction::Unescape => "unistr",
        TextFunction::ParseIdentifier => "parse_ident",
    }
}

fn of_times(function: TimeFunction) -> Option<&'static str> {
    Some(match function {
        TimeFunction::MakeInterval => "make_interval",
        TimeFunction::JustifyDays => "justify_days",
        TimeFunction::JustifyHours => "justify_hours",
        TimeFunction::JustifyInterval => "justify_interval",
        TimeFunction::ToDate => "to_date",
        TimeFunction::ToTimestamp => "to_timestamp",
        TimeFunction::IsFiniteInterval => "isfinite",
        TimeFunction::MakeZoned => return None,
    })
}

fn of_patterns(function: PatternFunction) -> Option<&'static str> {
    Some(match function {
        PatternFunction::Replace => "regexp_replace",
        PatternFunction::First => "regexp_match",
        PatternFunction::Like => "regexp_like",
        PatternFunction::Count => "regexp_count",
        PatternFunction::Split => "regexp_split_to_array",
        PatternFunction::Part => "\"substring\"",
        PatternFunction::OfSimilar => "similar_to_escape",
        PatternFunction::Position => "regexp_instr",
        PatternFunction::Substring => "regexp_substr",
        PatternFunction::Matches => return None,
    })
}

fn of_arrays(function: ArrayFunction) -> Option<&'static str> {
    Some(match function {
        ArrayFunction::Replace => "array_replace",
        ArrayFunction::Positions => "array_positions",
        ArrayFunction::Dimensions => "array_dims",
        ArrayFunction::DimensionCount => "array_ndims",
        ArrayFunction::Trim => "trim_array",
        ArrayFunction::CompareAny
        | ArrayFunction::CompareAll
        | ArrayFunction::Nest
        | ArrayFunction::Item
        | ArrayFunction::Slice => return None,
    })
}
