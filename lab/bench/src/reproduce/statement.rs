//! What the paper says, and by which rules that is judged.

use serde::Deserialize;

use super::scale::Scale;

/// What a statement's number is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum As {
    /// The metric itself.
    #[default]
    Value,
    /// By how many per cent it is more than what it is compared with.
    PercentMore,
    /// How many times what it is compared with.
    Times,
    /// By how many of its units it is more than what it is compared with.
    PointsMore,
    /// How many times what it is compared with, on a workload, relative to the same on the workload
    /// of `over_workloads`.
    TimesTheRatio,
}

/// What becomes of the numbers of several workloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Take {
    /// Each must be within the range.
    #[default]
    Each,
    /// Their mean must be.
    Mean,
    /// The middle one must be, so that most of them are.
    Median,
    /// The greatest must be.
    Most,
    /// The least must be.
    Least,
    /// How many of them are below what they are compared with must be, whichever round counts.
    CountBelow,
    /// The same of those above it.
    CountAbove,
}

impl Take {
    /// Whether numbers are counted.
    pub(super) fn counts(self) -> bool {
        matches!(self, Self::CountBelow | Self::CountAbove)
    }
}

/// Something that the paper says, and how it is judged.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Statement {
    /// Section of the paper.
    pub(super) section: String,
    /// The statement in our words.
    pub(super) says: String,
    /// Its numbers.
    pub(super) paper: String,
    /// Absent if it cannot be shown at all; `reason` says why then.
    #[serde(default)]
    pub(super) rule: Option<Rule>,
    /// The only scale at which it can be judged, if there is one.
    #[serde(default)]
    pub(super) only: Option<Scale>,
    /// Why our numbers are below what holds, if they are; or above it, if none can be below.
    pub(super) reason: String,
    /// Why our numbers are above what holds, or more than the paper's where more holds, too.
    #[serde(default)]
    pub(super) above: Option<String>,
}

/// A number and the ranges that it must be in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) metric: String,
    /// The series that it is about.
    pub(super) of: String,
    /// The series that it is compared with, on the same workload or on those of `over_workloads`.
    #[serde(default)]
    pub(super) over: Vec<String>,
    /// What of them is compared, if not the same metric.
    #[serde(default)]
    pub(super) over_metric: Option<String>,
    pub(super) workloads: Vec<String>,
    /// The workload that each of `workloads` is compared with, if not itself.
    #[serde(default)]
    pub(super) over_workloads: Vec<String>,
    #[serde(default, rename = "as")]
    pub(super) form: As,
    #[serde(default)]
    pub(super) take: Take,
    /// The paper's number, if `holds` is open beyond it.
    #[serde(default)]
    pub(super) number: Option<f64>,
    /// The statement holds from the first to the second.
    pub(super) holds: [f64; 2],
    /// It holds more weakly there.
    #[serde(default)]
    pub(super) weaker: Option<[f64; 2]>,
}
