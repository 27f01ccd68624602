//! The beginning of a connection: what the client wants, who it is, what it is told first.

use super::conversation::Conversation;
use super::queue::queue;
use super::sending::Sending;
use super::settings::Settings;
use crate::auth::{Exchange, MECHANISM};
use crate::codec::{Ended, Frames, Half, Messages, Opening, Reader, Severity, Startup};
use crate::config::NAME;
use crate::databases::InUse;
use crate::limits::{GONE_PATIENCE, STATEMENT_BYTES_MAX};
use crate::log;
use crate::shared::{Peer, Shared};
use crate::store::Cause;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use values::{Error, Result, SqlState};

/// How long a client may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests for encryption of one connection: for TLS, and for GSSAPI.
const REQUESTS_MAX: usize = 2;

/// A client before it is known.
struct Arriving<R, W> {
    frames: Frames<R>,
    socket: W,
}

/// What a session begins with.
struct Welcome {
    settings: Settings,
    database: InUse,
}

/// Why a client does not come in.
enum Refused {
    Error(Error),
    /// It has disconnected, or had only to say something.
    Quiet,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Error(error)
    }
}

impl From<Ended> for Refused {
    fn from(ended: Ended) -> Refused {
        match ended {
            Ended::Disconnected => Refused::Quiet,
            Ended::Refused(error) => Refused::Error(error),
        }
    }
}

impl From<std::io::Error> for Refused {
    fn from(_: std::io::Error) -> Refused {
        Refused::Quiet
    }
}

