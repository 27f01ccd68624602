//! Bound expressions, and how they become of another type.

use super::kinds::{Willing, may_cast};
use crate::catalog::{CastUse, Catalog};
use crate::ir::{ColumnNumber, Expression, Function, Kind, Op, SystemFunction, Value};
use crate::memory::Grant;
use values::{Datum, Error, Position, Result, SqlState, Type, Zone, made, text};

/// An expression with its type; a literal or parameter may not have one yet.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) code: Vec<Op>,
    pub(crate) kind: Option<Kind>,
    pub(super) form: Form,
    pub(super) position: Option<Position>,
}

/// What an expression is beside its code.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// A column as it is in the row.
    Column(ColumnNumber),
    /// A quoted literal without a type.
    Literal(String),
    /// A parameter without a type.
    Parameter(u16),
    /// NULL without a type.
    Null,
    /// All else.
    Other,
}

impl Bound {
    pub(super) fn new(code: Vec<Op>, kind: Kind) -> Bound {
        Bound { code, kind: Some(kind), form: Form::Other, position: None }
    }

    /// A column, or what stands for one.
    pub(super) fn of_column(code: Vec<Op>, kind: Kind, column: Option<ColumnNumber>) -> Bound {
        let form = column.map_or(Form::Other, Form::Column);
        Bound { form, ..Bound::new(code, kind) }
    }

    pub(super) fn constant(datum: Datum, ty: Type) -> Bound {
        Bound::new(vec![Op::Constant(Value(datum))], Kind::plain(ty))
    }

    pub(super) fn untyped(form: Form, position: Option<Position>) -> Bound {
        let code = match &form {
            Form::Literal(text) => vec![Op::Constant(Value(Datum::text(text.as_str())))],
            Form::Parameter(at) => vec![Op::Parameter(*at)],
            _ => vec![Op::Constant(Value(Datum::Null))],
        };
        Bound { code, kind: None, form, position }
    }

    pub(super) fn ty(&self) -> Option<Type> {
        self.kind.map(|kind| kind.ty)
    }

    /// Whether it depends on the row of its own query.
    pub(super) fn has_column(&self) -> bool {
        self.code.iter().any(|op| matches!(op, Op::Column(_) | Op::Query(..)))
    }

    /// The name of the type, for messages.
    pub(super) fn type_name(&self) -> String {
        self.ty().map_or_else(|| "unknown".to_owned(), Type::name)
    }

    pub(crate) fn expression(self) -> Expression {
        let expression = Expression { code: self.code };
        assert!(expression.leaves_one_value(), "a program ends with its value: {expression:?}");
        expression
    }

    /// A `character` as text in which its blanks count: what is matched with a pattern.
    pub(super) fn with_blanks(self) -> Bound {
        match self.ty() {
            Some(Type::Char) => {
                Bound { kind: Some(Kind::plain(Type::Text)), form: Form::Other, ..self }
            }
            _ => self,
        }
    }

    fn cast_to(mut self, kind: Kind, willing: Willing) -> Bound {
        self.code.push(Op::Cast(kind, willing != Willing::Explicit));
        Bound { kind: Some(kind), form: Form::Other, ..self }
    }
}

/// The bytes of a constant from which on they count. Short ones have about the size of their text,
/// which counts.
const CONSTANT_BYTES_MIN: usize = 1 << 10;

/// Gives parameters types, and casts.
pub(super) struct Coercer<'a> {
    pub(super) parameters: &'a mut Vec<Option<Type>>,
    pub(super) zone: &'a Zone,
    /// Where casts are that statements have made.
    pub(super) catalog: &'a Catalog,
    /// The memory of constants, if it is counted.
    pub(super) grant: Option<&'a Grant>,
}

