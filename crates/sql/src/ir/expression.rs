//! Expressions: programs for a stack of values.

use super::value::{Kind, Value};
use serde::{Deserialize, Serialize};

/// A program that leaves one value. Jumps are relative and lead forward only, so each program ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expression {
    /// The operations, in order.
    pub code: Vec<Op>,
}

/// One operation. "Pops" takes from the stack, "pushes" puts on it, "peeks" only looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Pushes a constant.
    Constant(Value),
    /// Pushes a column of the row.
    Column(u16),
    /// Pushes a parameter of the statement, counted from 0.
    Parameter(u16),
    /// Pops so many arguments, pushes the result.
    Call(Function, u32),
    /// Pops a value, pushes it as one of another type; `true` refuses text that is too long.
    Cast(Kind, bool),
    /// Leaves out the next operations.
    Jump(u32),
    /// Peeks; leaves out the next operations if it is this truth value.
    JumpIf(bool, u32),
    /// Pops; leaves out the next operations unless it is true.
    JumpUnless(u32),
    /// Peeks; leaves out the next operations if it is not NULL.
    JumpIfNotNull(u32),
    /// Pops and forgets.
    Pop,
    /// Pushes the next number of a sequence.
    Next(u32),
}

/// What [`Op::Call`] computes. The types of the arguments were made equal where they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after the functions and operators of SQL")]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Negate,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Not,
    IsNull,
    IsNotNull,
    IsTrue,
    IsFalse,
    IsDistinct,
    In,
    Concat,
    Like,
    ILike,
    Abs,
    Sign,
    Floor,
    Ceiling,
    Round,
    Truncate,
    SquareRoot,
    Power,
    Length,
    OctetLength,
    Lower,
    Upper,
    Trim,
    TrimLeft,
    TrimRight,
    Substring,
    Position,
    Replace,
    Left,
    Right,
    Repeat,
    Reverse,
    ConcatAll,
    Greatest,
    Least,
    NullIf,
    Now,
    Extract,
    DateTrunc,
    AtTimeZone,
    JsonField,
    JsonFieldText,
    MakeArray,
    Subscript,
    EqualAny,
    BitAnd,
    BitOr,
    SequenceNumber,
}

impl Expression {
    /// A program of one operation.
    pub fn of(op: Op) -> Expression {
        Expression { code: vec![op] }
    }

    /// A constant.
    pub fn constant(value: Value) -> Expression {
        Expression::of(Op::Constant(value))
    }

    /// Whether it needs no row: only constants and parameters.
    pub fn is_fixed(&self) -> bool {
        !self.code.iter().any(|op| matches!(op, Op::Column(_) | Op::Next(_)))
    }

    /// Whether it takes a number of a sequence.
    pub fn takes_number(&self) -> bool {
        self.code.iter().any(|op| matches!(op, Op::Next(_)))
    }
}
