//! How a sequence counts: the options of CREATE and ALTER SEQUENCE and of identity columns.

use crate::catalog::Sequence;
use crate::ir::{Kind, Name, ObjectId};
use crate::parse::Counting;
use sqlparser::ast::{
    DataType, Expr, ObjectName, SequenceOptions, UnaryOperator, Value as Literal,
};
use values::{Error, Result, SqlState, Type};

/// What a statement says of a sequence.
#[derive(Default)]
pub(super) struct Options {
    ty: Option<Type>,
    increment: Option<i64>,
    /// MINVALUE, or NO MINVALUE.
    minimum: Option<Option<i64>>,
    maximum: Option<Option<i64>>,
    start: Option<i64>,
    pub(super) restart: Option<Option<i64>>,
    cycle: Option<bool>,
    cache: Option<i64>,
    /// OWNED BY a column, or NONE.
    pub(super) owner: Option<Option<ObjectName>>,
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, message)
}

/// A whole number, perhaps with a sign.
fn whole(expr: &Expr) -> Result<i64> {
    let refused = || Error::new(SqlState::SYNTAX_ERROR, format!("{expr} is no whole number"));
    let digits = |expr: &Expr| match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        _ => None,
    };
    let text = match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            digits(expr).map(|text| format!("-{text}"))
        }
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => digits(expr),
        expr => digits(expr),
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(refused)
}

fn type_of(ty: &DataType) -> Result<Type> {
    match ty {
        DataType::SmallInt(None) | DataType::Int2(None) => Ok(Type::Int2),
        DataType::Integer(None) | DataType::Int(None) | DataType::Int4(None) => Ok(Type::Int4),
        DataType::BigInt(None) | DataType::Int8(None) => Ok(Type::Int8),
        _ => Err(invalid("sequence type must be smallint, integer, or bigint".to_owned())),
    }
}

