//! Runs an expression: a loop over its operations with a stack of values.

use super::budget::Memory;
use super::cast::cast;
use super::change::Change;
use super::claimed::claimed_key;
use super::compute::call;
use super::context::Context;
pub(super) use super::context::malformed;
use super::patterns::Patterns;
use super::queries::Queries;
use super::random;
use super::rows::Rows;
use super::weight;
use crate::ir::{Claim, Expression, Function, Op, PatternFunction, Query, SystemFunction};
use crate::memory::FREE_BYTES;
use std::collections::BTreeSet;
use values::{Datum, Result, Strictness, identity};

/// The bytes of a value for which memory is taken while an expression has it.
const LONG_BYTES: usize = FREE_BYTES;

/// Runs expressions of one statement.
pub(super) struct Evaluator<'a> {
    pub(super) context: &'a Context,
    pub(super) rows: &'a mut dyn Rows,
    pub(super) memory: Memory,
    pub(super) queries: Queries<'a>,
    /// The changes of rows so far, of a statement whose foreign keys are kept behind it.
    pub(super) journal: Option<Vec<Change>>,
    /// The keys of the rows that were written so far, of a statement with parts that write.
    pub(super) touched: Option<BTreeSet<Vec<u8>>>,
    /// Whether no row may be written twice, of MERGE.
    pub(super) refuses_second: bool,
    patterns: Patterns,
    /// How many random values were made.
    randoms: u64,
    stack: Vec<Datum>,
    /// The bytes of long values that were made for the same row, and are no longer on the stack.
    held: usize,
    /// Whether a long value was made, of a statement that takes memory for such.
    has_long: bool,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(context: &'a Context, rows: &'a mut dyn Rows) -> Evaluator<'a> {
        Evaluator::of(&[], context, rows)
    }

    /// One for a statement with these queries.
    pub(super) fn of(
        queries: &'a [Query],
        context: &'a Context,
        rows: &'a mut dyn Rows,
    ) -> Evaluator<'a> {
        let memory = Memory::new(context.limits.memory_bytes_max, context.grant.as_ref());
        let queries = Queries::of(queries);
        Evaluator {
            context,
            rows,
            memory,
            queries,
            journal: None,
            touched: None,
            refuses_second: false,
            patterns: Patterns::default(),
            randoms: 0,
            stack: Vec::new(),
            held: 0,
            has_long: false,
        }
    }

    /// The value for a row.
    pub(super) fn value(&mut self, expression: &Expression, row: &[Datum]) -> Result<Datum> {
        self.rows.steps(expression.code.len() as u64)?;
        self.stack.clear();
        let mut at = 0;
        while let Some(op) = expression.code.get(at) {
            at += 1 + self.step(op, row)?;
        }
        self.stack.pop().ok_or_else(malformed)
    }

    /// Whether a condition is true for a row: neither false nor NULL.
    pub(super) fn holds(&mut self, condition: &Option<Expression>, row: &[Datum]) -> Result<bool> {
        match condition {
            Some(condition) => Ok(matches!(self.value(condition, row)?, Datum::Bool(true))),
            None => Ok(true),
        }
    }

    /// The values of several expressions.
    pub(super) fn values(
        &mut self,
        expressions: &[Expression],
        row: &[Datum],
    ) -> Result<Vec<Datum>> {
        let (before, mut values) = (self.held, Vec::with_capacity(expressions.len()));
        for expression in expressions {
            let value = self.value(expression, row)?;
            let bytes = value.heap_bytes();
            if bytes >= LONG_BYTES {
                self.held += bytes;
            }
            values.push(value);
        }
        self.held = before;
        Ok(values)
    }

    /// One operation; how many to leave out after it.
    fn step(&mut self, op: &Op, row: &[Datum]) -> Result<usize> {
        let value = match op {
            Op::Constant(value) => return self.push_copy(&value.0),
            Op::Column(column) => return self.push_copy(at(row, *column)?),
            Op::Parameter(number) => {
                let context = self.context;
                return self.push_copy(at(&context.parameters, *number)?);
            }
            Op::Call(function, count) => self.call(*function, *count as usize)?,
            Op::System(function, count) => self.system(*function, *count as usize)?,
            Op::Cast(kind, strict) => {
                if self.has_long {
                    let of = |value| weight::of_cast_result(value, *kind);
                    self.reserve(self.stack.last().map_or(0, of))?;
                }
                let value = self.stack.pop().ok_or_else(malformed)?;
                let strictness =
                    if *strict { Strictness::Assignment } else { Strictness::Explicit };
                let steps = weight::of_cast(&value, *kind);
                if steps > 0 {
                    self.rows.steps(steps)?;
                }
                cast(value, *kind, strictness, &self.context.zone)?
            }
            Op::Next(sequence) => {
                let count = self.rows.next(*sequence)?;
                Datum::Int8(i64::try_from(count).map_err(|_| malformed())?)
            }
            Op::Random(what) => {
                self.randoms += 1;
                random::value(*what, self.context, self.randoms)?
            }
            Op::Outer(depth, column) => self.queries.outer(*depth, *column)?,
            Op::Query(how, number) => {
                let mut stack = std::mem::take(&mut self.stack);
                let result = self.subquery(*how, *number, row, &mut stack);
                self.stack = stack;
                result?
            }
            Op::Unclaimed(claim) => Datum::Bool(self.is_unclaimed(claim)?),
            Op::Claim(claim) => return self.claim(claim),
            Op::Jump(count) => return Ok(*count as usize),
            Op::JumpIf(when, count) => {
                let top = self.stack.last().ok_or_else(malformed)?;
                let jump = matches!(top, Datum::Bool(value) if value == when);
                return Ok(if jump { *count as usize } else { 0 });
            }
            Op::JumpUnless(count) => {
                let condition = self.stack.pop().ok_or_else(malformed)?;
                let jump = !matches!(condition, Datum::Bool(true));
                return Ok(if jump { *count as usize } else { 0 });
            }
            Op::JumpIfNotNull(count) => {
                let top = self.stack.last().ok_or_else(malformed)?;
                return Ok(if top.is_null() { 0 } else { *count as usize });
            }
            Op::Pop => return self.stack.pop().map(|_| 0).ok_or_else(malformed),
        };
        self.push(value)?;
        Ok(0)
    }

    /// Whether a query takes the row whose key is on the stack.
    fn is_unclaimed(&mut self, claim: &Claim) -> Result<bool> {
        match self.claimed_key(claim)? {
            Some(key) => Ok(!self.rows.passes_by(&key, claim)?),
            None => Ok(true),
        }
    }

    /// Claims the row whose key is on the stack.
    fn claim(&mut self, claim: &Claim) -> Result<usize> {
        if let Some(key) = self.claimed_key(claim)? {
            self.rows.claim(key, claim)?;
        }
        Ok(0)
    }

    /// Takes the key of a claimed row from the stack; `None` if there is no such row.
    fn claimed_key(&mut self, claim: &Claim) -> Result<Option<Vec<u8>>> {
        let begin = self.stack.len().checked_sub(claim.key.len()).ok_or_else(malformed)?;
        let key = claimed_key(claim, &self.stack[begin..]);
        self.stack.truncate(begin);
        Ok(key)
    }

    /// Puts a value on the stack: it was copied or made, and takes steps for its bytes.
    #[inline]
    fn push(&mut self, value: Datum) -> Result<()> {
        let bytes = value.heap_bytes();
        let steps = weight::of_bytes(bytes);
        if steps > 0 {
            self.rows.steps(steps)?;
        }
        self.stack.push(value);
        if bytes >= LONG_BYTES && self.memory.has_grant() {
            self.has_long = true;
            self.reserve(0)?;
        }
        Ok(())
    }

    /// Puts a copy of a value on the stack. Memory for a long one is taken before it is copied.
    #[inline]
    fn push_copy(&mut self, value: &Datum) -> Result<usize> {
        let bytes = value.heap_bytes();
        let steps = weight::of_bytes(bytes);
        if steps > 0 {
            self.rows.steps(steps)?;
        }
        if bytes >= LONG_BYTES && self.memory.has_grant() {
            self.has_long = true;
            self.reserve(bytes)?;
        }
        self.stack.push(value.clone());
        Ok(0)
    }

    /// Takes memory for the values of this row, and for one of `more` bytes that is made next.
    #[cold]
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        let bytes = self.held + weight::heap_bytes(&self.stack);
        self.memory.reserve(bytes.saturating_add(more))
    }

    /// A copy of a row.
    pub(super) fn copy(&mut self, row: &[Datum]) -> Result<Vec<Datum>> {
        self.count_bytes(weight::heap_bytes(row))?;
        Ok(row.to_vec())
    }

    /// Counts work on so many bytes.
    pub(super) fn count_bytes(&mut self, bytes: usize) -> Result<()> {
        match weight::of_bytes(bytes) {
            0 => Ok(()),
            steps => self.rows.steps(steps),
        }
    }

    /// The bytes that stand for values, which are looked for among so many others.
    pub(super) fn identity(&mut self, values: &[Datum], others: usize) -> Result<Vec<u8>> {
        let identity = identity::of(values);
        match weight::of_search(identity.len(), others) + weight::of_identity(values) {
            0 => {}
            steps => self.rows.steps(steps)?,
        }
        Ok(identity)
    }

    /// Counts sorting so many values with these bytes.
    pub(super) fn count_sort(&mut self, bytes: usize, count: usize) -> Result<()> {
        match weight::of_sort(bytes, count) {
            0 => Ok(()),
            steps => self.rows.steps(steps),
        }
    }

    /// A function, whose arguments are on the stack.
    #[inline]
    fn call(&mut self, function: Function, count: usize) -> Result<Datum> {
        let begin = self.stack.len().checked_sub(count).ok_or_else(malformed)?;
        if self.has_long || weight::fills(function) {
            self.reserve(weight::of_result(function, &self.stack[begin..]))?;
        }
        let result = match function {
            Function::Pattern(function) => self.pattern(function, begin)?,
            _ => call(function, &self.stack[begin..], self.context, self.rows)?,
        };
        self.stack.truncate(begin);
        Ok(result)
    }

    /// A function of regular expressions, whose arguments begin at a place of the stack.
    fn pattern(&mut self, function: PatternFunction, begin: usize) -> Result<Datum> {
        let arguments = &self.stack[begin..];
        self.rows.steps(1 + weight::of_call(Function::Pattern(function), arguments))?;
        let count = &mut |steps| self.rows.steps(steps);
        match arguments.iter().any(Datum::is_null) {
            true => Ok(Datum::Null),
            false => self.patterns.call(function, arguments, count),
        }
    }

    /// A function that only queries have.
    fn system(&mut self, function: SystemFunction, count: usize) -> Result<Datum> {
        let begin = self.stack.len().checked_sub(count).ok_or_else(malformed)?;
        let system = self.context.system.as_deref().ok_or_else(malformed)?;
        let arguments = &self.stack[begin..];
        let work = arguments.iter().map(Datum::memory_bytes).sum::<usize>();
        self.rows.steps(1 + work as u64 / 64)?;
        let result = system.call(function, arguments)?;
        self.stack.truncate(begin);
        Ok(result)
    }
}

/// The value with this number.
fn at(values: &[Datum], number: impl Into<usize>) -> Result<&Datum> {
    values.get(number.into()).ok_or_else(malformed)
}
