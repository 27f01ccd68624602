//! How a session stands to a block.

use super::settings::Settings;
use crate::store::Modes;

/// How a session stands to a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// Each statement is a transaction.
    #[default]
    Idle,
    Open,
    /// A statement has failed: nothing runs until it is rolled back.
    Failed,
}

/// The block of a session.
#[derive(Default)]
pub(super) struct Block {
    pub(super) standing: Standing,
    /// Whether it ends with its segment: no BEGIN has begun it.
    pub(super) is_implicit: bool,
    pub(super) modes: Modes,
    /// The settings at its beginning, to which ROLLBACK comes back.
    pub(super) before: Option<Box<Settings>>,
    /// What SET LOCAL has changed, with the values that come back.
    pub(super) local: Vec<(String, String)>,
    /// The names of its savepoints, which cursors and portals since then go with.
    pub(super) savepoints: Vec<String>,
}

impl Block {
    /// The place of the last savepoint of a name.
    pub(super) fn savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|own| own == name)
    }
}
