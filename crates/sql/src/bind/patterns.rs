//! Regular expressions: operators, functions, and SIMILAR TO.

use super::binder::Binder;
use super::coerce::Bound;
use super::expression::{call, negate_if, word};
use super::kinds::Willing;
use super::math::or_empty;
use crate::ir::{Function, PatternFunction};
use sqlparser::ast::Expr;
use values::{Datum, Error, Result, Type};

fn number(value: i32) -> Bound {
    Bound::constant(Datum::Int4(value), Type::Int4)
}

impl Binder<'_> {
    /// Refuses regular expressions in indexes, whose entries would outlive their rules.
    fn check_pattern(&self) -> Result<()> {
        match self.no_queries {
            Some(place) if place.starts_with("index") => {
                let message = format!("cannot use a regular expression in {place}");
                Err(Error::unsupported(message, "Use LIKE."))
            }
            _ => Ok(()),
        }
    }

    /// `~` and its kin.
    pub(super) fn matches(&mut self, left: Bound, right: Bound, any_case: bool) -> Result<Bound> {
        self.check_pattern()?;
        let left = self.coerce(left.with_blanks(), Type::Text, Willing::Implicit)?;
        let right = self.coerce(right, Type::Text, Willing::Implicit)?;
        let any_case = Bound::constant(Datum::Bool(any_case), Type::Bool);
        let function = Function::Pattern(PatternFunction::Matches);
        Ok(call(function, vec![left, right, any_case], Type::Bool))
    }

    /// SIMILAR TO
    pub(super) fn similar(
        &mut self,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        negated: bool,
    ) -> Result<Bound> {
        let (text, pattern) = (self.expression(expr)?, self.expression(pattern)?);
        let escape = match escape {
            Some(escape) => self.expression(escape)?,
            None => word("\\"),
        };
        let pattern = self.coerce(pattern, Type::Text, Willing::Implicit)?;
        let escape = self.coerce(escape, Type::Text, Willing::Implicit)?;
        let function = Function::Pattern(PatternFunction::OfSimilar);
        let pattern = call(function, vec![pattern, escape], Type::Text);
        Ok(negate_if(negated, self.matches(text, pattern, false)?))
    }

    /// `substring(text from pattern)`
    pub(super) fn part_of_pattern(&mut self, text: Bound, pattern: Bound) -> Result<Bound> {
        self.check_pattern()?;
        let all = self.coerced(vec![text, pattern], &[Type::Text, Type::Text])?;
        Ok(call(Function::Pattern(PatternFunction::Part), all, Type::Text))
    }

    /// A function of regular expressions; `None` if there is none of this name and these arguments.
    pub(super) fn pattern_function(
        &mut self,
        name: &str,
        mut all: Vec<Bound>,
    ) -> Result<Option<Bound>> {
        use PatternFunction as P;
        use Type::{Int4, Text};
        let array = Text.array().unwrap_or(Text);
        let is_number =
            |bound: Option<&Bound>| bound.and_then(Bound::ty).is_some_and(Type::is_integer);
        let (function, types, result): (_, &[Type], _) = match (name, all.len()) {
            ("regexp_match", 2 | 3) => (P::First, &[Text, Text, Text], array),
            ("regexp_like", 2 | 3) => (P::Like, &[Text, Text, Text], Type::Bool),
            ("regexp_split_to_array", 2 | 3) => (P::Split, &[Text, Text, Text], array),
            ("regexp_replace", 4..=6) if is_number(all.get(3)) => {
                if all.len() == 4 {
                    all.push(number(1));
                }
                (P::Replace, &[Text, Text, Text, Int4, Int4, Text], Text)
            }
            ("regexp_replace", 3 | 4) => (P::Replace, &[Text, Text, Text, Text], Text),
            ("regexp_count", 2..=4) => {
                if all.len() == 2 {
                    all.push(number(1));
                }
                (P::Count, &[Text, Text, Int4, Text], Int4)
            }
            ("regexp_substr", 2..=6) => {
                with_group(&mut all, &[number(1), number(1)]);
                (P::Substring, &[Text, Text, Int4, Int4, Int4, Text], Text)
            }
            ("regexp_instr", 2..=7) => {
                with_group(&mut all, &[number(1), number(1), number(0)]);
                (P::Position, &[Text, Text, Int4, Int4, Int4, Int4, Text], Int4)
            }
            ("similar_to_escape", 2) => (P::OfSimilar, &[Text, Text], Text),
            _ => return Ok(None),
        };
        self.check_pattern()?;
        let all = self.coerced(or_empty(all, types.len()), types)?;
        Ok(Some(call(Function::Pattern(function), all, result)))
    }
}

/// Fills up the numbers behind text and pattern, and puts the number of the group, which is behind
/// the flags, before them.
fn with_group(all: &mut Vec<Bound>, numbers: &[Bound]) {
    let behind = all.len().saturating_sub(2).min(numbers.len());
    all.extend_from_slice(&numbers[behind..]);
    let flags = 2 + numbers.len();
    if all.len() == flags {
        all.push(word(""));
    }
    if all.len() == flags + 1 {
        all.push(number(0));
    }
    all.swap(flags, flags + 1);
}
