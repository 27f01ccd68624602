//! The names of the files of a dump.

use std::path::Path;

use crate::args::Format;

/// In a directory as long as a dump into it has not come to its end.
pub(crate) const UNFINISHED_NAME: &str = "dump.unfinished";

/// A file's name for a table's, of which any text is one.
pub(crate) fn file_name(table: &str, format: Format) -> String {
    let mut name = String::new();
    for byte in table.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            other => name.push_str(&format!("%{other:02x}")),
        }
    }
    let extension = match format {
        Format::Jsonl => "jsonl",
        Format::Csv => "csv",
    };
    format!("{name}.{extension}")
}

/// The table whose name a file has.
pub(crate) fn table_of_file(path: &Path) -> String {
    let stem = path.file_stem().map_or_else(Default::default, |stem| stem.to_string_lossy());
    let mut name = Vec::new();
    let mut rest = stem.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| byte == b'%');
        let escaped = escaped.and_then(|digits| str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                name.push(escaped);
                rest = &after[2..];
            }
            None => {
                name.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}
