//! The bytes of plans.

use super::plan::Plan;
use serde::Serialize;
use serde::de::DeserializeOwned;
use values::{Error, Result};

/// The version of the form; the first byte.
pub const VERSION: u8 = 1;

/// The bytes of a plan.
pub fn encode(plan: &Plan) -> Vec<u8> {
    to_bytes(plan)
}

/// The plan of these bytes. Any bytes are decoded or refused.
pub fn decode(bytes: &[u8]) -> Result<Plan> {
    let plan: Plan = from_bytes(bytes, "plan")?;
    plan.check()?;
    Ok(plan)
}

/// The bytes of a plan or a row of the catalog, after the version.
pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_extend(value, vec![VERSION]).expect("a vector takes all")
}

/// What these bytes are.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    match bytes.split_first() {
        Some((&VERSION, body)) => match postcard::take_from_bytes(body) {
            Ok((value, [])) => Ok(value),
            _ => Err(Error::corrupted(format!("{what} is damaged"))),
        },
        Some((version, _)) => Err(Error::corrupted(format!(
            "{what} has version {version}, this program knows {VERSION}"
        ))),
        None => Err(Error::corrupted(format!("{what} is empty"))),
    }
}
