//! What is said to clients.

use super::frontend::Format;
use sql::OutputColumn;
use sql::ir::{Name, SchemaId};
use std::fmt::Display;
use values::{Datum, Error, Modifier, Oid, Type, Zone, binary, text};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The connection ends.
    Fatal,
    /// The statement failed.
    Error,
    Warning,
    Notice,
}

/// Messages, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    /// Where the last message begins by which the server waits outside of a block.
    idle: Option<usize>,
}

/// A message that is being made: dropped without what is behind `from`.
struct Begun<'m> {
    bytes: &'m mut Vec<u8>,
    from: usize,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.bytes.truncate(self.from);
    }
}

impl Messages {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.idle = None;
    }

    pub(crate) fn append(&mut self, mut other: Messages) {
        self.idle = other.idle.map(|at| self.bytes.len() + at).or(self.idle);
        self.bytes.append(&mut other.bytes);
    }

    /// Splits them where the server waits outside of a block, before which notifications are sent;
    /// `None` if it does not.
    pub(crate) fn split_idle(mut self) -> (Messages, Option<Messages>) {
        let Some(at) = self.idle.take() else { return (self, None) };
        let bytes = self.bytes.split_off(at);
        (self, Some(Messages { bytes, idle: Some(0) }))
    }

    /// A message whose body `fill` makes. If that panics there is no part of it.
    fn message(&mut self, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut begun = Begun { from: self.bytes.len(), bytes: &mut self.bytes };
        begun.bytes.push(kind);
        let at = begun.bytes.len();
        begun.bytes.extend_from_slice(&[0; 4]);
        fill(begun.bytes);
        let length = u32::try_from(begun.bytes.len() - at).expect("answers are limited");
        begun.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
        begun.from = begun.bytes.len();
    }

    /// Who the client is is known.
    pub(crate) fn authenticated(&mut self) {
        self.message(b'R', |body| push_i32(body, 0));
    }

    /// The client must prove that it knows the password.
    pub(crate) fn sasl(&mut self, mechanism: &str) {
        self.message(b'R', |body| {
            push_i32(body, 10);
            push_text(body, mechanism);
            body.push(0);
        });
    }

    pub(crate) fn sasl_continue(&mut self, data: &str) {
        self.message(b'R', |body| {
            push_i32(body, 11);
            body.extend_from_slice(data.as_bytes());
        });
    }

    pub(crate) fn sasl_final(&mut self, data: &str) {
        self.message(b'R', |body| {
            push_i32(body, 12);
            body.extend_from_slice(data.as_bytes());
        });
    }

    /// The newest version is 3.0, and these parameters of the protocol are not known.
    pub(crate) fn negotiate_version(&mut self, unknown: &[&str]) {
        self.message(b'v', |body| {
            push_i32(body, 3 << 16);
            push_i32(body, unknown.len() as i32);
            for name in unknown {
                push_text(body, name);
            }
        });
    }

    pub(crate) fn parameter_status(&mut self, name: &str, value: &str) {
        self.message(b'S', |body| {
            push_text(body, name);
            push_text(body, value);
        });
    }

    pub(crate) fn key_data(&mut self, process: i32, secret: i32) {
        self.message(b'K', |body| {
            push_i32(body, process);
            push_i32(body, secret);
        });
    }

    /// The server waits for the next statement: outside of a block (`I`), in one (`T`), or in one
    /// that has failed (`E`).
    pub(crate) fn ready(&mut self, standing: u8) {
        if standing == b'I' {
            self.idle = Some(self.bytes.len());
        }
        self.message(b'Z', |body| body.push(standing));
    }

    /// Another session, or this one, tells something to a channel.
    pub(crate) fn notification(&mut self, process: i32, channel: &str, payload: &str) {
        self.message(b'A', |body| {
            push_i32(body, process);
            push_text(body, channel);
            push_text(body, payload);
        });
    }

    pub(crate) fn parse_complete(&mut self) {
        self.message(b'1', |_| ());
    }

    pub(crate) fn bind_complete(&mut self) {
        self.message(b'2', |_| ());
    }

    pub(crate) fn close_complete(&mut self) {
        self.message(b'3', |_| ());
    }

    pub(crate) fn no_data(&mut self) {
        self.message(b'n', |_| ());
    }

    pub(crate) fn portal_suspended(&mut self) {
        self.message(b's', |_| ());
    }

    pub(crate) fn empty_query(&mut self) {
        self.message(b'I', |_| ());
    }

    /// The client sends, or gets, the rows of a COPY as text.
    fn copy_response(&mut self, kind: u8, columns: usize, is_binary: bool) {
        self.message(kind, |body| {
            body.push(u8::from(is_binary));
            push_u16(body, columns);
            (0..columns).for_each(|_| push_u16(body, usize::from(is_binary)));
        });
    }

    pub(crate) fn copy_in(&mut self, columns: usize, is_binary: bool) {
        self.copy_response(b'G', columns, is_binary);
    }

    pub(crate) fn copy_out(&mut self, columns: usize, is_binary: bool) {
        self.copy_response(b'H', columns, is_binary);
    }

    pub(crate) fn copy_data(&mut self, data: &[u8]) {
        self.message(b'd', |body| body.extend_from_slice(data));
    }

    pub(crate) fn copy_done(&mut self) {
        self.message(b'c', |_| ());
    }

    pub(crate) fn command_complete(&mut self, tag: &dyn Display) {
        self.message(b'C', |body| push_text(body, &tag.to_string()));
    }

    pub(crate) fn report(&mut self, severity: Severity, error: &Error) {
        let (kind, name) = match severity {
            Severity::Fatal => (b'E', "FATAL"),
            Severity::Error => (b'E', "ERROR"),
            Severity::Warning => (b'N', "WARNING"),
            Severity::Notice => (b'N', "NOTICE"),
        };
        self.message(kind, |body| {
            let mut field = |letter: u8, text: &str| {
                body.push(letter);
                push_text(body, text);
            };
            field(b'S', name);
            field(b'V', name);
            field(b'C', error.state().code());
            field(b'M', error.message());
            error.detail().into_iter().for_each(|text| field(b'D', text));
            error.hint().into_iter().for_each(|text| field(b'H', text));
            if let Some(position) = error.position() {
                field(b'P', &position.number().to_string());
            }
            error.context().into_iter().for_each(|text| field(b'W', text));
            error.table().and_then(Name::parse).into_iter().for_each(|name| {
                // The names of other schemas are not known here.
                if name.schema == SchemaId::PUBLIC {
                    field(b's', "public");
                }
                field(b't', &name.own);
            });
            error.column().into_iter().for_each(|text| field(b'c', text));
            error.constraint().into_iter().for_each(|text| field(b'n', text));
            routine(error).into_iter().for_each(|text| field(b'R', text));
            body.push(0);
        });
    }

    pub(crate) fn parameter_description(&mut self, types: &[Type]) {
        self.message(b't', |body| {
            push_u16(body, types.len());
            for ty in types {
                push_i32(body, ty.oid().number() as i32);
            }
        });
    }

    /// The columns of an answer; `format` says the form of each by its place.
    pub(crate) fn row_description(
        &mut self,
        columns: &[OutputColumn],
        format: impl Fn(usize) -> Format,
    ) {
        self.message(b'T', |body| {
            push_u16(body, columns.len());
            for (at, column) in columns.iter().enumerate() {
                push_text(body, &column.name);
                push_i32(body, 0); // no table
                push_u16(body, 0); // and no column of one
                let vector = vector_of(column);
                push_i32(body, vector.unwrap_or(column.kind.ty.oid()).number() as i32);
                body.extend_from_slice(&column.kind.ty.wire_bytes().to_be_bytes());
                let modifier = column.kind.modifier;
                let modifier = if modifier == Modifier::VECTOR { Modifier::NONE } else { modifier };
                push_i32(body, modifier.number_of(column.kind.ty));
                push_u16(body, usize::from(format(at) == Format::Binary));
            }
        });
    }

    pub(crate) fn data_row(
        &mut self,
        row: &[Datum],
        format: impl Fn(usize) -> Format,
        zone: &Zone,
    ) {
        self.message(b'D', |body| {
            push_u16(body, row.len());
            for (at, value) in row.iter().enumerate() {
                let place = body.len();
                push_i32(body, -1);
                match (value, format(at)) {
                    (Datum::Null, _) => continue,
                    // Text is the same in both forms.
                    (Datum::Text(text) | Datum::Char(text), _) => {
                        body.extend_from_slice(text.as_bytes())
                    }
                    (Datum::Array(array), Format::Vector) => {
                        let items = array.items().iter().map(|item| text::print(item, zone));
                        let items: Vec<_> = items.collect();
                        body.extend_from_slice(items.join(" ").as_bytes());
                    }
                    (value, Format::Text | Format::Vector) => {
                        body.extend_from_slice(text::print(value, zone).as_bytes());
                    }
                    (value, Format::Binary) => binary::encode(value, body),
                }
                let length = ((body.len() - place - 4) as u32).to_be_bytes();
                body[place..place + 4].copy_from_slice(&length);
            }
        });
    }
}

