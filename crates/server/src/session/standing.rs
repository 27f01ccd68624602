//! How a session stands to a block.

use super::modes::TransactionModes;
use super::settings::Settings;

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

/// What a transaction does with the channels of its session.
#[derive(Clone, Debug)]
pub(super) enum ChannelChange {
    Listen(String),
    /// Of a channel, or of all.
    Unlisten(Option<String>),
}

/// The block of a session. While none is open, the transaction of its segment or text, as far as
/// it concerns settings.
#[derive(Default)]
pub(super) struct Block {
    pub(super) standing: Standing,
    /// Whether it ends with its segment: no BEGIN has begun it.
    pub(super) is_implicit: bool,
    /// The modes that it began with, which are those of the next one where it fails; `None` before
    /// its first statement.
    pub(super) begun: Option<TransactionModes>,
    /// Whether a statement has read a state, in the block or before it in the same segment or text.
    pub(super) has_run: bool,
    /// The settings before its first change, which ROLLBACK restores; `None` without a change.
    pub(super) before: Option<Settings>,
    /// The settings that COMMIT leaves, where SET LOCAL has made others of them meanwhile.
    pub(super) lasting: Option<Settings>,
    /// What it does with the channels of the session once it commits.
    pub(super) channels: Vec<ChannelChange>,
    /// The channels that the session listens to already, for the case that it commits.
    pub(super) early: Vec<String>,
    /// Its savepoints. Cursors and portals since then end with a savepoint that is rolled back.
    pub(super) savepoints: Vec<Savepoint>,
}

/// A savepoint of a block, with the settings that ROLLBACK TO restores and the modes of then.
pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) lasting: Option<Settings>,
    /// How many changes of channels there were.
    pub(super) channels: usize,
}

impl Block {
    /// Begins.
    pub(super) fn opened(&mut self) {
        self.standing = Standing::Open;
    }

    /// The place of the last savepoint of a name.
    pub(super) fn savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|own| own.name == name)
    }
}
