//! What the pieces of programs do.

use engine::{PieceResult, Stop};

use super::program::{Op, Program, Step, VALUE_BYTES_MAX, change, digest, key, mix};

/// What a piece needs.
pub trait RunningPiece {
    /// Reads a row of the piece, or one that the call does not write.
    fn get(&mut self, table: u8, key: &[u8]) -> Result<Option<Vec<u8>>, Stop>;
    /// The row's value.
    fn value(&mut self) -> Result<Option<Vec<u8>>, Stop>;
    /// Changes the row; false if it is not there.
    fn modify(&mut self, change: &dyn Fn(&mut [u8])) -> Result<bool, Stop>;
    /// Changes the row as `change` does, but only the part that it changes; false if it is not
    /// there.
    fn modify_part(&mut self, tag: u8) -> Result<bool, Stop> {
        self.modify(&|value| change(value, tag))
    }
    /// Replaces the row; false if it is not there.
    fn update(&mut self, value: &[u8]) -> Result<bool, Stop>;
    /// Inserts one of its rows.
    fn insert_row(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<(), Stop>;
    /// Replaces one of its rows; false if it is not there.
    fn update_row(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<bool, Stop>;
    /// Changes the part of one of its rows that `change` does; false if it is not there.
    fn modify_row(&mut self, table: u8, key: &[u8], tag: u8) -> Result<bool, Stop>;
    /// Deletes one of its rows; false if it is not there.
    fn delete_row(&mut self, table: u8, key: &[u8]) -> Result<bool, Stop>;
    /// What an earlier piece came to.
    fn result(&mut self, number: usize) -> Result<PieceResult, Stop>;
}

/// Runs a piece of a program. Its result holds everything that it read, and has 8 to 40 bytes.
pub fn run_piece(
    program: &Program,
    number: usize,
    piece: &mut impl RunningPiece,
) -> Result<PieceResult, Stop> {
    let (step, own) = program.piece(number);
    let mut result = run_first(program, step, piece)?;
    if step.n & 4 != 0 && number > 0 {
        let before = piece.result(number - 1)?;
        result = mix(result ^ before.with_bytes(|bytes| digest(Some(bytes))));
    }
    for own in own {
        result = mix(result ^ run_own(program, own, result, piece)?);
    }
    let bytes: Vec<u8> = (0..5).flat_map(|word| mix(result ^ word).to_le_bytes()).collect();
    let len = 8 + usize::from(step.tag) % (PieceResult::BYTES_MAX - 7);
    Ok(PieceResult::of_bytes(&bytes[..len]).expect("it is no longer than the longest"))
}

/// A value of a step of a piece, which follows from what the piece has read.
fn value_in_piece(step: &Step, read: u64) -> Vec<u8> {
    let mut value = step.value(read);
    value.truncate(VALUE_BYTES_MAX[usize::from(step.table)]);
    value
}

/// What a piece does with a row of its own, or with those in a range.
fn run_own(
    program: &Program,
    step: &Step,
    read: u64,
    piece: &mut impl RunningPiece,
) -> Result<u64, Stop> {
    let (table, key) = (step.table, step.key());
    let mut told = 0;
    if step.op == Op::RangeInPiece {
        let numbers = (0..16).filter(|&number| step.covers(&self::key(table, number)));
        for number in numbers.filter(|&number| program.is_for(step, number)) {
            let by = (mix(u64::from(step.tag) ^ u64::from(number)) % 4) as u8;
            let one = Step { op: Op::UpdateInPiece, a: number, n: by, ..*step };
            told = mix(told ^ run_own(program, &one, read, piece)?);
        }
        return Ok(told);
    }
    told ^= digest(piece.get(table, &key)?.as_deref());
    let there = match (step.op, step.n % 4) {
        (_, 3) => true,
        (Op::InsertInPiece, _) => {
            piece.insert_row(table, &key, &value_in_piece(step, read)).map(|()| true)?
        }
        (_, 0) => piece.modify_row(table, &key, step.tag)?,
        (_, 1) => piece.update_row(table, &key, &value_in_piece(step, read))?,
        _ => piece.delete_row(table, &key)?,
    };
    if step.tag.is_multiple_of(3) {
        // It sees what it has written, and changes that once more.
        told = mix(told ^ digest(piece.get(table, &key)?.as_deref()));
        piece.modify_row(table, &key, step.tag ^ 10)?;
    }
    Ok(told ^ u64::from(there))
}

/// What a piece does with the row that may be contended; tells everything that it read.
fn run_first(program: &Program, step: &Step, piece: &mut impl RunningPiece) -> Result<u64, Stop> {
    let mut result = digest(piece.value()?.as_deref());
    if step.flag != 0 && program.reads_in_pieces(step) {
        result ^= mix(digest(piece.get(step.table, &key(step.table, step.b))?.as_deref()));
    }
    let there = match step.n % 4 {
        0 | 1 if step.tag.is_multiple_of(2) => piece.modify_part(step.tag)?,
        0 | 1 => piece.modify(&|value| change(value, step.tag))?,
        2 => piece.update(&value_in_piece(step, result))?,
        _ => true,
    };
    if step.tag.is_multiple_of(5) {
        // It sees what it has written, and changes that once more.
        result ^= mix(digest(piece.value()?.as_deref()) ^ 3);
        piece.modify_part(step.tag ^ 6)?;
    }
    Ok(mix(result ^ u64::from(there)))
}

/// The answer of a program: what its body put out, then what its pieces came to.
pub fn finish(results: &[PieceResult], output: &mut Vec<u8>) {
    let each = |result: &PieceResult| result.with_bytes(|bytes| output.extend_from_slice(bytes));
    results.iter().for_each(each);
}
