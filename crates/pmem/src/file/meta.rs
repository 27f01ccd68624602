//! Reading `meta`: which snapshot it names.

use super::disk::DiskHandle;
use super::format::{Found, Header, META_BYTES, META_MAGIC};
use super::journal::read_header;
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;

/// What `meta` says.
pub(super) struct Meta {
    /// The snapshot that it names.
    pub(super) named: Header,
    /// Its other slot is damaged: what is wrong with it.
    pub(super) doubt: Option<String>,
}

/// Refuses a file that is not ours before anything else of the directory is looked at.
pub(super) fn check_is_ours(meta: &DiskHandle) -> Result<(), DeviceError> {
    find_named(meta).map(drop)
}

/// The snapshot that `meta` names.
pub(super) fn find_named(meta: &DiskHandle) -> Result<Meta, DeviceError> {
    let slot = |offset| Ok(Header::decode(&read_header(meta, offset)?, META_MAGIC));
    let slots: [Found; 2] = [slot(0)?, slot(PAGE_BYTES)?];
    let corrupt = |what: &str| Err(DeviceError::corrupt(meta.path(), what));
    let found = match slots {
        [Found::Header(a), Found::Header(b)] => {
            if a.instance != b.instance || a.sequence.abs_diff(b.sequence) != 1 {
                return corrupt("its two slots do not belong together");
            }
            Meta { named: if a.sequence > b.sequence { a } else { b }, doubt: None }
        }
        [Found::Header(a), Found::Zero] if a.sequence == 0 => Meta { named: a, doubt: None },
        [Found::Header(named), Found::Damaged(what) | Found::Foreign(what)]
        | [Found::Damaged(what) | Found::Foreign(what), Found::Header(named)] => {
            Meta { named, doubt: Some(what) }
        }
        [Found::Foreign(what), _] | [_, Found::Foreign(what)] => {
            return Err(DeviceError::foreign(meta.path(), what));
        }
        _ => return corrupt("a slot is missing or damaged"),
    };
    let len = meta.len()?;
    if len < META_BYTES {
        return corrupt(&format!("it has {len} bytes, not {META_BYTES}: truncated?"));
    }
    Ok(found)
}
