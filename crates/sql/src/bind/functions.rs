//! Functions and aggregates by their names.

use super::aggregates::{Written, aggregate_named};
use super::binder::{Binder, name_of};
use super::bits::is_bits;
use super::coerce::{Bound, Form};
use super::door::check_any_call;
use super::expression::{call, unsupported, word};
use super::kinds::Willing;
use super::window_list::is_window_function;
use crate::ir::{Function, Kind, Op, Value};
use sqlparser::ast::{
    BinaryOperator, CeilFloorKind, DuplicateTreatment, Expr, Function as Call, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments,
    TrimWhereField,
};
use std::sync::LazyLock;
use values::time::Field;
use values::{Datum, Error, Numeric, Result, SqlState, Type};

/// The most arguments, as in PostgreSQL.
const ARGUMENTS_MAX: usize = 100;

/// Whether there is more between the brackets of a call than arguments.
fn has_more(list: &FunctionArgumentList) -> bool {
    let FunctionArgumentList { duplicate_treatment, args: _, clauses } = list;
    duplicate_treatment.is_some() || !clauses.is_empty()
}

/// Whether PostgreSQL has an operator that compares values of a type with those of another without
/// making them `common` ones.
fn is_compared_as(own: Type, common: Type) -> bool {
    (own.is_integer() && common.is_integer())
        || matches!((own, common), (Type::Float4, Type::Float8) | (Type::Date, Type::Timestamp))
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
                let all = vec![self.expression(r#in)?, self.expression(expr)?];
                match self.bytes_function("position", &all)? {
                    Some(found) => Ok(found),
                    None => self.typed(Function::Position, all, &[Type::Text; 2], Type::Int4),
                }
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
                self.substring(all)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                self.overlay([expr, overlay_what, overlay_from].into_iter().chain(overlay_for))
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
            Expr::AnyOp { left, compare_op, right, .. } => {
                self.compared_items(left, compare_op, right, true)
            }
            Expr::AllOp { left, compare_op, right } => {
                self.compared_items(left, compare_op, right, false)
            }
            _ => Err(unsupported(expr)),
        }
    }

    /// A part of text or bytes, from a place or by a regular expression.
    fn substring(&mut self, mut all: Vec<Bound>) -> Result<Bound> {
        if let Some(found) = self.bytes_function("substring", &all)? {
            return Ok(found);
        }
        let is_pattern = |bound: &Bound| match bound.form {
            Form::Literal(_) => true,
            _ => bound.ty().is_some_and(Type::is_text),
        };
        match &all[..] {
            [_, from] if is_pattern(from) => {
                let from = all.swap_remove(1);
                self.part_of_pattern(all.swap_remove(0), from)
            }
            [_, from, _] if is_pattern(from) && from.ty().is_some() => {
                let message = "substring of a pattern with an escape is not supported";
                Err(Error::unsupported(message, "Use substring(text FROM pattern)."))
            }
            _ => {
                let types = [Type::Text, Type::Int4, Type::Int4];
                self.typed(Function::Substring, all, &types, Type::Text)
            }
        }
    }

    fn overlay<'e>(&mut self, parts: impl Iterator<Item = &'e Box<Expr>>) -> Result<Bound> {
        let all = parts.map(|part| self.expression(part)).collect::<Result<Vec<_>>>()?;
        if let Some(found) = self.bytes_function("overlay", &all)? {
            return Ok(found);
        }
        let types = [Type::Text, Type::Text, Type::Int4, Type::Int4];
        self.typed(Function::Overlay, all, &types, Type::Text)
    }

    pub(super) fn extract(&mut self, field: &str, value: Bound) -> Result<Bound> {
        let value = match value.ty() {
            Some(Type::Timestamptz) if distance_part(field).is_some() => {
                return Ok(self.distance_of_zone(field, value));
            }
            Some(Type::Timestamptz) => {
                // Fields are those that clocks of the session's zone show.
                self.uses_zone = true;
                let zone = word(&self.zone.text());
                let code = Kind::plain(Type::Timestamp);
                let local = call(Function::AtTimeZone, vec![zone, value], Type::Timestamp);
                if field.eq_ignore_ascii_case("epoch") {
                    undo_local(local)
                } else {
                    Bound { kind: Some(code), ..local }
                }
            }
            Some(Type::Interval) => value,
            // The error of a field that the type does not have is one of each value.
            Some(Type::Time) if !is_field_of_time(field) => value,
            Some(Type::Time) => self.coerce(value, Type::Interval, Willing::Implicit)?,
            Some(Type::Date) if !is_field_of_date(field) => value,
            Some(Type::Date) if field.eq_ignore_ascii_case("epoch") => {
                // A date has no part of a second.
                let at = self.coerce(value, Type::Timestamp, Willing::Implicit)?;
                let epoch = call(Function::Extract, vec![word("epoch"), at], Type::Numeric);
                return Ok(call(Function::Truncate, vec![epoch], Type::Numeric));
            }
            _ => self.coerce(value, Type::Timestamp, Willing::Implicit)?,
        };
        Ok(call(Function::Extract, vec![word(&field.to_ascii_lowercase()), value], Type::Numeric))
    }

    /// `timezone` and its parts: how far clocks of the session's zone are before those of UTC. NULL
    /// of an infinity, whose distance is none.
    fn distance_of_zone(&mut self, field: &str, value: Bound) -> Bound {
        self.uses_zone = true;
        let epoch = |zone: &str, value: Bound| {
            let at = call(Function::AtTimeZone, vec![word(zone), value], Type::Timestamp);
            call(Function::Extract, vec![word("epoch"), at], Type::Numeric)
        };
        let number = |number: Numeric| Bound::constant(Datum::Numeric(number), Type::Numeric);
        let both = vec![epoch(&self.zone.text(), value.clone()), epoch("UTC", value)];
        let distance = call(Function::Subtract, both, Type::Numeric);
        let known = vec![distance, number(Numeric::NAN)];
        let mut part = call(Function::NullIf, known, Type::Numeric);
        for (function, divisor) in distance_part(field).unwrap_or_default() {
            let both = vec![part, number(Numeric::from(*divisor))];
            part = call(*function, both, Type::Numeric);
        }
        call(Function::Truncate, vec![part], Type::Numeric)
    }

    fn function(&mut self, function: &Call) -> Result<Bound> {
        let name = function_name(&function.name)?;
        check_any_call(function)?;
        if let FunctionArguments::Subquery(query) = &function.args
            && name == "array"
        {
            return self.array_of_query(query);
        }
        let written = self.written(function)?;
        if let Some(over) = &function.over {
            return self.window_call(&name, &written, function, over);
        }
        if is_window_function(&name) && !written.within.is_empty() {
            let message = format!("{name} WITHIN GROUP is not supported");
            return Err(Error::unsupported(message, "Compute it over the rows and this one."));
        }
        if is_window_function(&name) {
            let message = format!("window function {name} requires an OVER clause");
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
        if let Some(kind) = aggregate_named(&name) {
            return self.aggregate(kind, &written, function);
        }
        if !written.within.is_empty() {
            let message = format!("function {name} does not exist with WITHIN GROUP");
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        if let Some(what) = written.only_of_aggregates() {
            let message = format!("{what} specified, but {name} is not an aggregate function");
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
        let is_json = matches!(&name[..], "to_json" | "to_jsonb" | "row_to_json");
        let arguments = written.arguments.iter();
        let bound = arguments.map(|argument| match is_json {
            true => self.json_argument(argument),
            false => self.expression(argument),
        });
        let bound = bound.collect::<Result<Vec<_>>>()?;
        let shown: Vec<String> = bound.iter().map(Bound::type_name).collect();
        let found = self.named(&name, bound)?;
        found.ok_or_else(|| {
            if let Some(refused) = super::named::refused(&name) {
                return refused;
            }
            no_function(&name, &shown)
        })
    }

    pub(super) fn written<'f>(&self, function: &'f Call) -> Result<Written<'f>> {
        let filter = function.filter.as_deref();
        let (star, distinct) = (false, false);
        let within = &function.within_group[..];
        let arguments = Vec::new();
        let mut written = Written { arguments, star, distinct, order: &[], within, filter };
        let list = match &function.args {
            FunctionArguments::None => return Ok(written),
            FunctionArguments::List(list) => list,
            _ => return Err(Error::unsupported(format!("arguments of {}", function.name), "")),
        };
        match &list.clauses[..] {
            [] => {}
            [FunctionArgumentClause::OrderBy(order)] => written.order = order,
            _ => return Err(Error::unsupported(format!("arguments of {}", function.name), "")),
        }
        written.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        let mut named = Vec::new();
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if named.is_empty() => {
                    written.arguments.push(expr);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(_)) => {
                    let message = "positional argument cannot follow named argument";
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => written.star = true,
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. }
                | FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg: FunctionArgExpr::Expr(expr),
                    ..
                } => named.push((name_of(name), expr)),
                _ => return Err(Error::unsupported("named arguments", "Give them by position.")),
            }
        }
        with_named(&function.name.to_string(), &mut written.arguments, named)?;
        if written.star && (list.args.len() > 1 || has_more(list)) {
            let message = "syntax error at or near \"*\"";
            let detail = "no more than * can stand between the brackets";
            let error = Error::new(SqlState::SYNTAX_ERROR, message).with_detail(detail);
            return Err(error.at(self.position(&function.name)));
        }
        if written.arguments.len() > ARGUMENTS_MAX {
            let message = format!("cannot pass more than {ARGUMENTS_MAX} arguments to a function");
            return Err(Error::new(SqlState::TOO_MANY_ARGUMENTS, message));
        }
        Ok(written)
    }

    /// A call whose arguments become of these types; those that are missing may be.
    pub(super) fn typed(
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
        if all.first().is_some_and(is_bits)
            && let Some(found) = self.bytes_function(name, &all)?
        {
            return Ok(Some(found));
        }
        let found = match (name, all.len()) {
            ("length", 1) if all[0].ty() == Some(Type::Bytea) => call(Function::Length, all, Int4),
            ("octet_length", 1) if all[0].ty() == Some(Type::Bytea) => {
                call(Function::OctetLength, all, Int4)
            }
            ("length" | "char_length" | "character_length", 1) => {
                self.typed(Function::Length, all, &texts, Int4)?
            }
            ("octet_length", 1) => {
                let all = all.into_iter().map(Bound::with_blanks).collect();
                self.typed(Function::OctetLength, all, &texts, Int4)?
            }
            ("lower", 1) => self.typed(Function::Lower, all, &texts, Text)?,
            ("upper", 1) => self.typed(Function::Upper, all, &texts, Text)?,
            ("reverse", 1) => self.typed(Function::Reverse, all, &texts, Text)?,
            ("replace", 3) => self.typed(Function::Replace, all, &texts, Text)?,
            ("strpos", 2) => self.typed(Function::Position, all, &texts, Int4)?,
            ("substring", 2 | 3) => self.substring(all)?,
            ("substr", 2 | 3) if all[0].ty() != Some(Type::Bytea) => {
                self.typed(Function::Substring, all, &[Text, Int4, Int4], Text)?
            }
            ("left", 2) => self.typed(Function::Left, all, &[Text, Int4], Text)?,
            ("right", 2) => self.typed(Function::Right, all, &[Text, Int4], Text)?,
            ("repeat", 2) => self.typed(Function::Repeat, all, &[Text, Int4], Text)?,
            ("btrim" | "ltrim" | "rtrim", 1 | 2) if all[0].ty() != Some(Type::Bytea) => {
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
            ("setval", 2 | 3) => {
                return Err(Error::unsupported(
                    "setval beside anything else",
                    "Call it as the only column of a SELECT.",
                ));
            }
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
                let exponent = all.pop().unwrap_or_else(|| word(""));
                self.power(all.swap_remove(0), &BinaryOperator::PGExp, exponent)?
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
                let ty = match value.ty() {
                    Some(ty @ (Type::Timestamp | Type::Interval)) => ty,
                    Some(Type::Time) => Type::Interval,
                    _ => Type::Timestamptz,
                };
                let value = self.coerce(value, ty, Willing::Implicit)?;
                call(Function::DateTrunc, vec![unit, value], ty)
            }
            ("coalesce", 1..) => self.coalesce(all)?,
            ("greatest" | "least", 1..) => {
                let function = if name == "least" { Function::Least } else { Function::Greatest };
                let (all, kind) = self.of_one_kind(all, &name.to_ascii_uppercase())?;
                let found = call(function, all, kind.ty);
                Bound { kind: Some(kind), ..found }
            }
            ("nullif", 2) => {
                let right = all.swap_remove(1);
                let own = all[0].kind;
                let all = self.comparable(all.swap_remove(0), &BinaryOperator::Eq, right)?;
                let kind = all[0].kind.unwrap_or(Kind::plain(Type::Text));
                let found = Bound { kind: Some(kind), ..call(Function::NullIf, all, kind.ty) };
                match own.filter(|own| is_compared_as(own.ty, kind.ty)) {
                    Some(own) => {
                        let found = self.coerce(found, own.ty, Willing::Explicit)?;
                        Bound { kind: Some(own), ..found }
                    }
                    None => found,
                }
            }
            _ => return self.json_function(name, all),
        };
        Ok(Some(found))
    }

    /// Functions that make JSON.
    fn json_function(&mut self, name: &str, mut all: Vec<Bound>) -> Result<Option<Bound>> {
        let found = match (name, all.len()) {
            ("row_to_json", 1) if all[0].ty() == Some(Type::Json) => all.swap_remove(0),
            ("row_to_json", 1) if all[0].ty() == Some(Type::Record) => {
                made_json(name, [Function::ToJsonText, Function::ToJson], all)
            }
            ("to_json" | "to_jsonb", 1) => {
                let value = self.json_value(all.swap_remove(0))?;
                made_json(name, [Function::ToJsonText, Function::ToJson], vec![value])
            }
            ("json_build_array" | "jsonb_build_array", _) => {
                let all = all.into_iter().map(|bound| self.json_value(bound));
                let functions = [Function::JsonTextBuildArray, Function::JsonBuildArray];
                made_json(name, functions, all.collect::<Result<_>>()?)
            }
            ("json_build_object" | "jsonb_build_object", _) => {
                let functions = [Function::JsonTextBuildObject, Function::JsonBuildObject];
                let all = self.json_object(all)?;
                made_json(name, functions, all)
            }
            _ => return self.named_function(name, all),
        };
        Ok(Some(found))
    }

    /// An argument that becomes JSON, which may be a row of a table: its name is that of no column.
    pub(super) fn json_argument(&mut self, expr: &Expr) -> Result<Bound> {
        let Expr::Identifier(ident) = expr else { return self.expression(expr) };
        let name = super::binder::name_of(ident);
        let columns = match self.scope.resolve(None, &name) {
            Ok(None) if !matches!(self.scope.resolve(Some(name.as_str()), &name), Ok(Some(_))) => {
                self.scope.all_of(&name).map(<[_]>::to_vec)
            }
            _ => None,
        };
        let Some(columns) = columns else { return self.expression(expr) };
        let mut all = Vec::with_capacity(2 * columns.len());
        for column in columns {
            all.push(word(&column.name));
            let value = self.own_column(column, self.position(expr))?;
            all.push(self.json_value(value)?);
        }
        Ok(call(Function::JsonRow, all, Type::Json))
    }

    /// A value that becomes JSON: objects of the catalog are their names.
    pub(super) fn json_value(&mut self, bound: Bound) -> Result<Bound> {
        match bound.ty() {
            Some(ty) if ty.is_named_object() => self.coerce(bound, Type::Text, Willing::Assignment),
            _ => self.settle(bound),
        }
    }

    /// The key of a JSON object.
    pub(super) fn json_key(&mut self, bound: Bound) -> Result<Bound> {
        self.coerce(bound, Type::Text, Willing::Assignment)
    }

    fn json_object(&mut self, all: Vec<Bound>) -> Result<Vec<Bound>> {
        let mut arguments = Vec::with_capacity(all.len());
        for (at, bound) in all.into_iter().enumerate() {
            let is_key = at % 2 == 0;
            arguments.push(if is_key { self.json_key(bound)? } else { self.json_value(bound)? });
        }
        Ok(arguments)
    }

    /// The first that is not NULL; those behind it are not computed.
    pub(super) fn coalesce(&mut self, all: Vec<Bound>) -> Result<Bound> {
        let (all, kind) = self.of_one_kind(all, "COALESCE")?;
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
        Ok(Bound::new(code, kind))
    }

    fn next_value(&mut self, name: Bound) -> Result<Bound> {
        let position = name.position;
        let name = match super::system::literal_of_object(&name) {
            Some(name) => name.to_owned(),
            None => {
                return Err(Error::unsupported("nextval of what is no literal", "Write the name."));
            }
        };
        let found = crate::ddl::find_sequence(self.catalog, &name);
        let sequence = found.map_err(|error| error.at(position))?;
        Ok(Bound::new(crate::ddl::next_value(sequence), Kind::plain(Type::Int8)))
    }
}

