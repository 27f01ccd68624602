//! Messages of a server as values that can be compared.

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody, Message};

/// A column of an answer: its name, the type's number, and whether values come in binary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_number: u32,
    pub(crate) is_binary: bool,
}

/// A message of a server. Notices, and what only says that a message was understood, are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Columns(Vec<Column>),
    Row(Vec<Option<Vec<u8>>>),
    Complete(String),
    Failed {
        code: String,
        message: String,
    },
    Suspended,
    Empty,
    NoColumns,
    Ready(u8),
    /// The connection ended, or no answer came in time.
    Lost(String),
}

impl Event {
    /// The event of a message; `None` for one that is not compared.
    pub(crate) fn of(message: &Message) -> Option<Event> {
        Some(match message {
            Message::RowDescription(body) => Event::Columns(
                body.fields()
                    .map(|field| {
                        Ok(Column {
                            name: field.name().to_owned(),
                            type_number: field.type_oid(),
                            is_binary: field.format() == 1,
                        })
                    })
                    .collect()
                    .unwrap_or_default(),
            ),
            Message::DataRow(body) => row(body),
            Message::CommandComplete(body) => {
                Event::Complete(body.tag().unwrap_or("no tag").to_owned())
            }
            Message::ErrorResponse(body) => failed(body),
            Message::PortalSuspended => Event::Suspended,
            Message::EmptyQueryResponse => Event::Empty,
            Message::NoData => Event::NoColumns,
            Message::ReadyForQuery(body) => Event::Ready(body.status()),
            _ => return None,
        })
    }
}

fn row(body: &DataRowBody) -> Event {
    let bytes = body.buffer();
    let values = body.ranges().map(|range| Ok(range.map(|range| bytes[range].to_vec()))).collect();
    values.map_or_else(|error| Event::Lost(error.to_string()), Event::Row)
}

fn failed(body: &ErrorResponseBody) -> Event {
    let (mut code, mut message) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        match field.type_() {
            b'C' => code = String::from_utf8_lossy(field.value_bytes()).into_owned(),
            b'M' => message = String::from_utf8_lossy(field.value_bytes()).into_owned(),
            _ => {}
        }
    }
    Event::Failed { code, message }
}
