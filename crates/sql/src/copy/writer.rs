//! Rows as bytes.

use super::binary;
use super::form::{Form, Style};
use values::{Datum, Zone, text};

/// Writes rows.
#[derive(Debug)]
pub struct Writer {
    form: Form,
    zone: Zone,
}

impl Writer {
    /// For rows of this form.
    pub fn new(form: &Form, zone: &Zone) -> Writer {
        Writer { form: form.clone(), zone: zone.clone() }
    }

    /// Appends what is before the first row.
    pub fn begin<'a>(&self, names: impl ExactSizeIterator<Item = &'a str>, out: &mut Vec<u8>) {
        match self.form.style {
            Style::Binary => binary::header(out),
            _ if self.form.header => self.header(names, out),
            _ => {}
        }
    }

    /// Appends what is behind the last row.
    pub fn end(&self, out: &mut Vec<u8>) {
        if self.form.style == Style::Binary {
            binary::end(out);
        }
    }

    /// Appends the line of the columns' names.
    fn header<'a>(&self, names: impl ExactSizeIterator<Item = &'a str>, out: &mut Vec<u8>) {
        let is_alone = names.len() == 1;
        for (at, name) in names.enumerate() {
            self.delimit(at, out);
            self.field(name, false, is_alone, out);
        }
        out.push(b'\n');
    }

    /// Appends a row.
    pub fn row(&self, row: &[Datum], out: &mut Vec<u8>) {
        if self.form.style == Style::Binary {
            return binary::row(row, out);
        }
        for (at, value) in row.iter().enumerate() {
            self.delimit(at, out);
            if value.is_null() {
                out.extend_from_slice(self.form.null.as_bytes());
                continue;
            }
            let forced = self.form.force_quote.get(at).copied().unwrap_or(false);
            match value {
                Datum::Text(text) | Datum::Char(text) => {
                    self.field(text, forced, row.len() == 1, out)
                }
                value => self.field(&text::print(value, &self.zone), forced, row.len() == 1, out),
            }
        }
        out.push(b'\n');
    }

    fn delimit(&self, at: usize, out: &mut Vec<u8>) {
        if at > 0 {
            out.push(self.form.delimiter);
        }
    }

    fn field(&self, text: &str, forced: bool, is_alone: bool, out: &mut Vec<u8>) {
        match self.form.style {
            Style::Text => self.escaped(text, out),
            Style::Csv => self.quoted(text, forced, is_alone, out),
            Style::Binary => unreachable!("it has no lines"),
        }
    }

    fn escaped(&self, text: &str, out: &mut Vec<u8>) {
        for byte in text.bytes() {
            let letter = match byte {
                b'\\' => b'\\',
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                byte if byte == self.form.delimiter => byte,
                byte => {
                    out.push(byte);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', letter]);
        }
    }

    fn quoted(&self, text: &str, forced: bool, is_alone: bool, out: &mut Vec<u8>) {
        let Form { delimiter, quote, escape, null, .. } = &self.form;
        let is_special =
            |byte: u8| byte == *delimiter || byte == *quote || byte == b'\n' || byte == b'\r';
        let needed =
            forced || text == null || (is_alone && text == "\\.") || text.bytes().any(is_special);
        if !needed {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        out.push(*quote);
        for byte in text.bytes() {
            if byte == *quote || byte == *escape {
                out.push(*escape);
            }
            out.push(byte);
        }
        out.push(*quote);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_so_that_they_read_back() {
        let form = Form {
            style: Style::Text,
            delimiter: b'\t',
            null: "\\N".to_owned(),
            header: false,
            quote: b'"',
            escape: b'"',
            force_quote: vec![false, true],
            force_not_null: Vec::new(),
            force_null: Vec::new(),
        };
        let line = |form: &Form, row: &[Datum]| {
            let mut out = Vec::new();
            Writer::new(form, &Zone::utc()).row(row, &mut out);
            String::from_utf8(out).unwrap()
        };
        let row = [Datum::text("a\t\\\n"), Datum::Null, Datum::Int4(7)];
        assert_eq!(line(&form, &row), "a\\t\\\\\\n\t\\N\t7\n");
        let csv = Form { style: Style::Csv, delimiter: b',', null: String::new(), ..form };
        let row = [Datum::text("a\"b"), Datum::text("c"), Datum::Null, Datum::text("")];
        assert_eq!(line(&csv, &row), "\"a\"\"b\",\"c\",,\"\"\n");
        assert_eq!(line(&csv, &[Datum::text("\\.")]), "\"\\.\"\n");
    }
}