/// The names of the parameters of functions that have some.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("make_interval", &["years", "months", "weeks", "days", "hours", "mins", "secs"]),
    ("make_date", &["year", "month", "day"]),
    ("make_time", &["hour", "min", "sec"]),
    ("make_timestamp", &["year", "month", "mday", "hour", "min", "sec"]),
    ("make_timestamptz", &["year", "month", "mday", "hour", "min", "sec", "timezone"]),
    ("jsonb_set", &["jsonb_in", "path", "replacement", "create_if_missing"]),
    ("parse_ident", &["str", "strict"]),
];

/// The number that an argument is that is left out.
static ZERO: LazyLock<Expr> =
    LazyLock::new(|| Expr::value(sqlparser::ast::Value::Number("0".to_owned(), false)));

/// Puts named arguments to their places. Those of `make_interval` that are missing are zero.
fn with_named<'e>(
    function: &str,
    arguments: &mut Vec<&'e Expr>,
    named: Vec<(String, &'e Expr)>,
) -> Result<()> {
    if named.is_empty() {
        return Ok(());
    }
    let function = function.to_ascii_lowercase();
    let own = function.strip_prefix("pg_catalog.").unwrap_or(&function);
    let Some((_, parameters)) = PARAMETERS.iter().find(|(name, _)| *name == own) else {
        let message = format!("named arguments of {own}");
        return Err(Error::unsupported(message, "Give them by position."));
    };
    let missing = || {
        let message = format!("function {own} has other arguments");
        Error::new(SqlState::UNDEFINED_FUNCTION, message)
    };
    let first = arguments.len();
    let mut places: Vec<Option<&'e Expr>> = vec![None; parameters.len()];
    for (name, expr) in named {
        let at = parameters.iter().position(|parameter| *parameter == name);
        let at = at.filter(|at| *at >= first).ok_or_else(missing)?;
        if places[at].replace(expr).is_some() {
            let message = format!("argument name \"{name}\" used more than once");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
    }
    let last = places.iter().rposition(Option::is_some).map_or(first, |at| at + 1);
    for place in places.get(first..last).unwrap_or_default() {
        let zero = (own == "make_interval").then(|| &*ZERO);
        arguments.push(place.or(zero).ok_or_else(missing)?);
    }
    Ok(())
}

/// What makes `json`, or `jsonb`, by its name.
fn made_json(name: &str, [text, canonical]: [Function; 2], arguments: Vec<Bound>) -> Bound {
    match name.contains("jsonb") {
        true => call(canonical, arguments, Type::Jsonb),
        false => call(text, arguments, Type::Json),
    }
}

/// Back from the session's clocks: the epoch counts in UTC.
fn undo_local(mut local: Bound) -> Bound {
    local.code.remove(0);
    local.code.insert(0, Op::Constant(Value(Datum::text("UTC"))));
    local
}

/// The name of a function. One of `information_schema` keeps its schema.
fn function_name(name: &sqlparser::ast::ObjectName) -> Result<String> {
    let written = super::binder::written_name(name)?;
    match written.schema.as_deref() {
        None | Some("public" | "pg_catalog") => Ok(written.own),
        Some("information_schema") if written.own.starts_with("_pg_") => Ok(written.to_string()),
        Some(_) => {
            let message = format!("function {written} does not exist");
            Err(Error::new(SqlState::UNDEFINED_FUNCTION, message))
        }
    }
}

/// What makes a part of a zone's distance of its seconds, by the part's name.
fn distance_part(field: &str) -> Option<&'static [(Function, i64)]> {
    match field.to_ascii_lowercase().as_str() {
        "timezone" => Some(&[]),
        "timezone_hour" => Some(&[(Function::Divide, 3_600)]),
        "timezone_minute" => Some(&[(Function::Modulo, 3_600), (Function::Divide, 60)]),
        _ => None,
    }
}

/// True if a time of the day has the field with this name.
fn is_field_of_time(field: &str) -> bool {
    use Field::{Epoch, Hour, Microseconds, Milliseconds, Minute, Second};
    let own = [Epoch, Hour, Microseconds, Milliseconds, Minute, Second];
    Field::named(field).is_some_and(|field| own.contains(&field))
}

/// True if EXTRACT takes the field with this name of a date, which has no time of the day.
pub(super) fn is_field_of_date(field: &str) -> bool {
    use Field::{Hour, Microseconds, Milliseconds, Minute, Second};
    let of_day = [Hour, Microseconds, Milliseconds, Minute, Second];
    Field::named(field).is_some_and(|field| !of_day.contains(&field))
}

/// The error of a function that does not exist with arguments of these types.
pub(super) fn no_function(name: &str, types: &[String]) -> Error {
    let message = format!("function {name}({}) does not exist", types.join(", "));
    Error::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
        "No function matches the given name and argument types. You might need to add explicit \
         type casts.",
    )
}
