//! How the pieces of contended rows are packed onto workers.

/// Which workers run the pieces that leave their calls (CA 3.4). Answers and state are the same.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Rows lie on a line that is cut into equal parts, so that the load is even, and a row may be
    /// shared by neighbours (CA 3.4, Listing 1).
    #[default]
    Line,
    /// Each row goes to one worker, the heaviest first, which is the bin packing that the paper
    /// compares with (CA 5.5). The load is as even as whole rows allow.
    Whole,
}

impl Packing {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Line, Self::Whole];

    /// Name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Whole => "whole",
        }
    }

    /// What it does, in a few words.
    pub fn what(self) -> &'static str {
        match self {
            Self::Line => "evenly, neighbours may share a row (CA 3.4)",
            Self::Whole => "each row on one worker: bin packing (CA 5.5)",
        }
    }
}
