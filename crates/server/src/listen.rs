//! Sockets, and the connections that come through them.

use crate::auth::Verifier;
use crate::codec::Closing;
use crate::config::{ServeError, ServerOptions};
use crate::limits::REFUSED_MAX;
use crate::session;
use crate::shared::{Peer, Shared};
use crate::store::Store;
use crate::threads::Threads;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How often the server looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long connections may take to send what they have when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// How long it waits after the system gave no connection, for want of files or memory.
const BREATHER: Duration = Duration::from_millis(50);

/// Where a server listens.
#[derive(Debug, Clone)]
pub struct Listening {
    /// Its addresses, with the ports that the system chose.
    pub addresses: Vec<SocketAddr>,
    /// Its Unix socket.
    pub socket: Option<PathBuf>,
}

/// Serves clients until `stop` says so; then answers what was submitted, and closes the store.
/// `ready` learns where the server listens.
///
/// # Errors
/// Why the server does not run, or how the store was not closed.
pub fn serve(
    options: &ServerOptions,
    store: Store,
    ready: impl FnOnce(&Listening),
    stop: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let addresses = options.addresses()?;
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
        shared: Arc::new(Shared::new(store.clone(), verifier, options.statement_timeout, stopped)),
        threads: Arc::clone(&threads),
    });
    let served = runtime.block_on(run(options, &addresses, &doors, &stopping, ready, stop));
    drop((runtime, doors));
    Arc::into_inner(threads).expect("the doors are closed").end();
    let closed = store.close();
    served?;
    Ok(closed?)
}

async fn run(
    options: &ServerOptions,
    addresses: &[SocketAddr],
    doors: &Arc<Doors>,
    stopping: &watch::Sender<bool>,
    ready: impl FnOnce(&Listening),
    stop: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let mut listening = Listening { addresses: Vec::new(), socket: None };
    let mut tasks = Vec::new();
    for address in addresses {
        let failed = |error| ServeError::Listen { address: address.to_string(), error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        listening.addresses.push(listener.local_addr().map_err(failed)?);
        tasks.push(tokio::spawn(Arc::clone(doors).tcp(listener)));
    }
    if let Some(directory) = &options.socket_directory {
        let port = listening.addresses.first().map_or(0, SocketAddr::port);
        let path = directory.join(format!(".s.PGSQL.{port}"));
        let listener = unix_listener(&path)?;
        tasks.push(tokio::spawn(Arc::clone(doors).unix(listener)));
        listening.socket = Some(path);
    }
    ready(&listening);
    while !stop() {
        tokio::time::sleep(LOOK).await;
    }
    tasks.iter().for_each(|task| task.abort());
    stopping.send_replace(true);
    let all = u32::try_from(options.connections_max).unwrap_or(u32::MAX);
    // A client that does not read its answers in time loses them, not what it wrote.
    let _ = tokio::time::timeout(GRACE, doors.connections.acquire_many(all)).await;
    if let Some(path) = &listening.socket {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
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
        loop {
            match listener.accept().await.and_then(|(socket, address)| {
                // Answers are sent whole; without this they would wait for more.
                let _ = socket.set_nodelay(true);
                Ok((socket.into_std()?, address))
            }) {
                Ok((socket, address)) => self.admit(Some(address.ip()), move || {
                    Ok(TcpStream::from_std(socket)?.into_split())
                }),
                Err(_) => tokio::time::sleep(BREATHER).await,
            }
        }
    }

    async fn unix(self: Arc<Doors>, listener: UnixListener) {
        loop {
            match listener.accept().await.and_then(|(socket, _)| socket.into_std()) {
                Ok(socket) => {
                    self.admit(None, move || Ok(UnixStream::from_std(socket)?.into_split()));
                }
                Err(_) => tokio::time::sleep(BREATHER).await,
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
        R: AsyncRead + Closing + Unpin + Send + Sync + 'static,
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
