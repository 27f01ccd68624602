//! The parser's front.

use super::alter_type::{self, TypeMove};
use super::alter_view::{self, ViewChange};
use super::cast::{self, CastStatement};
use super::channel::{self, ChannelStatement};
use super::comment::{self, CommentOn};
use super::configs::{self, SetConfig};
use super::conflict;
use super::control::Control;
use super::forgiving;
use super::like;
use super::limits::{self, DEPTH_MAX, STATEMENTS_MAX, TEXT_BYTES_MAX};
use super::modes;
use super::own::{self, Declared};
use super::position::Lines;
use super::rewritten;
use super::sequence::{self, AlterSequence, IdentityChanges};
use super::set_schema::{self, SetSchema};
use super::signs;
use super::size;
use super::strings;
use super::table_as::{self, TableAs};
use crate::memory::{Grant, MemoryPool};
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, Tokenizer};
use std::sync::Arc;
use values::{Error, Result, SqlState};

/// The stack on which statements are parsed, bound and dropped. A test runs what the limits let
/// through on half of it, in a program that is not optimised.
pub const STACK_BYTES: usize = 128 << 20;

/// A statement's tree, and the lines of the text that it is from.
#[derive(Clone, Debug)]
pub struct Statement {
    pub(crate) tree: ast::Statement,
    pub(crate) lines: Arc<Lines>,
    /// The text that it is from, of a view, which is kept.
    pub(crate) text: Option<Arc<str>>,
    /// What it is if the tree is none of its own.
    pub(super) own: Option<Control>,
    /// ALTER SEQUENCE, of which there is no tree.
    pub(crate) sequence: Option<AlterSequence>,
    /// What ALTER TABLE changes of identity columns.
    pub(crate) identities: IdentityChanges,
    /// CREATE TABLE AS, of which there is no tree.
    pub(crate) table_as: Option<Box<TableAs>>,
    /// ALTER TYPE ... OWNER TO or SET SCHEMA, of which there is no tree.
    pub(crate) type_move: Option<Box<TypeMove>>,
    /// ALTER VIEW ... RENAME TO or OWNER TO, of which there is no tree.
    pub(crate) view_change: Option<Box<ViewChange>>,
    /// SET SCHEMA of a relation, which has no tree.
    pub(crate) set_schema: Option<Box<SetSchema>>,
    /// COMMENT ON, of which there is no tree.
    pub(crate) comment: Option<Box<CommentOn>>,
    /// CREATE CAST or DROP CAST, of which there is no tree.
    pub(crate) cast: Option<Box<CastStatement>>,
    /// The expressions in targets of ON CONFLICT, for which names stand in the tree.
    pub(crate) expressions: Arc<[ast::Expr]>,
    /// The cursor that it declares.
    declared: Option<Declared>,
    /// Whether it is NOTIFY, whose tree is a query.
    is_notify: bool,
    /// The errors with which a definition in DO does nothing.
    pub(crate) forgiven: Option<Vec<SqlState>>,
    /// What it sets before it runs.
    configs: Vec<SetConfig>,
}

/// A statement between semicolons.
struct Found {
    tree: ast::Statement,
    own: Option<Control>,
    sequence: Option<AlterSequence>,
    identities: IdentityChanges,
    table_as: Option<Box<TableAs>>,
    type_move: Option<Box<TypeMove>>,
    comment: Option<Box<CommentOn>>,
    view_change: Option<Box<ViewChange>>,
    set_schema: Option<Box<SetSchema>>,
    cast: Option<Box<CastStatement>>,
    is_notify: bool,
    /// A definition in DO.
    forgiving: Option<Box<Statement>>,
}

impl Found {
    fn of(tree: ast::Statement) -> Found {
        let (own, sequence, identities) = (None, None, Vec::new());
        let (table_as, type_move, comment, view_change) = (None, None, None, None);
        let (is_notify, forgiving, set_schema, cast) = (false, None, None, None);
        Found {
            tree,
            own,
            sequence,
            identities,
            table_as,
            type_move,
            comment,
            view_change,
            set_schema,
            cast,
            is_notify,
            forgiving,
        }
    }

    fn table_as(made: TableAs) -> Found {
        Found { table_as: Some(Box::new(made)), ..Found::without_tree() }
    }

    /// One that has no tree.
    fn without_tree() -> Found {
        Found::of(ast::Statement::Discard { object_type: ast::DiscardObject::PLANS })
    }
}

impl Statement {
    /// A statement that is a part of this one.
    pub(crate) fn part(&self, tree: &ast::Statement) -> Statement {
        Statement { tree: tree.clone(), table_as: None, ..self.clone() }
    }

    /// The cursor that it declares; otherwise it is its query.
    pub fn declared(&self) -> Option<&Declared> {
        self.declared.as_ref()
    }

    /// What it sets before it runs.
    pub fn configs(&self) -> &[SetConfig] {
        &self.configs
    }

    /// Whether it is NOTIFY: its tag is that, and its client sees no row.
    pub fn is_notify(&self) -> bool {
        self.is_notify
    }
}

