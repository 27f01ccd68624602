//! An answer for people.

use crate::wire::Event;

const ROWS_SHOWN: usize = 12;

/// Events as lines of comments.
pub(crate) fn show(events: &[Event]) -> String {
    let mut text = String::new();
    let mut rows = 0;
    for event in events {
        let line = match event {
            Event::Columns(columns) => {
                let names: Vec<_> =
                    columns.iter().map(|c| format!("{} ({})", c.name, c.type_number)).collect();
                format!("columns: {}", names.join(", "))
            }
            Event::Row(values) => {
                rows += 1;
                if rows > ROWS_SHOWN {
                    continue;
                }
                values.iter().map(value).collect::<Vec<_>>().join("|")
            }
            Event::Complete(tag) => tag.clone(),
            Event::Failed { code, message } => format!("{code}: {message}"),
            Event::Suspended => "(suspended)".to_owned(),
            Event::Empty => "(empty)".to_owned(),
            Event::NoColumns => "(no columns)".to_owned(),
            Event::Ready(status) => format!("ready, {}", char::from(*status)),
            Event::Lost(reason) => format!("NO ANSWER: {reason}"),
        };
        text.push_str(&format!("--   {}\n", line.replace('\n', "\\n")));
    }
    if rows > ROWS_SHOWN {
        text.push_str(&format!("--   {rows} rows in all\n"));
    }
    text
}

fn value(value: &Option<Vec<u8>>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
            _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        },
    }
}
