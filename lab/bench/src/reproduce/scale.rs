//! How large the runs of a figure are.

use serde::{Deserialize, Serialize};

/// How large the runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Tiny: shows that everything works; times mean nothing.
    Smoke,
    /// A small machine within an hour, with the paper's contention.
    Small,
    /// The paper's sizes.
    Full,
}

impl Scale {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Smoke, Self::Small, Self::Full];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Small => "small",
            Self::Full => "full",
        }
    }

    /// For help and reports.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Smoke => "tiny sizes, to see that everything works: times mean nothing",
            Self::Small => "about a hundredth of the paper's sizes, with the paper's contention",
            Self::Full => "the paper's sizes: 256 GB of memory, many hours",
        }
    }

    /// Rounds where none are asked for.
    #[must_use]
    pub fn rounds_default(self) -> u64 {
        match self {
            Self::Smoke => 1,
            Self::Small => 3,
            Self::Full => 5,
        }
    }
}
