//! Clauses that the parser does not have, as tokens of what it has instead: FOR READ ONLY of
//! queries and the weaker locks; INTERVAL with a precision before its
//! text; ISNULL; NOT EXISTS, which binds too strongly there; `current_schema` and `current_role`;
//! BETWEEN SYMMETRIC, OPERATOR(pg_catalog.=) before ANY, TABLE as a query, FETCH of an expression, ARRAY behind a type; RESET of
//! settings whose names are several words.

use super::locks::marked;
use super::own::word;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

/// Replaces the clauses. Tokens keep their places in the text.
pub(super) fn rewritten(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    // Whether a statement begins, and whether a query was before in it.
    let (mut is_begin, mut has_query) = (true, false);
    let mut longer: Vec<(usize, Longer)> = Vec::new();
    let mut last: Option<usize> = None;
    for at in 0..tokens.len() {
        let found = match &tokens[at].token {
            Token::Whitespace(_) => continue,
            Token::DollarQuotedString(text) => {
                tokens[at].token = Token::SingleQuotedString(text.value.clone());
                (is_begin, last) = (false, Some(at));
                continue;
            }
            Token::SemiColon => {
                (is_begin, has_query, last) = (true, false, None);
                continue;
            }
            other => word(other).unwrap_or_default(),
        };
        match found.as_str() {
            "select" | "values" => has_query = true,
            "for" if has_query => {
                if let Some([read, only]) = words(&tokens, at, ["read", "only"]) {
                    blank(&mut tokens, &[at, read, only]);
                }
                longer.push((at, marked));
            }
            "interval" if has_precision(&tokens, at) => longer.push((at, as_cast)),
            "exists" if is_negated(&tokens, last, at) => longer.push((at, in_brackets)),
            "isnull" if is_operator(&tokens, last, at) => {
                longer.push((at, as_is_null));
            }
            "current_schema" | "current_role" if is_value(&tokens, last, at) => {
                longer.push((at, as_call));
            }
            "operator" => as_sign(&mut tokens, at),
            "reset" if is_begin => one_name(&mut tokens, at),
            "pg_get_keywords" => as_relation(&mut tokens, at),
            "symmetric" if last.is_some_and(|last| is_word(&tokens[last], "between")) => {
                tokens[at].token = Token::DoubleExclamationMark;
            }
            "table" => {
                has_query = true;
                if is_query(&tokens, last, at) {
                    longer.push((at, as_select));
                }
            }
            "distinct" if is_of_groups(&tokens, last) => {
                tokens[at].token = Token::DoubleExclamationMark;
            }
            "on" if ends_bare_select(&tokens, at) => longer.push((at, behind_where)),
            "sequence" if words(&tokens, at, ["name"]).is_some() => {
                longer.push((at, as_collation));
            }
            "fetch" if has_query => as_limit(&mut tokens, at),
            "array" if last.is_some_and(|last| ends_type(&tokens, last)) => {
                longer.push((at, as_brackets));
            }
            _ => {}
        }
        (is_begin, last) = (false, Some(at));
    }
    // From the last one on, as the places of those before stay.
    for (at, lengthen) in longer.into_iter().rev() {
        lengthen(&mut tokens, at);
    }
    tokens
}

/// Replaces what is at a place by more tokens.
type Longer = fn(&mut Vec<TokenWithSpan>, usize);

/// The places of the next tokens behind `at` that are no blanks.
fn places<const COUNT: usize>(tokens: &[TokenWithSpan], at: usize) -> Option<[usize; COUNT]> {
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let all = tokens.iter().enumerate().skip(at + 1);
    let mut all = all.filter(|(_, token)| !is_blank(token)).map(|(place, _)| place);
    let mut places = [0; COUNT];
    for place in &mut places {
        *place = all.next()?;
    }
    Some(places)
}

/// The places of the next words behind `at`, if they are these.
fn words<const COUNT: usize>(
    tokens: &[TokenWithSpan],
    at: usize,
    names: [&str; COUNT],
) -> Option<[usize; COUNT]> {
    let places = places(tokens, at)?;
    let is_word =
        |(place, name): (&usize, &str)| word(&tokens[*place].token).is_some_and(|own| own == name);
    places.iter().zip(names).all(is_word).then_some(places)
}

fn blank(tokens: &mut [TokenWithSpan], places: &[usize]) {
    for place in places {
        tokens[*place].token = Token::Whitespace(Whitespace::Space);
    }
}

