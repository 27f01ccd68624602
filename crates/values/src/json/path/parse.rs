//! From the text of a path to its tree.

use super::lexer::{Lexer, Token, near, wrong};
use super::{
    Arithmetic, Comparison, Condition, DEEPEST, Head, JsonPath, Method, PathExpr, Pattern, Step,
    Subscript,
};
use crate::{Error, Numeric, Result, SqlState};

/// How deep brackets and signs may be within others.
const DEPTH_MAX: usize = 64;
/// The longest text of a path, in bytes.
const BYTES_MAX: usize = 64 << 10;

/// What brackets may have within.
enum Parsed {
    Expr(PathExpr),
    Condition(Condition),
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token,
    /// The token's text.
    text: &'t str,
    depth: usize,
    /// In how many filters and subscripts it is.
    filters: usize,
    subscripts: usize,
}

impl JsonPath {
    /// The path of a text.
    ///
    /// ```
    /// use values::json::JsonPath;
    /// let path = JsonPath::parse("$.a[*] ? (@ > 1)").unwrap();
    /// assert_eq!(path.to_string(), "$.\"a\"[*]?(@ > 1)");
    /// ```
    pub fn parse(text: &str) -> Result<JsonPath> {
        if text.len() > BYTES_MAX {
            let message = format!("a jsonpath has at most {BYTES_MAX} bytes");
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        let (lexer, token, text) = (Lexer::of(text), Token::End, "");
        let mut parser = Parser { lexer, token, text, depth: 0, filters: 0, subscripts: 0 };
        parser.advance()?;
        if parser.token == Token::End {
            let message = "invalid input syntax for type jsonpath: \"\"";
            return Err(Error::new(SqlState::INVALID_TEXT, message));
        }
        let is_strict = parser.take_word("strict")?;
        if !is_strict {
            parser.take_word("lax")?;
        }
        let expr = match parser.alternatives()? {
            Parsed::Expr(expr) => expr,
            Parsed::Condition(condition) => of_condition(condition),
        };
        match parser.token {
            Token::End => Ok(JsonPath { is_strict, expr }),
            _ => Err(parser.unexpected()),
        }
    }
}

fn of_condition(condition: Condition) -> PathExpr {
    PathExpr { head: Head::Condition(Box::new(condition)), steps: Vec::new() }
}

fn of_head(head: Head) -> PathExpr {
    PathExpr { head, steps: Vec::new() }
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token> {
        let (token, text) = self.lexer.next()?;
        self.text = text;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn unexpected(&self) -> Error {
        near(self.text)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(own) if own == sign)
    }

    fn take(&mut self, sign: &str) -> Result<bool> {
        let found = self.is_sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(own) if own.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> Result<bool> {
        let found = self.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word)? { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Parses what is deeper by one level.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            let message = format!("a jsonpath is nested deeper than {DEPTH_MAX} levels");
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn condition(&self, parsed: Parsed) -> Result<Condition> {
        match parsed {
            Parsed::Condition(condition) => Ok(condition),
            Parsed::Expr(_) => Err(self.unexpected()),
        }
    }

    fn expr(&self, parsed: Parsed) -> Result<PathExpr> {
        match parsed {
            Parsed::Expr(expr) => Ok(expr),
            Parsed::Condition(_) => Err(self.unexpected()),
        }
    }

    /// `||`
    fn alternatives(&mut self) -> Result<Parsed> {
        let mut parsed = self.both()?;
        while self.is_sign("||") {
            let left = self.condition(parsed)?;
            self.advance()?;
            let right = self.both()?;
            let right = self.condition(right)?;
            parsed = Parsed::Condition(Condition::Or(Box::new(left), Box::new(right)));
        }
        Ok(parsed)
    }

    /// `&&`
    fn both(&mut self) -> Result<Parsed> {
        let mut parsed = self.compared()?;
        while self.is_sign("&&") {
            let left = self.condition(parsed)?;
            self.advance()?;
            let right = self.compared()?;
            let right = self.condition(right)?;
            parsed = Parsed::Condition(Condition::And(Box::new(left), Box::new(right)));
        }
        Ok(parsed)
    }

    fn compared(&mut self) -> Result<Parsed> {
        if self.take("!")? {
            let inner = self.deeper(Self::delimited)?;
            return Ok(Parsed::Condition(Condition::Not(Box::new(inner))));
        }
        let left = match self.sum()? {
            Parsed::Expr(left) => left,
            condition => return Ok(condition),
        };
        let comparison = match self.token {
            Token::Sign(sign) => Comparison::of_sign(sign),
            _ => None,
        };
        if let Some(comparison) = comparison {
            self.advance()?;
            let right = self.sum()?;
            let right = self.expr(right)?;
            return Ok(Parsed::Condition(Condition::Compare(comparison, left, right)));
        }
        if self.take_word("starts")? {
            self.expect_word("with")?;
            let head = match self.advance()? {
                Token::String(text) => Head::String(text.into()),
                Token::Variable(name) => Head::Variable(name.into()),
                _ => return Err(self.unexpected()),
            };
            return Ok(Parsed::Condition(Condition::StartsWith(left, of_head(head))));
        }
        if self.take_word("like_regex")? {
            let pattern = Box::new(self.pattern()?);
            return Ok(Parsed::Condition(Condition::LikeRegex(left, pattern)));
        }
        Ok(Parsed::Expr(left))
    }

    fn string(&mut self) -> Result<String> {
        if !matches!(self.token, Token::String(_)) {
            return Err(self.unexpected());
        }
        match self.advance()? {
            Token::String(text) => Ok(text),
            _ => Err(self.unexpected()),
        }
    }

    fn pattern(&mut self) -> Result<Pattern> {
        let text = self.string()?.into();
        let flags = if self.take_word("flag")? { self.string()? } else { String::new() };
        let has = |flag| flags.contains(flag);
        if let Some(unknown) = flags.chars().find(|flag| !"ismxq".contains(*flag)) {
            let error =
                Error::new(SqlState::SYNTAX_ERROR, "invalid input syntax for type jsonpath");
            let shown = &flags[flags.find(unknown).unwrap_or(0)..];
            let detail =
                format!("Unrecognized flag character \"{shown}\" in LIKE_REGEX predicate.");
            return Err(error.with_detail(detail));
        }
        if has('x') && !has('q') {
            let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
            return Err(Error::unsupported(message, ""));
        }
        let (any_case, dot_all, multi_line) = (has('i'), has('s'), has('m'));
        Ok(Pattern { text, any_case, dot_all, multi_line, is_text: has('q') })
    }

    /// `(condition)` or `exists (path)`
    fn delimited(&mut self) -> Result<Condition> {
        if self.take_word("exists")? {
            self.expect("(")?;
            let inner = self.alternatives()?;
            let inner = self.expr(inner)?;
            self.expect(")")?;
            return Ok(Condition::Exists(inner));
        }
        self.expect("(")?;
        let inner = self.alternatives()?;
        let inner = self.condition(inner)?;
        self.expect(")")?;
        Ok(inner)
    }

    fn sum(&mut self) -> Result<Parsed> {
        let mut parsed = self.product()?;
        while let Some(operator) = self.operator(&[Arithmetic::Add, Arithmetic::Subtract]) {
            let left = self.expr(parsed)?;
            self.advance()?;
            let right = self.product()?;
            let right = self.expr(right)?;
            let head = Head::Binary(operator, Box::new(left), Box::new(right));
            parsed = Parsed::Expr(of_head(head));
        }
        Ok(parsed)
    }

    fn product(&mut self) -> Result<Parsed> {
        const OWN: [Arithmetic; 3] = [Arithmetic::Multiply, Arithmetic::Divide, Arithmetic::Modulo];
        let mut parsed = self.deeper(Self::signed)?;
        while let Some(operator) = self.operator(&OWN) {
            let left = self.expr(parsed)?;
            self.advance()?;
            let right = self.deeper(Self::signed)?;
            let right = self.expr(right)?;
            let head = Head::Binary(operator, Box::new(left), Box::new(right));
            parsed = Parsed::Expr(of_head(head));
        }
        Ok(parsed)
    }

    fn operator(&self, all: &[Arithmetic]) -> Option<Arithmetic> {
        all.iter().copied().find(|operator| self.is_sign(operator.sign()))
    }

    fn signed(&mut self) -> Result<Parsed> {
        let is_minus = self.is_sign("-");
        if !is_minus && !self.is_sign("+") {
            return self.accessed();
        }
        self.advance()?;
        let inner = self.deeper(Self::signed)?;
        let inner = self.expr(inner)?;
        Ok(Parsed::Expr(of_head(Head::Signed(is_minus, Box::new(inner)))))
    }

    /// A value with its steps, or what is in brackets.
    fn accessed(&mut self) -> Result<Parsed> {
        if self.is_word("exists") {
            let exists = self.deeper(Self::delimited)?;
            return Ok(Parsed::Condition(exists));
        }
        let mut expr = if self.take("(")? {
            let inner = self.deeper(Self::alternatives)?;
            self.expect(")")?;
            match inner {
                Parsed::Expr(expr) => expr,
                Parsed::Condition(condition) => {
                    if self.take_word("is")? {
                        self.expect_word("unknown")?;
                        let unknown = Condition::IsUnknown(Box::new(condition));
                        return Ok(Parsed::Condition(unknown));
                    }
                    if !self.is_sign(".") && !self.is_sign("[") && !self.is_sign("?") {
                        return Ok(Parsed::Condition(condition));
                    }
                    of_condition(condition)
                }
            }
        } else {
            of_head(self.primary()?)
        };
        while let Some(step) = self.step()? {
            expr.steps.push(step);
        }
        Ok(Parsed::Expr(expr))
    }

    fn primary(&mut self) -> Result<Head> {
        let head = match &self.token {
            Token::Sign("$") => Head::Root,
            Token::Sign("@") if self.filters == 0 => {
                return Err(wrong("@ is not allowed in root expressions"));
            }
            Token::Sign("@") => Head::Current,
            Token::String(text) => Head::String(text.as_str().into()),
            Token::Variable(name) => Head::Variable(name.as_str().into()),
            Token::Number(digits) => {
                // A period at its end is a part of it.
                Head::Number(digits.trim_end_matches('.').parse::<Numeric>()?)
            }
            Token::Word(word) => match word.as_str() {
                "null" => Head::Null,
                "true" => Head::Bool(true),
                "false" => Head::Bool(false),
                word if !word.eq_ignore_ascii_case("last") => return Err(self.unexpected()),
                _ if self.subscripts == 0 => {
                    return Err(wrong("LAST is allowed only in array subscripts"));
                }
                _ => Head::Last,
            },
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        Ok(head)
    }

    fn step(&mut self) -> Result<Option<Step>> {
        if self.take(".")? {
            return self.member().map(Some);
        }
        if self.take("[")? {
            return self.items().map(Some);
        }
        if !self.take("?")? {
            return Ok(None);
        }
        self.expect("(")?;
        self.filters += 1;
        let inner = self.deeper(Self::alternatives)?;
        let condition = self.condition(inner)?;
        self.filters -= 1;
        self.expect(")")?;
        Ok(Some(Step::Filter(Box::new(condition))))
    }

    fn member(&mut self) -> Result<Step> {
        match &self.token {
            Token::Sign("*") => {
                self.advance()?;
                Ok(Step::AnyKey)
            }
            Token::Sign("**") => {
                self.advance()?;
                self.levels()
            }
            Token::String(_) => Ok(Step::Key(self.string()?.into())),
            Token::Word(word) => {
                let word = word.clone();
                self.advance()?;
                if !self.is_sign("(") {
                    return Ok(Step::Key(word.into()));
                }
                if word.eq_ignore_ascii_case("datetime") {
                    let message = "jsonpath item method .datetime() is not supported";
                    return Err(Error::unsupported(message, "Cast the text of the value."));
                }
                let Some(method) = Method::named(&word) else { return Err(self.unexpected()) };
                self.advance()?;
                self.expect(")")?;
                Ok(Step::Method(method))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The levels of `.**`.
    fn levels(&mut self) -> Result<Step> {
        if !self.take("{")? {
            return Ok(Step::Descend(0, DEEPEST));
        }
        let first = self.level()?;
        let last = if self.take_word("to")? { self.level()? } else { first };
        self.expect("}")?;
        Ok(Step::Descend(first, last))
    }

    fn level(&mut self) -> Result<u32> {
        if self.take_word("last")? {
            return Ok(DEEPEST);
        }
        let Token::Number(digits) = &self.token else { return Err(self.unexpected()) };
        let Ok(level) = digits.parse::<i32>() else { return Err(self.unexpected()) };
        self.advance()?;
        Ok(level.cast_unsigned())
    }

    fn items(&mut self) -> Result<Step> {
        if self.take("*")? {
            self.expect("]")?;
            return Ok(Step::AnyItem);
        }
        self.subscripts += 1;
        let mut all = Vec::new();
        loop {
            let from = self.subscript()?;
            let to = if self.take_word("to")? { Some(self.subscript()?) } else { None };
            all.push(Subscript { from, to });
            if !self.take(",")? {
                break;
            }
        }
        self.subscripts -= 1;
        self.expect("]")?;
        Ok(Step::Items(all))
    }

    fn subscript(&mut self) -> Result<PathExpr> {
        let parsed = self.deeper(Self::sum)?;
        self.expr(parsed)
    }
}
