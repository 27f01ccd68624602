//! Text that begins with constant characters is a range of it: in collation C, from these
//! characters to the first text behind all that begin with them.

use super::binder::Binder;
use super::coerce::Bound;
use super::conditions::Conjunct;
use super::known::Comparison;
use crate::ir::{Function, Op};
use sqlparser::ast::Expr;
use values::{Datum, Result, Type};

impl Binder<'_> {
    /// LIKE of a constant pattern, with what it says about the beginning of its text.
    pub(super) fn like_conjunct(&mut self, expr: &Expr, text: &Expr) -> Result<Conjunct> {
        let bound = self.condition(expr, self.clause)?;
        let subject = self.expression(text)?;
        let mut notes = Vec::new();
        // Blanks of `character` count for patterns, and not for comparisons.
        if subject.ty().is_some_and(|ty| ty.is_text() && ty != Type::Char)
            && let [own @ .., Op::Constant(pattern), Op::Call(Function::Like, 2)] = &bound.code[..]
            && own == &subject.code[..]
            && let Datum::Text(pattern) = &pattern.0
            && let Some((prefix, is_whole)) = prefix_of(pattern)
        {
            self.note_prefix(&subject, &prefix, is_whole, &mut notes);
        }
        Ok(Conjunct { bound, notes })
    }

    fn note_prefix(
        &self,
        subject: &Bound,
        prefix: &str,
        is_whole: bool,
        notes: &mut Vec<Comparison>,
    ) {
        let mut note = |function, text: &str| {
            let value = Bound::constant(Datum::text(text), Type::Text);
            self.note(function, subject, &value, notes);
        };
        if is_whole {
            return note(Function::Equal, prefix);
        }
        if prefix.is_empty() {
            return;
        }
        note(Function::GreaterEqual, prefix);
        if let Some(end) = behind(prefix) {
            note(Function::Less, &end);
        }
    }
}

/// The characters that a pattern of LIKE begins with, and whether it has nothing else. `None` of a
/// pattern that is none.
fn prefix_of(pattern: &str) -> Option<(String, bool)> {
    let mut prefix = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '%' | '_' => return Some((prefix, false)),
            '\\' => prefix.push(rest.next()?),
            other => prefix.push(other),
        }
    }
    Some((prefix, true))
}

/// The first text behind all that begin with these characters: UTF-8 has the order of characters.
fn behind(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            other => char::from_u32(other as u32 + 1),
        };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_begin_with_characters() {
        let of = |pattern| prefix_of(pattern);
        assert_eq!(of("ab%"), Some(("ab".to_owned(), false)));
        assert_eq!(of("a_b"), Some(("a".to_owned(), false)));
        assert_eq!(of("a\\%b"), Some(("a%b".to_owned(), true)));
        assert_eq!(of("%a"), Some((String::new(), false)));
        assert_eq!(of("a\\"), None);
    }

    #[test]
    fn ends_are_behind_all_that_begin_so() {
        assert_eq!(behind("ab").as_deref(), Some("ac"));
        assert_eq!(behind("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(behind("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(behind("\u{10ffff}"), None);
        assert!("a\u{7f}zz" < behind("a\u{7f}").unwrap().as_str());
    }
}
