//! Operators with two operands.

use super::binder::{Binder, row_parts};
use super::coerce::{Bound, Form};
use super::expression::{call, negate_if, no_operator};
use super::kinds::{Willing, common, compared};
use super::row_values::{check_width, values_of};
use crate::ir::{Function, Op, PathQuery};
use sqlparser::ast::{BinaryOperator, Expr};
use values::{Error, Result, SqlState, Type};

impl Binder<'_> {
    pub(super) fn binary(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Result<Bound> {
        if let BinaryOperator::And | BinaryOperator::Or = op {
            return self.logical(left, op, right);
        }
        if let (Some(left), Some(right)) = (row_parts(left), row_parts(right)) {
            if let BinaryOperator::Overlaps = op {
                return self.overlaps(&left, &right);
            }
            return self.rows_compared(&left, op, &right);
        }
        if let (Some(left), Expr::Subquery(query)) = (row_parts(left), right)
            && comparison(op).is_some()
        {
            let values = values_of(right, left.len())?;
            check_width(query, left.len())?;
            return self.rows_compared(&left, op, &values.iter().collect::<Vec<_>>());
        }
        let named = named_operator(op);
        let op = named.as_ref().unwrap_or(op);
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        if let Some(function) = comparison(op) {
            let both = self.comparable(left, op, right)?;
            return Ok(call(function, both, Type::Bool));
        }
        match op {
            BinaryOperator::Plus => self.arithmetic(Function::Add, left, op, right),
            BinaryOperator::Minus => self.arithmetic(Function::Subtract, left, op, right),
            BinaryOperator::Multiply => self.arithmetic(Function::Multiply, left, op, right),
            BinaryOperator::Divide => self.arithmetic(Function::Divide, left, op, right),
            BinaryOperator::Modulo => self.arithmetic(Function::Modulo, left, op, right),
            BinaryOperator::BitwiseAnd => self.arithmetic(Function::BitAnd, left, op, right),
            BinaryOperator::BitwiseOr => self.arithmetic(Function::BitOr, left, op, right),
            BinaryOperator::PGBitwiseXor => self.arithmetic(Function::BitXor, left, op, right),
            BinaryOperator::PGBitwiseShiftLeft => self.shift(Function::ShiftLeft, left, op, right),
            BinaryOperator::PGBitwiseShiftRight => {
                self.shift(Function::ShiftRight, left, op, right)
            }
            BinaryOperator::PGExp => self.power(left, op, right),
            BinaryOperator::StringConcat => self.concat(left, right),
            BinaryOperator::PGRegexMatch => self.matches(left, right, false),
            BinaryOperator::PGRegexIMatch => self.matches(left, right, true),
            BinaryOperator::PGRegexNotMatch => {
                Ok(negate_if(true, self.matches(left, right, false)?))
            }
            BinaryOperator::PGRegexNotIMatch => {
                Ok(negate_if(true, self.matches(left, right, true)?))
            }
            BinaryOperator::Arrow => self.json(Function::JsonField, left, op, right),
            BinaryOperator::LongArrow => self.json(Function::JsonFieldText, left, op, right),
            BinaryOperator::HashArrow => self.json(Function::JsonPath, left, op, right),
            BinaryOperator::HashLongArrow => self.json(Function::JsonPathText, left, op, right),
            _ => self.of_parts(left, op, right),
        }
    }

    /// Operators about the parts of JSON, arrays and text.
    fn of_parts(&mut self, left: Bound, op: &BinaryOperator, right: Bound) -> Result<Bound> {
        let shown = format!("{} {op} {}", left.type_name(), right.type_name());
        let text = |binder: &mut Self, function, negated| {
            let left = match function {
                Function::StartsWith => left.clone(),
                _ => left.clone().with_blanks(),
            };
            let left = binder.coerce(left, Type::Text, Willing::Implicit)?;
            let right = binder.coerce(right.clone(), Type::Text, Willing::Implicit)?;
            Ok(negate_if(negated, call(function, vec![left, right], Type::Bool)))
        };
        match op {
            BinaryOperator::PGLikeMatch => text(self, Function::Like, false),
            BinaryOperator::PGNotLikeMatch => text(self, Function::Like, true),
            BinaryOperator::PGILikeMatch => text(self, Function::ILike, false),
            BinaryOperator::PGNotILikeMatch => text(self, Function::ILike, true),
            BinaryOperator::PGStartsWith => text(self, Function::StartsWith, false),
            BinaryOperator::AtQuestion | BinaryOperator::AtAt => {
                let left = self.jsonb(left, &shown)?;
                let query = match op {
                    BinaryOperator::AtAt => PathQuery::Match,
                    _ => PathQuery::Exists,
                };
                self.json_query(query, vec![left, right], true)
            }
            BinaryOperator::AtArrow => self.containment(left, right, &shown),
            BinaryOperator::ArrowAt => self.containment(right, left, &shown),
            BinaryOperator::PGOverlap => {
                let function = Function::ArrayOverlaps;
                if let Some(bound) = self.of_networks(function, &left, &right)? {
                    return Ok(bound);
                }
                let all = self.alike_arrays(left, right, &shown)?;
                Ok(call(Function::ArrayOverlaps, all, Type::Bool))
            }
            BinaryOperator::Question => self.has_keys(Function::JsonHasKey, left, right, &shown),
            BinaryOperator::QuestionPipe => {
                self.has_keys(Function::JsonHasAny, left, right, &shown)
            }
            BinaryOperator::QuestionAnd => self.has_keys(Function::JsonHasAll, left, right, &shown),
            BinaryOperator::HashMinus => {
                let path = Type::Text.array().unwrap_or(Type::Text);
                let left = self.jsonb(left, &shown)?;
                let right = self.coerce(right, path, Willing::Implicit)?;
                Ok(call(Function::JsonDeletePath, vec![left, right], Type::Jsonb))
            }
            _ => Err(no_operator(&shown)),
        }
    }

    /// What an operator takes that is one of `jsonb`.
    fn jsonb(&mut self, bound: Bound, shown: &str) -> Result<Bound> {
        match bound.ty() {
            Some(Type::Jsonb) => Ok(bound),
            None => self.coerce(bound, Type::Jsonb, Willing::Implicit),
            Some(_) => Err(no_operator(shown)),
        }
    }

    fn has_keys(
        &mut self,
        function: Function,
        left: Bound,
        right: Bound,
        shown: &str,
    ) -> Result<Bound> {
        let left = self.jsonb(left, shown)?;
        let one = function == Function::JsonHasKey;
        let keys = if one { Type::Text } else { Type::Text.array().unwrap_or(Type::Text) };
        let right = self.coerce(right, keys, Willing::Implicit)?;
        Ok(call(function, vec![left, right], Type::Bool))
    }

    /// `@>` of JSON or arrays.
    fn containment(&mut self, all: Bound, part: Bound, shown: &str) -> Result<Bound> {
        let is_json = [&all, &part].iter().any(|bound| bound.ty() == Some(Type::Jsonb));
        if is_json {
            let both = vec![self.jsonb(all, shown)?, self.jsonb(part, shown)?];
            return Ok(call(Function::JsonContains, both, Type::Bool));
        }
        let both = self.alike_arrays(all, part, shown)?;
        Ok(call(Function::ArrayContains, both, Type::Bool))
    }

    /// Two arrays of one type.
    fn alike_arrays(&mut self, left: Bound, right: Bound, shown: &str) -> Result<Vec<Bound>> {
        let element = |bound: &Bound| bound.ty().and_then(Type::element);
        let ty = match (element(&left), element(&right)) {
            (Some(left), Some(right)) => common(left, right),
            (own, None) if right.ty().is_none() => own,
            (None, own) if left.ty().is_none() => own,
            _ => None,
        };
        let ty = ty.and_then(Type::array).ok_or_else(|| no_operator(shown))?;
        let left = self.coerce(left, ty, Willing::Explicit)?;
        Ok(vec![left, self.coerce(right, ty, Willing::Explicit)?])
    }

    fn shift(
        &mut self,
        function: Function,
        left: Bound,
        op: &BinaryOperator,
        right: Bound,
    ) -> Result<Bound> {
        if let Some(bound) = self.of_bits(function, &left, &right)? {
            return Ok(bound);
        }
        if let Some(bound) = self.of_networks(function, &left, &right)? {
            return Ok(bound);
        }
        let Some(ty) = left.ty().filter(|ty| ty.is_integer()) else {
            let shown = format!("{} {op} {}", left.type_name(), right.type_name());
            return Err(no_operator(&shown));
        };
        let right = self.coerce(right, Type::Int4, Willing::Implicit)?;
        Ok(call(function, vec![left, right], ty))
    }

    /// `^`: exact for `numeric`, else of double precision.
    pub(super) fn power(
        &mut self,
        left: Bound,
        op: &BinaryOperator,
        right: Bound,
    ) -> Result<Bound> {
        let is_number = |bound: &Bound| bound.ty().is_none_or(Type::is_number);
        if !is_number(&left) || !is_number(&right) {
            let shown = format!("{} {op} {}", left.type_name(), right.type_name());
            return Err(no_operator(&shown));
        }
        let types = [left.ty(), right.ty()];
        if types.iter().any(|ty| matches!(ty, Some(Type::Float4 | Type::Float8))) {
            return self.raised(left, right, Type::Float8);
        }
        if types.contains(&Some(Type::Numeric)) {
            return self.raised(left, right, Type::Numeric);
        }
        let left = self.coerce(left, Type::Numeric, Willing::Implicit)?;
        let right = self.coerce(right, Type::Numeric, Willing::Implicit)?;
        let power = call(Function::Power, vec![left, right], Type::Numeric);
        self.coerce(power, Type::Float8, Willing::Explicit)
    }

    /// JSON without a key, an item or several.
    fn without(&mut self, left: Bound, right: Bound) -> Result<Bound> {
        let ty = match right.ty() {
            Some(ty) if ty.is_integer() => Type::Int4,
            Some(ty) if ty.element().is_some() => Type::Text.array().unwrap_or(ty),
            _ => Type::Text,
        };
        let right = self.coerce(right, ty, Willing::Implicit)?;
        Ok(call(Function::JsonDelete, vec![left, right], Type::Jsonb))
    }

    /// AND and OR leave out the right side where the left one decides.
    fn logical(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Bound> {
        let (when, function, name) = match op {
            BinaryOperator::And => (false, Function::And, "AND"),
            _ => (true, Function::Or, "OR"),
        };
        let left = self.condition(left, name)?;
        let right = self.condition(right, name)?;
        Ok(joined(left, right, when, function))
    }

    /// Both sides of a comparison, of one type.
    pub(super) fn comparable(
        &mut self,
        left: Bound,
        op: &BinaryOperator,
        right: Bound,
    ) -> Result<Vec<Bound>> {
        if let (Some(left_type), Some(right_type)) = (left.ty(), right.ty())
            && compared(left_type, right_type).is_none()
        {
            let (left, right) = (left_type.name(), right_type.name());
            return Err(no_operator(&format!("{left} {op} {right}")));
        }
        let shown = format!("{} {op} {}", left.type_name(), right.type_name());
        let compares_not = |ty| matches!(ty, Some(Type::Json | Type::Jsonpath));
        if [&left, &right].iter().any(|bound| compares_not(bound.ty())) {
            return Err(no_operator(&shown));
        }
        let ty = match (left.ty(), right.ty()) {
            (Some(left), Some(right)) => compared(left, right),
            (left, right) => left.or(right),
        };
        self.all_as(vec![left, right], ty)
    }

    pub(super) fn arithmetic(
        &mut self,
        function: Function,
        left: Bound,
        op: &BinaryOperator,
        right: Bound,
    ) -> Result<Bound> {
        if let Some(bound) = self.of_times(function, &left, &right)? {
            return Ok(bound);
        }
        if let Some(bound) = self.of_bits(function, &left, &right)? {
            return Ok(bound);
        }
        if left.ty() == Some(Type::Jsonb) && function == Function::Subtract {
            return self.without(left, right);
        }
        let shown = format!("{} {op} {}", left.type_name(), right.type_name());
        if left.ty().is_none() && right.ty().is_none() {
            return Err(Error::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("operator is not unique: {shown}"),
            )
            .with_hint("Could not choose a best candidate operator. Add explicit type casts."));
        }
        let both = match (left.ty(), right.ty()) {
            (Some(left), Some(right)) if common(left, right).is_none() => {
                return Err(no_operator(&shown));
            }
            _ => self.unify(vec![left, right])?,
        };
        let ty = both[0].ty().unwrap_or(Type::Int4);
        let whole_only = matches!(function, Function::BitAnd | Function::BitOr | Function::BitXor);
        let no_floats = function == Function::Modulo;
        let fits = ty.is_integer() || (!whole_only && ty.is_number());
        if !fits || (no_floats && matches!(ty, Type::Float4 | Type::Float8)) {
            return Err(no_operator(&shown));
        }
        Ok(call(function, both, ty))
    }

    /// Sums and differences with dates, times and intervals.
    fn of_times(
        &mut self,
        function: Function,
        left: &Bound,
        right: &Bound,
    ) -> Result<Option<Bound>> {
        use Type::{Date, Int2, Int4, Interval, Time, Timestamp, Timestamptz};
        let add = function == Function::Add;
        if !add && function != Function::Subtract {
            return self.multiple(function, left, right);
        }
        let at = |ty| matches!(ty, Some(Date | Timestamp | Timestamptz | Time));
        let (own, other) = (left.ty(), right.ty());
        if add && !at(own) && own != Some(Interval) && (at(other) || other == Some(Interval)) {
            return self.of_times(function, right, left);
        }
        if add && own == Some(Interval) && at(other) {
            return self.of_times(function, right, left);
        }
        if add && own == Some(Time) && matches!(other, Some(Date | Timestamp | Timestamptz)) {
            return self.of_times(function, right, left);
        }
        let (left_type, right_type, result) = match (own, other) {
            (Some(Time), Some(Interval)) => (Time, Interval, Time),
            (Some(Time), None) if add => (Time, Interval, Time),
            (Some(Time), Some(Time) | None) if !add => (Time, Time, Interval),
            (Some(Time), _) => return Ok(None),
            (Some(Date), Some(Time)) if add => (Timestamp, Interval, Timestamp),
            (Some(Date), Some(Time)) => return Ok(None),
            (Some(ty @ (Timestamp | Timestamptz | Interval)), Some(Time)) => (ty, Interval, ty),
            (Some(Date), Some(Int4 | Int2)) => (Date, Int4, Date),
            (Some(Date), Some(Date)) if !add => (Date, Date, Int4),
            (Some(Date), None) if !add => (Date, Date, Int4),
            (Some(Date), None) => (Date, Int4, Date),
            (Some(Date), Some(Interval)) => (Timestamp, Interval, Timestamp),
            (Some(ty @ (Timestamp | Timestamptz)), Some(Interval)) => (ty, Interval, ty),
            (Some(ty @ (Timestamp | Timestamptz)), None) if add => (ty, Interval, ty),
            (Some(left), Some(right)) if !add && at(Some(left)) && at(Some(right)) => {
                let ty = common(left, right).unwrap_or(left);
                (ty, ty, Interval)
            }
            (Some(ty @ (Timestamp | Timestamptz)), None) => (ty, ty, Interval),
            (Some(Interval), Some(Interval) | None) => (Interval, Interval, Interval),
            _ => return Ok(None),
        };
        let left = self.coerce(left.clone(), left_type, Willing::Implicit)?;
        let right = self.coerce(right.clone(), right_type, Willing::Implicit)?;
        Ok(Some(call(function, vec![left, right], result)))
    }

    /// Multiples and parts of intervals.
    fn multiple(
        &mut self,
        function: Function,
        left: &Bound,
        right: &Bound,
    ) -> Result<Option<Bound>> {
        let is_number = |bound: &Bound| bound.ty().is_none_or(Type::is_number);
        let is_interval = |bound: &Bound| bound.ty() == Some(Type::Interval);
        let (function, interval, number) = match function {
            Function::Multiply if is_interval(left) && is_number(right) => {
                (Function::Scale, left, right)
            }
            Function::Multiply if is_number(left) && is_interval(right) => {
                (Function::Scale, right, left)
            }
            Function::Divide if is_interval(left) && is_number(right) => {
                (Function::ScaleDown, left, right)
            }
            _ => return Ok(None),
        };
        let number = self.coerce(number.clone(), Type::Float8, Willing::Implicit)?;
        Ok(Some(call(function, vec![interval.clone(), number], Type::Interval)))
    }

    fn concat(&mut self, left: Bound, right: Bound) -> Result<Bound> {
        let is_json = |bound: &Bound| bound.ty() == Some(Type::Jsonb);
        if is_json(&left) && (is_json(&right) || right.ty().is_none())
            || is_json(&right) && left.ty().is_none()
        {
            let left = self.coerce(left, Type::Jsonb, Willing::Implicit)?;
            let right = self.coerce(right, Type::Jsonb, Willing::Implicit)?;
            return Ok(call(Function::JsonConcat, vec![left, right], Type::Jsonb));
        }
        let is_array = |bound: &Bound| bound.ty().is_some_and(|ty| ty.element().is_some());
        if is_array(&left) || is_array(&right) {
            let shown = format!("{} || {}", left.type_name(), right.type_name());
            let all = self.array_concat(left, right)?;
            return all.ok_or_else(|| no_operator(&shown));
        }
        if left.ty() == Some(Type::Bytea) && right.ty().is_none_or(|ty| ty == Type::Bytea) {
            let right = self.coerce(right, Type::Bytea, Willing::Implicit)?;
            return Ok(call(Function::Concat, vec![left, right], Type::Bytea));
        }
        if let Some(bound) = self.of_bits(Function::Concat, &left, &right)? {
            return Ok(bound);
        }
        let text = |bound: &Bound| bound.ty().is_none_or(Type::is_text);
        let whole = |bound: &Bound| {
            bound
                .ty()
                .is_none_or(|ty| ty.element().is_none() && !matches!(ty, Type::Jsonb | Type::Json))
        };
        if (!text(&left) && !text(&right)) || !whole(&left) || !whole(&right) {
            return Err(no_operator(&format!("{} || {}", left.type_name(), right.type_name())));
        }
        let left = self.coerce(left, Type::Text, Willing::Assignment)?;
        let right = self.coerce(right, Type::Text, Willing::Assignment)?;
        Ok(call(Function::Concat, vec![left, right], Type::Text))
    }

    /// Parts of JSON: of `json` as text, of `jsonb` in canonical form.
    fn json(
        &mut self,
        function: Function,
        left: Bound,
        op: &BinaryOperator,
        right: Bound,
    ) -> Result<Bound> {
        let Some(own @ (Type::Jsonb | Type::Json)) = left.ty() else {
            let shown = format!("{} {op} {}", left.type_name(), right.type_name());
            return Err(no_operator(&shown));
        };
        let is_path = matches!(function, Function::JsonPath | Function::JsonPathText);
        let key = match (is_path, Type::Text.array()) {
            (true, Some(path)) => path,
            _ if right.ty().is_some_and(Type::is_integer) => Type::Int4,
            _ => Type::Text,
        };
        let is_text = matches!(function, Function::JsonFieldText | Function::JsonPathText);
        let right = self.coerce(right, key, Willing::Implicit)?;
        Ok(call(function, vec![left, right], if is_text { Type::Text } else { own }))
    }
}

