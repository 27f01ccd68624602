//! Snapshots of an engine beside those of the oracle: made now and then, read a few rows at a time
//! between epochs in every way that there is, compared when all was read (O-84, O-86, O-88).

use std::ops::ControlFlow;

use engine::{Engine, HASH_PARTS, ScanPart};
use storage::{EpochNumber, TableId};

use super::compare_indexes::compare_found;
use super::indexes::{INDEX_END, INDEXES};
use super::model::Model;
use super::program::{ROW_TABLES, SEQUENCES, has_long_keys, is_ordered};

/// Most snapshots at a time.
const HELD_MAX: usize = 4;
/// Rows that are read at a time when nothing runs any more.
const ROWS_AT_THE_END: usize = 50;
/// Parts of a hash table that are read between two epochs.
const PARTS: usize = HASH_PARTS / 4;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// How far a table has been read, in one direction.
#[derive(Debug, Default)]
struct Reading {
    found: Rows,
    /// The key of an ordered table, or of an index, behind which it goes on.
    last: Option<Vec<u8>>,
    /// The next part of a hash table.
    part: usize,
    is_done: bool,
}

/// A snapshot that is being read.
#[derive(Debug)]
struct Held {
    epoch: EpochNumber,
    model: Model,
    /// By table: upwards and downwards.
    readings: [[Reading; 2]; ROW_TABLES],
    /// By index, the same.
    of_indexes: [[Reading; 2]; INDEXES as usize],
    /// Whether all of it is read once more, later.
    is_read_again: bool,
}

/// The snapshots of one engine.
#[derive(Debug)]
pub struct Snapshots {
    held: Vec<Held>,
    counted: u64,
    /// Epochs between two that are made; 0: none is.
    every: u64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self::every(2)
    }
}

impl Snapshots {
    /// None yet, and one after so many epochs; 0: never.
    #[must_use]
    pub fn every(every: u64) -> Self {
        Self { held: Vec::new(), counted: 0, every }
    }

    /// Between two epochs: reads on, compares what was read to its end, and takes another snapshot
    /// now and then.
    ///
    /// # Errors
    /// The first difference.
    pub fn step(&mut self, engine: &mut Engine, model: &Model) -> Result<(), String> {
        self.counted += 1;
        for held in &mut self.held {
            // One, a few, or many rows at a time.
            held.read_on(engine, [1, 3, 50][held.epoch.0 as usize % 3])?;
        }
        // Not always the oldest ends first.
        while let Some(at) = self.held.iter().position(Held::is_read) {
            let held = &mut self.held[at];
            held.compare(engine, model)?;
            if held.is_read_again {
                // By then later epochs have written and deleted more of what it sees.
                held.is_read_again = false;
                (held.readings, held.of_indexes) = Default::default();
                continue;
            }
            engine.release_snapshot(self.held.swap_remove(at).epoch);
        }
        engine.sweep_snapshots(5);
        // No number but 0 is a multiple of 0.
        if self.held.len() < HELD_MAX && self.counted.is_multiple_of(self.every) {
            let (readings, of_indexes) = Default::default();
            let (epoch, model) = (engine.snapshot(), model.clone());
            let is_read_again = epoch.0 % 2 == 1;
            self.held.push(Held { epoch, model, readings, of_indexes, is_read_again });
        }
        Ok(())
    }

    /// Reads all that are left to their ends and compares them, the newest one first or last: what
    /// each has kept goes over to those that still see it. Nothing is left in the end (O-90).
    ///
    /// # Errors
    /// The first difference.
    pub fn end(&mut self, engine: &mut Engine, model: &Model) -> Result<(), String> {
        self.held.sort_by_key(|held| held.epoch);
        if self.counted.is_multiple_of(2) {
            self.held.reverse();
        }
        while let Some(mut held) = self.held.pop() {
            while !held.is_read() {
                held.read_on(engine, ROWS_AT_THE_END)?;
            }
            held.compare(engine, model)?;
            engine.release_snapshot(held.epoch);
            while engine.sweep_snapshots(ROWS_AT_THE_END) {}
        }
        match engine.memory().snapshots {
            0 => Ok(()),
            bytes => Err(format!("{bytes} bytes are kept for snapshots that have ended")),
        }
    }
}

impl Held {
    fn is_read(&self) -> bool {
        self.readings.iter().chain(&self.of_indexes).flatten().all(|reading| reading.is_done)
    }

    fn read_on(&mut self, engine: &Engine, rows_max: usize) -> Result<(), String> {
        for (table, readings) in (0..).zip(&mut self.readings) {
            for (direction, reading) in readings.iter_mut().enumerate().filter(|(_, r)| !r.is_done)
            {
                let read = match is_ordered(table) {
                    true => reading.scan_on(engine, self.epoch, table, direction == 1, rows_max),
                    false => reading.visit_on(engine, self.epoch, table),
                };
                read.map_err(|error| format!("snapshot of epoch {}: {error}", self.epoch))?;
            }
        }
        for (index, readings) in (0..).zip(&mut self.of_indexes) {
            for (direction, reading) in readings.iter_mut().enumerate().filter(|(_, r)| !r.is_done)
            {
                let read =
                    reading.scan_index_on(engine, self.epoch, index, direction == 1, rows_max);
                read.map_err(|error| format!("snapshot of epoch {}: {error}", self.epoch))?;
            }
        }
        Ok(())
    }

