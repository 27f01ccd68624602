//! Reads, scans and writes of a running transaction: what is read is what it wrote itself, or else
//! what its protocol reads.

use std::ops::Range;

use workloads::{TableId, Visit};

use super::buffers::{Kind, Write};
use super::protocol::Protocol;
use crate::error::Error;
use crate::index::{Found, KeyBytes, Range as KeyRange};
use crate::rival::{Accesses, Stop, change_part};

/// Rows that a scan takes from an index at first; twice as many each time.
const SCAN_ROWS: usize = 16;

/// A row in the transaction's own memory.
enum Own {
    /// Written by the transaction: where its payload is.
    Payload(usize),
    /// Read into the buffer for rows.
    Row,
}

impl<P: Protocol> Accesses for P {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let Some(record) = self.find(table, key)? else { return Ok(None) };
        let own = read(self, table, record)?;
        Ok(own.map(|own| value(self, table, &own)))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        if low >= high {
            return Ok(());
        }
        let [mut low, mut high] = [low, high].map(KeyBytes::from_slice);
        let mut limit = SCAN_ROWS;
        let mut found = std::mem::take(&mut self.tx().found);
        let ended = loop {
            let range = KeyRange { low: &low, high: &high, descending, limit };
            if !self.search(table, range, &mut found) {
                let what = format!("table {} is not ordered and cannot be scanned", table.0);
                break Err(Error::Broken(what).into());
            }
            self.tx().nodes.extend(found.seen.map(|seen| (table, seen)));
            match visit(self, table, &found, each) {
                Ok(false) => {}
                ended => break ended,
            }
            match found.rest.take() {
                Some(rest) if descending => high = rest,
                Some(rest) => low = rest,
                None => break Ok(true),
            }
            limit *= 2;
        };
        self.tx().found = found;
        ended.map(|_| ())
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        write(self, table, NewRow { key, value: Some(value), must_exist: false })?;
        Ok(())
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        write(self, table, NewRow { key, value: Some(value), must_exist: true })
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let Some(at) = read_to_write(self, table, key)? else { return Ok(false) };
        let layout = self.layout(table);
        change(layout.value_mut(&mut self.tx().payloads[at..][..layout.payload_words]));
        Ok(true)
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let Some(at) = read_to_write(self, table, key)? else { return Ok(false) };
        let layout = self.layout(table);
        let tx = self.tx();
        let row = layout.value_mut(&mut tx.payloads[at..][..layout.payload_words]);
        change_part(row, part, &mut tx.part, change)?;
        Ok(true)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        write(self, table, NewRow { key, value: None, must_exist: true })
    }
}

/// Reads a row; `None` if there is none.
fn read<P: Protocol>(session: &mut P, table: TableId, record: u32) -> Result<Option<Own>, Stop> {
    if let Some(own) = session.tx().own(table, record) {
        return Ok((own.kind == Kind::Put).then_some(Own::Payload(own.payload_at as usize)));
    }
    let mut row = std::mem::take(&mut session.tx().row);
    row.clear();
    let read = session.read(table, record, &mut row);
    session.tx().row = row;
    Ok(read?.map(|_| Own::Row))
}

/// The value of a row that was read.
fn value<'s, P: Protocol>(session: &'s mut P, table: TableId, own: &Own) -> &'s [u8] {
    let layout = session.layout(table);
    let tx = session.tx();
    match own {
        Own::Payload(at) => layout.value(&tx.payloads[*at..][..layout.payload_words]),
        Own::Row => layout.value(&tx.row),
    }
}

/// Visits the rows that an index gave; true if the visitor has had enough.
fn visit<P: Protocol>(
    session: &mut P,
    table: TableId,
    found: &Found,
    each: Visit<'_>,
) -> Result<bool, Stop> {
    for i in 0..found.len() {
        let (key, place) = found.get(i);
        let record = session.record_at(table, key, place)?;
        let Some(own) = read(session, table, record)? else { continue };
        if each(key, value(session, table, &own)).is_break() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The place of the payload of a row that will be changed; `None` if there is no such row.
fn read_to_write<P: Protocol>(
    session: &mut P,
    table: TableId,
    key: &[u8],
) -> Result<Option<usize>, Stop> {
    let Some(record) = session.find_to_write(table, key, true)? else { return Ok(None) };
    if let Some(own) = session.tx().own(table, record) {
        return Ok((own.kind == Kind::Put).then_some(own.payload_at as usize));
    }
    session.claim(table, record)?;
    let mut payloads = std::mem::take(&mut session.tx().payloads);
    let at = payloads.len();
    let read = session.read(table, record, &mut payloads);
    let tx = session.tx();
    tx.payloads = payloads;
    let Some(versions) = read? else { return Ok(None) };
    let (kind, payload_at) = (Kind::Put, at as u32);
    tx.writes.push(Write { table, record, kind, payload_at, versions });
    Ok(Some(at))
}

/// What a row is to be: no value is its deletion.
struct NewRow<'r> {
    key: &'r [u8],
    value: Option<&'r [u8]>,
    must_exist: bool,
}

/// Notes a write of a row that need not be read; false if it must exist and does not.
fn write<P: Protocol>(session: &mut P, table: TableId, row: NewRow<'_>) -> Result<bool, Stop> {
    let NewRow { key, value, must_exist } = row;
    let layout = session.layout(table);
    let bytes = value.map_or(0, <[u8]>::len);
    if bytes > layout.value_bytes_max || key.len() > layout.key_bytes_max {
        let what = format!("a row of {bytes} bytes is too long for table {}", table.0);
        return Err(Error::Limit(what).into());
    }
    let Some(record) = session.find_to_write(table, key, must_exist)? else { return Ok(false) };
    let own = session.tx().own(table, record).map(|own| own.kind);
    let versions = match own {
        Some(Kind::Delete) if must_exist => return Ok(false),
        Some(_) => None,
        None => {
            session.claim(table, record)?;
            let Some(versions) = session.look(table, record, must_exist)? else {
                return Ok(false);
            };
            Some(versions)
        }
    };
    let tx = session.tx();
    let at = tx.payloads.len();
    layout.begin_payload(key, bytes, &mut tx.payloads);
    if let Some(value) = value {
        layout.value_mut(&mut tx.payloads[at..]).copy_from_slice(value);
    }
    let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
    let payload_at = at as u32;
    if let Some(versions) = versions {
        tx.writes.push(Write { table, record, kind, payload_at, versions });
    } else if let Some(own) = tx.own(table, record) {
        (own.kind, own.payload_at) = (kind, payload_at);
    }
    Ok(true)
}
