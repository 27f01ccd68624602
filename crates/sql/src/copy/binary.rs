//! The binary format: a header, for each row the count of its fields, for each field the count of
//! its bytes and the bytes; at the end a count that no row has.

use super::lines::LINE_BYTES_MAX;
use super::records::Column;
use crate::ir::Kind;
use crate::memory::Grant;
use values::{Datum, Error, Result, SqlState, Strictness, binary, fit, made};

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// The count of fields behind the last row.
const END: i16 = -1;
/// The flags of a header that a reader has to know; there are none that are known.
const CRITICAL: u32 = 0xffff_0000;
/// That of rows with object ids, which PostgreSQL had once.
const WITH_OIDS: u32 = 1 << 16;
/// The longest extension of a header.
const EXTENSION_BYTES_MAX: usize = 1 << 20;

/// Appends the header.
pub(super) fn header(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    // Neither flags nor an extension.
    out.extend_from_slice(&[0; 8]);
}

/// Appends a row.
pub(super) fn row(row: &[Datum], out: &mut Vec<u8>) {
    let count = i16::try_from(row.len()).expect("answers have fewer columns");
    out.extend_from_slice(&count.to_be_bytes());
    for value in row {
        let place = out.len();
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        if value.is_null() {
            continue;
        }
        binary::encode(value, out);
        let length = ((out.len() - place - 4) as u32).to_be_bytes();
        out[place..place + 4].copy_from_slice(&length);
    }
}

/// Appends what is behind the last row.
pub(super) fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(&END.to_be_bytes());
}

/// Makes rows of bytes as they come.
#[derive(Debug)]
pub(super) struct BinaryRows {
    pub(super) table: String,
    columns: Vec<Column>,
    bytes: Vec<u8>,
    /// Where the next row begins.
    begin: usize,
    /// How many bytes from there have to come before it can be whole.
    needed: usize,
    has_header: bool,
    has_ended: bool,
    /// Rows so far.
    pub(super) number: u64,
}

/// How far a row goes.
enum Extent {
    /// It has so many bytes.
    Whole(usize),
    /// It has at least so many.
    AtLeast(usize),
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(SqlState::BAD_COPY_FILE, message)
}

/// Bytes that are read from the front.
struct Front<'b>(&'b [u8]);

impl<'b> Front<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }
}

