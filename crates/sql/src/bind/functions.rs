//! Functions and aggregates by their names.

use super::binder::Binder;
use super::coerce::Bound;
use super::expression::{call, negate_if, unsupported, word};
use super::kinds::Willing;
use crate::ir::{Aggregate, AggregateKind, Function, Kind, Op, Value};
use sqlparser::ast::{
    BinaryOperator, CeilFloorKind, DuplicateTreatment, Expr, Function as Call, FunctionArg,
    FunctionArgExpr, FunctionArguments, TrimWhereField,
};
use values::{Datum, Error, Result, SqlState, Type};

/// The most arguments, as in PostgreSQL.
const ARGUMENTS_MAX: usize = 100;

/// What a call was written with.
struct Written<'a> {
    arguments: Vec<&'a Expr>,
    star: bool,
    distinct: bool,
}

impl Binder<'_> {
    /// Functions with a syntax of their own, and all other calls.
    pub(super) fn special_function(&mut self, expr: &Expr) -> Result<Bound> {
        match expr {
            Expr::Function(function) => self.function(function),
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(_) } => {
                let bound = self.expression(expr)?;
                self.numeric_or_float(Function::Ceiling, bound)
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(_) } => {
                let bound = self.expression(expr)?;
                self.numeric_or_float(Function::Floor, bound)
            }
            Expr::Position { expr, r#in } => {
                let (part, text) = (self.expression(expr)?, self.expression(r#in)?);
                self.typed(
                    Function::Position,
                    vec![text, part],
                    &[Type::Text, Type::Text],
                    Type::Int4,
                )
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let mut all = vec![self.expression(expr)?];
                all.push(match substring_from {
                    Some(from) => self.expression(from)?,
                    None => Bound::constant(Datum::Int4(1), Type::Int4),
                });
                if let Some(length) = substring_for {
                    all.push(self.expression(length)?);
                }
                let types = [Type::Text, Type::Int4, Type::Int4];
                self.typed(Function::Substring, all, &types, Type::Text)
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let text = self.expression(expr)?;
                let set = match trim_what {
                    Some(set) => self.expression(set)?,
                    None => word(" "),
                };
                let function = match trim_where {
                    Some(TrimWhereField::Leading) => Function::TrimLeft,
                    Some(TrimWhereField::Trailing) => Function::TrimRight,
                    Some(TrimWhereField::Both) | None => Function::Trim,
                };
                self.typed(function, vec![text, set], &[Type::Text, Type::Text], Type::Text)
            }
            Expr::Extract { field, expr, .. } => {
                let value = self.expression(expr)?;
                self.extract(&field.to_string(), value)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let (at, zone) = (self.expression(timestamp)?, self.expression(time_zone)?);
                let zone = self.coerce(zone, Type::Text, Willing::Implicit)?;
                let result = match at.ty() {
                    Some(Type::Timestamp) => Type::Timestamptz,
                    _ => Type::Timestamp,
                };
                let own =
                    if result == Type::Timestamp { Type::Timestamptz } else { Type::Timestamp };
                let at = self.coerce(at, own, Willing::Implicit)?;
                Ok(call(Function::AtTimeZone, vec![zone, at], result))
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
                self.equal_any(left, right)
            }
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => {
                Ok(negate_if(true, self.equal_any(left, right)?))
            }
            _ => Err(unsupported(expr)),
        }
    }

    fn equal_any(&mut self, left: &Expr, right: &Expr) -> Result<Bound> {
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        let left = self.settle(left)?;
        let own = left.ty().unwrap_or(Type::Text);
        let own = if own.is_text() { Type::Text } else { own };
        let array = own.array().ok_or_else(|| {
            Error::new(SqlState::WRONG_OBJECT, "op ANY/ALL (array) requires array on right side")
        })?;
        let left = self.coerce(left, own, Willing::Implicit)?;
        let right = self.coerce(right, array, Willing::Explicit)?;
        Ok(call(Function::EqualAny, vec![left, right], Type::Bool))
    }

    fn extract(&mut self, field: &str, value: Bound) -> Result<Bound> {
        let value = match value.ty() {
            Some(Type::Timestamptz) => {
                // Fields are those that clocks of the session's zone show.
                let zone = word(self.zone.name());
                let code = Kind::plain(Type::Timestamp);
                let local = call(Function::AtTimeZone, vec![zone, value], Type::Timestamp);
                if field.eq_ignore_ascii_case("epoch") {
                    undo_local(local)
                } else {
                    Bound { kind: Some(code), ..local }
                }
            }
            _ => self.coerce(value, Type::Timestamp, Willing::Implicit)?,
        };
        Ok(call(Function::Extract, vec![word(&field.to_ascii_lowercase()), value], Type::Numeric))
    }

    fn function(&mut self, function: &Call) -> Result<Bound> {
        let name = super::binder::table_name(&function.name)
            .or_else(|error| catalog_name(&function.name).ok_or(error))?;
        if function.over.is_some() || !function.within_group.is_empty() {
            return Err(Error::unsupported("window functions are not supported", ""));
        }
        if let FunctionArguments::Subquery(query) = &function.args
            && name == "array"
        {
            return self.array_of_query(query);
        }
        let written = self.written(function)?;
        if let Some(kind) = aggregate_named(&name) {
            return self.aggregate(kind, &written, function);
        }
        if written.star || written.distinct || function.filter.is_some() {
            let message = format!("{name} is not an aggregate function");
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
        let bound = written
            .arguments
            .iter()
            .map(|argument| self.expression(argument))
            .collect::<Result<Vec<_>>>()?;
        let shown: Vec<String> = bound.iter().map(Bound::type_name).collect();
        let found = self.named(&name, bound)?;
        found.ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {name}({}) does not exist", shown.join(", ")),
            )
            .with_hint(
                "No function matches the given name and argument types. You might need to add \
                 explicit type casts.",
            )
        })
    }

    fn written<'f>(&self, function: &'f Call) -> Result<Written<'f>> {
        let mut written = Written { arguments: Vec::new(), star: false, distinct: false };
        let list = match &function.args {
            FunctionArguments::None => return Ok(written),
            FunctionArguments::List(list) if list.clauses.is_empty() => list,
            _ => return Err(Error::unsupported(format!("arguments of {}", function.name), "")),
        };
        written.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => written.arguments.push(expr),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => written.star = true,
                _ => return Err(Error::unsupported("named arguments", "Give them by position.")),
            }
        }
        if written.arguments.len() > ARGUMENTS_MAX {
            let message = format!("cannot pass more than {ARGUMENTS_MAX} arguments to a function");
            return Err(Error::new(SqlState::TOO_MANY_ARGUMENTS, message));
        }
        Ok(written)
    }

    /// A call whose arguments become of these types; those that are missing may be.
    fn typed(
        &mut self,
        function: Function,
        arguments: Vec<Bound>,
        types: &[Type],
        result: Type,
    ) -> Result<Bound> {
        let pairs = arguments.into_iter().zip(types);
        let all = pairs.map(|(bound, ty)| self.coerce(bound, *ty, Willing::Implicit));
        Ok(call(function, all.collect::<Result<Vec<_>>>()?, result))
    }

    /// Functions that numeric and double precision have: other numbers become double precision.
    fn numeric_or_float(&mut self, function: Function, value: Bound) -> Result<Bound> {
        let ty = if value.ty() == Some(Type::Numeric) { Type::Numeric } else { Type::Float8 };
        self.typed(function, vec![value], &[ty], ty)
    }

    /// The call of a function; `None` if there is none of this name and number of arguments.
    fn named(&mut self, name: &str, mut all: Vec<Bound>) -> Result<Option<Bound>> {
        use Type::{Int4, Text};
        let texts = [Text, Text, Text];
        let found = match (name, all.len()) {
            ("length", 1) if all[0].ty() == Some(Type::Bytea) => call(Function::Length, all, Int4),
            ("octet_length", 1) if all[0].ty() == Some(Type::Bytea) => {
                call(Function::OctetLength, all, Int4)
            }
            ("length" | "char_length" | "character_length", 1) => {
                self.typed(Function::Length, all, &texts, Int4)?
            }
            ("octet_length", 1) => self.typed(Function::OctetLength, all, &texts, Int4)?,
            ("lower", 1) => self.typed(Function::Lower, all, &texts, Text)?,
            ("upper", 1) => self.typed(Function::Upper, all, &texts, Text)?,
            ("reverse", 1) => self.typed(Function::Reverse, all, &texts, Text)?,
            ("replace", 3) => self.typed(Function::Replace, all, &texts, Text)?,
            ("strpos", 2) => self.typed(Function::Position, all, &texts, Int4)?,
            ("substr" | "substring", 2 | 3) => {
                self.typed(Function::Substring, all, &[Text, Int4, Int4], Text)?
            }
            ("left", 2) => self.typed(Function::Left, all, &[Text, Int4], Text)?,
            ("right", 2) => self.typed(Function::Right, all, &[Text, Int4], Text)?,
            ("repeat", 2) => self.typed(Function::Repeat, all, &[Text, Int4], Text)?,
            ("btrim" | "ltrim" | "rtrim", 1 | 2) => {
                let function = match name {
                    "ltrim" => Function::TrimLeft,
                    "rtrim" => Function::TrimRight,
                    _ => Function::Trim,
                };
                if all.len() == 1 {
                    all.push(word(" "));
                }
                self.typed(function, all, &texts, Text)?
            }
            ("concat", 1..) => {
                let all = all.into_iter().map(|bound| self.settle(bound)).collect::<Result<_>>()?;
                call(Function::ConcatAll, all, Text)
            }
            (
                "now"
                | "current_timestamp"
                | "transaction_timestamp"
                | "statement_timestamp"
                | "clock_timestamp",
                0,
            ) => call(Function::Now, all, Type::Timestamptz),
            ("nextval", 1) => return self.next_value(all.swap_remove(0)).map(Some),
            _ => return self.generic(name, all),
        };
        Ok(Some(found))
    }

    /// Functions of several types.
    fn generic(&mut self, name: &str, mut all: Vec<Bound>) -> Result<Option<Bound>> {
        let found = match (name, all.len()) {
            ("abs", 1) => {
                let bound = all.swap_remove(0);
                let ty = bound.ty().filter(|ty| ty.is_number()).unwrap_or(Type::Float8);
                self.typed(Function::Abs, vec![bound], &[ty], ty)?
            }
            ("sign", 1) => self.numeric_or_float(Function::Sign, all.swap_remove(0))?,
            ("floor", 1) => self.numeric_or_float(Function::Floor, all.swap_remove(0))?,
            ("ceil" | "ceiling", 1) => {
                self.numeric_or_float(Function::Ceiling, all.swap_remove(0))?
            }
            ("round", 1) => self.numeric_or_float(Function::Round, all.swap_remove(0))?,
            ("trunc", 1) => self.numeric_or_float(Function::Truncate, all.swap_remove(0))?,
            ("sqrt", 1) => self.numeric_or_float(Function::SquareRoot, all.swap_remove(0))?,
            ("round", 2) => {
                self.typed(Function::Round, all, &[Type::Numeric, Type::Int4], Type::Numeric)?
            }
            ("trunc", 2) => {
                self.typed(Function::Truncate, all, &[Type::Numeric, Type::Int4], Type::Numeric)?
            }
            ("power" | "pow", 2) => {
                self.typed(Function::Power, all, &[Type::Numeric, Type::Numeric], Type::Numeric)?
            }
            ("mod", 2) => {
                let all = self.unify(all)?;
                let ty = all[0].ty().unwrap_or(Type::Numeric);
                if !ty.is_integer() && ty != Type::Numeric {
                    return Ok(None);
                }
                call(Function::Modulo, all, ty)
            }
            ("date_trunc", 2) => {
                let unit = self.coerce(all.swap_remove(0), Type::Text, Willing::Implicit)?;
                let value = all.swap_remove(0);
                let ty = if value.ty() == Some(Type::Timestamp) {
                    Type::Timestamp
                } else {
                    Type::Timestamptz
                };
                let value = self.coerce(value, ty, Willing::Implicit)?;
                call(Function::DateTrunc, vec![unit, value], ty)
            }
            ("coalesce", 1..) => self.coalesce(all)?,
            ("greatest" | "least", 1..) => {
                let function = if name == "least" { Function::Least } else { Function::Greatest };
                let all = self.unify(all)?;
                let ty = all[0].ty().unwrap_or(Type::Text);
                call(function, all, ty)
            }
            ("nullif", 2) => {
                let all = self.unify(all)?;
                let ty = all[0].ty().unwrap_or(Type::Text);
                call(Function::NullIf, all, ty)
            }
            _ => return self.system_function(name, all),
        };
        Ok(Some(found))
    }

    /// The first that is not NULL; those behind it are not computed.
    pub(super) fn coalesce(&mut self, all: Vec<Bound>) -> Result<Bound> {
        let all = self.unify(all)?;
        let ty = all[0].ty().unwrap_or(Type::Text);
        let mut code: Vec<Op> = Vec::new();
        for bound in all.into_iter().rev() {
            let mut next = bound.code;
            if !code.is_empty() {
                next.push(Op::JumpIfNotNull(code.len() as u32 + 1));
                next.push(Op::Pop);
                next.append(&mut code);
            }
            code = next;
        }
        Ok(Bound::new(code, Kind::plain(ty)))
    }

    fn next_value(&mut self, name: Bound) -> Result<Bound> {
        let name = match super::system::literal_of_object(&name) {
            Some(name) => name.to_owned(),
            None => {
                return Err(Error::unsupported("nextval of what is no literal", "Write the name."));
            }
        };
        let own = name.strip_prefix("public.").unwrap_or(&name).trim_matches('"').to_owned();
        let sequence = self.catalog.sequence(&own).ok_or_else(|| {
            Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{own}\" does not exist"))
        })?;
        Ok(Bound::new(crate::ddl::next_value(sequence), Kind::plain(Type::Int8)))
    }

    fn aggregate(
        &mut self,
        kind: AggregateKind,
        written: &Written<'_>,
        function: &Call,
    ) -> Result<Bound> {
        let refused = |message: &str| Error::new(SqlState::GROUPING_ERROR, message.to_owned());
        let position = self.position(&function.name);
        match &mut self.grouping {
            None => {
                let clause = match self.clause {
                    "" => "here".to_owned(),
                    "JOIN/ON" => "in JOIN conditions".to_owned(),
                    clause => format!("in {clause}"),
                };
                let message = format!("aggregate functions are not allowed {clause}");
                return Err(refused(&message).at(position));
            }
            Some(grouping) if grouping.inside => {
                return Err(refused("aggregate function calls cannot be nested"));
            }
            Some(grouping) => grouping.inside = true,
        }
        let bound = self.aggregate_arguments(kind, written, function);
        if let Some(grouping) = &mut self.grouping {
            grouping.inside = false;
        }
        let (kind, arguments, filter) = bound?;
        refuse_outer(&arguments)?;
        let own = arguments.first().and_then(Bound::ty);
        let (raw, result) = aggregate_types(kind, own)?;
        let aggregate = Aggregate {
            kind,
            arguments: arguments.into_iter().map(Bound::expression).collect(),
            distinct: written.distinct,
            filter: filter.map(Bound::expression),
        };
        let Some(grouping) = &mut self.grouping else { return Err(refused("no groups")) };
        let mut code = vec![Op::Column(grouping.place(aggregate)?)];
        if raw != result {
            code.push(Op::Cast(Kind::plain(result), true));
        }
        Ok(Bound::new(code, Kind::plain(result)))
    }

    fn aggregate_arguments(
        &mut self,
        kind: AggregateKind,
        written: &Written<'_>,
        function: &Call,
    ) -> Result<(AggregateKind, Vec<Bound>, Option<Bound>)> {
        let wanted = if kind == AggregateKind::StringAggregate { 2 } else { 1 };
        let counts_rows = kind == AggregateKind::Count && written.star;
        if !counts_rows && (written.arguments.len() != wanted || written.star) {
            let message = format!("function {}() has other arguments", function.name);
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        let mut arguments = Vec::new();
        for argument in &written.arguments {
            let bound = self.expression(argument)?;
            arguments.push(match kind {
                AggregateKind::StringAggregate => {
                    self.coerce(bound, Type::Text, Willing::Implicit)?
                }
                AggregateKind::BoolAnd | AggregateKind::BoolOr => {
                    self.coerce(bound, Type::Bool, Willing::Implicit)?
                }
                _ => self.settle(bound)?,
            });
        }
        let filter = match &function.filter {
            Some(filter) => Some(self.condition(filter, "FILTER")?),
            None => None,
        };
        Ok((if counts_rows { AggregateKind::CountRows } else { kind }, arguments, filter))
    }
}

