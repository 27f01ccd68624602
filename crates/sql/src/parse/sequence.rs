//! ALTER SEQUENCE, and what ALTER TABLE changes of identity columns: the parser has neither.

use super::own::word;
use crate::bind::name_of;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, Expr, GeneratedAs, ObjectName,
    ObjectNamePart, SequenceOptions, Statement,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::mem::discriminant;

/// ALTER SEQUENCE
#[derive(Clone, Debug)]
pub(crate) struct AlterSequence {
    pub(crate) name: ObjectName,
    pub(crate) if_exists: bool,
    pub(crate) change: SequenceChange,
}

/// What ALTER SEQUENCE changes.
#[derive(Clone, Debug)]
pub(crate) enum SequenceChange {
    Counting(Box<Counting>),
    Rename(ObjectName),
    /// OWNER TO: all objects belong to the one user.
    Owner,
}

/// How a sequence counts from now on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counting {
    pub(crate) options: Vec<SequenceOptions>,
    /// RESTART, perhaps with a number.
    pub(crate) restart: Option<Option<Expr>>,
}

/// What ALTER COLUMN changes of an identity column.
#[derive(Clone, Debug)]
pub(crate) enum IdentityChange {
    Set {
        generated: Option<GeneratedAs>,
        counting: Box<Counting>,
    },
    Drop {
        if_exists: bool,
    },
    /// ADD GENERATED ... AS IDENTITY, perhaps with the name of its sequence.
    Add {
        generated: GeneratedAs,
        sequence: Option<ObjectName>,
        counting: Box<Counting>,
    },
}

/// Changes of identity columns, by the places of their operations.
pub(crate) type IdentityChanges = Vec<(usize, IdentityChange)>;

/// The next statement, if it is ALTER SEQUENCE.
pub(super) fn alter_sequence(
    parser: &mut Parser<'_>,
) -> Result<Option<AlterSequence>, ParserError> {
    if !are_next(parser, &["alter", "sequence"]) {
        return Ok(None);
    }
    skip(parser, 2);
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let change = if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        SequenceChange::Rename(parser.parse_object_name(false)?)
    } else if parser.parse_keywords(&[Keyword::OWNER, Keyword::TO]) {
        parser.parse_identifier()?;
        SequenceChange::Owner
    } else {
        let mut counting = Counting::default();
        while counting.option(parser, true)? {}
        if counting.options.is_empty() && counting.restart.is_none() {
            return parser.expected_ref("an option of a sequence", parser.peek_token_ref());
        }
        SequenceChange::Counting(Box::new(counting))
    };
    Ok(Some(AlterSequence { name, if_exists, change }))
}

/// The next statement, if it is ALTER TABLE. Where an operation changes an identity column, an
/// empty one stands in the tree.
pub(super) fn alter_table(
    parser: &mut Parser<'_>,
) -> Result<Option<(Statement, IdentityChanges)>, ParserError> {
    if !are_next(parser, &["alter", "table"]) {
        return Ok(None);
    }
    skip(parser, 2);
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let only = parser.parse_keyword(Keyword::ONLY);
    let name = parser.parse_object_name(false)?;
    let (mut changes, mut at) = (Vec::new(), 0);
    let operations = parser.parse_comma_separated(|parser| {
        at += 1;
        match identity_change(parser)? {
            None => parser.parse_alter_table_operation(),
            Some((column_name, change)) => {
                changes.push((at - 1, change));
                let op = AlterColumnOperation::GenericOptions { options: Vec::new() };
                Ok(AlterTableOperation::AlterColumn { column_name, op })
            }
        }
    })?;
    let end_token = AttachedToken(parser.get_current_token().clone());
    let (location, on_cluster, table_type) = (None, None, None);
    let tree = AlterTable {
        name,
        if_exists,
        only,
        operations,
        location,
        on_cluster,
        table_type,
        end_token,
    };
    Ok(Some((tree.into(), changes)))
}

type Changed = (sqlparser::ast::Ident, IdentityChange);

/// The next operation of ALTER TABLE, if it changes an identity column.
fn identity_change(parser: &mut Parser<'_>) -> Result<Option<Changed>, ParserError> {
    const SET: &[&str] = &[
        "generated",
        "increment",
        "minvalue",
        "maxvalue",
        "no",
        "start",
        "cache",
        "cycle",
        "restart",
    ];
    if !are_next(parser, &["alter"]) {
        return Ok(None);
    }
    let has_word = are_next(parser, &["alter", "column"]);
    let behind = 2 + usize::from(has_word);
    let next = |place| word(&parser.peek_nth_token_ref(place).token).unwrap_or_default();
    let (first, second) = (next(behind), next(behind + 1));
    let is_drop = first == "drop" && second == "identity";
    let is_set = first == "set" && SET.contains(&&second[..]);
    let is_add = first == "add" && second == "generated";
    if !is_drop && !is_set && !is_add && first != "restart" {
        return Ok(None);
    }
    skip(parser, behind - 1);
    let column = parser.parse_identifier()?;
    if is_drop {
        skip(parser, 2);
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        return Ok(Some((column, IdentityChange::Drop { if_exists })));
    }
    if is_add {
        return Ok(Some((column, added_identity(parser)?)));
    }
    let (mut generated, mut counting) = (None, Box::<Counting>::default());
    loop {
        if are_next(parser, &["set", "generated"]) {
            skip(parser, 2);
            let found = always_or_by_default(parser)?;
            if generated.replace(found).is_some() {
                return Err(twice());
            }
        } else if parser.parse_keyword(Keyword::SET) {
            if !counting.option(parser, false)? {
                return parser.expected_ref("an option of a sequence", parser.peek_token_ref());
            }
        } else if !are_next(parser, &["restart"]) || !counting.option(parser, false)? {
            return Ok(Some((column, IdentityChange::Set { generated, counting })));
        }
    }
}

