//! FOR UPDATE and its kin, with the strengths and the lists of tables that the parser does not
//! have; and LOCK TABLE.

use super::own::word;
use crate::bind::written_name;
use crate::catalog::Written;
use crate::ir::Strength;
use sqlparser::ast::{Ident, Lock, LockTableMode};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};
use values::Result;

/// Begins the names that stand for strengths. No name of a statement has this character.
const MARK: char = '\0';

/// The strength that a name of the parser's FOR UPDATE OF stands for, if it is none of a table.
pub(crate) fn strength_of(ident: &Ident) -> Option<Strength> {
    let all = [Strength::KeyShare, Strength::Share, Strength::NoKeyUpdate, Strength::Update];
    let name = ident.value.strip_prefix(MARK)?;
    all.into_iter().find(|strength| strength.to_string() == name)
}

/// Writes a clause as one that the parser has: FOR KEY SHARE OF a, b as FOR SHARE OF
/// "strength".a.b. `at` is the place of FOR.
pub(super) fn marked(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut places = Places { tokens, at };
    let mut words = Vec::new();
    let strength = loop {
        let Some((place, word)) = places.word() else { return };
        words.push((place, word));
        let said: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
        match said[..] {
            ["update"] => break Strength::Update,
            ["share"] => break Strength::Share,
            ["no", "key", "update"] => break Strength::NoKeyUpdate,
            ["key", "share"] => break Strength::KeyShare,
            ["no"] | ["no", "key"] | ["key"] => {}
            _ => return,
        }
    };
    let (last, _) = words.pop().expect("it is a strength");
    let is_weaker = !words.is_empty();
    let mut commas = Vec::new();
    let list = match places.word() {
        Some((of, word)) if word == "of" => Some(of),
        _ => None,
    };
    while list.is_some() {
        let is_name = places.next().is_some_and(|(_, token)| matches!(token, Token::Word(_)));
        match places.next() {
            Some((place, Token::Comma)) if is_name => commas.push(place),
            // The parser says what is wrong with these.
            Some((_, Token::Period)) => return,
            _ if is_name => break,
            _ => return,
        }
    }
    for (place, _) in words {
        tokens[place].token = Token::Whitespace(Whitespace::Space);
    }
    if !is_weaker && commas.is_empty() {
        return;
    }
    for comma in commas {
        tokens[comma].token = Token::Period;
    }
    let value = format!("{MARK}{strength}");
    let mark = Token::Word(Word {
        value,
        quote_style: Some('"'),
        keyword: sqlparser::keywords::Keyword::NoKeyword,
    });
    let (behind, more) = match list {
        Some(of) => (of, [mark, Token::Period]),
        None => (last, [Token::make_keyword("OF"), mark]),
    };
    let span = tokens[behind].span;
    let more = more.map(|token| TokenWithSpan { token, span });
    tokens.splice(behind + 1..behind + 1, more);
}

/// Tokens one after the other, without blanks.
struct Places<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl<'t> Places<'t> {
    fn next(&mut self) -> Option<(usize, &'t Token)> {
        let rest = self.tokens.iter().enumerate().skip(self.at + 1);
        let mut rest = rest.map(|(place, token)| (place, &token.token));
        let found = rest.find(|(_, token)| !matches!(token, Token::Whitespace(_)))?;
        self.at = found.0;
        Some(found)
    }

    fn word(&mut self) -> Option<(usize, String)> {
        let (place, token) = self.next()?;
        Some((place, word(token)?))
    }
}

/// LOCK TABLE
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTable {
    /// The tables.
    pub tables: Vec<Written>,
    /// How they are locked.
    pub mode: LockMode,
    /// NOWAIT
    pub fails: bool,
}

/// How LOCK TABLE locks, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "named after PostgreSQL's modes")]
pub enum LockMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

impl LockMode {
    /// All of them, from weak to strong.
    pub const ALL: [LockMode; 8] = [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];

