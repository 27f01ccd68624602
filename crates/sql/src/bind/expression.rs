//! Expressions.

use super::binder::{Binder, Level, is_row, name_of, row_parts};
use super::coerce::{Bound, Form};
use super::kinds::{Quantifier, Willing, chosen, common, kind_of, kind_of_interval};
use super::like::Like;
use super::scope::{Resolved, hidden, missing};
use super::symmetric::without_mark;
use crate::catalog::SYSTEM_SCHEMAS;
use crate::ir::{ColumnNumber, Function, Kind, Op, Value};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, DataType, Expr, Ident, InTarget, Query,
    Subscript, UnaryOperator, Value as Literal,
};
use values::{Array, Bits, Datum, Error, Modifier, Numeric, Position, Result, SqlState, Type};

/// The most operations of one expression.
const OPERATIONS_MAX: usize = 1 << 20;

impl Binder<'_> {
    /// Binds an expression. The depth of trees is limited by the parser's front.
    pub(crate) fn expression(&mut self, expr: &Expr) -> Result<Bound> {
        if let Some(bound) = self.group_key(expr) {
            return Ok(bound);
        }
        let mut bound = self.bind(expr).map_err(|error| {
            if error.position().is_none() { error.at(self.position(expr)) } else { error }
        })?;
        refuse_long(bound.code.len()).map_err(|error| error.at(self.position(expr)))?;
        if bound.position.is_none() && matches!(bound.form, Form::Literal(_) | Form::Parameter(_)) {
            bound.position = self.position(expr);
        }
        Ok(bound)
    }

    /// The group's column, if the expression is one that rows are grouped by.
    fn group_key(&self, expr: &Expr) -> Option<Bound> {
        let grouping = self.grouping.as_ref().filter(|grouping| !grouping.inside)?;
        let at = grouping.keys.iter().position(|(key, _)| key == expr)?;
        let kind = grouping.keys[at].1.kind?;
        Some(Bound::new(vec![Op::Column(ColumnNumber::at(at))], kind))
    }

    fn bind(&mut self, expr: &Expr) -> Result<Bound> {
        match expr {
            Expr::Nested(inner) => self.expression(inner),
            Expr::Value(value) => self.literal(&value.value),
            Expr::Identifier(ident) => self.column(None, ident),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [table, column] => self.column(Some(table), column),
                [schema, table, column] if self.is_schema(schema) => {
                    self.column_in([schema, table, column])
                }
                [database, schema, table, column]
                    if name_of(database) == self.catalog.database() && self.is_schema(schema) =>
                {
                    self.column_in([schema, table, column])
                }
                _ => Err(unsupported(expr)),
            },
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, ..
            } => self.cast(expr, data_type),
            Expr::TypedString(typed) => {
                let bound = self.literal(&typed.value.value)?;
                let kind = kind_of(self.catalog, &typed.data_type)?;
                self.note_type(&typed.data_type, kind.ty);
                self.assign(bound, kind, Willing::Explicit)
            }
            Expr::Interval(interval) => {
                let bound = self.expression(&interval.value)?;
                self.assign(bound, kind_of_interval(interval)?, Willing::Explicit)
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::In { expr, target: InTarget::List(list), negated, .. } => {
                self.in_list(expr, list, *negated)
            }
            Expr::In { expr, target: InTarget::Subquery(query), negated, .. } => {
                self.in_query(expr, query, *negated)
            }
            Expr::Between { expr, negated, low, high } => self.between(expr, *negated, low, high),
            Expr::Like { negated, any, expr, pattern, escape_char } => {
                let like = Like { function: Function::Like, negated: *negated, any: *any };
                self.like(like, [expr, pattern], escape_char.as_deref())
            }
            Expr::ILike { negated, any, expr, pattern, escape_char } => {
                let like = Like { function: Function::ILike, negated: *negated, any: *any };
                self.like(like, [expr, pattern], escape_char.as_deref())
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                self.similar(expr, pattern, escape_char.as_deref(), *negated)
            }
            Expr::Array(array) => self.array(&array.elem),
            Expr::Tuple(_) => self.record(expr),
            Expr::Function(function) if is_row(function) => self.record(expr),
            Expr::Collate { expr, collation } => self.collated(expr, &collation.to_string()),
            Expr::CompoundFieldAccess { root, access_chain } => self.subscripts(root, access_chain),
            _ => self.test(expr),
        }
    }

    /// The column of a table that is named after its schema.
    fn column_in(&mut self, [schema, table, column]: [&Ident; 3]) -> Result<Bound> {
        let position = self.position_of_name(schema);
        if let Some(id) = self.catalog.schema_named(&name_of(schema)) {
            let found = self.scope.resolve_in(id, &name_of(table), &name_of(column));
            if let Some(found) = found.map_err(|error| error.at(position))? {
                return self.own_column(found, position);
            }
            let own = name_of(table);
            if self.scope.has_table(&own) && self.scope.may_add(&own, Some(id)) {
                return Err(hidden(Some(&own), "").at(position));
            }
        }
        self.column(Some(table), column)
    }

    /// Whether a name is that of a schema.
    fn is_schema(&self, ident: &Ident) -> bool {
        let name = name_of(ident);
        SYSTEM_SCHEMAS.contains(&&*name) || self.catalog.schema_named(&name).is_some()
    }

    /// An expression in a collation, of which there is one.
    fn collated(&mut self, expr: &Expr, collation: &str) -> Result<Bound> {
        check_collation(collation)?;
        self.expression(expr)
    }

    /// The type that a cast names.
    fn cast_kind(&mut self, data_type: &DataType) -> Result<Kind> {
        let kind = kind_of(self.catalog, data_type).map_err(|error| match data_type {
            DataType::Custom(name, _) => error.at(self.position(name)),
            _ => error,
        })?;
        self.note_type(data_type, kind.ty);
        Ok(kind)
    }

    fn cast(&mut self, expr: &Expr, data_type: &DataType) -> Result<Bound> {
        let kind = self.cast_kind(data_type)?;
        let bound = match (expr, kind.ty.element()) {
            // The cast says of what type the items are that are not there.
            (Expr::Array(array), Some(element)) if array.elem.is_empty() => {
                let empty = Datum::Array(Box::new(Array::new(element, Vec::new())?));
                Bound::constant(empty, kind.ty)
            }
            _ => self.expression(expr)?,
        };
        self.assign(bound, kind, Willing::Explicit)
    }

    fn subscripts(&mut self, root: &Expr, chain: &[AccessExpr]) -> Result<Bound> {
        let (array, chain) = match (root, chain) {
            (Expr::Nested(row), [AccessExpr::Dot(Expr::Identifier(field)), rest @ ..]) => {
                match self.field_of_row(row, field)? {
                    Some(value) => (value, rest),
                    None => (self.expression(root)?, chain),
                }
            }
            (Expr::Identifier(table), [AccessExpr::Dot(Expr::Identifier(column)), rest @ ..]) => {
                (self.column(Some(table), column)?, rest)
            }
            _ => (self.expression(root)?, chain),
        };
        if chain.is_empty() {
            return Ok(array);
        }
        if array.ty() == Some(Type::Jsonb) {
            return self.json_subscripts(array, chain);
        }
        if let (Some(Type::Name), [AccessExpr::Subscript(Subscript::Index { index })]) =
            (array.ty(), chain)
            && let Some(place) = literal_place(index)
        {
            return self.letter_of_name(array, place);
        }
        let element = array.ty().and_then(Type::element);
        if let (Some(element), [AccessExpr::Dot(Expr::Identifier(field))]) = (element, chain)
            && array.kind.is_some_and(|kind| kind.modifier == Modifier::PAIR)
        {
            return field_of_pair(array, element, field);
        }
        let (Some(element), [AccessExpr::Subscript(Subscript::Index { index })]) = (element, chain)
        else {
            return self.array_part(root, array, chain);
        };
        let index = self.expression(index)?;
        let index = self.coerce(index, Type::Int4, Willing::Assignment)?;
        Ok(call(Function::Subscript, vec![array, index], element))
    }

    /// `name[0]`: a letter of a name, counted from 0.
    fn letter_of_name(&mut self, name: Bound, place: i32) -> Result<Bound> {
        let int = |value| Bound::constant(Datum::Int4(value), Type::Int4);
        let all = vec![name, int(place.saturating_add(1)), int(1)];
        self.typed(Function::Substring, all, &[Type::Text, Type::Int4, Type::Int4], Type::Text)
    }

    /// `json['key'][0]`
    fn json_subscripts(&mut self, json: Bound, chain: &[AccessExpr]) -> Result<Bound> {
        chain.iter().try_fold(json, |json, access| {
            let AccessExpr::Subscript(Subscript::Index { index }) = access else {
                return Err(Error::unsupported("a part of jsonb that is no key or index", ""));
            };
            let key = self.expression(index)?;
            let is_index = key.ty().is_some_and(Type::is_integer);
            let ty = if is_index { Type::Int4 } else { Type::Text };
            let key = self.coerce(key, ty, Willing::Implicit)?;
            Ok(call(Function::JsonField, vec![json, key], Type::Jsonb))
        })
    }

    /// IS and its kin, then functions with a syntax of their own.
    fn test(&mut self, expr: &Expr) -> Result<Bound> {
        match expr {
            Expr::IsNull(inner) => self.is(Function::IsNull, inner, false),
            Expr::IsNotNull(inner) => self.is(Function::IsNotNull, inner, false),
            Expr::IsTrue(inner) => self.is(Function::IsTrue, inner, false),
            Expr::IsNotTrue(inner) => self.is(Function::IsTrue, inner, true),
            Expr::IsFalse(inner) => self.is(Function::IsFalse, inner, false),
            Expr::IsNotFalse(inner) => self.is(Function::IsFalse, inner, true),
            Expr::IsUnknown(inner) => self.is(Function::IsNull, inner, false),
            Expr::IsNotUnknown(inner) => self.is(Function::IsNotNull, inner, false),
            Expr::IsDistinctFrom(left, right) => self.distinct(left, right, false),
            Expr::IsNotDistinctFrom(left, right) => self.distinct(left, right, true),
            Expr::Subquery(query) => self.scalar(query),
            Expr::Exists { subquery, negated } => self.exists(subquery, *negated),
            Expr::AnyOp { left, compare_op, right, .. } if query_in(right).is_some() => {
                let query = query_in(right).ok_or_else(bug)?;
                self.quantified(left, compare_op, query, Quantifier::Any)
            }
            Expr::AllOp { left, compare_op, right } if query_in(right).is_some() => {
                let query = query_in(right).ok_or_else(bug)?;
                self.quantified(left, compare_op, query, Quantifier::All)
            }
            _ => self.special_function(expr),
        }
    }

    fn literal(&mut self, literal: &Literal) -> Result<Bound> {
        Ok(match literal {
            Literal::Number(digits, _) => number(digits)?,
            Literal::SingleQuotedString(text) | Literal::EscapedStringLiteral(text) => {
                Bound::untyped(Form::Literal(text.clone()), None)
            }
            Literal::DollarQuotedString(text) => {
                Bound::untyped(Form::Literal(text.value.clone()), None)
            }
            Literal::SingleQuotedByteStringLiteral(digits) => bits(&format!("b{digits}"))?,
            Literal::HexStringLiteral(digits) => bits(&format!("x{digits}"))?,
            Literal::Boolean(value) => Bound::constant(Datum::Bool(*value), Type::Bool),
            Literal::Null => Bound::untyped(Form::Null, None),
            Literal::Placeholder(name) => {
                let at = self.parameter(name)?;
                match self.parameters[usize::from(at)] {
                    Some(ty) => Bound::new(vec![Op::Parameter(at)], Kind::plain(ty)),
                    None => Bound::untyped(Form::Parameter(at), None),
                }
            }
            other => return Err(Error::unsupported(format!("literal {other}"), "")),
        })
    }

    fn column(&mut self, table: Option<&Ident>, ident: &Ident) -> Result<Bound> {
        let name = name_of(ident);
        let position = self.position_of_name(table.unwrap_or(ident));
        let table = table.map(name_of);
        let table = table.as_deref();
        let found = self.scope.resolve(table, &name).map_err(|error| error.at(position))?;
        // The name of a function in FROM means its value.
        let whole = || self.scope.resolve(Some(name.as_str()), &name).ok().flatten();
        let found = found.or_else(|| table.is_none().then(whole).flatten());
        if let Some(found) = found {
            return self.own_column(found, position);
        }
        if table.is_none()
            && let Some(whole) = self.whole_row(&name, position)?
        {
            return Ok(whole);
        }
        let outer = self.outer_column(table, &name, position);
        let outer = outer.map_err(|error| error.at(position))?;
        outer.ok_or_else(|| {
            let is_beside = table.is_some_and(|table| self.beside.iter().any(|own| own == table));
            let error = if is_beside { hidden } else { missing };
            error(table, &name).at(position)
        })
    }

    /// A column of the current query, or that of its groups.
    pub(super) fn own_column(
        &mut self,
        found: Resolved,
        position: Option<Position>,
    ) -> Result<Bound> {
        self.note_column(&found);
        let grouping = self.grouping.as_mut().filter(|grouping| !grouping.inside);
        let Some(grouping) = grouping else { return Ok(found.bound()) };
        let message = || {
            let (table, name) = (&found.table, &found.name);
            format!(
                "column \"{table}.{name}\" must appear in the GROUP BY clause or be used in an \
                 aggregate function"
            )
        };
        let column = grouping.column(&self.scope, &found, message, position)?;
        Ok(match column {
            Some(column) => Bound::new(vec![Op::Column(column)], found.kind),
            None => found.bound(),
        })
    }

    /// A column of a query that this one is computed in, or that of its groups.
    fn outer_column(
        &mut self,
        table: Option<&str>,
        name: &str,
        position: Option<Position>,
    ) -> Result<Option<Bound>> {
        for depth in (0..self.levels.len()).rev() {
            let Level { scope, grouping } = &mut self.levels[depth];
            let Some(found) = scope.resolve(table, name)? else { continue };
            self.reaches = self.reaches.min(depth);
            if let Some(noted) = &mut self.noted {
                noted.columns.extend(found.origin);
            }
            let mut code = found.code.clone();
            if let Some(grouping) = grouping.as_mut().filter(|grouping| !grouping.inside) {
                let message = || {
                    let table = &found.table;
                    format!("subquery uses ungrouped column \"{table}.{name}\" from outer query")
                };
                if let Some(column) = grouping.column(scope, &found, message, position)? {
                    code = vec![Op::Column(column)];
                }
            }
            for op in &mut code {
                if let Op::Column(column) = *op {
                    *op = Op::Outer(depth as u16, column);
                }
            }
            return Ok(Some(Bound::new(code, found.kind)));
        }
        Ok(None)
    }

    fn unary(&mut self, op: UnaryOperator, expr: &Expr) -> Result<Bound> {
        // The smallest bigint is a literal with a minus before what does not fit.
        if let (UnaryOperator::Minus, Expr::Value(value)) = (op, expr)
            && let Literal::Number(digits, _) = &value.value
        {
            return number(&format!("-{digits}"));
        }
        let bound = self.expression(expr)?;
        match op {
            UnaryOperator::Not => {
                let bound = self.coerce(bound, Type::Bool, Willing::Implicit)?;
                Ok(call(Function::Not, vec![bound], Type::Bool))
            }
            UnaryOperator::Plus if bound.ty().is_some_and(Type::is_number) => Ok(bound),
            UnaryOperator::Minus => {
                let bound = match bound.ty() {
                    None => self.coerce(bound, Type::Float8, Willing::Implicit)?,
                    Some(ty) if ty.is_number() || ty == Type::Interval => bound,
                    Some(ty) => return Err(no_operator(&format!("- {}", ty.name()))),
                };
                let ty = bound.ty().unwrap_or(Type::Float8);
                Ok(call(Function::Negate, vec![bound], ty))
            }
            UnaryOperator::BitwiseNot if bound.ty().is_some_and(Type::is_integer) => {
                let ty = bound.ty().unwrap_or(Type::Int4);
                Ok(call(Function::BitNot, vec![bound], ty))
            }
            UnaryOperator::BitwiseNot if bound.ty().is_some_and(Type::is_bits) => {
                let bound = self.coerce(bound, Type::Bit, Willing::Implicit)?;
                Ok(call(Function::BitNot, vec![bound], Type::Bit))
            }
            UnaryOperator::PGAbs if bound.ty().is_some_and(Type::is_number) => {
                let ty = bound.ty().unwrap_or(Type::Float8);
                Ok(call(Function::Abs, vec![bound], ty))
            }
            UnaryOperator::PGSquareRoot => {
                let bound = self.coerce(bound, Type::Float8, Willing::Implicit)?;
                Ok(call(Function::SquareRoot, vec![bound], Type::Float8))
            }
            _ => Err(no_operator(&format!("{op} {}", bound.type_name()))),
        }
    }

    fn is(&mut self, function: Function, expr: &Expr, negated: bool) -> Result<Bound> {
        let whole = self.parts_of_row(expr);
        let parts = whole.as_ref().map(|all| all.iter().collect()).or_else(|| row_parts(expr));
        if let (Function::IsNull | Function::IsNotNull, Some(parts)) = (function, parts) {
            return self.all_are(function, &parts);
        }
        let mut bound = self.expression(expr)?;
        if matches!(function, Function::IsTrue | Function::IsFalse) {
            bound = self.coerce(bound, Type::Bool, Willing::Implicit)?;
        } else {
            bound = self.settle(bound)?;
        }
        Ok(negate_if(negated, call(function, vec![bound], Type::Bool)))
    }

    fn distinct(&mut self, left: &Expr, right: &Expr, negated: bool) -> Result<Bound> {
        if let (Some(left), Some(right)) = (row_parts(left), row_parts(right)) {
            return self.rows_distinct(&left, &right, negated);
        }
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        let both = self.comparable(left, &BinaryOperator::Eq, right)?;
        Ok(negate_if(negated, call(Function::IsDistinct, both, Type::Bool)))
    }

    fn between(&mut self, expr: &Expr, negated: bool, low: &Expr, high: &Expr) -> Result<Bound> {
        if let Some(low) = without_mark(low) {
            return self.between_both(expr, negated, &low, high);
        }
        let value = self.expression(expr)?;
        let low = self.expression(low)?;
        let both = self.comparable(value.clone(), &BinaryOperator::GtEq, low)?;
        let above = call(Function::GreaterEqual, both, Type::Bool);
        // A parameter has the type of the first comparison. All else is bound once: queries within
        // queries would be bound more than once at each level.
        let value = match value.form {
            Form::Parameter(_) => self.expression(expr)?,
            _ => value,
        };
        let high = self.expression(high)?;
        let both = self.comparable(value, &BinaryOperator::LtEq, high)?;
        let below = call(Function::LessEqual, both, Type::Bool);
        Ok(negate_if(negated, call(Function::And, vec![above, below], Type::Bool)))
    }

    /// BETWEEN SYMMETRIC: in one order of the bounds or the other. Each part is bound once, but for
    /// a parameter, which has the type of the first comparison.
    fn between_both(
        &mut self,
        expr: &Expr,
        negated: bool,
        low: &Expr,
        high: &Expr,
    ) -> Result<Bound> {
        let mut value = self.expression(expr)?;
        let bounds = [self.expression(low)?, self.expression(high)?];
        let mut within = Vec::with_capacity(2);
        for order in [[0, 1], [1, 0]] {
            let mut both = Vec::with_capacity(2);
            for (at, (op, function)) in order.into_iter().zip([
                (BinaryOperator::GtEq, Function::GreaterEqual),
                (BinaryOperator::LtEq, Function::LessEqual),
            ]) {
                let pair = self.comparable(value.clone(), &op, bounds[at].clone())?;
                both.push(call(function, pair, Type::Bool));
                if matches!(value.form, Form::Parameter(_)) {
                    value = self.expression(expr)?;
                }
            }
            within.push(call(Function::And, both, Type::Bool));
        }
        Ok(negate_if(negated, call(Function::Or, within, Type::Bool)))
    }

    fn array(&mut self, items: &[Expr]) -> Result<Bound> {
        let bound = items.iter().map(|item| self.expression(item)).collect::<Result<Vec<_>>>()?;
        if bound.is_empty() {
            return Err(Error::new(
                SqlState::INDETERMINATE_TYPE,
                "cannot determine type of empty array",
            )
            .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
        }
        let (items, kind) = self.of_one_kind(bound, "ARRAY")?;
        let element = kind.ty;
        let Some(ty) = element.array() else {
            let nested = self.nested_array(items, element);
            return Ok(Bound { kind: Some(kind), ..nested });
        };
        let like = match element.enum_type() {
            None => Bound::constant(Datum::Int4(i32::from(element.code())), Type::Int4),
            Some(_) => Bound::constant(Datum::Array(Box::new(Array::new(element, vec![])?)), ty),
        };
        let all = [like].into_iter().chain(items).collect();
        let made = call(Function::MakeArray, all, ty);
        Ok(Bound { kind: Some(Kind { ty, ..kind }), ..made })
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Result<Bound> {
        // Bound once: operands within operands would be bound more than once at each level.
        let operand = operand.map(|operand| self.expression(operand)).transpose()?;
        let mut tests = Vec::new();
        let mut results = Vec::new();
        for when in conditions {
            tests.push(match &operand {
                None => self.condition(&when.condition, "CASE/WHEN")?,
                Some(operand) => {
                    let right = self.expression(&when.condition)?;
                    let (left, right) = (operand.clone(), right);
                    let both = self.comparable(left, &BinaryOperator::Eq, right)?;
                    call(Function::Equal, both, Type::Bool)
                }
            });
            results.push(self.expression(&when.result)?);
        }
        results.push(match otherwise {
            Some(otherwise) => self.expression(otherwise)?,
            None => Bound::untyped(Form::Null, None),
        });
        // The type is that of the last result, where neither of two is better.
        results.rotate_right(1);
        let (mut results, kind) = self.of_one_kind(results, "CASE")?;
        results.rotate_left(1);
        let last = results.pop().ok_or_else(bug)?;
        // Each test jumps over its result and the jump behind it, which leads to the end.
        let parts = tests.iter().zip(&results);
        let mut behind = last.code.len()
            + parts.map(|(test, result)| test.code.len() + result.code.len() + 2).sum::<usize>();
        refuse_long(behind)?;
        let mut code = Vec::with_capacity(behind);
        for (test, result) in tests.into_iter().zip(results) {
            behind -= test.code.len() + result.code.len() + 2;
            code.extend(test.code);
            code.push(Op::JumpUnless(result.code.len() as u32 + 1));
            code.extend(result.code);
            code.push(Op::Jump(behind as u32));
        }
        code.extend(last.code);
        Ok(Bound::new(code, kind))
    }

    /// All of one type, and what one of them is: it has a length, or precision and scale, if all
    /// have the same. `what` they are of is for the error that they have no type in common.
    pub(super) fn of_one_kind(
        &mut self,
        all: Vec<Bound>,
        what: &str,
    ) -> Result<(Vec<Bound>, Kind)> {
        let kinds: Vec<Option<Kind>> = all.iter().map(|bound| bound.kind).collect();
        let refused = |left: Type, right: Type, position: Option<Position>| {
            let (left, right) = (left.name(), right.name());
            let message = format!("{what} types {left} and {right} cannot be matched");
            Error::new(SqlState::DATATYPE_MISMATCH, message).at(position)
        };
        let mut all = self.unify_as(all, chosen, refused)?;
        // Of types of text the first one stays.
        let first = kinds.iter().find_map(|kind| *kind).map(|kind| kind.ty);
        let unified = all.first().and_then(Bound::ty).ok_or_else(bug)?;
        let ty = match (first, unified) {
            (Some(Type::Varchar), Type::Text) => Type::Varchar,
            _ => unified,
        };
        let kind = kinds[0].filter(|first| kinds.iter().all(|kind| *kind == Some(*first)));
        let kind = kind.filter(|kind| kind.ty == ty).unwrap_or(Kind::plain(ty));
        for bound in &mut all {
            bound.kind = Some(kind);
        }
        Ok((all, kind))
    }

    /// All of one type, for an operator.
    pub(super) fn unify(&mut self, all: Vec<Bound>) -> Result<Vec<Bound>> {
        self.unify_as(all, common, not_equal)
    }

    /// All of one type, which `common` says for each two; `refused` makes the error where it says
    /// none.
    pub(super) fn unify_as(
        &mut self,
        all: Vec<Bound>,
        common: fn(Type, Type) -> Option<Type>,
        refused: impl Fn(Type, Type, Option<Position>) -> Error,
    ) -> Result<Vec<Bound>> {
        let mut ty: Option<Type> = None;
        for bound in &all {
            let Some(own) = bound.ty() else { continue };
            ty = Some(match ty {
                None => own,
                Some(ty) => common(ty, own).ok_or_else(|| refused(ty, own, bound.position))?,
            });
        }
        self.all_as(all, ty)
    }

    /// All of this type; text if there is none.
    pub(super) fn all_as(&mut self, all: Vec<Bound>, ty: Option<Type>) -> Result<Vec<Bound>> {
        // Text of a limited length is text in an expression.
        let ty = match ty {
            Some(ty) if ty == Type::Char || !ty.is_text() => ty,
            _ => Type::Text,
        };
        let all = all.into_iter().map(|bound| self.coerce(bound, ty, Willing::Implicit));
        let all = all.collect::<Result<Vec<_>>>()?;
        assert!(all.iter().all(|bound| bound.ty() == Some(ty)), "functions compare equal types");
        Ok(all)
    }
}

/// The query that ANY or ALL is of, if it is of one.
pub(super) fn query_in(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => query_in(inner),
        _ => None,
    }
}

