//! Sockets, and the connections that come through them.

use crate::auth::Verifier;
use crate::codec::Half;
use crate::config::{ServeError, ServerOptions};
use crate::databases::Databases;
use crate::limits::REFUSED_MAX;
use crate::session;
use crate::shared::{Peer, Shared};
use crate::threads::Threads;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::{info, warn};

/// How often the server looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long connections may take to send what they have when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// How long it waits after the system gave no connection, for want of files or memory.
const BREATHER: Duration = Duration::from_millis(50);

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1_024;

/// Addresses that are this process's, at which nothing listens yet.
#[derive(Debug)]
pub struct Sockets {
    bound: Vec<(SocketAddr, TcpSocket)>,
}

impl Sockets {
    /// Takes the addresses of the options, so that a server that cannot listen opens no store.
    ///
    /// # Errors
    /// Which address is taken, or what is wrong with the options.
    pub fn bind(options: &ServerOptions) -> Result<Sockets, ServeError> {
        let bind = |address: SocketAddr| -> io::Result<(SocketAddr, TcpSocket)> {
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // Otherwise connections of a server that has ended would keep the address for minutes.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            Ok((address, socket))
        };
        let failed = |address: SocketAddr| {
            move |error| ServeError::Listen { address: address.to_string(), error }
        };
        let addresses = options.addresses()?.into_iter();
        let bound = addresses.map(|address| bind(address).map_err(failed(address)));
        let sockets = Sockets { bound: bound.collect::<Result<_, _>>()? };
        if let Some(directory) = &options.socket_directory {
            sockets.check_directory(directory)?;
        }
        Ok(sockets)
    }

    /// Whether there can be a Unix socket in a directory.
    fn check_directory(&self, directory: &Path) -> Result<(), ServeError> {
        let port = self.bound.first().and_then(|(_, socket)| socket.local_addr().ok());
        let path = socket_path(directory, port.as_ref());
        let listens = std::os::unix::net::UnixStream::connect(&path).is_ok();
        let error = match std::fs::metadata(directory) {
            Err(error) => error,
            Ok(found) if !found.is_dir() => io::ErrorKind::NotADirectory.into(),
            Ok(_) if listens => io::ErrorKind::AddrInUse.into(),
            Ok(_) => return Ok(()),
        };
        Err(ServeError::Listen { address: path.display().to_string(), error })
    }
}

/// Where clients look for the Unix socket of a server.
fn socket_path(directory: &Path, address: Option<&SocketAddr>) -> PathBuf {
    directory.join(format!(".s.PGSQL.{}", address.map_or(0, SocketAddr::port)))
}

/// Where a server listens.
#[derive(Debug, Clone)]
pub struct Listening {
    /// Its addresses, with the ports that the system chose.
    pub addresses: Vec<SocketAddr>,
    /// Its Unix socket.
    pub socket: Option<PathBuf>,
}

/// Serves clients until `stop` says so; then answers what was submitted, and closes the stores.
/// `ready` learns where the server listens.
///
/// # Errors
/// Why the server does not run, why the store runs no more, or how it was not closed.
pub fn serve(
    options: &ServerOptions,
    databases: impl Into<Databases>,
    ready: impl FnOnce(&Listening),
    stop: impl Fn() -> bool,
) -> Result<(), ServeError> {
    serve_at(Sockets::bind(options)?, options, databases, ready, stop)
}