    /// Whether two transactions cannot have a table in these modes, as in PostgreSQL.
    pub fn conflicts(self, other: LockMode) -> bool {
        use LockMode::{
            AccessExclusive, AccessShare, Exclusive, RowExclusive, RowShare, Share,
            ShareRowExclusive, ShareUpdateExclusive,
        };
        let (weak, strong) = if self < other { (self, other) } else { (other, self) };
        match strong {
            AccessExclusive => true,
            Exclusive => weak > AccessShare,
            ShareRowExclusive => weak > RowShare,
            Share => matches!(weak, RowExclusive | ShareUpdateExclusive),
            ShareUpdateExclusive => weak == ShareUpdateExclusive,
            RowExclusive | RowShare | AccessShare => false,
        }
    }
}

/// What LOCK TABLE says.
pub(super) fn lock_table(lock: &Lock) -> Result<LockTable> {
    let tables =
        lock.tables.iter().map(|table| written_name(&table.name)).collect::<Result<_>>()?;
    let mode = match lock.lock_mode {
        None | Some(LockTableMode::AccessExclusive) => LockMode::AccessExclusive,
        Some(LockTableMode::AccessShare) => LockMode::AccessShare,
        Some(LockTableMode::RowShare) => LockMode::RowShare,
        Some(LockTableMode::RowExclusive) => LockMode::RowExclusive,
        Some(LockTableMode::ShareUpdateExclusive) => LockMode::ShareUpdateExclusive,
        Some(LockTableMode::Share) => LockMode::Share,
        Some(LockTableMode::ShareRowExclusive) => LockMode::ShareRowExclusive,
        Some(LockTableMode::Exclusive) => LockMode::Exclusive,
    };
    Ok(LockTable { tables, mode, fails: lock.nowait })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::LockMode;

    #[test]
    fn clauses_keep_their_strength_and_their_tables() {
        let shown = |text: &str| parse(text).unwrap()[0].tree.to_string().replace('\0', "");
        for (text, expected) in [
            ("FOR UPDATE", "FOR UPDATE"),
            ("FOR UPDATE OF a SKIP LOCKED", "FOR UPDATE OF a SKIP LOCKED"),
            ("FOR SHARE OF a, \"b c\"", "FOR SHARE OF \"SHARE\".a.\"b c\""),
            ("FOR NO KEY UPDATE", "FOR UPDATE OF \"NO KEY UPDATE\""),
            ("FOR /* x */ KEY SHARE OF a NOWAIT", "FOR SHARE OF \"KEY SHARE\".a NOWAIT"),
            (
                "FOR UPDATE OF a, b FOR KEY SHARE",
                "FOR UPDATE OF \"UPDATE\".a.b FOR SHARE OF \"KEY SHARE\"",
            ),
        ] {
            assert_eq!(
                shown(&format!("SELECT 1 FROM a {text}")),
                format!("SELECT 1 FROM a {expected}")
            );
        }
        for text in ["FOR UPDATE OF", "FOR UPDATE OF a.b, c", "FOR NO UPDATE", "FOR KEY UPDATE"] {
            let text = format!("SELECT 1 FROM a {text}");
            assert_eq!(parse(&text).unwrap_err().state().code(), "42601", "{text}");
        }
    }

    #[test]
    fn modes_of_tables_exclude_each_other_as_postgresql_says() {
        let all = LockMode::ALL;
        let conflicts = |one: LockMode| all.map(|other| u8::from(one.conflicts(other)));
        assert_eq!(
            all.map(conflicts),
            [
                [0, 0, 0, 0, 0, 0, 0, 1],
                [0, 0, 0, 0, 0, 0, 1, 1],
                [0, 0, 0, 0, 1, 1, 1, 1],
                [0, 0, 0, 1, 1, 1, 1, 1],
                [0, 0, 1, 1, 0, 1, 1, 1],
                [0, 0, 1, 1, 1, 1, 1, 1],
                [0, 1, 1, 1, 1, 1, 1, 1],
                [1, 1, 1, 1, 1, 1, 1, 1],
            ]
        );
    }
}