/// A literal of digits: the smallest type that holds it.
fn number(digits: &str) -> Result<Bound> {
    if let Ok(value) = digits.parse::<i32>() {
        return Ok(Bound::constant(Datum::Int4(value), Type::Int4));
    }
    if let Ok(value) = digits.parse::<i64>() {
        return Ok(Bound::constant(Datum::Int8(value), Type::Int8));
    }
    Ok(Bound::constant(Datum::Numeric(digits.parse::<Numeric>()?), Type::Numeric))
}

/// A literal of bits.
fn bits(digits: &str) -> Result<Bound> {
    Ok(Bound::constant(Datum::Bits(Bits::parse(digits)?), Type::Bit))
}

/// A call, its arguments before it.
pub(super) fn call(function: Function, arguments: Vec<Bound>, ty: Type) -> Bound {
    let count = arguments.len() as u32;
    let mut all = arguments.into_iter();
    let first = all.next().map(|bound| bound.code).unwrap_or_default();
    let mut code = all.fold(first, |mut code, bound| {
        code.extend(bound.code);
        code
    });
    code.push(Op::Call(function, count));
    Bound::new(code, Kind::plain(ty))
}

pub(super) fn negate_if(negated: bool, bound: Bound) -> Bound {
    if negated { call(Function::Not, vec![bound], Type::Bool) } else { bound }
}

