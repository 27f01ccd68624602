//! Expressions: programs for a stack of values.

use super::claim::Claim;
use super::functions::{
    ArrayFunction, ByteFunction, MathFunction, NetworkFunction, PathQuery, PatternFunction,
    TextFunction, TimeFunction,
};
use super::number::{ColumnNumber, ObjectId, QueryNumber};
use super::system::SystemFunction;
use super::value::{Kind, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    Column(ColumnNumber),
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
    Next(ObjectId),
    /// Pushes a column of the row in which this query is computed, by the depth of that row's
    /// query.
    Outer(u16, ColumnNumber),
    /// Pushes what another query of the statement comes to, for this row.
    Query(Use, QueryNumber),
    /// Pops so many arguments, pushes the result; only in queries.
    System(SystemFunction, u32),
    /// Pushes what the statement's seed, its last parameter, comes to for the next time.
    Random(Random),
    /// Pops the values of a row's key, pushes whether the query takes the row: it passes by one
    /// that another transaction has claimed.
    Unclaimed(Box<Claim>),
    /// Pops the values of a row's key: the row is one of the answer, and is claimed.
    Claim(Box<Claim>),
}

/// What is made of the rows of a query in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Use {
    /// The value of its one column in its one row; NULL without a row.
    Value,
    /// Whether there is a row.
    Exists,
    /// Pops so many values: whether they compare so with one of its rows.
    Any(Function, u16),
    /// Pops so many values: whether they compare so with all its rows.
    All(Function, u16),
    /// The values of its one column as an array of elements of this type's code.
    Array(u8),
    /// The same, of elements of an enum.
    ArrayOf(Kind),
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
    ToJson,
    JsonBuildObject,
    JsonBuildArray,
    /// As `SequenceNumber`, where the number to count from was given already.
    SequenceNumberAfter,
    JsonPath,
    JsonPathText,
    /// These answer `json`, those above `jsonb`.
    ToJsonText,
    JsonTextBuildObject,
    JsonTextBuildArray,
    SplitPart,
    PadLeft,
    PadRight,
    InitCap,
    ConcatSeparated,
    CharOf,
    CodeOf,
    Translate,
    Overlay,
    StartsWith,
    ToHex,
    StringToArray,
    ArrayToString,
    ArrayUpper,
    ArrayLower,
    ArrayLength,
    ArrayPosition,
    ArrayConcat,
    ArrayAppend,
    ArrayPrepend,
    ArrayRemove,
    ArrayCount,
    ArrayContains,
    ArrayOverlaps,
    JsonContains,
    JsonHasKey,
    JsonHasAny,
    JsonHasAll,
    JsonConcat,
    JsonDelete,
    JsonDeletePath,
    JsonSet,
    JsonType,
    JsonArrayLength,
    JsonStripNulls,
    BitXor,
    ShiftLeft,
    ShiftRight,
    BitNot,
    DivideWhole,
    Age,
    MakeDate,
    MakeTimestamp,
    DateBin,
    IsFinite,
    FromEpoch,
    TimeText,
    /// An interval times a number, and divided by one.
    Scale,
    ScaleDown,
    /// A power with at least 16 digits behind the point, as PostgreSQL has it.
    PowerRounded,
    /// A row as `json`, of its names and values; NULL if it has no value.
    JsonRow,
    /// A pattern of LIKE with another escape, as one with a backslash.
    EscapedPattern,
    /// Those of the values of an enum that are not below one value and not above another.
    EnumRange,
    MakeTime,
    /// A number as text of a stated form.
    NumberText,
    Math(MathFunction),
    Bytes(ByteFunction),
    Text(TextFunction),
    Time(TimeFunction),
    Pattern(PatternFunction),
    Array(ArrayFunction),
    /// `pg_notify`: tells listeners of a channel when the transaction has committed.
    Notify,
    /// `ROW(...)`
    MakeRecord,
    /// The row of a table; NULL if it has no value.
    TableRow,
    /// Of JSON, a path, its variables, and whether it is silent.
    JsonQuery(PathQuery),
    Network(NetworkFunction),
}

