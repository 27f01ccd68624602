//! Claims of rows, which FOR UPDATE and its kin ask for.

use super::number::ObjectId;
use serde::{Deserialize, Serialize};

/// A row of a table that a query claims: its key stands on the stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The table.
    pub relation: ObjectId,
    /// How the values of the primary key stand in keys.
    pub key: Vec<ClaimKey>,
    /// Which other claims it keeps out.
    pub strength: Strength,
    /// What happens with a row that another transaction has claimed.
    pub wait: Wait,
}

/// A column of the key of a claimed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimKey {
    /// From large to small.
    pub descending: bool,
    /// NULLs before values.
    pub nulls_first: bool,
    /// Whether the column may be NULL.
    pub nullable: bool,
}

/// How strong a claim is, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Strength {
    /// FOR KEY SHARE
    KeyShare,
    /// FOR SHARE
    Share,
    /// FOR NO KEY UPDATE
    NoKeyUpdate,
    /// FOR UPDATE
    Update,
}

/// What a query does with a row that another transaction has claimed, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Wait {
    /// It waits.
    Wait,
    /// SKIP LOCKED: it passes by the row.
    Skip,
    /// NOWAIT: it fails.
    Fail,
}

impl Strength {
    /// Whether claims of two transactions exclude each other, as PostgreSQL's locks of rows do.
    pub fn conflicts(self, other: Strength) -> bool {
        let (weak, strong) = if self < other { (self, other) } else { (other, self) };
        match strong {
            Strength::Update => true,
            Strength::NoKeyUpdate => weak != Strength::KeyShare,
            Strength::KeyShare | Strength::Share => false,
        }
    }
}

impl std::fmt::Display for Strength {
    /// As it stands behind FOR.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Strength::KeyShare => "KEY SHARE",
            Strength::Share => "SHARE",
            Strength::NoKeyUpdate => "NO KEY UPDATE",
            Strength::Update => "UPDATE",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Strength::{self, KeyShare, NoKeyUpdate, Share, Update};

    #[test]
    fn strengths_exclude_each_other_as_postgresql_says() {
        let all = [KeyShare, Share, NoKeyUpdate, Update];
        let conflicts = |one: Strength| all.map(|other| u8::from(one.conflicts(other)));
        assert_eq!(all.map(conflicts), [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]]);
    }
}