/// `OPERATOR(pg_catalog.=) ANY` as `= ANY`: the parser takes no named operator there.
fn as_sign(tokens: &mut [TokenWithSpan], at: usize) {
    let Some([open, schema, period, sign, close, behind]) = places::<6>(tokens, at) else { return };
    let is_named = tokens[open].token == Token::LParen
        && is_word(&tokens[schema], "pg_catalog")
        && tokens[period].token == Token::Period
        && tokens[close].token == Token::RParen;
    if is_named && ["any", "all", "some"].iter().any(|word| is_word(&tokens[behind], word)) {
        tokens[at].token = tokens[sign].token.clone();
        blank(tokens, &[open, schema, period, sign, close]);
    }
}

/// `INTERVAL(2) 'text'`
fn has_precision(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some(places) = places::<4>(tokens, at) else { return false };
    matches!(
        places.map(|place| &tokens[place].token),
        [
            Token::LParen,
            Token::Number(..),
            Token::RParen,
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)
        ]
    )
}

/// `INTERVAL(2) 'text'` as `'text'::INTERVAL(2)`.
fn as_cast(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let Some([open, number, close, text]) = places::<4>(tokens, at) else { return };
    let interval = tokens[at].token.clone();
    let text_token = std::mem::replace(&mut tokens[text].token, Token::RParen);
    let number_token = std::mem::replace(&mut tokens[number].token, interval);
    tokens[at].token = text_token;
    tokens[open].token = Token::DoubleColon;
    tokens[close].token = Token::LParen;
    insert(tokens, close, number_token);
}

/// Whether a value may end with the token at a place: what is behind it is an operator, or a name.
fn ends_value(tokens: &[TokenWithSpan], at: usize) -> bool {
    match &tokens[at].token {
        Token::RParen | Token::RBracket | Token::Number(..) | Token::Placeholder(_) => true,
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => true,
        Token::HexStringLiteral(_) => true,
        Token::Word(word) if word.quote_style.is_some() => true,
        Token::Word(word) => !begins_value(&word.value.to_lowercase()) || is_column(tokens, at),
        _ => false,
    }
}

/// Whether a word is one of PostgreSQL's that no column has unquoted, and that no value ends with.
fn begins_value(word: &str) -> bool {
    const WORDS: &str = " all analyse analyze and any array as asc asymmetric authorization binary \
        both case cast check collate collation column concurrently constraint create cross \
        default deferrable desc distinct do else except fetch for foreign freeze from full grant \
        group having ilike in initially inner intersect into is join lateral leading left \
        like limit natural not offset on only or order outer overlaps placing primary \
        references returning right select similar some symmetric table tablesample then to \
        trailing union unique using variadic verbose when where window with ";
    WORDS.split(' ').any(|own| own == word)
}

/// Whether the word at a place is a column behind a period, or a type behind `::`, whatever it is.
fn is_column(tokens: &[TokenWithSpan], at: usize) -> bool {
    matches!(before(tokens, at), Some(Token::Period | Token::DoubleColon))
}

/// The last token before a place that is no blank.
fn before(tokens: &[TokenWithSpan], at: usize) -> Option<&Token> {
    let mut before = tokens[..at].iter().rev().map(|token| &token.token);
    before.find(|token| !matches!(token, Token::Whitespace(_)))
}

/// Whether EXISTS at a place, behind the token at `last`, is that of NOT EXISTS of a query.
fn is_negated(tokens: &[TokenWithSpan], last: Option<usize>, at: usize) -> bool {
    let is = |token: &Token, name: &str| word(token).is_some_and(|own| own == name);
    let is_not = last.is_some_and(|last| {
        is(&tokens[last].token, "not") && !before(tokens, last).is_some_and(|token| is(token, "if"))
    });
    is_not && places::<1>(tokens, at).is_some_and(|[next]| tokens[next].token == Token::LParen)
}

/// `EXISTS (..)` as `(EXISTS (..))`: behind NOT, which binds weaker than what is behind them.
fn in_brackets(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let Some(end) = closing(tokens, at) else { return };
    insert(tokens, end, Token::RParen);
    let exists = std::mem::replace(&mut tokens[at].token, Token::LParen);
    insert(tokens, at, exists);
}

