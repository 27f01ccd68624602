//! Expressions in the target of ON CONFLICT, of which the parser knows only columns: each is parsed
//! by itself, and a name that no statement can write stands for it in the tree.

use super::own::word;
use sqlparser::ast::{Expr, Ident};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The quote of names that stand for expressions. PostgreSQL's are never quoted so.
const QUOTE: char = '[';

/// Takes the expressions out of all targets of ON CONFLICT.
pub(super) fn take_expressions(tokens: &mut Vec<TokenWithSpan>) -> Result<Vec<Expr>, ParserError> {
    let (mut expressions, mut folded, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(begin) = next_target(tokens, at) {
        let Some(end) = closing(tokens, begin) else { break };
        folded.extend_from_slice(&tokens[at..begin]);
        for (place, element) in elements(&tokens[begin..end]).into_iter().enumerate() {
            if place > 0 {
                folded.push(TokenWithSpan::wrap(Token::Comma));
            }
            match element {
                [TokenWithSpan { token: Token::Word(_), .. }] => folded.extend_from_slice(element),
                [] => {}
                [first, ..] => {
                    let name = Word {
                        value: expressions.len().to_string(),
                        quote_style: Some(QUOTE),
                        keyword: Keyword::NoKeyword,
                    };
                    folded.push(TokenWithSpan { token: Token::Word(name), span: first.span });
                    expressions.push(expression(element)?);
                }
            }
        }
        at = end;
    }
    if at > 0 {
        folded.extend(tokens.drain(at..));
        *tokens = folded;
    }
    Ok(expressions)
}

/// The place in the list of expressions that a name stands for.
pub(crate) fn place_of_expression(ident: &Ident) -> Option<usize> {
    (ident.quote_style == Some(QUOTE)).then(|| ident.value.parse().ok())?
}

fn expression(tokens: &[TokenWithSpan]) -> Result<Expr, ParserError> {
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens.to_vec());
    let expr = parser.parse_expr()?;
    match parser.peek_token_ref().token {
        Token::EOF => Ok(expr),
        _ => parser.expected_ref("an expression", parser.peek_token_ref()),
    }
}

/// Behind the bracket of the next ON CONFLICT from a place on.
fn next_target(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut words = [false, false];
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::LParen if words[1] => return Some(at + 1),
            other => {
                let found = word(other);
                let is_conflict = words[0] && found.as_deref() == Some("conflict");
                words = [found.as_deref() == Some("on"), is_conflict];
            }
        }
    }
    None
}

/// The bracket that closes what began before this place.
fn closing(tokens: &[TokenWithSpan], begin: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(at),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The parts between commas, without space around them.
fn elements(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => {
                parts.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[begin..]);
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let trimmed = |part: &[TokenWithSpan]| -> std::ops::Range<usize> {
        let first = part.iter().position(|token| !is_space(token)).unwrap_or(part.len());
        let end = part.iter().rposition(|token| !is_space(token)).map_or(first, |at| at + 1);
        first..end
    };
    parts.into_iter().map(|part| &part[trimmed(part)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn targets_may_have_expressions_between_columns() {
        let shown = |text: &str| {
            let statement = parse(text).unwrap().remove(0);
            let expressions = statement.expressions.iter().map(ToString::to_string);
            (statement.tree.to_string(), expressions.collect::<Vec<_>>())
        };
        let (tree, expressions) = shown(
            "INSERT INTO t VALUES (1) ON CONFLICT ( a, lower( b ), (c || 'x''y, ('), \"D\") DO \
             NOTHING",
        );
        assert!(tree.ends_with("ON CONFLICT(a, [0], [1], \"D\") DO NOTHING"), "{tree}");
        assert_eq!(expressions, ["lower(b)", "(c || 'x''y, (')"]);
        let (tree, expressions) = shown("INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING");
        assert!(tree.ends_with("ON CONFLICT(a) DO NOTHING") && expressions.is_empty(), "{tree}");
        for text in ["(lower(a)", "(lower(a) b)", "(lower(a), )", "(a +)", "()"] {
            let text = format!("INSERT INTO t VALUES (1) ON CONFLICT {text} DO NOTHING");
            assert_eq!(parse(&text).unwrap_err().state().code(), "42601", "{text}");
        }
    }
}