    /// Compares what was read, and each row that there was then or is now.
    fn compare(&mut self, engine: &Engine, now: &Model) -> Result<(), String> {
        let wrong = |what: String| Err(format!("snapshot of epoch {}: {what}", self.epoch));
        let reader = engine.reader();
        for (table, readings) in self.readings.iter_mut().enumerate() {
            let expected = self.model.tables[table].iter();
            let [up, down] = readings;
            if is_ordered(table as u8) {
                down.found.reverse();
            } else {
                up.found.sort_unstable();
                down.found.sort_unstable();
            }
            for found in [&up.found, &down.found] {
                let found_rows = found.iter().map(|(key, value)| (key, value));
                if !expected.clone().eq(found_rows.clone()) {
                    let first =
                        expected.zip(found_rows).find(|(expected, found)| expected != found);
                    let first = first.map(|(expected, found)| (expected.0, found.0));
                    let counts = (self.model.tables[table].len(), found.len());
                    return wrong(format!(
                        "table {table}: rows {counts:?}, other from {first:02x?}"
                    ));
                }
            }
            let get = |key: &[u8]| reader.get_at(0, self.epoch, TableId(table as u16), key);
            for key in expected.chain(&now.tables[table]).map(|(key, _)| key) {
                let found = get(key).map_err(|error| error.to_string())?;
                if found.as_ref() != self.model.tables[table].get(key) {
                    return wrong(format!("table {table}: another row at {key:02x?}"));
                }
            }
        }
        for (index, [up, down]) in (0..).zip(&mut self.of_indexes) {
            down.found.reverse();
            for found in [&up.found, &down.found] {
                compare_found(index, found, &self.model).or_else(wrong)?;
            }
        }
        for (key, next) in &self.model.sequences {
            let found = reader.get_at(0, self.epoch, TableId(SEQUENCES.into()), &key.to_be_bytes());
            let found = found.map_err(|error| error.to_string())?;
            if found.as_deref() != Some(&next.to_le_bytes()[..]) {
                return wrong(format!("sequence {key} is {found:?} and not {next}"));
            }
        }
        Ok(())
    }
}

impl Reading {
    fn scan_on(
        &mut self,
        engine: &Engine,
        epoch: EpochNumber,
        table: u8,
        is_descending: bool,
        rows_max: usize,
    ) -> Result<(), engine::EngineError> {
        // Keys of words have no greater one that can be a bound: none is used.
        let (mut low, mut high) =
            (if has_long_keys(table) { vec![] } else { vec![0; 8] }, vec![0xff; 8]);
        match (self.last.take(), is_descending) {
            (Some(last), true) => high = last,
            (Some(last), false) => low = after(table, &last),
            (None, _) => {}
        }
        let part = ScanPart {
            table: TableId(table.into()),
            low: &low,
            high: &high,
            is_descending,
            rows_max,
        };
        let found = &mut self.found;
        self.last = engine.reader().scan_at(0, epoch, part, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })?;
        self.is_done = self.last.is_none();
        Ok(())
    }

    fn scan_index_on(
        &mut self,
        engine: &Engine,
        epoch: EpochNumber,
        index: u16,
        is_descending: bool,
        rows_max: usize,
    ) -> Result<(), engine::EngineError> {
        let (mut low, mut high) = (vec![], INDEX_END.to_vec());
        match (self.last.take(), is_descending) {
            (Some(last), true) => high = last,
            (Some(last), false) => low = [&last[..], &[0]].concat(),
            (None, _) => {}
        }
        let part =
            ScanPart { table: TableId(index), low: &low, high: &high, is_descending, rows_max };
        let found = &mut self.found;
        self.last = engine.reader().scan_index_at(0, epoch, part, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })?;
        self.is_done = self.last.is_none();
        Ok(())
    }

    fn visit_on(
        &mut self,
        engine: &Engine,
        epoch: EpochNumber,
        table: u8,
    ) -> Result<(), engine::EngineError> {
        let found = &mut self.found;
        for part in self.part..self.part + PARTS {
            engine.reader().visit_part_at(
                0,
                epoch,
                TableId(table.into()),
                part,
                &mut |key, value| {
                    found.push((key.to_vec(), value.to_vec()));
                },
            )?;
        }
        self.part += PARTS;
        self.is_done = self.part == HASH_PARTS;
        Ok(())
    }
}

/// The least key of a table above another one.
fn after(table: u8, key: &[u8]) -> Vec<u8> {
    match key.try_into() {
        Ok(word) if !has_long_keys(table) => (u64::from_be_bytes(word) + 1).to_be_bytes().to_vec(),
        _ => [key, &[0]].concat(),
    }
}
