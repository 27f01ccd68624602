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
}

impl CopiedRows {
    /// None yet, of these columns.
    pub fn new(layout: Layout) -> CopiedRows {
        CopiedRows { layout, bytes: Vec::new(), line: 0 }
    }

    /// Adds the row of a line.
    pub fn push(&mut self, line: u64, row: &[Datum]) {
        let row = self.layout.encode(row);
        push_number(&mut self.bytes, line - self.line);
        push_number(&mut self.bytes, row.len() as u64);
        self.bytes.extend_from_slice(&row);
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

/// The rows of these bytes, with their lines. Any bytes are rows or an error.
pub(crate) fn read(mut bytes: &[u8], layout: &Layout) -> Result<Vec<(u64, Vec<Datum>)>> {
    let (mut rows, mut line) = (Vec::new(), 0);
    while !bytes.is_empty() {
        let damaged = || Error::corrupted("rows of COPY are damaged");
        let (at, row) = next(&mut bytes, line).ok_or_else(damaged)?;
        line = at;
        let row = layout.decode(row)?;
        if row.len() != layout.types().len() {
            return Err(damaged());
        }
        rows.push((line, row));
    }
    Ok(rows)
}