/// In PostgreSQL an aggregate of nothing but columns of an outer query is one of that query.
fn refuse_outer(arguments: &[Bound]) -> Result<()> {
    let code = || arguments.iter().flat_map(|bound| &bound.code);
    let is_outer = code().any(|op| matches!(op, Op::Outer(..)));
    if is_outer && !code().any(|op| matches!(op, Op::Column(_))) {
        return Err(Error::unsupported(
            "an aggregate of columns of an outer query is not supported",
            "Compute it in the outer query, and name it there.",
        ));
    }
    Ok(())
}

/// Back from the session's clocks: the epoch counts in UTC.
fn undo_local(mut local: Bound) -> Bound {
    local.code.remove(0);
    local.code.insert(0, Op::Constant(Value(Datum::text("UTC"))));
    local
}

/// `pg_catalog.name`
fn catalog_name(name: &sqlparser::ast::ObjectName) -> Option<String> {
    let shown = name.to_string().to_ascii_lowercase();
    shown.strip_prefix("pg_catalog.").map(str::to_owned)
}

fn aggregate_named(name: &str) -> Option<AggregateKind> {
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
        _ => return None,
    })
}

/// The type that the interpreter computes, and that of the result.
fn aggregate_types(kind: AggregateKind, argument: Option<Type>) -> Result<(Type, Type)> {
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
            ty if ty.is_number() => both(Type::Numeric),
            _ => Err(refused("avg")),
        },
        AggregateKind::Minimum | AggregateKind::Maximum => {
            if own == Type::Bool || own == Type::Jsonb || own == Type::Uuid {
                return Err(refused("min"));
            }
            both(if own.is_text() { Type::Text } else { own })
        }
        AggregateKind::First => both(own),
        AggregateKind::BoolAnd | AggregateKind::BoolOr => both(Type::Bool),
        AggregateKind::StringAggregate => both(Type::Text),
        AggregateKind::ArrayAggregate => {
            let ty = own.array().ok_or_else(|| refused("array_agg"))?;
            // Of NULLs only, the interpreter makes an array of text.
            Ok((Type::Text.array().unwrap_or(ty), ty))
        }
    }
}