/// Whether the word at a place, behind the token at `last`, is a value: no name, and no call.
fn is_value(tokens: &[TokenWithSpan], last: Option<usize>, at: usize) -> bool {
    let is_name = last.is_some_and(|last| {
        let before = &tokens[last].token;
        let own = word(before).unwrap_or_default();
        *before == Token::Period
            || own == "as"
            || ends_value(tokens, last) && !["by", "between", "escape"].contains(&own.as_str())
    });
    let next = places::<1>(tokens, at).map(|[next]| &tokens[next].token);
    !is_name && !matches!(next, Some(Token::LParen | Token::Period))
}

fn insert(tokens: &mut Vec<TokenWithSpan>, at: usize, token: Token) {
    let span = tokens[at].span;
    tokens.insert(at + 1, TokenWithSpan { token, span });
}

/// Whether the word at a place is an operator behind a value: no name, and no call.
fn is_operator(tokens: &[TokenWithSpan], last: Option<usize>, at: usize) -> bool {
    let next = places::<1>(tokens, at).map(|[next]| &tokens[next].token);
    last.is_some_and(|last| ends_value(tokens, last)) && next != Some(&Token::LParen)
}

/// `ISNULL` as `IS NULL`.
fn as_is_null(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    tokens[at].token = Token::make_keyword("IS");
    insert(tokens, at, Token::make_keyword("NULL"));
}

fn is_word(token: &TokenWithSpan, name: &str) -> bool {
    word(&token.token).is_some_and(|own| own == name)
}

/// Whether TABLE at a place, behind the token at `last`, is a query: of a name.
fn is_query(tokens: &[TokenWithSpan], last: Option<usize>, at: usize) -> bool {
    const BEFORE: [&str; 7] = ["as", "union", "all", "except", "intersect", "explain", "verbose"];
    let is_place = match last.map(|last| &tokens[last].token) {
        None | Some(Token::LParen) => true,
        Some(token) => word(token).is_some_and(|own| BEFORE.contains(&own.as_str())),
    };
    let next = places::<1>(tokens, at).map(|[next]| &tokens[next].token);
    is_place && matches!(next, Some(Token::Word(_)))
}

/// `TABLE name` as `SELECT * FROM name`.
fn as_select(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    tokens[at].token = Token::make_keyword("SELECT");
    insert(tokens, at, Token::make_keyword("FROM"));
    insert(tokens, at, Token::Mul);
}

/// `FETCH FIRST n ROWS ONLY` as `LIMIT n`, of a number, a parameter or what is in brackets.
fn as_limit(tokens: &mut [TokenWithSpan], at: usize) {
    let Some([first, open]) = places(tokens, at) else { return };
    let is_first = ["first", "next"].iter().any(|name| is_word(&tokens[first], name));
    if !is_first || tokens[open].token != Token::LParen {
        return;
    }
    let Some(end) = closing(tokens, open) else { return };
    let Some([rows, only]) = places(tokens, end) else { return };
    let is_rows = ["row", "rows"].iter().any(|name| is_word(&tokens[rows], name));
    if is_rows && is_word(&tokens[only], "only") {
        tokens[at].token = Token::make_keyword("LIMIT");
        blank(tokens, &[first, rows, only]);
    }
}

/// Whether the token at `last` is the BY of GROUP BY.
fn is_of_groups(tokens: &[TokenWithSpan], last: Option<usize>) -> bool {
    last.is_some_and(|last| {
        let group = before(tokens, last).and_then(word);
        is_word(&tokens[last], "by") && group.as_deref() == Some("group")
    })
}

/// The quote of names of sequences, which stand as collations of identity columns. PostgreSQL's
/// names are never quoted so.
pub(crate) const SEQUENCE_QUOTE: char = '[';

/// `GENERATED ... AS IDENTITY (SEQUENCE NAME a ...)` of a column as `COLLATE a GENERATED ...`.
fn as_collation(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let Some(begin) = identity_before(tokens, at) else { return };
    let Some([_, mut end]) = places::<2>(tokens, at) else { return };
    let mut moved = vec![Token::make_keyword("COLLATE"), sequence_name(&tokens[end].token)];
    while let Some([period, name]) = places::<2>(tokens, end)
        && tokens[period].token == Token::Period
    {
        moved.extend([Token::Period, sequence_name(&tokens[name].token)]);
        end = name;
    }
    let blank = || Token::Whitespace(Whitespace::Space);
    tokens[at..=end].iter_mut().for_each(|own| own.token = blank());
    let span = tokens[begin].span;
    let moved = moved.into_iter().flat_map(|token| [token, blank()]);
    tokens.splice(begin..begin, moved.map(|token| TokenWithSpan { token, span }));
}