impl Coercer<'_> {
    /// The expression as one of the type.
    pub(super) fn coerce(&mut self, bound: Bound, ty: Type, willing: Willing) -> Result<Bound> {
        let position = bound.position;
        match bound.form {
            Form::Literal(ref literal)
                if ty.is_named_object()
                    && literal.trim().parse::<u32>().is_err()
                    && literal != "-" =>
            {
                Ok(object_of_text(bound, ty))
            }
            Form::Parameter(_) if ty.is_named_object() => {
                let text = self.coerce(bound, Type::Text, willing)?;
                coerce_typed(text, ty, Willing::Explicit)
            }
            Form::Literal(literal) if ty.element().is_some_and(Type::is_named_object) => {
                let texts = Type::Text.array().unwrap_or(Type::Text);
                let texts = self.literal(&literal, Kind::plain(texts), position)?;
                Ok(object_of_text(texts, ty))
            }
            Form::Literal(literal) => self.literal(&literal, Kind::plain(ty), position),
            Form::Parameter(at) => {
                let own = *self.parameters[usize::from(at)].get_or_insert(ty);
                let bound =
                    Bound { position, ..Bound::new(vec![Op::Parameter(at)], Kind::plain(own)) };
                if own == ty { Ok(bound) } else { self.coerce(bound, ty, willing) }
            }
            Form::Null => Ok(Bound { position, ..Bound::constant(Datum::Null, ty) }),
            _ => {
                let willing = self.willing(&bound, ty, willing);
                coerce_typed(bound, ty, willing)
            }
        }
    }

    /// How willing an expression becomes of a type, with casts that statements have made.
    fn willing(&self, bound: &Bound, ty: Type, willing: Willing) -> Willing {
        let cast = bound.ty().and_then(|from| self.catalog.cast(from, ty));
        let is_done = cast.is_some_and(|cast| match cast.use_in {
            CastUse::Explicit => false,
            CastUse::Assignment => willing >= Willing::Assignment,
            CastUse::Implicit => true,
        });
        if is_done { Willing::Explicit } else { willing }
    }

    /// The constant of a type that a literal without one is.
    fn literal(&self, text: &str, kind: Kind, position: Option<Position>) -> Result<Bound> {
        if let Some(grant) = self.grant {
            let bytes = made::of_text(kind.ty, text.as_bytes());
            if bytes >= CONSTANT_BYTES_MIN {
                grant.grow(bytes)?;
            }
        }
        let value = text::parse_as(kind.ty, kind.modifier, text, self.zone);
        let value = value.map_err(|error| error.at(position))?;
        Ok(Bound { position, ..Bound::constant(value, kind.ty) })
    }

    /// The expression as a column holds it: with length, precision and scale.
    pub(super) fn assign(&mut self, bound: Bound, kind: Kind, willing: Willing) -> Result<Bound> {
        let same = bound.kind == Some(kind);
        let becomes_char = kind.ty == Type::Char
            && kind.modifier.length().is_some()
            && bound.ty().is_some_and(|from| from.is_text() && from != Type::Char);
        // How many bits a number becomes says the length.
        let becomes_bits = kind.ty == Type::Bit
            && bound.ty().is_some_and(|from| from.is_integer() && may_cast(from, kind.ty, willing));
        if becomes_char || becomes_bits {
            return Ok(bound.cast_to(kind, willing));
        }
        let coerced = match &bound.form {
            // The fields of its type say what an interval's numbers count.
            Form::Literal(text) if kind.ty == Type::Interval => {
                self.literal(text, kind, bound.position)?
            }
            _ => self.coerce(bound, kind.ty, willing)?,
        };
        let plain = kind.modifier == values::Modifier::NONE;
        Ok(if same || plain { coerced } else { coerced.cast_to(kind, willing) })
    }
}

fn coerce_typed(bound: Bound, ty: Type, willing: Willing) -> Result<Bound> {
    let from = bound.ty().unwrap_or(ty);
    if !may_cast(from, ty, willing) {
        let (position, name) = (bound.position, from.name());
        return Err(Error::new(
            SqlState::CANNOT_COERCE,
            format!("cannot cast type {name} to {}", ty.name()),
        )
        .at(position));
    }
    if from == ty {
        return Ok(bound);
    }
    if from.is_text() && ty.is_named_object() {
        return Ok(object_of_text(bound, ty));
    }
    if from.is_named_object() && ty.is_text() {
        return Ok(name_of_object(bound, ty));
    }
    if from == Type::Char && ty.is_text() {
        // Blanks at the end do not count.
        let mut code = bound.code;
        code.push(Op::Constant(Value(Datum::text(" "))));
        code.push(Op::Call(Function::TrimRight, 2));
        return Ok(Bound { code, kind: Some(Kind::plain(ty)), form: Form::Other, ..bound });
    }
    if from.is_text() && ty.is_text() && ty != Type::Char {
        return Ok(Bound { kind: Some(Kind::plain(ty)), ..bound });
    }
    Ok(bound.cast_to(Kind::plain(ty), willing))
}

/// The constant of a type, for functions that differ by type.
fn type_argument(ty: Type) -> Op {
    Op::Constant(Value(Datum::Int2(i16::from(ty.code()))))
}

/// Text as the object that it names, or an array of texts as those.
fn object_of_text(text: Bound, ty: Type) -> Bound {
    of_type(SystemFunction::ToObject, text, ty, ty)
}

/// An object as its name.
pub(super) fn name_of_object(object: Bound, result: Type) -> Bound {
    let ty = object.ty().unwrap_or(Type::Regclass);
    of_type(SystemFunction::ObjectName, object, ty, result)
}

/// A function that differs by type.
pub(super) fn of_type(function: SystemFunction, argument: Bound, ty: Type, result: Type) -> Bound {
    let mut code = vec![type_argument(ty)];
    code.extend(argument.code);
    code.push(Op::System(function, 2));
    Bound { position: argument.position, ..Bound::new(code, Kind::plain(result)) }
}
