//! Functions of numbers, and of bytes.

use super::binder::Binder;
use super::bits;
use super::coerce::Bound;
use super::described::{Described, described};
use super::expression::{call, word};
use super::kinds::Willing;
use super::networks;
use crate::ir::{ByteFunction, Function, MathFunction, TextFunction};
use values::{Datum, Error, Result, Type};

/// A function of double precision alone.
fn float_function(name: &str, count: usize) -> Option<MathFunction> {
    use MathFunction as M;
    Some(match (name, count) {
        ("cbrt", 1) => M::CubeRoot,
        ("degrees", 1) => M::Degrees,
        ("radians", 1) => M::Radians,
        ("sin", 1) => M::Sin,
        ("cos", 1) => M::Cos,
        ("tan", 1) => M::Tan,
        ("cot", 1) => M::Cot,
        ("asin", 1) => M::Asin,
        ("acos", 1) => M::Acos,
        ("atan", 1) => M::Atan,
        ("atan2", 2) => M::Atan2,
        ("sind", 1) => M::SinOfDegrees,
        ("cosd", 1) => M::CosOfDegrees,
        ("tand", 1) => M::TanOfDegrees,
        ("cotd", 1) => M::CotOfDegrees,
        ("asind", 1) => M::AsinInDegrees,
        ("acosd", 1) => M::AcosInDegrees,
        ("atand", 1) => M::AtanInDegrees,
        ("atan2d", 2) => M::Atan2InDegrees,
        ("sinh", 1) => M::Sinh,
        ("cosh", 1) => M::Cosh,
        ("tanh", 1) => M::Tanh,
        ("asinh", 1) => M::Asinh,
        ("acosh", 1) => M::Acosh,
        ("atanh", 1) => M::Atanh,
        _ => return None,
    })
}

/// A function whose arguments have stated types.
fn function_named(name: &str, count: usize) -> Option<Described<Function>> {
    use ByteFunction as B;
    use Function::{Bytes, Math};
    use MathFunction as M;
    use Type::{Bytea, Int4, Int8, Numeric, Text};
    match (name, count) {
        ("log", 2) => described(Math(M::Log), &[Numeric, Numeric], Numeric),
        ("factorial", 1) => described(Math(M::Factorial), &[Int8], Numeric),
        ("scale", 1) => described(Math(M::Scale), &[Numeric], Int4),
        ("min_scale", 1) => described(Math(M::MinScale), &[Numeric], Int4),
        ("trim_scale", 1) => described(Math(M::TrimScale), &[Numeric], Numeric),
        ("sha224", 1) => described(Bytes(B::Sha224), &[Bytea], Bytea),
        ("sha256", 1) => described(Bytes(B::Sha256), &[Bytea], Bytea),
        ("sha384", 1) => described(Bytes(B::Sha384), &[Bytea], Bytea),
        ("sha512", 1) => described(Bytes(B::Sha512), &[Bytea], Bytea),
        ("encode", 2) => described(Bytes(B::Encode), &[Bytea, Text], Text),
        ("decode", 2) => described(Bytes(B::Decode), &[Text, Text], Bytea),
        ("convert_from", 2) => described(Bytes(B::ConvertFrom), &[Bytea, Text], Text),
        ("convert_to", 2) => described(Bytes(B::ConvertTo), &[Text, Text], Bytea),
        ("get_byte", 2) => described(Bytes(B::GetByte), &[Bytea, Int4], Int4),
        ("set_byte", 3) => described(Bytes(B::SetByte), &[Bytea, Int4, Int4], Bytea),
        ("get_bit", 2) => described(Bytes(B::GetBit), &[Bytea, Int8], Int4),
        ("set_bit", 3) => described(Bytes(B::SetBit), &[Bytea, Int8, Int4], Bytea),
        ("bit_count", 1) => described(Bytes(B::BitCount), &[Bytea], Int8),
        ("unistr", 1) => described(Function::Text(TextFunction::Unescape), &[Text], Text),
        ("quote_ident", 1) => {
            described(Function::Text(TextFunction::QuoteIdentifier), &[Text], Text)
        }
        _ => None,
    }
}