/// As [`serve`], at sockets that were bound before the store was opened.
///
/// # Errors
/// Those of [`serve`].
pub fn serve_at(
    sockets: Sockets,
    options: &ServerOptions,
    databases: impl Into<Databases>,
    ready: impl FnOnce(&Listening),
    stop: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let databases = databases.into();
    let verifier = match &options.password {
        Some(password) => {
            let mut salt = [0; 16];
            let failed = |error: getrandom::Error| ServeError::System(error.into());
            getrandom::fill(&mut salt).map_err(failed)?;
            Some(Verifier::new(password, salt))
        }
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(ServeError::System)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = Arc::new(Threads::new(cores).map_err(ServeError::System)?);
    let (stopping, stopped) = watch::channel(false);
    let doors = Arc::new(Doors {
        connections: Arc::new(Semaphore::new(options.connections_max)),
        refused: Arc::new(Semaphore::new(REFUSED_MAX)),
        shared: Arc::new(Shared::new(databases.clone(), verifier, options, stopped)),
        threads: Arc::clone(&threads),
    });
    let served = runtime.block_on(run(options, sockets, &doors, &stopping, ready, stop));
    drop((runtime, doors));
    Arc::into_inner(threads).expect("the doors are closed").end();
    let closed = databases.close();
    served?;
    Ok(closed?)
}

async fn run(
    options: &ServerOptions,
    sockets: Sockets,
    doors: &Arc<Doors>,
    stopping: &watch::Sender<bool>,
    ready: impl FnOnce(&Listening),
    stop: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let mut listening = Listening { addresses: Vec::new(), socket: None };
    let mut tasks = Vec::new();
    for (address, socket) in sockets.bound {
        let failed = |error| ServeError::Listen { address: address.to_string(), error };
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        listening.addresses.push(listener.local_addr().map_err(failed)?);
        tasks.push(tokio::spawn(Arc::clone(doors).tcp(listener)));
    }
    if let Some(directory) = &options.socket_directory {
        let path = socket_path(directory, listening.addresses.first());
        let listener = unix_listener(&path)?;
        tasks.push(tokio::spawn(Arc::clone(doors).unix(listener)));
        listening.socket = Some(path);
    }
    ready(&listening);
    let stopped = loop {
        if let Some(error) = doors.shared.databases.stopped() {
            break Err(ServeError::Stopped(error));
        }
        if options.is_lost.load(Ordering::Relaxed) {
            doors.shared.sessions.lose();
            break Ok(());
        }
        if stop() {
            break Ok(());
        }
        tokio::time::sleep(LOOK).await;
    };
    tasks.iter().for_each(|task| task.abort());
    stopping.send_replace(true);
    let all = u32::try_from(options.connections_max).unwrap_or(u32::MAX);
    // A client that does not read its answers in time loses them, not what it wrote.
    let _ = tokio::time::timeout(GRACE, doors.connections.acquire_many(all)).await;
    if let Some(path) = &listening.socket {
        let _ = std::fs::remove_file(path);
    }
    stopped
}

/// A Unix socket for the user that runs the server. The file of a server that was killed is
/// replaced.
fn unix_listener(path: &Path) -> Result<UnixListener, ServeError> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let failed = |error| ServeError::Listen { address: path.display().to_string(), error };
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let permissions = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, permissions).map_err(failed)?;
    Ok(listener)
}

/// Whether the system gives connections.
#[derive(Default)]
struct Trouble {
    was_told: bool,
}

impl Trouble {
    /// Says once that no connection comes in, and why, and waits a moment.
    async fn tell(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.was_told, true) {
            warn!(
                "clients cannot connect: {error}; they wait. If there are too many open files, \
                 allow more (ulimit -n) or start the server with fewer --connections"
            );
        }
        tokio::time::sleep(BREATHER).await;
    }

    /// Says that connections come in again.
    fn is_over(&mut self) {
        if std::mem::take(&mut self.was_told) {
            info!("clients can connect again");
        }
    }
}

/// Where connections come in.
struct Doors {
    connections: Arc<Semaphore>,
    /// Those above the limit that are told so.
    refused: Arc<Semaphore>,
    shared: Arc<Shared>,
    threads: Arc<Threads>,
}

impl Doors {
    async fn tcp(self: Arc<Doors>, listener: TcpListener) {
        let mut trouble = Trouble::default();
        loop {
            match listener.accept().await.and_then(|(socket, address)| {
                // Answers are sent whole; without this they would wait for more.
                let _ = socket.set_nodelay(true);
                Ok((socket.into_std()?, address))
            }) {
                Ok((socket, address)) => {
                    trouble.is_over();
                    self.admit(Some(address.ip()), move || {
                        Ok(TcpStream::from_std(socket)?.into_split())
                    });
                }
                Err(error) => trouble.tell(&error).await,
            }
        }
    }

    async fn unix(self: Arc<Doors>, listener: UnixListener) {
        let mut trouble = Trouble::default();
        loop {
            match listener.accept().await.and_then(|(socket, _)| socket.into_std()) {
                Ok(socket) => {
                    trouble.is_over();
                    self.admit(None, move || Ok(UnixStream::from_std(socket)?.into_split()));
                }
                Err(error) => trouble.tell(&error).await,
            }
        }
    }

    /// Serves a connection on a task of its own, if there is room for it or for saying no. Its
    /// socket is opened on the thread of the task.
    fn admit<R, W>(
        &self,
        address: Option<IpAddr>,
        socket: impl FnOnce() -> io::Result<(R, W)> + Send + 'static,
    ) where
        R: Half,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let Some((permit, has_room)) = self.room() else { return };
        let shared = Arc::clone(&self.shared);
        self.threads.spawn(async move {
            // A client whose socket cannot be opened sees its end.
            if let Ok((reader, writer)) = socket() {
                session::serve(reader, writer, Peer { address, has_room }, shared).await;
            }
            drop(permit);
        });
    }

    fn room(&self) -> Option<(OwnedSemaphorePermit, bool)> {
        let free = |room: &Arc<Semaphore>| Arc::clone(room).try_acquire_owned().ok();
        let connection = free(&self.connections).map(|permit| (permit, true));
        connection.or_else(|| free(&self.refused).map(|permit| (permit, false)))
    }
}