/// A random value, another one for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Random {
    /// `random()`
    Fraction,
    /// `gen_random_uuid()`
    Uuid,
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

    /// Whether it needs no row of its own query: only constants, parameters and outer rows.
    pub fn is_fixed(&self) -> bool {
        let is_of_row = |op: &Op| {
            let has_own = matches!(op, Op::Column(_) | Op::Next(_) | Op::Query(..) | Op::Random(_));
            has_own || op.has_effect()
        };
        !self.code.iter().any(is_of_row) && self.claims().next().is_none()
    }

    /// Whether each way through it takes only what is there, and leaves just one value.
    pub(crate) fn leaves_one_value(&self) -> bool {
        let mut entered: BTreeMap<usize, usize> = BTreeMap::new(); // values at targets of jumps
        let mut depth = Some(0_usize); // none behind a jump
        for (at, op) in self.code.iter().enumerate() {
            let before = match (depth, entered.remove(&at)) {
                (Some(depth), Some(other)) if depth != other => return false,
                (Some(depth), _) | (None, Some(depth)) => depth,
                (None, None) => return false,
            };
            let (takes, gives) = op.takes_and_gives();
            let Some(left) = before.checked_sub(takes) else { return false };
            let after = left + gives;
            if let Some(count) = op.leaves_out()
                && *entered.entry(at + 1 + count).or_insert(after) != after
            {
                return false;
            }
            depth = if matches!(op, Op::Jump(_)) { None } else { Some(after) };
        }
        let last = entered.remove(&self.code.len());
        let ends = [depth, last].into_iter().flatten().all(|depth| depth == 1);
        ends && (depth.is_some() || last.is_some()) && entered.is_empty()
    }

    /// Whether it takes a number of a sequence.
    pub fn takes_number(&self) -> bool {
        self.code.iter().any(|op| matches!(op, Op::Next(_)))
    }

    /// Whether it has random values.
    pub fn needs_seed(&self) -> bool {
        self.code.iter().any(|op| matches!(op, Op::Random(_)))
    }

    /// The claims of rows that it makes.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.code.iter().filter_map(|op| match op {
            Op::Claim(claim) => Some(&**claim),
            _ => None,
        })
    }

    /// Whether it notifies listeners.
    pub fn notifies(&self) -> bool {
        self.code.iter().any(|op| matches!(op, Op::Call(Function::Notify, _)))
    }

    /// Whether it reads nothing of the system but functions of the session over constants and
    /// parameters.
    pub fn needs_session_only(&self) -> bool {
        let is_known = |op: &Op| matches!(op, Op::Constant(_) | Op::Parameter(_));
        self.code.iter().enumerate().all(|(at, op)| match op {
            Op::System(SystemFunction::ProcessId | SystemFunction::CurrentSetting, count) => {
                let arguments = at.checked_sub(*count as usize).map(|begin| &self.code[begin..at]);
                arguments.is_some_and(|arguments| arguments.iter().all(is_known))
            }
            Op::System(..) => false,
            _ => true,
        })
    }

    /// Whether it reads the system catalog or the session, or is a regular expression.
    pub fn needs_system(&self) -> bool {
        self.code.iter().any(|op| matches!(op, Op::System(..)))
    }
}

impl Op {
    /// Whether it does something beside computing: each row that it is computed for counts.
    pub(crate) fn has_effect(&self) -> bool {
        match self {
            Op::Call(Function::Notify, _) => true,
            Op::System(function, _) => function.has_effect(),
            _ => false,
        }
    }

    /// How many values it needs, and how many are there in their place afterwards.
    pub(crate) fn takes_and_gives(&self) -> (usize, usize) {
        match self {
            Op::Constant(_)
            | Op::Column(_)
            | Op::Parameter(_)
            | Op::Next(_)
            | Op::Random(_)
            | Op::Outer(..)
            | Op::Query(Use::Value | Use::Exists | Use::Array(_) | Use::ArrayOf(_), _) => (0, 1),
            Op::Query(Use::Any(_, count) | Use::All(_, count), _) => (usize::from(*count), 1),
            Op::Call(_, count) | Op::System(_, count) => (*count as usize, 1),
            Op::Cast(..) | Op::JumpIf(..) | Op::JumpIfNotNull(_) => (1, 1),
            Op::Jump(_) => (0, 0),
            Op::JumpUnless(_) | Op::Pop => (1, 0),
            Op::Unclaimed(claim) => (claim.key.len(), 1),
            Op::Claim(claim) => (claim.key.len(), 0),
        }
    }

    /// How many operations it may leave out, of a jump.
    pub(crate) fn leaves_out(&self) -> Option<usize> {
        match self {
            Op::Jump(count)
            | Op::JumpIf(_, count)
            | Op::JumpUnless(count)
            | Op::JumpIfNotNull(count) => Some(*count as usize),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::Datum;

    #[test]
    fn programs_that_end_otherwise_are_told_apart() {
        let constant = || Op::Constant(Value(Datum::Bool(true)));
        let check = |code: Vec<Op>, expected| {
            assert_eq!(Expression { code: code.clone() }.leaves_one_value(), expected, "{code:?}");
        };
        let and = Op::Call(Function::And, 2);
        check(vec![constant()], true);
        check(vec![], false);
        check(vec![constant(), constant()], false);
        check(vec![constant(), and.clone()], false);
        check(vec![constant(), Op::JumpIf(false, 2), constant(), and.clone()], true);
        check(vec![constant(), Op::JumpIf(false, 1), constant(), and], false);
        check(vec![constant(), Op::JumpIfNotNull(2), Op::Pop, constant()], true);
        check(vec![constant(), Op::JumpUnless(2), constant(), Op::Jump(1), constant()], true);
        check(vec![constant(), Op::JumpUnless(1), constant(), Op::Jump(1), constant()], false);
        check(vec![constant(), Op::Jump(1)], false);
    }
}