/// The place of GENERATED, if options of an identity column that is defined begin before a place.
fn identity_before(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let open = tokens[..at].iter().rposition(|own| own.token == Token::LParen)?;
    let is = |place: usize, name: &str| {
        before(tokens, place).is_some_and(|own| word(own).as_deref() == Some(name))
    };
    let begin = tokens[..open].iter().rposition(|own| is_word(own, "generated"))?;
    // ALTER TABLE has a form of its own.
    (is(open, "identity") && !is(begin, "add")).then_some(begin)
}

fn sequence_name(token: &Token) -> Token {
    let Token::Word(own) = token else { return token.clone() };
    let value = match own.quote_style {
        Some(_) => own.value.clone(),
        None => own.value.to_lowercase(),
    };
    Token::Word(Word { value, quote_style: Some(SEQUENCE_QUOTE), keyword: Keyword::NoKeyword })
}

/// Whether ON at a place is that of ON CONFLICT, behind a query of nothing but columns: the parser
/// takes it for the name of the last one.
fn ends_bare_select(tokens: &[TokenWithSpan], at: usize) -> bool {
    const CLAUSES: [&str; 9] =
        ["from", "where", "group", "having", "order", "limit", "offset", "window", "fetch"];
    if words(tokens, at, ["conflict"]).is_none() {
        return false;
    }
    let mut depth = 0_usize;
    for token in tokens[..at].iter().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            Token::SemiColon => return false,
            other if depth == 0 => match word(other).as_deref() {
                Some("select") => return true,
                Some("values" | "conflict") => return false,
                Some(own) if CLAUSES.contains(&own) => return false,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

/// `ON` as `WHERE true ON`.
fn behind_where(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let on = std::mem::replace(&mut tokens[at].token, Token::make_keyword("WHERE"));
    insert(tokens, at, on);
    insert(tokens, at, Token::make_keyword("TRUE"));
}

/// The place of the bracket that closes the one at a place.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut all = tokens.iter().enumerate().skip(open);
    all.find(|(_, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => return false,
        }
        depth == 0
    })
    .map(|(place, _)| place)
}

/// Whether the name of a type ends with the token at a place.
fn ends_type(tokens: &[TokenWithSpan], at: usize) -> bool {
    const TYPES: &str = " bigint bool boolean bytea char character date decimal double float \
        float4 float8 int int2 int4 int8 integer interval json jsonb numeric precision real \
        smallint text \
        time timestamp timestamptz uuid varchar varying zone ";
    match &tokens[at].token {
        // `varchar(255) ARRAY`
        Token::RParen => {
            let open = tokens[..at].iter().rposition(|own| own.token == Token::LParen);
            let name = open.and_then(|open| before(tokens, open));
            matches!(name, Some(Token::Word(own)) if own.quote_style.is_none()
                && TYPES.contains(&format!(" {} ", own.value.to_lowercase())))
        }
        Token::Word(own) if own.quote_style.is_none() => {
            TYPES.contains(&format!(" {} ", own.value.to_lowercase()))
        }
        _ => false,
    }
}

/// `ARRAY` behind a type as `[]`; a length counts for nothing.
fn as_brackets(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let next = places::<1>(tokens, at).map(|[next]| &tokens[next].token);
    if next == Some(&Token::LBracket) {
        tokens[at].token = Token::Whitespace(Whitespace::Space);
        return;
    }
    tokens[at].token = Token::LBracket;
    insert(tokens, at, Token::RBracket);
}

/// `current_schema` as `current_schema()`.
fn as_call(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    insert(tokens, at, Token::RParen);
    insert(tokens, at, Token::LParen);
}

/// `pg_get_keywords()` as the relation of its rows.
fn as_relation(tokens: &mut [TokenWithSpan], at: usize) {
    if let Some([open, close]) = places(tokens, at)
        && tokens[open].token == Token::LParen
        && tokens[close].token == Token::RParen
    {
        blank(tokens, &[open, close]);
    }
}

