//! The procedures of YCSB: the call, whole or with its updates in pieces, and the load.

use crate::api::{Declare, PieceResult, PieceTx, Procedure, Tx};
use crate::common::{BAD_ARGUMENTS, MISSING_ROW, word_at};
use crate::random::Random;
use crate::ycsb::USERTABLE;
use crate::ycsb::settings::COUNTER_BYTES;

const HEADER_BYTES: usize = 8;

/// The arguments of a call, in place: header (reads u16, updates u16, update bytes u32), keys,
/// payloads.
pub(super) struct Call<'a> {
    read_keys: &'a [u8],
    update_keys: &'a [u8],
    payload: &'a [u8],
    update_bytes: usize,
}

impl<'a> Call<'a> {
    pub(super) fn parse(args: &'a [u8]) -> Option<Self> {
        let header = word_at(args, 0)?;
        let reads = (header & 0xFFFF) as usize;
        let updates = (header >> 16 & 0xFFFF) as usize;
        let update_bytes = (header >> 32) as usize;
        let (read_keys, rest) = args.get(HEADER_BYTES..)?.split_at_checked(reads * 8)?;
        let (update_keys, payload) = rest.split_at_checked(updates * 8)?;
        let fits = update_bytes >= COUNTER_BYTES && payload.len() == updates * update_bytes;
        fits.then_some(Self { read_keys, update_keys, payload, update_bytes })
    }

    fn reads(&self) -> impl Iterator<Item = [u8; 8]> + use<'a> {
        keys_of(self.read_keys)
    }

    pub(super) fn update_keys(&self) -> impl Iterator<Item = [u8; 8]> + use<'a> {
        keys_of(self.update_keys)
    }

    fn sum_of_reads<T: Tx>(&self, tx: &mut T) -> Result<u64, T::Error> {
        let mut sum = 0_u64;
        for key in self.reads() {
            sum = sum.wrapping_add(fold(tx.get(USERTABLE, &key)?.ok_or(MISSING_ROW)?));
        }
        Ok(sum)
    }

    fn updates(&self) -> impl Iterator<Item = ([u8; 8], &'a [u8])> + use<'a> {
        keys_of(self.update_keys).zip(self.payload.chunks_exact(self.update_bytes))
    }
}

/// Keys are little-endian in arguments, like every number there, and big-endian in tables.
fn keys_of(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> + use<'_> {
    bytes.chunks_exact(8).map(|chunk| {
        let mut key = [0; 8];
        key.copy_from_slice(chunk);
        key.reverse();
        key
    })
}

/// The wrapping sum of a row's 8-byte words, in eight accumulators so that it can run in vector
/// registers.
fn fold(row: &[u8]) -> u64 {
    let (lines, rest) = row.as_chunks::<64>();
    let mut accumulators = [0_u64; 8];
    for line in lines {
        for (accumulator, word) in accumulators.iter_mut().zip(line.as_chunks::<8>().0) {
            *accumulator = accumulator.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    let (words, last) = rest.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let sum = accumulators.into_iter().chain(words).fold(0, u64::wrapping_add);
    let mut padded = [0; 8];
    padded[..last.len()].copy_from_slice(last);
    sum.wrapping_add(u64::from_le_bytes(padded))
}

/// Counts the row up and overwrites what follows the counter, in a copy of that part; the sum of
/// what was there before.
fn fold_and_overwrite(row: &[u8], part: &mut [u8], payload: &[u8]) -> u64 {
    let counter = word_at(row, 0).unwrap_or(0);
    part.copy_from_slice(payload);
    part[..COUNTER_BYTES].copy_from_slice(&counter.wrapping_add(1).to_le_bytes());
    fold(row)
}

/// Reads some keys and updates others. The answer is the wrapping sum of all rows as they were
/// before.
pub(super) enum YcsbCall {}

impl Procedure for YcsbCall {
    const NAME: &'static str = "ycsb";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let call = Call::parse(args).ok_or(BAD_ARGUMENTS)?;
        for key in call.reads() {
            declare.will_read(USERTABLE, &key);
        }
        for key in call.update_keys() {
            declare.update(USERTABLE, &key);
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let call = Call::parse(args).ok_or(BAD_ARGUMENTS)?;
        let mut sum = call.sum_of_reads(tx)?;
        for (key, payload) in call.updates() {
            let mut old = None;
            tx.modify_part(USERTABLE, &key, 0..payload.len(), |row, part| {
                old = Some(fold_and_overwrite(row, part, payload));
            })?;
            sum = sum.wrapping_add(old.ok_or(MISSING_ROW)?);
        }
        tx.output().extend_from_slice(&sum.to_le_bytes());
        Ok(())
    }
}

/// The same as [`YcsbCall`], with each update in a piece.
pub(super) enum YcsbPieces {}

impl Procedure for YcsbPieces {
    const NAME: &'static str = "ycsb_pieces";
    const PIECES: bool = true;

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let call = Call::parse(args).ok_or(BAD_ARGUMENTS)?;
        for key in call.reads() {
            declare.will_read(USERTABLE, &key);
        }
        for key in call.update_keys() {
            declare.update_piece(USERTABLE, &key, 1);
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let call = Call::parse(args).ok_or(BAD_ARGUMENTS)?;
        let sum = call.sum_of_reads(tx)?;
        tx.output().extend_from_slice(&sum.to_le_bytes());
        Ok(())
    }

    fn piece<P: PieceTx>(
        args: &[u8],
        number: usize,
        piece: &mut P,
    ) -> Result<PieceResult, P::Error> {
        let call = Call::parse(args).ok_or(BAD_ARGUMENTS)?;
        let payload = call.payload.chunks_exact(call.update_bytes).nth(number);
        let payload = payload.ok_or(BAD_ARGUMENTS)?;
        let mut old = None;
        piece.modify_part(0..payload.len(), |row, part| {
            old = Some(fold_and_overwrite(row, part, payload));
        })?;
        Ok([old.ok_or(MISSING_ROW)?, 0])
    }

    fn finish(_: &[u8], results: &mut dyn Iterator<Item = PieceResult>, output: &mut Vec<u8>) {
        let sum = word_at(output, 0).unwrap_or(0);
        let sum = results.fold(sum, |sum, result| sum.wrapping_add(result[0]));
        output.clear();
        output.extend_from_slice(&sum.to_le_bytes());
    }
}

/// Inserts a run of rows, generated from the seed and their keys.
pub(super) enum YcsbLoad {}

/// The arguments of a load: (first key, seed, count, bytes of a value).
fn parse_load(args: &[u8]) -> Option<(u64, u64, u64, usize)> {
    let sizes = word_at(args, 16)?;
    let whole = (word_at(args, 0)?, word_at(args, 8)?, sizes & 0xFFFF_FFFF, (sizes >> 32) as usize);
    (args.len() == 24).then_some(whole)
}

impl Procedure for YcsbLoad {
    const NAME: &'static str = "ycsb_load";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let (first, _, count, _) = parse_load(args).ok_or(BAD_ARGUMENTS)?;
        for key in first..first + count {
            declare.insert(USERTABLE, &key.to_be_bytes());
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let (first, seed, count, value_bytes) = parse_load(args).ok_or(BAD_ARGUMENTS)?;
        if value_bytes < COUNTER_BYTES {
            return Err(BAD_ARGUMENTS.into());
        }
        let mut value = vec![0; value_bytes];
        for key in first..first + count {
            Random::new(seed, u64::MAX, key).fill(&mut value[COUNTER_BYTES..]);
            tx.insert(USERTABLE, &key.to_be_bytes(), &value)?;
        }
        Ok(())
    }
}
