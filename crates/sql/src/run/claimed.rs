//! The keys of rows that are claimed.

use crate::ir::{Claim, ClaimKey};
use values::{Datum, key};

/// The key of a row that is claimed, of its values; `None` if one cannot be in a key.
pub(super) fn claimed_key(claim: &Claim, values: &[Datum]) -> Option<Vec<u8>> {
    let mut bytes = claim.relation.to_bytes().to_vec();
    for (column, value) in claim.key.iter().zip(values) {
        let ClaimKey { descending, nulls_first, nullable } = *column;
        let may_be_key = !matches!(value, Datum::Jsonb(_) | Datum::Json(_) | Datum::Array(_));
        if value.is_null() && !nullable || !may_be_key {
            return None;
        }
        key::push(&mut bytes, value, key::Order { descending, nulls_first, nullable });
    }
    Some(key::shorten(bytes))
}
