//! The extended protocol: Parse, Bind, Describe, Execute, Close, Flush.

use super::conversation::{Conversation, Held, Stop};
use super::planned::{Known, Portal, Prepared, Progress, Work};
use super::queue::Shape;
use crate::codec::{Bind, Format, Message, Target, vector_of};
use sql::catalog::Catalog;
use sql::{FREE_BYTES, Grant, MemoryPool};
use std::sync::Arc;
use values::{Datum, Error, Oid, Result, SqlState, Type, Zone, binary, made, text};

/// The object id of literals whose type is not known; drivers send it for "tell me".
const UNKNOWN: Oid = Oid::new(705);

impl Conversation {
    /// Takes a message of a segment; `bytes` are those of its body.
    pub(super) async fn extended(&mut self, message: Message, bytes: usize) -> Result<(), Stop> {
        self.is_one_of_several = false;
        self.begin_transaction();
        match self.held.take() {
            Some(Held::Read(execution, room)) => self.settle(execution, room).await?,
            held => self.held = held,
        }
        let may_need = matches!(message, Message::Parse { .. } | Message::Execute { .. });
        if may_need && self.holds_definition() {
            self.open_held().await?;
        }
        match message {
            Message::Parse { name, text, types } => {
                self.parse_named(name, &text, &types, bytes).await?;
            }
            Message::Bind(bind) => self.bind(bind, bytes).await?,
            Message::Describe(Target::Statement, name) => self.describe_statement(&name)?,
            Message::Describe(Target::Portal, name) => self.describe_portal(&name)?,
            Message::Close(Target::Statement, name) => {
                self.statements.remove(&name);
                self.out.close_complete();
            }
            Message::Close(Target::Portal, name) => {
                // Cursors of SQL are portals, too.
                if self.portals.remove(&name).is_none() {
                    self.cursors.remove(&name);
                }
                self.out.close_complete();
            }
            Message::Execute { portal, rows_max } => self.execute(&portal, rows_max).await?,
            Message::Flush => {
                self.open_held().await?;
                self.flush().await?;
            }
            Message::Query(_) | Message::Sync | Message::Terminate | Message::StrayCopy => {
                unreachable!("they are no part of a segment")
            }
        }
        if self.holds_much() {
            self.open_held().await?;
        }
        self.connection.check_ended()?;
        Ok(self.flush_long().await?)
    }

    async fn parse_named(
        &mut self,
        name: String,
        text: &str,
        types: &[Oid],
        bytes: usize,
    ) -> Result<()> {
        self.statements.check(&name, bytes)?;
        let catalog = self.connection.catalog();
        let types = types.iter().map(|oid| type_of(&catalog, *oid)).collect::<Result<Vec<_>>>()?;
        let parsed = self.parse(text).await?;
        let prepared = match &parsed[..] {
            [] => Prepared::new(Work::Nothing, Arc::new([]), bytes),
            [one] => self.plan(one, &types, bytes).await?,
            _ => {
                let message = "cannot insert multiple commands into a prepared statement";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        };
        self.block.has_run |= prepared.is_analyzed();
        let text = parsed.first().map_or_else(|| text.into(), |one| Arc::clone(one.text()));
        let (prepared, at) = (Arc::new(prepared), self.connection.now());
        self.statements.insert(name, Known { prepared, text, at, is_sql: false });
        self.out.parse_complete();
        Ok(())
    }

    /// The statement of this name, planned for the catalog of now.
    async fn current(&mut self, name: &str) -> Result<Arc<Prepared>> {
        let known = self.statements.get(name)?;
        let (text, at, is_sql) = (Arc::clone(&known.text), known.at, known.is_sql);
        let prepared = Arc::clone(&known.prepared);
        self.check_block(prepared.control())?;
        let (Work::Store(statement) | Work::Declare(_, statement)) = &prepared.work else {
            return Ok(prepared);
        };
        let Some(again) = self.connection.renewed(statement).await? else { return Ok(prepared) };
        let work = match &prepared.work {
            Work::Declare(declared, _) => Work::Declare(declared.clone(), again),
            _ => Work::Store(again),
        };
        let columns = Arc::clone(&prepared.columns);
        let given = prepared.given.clone();
        let memory = prepared.memory.clone();
        let renewed = Prepared { given, memory, ..Prepared::new(work, columns, prepared.bytes) };
        let renewed = Arc::new(renewed);
        let known = Known { prepared: Arc::clone(&renewed), text, at, is_sql };
        self.statements.insert(name.to_owned(), known);
        Ok(renewed)
    }

    async fn bind(&mut self, bind: Bind, bytes: usize) -> Result<()> {
        let prepared = self.current(&bind.statement).await?;
        self.portals.check(&bind.portal, bytes)?;
        self.block.has_run |= prepared.is_analyzed();
        let types = prepared.parameters();
        if bind.values.len() != types.len() {
            let (given, wanted) = (bind.values.len(), types.len());
            return Err(violation(format!(
                "bind message supplies {given} parameters, but prepared statement \"{}\" requires \
                 {wanted}",
                bind.statement
            )));
        }
        check_count("parameter", bind.formats.len(), types.len())?;
        check_count("result", bind.result_formats.len(), prepared.columns.len())?;
        let format = |at: usize| match &bind.formats[..] {
            [] => Format::Text,
            [format] => *format,
            formats => formats[at],
        };
        let given: Vec<Given<'_>> = types
            .iter()
            .zip(&bind.values)
            .enumerate()
            .map(|(at, (ty, bytes))| Given { ty: *ty, bytes: bytes.as_deref(), format: format(at) })
            .collect();
        let (values, memory) = match &prepared.given {
            Some(values) => (values.clone(), prepared.memory.clone()),
            None => values_of(&given, self.settings.zone(), &self.connection.memory())?,
        };
        let formats = bind.result_formats.into();
        let (progress, savepoints) = (Progress::New, self.block.savepoints.len());
        self.bound += 1;
        let number = self.bound;
        let portal =
            Portal { number, prepared, values, memory, formats, bytes, progress, savepoints };
        self.portals.insert(bind.portal, portal);
        self.out.bind_complete();
        Ok(())
    }

    fn describe_statement(&mut self, name: &str) -> Result<()> {
        let prepared = &self.statements.get(name)?.prepared;
        self.out.parameter_description(prepared.parameters());
        match prepared.has_rows() {
            false => self.out.no_data(),
            true => self.out.row_description(&prepared.columns, |_| Format::Text),
        }
        Ok(())
    }

    fn describe_portal(&mut self, name: &str) -> Result<()> {
        if !self.portals.has(name) && self.cursors.has(name) {
            let columns = Arc::clone(&self.cursors.get(name)?.columns);
            self.out.row_description(&columns, |_| Format::Text);
            return Ok(());
        }
        let portal = self.portals.get(name)?;
        let shape = Shape::of(&portal.prepared, &portal.formats, self.settings.zone());
        match portal.prepared.has_rows() {
            false => self.out.no_data(),
            true => self.out.row_description(&shape.columns, |at| shape.format(at)),
        }
        Ok(())
    }
}

impl Shape {
    pub(super) fn of(prepared: &Prepared, formats: &Arc<[Format]>, zone: &Arc<Zone>) -> Shape {
        let mut shape = Shape {
            columns: Arc::clone(&prepared.columns),
            formats: Arc::clone(formats),
            zone: Arc::clone(zone),
            is_described: false,
            wants_notices: true,
            wants_warnings: true,
        };
        if shape.columns.iter().any(|column| vector_of(column).is_some()) {
            shape.formats = shape.formats_with_vectors();
        }
        shape
    }