/// The operator that `OPERATOR(pg_catalog....)` names.
fn named_operator(op: &BinaryOperator) -> Option<BinaryOperator> {
    let BinaryOperator::PGCustomBinaryOperator(parts) = op else { return None };
    let sign = match &parts[..] {
        [sign] => sign,
        [schema, sign] if schema == "pg_catalog" => sign,
        _ => return None,
    };
    Some(match sign.as_str() {
        "~" => BinaryOperator::PGRegexMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// The left side decides if it is `when`.
pub(super) fn joined(left: Bound, right: Bound, when: bool, function: Function) -> Bound {
    let mut code = left.code;
    code.push(Op::JumpIf(when, right.code.len() as u32 + 1));
    code.extend(right.code);
    code.push(Op::Call(function, 2));
    Bound { code, form: Form::Other, ..right }
}

/// The function of an operator that compares.
pub(super) fn comparison(op: &BinaryOperator) -> Option<Function> {
    Some(match op {
        BinaryOperator::Eq => Function::Equal,
        BinaryOperator::NotEq => Function::NotEqual,
        BinaryOperator::Lt => Function::Less,
        BinaryOperator::LtEq => Function::LessEqual,
        BinaryOperator::Gt => Function::Greater,
        BinaryOperator::GtEq => Function::GreaterEqual,
        _ => return None,
    })
}