pub(super) fn no_operator(shown: &str) -> Error {
    Error::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {shown}")).with_hint(
        "No operator matches the given name and argument types. You might need to add explicit \
         type casts.",
    )
}

pub(super) fn unsupported(expr: &Expr) -> Error {
    let shown: String = expr.to_string().chars().take(80).collect();
    Error::unsupported(format!("expression is not supported: {shown}"), "")
}

fn bug() -> Error {
    Error::new(SqlState::INTERNAL, "binder lost an expression")
}

/// Refuses an expression of too many operations. Some forms, BETWEEN for one, take an operand more
/// than once, so that operands within operands grow with each level.
pub(super) fn refuse_long(operations: usize) -> Result<()> {
    if operations <= OPERATIONS_MAX {
        return Ok(());
    }
    let message = format!("expression comes to more than {OPERATIONS_MAX} operations");
    Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        .with_hint("Compute its operands in a query in FROM, and name them."))
}

/// Refuses collations that order text in another way than by bytes.
pub(crate) fn check_collation(collation: &str) -> Result<()> {
    let name = collation.to_ascii_lowercase().replace('"', "");
    match name.strip_prefix("pg_catalog.").unwrap_or(&name) {
        "default" | "c" | "posix" => Ok(()),
        _ => {
            let message = format!("collation {collation}");
            Err(Error::unsupported(message, "Text is in collation C."))
        }
    }
}

/// A constant text, for functions that take a word.
pub(super) fn word(text: &str) -> Bound {
    Bound::new(vec![Op::Constant(Value(Datum::text(text)))], Kind::plain(Type::Text))
}

/// A field of a record that `_pg_expandarray` makes.
fn field_of_pair(pair: Bound, element: Type, field: &Ident) -> Result<Bound> {
    let name = name_of(field);
    let at = match name.as_str() {
        "x" => 1,
        "n" => 2,
        _ => {
            let message = format!("could not identify column \"{name}\" in record data type");
            return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
        }
    };
    let place = Bound::constant(Datum::Int4(at), Type::Int4);
    Ok(call(Function::Subscript, vec![pair, place], element))
}

/// The error of values of two types that nothing compares: its place is that of the operator.
pub(super) fn not_equal(left: Type, right: Type, _: Option<Position>) -> Error {
    no_operator(&format!("{} = {}", left.name(), right.name()))
}

/// The number that an expression is, if it is one without a sign.
fn literal_place(expr: &Expr) -> Option<i32> {
    let Expr::Value(value) = expr else { return None };
    let Literal::Number(digits, _) = &value.value else { return None };
    digits.parse().ok()
}