    /// The form of each column, where some are vectors, which have a text of their own.
    fn formats_with_vectors(&self) -> Arc<[Format]> {
        let format = |(at, column)| match self.format(at) {
            Format::Text if vector_of(column).is_some() => Format::Vector,
            asked => asked,
        };
        self.columns.iter().enumerate().map(format).collect()
    }
}

fn violation(message: String) -> Error {
    Error::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// Formats are none, one for all, or one for each.
fn check_count(what: &str, formats: usize, things: usize) -> Result<()> {
    if formats <= 1 || formats == things {
        return Ok(());
    }
    Err(violation(format!("bind message has {formats} {what} formats but {things} {what}s")))
}

/// The type that a client states; `None` leaves it to the statement.
fn type_of(catalog: &Catalog, oid: Oid) -> Result<Option<Type>> {
    if oid.number() == 0 || oid == UNKNOWN {
        return Ok(None);
    }
    let ty = catalog.type_by_oid(oid).ok_or_else(|| {
        let message = format!("type with OID {} is not supported", oid.number());
        Error::unsupported(message, "Leave the type of the parameter open, or give another one.")
    })?;
    Ok(Some(ty))
}

/// The value of a parameter as the client gives it; no bytes are NULL.
struct Given<'m> {
    ty: Type,
    bytes: Option<&'m [u8]>,
    format: Format,
}

impl Given<'_> {
    /// About how much memory the value takes.
    fn bytes_made(&self) -> usize {
        let bytes = self.bytes.unwrap_or_default();
        match self.format {
            Format::Binary => made::of_binary(self.ty, bytes),
            Format::Text | Format::Vector => made::of_text(self.ty, bytes),
        }
    }

    fn value(&self, zone: &Zone) -> Result<Datum> {
        let Some(bytes) = self.bytes else { return Ok(Datum::Null) };
        match self.format {
            Format::Binary => binary::decode(self.ty, bytes),
            Format::Text | Format::Vector => text::parse(self.ty, crate::codec::utf8(bytes)?, zone),
        }
    }
}

/// The values of parameters, and their memory, which is taken before they are made. Short ones
/// count with their message.
fn values_of(
    given: &[Given<'_>],
    zone: &Zone,
    pool: &Arc<MemoryPool>,
) -> Result<(Vec<Datum>, Option<Arc<Grant>>)> {
    let bytes = given.iter().map(Given::bytes_made).sum();
    let memory = (bytes > FREE_BYTES).then(|| pool.grant());
    if let Some(memory) = &memory {
        memory.grow(bytes)?;
    }
    let values = given.iter().map(|given| given.value(zone)).collect::<Result<Vec<_>>>()?;
    if let Some(memory) = &memory {
        memory.shrink_to(values.iter().map(Datum::memory_bytes).sum());
    }
    Ok((values, memory))
}
