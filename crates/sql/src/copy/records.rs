//! The values of lines.

use super::fields::{Field, csv_fields, text_fields};
use super::form::{Form, Style};
use super::lines::Line;
use crate::ir::Kind;
use crate::memory::Grant;
use values::{Datum, Error, Result, SqlState, Strictness, Zone, fit, made, text};

/// A column that is copied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

impl Column {
    pub(super) fn of((name, kind): (&str, Kind)) -> Column {
        Column { name: name.to_owned(), kind }
    }
}

/// Makes rows of lines.
#[derive(Debug)]
pub(super) struct Records {
    table: String,
    form: Form,
    columns: Vec<Column>,
    zone: Zone,
}

/// What errors show of a line.
const SHOWN_BYTES_MAX: usize = 100;

fn cut(text: &str) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

fn bad_line(message: String) -> Error {
    Error::new(SqlState::BAD_COPY_FILE, message)
}

impl Records {
    /// For rows with these columns of a table.
    pub(super) fn new<'a>(
        table: &str,
        form: &Form,
        columns: impl Iterator<Item = (&'a str, Kind)>,
        zone: &Zone,
    ) -> Records {
        Records {
            table: table.to_owned(),
            form: form.clone(),
            columns: columns.map(Column::of).collect(),
            zone: zone.clone(),
        }
    }

