//! The state hash: a sum over the lines of all live rows, so that it can be maintained by
//! difference and does not depend on where a row lies or who wrote it (O-48).
//!
//! It is maintained for every final write, of which most change a few lines. So a line has the hash
//! of the family NH (Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC: Fast and Secure Message
//! Authentication", 1999): a sum of products of 32-bit words, of which a processor makes several
//! at once, and made twice, with other keys, for 64 bits of evidence. Were keys and numbers random,
//! two states would collide with a probability of about 2^-64; here they follow from table, key and
//! place. It tells mistakes, not attacks (docs/decisions/0018).

mod state_hash;
mod sums;

mod gain;

mod row;

pub use row::{
    RowChange, changed_lines, lines_gain, only_line_gain, only_line_hash, row_change, row_hash,
    word_gain,
};
pub use state_hash::StateHash;
