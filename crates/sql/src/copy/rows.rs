//! The rows of a COPY in a call: for each the bytes of its length, how many lines it is behind the
//! one before, and its values.

use values::row::Layout;
use values::{Datum, Error, Result};

/// Rows that are collected for a call.
#[derive(Debug)]
pub struct CopiedRows {
    layout: Layout,
    bytes: Vec<u8>,
    line: u64,
    /// Room for the bytes of one row.
    row: Vec<u8>,
}

impl CopiedRows {
    /// None yet, of these columns.
    pub fn new(layout: Layout) -> CopiedRows {
        CopiedRows { layout, bytes: Vec::new(), line: 0, row: Vec::new() }
    }

    /// Adds the row of a line.
    pub fn push(&mut self, line: u64, row: &[Datum]) {
        self.row.clear();
        self.layout.encode_to(row, &mut self.row);
        push_row(&mut self.bytes, line - self.line, &self.row);
        self.line = line;
    }

    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the bytes; what follows is another call's.
    pub fn take(&mut self) -> Vec<u8> {
        self.line = 0;
        std::mem::take(&mut self.bytes)
    }

    /// Takes the bytes in parts of about so many, each for a call of its own.
    pub fn take_parts(&mut self, part_bytes: usize) -> Vec<Vec<u8>> {
        let all = self.take();
        let (mut rest, mut line, mut parts) = (&all[..], 0, Vec::<Vec<u8>>::new());
        while let Some((at, row)) = next(&mut rest, line) {
            match parts.last_mut().filter(|part| part.len() < part_bytes) {
                Some(part) => push_row(part, at - line, row),
                None => {
                    let mut part = Vec::with_capacity(part_bytes + row.len());
                    push_row(&mut part, at, row);
                    parts.push(part);
                }
            }
            line = at;
        }
        assert!(rest.is_empty(), "the rows are those that were pushed");
        parts
    }
}

/// Appends a row, so many lines behind the one before.
fn push_row(bytes: &mut Vec<u8>, lines: u64, row: &[u8]) {
    push_number(bytes, lines);
    push_number(bytes, row.len() as u64);
    bytes.extend_from_slice(row);
}

/// Seven bits a byte, the lowest first.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The line and the bytes of the next row.
fn next<'a>(bytes: &mut &'a [u8], line: u64) -> Option<(u64, &'a [u8])> {
    let line = line.checked_add(take_number(bytes)?)?;
    let length = usize::try_from(take_number(bytes)?).ok()?;
    let (row, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some((line, row))
}

/// How many rows these bytes are.
pub fn count(mut bytes: &[u8]) -> u32 {
    let mut rows = 0;
    while !bytes.is_empty() && next(&mut bytes, 0).is_some() {
        rows += 1;
    }
    rows
}

/// The rows of these bytes, with their lines. Any bytes are rows or end in an error.
pub(crate) fn read<'r>(
    mut bytes: &'r [u8],
    layout: &'r Layout,
) -> impl Iterator<Item = Result<(u64, Vec<Datum>)>> + 'r {
    let mut line = 0;
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let read = next(&mut bytes, line).ok_or_else(damaged).and_then(|(at, row)| {
            line = at;
            let row = layout.decode(row)?;
            if row.len() != layout.types().len() {
                return Err(damaged());
            }
            Ok((line, row))
        });
        if read.is_err() {
            bytes = &[];
        }
        Some(read)
    })
}

fn damaged() -> Error {
    Error::corrupted("rows of COPY are damaged")
}