impl BinaryRows {
    pub(super) fn new<'a>(
        table: &str,
        columns: impl Iterator<Item = (&'a str, Kind)>,
    ) -> BinaryRows {
        BinaryRows {
            table: table.to_owned(),
            columns: columns.map(Column::of).collect(),
            bytes: Vec::new(),
            begin: 0,
            needed: 0,
            has_header: false,
            has_ended: false,
            number: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole row, for which `memory` is taken before it is made.
    pub(super) fn next_row(&mut self, memory: &Grant) -> Result<Option<Vec<Datum>>> {
        if !self.has_header && !self.header()? {
            return Ok(None);
        }
        let bytes = &self.bytes[self.begin..];
        if self.has_ended {
            if bytes.is_empty() {
                return Ok(None);
            }
            return Err(wrong("received copy data after EOF marker").with_context(self.place()));
        }
        if bytes.len() < self.needed {
            return Ok(None);
        }
        let row = match self.extent(bytes)? {
            Extent::Whole(count) => self.row(&bytes[..count], memory)?,
            Extent::AtLeast(needed) if needed > LINE_BYTES_MAX => {
                let message = format!("a row of COPY has more than {LINE_BYTES_MAX} bytes");
                return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
            }
            Extent::AtLeast(needed) => {
                self.needed = needed;
                return Ok(None);
            }
        };
        self.needed = 0;
        let Some((row, count)) = row else {
            self.begin += size_of::<i16>();
            self.has_ended = true;
            return self.next_row(memory);
        };
        self.begin += count;
        self.number += 1;
        Ok(Some(row))
    }

    /// Refuses an end in the middle of a row.
    pub(super) fn end(&self) -> Result<()> {
        if !self.has_header {
            return Err(wrong("COPY file signature not recognized"));
        }
        let mut front = Front(&self.bytes[self.begin..]);
        // PostgreSQL takes half a count of fields for the end, too.
        if self.has_ended || front.take(size_of::<i16>()).is_none() {
            return Ok(());
        }
        let mut is_cut = || match front.array().map(i32::from_be_bytes).map(usize::try_from) {
            None => true,
            Some(Ok(length)) => front.take(length).is_none(),
            Some(Err(_)) => false,
        };
        let cut = self.columns.iter().find(|_| is_cut());
        let place = cut.map_or_else(|| self.place(), |column| self.place_of(column));
        Err(wrong("unexpected EOF in COPY data").with_context(place))
    }

    fn place(&self) -> String {
        format!("COPY {}, line {}", self.table, self.number + 1)
    }

    /// Reads the header; whether it is there.
    fn header(&mut self) -> Result<bool> {
        let mut front = Front(&self.bytes);
        let count = front.0.len().min(SIGNATURE.len());
        if front.0[..count] != SIGNATURE[..count] {
            return Err(wrong("COPY file signature not recognized"));
        }
        if front.take(SIGNATURE.len()).is_none() {
            return Ok(false);
        }
        let Some(flags) = front.array().map(u32::from_be_bytes) else { return Ok(false) };
        if flags & WITH_OIDS != 0 {
            return Err(wrong("invalid COPY file header (WITH OIDS)"));
        }
        if flags & CRITICAL != 0 {
            return Err(wrong("unrecognized critical flags in COPY file header"));
        }
        let Some(length) = front.array().map(u32::from_be_bytes) else { return Ok(false) };
        if length as usize > EXTENSION_BYTES_MAX {
            return Err(wrong("invalid COPY file header (wrong length)"));
        }
        if front.take(length as usize).is_none() {
            return Ok(false);
        }
        self.begin = self.bytes.len() - front.0.len();
        self.has_header = true;
        Ok(true)
    }

    /// How many bytes the row at the beginning has.
    fn extent(&self, bytes: &[u8]) -> Result<Extent> {
        let (mut front, all) = (Front(bytes), bytes.len());
        let Some(count) = front.array().map(i16::from_be_bytes) else {
            return Ok(Extent::AtLeast(size_of::<i16>()));
        };
        if count == END {
            return Ok(Extent::Whole(size_of::<i16>()));
        }
        let expected = self.columns.len();
        if usize::try_from(count) != Ok(expected) {
            let message = format!("row field count is {count}, expected {expected}");
            return Err(wrong(message).with_context(self.place()));
        }
        for column in &self.columns {
            let before = all - front.0.len();
            let Some(length) = front.array().map(i32::from_be_bytes) else {
                return Ok(Extent::AtLeast(before + size_of::<i32>()));
            };
            let length = match length {
                -1 => 0,
                length => usize::try_from(length)
                    .map_err(|_| wrong("invalid field size").with_context(self.place_of(column)))?,
            };
            if front.take(length).is_none() {
                return Ok(Extent::AtLeast(before + size_of::<i32>() + length));
            }
        }
        Ok(Extent::Whole(all - front.0.len()))
    }

    fn place_of(&self, column: &Column) -> String {
        format!("{}, column {}", self.place(), column.name)
    }

    /// The row of these bytes, and how many they are; none at the end of all.
    fn row(&self, bytes: &[u8], memory: &Grant) -> Result<Option<(Vec<Datum>, usize)>> {
        let mut front = Front(bytes);
        if front.array() == Some(END.to_be_bytes()) {
            return Ok(None);
        }
        let damaged = || wrong("unexpected EOF in COPY data").with_context(self.place());
        let (mut row, mut made) = (Vec::with_capacity(self.columns.len()), 0);
        for column in &self.columns {
            let length = front.array().map(i32::from_be_bytes).ok_or_else(damaged)?;
            let Ok(length) = usize::try_from(length) else {
                row.push(Datum::Null);
                continue;
            };
            let kind = column.kind;
            let field = front.take(length).ok_or_else(damaged)?;
            made += made::of_binary(kind.ty, field);
            memory.grow_to(made).map_err(|error| error.with_context(self.place_of(column)))?;
            let value = binary::decode(kind.ty, field)
                .and_then(|value| fit(value, kind.ty, kind.modifier, Strictness::Assignment));
            row.push(value.map_err(|error| error.with_context(self.place_of(column)))?);
        }
        Ok(Some((row, bytes.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryPool;
    use values::Type;

    fn rows() -> BinaryRows {
        let columns = [("a", Kind::plain(Type::Text)), ("b", Kind::plain(Type::Int4))];
        BinaryRows::new("t", columns.into_iter())
    }

    /// The rows of bytes that come in parts of a size, or the error.
    fn read(bytes: &[u8], part: usize) -> Result<Vec<Vec<Datum>>> {
        let (mut reader, mut found) = (rows(), Vec::new());
        let memory = MemoryPool::new(0).grant();
        for part in bytes.chunks(part) {
            reader.push(part);
            while let Some(row) = reader.next_row(&memory)? {
                found.push(row);
            }
        }
        reader.end().map(|()| found)
    }

    fn written(all: &[Vec<Datum>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        header(&mut bytes);
        all.iter().for_each(|each| row(each, &mut bytes));
        end(&mut bytes);
        bytes
    }

    #[test]
    fn rows_are_read_in_parts_of_any_size() {
        let all = [
            vec![Datum::text("x"), Datum::Int4(-7)],
            vec![Datum::Null, Datum::Null],
            vec![Datum::text(""), Datum::Int4(i32::MAX)],
        ];
        let bytes = written(&all);
        for part in 1..=bytes.len() {
            assert_eq!(read(&bytes, part).unwrap(), all, "{part}");
        }
        // PostgreSQL takes the end of the bytes for that of the rows, too.
        assert_eq!(read(&bytes[..bytes.len() - 2], 3).unwrap(), all);
        assert_eq!(read(&written(&[]), 5).unwrap(), Vec::<Vec<Datum>>::new());
    }

    #[test]
    fn bytes_that_are_cut_or_changed_are_an_error_or_rows() {
        let bytes = written(&[vec![Datum::text("x"), Datum::Int4(7)]]);
        let row_bytes = 2 + 4 + 1 + 4 + 4;
        for end in 0..bytes.len() {
            let whole = [19, 20, 19 + row_bytes, 20 + row_bytes].contains(&end);
            assert_eq!(read(&bytes[..end], 4).is_ok(), whole, "{end}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Err(error) = read(&changed, 7) {
                    let code = error.state().code().to_owned();
                    assert!(
                        ["22P04", "22021", "22P03", "54000"].contains(&&code[..]),
                        "{at}: {error}"
                    );
                }
            }
        }
        let error = read(&[&bytes[..], b"x"].concat(), 100).unwrap_err();
        assert_eq!(error.message(), "received copy data after EOF marker");
        let mut long = bytes[..23].to_vec();
        long[21..].copy_from_slice(&[0x7f, 0xff]);
        long.resize(LINE_BYTES_MAX + 100, 0);
        assert_eq!(read(&long, 1 << 16).unwrap_err().state().code(), "54000");
    }
}
