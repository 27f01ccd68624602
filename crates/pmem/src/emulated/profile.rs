//! The names of the media that `emulated` imitates.

use std::fmt;
use std::str::FromStr;

/// Which device is imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Real flushes and fences, no added time.
    None,
    /// Intel Optane persistent memory.
    Optane,
    /// Optane by what accesses of 64 bytes take, and with reads before writes of less.
    OptaneLines,
    /// Optane behind processor caches that survive a power cut.
    Eadr,
    /// Memory behind a CXL link, which is saved when power fails.
    Cxl,
    /// DeterminismCheck the latency of DRAM and an eighth of its bandwidth.
    Low,
    /// Eight times the latency of DRAM and an eighth of its bandwidth.
    High,
}

impl Profile {
    /// All profiles, in the order of their names on the command line.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Optane, Self::OptaneLines, Self::Eadr, Self::Cxl, Self::Low, Self::High];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Optane => "optane",
            Self::OptaneLines => "optane-lines",
            Self::Eadr => "eadr",
            Self::Cxl => "cxl",
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|profile| profile.name() == text).ok_or_else(|| {
            let known = "none, optane, optane-lines, eadr, cxl, low or high";
            format!("unknown profile {text:?}: choose {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_parse_and_print() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse::<Profile>().unwrap(), profile);
        }
        let refused = "fast".parse::<Profile>().unwrap_err();
        for profile in Profile::ALL {
            assert!(refused.contains(profile.name()), "{refused}");
        }
    }
}