/// A function of text that bytes have, too.
fn bytes_function(name: &str, count: usize) -> Option<Described<Function>> {
    use ByteFunction as B;
    use Function::Bytes;
    use Type::{Bytea, Int4};
    match (name, count) {
        ("btrim", 2) => described(Bytes(B::Trim), &[Bytea, Bytea], Bytea),
        ("ltrim", 2) => described(Bytes(B::TrimLeft), &[Bytea, Bytea], Bytea),
        ("rtrim", 2) => described(Bytes(B::TrimRight), &[Bytea, Bytea], Bytea),
        ("position", 2) => described(Bytes(B::Position), &[Bytea, Bytea], Int4),
        ("substr" | "substring", 2 | 3) => {
            described(Bytes(B::Substring), &[Bytea, Int4, Int4], Bytea)
        }
        ("overlay", 3 | 4) => described(Bytes(B::Overlay), &[Bytea, Bytea, Int4, Int4], Bytea),
        _ => None,
    }
}

impl Binder<'_> {
    /// A function of numbers or bytes; `None` if there is none of this name and these arguments.
    pub(super) fn math_function(&mut self, name: &str, all: &[Bound]) -> Result<Option<Bound>> {
        if let Some(found) = self.bytes_function(name, all)? {
            return Ok(Some(found));
        }
        if let Some(function) = float_function(name, all.len()) {
            let all = self.coerced(all.to_vec(), &[Type::Float8, Type::Float8])?;
            return Ok(Some(call(Function::Math(function), all, Type::Float8)));
        }
        if let Some(found) = function_named(name, all.len()) {
            let all = self.coerced(all.to_vec(), found.arguments)?;
            return Ok(Some(call(found.function, all, found.result)));
        }
        self.number_function(name, all)
    }

    /// A function of text that bytes have, too, of bytes.
    pub(super) fn bytes_function(&mut self, name: &str, all: &[Bound]) -> Result<Option<Bound>> {
        let found = match all.first().and_then(Bound::ty) {
            Some(Type::Bytea) => bytes_function(name, all.len()),
            Some(ty) if ty.is_network() => networks::function_named(name, all.len()),
            Some(ty) if ty.is_bits() => bits::function_named(name, all.len()),
            _ => None,
        };
        let Some(found) = found else { return Ok(None) };
        let all = self.coerced(all.to_vec(), found.arguments)?;
        Ok(Some(call(found.function, all, found.result)))
    }

    /// Functions of several types of numbers.
    fn number_function(&mut self, name: &str, all: &[Bound]) -> Result<Option<Bound>> {
        use MathFunction as M;
        let function = match (name, all.len()) {
            ("exp", 1) => M::Exp,
            ("ln", 1) => M::Ln,
            ("log" | "log10", 1) => M::Log10,
            ("gcd", 2) => return self.whole_function(M::GreatestDivisor, all),
            ("lcm", 2) => return self.whole_function(M::LeastMultiple, all),
            ("width_bucket", 2) => return self.bucket_of_bounds(all),
            ("width_bucket", 4) => {
                let is_float =
                    |bound: &Bound| matches!(bound.ty(), Some(Type::Float4 | Type::Float8) | None);
                let ty = match all[..3].iter().any(is_float) {
                    true => Type::Float8,
                    false => Type::Numeric,
                };
                let all = self.coerced(all.to_vec(), &[ty, ty, ty, Type::Int4])?;
                return Ok(Some(call(Function::Math(M::WidthBucket), all, Type::Int4)));
            }
            ("md5", 1) => {
                let is_bytes = all[0].ty() == Some(Type::Bytea);
                let ty = if is_bytes { Type::Bytea } else { Type::Text };
                let all = self.coerced(all.to_vec(), &[ty])?;
                return Ok(Some(call(Function::Bytes(ByteFunction::Md5), all, Type::Text)));
            }
            _ => return self.made_text(name, all),
        };
        let ty = if all[0].ty() == Some(Type::Numeric) { Type::Numeric } else { Type::Float8 };
        let all = self.coerced(all.to_vec(), &[ty])?;
        Ok(Some(call(Function::Math(function), all, ty)))
    }

    /// Divisors and multiples: of whole numbers or `numeric`.
    fn whole_function(&mut self, function: MathFunction, all: &[Bound]) -> Result<Option<Bound>> {
        let both = self.unify(all.to_vec())?;
        let ty = match both[0].ty() {
            Some(Type::Int2) => Type::Int4,
            Some(ty @ (Type::Int4 | Type::Int8 | Type::Numeric)) => ty,
            _ => return Ok(None),
        };
        let both = self.coerced(both, &[ty, ty])?;
        Ok(Some(call(Function::Math(function), both, ty)))
    }

    fn bucket_of_bounds(&mut self, all: &[Bound]) -> Result<Option<Bound>> {
        let Some(items) = all[1].ty().and_then(Type::element) else { return Ok(None) };
        let ty = match all[0].ty() {
            Some(own) => match super::kinds::chosen(own, items) {
                Some(ty) => ty,
                None => return Ok(None),
            },
            None => items,
        };
        let Some(array) = ty.array() else { return Ok(None) };
        let value = self.coerce(all[0].clone(), ty, Willing::Implicit)?;
        let bounds = self.coerce(all[1].clone(), array, Willing::Explicit)?;
        let function = Function::Math(MathFunction::BucketOfBounds);
        Ok(Some(call(function, vec![value, bounds], Type::Int4)))
    }

    /// Functions that make text of values of any type.
    fn made_text(&mut self, name: &str, all: &[Bound]) -> Result<Option<Bound>> {
        let function = match (name, all.len()) {
            ("format", 1..) => TextFunction::Format,
            ("num_nulls", 1..) => TextFunction::CountNulls,
            ("num_nonnulls", 1..) => TextFunction::CountValues,
            ("quote_literal", 1) => TextFunction::QuoteLiteral,
            ("quote_nullable", 1) => TextFunction::QuoteNullable,
            ("parse_ident", 1 | 2) => {
                let mut all = all.to_vec();
                if all.len() == 1 {
                    all.push(Bound::constant(Datum::Bool(true), Type::Bool));
                }
                let all = self.coerced(all, &[Type::Text, Type::Bool])?;
                let function = Function::Text(TextFunction::ParseIdentifier);
                let array = Type::Text.array().ok_or_else(|| Error::unsupported(name, ""))?;
                return Ok(Some(call(function, all, array)));
            }
            _ => return Ok(None),
        };
        let mut all = all.to_vec();
        if function == TextFunction::Format {
            all[0] = self.coerce(all[0].clone(), Type::Text, Willing::Implicit)?;
        }
        let all = all.into_iter().map(|bound| self.settle(bound));
        let all = all.collect::<Result<Vec<_>>>()?;
        let counts = matches!(function, TextFunction::CountNulls | TextFunction::CountValues);
        let ty = if counts { Type::Int4 } else { Type::Text };
        Ok(Some(call(Function::Text(function), all, ty)))
    }

    /// A power: of two `numeric`, or else of double precision.
    pub(super) fn raised(&mut self, left: Bound, right: Bound, ty: Type) -> Result<Bound> {
        let all = self.coerced(vec![left, right], &[ty, ty])?;
        Ok(call(Function::Math(MathFunction::Power), all, ty))
    }
}

/// Text without a type for an argument that is left out.
pub(super) fn or_empty(mut all: Vec<Bound>, count: usize) -> Vec<Bound> {
    while all.len() < count {
        all.push(word(""));
    }
    all
}