/// Parses the statements of a text, which semicolons separate; none of an empty one.
///
/// The trees can be deep: call this, [`crate::prepare`] and the drop of a statement on a thread
/// with [`STACK_BYTES`] of stack.
pub fn parse(text: &str) -> Result<Vec<Statement>> {
    parse_within(text, &MemoryPool::new(usize::MAX).grant())
}

/// Parses an expression that the catalog shows; `None` if it is no single one.
pub(crate) fn parsed_expression(text: &str) -> Option<ast::Expr> {
    let statement = parse(&format!("SELECT {text}")).ok()?.pop()?;
    let ast::Statement::Query(query) = statement.tree else { return None };
    let ast::SetExpr::Select(mut select) = *query.body else { return None };
    match select.projection.pop() {
        Some(ast::SelectItem::UnnamedExpr(expr)) if select.projection.is_empty() => Some(expr),
        _ => None,
    }
}

/// Parses as [`parse`] does. The `grant` has what the parser takes before it is taken, and behind
/// it what the trees and a copy of the text take.
///
/// # Errors
/// As [`parse`], and `OUT_OF_MEMORY` if the grant's pool has too little.
pub fn parse_within(text: &str, grant: &Grant) -> Result<Vec<Statement>> {
    check_bytes(text)?;
    // The text, and what tokens have of it.
    grant.grow_to(2 * text.len() + size::check_text(text)?)?;
    let lines = Lines::of(text);
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location().map_err(|error| {
        let at = lines.position(error.location);
        Error::new(SqlState::SYNTAX_ERROR, lower_first(&error.message)).at(at)
    })?;
    let mut tokens = rewritten::rewritten(like::replaced(signs::mended(strings::joined(tokens))));
    limits::check(&tokens)?;
    let bytes = size::check_tokens(&tokens)?;
    grant.grow_to(3 * text.len() + bytes.of_tokens + bytes.of_trees)?;
    own::replace_on_and_off(&mut tokens);
    let configs = configs::take_configs(&mut tokens);
    let end = tokens.last().map_or(Location { line: 1, column: 1 }, |token| token.span.end);
    let expressions = conflict::take_expressions(&mut tokens)
        .map_err(|error| syntax_error(&lines, error, &Token::EOF, end))?;
    let expressions: Arc<[ast::Expr]> = expressions.into();
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(DEPTH_MAX * 4)
        .with_tokens_with_locations(tokens);
    let trees = trees(&mut parser).map_err(|error| {
        let next = parser.peek_token();
        syntax_error(&lines, error, &next.token, next.span.start)
    })?;
    assert!(trees.len() <= STATEMENTS_MAX + 1, "semicolons separate statements");
    let lines = Arc::new(lines);
    let mut shared: Option<Arc<str>> = None;
    let statement = |(at, found): (usize, Found)| {
        if let Some(statement) = found.forgiving {
            return *statement;
        }
        let Found { tree, own, sequence, identities, .. } = found;
        let Found { table_as, type_move, comment, view_change, set_schema, cast, .. } = found;
        let is_view = matches!(tree, ast::Statement::CreateView(_));
        let text = is_view.then(|| shared.get_or_insert_with(|| text.into()).clone());
        let (tree, declared) = own::cursor(tree);
        let configs = configs.iter().filter(|(own, _)| *own == at);
        let configs = configs.map(|(_, config)| config.clone()).collect();
        let (lines, expressions) = (lines.clone(), expressions.clone());
        Statement {
            tree,
            lines,
            text,
            own,
            sequence,
            identities,
            table_as,
            type_move,
            comment,
            view_change,
            set_schema,
            cast,
            expressions,
            declared,
            is_notify: found.is_notify,
            forgiven: None,
            configs,
        }
    };
    let statements = trees.into_iter().enumerate().map(statement).collect();
    grant.shrink_to(2 * text.len() + bytes.of_trees);
    Ok(statements)
}

fn check_bytes(text: &str) -> Result<()> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let bytes = text.len();
    let message = format!("statement has {bytes} bytes, at most {TEXT_BYTES_MAX} are accepted");
    Err(Error::new(SqlState::LIMIT_EXCEEDED, message))
}

/// The statements between semicolons.
fn trees(parser: &mut Parser<'_>) -> std::result::Result<Vec<Found>, ParserError> {
    let mut trees = Vec::new();
    loop {
        let mut is_behind = trees.is_empty();
        while parser.consume_token(&Token::SemiColon) {
            is_behind = true;
        }
        if parser.peek_token_ref().token == Token::EOF {
            return Ok(trees);
        }
        if !is_behind {
            return parser.expected_ref("end of statement", parser.peek_token_ref());
        }
        trees.push(statement(parser)?);
    }
}

