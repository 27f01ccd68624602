//! Who listens to which channels, and what each session was not sent yet.

use super::super::pool::lock;
use super::bus::Bus;
use sql::run::Notice;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use values::{Error, Result, SqlState};

/// The most bytes that a session was not sent yet.
const UNSENT_BYTES_MAX: usize = 8 << 20;
/// What a notification takes beside its text.
const NOTIFICATION_BYTES: usize = 64;
/// The most channels of a session.
const CHANNELS_MAX: usize = 10_000;

/// What a session that listens is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notification {
    /// `pg_backend_pid()` of who has told it.
    pub(crate) process: i32,
    pub(crate) channel: Arc<str>,
    pub(crate) payload: Arc<str>,
}

#[derive(Default)]
struct Unsent {
    list: VecDeque<Notification>,
    bytes: usize,
    /// Whether there was too much of it: the session has missed some.
    has_missed: bool,
}

/// What one session was not sent yet.
#[derive(Default)]
pub(super) struct Inbox {
    unsent: Mutex<Unsent>,
    told: Notify,
    /// Whether the session has ever listened.
    is_used: AtomicBool,
}

impl Inbox {
    fn push(&self, notification: Notification) {
        let Notification { channel, payload, .. } = &notification;
        let bytes = NOTIFICATION_BYTES + channel.len() + payload.len();
        let mut unsent = lock(&self.unsent);
        if unsent.has_missed {
            return;
        }
        if unsent.bytes + bytes > UNSENT_BYTES_MAX {
            *unsent = Unsent { has_missed: true, ..Unsent::default() };
        } else {
            unsent.bytes += bytes;
            unsent.list.push_back(notification);
        }
        drop(unsent);
        self.told.notify_one();
    }

    /// Drops the notifications of these channels that were not sent yet.
    fn drop_unsent(&self, channels: &BTreeSet<Arc<str>>) {
        let mut unsent = lock(&self.unsent);
        let Unsent { list, bytes, .. } = &mut *unsent;
        list.retain(|one| {
            let is_kept = !channels.contains(&one.channel);
            if !is_kept {
                *bytes -= NOTIFICATION_BYTES + one.channel.len() + one.payload.len();
            }
            is_kept
        });
    }
}

/// The sessions that listen to a channel, by the numbers of their connections.
type Listeners = BTreeMap<u64, Arc<Inbox>>;

/// Who listens to which channels.
#[derive(Default)]
pub(super) struct Channels(Mutex<HashMap<Arc<str>, Listeners>>);

impl Channels {
    /// Passes on what a call tells.
    pub(super) fn tell(&self, process: i32, notices: Vec<Notice>) {
        let all = lock(&self.0);
        for (channel, payload) in notices {
            let Some((channel, inboxes)) = all.get_key_value(&channel[..]) else { continue };
            let payload: Arc<str> = payload.into();
            for inbox in inboxes.values() {
                let (channel, payload) = (Arc::clone(channel), Arc::clone(&payload));
                inbox.push(Notification { process, channel, payload });
            }
        }
    }
}

/// The notifications of one session, which listens to nothing any more when this is dropped.
pub(crate) struct Mailbox {
    bus: Arc<Bus>,
    number: u64,
    inbox: Arc<Inbox>,
    own: Mutex<BTreeSet<Arc<str>>>,
}

impl Mailbox {
    pub(in super::super) fn new(bus: &Arc<Bus>, number: u64) -> Arc<Mailbox> {
        let (inbox, own) = Default::default();
        Arc::new(Mailbox { bus: Arc::clone(bus), number, inbox, own })
    }