/// The smallest and the largest number of a type.
fn range(ty: Type) -> (i64, i64) {
    match ty {
        Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

impl Options {
    pub(super) fn read(options: &[SequenceOptions]) -> Result<Options> {
        let mut read = Options::default();
        for option in options {
            match option {
                SequenceOptions::DataType(ty) => read.ty = Some(type_of(ty)?),
                SequenceOptions::IncrementBy(expr, _) => read.increment = Some(whole(expr)?),
                SequenceOptions::MinValue(expr) => {
                    read.minimum = Some(expr.as_ref().map(whole).transpose()?);
                }
                SequenceOptions::MaxValue(expr) => {
                    read.maximum = Some(expr.as_ref().map(whole).transpose()?);
                }
                SequenceOptions::StartWith(expr, _) => read.start = Some(whole(expr)?),
                SequenceOptions::Cycle(no) => read.cycle = Some(!no),
                SequenceOptions::Cache(expr) => read.cache = Some(whole(expr)?),
                SequenceOptions::OwnedBy(owner) => read.owner = Some(owner.clone()),
            }
        }
        Ok(read)
    }

    pub(super) fn of(counting: &Counting) -> Result<Options> {
        let mut read = Options::read(&counting.options)?;
        let restart = counting.restart.as_ref();
        read.restart = restart.map(|number| number.as_ref().map(whole).transpose()).transpose()?;
        Ok(read)
    }

    pub(super) fn of_type(ty: Type) -> Options {
        Options { ty: Some(ty), ..Options::default() }
    }

    /// Whether it says nothing about how the sequence counts.
    pub(super) fn counts_the_same(&self) -> bool {
        let bounds = self.minimum.is_none() && self.maximum.is_none() && self.ty.is_none();
        let steps = self.increment.is_none() && self.cycle.is_none() && self.cache.is_none();
        bounds && steps && self.start.is_none() && self.restart.is_none()
    }

    /// A new sequence with numbers of this type, if the options say no other one.
    pub(super) fn sequence(&self, id: ObjectId, name: &Name, ty: Type) -> Result<Sequence> {
        let ty = self.ty.unwrap_or(ty);
        let sequence = Sequence {
            id,
            name: name.clone(),
            start: 0,
            increment: 1,
            minimum: 0,
            maximum: 0,
            cycle: false,
            kind: Kind::plain(ty),
            last: 0,
            is_called: false,
        };
        let minimum = Some(self.minimum.unwrap_or_default());
        let maximum = Some(self.maximum.unwrap_or_default());
        let mut sequence = self.bounded(sequence, minimum, maximum)?;
        let first = if sequence.increment > 0 { sequence.minimum } else { sequence.maximum };
        sequence.start = self.start.unwrap_or(first);
        sequence.last = sequence.start;
        self.checked(sequence)
    }

    /// The sequence as it counts from now on; `sequence` says what number was the last.
    pub(super) fn change(&self, sequence: &Sequence) -> Result<Sequence> {
        let mut next = sequence.clone();
        let (mut minimum, mut maximum) = (self.minimum, self.maximum);
        if let Some(ty) = self.ty {
            // Bounds that were those of the type are those of the new one.
            let (low, high) = range(sequence.kind.ty);
            let (new_low, new_high) = range(ty);
            next.kind = Kind::plain(ty);
            if maximum.flatten().is_none() && sequence.maximum == high {
                maximum = Some(Some(new_high));
            }
            if minimum.flatten().is_none() && sequence.minimum == low {
                minimum = Some(Some(new_low));
            }
        }
        next = self.bounded(next, minimum, maximum)?;
        next.start = self.start.unwrap_or(next.start);
        if let Some(restart) = self.restart {
            (next.last, next.is_called) = (restart.unwrap_or(next.start), false);
        }
        self.checked(next)
    }

    fn bounded(
        &self,
        mut sequence: Sequence,
        minimum: Option<Option<i64>>,
        maximum: Option<Option<i64>>,
    ) -> Result<Sequence> {
        sequence.increment = self.increment.unwrap_or(sequence.increment);
        sequence.cycle = self.cycle.unwrap_or(sequence.cycle);
        if sequence.increment == 0 {
            return Err(invalid("INCREMENT must not be zero".to_owned()));
        }
        let (low, high) = range(sequence.kind.ty);
        let (first, last) = if sequence.increment > 0 { (1, high) } else { (low, -1) };
        if let Some(maximum) = maximum {
            sequence.maximum = maximum.unwrap_or(last);
        }
        if let Some(minimum) = minimum {
            sequence.minimum = minimum.unwrap_or(first);
        }
        for (name, bound) in [("MAXVALUE", sequence.maximum), ("MINVALUE", sequence.minimum)] {
            if !(low..=high).contains(&bound) {
                let ty = sequence.kind.ty.name();
                return Err(invalid(format!(
                    "{name} ({bound}) is out of range for sequence data type {ty}"
                )));
            }
        }
        let (minimum, maximum) = (sequence.minimum, sequence.maximum);
        if minimum >= maximum {
            let message = format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})");
            return Err(invalid(message));
        }
        Ok(sequence)
    }

    /// Refuses numbers that are out of bounds.
    fn checked(&self, sequence: Sequence) -> Result<Sequence> {
        let (minimum, maximum) = (sequence.minimum, sequence.maximum);
        for (name, number) in [("START", sequence.start), ("RESTART", sequence.last)] {
            if number < minimum {
                return Err(invalid(format!(
                    "{name} value ({number}) cannot be less than MINVALUE ({minimum})"
                )));
            }
            if number > maximum {
                return Err(invalid(format!(
                    "{name} value ({number}) cannot be greater than MAXVALUE ({maximum})"
                )));
            }
        }
        match self.cache {
            // Numbers are given one by one, whatever a cache of them would be.
            Some(cache) if cache <= 0 => {
                Err(invalid(format!("CACHE ({cache}) must be greater than zero")))
            }
            _ => Ok(sequence),
        }
    }
}