/// RESET TRANSACTION ISOLATION LEVEL and RESET TIME ZONE, as the settings are called.
fn one_name(tokens: &mut [TokenWithSpan], at: usize) {
    let setting = |name: &str| {
        let value = name.to_owned();
        Token::Word(Word { value, quote_style: None, keyword: Keyword::NoKeyword })
    };
    if let Some([first, second, third]) = words(tokens, at, ["transaction", "isolation", "level"]) {
        tokens[first].token = setting("transaction_isolation");
        blank(tokens, &[second, third]);
    } else if let Some([first, second]) = words(tokens, at, ["time", "zone"]) {
        tokens[first].token = setting("timezone");
        blank(tokens, &[second]);
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::keywords::ALL_KEYWORDS;

    use super::super::{Control, parse};
    use super::begins_value;

    /// ISNULL is an operator behind every column, whatever word its name is, and never the name of
    /// the column before it.
    #[test]
    fn isnull_is_an_operator_behind_every_word() {
        let is_operator = |text: &str, value: &str| {
            let found = parse(text).map(|mut found| found.remove(0).tree.to_string());
            found.is_ok_and(|found| found.contains(&format!("{value} IS NULL")))
        };
        let mut others = Vec::new();
        for word in
            ALL_KEYWORDS.iter().map(|word| word.to_lowercase()).filter(|word| !word.contains('-'))
        {
            let (of_table, alone) = (format!("t.{word}"), word.clone());
            assert!(is_operator(&format!("SELECT {of_table} isnull FROM t"), &of_table), "{word}");
            if !begins_value(&word)
                && !is_operator(&format!("SELECT a FROM t WHERE {alone} isnull"), &alone)
            {
                others.push(word);
            }
        }
        // Calls and a value, which are shown otherwise, and three words that are refused.
        assert_eq!(
            others,
            ["current_role", "current_schema", "exists", "interval", "null", "trim"]
        );
    }

    #[test]
    fn clauses_become_what_the_parser_has() {
        let shown = |text: &str| parse(text).unwrap()[0].tree.to_string();
        assert_eq!(shown("SELECT 1 FOR READ ONLY"), "SELECT 1");
        assert_eq!(shown("DECLARE c CURSOR FOR SELECT a FROM t FOR READ ONLY"), "SELECT a FROM t");
        assert_eq!(shown("SELECT interval ( 2 ) '1.2 s', 1"), "SELECT '1.2 s'::INTERVAL(2), 1");
        assert_eq!(shown("SELECT a::interval(2), 'x'"), "SELECT a::INTERVAL(2), 'x'");
        assert_eq!(shown("SELECT a isnull, (b) ISNULL"), "SELECT a IS NULL, (b) IS NULL");
        assert_eq!(
            shown("SELECT year isnull, t.only ISNULL, value isnull FROM t WHERE name isnull"),
            "SELECT year IS NULL, t.only IS NULL, value IS NULL FROM t WHERE name IS NULL"
        );
        assert_eq!(
            shown("SELECT a ISNULL ISNULL, NOT EXISTS (SELECT (1)) ISNULL"),
            "SELECT a IS NULL IS NULL, NOT (EXISTS (SELECT (1))) IS NULL"
        );
        for text in [
            "CREATE TABLE IF NOT EXISTS t (a INT)",
            "SELECT 1 AS isnull, isnull(a)",
            "SELECT t.isnull, NOT isnull(a) FROM t ORDER BY isnull(b)",
        ] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(
            shown(
                "SELECT current_schema, current_role, current_schema ( ) ORDER BY current_schema"
            ),
            "SELECT current_schema(), current_role(), current_schema() ORDER BY current_schema()"
        );
        let names = "SELECT a.current_schema, 1 AS current_role, \"current_schema\"";
        assert_eq!(shown(names), names);
        for text in ["DELETE FROM t FOR READ ONLY", "BEGIN FOR READ ONLY", "SELECT 1 FOR READ"] {
            assert_eq!(parse(text).unwrap_err().state().code(), "42601", "{text}");
        }
        for (text, name) in [
            ("RESET TRANSACTION ISOLATION LEVEL", "transaction_isolation"),
            ("SELECT 1; RESET TIME ZONE", "timezone"),
        ] {
            let reset = Control::Reset(Some(name.to_owned()));
            assert_eq!(parse(text).unwrap().pop().unwrap().control(), Some(reset), "{text}");
        }
    }
}