    /// Listens to a channel from now on; whether it did not before.
    ///
    /// # Errors
    /// That the session listens to as many channels as it may.
    pub(crate) fn listen(&self, channel: &str) -> Result<bool> {
        let mut own = lock(&self.own);
        if own.contains(channel) {
            return Ok(false);
        }
        if own.len() >= CHANNELS_MAX {
            let message = format!("the session listens to {CHANNELS_MAX} channels");
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message));
        }
        self.inbox.is_used.store(true, Ordering::Relaxed);
        let channel: Arc<str> = channel.into();
        let mut all = lock(&self.bus.channels.0);
        let channel = match all.get_key_value(&channel) {
            Some((known, _)) => Arc::clone(known),
            None => channel,
        };
        let inboxes = all.entry(Arc::clone(&channel)).or_default();
        inboxes.insert(self.number, Arc::clone(&self.inbox));
        own.insert(channel);
        Ok(true)
    }

    /// Stops listening to a channel, or to all. What was not sent of it before is dropped, since it
    /// may come from the transaction of the UNLISTEN itself.
    pub(crate) fn unlisten(&self, channel: Option<&str>) {
        let mut own = lock(&self.own);
        let removed = match channel {
            Some(channel) => own.take(channel).into_iter().collect::<BTreeSet<_>>(),
            None => std::mem::take(&mut *own),
        };
        let mut all = lock(&self.bus.channels.0);
        for channel in &removed {
            if let Some(inboxes) = all.get_mut(channel) {
                inboxes.remove(&self.number);
                if inboxes.is_empty() {
                    all.remove(channel);
                }
            }
        }
        drop(all);
        self.inbox.drop_unsent(&removed);
    }

    /// The channels that it listens to.
    pub(crate) fn channels(&self) -> Vec<String> {
        lock(&self.own).iter().map(|channel| channel.to_string()).collect()
    }

    /// Takes all that it was told by calls that are answered.
    ///
    /// # Errors
    /// That it has missed some, as it has not taken the others in time: it must end.
    pub(crate) fn take(&self) -> Result<VecDeque<Notification>> {
        if !self.inbox.is_used.load(Ordering::Relaxed) {
            return Ok(VecDeque::new());
        }
        self.bus.pass_on();
        let mut unsent = lock(&self.inbox.unsent);
        if unsent.has_missed {
            let message = "terminating connection because it has missed notifications";
            let detail = format!("More than {UNSENT_BYTES_MAX} bytes of them were not sent yet.");
            let hint = "Read them sooner, and end transactions sooner.";
            let error = Error::new(SqlState::CONFIGURATION_LIMIT, message);
            return Err(error.with_detail(detail).with_hint(hint));
        }
        unsent.bytes = 0;
        Ok(std::mem::take(&mut unsent.list))
    }

    /// Waits until it may have been told something.
    pub(crate) async fn told(&self) {
        self.inbox.told.notified().await;
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.unlisten(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(bus: &Bus, channel: &str, payload: &str) {
        bus.channels.tell(7, vec![(channel.to_owned(), payload.to_owned())]);
    }

    fn payloads(mailbox: &Mailbox) -> Vec<String> {
        mailbox.take().unwrap().iter().map(|one| one.payload.to_string()).collect()
    }

    #[test]
    fn a_session_is_told_what_it_listens_to() {
        let bus = Arc::<Bus>::default();
        let (first, second) = (Mailbox::new(&bus, 1), Mailbox::new(&bus, 2));
        assert!(first.listen("a").unwrap() && !first.listen("a").unwrap());
        assert!(second.listen("a").unwrap() && second.listen("b").unwrap());
        tell(&bus, "a", "1");
        tell(&bus, "b", "2");
        tell(&bus, "c", "3");
        second.unlisten(Some("b"));
        assert_eq!((payloads(&first), payloads(&second)), (vec!["1".into()], vec!["1".into()]));
        second.unlisten(None);
        tell(&bus, "a", "4");
        assert_eq!((payloads(&first), payloads(&second)), (vec!["4".into()], vec![]));
        assert_eq!((first.channels(), second.channels()), (vec!["a".into()], vec![]));
        drop(first);
        assert!(lock(&bus.channels.0).is_empty());
    }

    #[test]
    fn one_that_takes_nothing_is_told_so_and_no_memory_grows() {
        let bus = Arc::<Bus>::default();
        let mailbox = Mailbox::new(&bus, 1);
        mailbox.listen("a").unwrap();
        let payload = "x".repeat(7_999);
        for _ in 0..2_000 {
            tell(&bus, "a", &payload);
            assert!(lock(&mailbox.inbox.unsent).bytes <= UNSENT_BYTES_MAX);
        }
        assert_eq!(mailbox.take().unwrap_err().state().code(), "53400");
        assert!(lock(&mailbox.inbox.unsent).list.is_empty());
    }
}