/// Serves a client until it goes or the server stops. One for whom there is no room is told so.
pub(crate) async fn serve<R, W>(reader: R, writer: W, peer: Peer, shared: Arc<Shared>)
where
    R: Half,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let reader = Reader::new(reader);
    let requests = reader.requests();
    let frames = Frames::new(reader, STATEMENT_BYTES_MAX);
    let mut arriving = Arriving { frames, socket: writer };
    let started = tokio::select! {
        started = tokio::time::timeout(PATIENCE, arriving.start(&peer, &shared)) => started,
        () = shared.stopped() => return,
    };
    let Welcome { settings, database } = match started {
        Ok(Ok(welcome)) => welcome,
        Ok(Err(Refused::Error(error))) => {
            log::refused(peer.address, &error);
            let mut out = Messages::default();
            out.report(Severity::Fatal, &error);
            // The client may have disconnected without waiting for it.
            let _ = arriving.socket.write_all(out.bytes()).await;
            let _ = arriving.socket.shutdown().await;
            return;
        }
        Ok(Err(Refused::Quiet)) | Err(_) => return,
    };
    let Ok(secret) = getrandom::u32() else { return };
    let registered = shared.sessions.register(secret.cast_signed(), requests);
    let activity = &registered.requests.activity;
    let clock = database.store.clock();
    activity.begin(registered.process, database.store.name(), peer.address, clock());
    activity.log_slow(shared.log_min_duration);
    log::began(activity);
    let (queue, receiver) = queue();
    let requests = Arc::clone(&registered.requests);
    let conversation = Conversation::new(queue, settings, registered, shared, database);
    let sending = Sending::new(arriving.socket, requests, conversation.mailbox(), clock);
    let ender = conversation.ender();
    // One task, so that neither has to wake the other.
    let mut talking = pin!(conversation.run(arriving.frames));
    let mut sending = pin!(sending.run(receiver));
    let mut has_sent = false;
    let cause = loop {
        tokio::select! {
            biased;
            cause = &mut talking => break cause,
            // An error says that the client has disconnected, which the other half sees, too.
            _ = &mut sending, if !has_sent => has_sent = true,
        }
    };
    if has_sent {
        return;
    }
    // What was submitted is answered, to a client that is there: but what computes ends.
    let patience = match cause {
        Cause::Shutdown => Duration::ZERO,
        _ => GONE_PATIENCE,
    };
    if tokio::time::timeout(patience, &mut sending).await.is_err() {
        ender.end(cause);
        let _ = sending.await;
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Arriving<R, W> {
    async fn start(&mut self, peer: &Peer, shared: &Shared) -> Result<Welcome, Refused> {
        let startup = self.opening(shared).await?;
        if !peer.has_room {
            let message = "sorry, too many clients already";
            let error = Error::new(SqlState::TOO_MANY_CONNECTIONS, message);
            return Err(error.with_hint("Start the server with more --connections.").into());
        }
        let user = startup.get("user").ok_or_else(|| {
            let message = "no PostgreSQL user name specified in startup packet";
            Error::new(SqlState::INVALID_AUTHORIZATION, message)
        })?;
        self.authenticate(user, peer, shared).await?;
        let database = startup.get("database").filter(|name| !name.is_empty()).unwrap_or(user);
        let database = shared.databases.connect(database).await?;
        let settings = settings(&startup, shared.statement_timeout)?;
        let mut out = Messages::default();
        if startup.newer || !startup.of_protocol().is_empty() {
            out.negotiate_version(&startup.of_protocol());
        }
        out.authenticated();
        self.socket.write_all(out.bytes()).await?;
        Ok(Welcome { settings, database })
    }

    /// The startup message, behind requests for encryption, which is not there.
    async fn opening(&mut self, shared: &Shared) -> Result<Startup, Refused> {
        for _ in 0..=REQUESTS_MAX {
            let frame = self.frames.opening().await?;
            match Opening::decode(&frame.body)? {
                Opening::Encryption => self.socket.write_all(b"N").await?,
                Opening::Cancel { process, secret } => {
                    shared.sessions.cancel(process, secret);
                    return Err(Refused::Quiet);
                }
                Opening::Startup(startup) => return Ok(startup),
            }
        }
        let message = "too many requests for encryption";
        Err(Error::new(SqlState::PROTOCOL_VIOLATION, message).into())
    }

    /// Lets the client prove its password, if there is one.
    async fn authenticate(
        &mut self,
        user: &str,
        peer: &Peer,
        shared: &Shared,
    ) -> Result<(), Refused> {
        let is_known = user == NAME;
        let Some(verifier) = &shared.verifier else {
            let message = format!("role \"{user}\" does not exist");
            let error = Error::new(SqlState::INVALID_AUTHORIZATION, message);
            let error = error.with_hint(format!("The user is called {NAME}."));
            return if is_known { Ok(()) } else { Err(error.into()) };
        };
        if let Some(address) = peer.address {
            tokio::time::sleep(shared.failures.delay(address, Instant::now())).await;
        }
        let mut out = Messages::default();
        out.sasl(MECHANISM);
        self.socket.write_all(out.bytes()).await?;
        let first = self.frames.small(b'p').await?;
        let mut nonce = [0; 18];
        getrandom::fill(&mut nonce).map_err(|_| Refused::Quiet)?;
        // An unknown user costs the same work as a wrong password.
        let (exchange, answer) =
            Exchange::begin(verifier.clone(), initial(&first.body)?, &crate::auth::text(&nonce))?;
        out.clear();
        out.sasl_continue(&answer);
        self.socket.write_all(out.bytes()).await?;
        let last = self.frames.small(b'p').await?;
        let last = std::str::from_utf8(&last.body).unwrap_or_default();
        let Some(proof) = exchange.end(last)?.filter(|_| is_known) else {
            if let Some(address) = peer.address {
                shared.failures.failed(address, Instant::now());
            }
            let message = format!("password authentication failed for user \"{user}\"");
            return Err(Error::new(SqlState::INVALID_PASSWORD, message).into());
        };
        peer.address.into_iter().for_each(|address| shared.failures.succeeded(address));
        out.clear();
        out.sasl_final(&proof);
        self.socket.write_all(out.bytes()).await?;
        Ok(())
    }
}

/// The client's first message of SCRAM, in the first message of any mechanism.
fn initial(body: &[u8]) -> Result<&str> {
    let refused = || {
        let message = format!("the only way to authenticate is {MECHANISM}");
        Error::new(SqlState::PROTOCOL_VIOLATION, message)
    };
    let rest = body.strip_prefix(MECHANISM.as_bytes()).and_then(|rest| rest.strip_prefix(b"\0"));
    let (length, data) = rest.and_then(<[u8]>::split_first_chunk).ok_or_else(refused)?;
    if u32::from_be_bytes(*length) as usize != data.len() {
        return Err(refused());
    }
    std::str::from_utf8(data).map_err(|_| refused())
}

/// The settings of a startup message: those with a name of their own, and those of `options`.
/// `timeout` is the `statement_timeout` of those that state none, in milliseconds.
fn settings(startup: &Startup, timeout: Option<u128>) -> Result<Settings> {
    let of_options = options(startup.get("options").unwrap_or_default())?;
    if startup.get("replication").is_some_and(|value| value != "false" && value != "off") {
        return Err(Error::unsupported("replication connections are not supported", ""));
    }
    let named = startup.parameters.iter().filter(|(name, _)| {
        !["user", "database", "options", "replication"].contains(&name.as_str())
            && !name.starts_with("_pq_.")
    });
    let all = of_options.iter().chain(named);
    let all = all.map(|(name, value)| (name.as_str(), value.as_str()));
    let timeout = timeout.map(|timeout| timeout.to_string());
    Settings::new(
        timeout.as_deref().map(|timeout| ("statement_timeout", timeout)).into_iter().chain(all),
    )
}

/// `-c name=value` and `--name=value`, between blanks; a backslash takes a blank as it is.
fn options(text: &str) -> Result<Vec<(String, String)>> {
    let mut words = vec![String::new()];
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => words.last_mut().expect("one word at least").extend(chars.next()),
            char if char.is_whitespace() => words.push(String::new()),
            char => words.last_mut().expect("one word at least").push(char),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word.as_str() {
            "-c" => words.next(),
            other => other.strip_prefix("--").or(other.strip_prefix("-c")).map(str::to_owned),
        };
        let setting = setting.as_deref().and_then(|setting| setting.split_once('='));
        let (name, value) = setting.ok_or_else(|| {
            let message = format!("invalid command-line argument for server process: {word}");
            Error::new(SqlState::SYNTAX_ERROR, message)
        })?;
        all.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_settings() {
        let all = options(r"-c a=1 --b-c=x\ y -cd=2").unwrap();
        let shown: Vec<String> =
            all.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        assert_eq!(shown, ["a:1", "b_c:x y", "d:2"]);
        assert!(options("-c").is_err());
        assert!(options("-z").is_err());
    }

    #[test]
    fn the_first_message_is_of_the_mechanism() {
        assert_eq!(initial(b"SCRAM-SHA-256\0\0\0\0\x03n,,").unwrap(), "n,,");
        for body in
            [&b"PLAIN\0\0\0\0\x01a"[..], b"SCRAM-SHA-256\0\0\0\0\x04n,,", b"", b"SCRAM-SHA-256"]
        {
            assert!(initial(body).is_err(), "{body:?}");
        }
    }
}