    /// The table's name.
    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// The values of a line, for which `memory` is taken before they are made.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(super) fn row(&self, line: &Line<'_>, memory: &Grant) -> Result<Vec<Datum>> {
        let place = || format!("COPY {}, line {}", self.table, line.number);
        let text = std::str::from_utf8(line.bytes).ok().filter(|text| !text.contains('\0'));
        let Some(text) = text else {
            let message = "invalid byte sequence for encoding \"UTF8\"";
            return Err(Error::new(SqlState::INVALID_ENCODING, message).with_context(place()));
        };
        let whole = |error: Error| error.with_context(format!("{}: \"{}\"", place(), cut(text)));
        let fields = self.fields(text).map_err(whole)?;
        if let Some(missing) = self.columns.get(fields.len()) {
            let message = format!("missing data for column \"{}\"", missing.name);
            return Err(whole(bad_line(message)));
        }
        if fields.len() > self.columns.len() {
            return Err(whole(bad_line("extra data after last expected column".to_owned())));
        }
        let made = |(column, field): (&Column, &Field<'_>)| {
            field.as_ref().map_or(0, |field| made::of_text(column.kind.ty, field.as_bytes()))
        };
        memory
            .grow_to(self.columns.iter().zip(&fields).map(made).sum())
            .map_err(|error| error.with_context(place()))?;
        let mut row = Vec::with_capacity(fields.len());
        for (column, field) in self.columns.iter().zip(fields) {
            let Some(field) = field else {
                row.push(Datum::Null);
                continue;
            };
            let kind = column.kind;
            let value = text::parse_as(kind.ty, kind.modifier, &field, &self.zone)
                .and_then(|value| fit(value, kind.ty, kind.modifier, Strictness::Assignment));
            row.push(value.map_err(|error| {
                let shown = cut(&field);
                let name = &column.name;
                error.with_context(format!("{}, column {name}: \"{shown}\"", place()))
            })?);
        }
        Ok(row)
    }

    fn fields<'l>(&self, line: &'l str) -> Result<Vec<Field<'l>>> {
        let mut fields = Vec::with_capacity(self.columns.len());
        // A table without columns has rows of empty lines.
        if self.columns.is_empty() && line.is_empty() {
            return Ok(fields);
        }
        match self.form.style {
            Style::Text => text_fields(line, &self.form, &mut fields)?,
            Style::Csv => csv_fields(line, &self.form, &mut fields)?,
            Style::Binary => unreachable!("it has no lines"),
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::Lines;
    use super::*;
    use crate::copy::CopiedRows;
    use crate::memory::MemoryPool;
    use values::Type;

    fn form(style: Style) -> Form {
        let is_csv = style == Style::Csv;
        Form {
            style,
            delimiter: if is_csv { b',' } else { b'\t' },
            null: if is_csv { "" } else { "\\N" }.to_owned(),
            header: false,
            quote: b'"',
            escape: b'"',
            force_quote: Vec::new(),
            force_not_null: Vec::new(),
            force_null: Vec::new(),
        }
    }

    /// The rows of bytes that come in parts of a size; an error as its code and context.
    fn read(form: &Form, bytes: &[u8], part: usize) -> Vec<String> {
        let columns = [("a", Kind::plain(Type::Text)), ("b", Kind::plain(Type::Int4))];
        let records = Records::new("t", form, columns.into_iter(), &Zone::utc());
        let (mut lines, mut found) = (Lines::new(form), Vec::new());
        let memory = MemoryPool::new(0).grant();
        let mut take = |line: Result<Option<Line<'_>>>| {
            let row =
                line.and_then(|line| line.map(|line| records.row(&line, &memory)).transpose());
            match row {
                Ok(Some(row)) => found.push(format!("{:?}|{:?}", row[0], row[1])),
                Ok(None) => return false,
                Err(error) => {
                    let context = error.context().unwrap_or_default();
                    found.push(format!("{} {context}", error.state().code()));
                }
            }
            true
        };
        for part in bytes.chunks(part) {
            lines.push(part);
            while take(lines.next_line()) {}
        }
        take(lines.last_line());
        found
    }

    fn check(form: &Form, bytes: &str, expected: &[&str]) {
        for part in 1..8 {
            assert_eq!(read(form, bytes.as_bytes(), part), expected, "{bytes:?} by {part}");
        }
    }

    #[test]
    fn lines_of_text_are_read_in_parts_of_any_size() {
        let text = form(Style::Text);
        let row = |a: &str, b: i32| format!("Text({a:?})|Int4({b})");
        check(&text, "x\t1\ny\t2", &[&row("x", 1), &row("y", 2)]);
        check(&text, "x\\ty\\\nz\\\\\t1\n", &[&row("x\ty\nz\\", 1)]);
        check(&text, "\\x41\\101\\q\t1\r\n\t2\r\n", &[&row("AAq", 1), &row("", 2)]);
        check(&text, "\\N\t1\n\\.\nx\t2\n", &["Null|Int4(1)"]);
        check(&text, "x\n", &["22P04 COPY t, line 1: \"x\""]);
        check(&text, "x\t1\nx\t1\t2\n", &[&row("x", 1), "22P04 COPY t, line 2: \"x\t1\t2\""]);
        check(&text, "x\tz\n", &["22P02 COPY t, line 1, column b: \"z\""]);
        assert_eq!(read(&text, b"\xff\t1\n", 9), ["22021 COPY t, line 1"]);
    }

    #[test]
    fn lines_of_csv_are_read_in_parts_of_any_size() {
        let csv = form(Style::Csv);
        let row = |a: &str, b: i32| format!("Text({a:?})|Int4({b})");
        check(&csv, "x,1\n\"y\",2\n", &[&row("x", 1), &row("y", 2)]);
        check(&csv, "\"a,\"\"b\nc\"d,1\n", &[&row("a,\"b\ncd", 1)]);
        check(&csv, ",1\n\"\",2\n", &["Null|Int4(1)", &row("", 2)]);
        check(&csv, "\"x\ny\",z\n", &["22P02 COPY t, line 2, column b: \"z\""]);
        check(&csv, "\"x,1\n", &["22P04 "]);
        let escaped = Form { escape: b'\\', quote: b'\'', ..csv };
        check(&escaped, "'a\\'\\\\b\\n',1\n", &[&row("a'\\b\\n", 1)]);
    }

    #[test]
    fn rows_that_are_taken_in_parts_keep_their_lines() {
        let layout = values::row::Layout::new(vec![Type::Text]);
        let rows: Vec<(u64, Vec<Datum>)> =
            (1..100).map(|at| (at * at, vec![Datum::text("x".repeat(at as usize))])).collect();
        for part_bytes in [1, 50, 1_000, 100_000] {
            let mut copied = CopiedRows::new(layout.clone());
            rows.iter().for_each(|(line, row)| copied.push(*line, row));
            let whole = copied.bytes().len();
            let parts = copied.take_parts(part_bytes);
            assert!(copied.bytes().is_empty());
            let last = parts.len() - 1;
            assert!(parts[..last].iter().all(|part| part.len() >= part_bytes), "{part_bytes}");
            assert!(parts.len() == 1 || whole > part_bytes, "{part_bytes}");
            let read = parts.iter().flat_map(|part| super::super::read(part, &layout));
            assert_eq!(read.collect::<Result<Vec<_>>>().unwrap(), rows, "{part_bytes}");
        }
    }

    #[test]
    fn rows_of_a_call_read_back_and_damage_is_an_error() {
        let layout = values::row::Layout::new(vec![Type::Text, Type::Int4]);
        let mut copied = CopiedRows::new(layout.clone());
        let rows = [(3, vec![Datum::text("x"), Datum::Null]), (900, vec![Datum::Null; 2])];
        rows.iter().for_each(|(line, row)| copied.push(*line, row));
        assert_eq!(crate::copy::count(copied.bytes()), 2);
        let bytes = copied.take();
        let read = |bytes| super::super::read(bytes, &layout).collect::<Result<Vec<_>>>();
        assert_eq!(read(&bytes[..]).unwrap(), rows);
        for end in 1..bytes.len() {
            let whole = end == 2 + usize::from(bytes[1]);
            assert_eq!(read(&bytes[..end]).is_ok(), whole, "{end}");
        }
    }
}