fn always_or_by_default(parser: &mut Parser<'_>) -> Result<GeneratedAs, ParserError> {
    if parser.parse_keyword(Keyword::ALWAYS) {
        return Ok(GeneratedAs::Always);
    }
    parser.expect_keywords(&[Keyword::BY, Keyword::DEFAULT])?;
    Ok(GeneratedAs::ByDefault)
}

/// `ADD GENERATED ... AS IDENTITY (options)`, with SEQUENCE NAME among the options.
fn added_identity(parser: &mut Parser<'_>) -> Result<IdentityChange, ParserError> {
    skip(parser, 2);
    let generated = always_or_by_default(parser)?;
    parser.expect_keywords(&[Keyword::AS, Keyword::IDENTITY])?;
    let (mut sequence, mut counting) = (None, Box::<Counting>::default());
    if parser.consume_token(&Token::LParen) {
        loop {
            if are_next(parser, &["sequence", "name"]) {
                skip(parser, 2);
                if sequence.replace(parser.parse_object_name(false)?).is_some() {
                    return Err(twice());
                }
            } else if are_next(parser, &["restart"]) || !counting.option(parser, false)? {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    Ok(IdentityChange::Add { generated, sequence, counting })
}

impl Counting {
    /// Reads an option, if one is next; only some are of sequences without a column.
    fn option(&mut self, parser: &mut Parser<'_>, is_alone: bool) -> Result<bool, ParserError> {
        let option = match word(&parser.peek_token_ref().token).as_deref() {
            Some("restart") => {
                skip(parser, 1);
                let has_number = parser.parse_keyword(Keyword::WITH) || is_number(parser);
                let number = if has_number { Some(parser.parse_number()?) } else { None };
                return match self.restart.replace(number) {
                    None => Ok(true),
                    Some(_) => Err(twice()),
                };
            }
            Some("increment") => {
                skip(parser, 1);
                let by = parser.parse_keyword(Keyword::BY);
                SequenceOptions::IncrementBy(parser.parse_number()?, by)
            }
            Some("start") => {
                skip(parser, 1);
                let with = parser.parse_keyword(Keyword::WITH);
                SequenceOptions::StartWith(parser.parse_number()?, with)
            }
            Some("minvalue") => {
                skip(parser, 1);
                SequenceOptions::MinValue(Some(parser.parse_number()?))
            }
            Some("maxvalue") => {
                skip(parser, 1);
                SequenceOptions::MaxValue(Some(parser.parse_number()?))
            }
            Some("cache") => {
                skip(parser, 1);
                SequenceOptions::Cache(parser.parse_number()?)
            }
            Some("cycle") => {
                skip(parser, 1);
                SequenceOptions::Cycle(false)
            }
            Some("no") => {
                skip(parser, 1);
                match parser.expect_one_of_keywords(&[
                    Keyword::MINVALUE,
                    Keyword::MAXVALUE,
                    Keyword::CYCLE,
                ])? {
                    Keyword::MINVALUE => SequenceOptions::MinValue(None),
                    Keyword::MAXVALUE => SequenceOptions::MaxValue(None),
                    _ => SequenceOptions::Cycle(true),
                }
            }
            Some("as") if is_alone => {
                skip(parser, 1);
                SequenceOptions::DataType(parser.parse_data_type()?)
            }
            Some("owned") if is_alone => {
                skip(parser, 1);
                parser.expect_keyword(Keyword::BY)?;
                let owner = parser.parse_object_name(false)?;
                SequenceOptions::OwnedBy((!is_none(&owner)).then_some(owner))
            }
            _ => return Ok(false),
        };
        if self.options.iter().any(|seen| discriminant(seen) == discriminant(&option)) {
            return Err(twice());
        }
        self.options.push(option);
        Ok(true)
    }
}

/// Whether an owner is the word NONE.
fn is_none(owner: &ObjectName) -> bool {
    matches!(
        &owner.0[..],
        [ObjectNamePart::Identifier(ident)]
            if ident.quote_style.is_none() && name_of(ident) == "none"
    )
}

fn twice() -> ParserError {
    ParserError::ParserError("conflicting or redundant options".to_owned())
}

/// Whether a number is next, perhaps with its sign.
fn is_number(parser: &Parser<'_>) -> bool {
    matches!(parser.peek_token_ref().token, Token::Number(..) | Token::Minus | Token::Plus)
}

/// Whether these words are next.
pub(super) fn are_next(parser: &Parser<'_>, words: &[&str]) -> bool {
    let is_at = |(at, expected): (usize, &&str)| {
        word(&parser.peek_nth_token_ref(at).token).as_deref() == Some(*expected)
    };
    words.iter().enumerate().all(is_at)
}

pub(super) fn skip(parser: &mut Parser<'_>, count: usize) {
    for _ in 0..count {
        parser.next_token();
    }
}