/// The object id of a column of an `int2vector` or `oidvector`.
pub(crate) fn vector_of(column: &OutputColumn) -> Option<Oid> {
    let element = column.kind.ty.element().filter(|_| column.kind.modifier == Modifier::VECTOR)?;
    match element {
        Type::Int2 => Some(Oid::new(22)),
        Type::Oid => Some(Oid::new(30)),
        _ => None,
    }
}

fn push_i32(bytes: &mut Vec<u8>, number: i32) {
    bytes.extend_from_slice(&number.to_be_bytes());
}

fn push_u16(bytes: &mut Vec<u8>, number: usize) {
    let number = u16::try_from(number).expect("columns and parameters are limited");
    bytes.extend_from_slice(&number.to_be_bytes());
}

/// Text and a zero byte; a zero byte within would end it, so there is none.
fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(text.bytes().filter(|byte| *byte != 0));
    bytes.push(0);
}

/// The function of PostgreSQL that reports an error, where drivers look at it: they prepare a
/// statement again of which the result has changed.
fn routine(error: &Error) -> Option<&'static str> {
    let is_of_plan = error.message() == "cached plan must not change result type";
    is_of_plan.then_some("RevalidateCachedQuery")
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::SqlState;

    #[test]
    fn a_message_that_panics_leaves_nothing() {
        let mut out = Messages::default();
        out.parse_complete();
        let made = std::panic::AssertUnwindSafe(|| {
            out.message(b'D', |bytes| {
                bytes.push(1);
                panic!("for the test");
            });
        });
        assert!(std::panic::catch_unwind(made).is_err());
        out.bind_complete();
        assert_eq!(out.bytes(), b"1\0\0\0\x042\0\0\0\x04");
    }

    #[test]
    fn lengths_are_those_of_the_bodies() {
        let mut messages = Messages::default();
        messages.ready(b'I');
        messages
            .report(Severity::Error, &Error::new(SqlState::SYNTAX_ERROR, "a\0b").with_hint("c"));
        messages.data_row(&[Datum::Null, Datum::Int4(7)], |_| Format::Binary, &Zone::utc());
        let mut rest = messages.bytes();
        let mut kinds = Vec::new();
        while let [kind, after @ ..] = rest {
            let length = u32::from_be_bytes(after[..4].try_into().unwrap()) as usize;
            kinds.push(*kind);
            rest = &after[length..];
        }
        assert_eq!(kinds, b"ZED");
        assert!(messages.bytes().ends_with(b"\0\x02\xff\xff\xff\xff\0\0\0\x04\0\0\0\x07"));
    }
}
