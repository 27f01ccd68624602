//! LISTEN and UNLISTEN, which take place when their transaction commits.

use super::conversation::Conversation;
use super::standing::ChannelChange;
use crate::store::Control;
use values::{Error, Result, SqlState};

/// The most of them in one transaction.
const CHANGES_MAX: usize = 100_000;

impl Conversation {
    /// LISTEN and UNLISTEN; `None` of any other statement.
    pub(super) fn channel_control(&mut self, control: &Control) -> Result<Option<&'static str>> {
        let (change, tag) = match control {
            Control::Listen(channel) => (ChannelChange::Listen(channel.clone()), "LISTEN"),
            Control::Unlisten(channel) => (ChannelChange::Unlisten(channel.clone()), "UNLISTEN"),
            _ => return Ok(None),
        };
        if self.block.channels.len() >= CHANGES_MAX {
            let message = format!("a transaction has more than {CHANGES_MAX} LISTEN or UNLISTEN");
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        if let ChannelChange::Listen(channel) = &change
            && !self.is_in_block()
            && self.mailbox().listen(channel)?
        {
            // What its own text or pipeline tells then is not missed.
            self.block.early.push(channel.clone());
        }
        self.block.channels.push(change);
        Ok(Some(tag))
    }

    /// Begins to listen before COMMIT, so that nothing is missed that commits behind it; to which
    /// channels the session did not listen before.
    pub(super) fn listen_early(&self) -> Result<Vec<String>> {
        let mailbox = self.mailbox();
        let mut begun = Vec::new();
        for change in &self.block.channels {
            let ChannelChange::Listen(channel) = change else { continue };
            match mailbox.listen(channel) {
                Ok(true) => begun.push(channel.clone()),
                Ok(false) => {}
                Err(error) => {
                    self.never_listened(&begun);
                    return Err(error);
                }
            }
        }
        Ok(begun)
    }

    /// COMMIT has failed.
    pub(super) fn never_listened(&self, channels: &[String]) {
        channels.iter().for_each(|channel| self.mailbox().unlisten(Some(channel)));
    }

    /// The transaction has committed.
    pub(super) fn change_channels(&self, changes: Vec<ChannelChange>) {
        let mailbox = self.mailbox();
        for change in changes {
            match change {
                // One above the limit was refused before.
                ChannelChange::Listen(channel) => drop(mailbox.listen(&channel)),
                ChannelChange::Unlisten(channel) => mailbox.unlisten(channel.as_deref()),
            }
        }
    }
}