/// The next statement.
fn statement(parser: &mut Parser<'_>) -> std::result::Result<Found, ParserError> {
    if let Some(statement) = forgiving_definition(parser) {
        let forgiving = Some(Box::new(statement));
        return Ok(Found { forgiving, ..Found::without_tree() });
    }
    let own = match own::parse(parser)? {
        Some(own) => Some(Control::Own(own)),
        None => own::fetch(parser)?.map(Control::Fetch),
    };
    let own = match own {
        Some(own) => Some(own),
        None => set_schema::set_path(parser)?.map(|set| Control::of_path(set.schema, set.is_local)),
    };
    let own = match own {
        Some(own) => Some(own),
        None => modes::parse(parser)?.map(|(verb, modes)| Control::of_modes(verb, modes)),
    };
    if own.is_some() {
        return Ok(Found { own, ..Found::without_tree() });
    }
    if let Some(found) = channel::parse(parser)? {
        let own = match found {
            ChannelStatement::Listen(channel) => Control::Listen(channel),
            ChannelStatement::Unlisten(channel) => Control::Unlisten(channel),
            ChannelStatement::Notify(tree) => {
                return Ok(Found { is_notify: true, ..Found::of(*tree) });
            }
        };
        return Ok(Found { own: Some(own), ..Found::without_tree() });
    }
    if let Some(moved) = set_schema::set_schema(parser)? {
        return Ok(Found { set_schema: Some(Box::new(moved)), ..Found::without_tree() });
    }
    if let Some(sequence) = sequence::alter_sequence(parser)? {
        return Ok(Found { sequence: Some(sequence), ..Found::without_tree() });
    }
    if let Some((tree, identities)) = sequence::alter_table(parser)? {
        return Ok(Found { identities, ..Found::of(tree) });
    }
    if let Some(moved) = alter_type::type_move(parser)? {
        return Ok(Found { type_move: Some(Box::new(moved)), ..Found::without_tree() });
    }
    if let Some(change) = alter_view::view_change(parser)? {
        return Ok(Found { view_change: Some(Box::new(change)), ..Found::without_tree() });
    }
    if let Some(change) = cast::cast(parser)? {
        return Ok(Found { cast: Some(Box::new(change)), ..Found::without_tree() });
    }
    if let Some(said) = comment::comment_on(parser)? {
        return Ok(Found { comment: Some(Box::new(said)), ..Found::without_tree() });
    }
    if let Some(made) = table_as::create_table_as(parser)? {
        return Ok(Found::table_as(made));
    }
    let mut tree = whole_view(parser.parse_statement()?, parser);
    let made = table_as::select_into(&mut tree);
    Ok(made.map_or_else(|| Found::of(tree), Found::table_as))
}

/// The next statement, if it is DO of a definition that may fail.
fn forgiving_definition(parser: &mut Parser<'_>) -> Option<Statement> {
    let block = forgiving::next_block(parser)?;
    let mut found = parse(&block.text).ok()?;
    let mut statement = found.pop().filter(|own| found.is_empty() && own.is_definition())?;
    statement.forgiven = Some(block.forgiven);
    for _ in 0..block.tokens {
        parser.next_token();
    }
    Some(statement)
}

/// CREATE VIEW with its CHECK OPTION, which the parser does not know: an option of the view.
fn whole_view(mut tree: ast::Statement, parser: &mut Parser<'_>) -> ast::Statement {
    use Keyword::{CASCADED, CHECK, LOCAL, OPTION, WITH};
    let ast::Statement::CreateView(view) = &mut tree else { return tree };
    let forms: [&[Keyword]; 3] =
        [&[WITH, CHECK, OPTION], &[WITH, LOCAL, CHECK, OPTION], &[WITH, CASCADED, CHECK, OPTION]];
    if forms.iter().any(|form| parser.parse_keywords(form)) {
        view.options = ast::CreateTableOptions::With(Vec::new());
    }
    tree
}

fn syntax_error(lines: &Lines, error: ParserError, token: &Token, next: Location) -> Error {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            let message = format!("statement is nested deeper than {DEPTH_MAX} levels");
            return Error::new(SqlState::STATEMENT_TOO_COMPLEX, message);
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    // The parser says where at the end of its messages: `..., found: x at Line: 1, Column: 7`.
    let (message, location) = match message.rsplit_once(" at Line: ") {
        Some((before, place)) => {
            let mut numbers = place.split(", Column: ").map(|part| part.trim().parse::<u64>());
            match (numbers.next(), numbers.next()) {
                (Some(Ok(line)), Some(Ok(column))) => {
                    (before.to_owned(), Location { line, column })
                }
                _ => (message, next),
            }
        }
        None => (message, next),
    };
    let shown = match (location == next, token) {
        (true, Token::EOF) => "syntax error at end of input".to_owned(),
        (true, token) => format!("syntax error at or near \"{token}\""),
        (false, _) => match message.rsplit_once("found: ") {
            Some((_, "EOF")) => "syntax error at end of input".to_owned(),
            Some((_, found)) => format!("syntax error at or near \"{found}\""),
            None => "syntax error".to_owned(),
        },
    };
    // The end of the text has no place of its own.
    let at = lines.position(location).or_else(|| lines.end());
    Error::new(SqlState::SYNTAX_ERROR, shown).with_detail(lower_first(&message)).at(at)
}

fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// Runs `work` on a thread with enough stack for any statement that the limits let through.
pub fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("nvcaracal-sql".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .expect("a thread can be started");
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
