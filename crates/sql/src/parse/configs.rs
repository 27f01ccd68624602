//! `set_config` of constants in queries of other things, too: it is done before the query, in which
//! its value stands in its place. A query of nothing but functions of the session keeps its calls.

use super::own::word;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// `set_config(name, value, is_local)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetConfig {
    /// The setting.
    pub name: String,
    /// Its value.
    pub value: ConfigValue,
    /// Whether it ends with the transaction.
    pub is_local: bool,
    /// Whether a setting that there is not is left alone: the call is for rows of `pg_settings`.
    pub if_exists: bool,
}

/// The value of `set_config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigValue {
    /// A text; the default of NULL.
    Constant(Option<String>),
    /// The parameter with this number, from 0.
    Parameter(usize),
}

/// Takes the calls out of the tokens. Returns what each sets, with the number of its statement.
pub(super) fn take_configs(tokens: &mut [TokenWithSpan]) -> Vec<(usize, SetConfig)> {
    let mut all = Vec::new();
    let (mut begin, mut number) = (0, 0);
    while begin < tokens.len() {
        let rest = tokens[begin..].iter().position(|own| own.token == Token::SemiColon);
        let end = rest.map_or(tokens.len(), |length| begin + length);
        let own = &mut tokens[begin..end];
        if is_query_of_rows(own) {
            let configs = configs(own).into_iter();
            all.extend(configs.map(|config| (number, config)));
        }
        if own.iter().any(|own| !is_blank(&own.token)) {
            number += 1;
        }
        begin = end + 1;
    }
    all
}

fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_) | Token::EOF)
}

fn is_query_of_rows(tokens: &[TokenWithSpan]) -> bool {
    let first = tokens.iter().find(|own| !is_blank(&own.token));
    let is_query = first.and_then(|own| word(&own.token));
    matches!(is_query.as_deref(), Some("select" | "with"))
        && tokens.iter().any(|own| word(&own.token).as_deref() == Some("from"))
}

/// Takes the calls out of the tokens of a statement.
fn configs(tokens: &mut [TokenWithSpan]) -> Vec<SetConfig> {
    let mut found = Vec::new();
    let is_token = |at: &usize| !is_blank(&tokens[*at].token);
    let places: Vec<usize> = (0..tokens.len()).filter(is_token).collect();
    let of_row = setting_of_row(tokens, &places);
    for (nth, at) in places.iter().enumerate() {
        let Some(call) = places.get(nth..nth + 8) else { break };
        let Some((config, shown)) = config_at(tokens, call, of_row.as_deref()) else { continue };
        found.push(config);
        tokens[*at].token = shown;
        let schema = nth.checked_sub(2).map(|before| &places[before..nth]);
        let schema = schema.filter(|before| {
            word(&tokens[before[0]].token).as_deref() == Some("pg_catalog")
                && tokens[before[1]].token == Token::Period
        });
        for place in schema.into_iter().flatten().chain(&call[1..]) {
            tokens[*place].token = Token::Whitespace(Whitespace::Space);
        }
    }
    found
}

/// The setting whose row of `pg_settings` the statement reads, if it ends in
/// `FROM pg_settings WHERE name = 'setting'`. So `pg_dump` sets what older servers do not know.
fn setting_of_row(tokens: &[TokenWithSpan], places: &[usize]) -> Option<String> {
    let last = places.len().checked_sub(5)?;
    let all: Vec<&Token> = places[last..].iter().map(|at| &tokens[*at].token).collect();
    let [relation, filter, column, Token::Eq, Token::SingleQuotedString(setting)] = all[..] else {
        return None;
    };
    let words = [relation, filter, column].map(word);
    let words = words.each_ref().map(|word| word.as_deref().unwrap_or_default());
    (words == ["pg_settings", "where", "name"]).then(|| setting.clone())
}

/// What a call sets whose tokens are at these places, and its value. `of_row` is the setting that
/// the column `name` of the rows has.
fn config_at(
    tokens: &[TokenWithSpan],
    call: &[usize],
    of_row: Option<&str>,
) -> Option<(SetConfig, Token)> {
    let all: Vec<&Token> = call.iter().map(|at| &tokens[*at].token).collect();
    let [name, Token::LParen, key, Token::Comma, value, Token::Comma, is_local, Token::RParen] =
        all[..]
    else {
        return None;
    };
    let (key, if_exists) = match key {
        Token::SingleQuotedString(key) => (key.clone(), false),
        other if word(other).as_deref() == Some("name") => (of_row?.to_owned(), true),
        _ => return None,
    };
    let text = match value {
        Token::SingleQuotedString(text) => Some(text.clone()),
        other if word(other).as_deref() == Some("null") => None,
        _ => return None,
    };
    let is_local = match word(is_local)?.as_str() {
        "true" => true,
        "false" => false,
        _ => return None,
    };
    if word(name)? != "set_config" {
        return None;
    }
    let shown = Token::SingleQuotedString(text.clone().unwrap_or_default());
    let value = ConfigValue::Constant(text);
    Some((SetConfig { name: key, value, is_local, if_exists }, shown))
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn calls_of_constants_are_done_before_their_query() {
        let text = "SELECT 1; WITH a AS (SELECT pg_catalog.set_config('x.y', 'z', true) AS b) \
                    SELECT b FROM a";
        let found = parse(text).unwrap();
        assert!(found[0].configs().is_empty());
        let shown = "WITH a AS (SELECT 'z' AS b) SELECT b FROM a";
        assert_eq!(found[1].tree.to_string(), shown);
        let [config] = found[1].configs() else { panic!("{:?}", found[1].configs()) };
        assert_eq!((config.name.as_str(), config.is_local), ("x.y", true));
        assert!(parse("SELECT set_config('x', 'y', false)").unwrap()[0].configs().is_empty());
    }

    #[test]
    fn a_call_for_the_row_of_a_setting_needs_the_setting() {
        let text = |name| {
            format!("SELECT set_config({name}, 'v', false) FROM pg_settings WHERE name = 'x.y'")
        };
        let found = parse(&text("name")).unwrap();
        let [config] = found[0].configs() else { panic!("{:?}", found[0].configs()) };
        assert_eq!((config.name.as_str(), config.if_exists), ("x.y", true));
        assert!(parse(&text("setting")).unwrap()[0].configs().is_empty());
        let text = "SELECT set_config(name, 'v', false) FROM t WHERE name = 'x.y'";
        assert!(parse(text).unwrap()[0].configs().is_empty());
    }
}
