//! How Payment and OrderStatus find their customer: by id, or by last name (clause 2.5.2.2).

use std::ops::ControlFlow;

use smallvec::SmallVec;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::api::{Abort, Visit};
use crate::common::code;
use crate::tpcc::schema::{NAME_KEY_BYTES, district_code, name_key};

/// The customer in the arguments of a procedure.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Choice {
    pub(crate) warehouse: U32,
    pub(crate) district: u8,
    /// 0 if chosen by last name.
    pub(crate) customer: U32,
    /// Zero bytes if chosen by id.
    pub(crate) last: [u8; 16],
}

impl Choice {
    /// The code of the customer's district.
    pub(crate) fn district_code(&self) -> u32 {
        district_code(self.warehouse.get(), self.district)
    }

    /// Where the customers with the last name are in the index by name.
    pub(crate) fn name_range(&self) -> ([u8; NAME_KEY_BYTES], [u8; NAME_KEY_BYTES]) {
        let low = name_key(self.district_code(), &self.last, &[0; 16], 0);
        let mut high = low;
        // A last name is padded with at least one zero byte.
        high[19] = 1;
        (low, high)
    }

    /// The customer's id. By last name it is the middle one of all who have it, ordered by first
    /// name, rounded up. `scan` scans the index by name, either as reconnaissance or while running:
    /// names never change, so both find the same.
    pub(crate) fn find<E: From<Abort>>(
        &self,
        scan: impl FnOnce(&[u8], &[u8], Visit<'_>) -> Result<(), E>,
    ) -> Result<u32, E> {
        if self.customer.get() != 0 {
            return Ok(self.customer.get());
        }
        let (low, high) = self.name_range();
        let mut found = SmallVec::<[u32; FEW]>::new();
        scan(&low, &high, &mut |key, _| {
            if let Some(Ok(id)) = key.get(NAME_KEY_BYTES - 4..).map(<[u8; 4]>::try_from) {
                found.push(u32::from_be_bytes(id));
            }
            ControlFlow::Continue(())
        })?;
        let middle = found.len().div_ceil(2).checked_sub(1);
        middle.map(|middle| found[middle]).ok_or_else(|| Abort(code::UNKNOWN_CUSTOMER).into())
    }
}

/// Places for as many customers of a district as have the same last name at the size of the
/// specification, so that they need no memory of the heap: of 3,000, the commonest name has 60 to
/// 80.
const FEW: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::text::last_name;

    fn find(ids: &[u32]) -> Result<u32, Abort> {
        let last = last_name(7);
        let (warehouse, district, customer) = (1.into(), 2, 0.into());
        let choice = Choice { warehouse, district, customer, last };
        choice.find(|low, high, each| {
            for (i, id) in ids.iter().enumerate() {
                let mut first = [b'X'; 16];
                first[0] = b'A' + i as u8;
                let key = name_key(choice.district_code(), &last, &first, *id);
                assert!(low <= key.as_slice() && key.as_slice() < high);
                let _ = each(&key, &id.to_le_bytes());
            }
            Ok(())
        })
    }

    #[test]
    fn the_middle_one_is_taken() {
        assert_eq!(find(&[5]), Ok(5));
        assert_eq!(find(&[5, 3]), Ok(5));
        assert_eq!(find(&[5, 3, 9]), Ok(3));
        assert_eq!(find(&[5, 3, 9, 1]), Ok(3));
        assert_eq!(find(&[]), Err(Abort(code::UNKNOWN_CUSTOMER)));
    }

    #[test]
    fn the_middle_one_of_many_is_taken() {
        let ids: Vec<u32> = (1001..1191).collect();
        for count in [FEW - 1, FEW, FEW + 1, FEW + 2, 190] {
            let middle = ids[count.div_ceil(2) - 1];
            assert_eq!(find(&ids[..count]), Ok(middle), "{count}");
        }
    }
}
