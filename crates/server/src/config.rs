//! How the server is started.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The user and the database that there are.
pub(crate) const NAME: &str = sql::system::NAME;

/// Where the server listens, and to which clients.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Addresses, such as `127.0.0.1:5433`; names and port 0 may be used.
    pub listen: Vec<String>,
    /// A directory for a Unix socket, which gets the name that clients look for.
    pub socket_directory: Option<PathBuf>,
    /// The password of user `nvcaracal`; without one every client of this machine is let in.
    pub password: Option<String>,
    /// Clients at a time.
    pub connections_max: usize,
    /// The `statement_timeout` of sessions that set none; `None`: there is none.
    pub statement_timeout: Option<Duration>,
    /// The duration from which on a statement is logged as a warning of `tracing`; `None`: none is.
    pub log_min_duration: Option<Duration>,
    /// Whether the store cannot be read any more, so that what is under way may never end. Once it
    /// is, clients are told at once, also those that wait for an answer, and the server ends. Its
    /// process must be ended by who knows of it: threads of the store may never end.
    pub is_lost: Arc<AtomicBool>,
}

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The options cannot be used as they are.
    #[error("{0}")]
    Options(String),
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address, or the path of the socket.
        address: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The system gives no threads or random numbers.
    #[error("cannot start the server: {0}")]
    System(std::io::Error),
    /// The store has failed while it was served.
    #[error(
        "the store runs no more: {0}; what was answered is in it: see to the cause, then start the \
         server again"
    )]
    Stopped(nvcaracal::Error),
    /// The store was not closed as it should be.
    #[error("the store could not be closed: {0}")]
    Close(#[from] crate::store::OpenError),
}

impl ServerOptions {
    /// Listens at one address, without a password.
    #[must_use]
    pub fn at(address: impl Into<String>) -> ServerOptions {
        ServerOptions {
            listen: vec![address.into()],
            socket_directory: None,
            password: None,
            connections_max: 200,
            statement_timeout: None,
            log_min_duration: None,
            is_lost: Arc::default(),
        }
    }

    /// Whether a server could be started with them, as far as that can be told beforehand.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), ServeError> {
        self.addresses().map(|_| ())
    }

    /// The addresses that names stand for, if all may be listened at.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, ServeError> {
        self.check_password()?;
        if self.connections_max == 0 {
            return Err(ServeError::Options("at least one connection must be allowed".to_owned()));
        }
        let mut all = Vec::new();
        for text in &self.listen {
            let found = text.to_socket_addrs().map_err(|error| {
                ServeError::Options(format!(
                    "{text} is no address to listen at: {error}; give one as 127.0.0.1:5433"
                ))
            })?;
            all.extend(found);
        }
        all.sort();
        all.dedup();
        if all.is_empty() {
            return Err(ServeError::Options("there is no address to listen at".to_owned()));
        }
        match all.iter().find(|address| !address.ip().is_loopback()) {
            Some(address) if self.password.is_none() => Err(ServeError::Options(format!(
                "{address} can be reached from other machines, and no password is set: set one, \
                 or listen at 127.0.0.1"
            ))),
            _ => Ok(all),
        }
    }

    fn check_password(&self) -> Result<(), ServeError> {
        let Some(password) = &self.password else { return Ok(()) };
        let printable = password.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if printable && !password.is_empty() && password.len() <= 1_000 {
            return Ok(());
        }
        let message = "a password has 1 to 1000 characters, all of them printable ASCII";
        Err(ServeError::Options(message.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_a_password() {
        let mut options = ServerOptions::at("0.0.0.0:5433");
        assert!(options.addresses().unwrap_err().to_string().contains("no password is set"));
        options.password = Some("pencil".to_owned());
        assert_eq!(options.addresses().unwrap().len(), 1);
        for password in ["", "a\nb", "p\u{e4}ss"] {
            options.password = Some(password.to_owned());
            assert!(options.addresses().is_err(), "{password:?}");
        }
        assert!(ServerOptions::at("127.0.0.1").addresses().is_err());
        assert!(ServerOptions::at("[::1]:1").addresses().is_ok());
    }
}
