//! The command `serve`: a server of PostgreSQL's protocol.

mod descriptors;
mod log;
mod memory;
mod screen;

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use server::store::{DeviceSpec, OpenError, Store, StoreOptions};
use server::{Databases, FolderOptions, Listening, ServeError, ServerOptions, Sockets};
use tracing::{info, warn};

use self::memory::{FolderShares, GiveBack, Shares};
use crate::args::{LogFormat, ServeArguments};
use crate::lost::{self, STORE_FAILED};
use crate::output::{Done, Failure, tell};
use crate::signals::Signals;

/// The JSON object printed when the server listens.
#[derive(Serialize)]
struct Ready {
    addresses: Vec<String>,
    socket: Option<String>,
    store: String,
    statement_memory_bytes: usize,
    data_bytes_max: Option<u64>,
    user: &'static str,
    database: &'static str,
}

/// Runs a server until SIGINT or SIGTERM.
///
/// # Errors
/// The reason why the server did not start, failed, or did not close its store.
pub(crate) fn run(arguments: &ServeArguments) -> Done {
    log::begin(&arguments.log);
    let is_lost = lost::of_server();
    let shares = Shares::of(arguments)?;
    let folder = folder_shares(arguments, &shares)?;
    let databases = folder.as_ref().map_or(0, |folder| folder.open_max - 1);
    let options = ServerOptions {
        listen: arguments.listen.clone(),
        socket_directory: arguments.socket_dir.clone(),
        password: arguments.password_file.as_deref().map(password).transpose()?,
        connections_max: descriptors::connections(arguments.connections, databases),
        statement_timeout: arguments.statement_timeout_ms.map(Duration::from_millis),
        log_min_duration: arguments.log.log_min_duration_ms.map(Duration::from_millis),
        is_lost,
    };
    pmem::keep_little_freed();
    let signals = Signals::listen()?;
    let hung_up = signals.outlive_terminal()?;
    // First: who cannot listen makes no store.
    let sockets = Sockets::bind(&options).map_err(failure)?;
    let Place { databases, name } = place(arguments, &shares, folder)?;
    let store = databases.default_store();
    let stop = signals.stop();
    let is_for_people = !arguments.json && arguments.log.log_format == LogFormat::Text;
    let say = |listening: &Listening| {
        let mut text = match arguments.json {
            true => json(&name, listening, &shares),
            false => plain(listening, &shares),
        };
        text.push('\n');
        let mut output = std::io::stdout();
        // The server serves, whether or not its words are read.
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
        if let Some(line) = screen::try_it(listening).filter(|_| is_for_people) {
            tell(&line);
        }
    };
    let give_back = RefCell::new(GiveBack::of(&store));
    let asked = || {
        give_back.borrow_mut().look();
        if hung_up.swap(false, Ordering::Relaxed) {
            info!("SIGHUP changes nothing: SIGTERM or SIGINT ends the server");
        }
        stop.asked()
    };
    let served = server::serve_at(sockets, &options, databases, say, asked).map_err(failure);
    if options.is_lost.load(Ordering::Relaxed) {
        // Why was told.
        return Err(Failure { messages: Vec::new(), code: STORE_FAILED });
    }
    served?;
    info!("closed {name} with a checkpoint");
    Ok(())
}

/// The databases of a server.
struct Place {
    databases: Databases,
    /// The device, or the folder of databases.
    name: String,
}

/// Opens the store or the folder of databases.
fn place(
    arguments: &ServeArguments,
    shares: &Shares,
    folder: Option<FolderShares>,
) -> Result<Place, Failure> {
    if let (Some(directory), Some(shares)) = (&arguments.databases, &folder) {
        return open_folder(arguments, shares, directory);
    }
    let path = arguments.path.as_ref().expect("a store, if there is no folder");
    let device = device(path.as_ref())?;
    let store = open(of_store(arguments, shares, &device), &device)?;
    Ok(Place { databases: store.into(), name: device.to_string() })
}

/// Returns the memory of the databases of a folder, if the server has one.
fn folder_shares(
    arguments: &ServeArguments,
    shares: &Shares,
) -> Result<Option<FolderShares>, Failure> {
    if arguments.databases.is_none() {
        return Ok(None);
    }
    let mut folder = FolderShares::of(shares, &arguments.limits)?;
    folder.open_max = 1 + descriptors::databases(folder.open_max - 1);
    Ok(Some(folder))
}

/// Opens a folder of databases, of which the others than the default one stay closed.
fn open_folder(
    arguments: &ServeArguments,
    shares: &FolderShares,
    directory: &Path,
) -> Result<Place, Failure> {
    // Devices are set for each.
    let device = DeviceSpec::File(directory.to_owned());
    let mut others = of_store(arguments, &shares.others, &device);
    others.plans_bytes_max /= 8;
    let options = FolderOptions {
        directory: directory.to_owned(),
        default: of_store(arguments, &shares.default, &device),
        others,
        open_max: shares.open_max,
    };
    let name = format!("the databases in {}", directory.display());
    tell_opening(&name);
    let databases = Databases::open(options)
        .map_err(|error| Failure::new(format!("cannot open {name}: {error}")))?;
    tell_opened(&databases.default_store());
    Ok(Place { databases, name })
}

fn of_store(arguments: &ServeArguments, shares: &Shares, device: &DeviceSpec) -> StoreOptions {
    let mut options = StoreOptions {
        data_bytes_max: shares.image.unwrap_or(arguments.limits.image_limit_bytes()),
        log_bytes_max: arguments.limits.log_limit_bytes,
        archive: arguments.archive.clone(),
        archive_delay: Duration::from_secs(arguments.archive_delay),
        memory_limit_bytes: shares.limit,
        statement_memory_bytes: shares.statements,
        reclaim: pmem::give_back_freed,
        ..StoreOptions::at(device.clone())
    };
    options.plans_bytes_max = options.plans_bytes_max.min(shares.statements / 4);
    if let Some(workers) = arguments.workers {
        options.workers = usize::try_from(workers).expect("at most 64");
    }
    options
}

/// What is said after a replay on a full disk.
const UNNOTED: &str = "the disk is full: the log was replayed without the file `replay`, \
                       which names a call that ends the process; free space";

/// Opens the store, and says what is to be known of that.
fn open(options: StoreOptions, device: &DeviceSpec) -> Result<Store, Failure> {
    tell_opening(&device.to_string());
    let store = Store::open(options).map_err(|error| cannot_open(device, &error))?;
    tell_opened(&store);
    Ok(store)
}

/// Logs that a store is being opened, before a replay that may take long.
fn tell_opening(name: &str) {
    info!("nvcaracal {}: opening {name}", env!("CARGO_PKG_VERSION"));
}

/// Logs the part of a recovery's report that the library does not log.
fn tell_opened(store: &Store) {
    if store.database().recovery().deaths_unnoted {
        warn!("{UNNOTED}");
    }
}

/// Returns the device of a store, which may not exist yet.
fn device(path: &Path) -> Result<DeviceSpec, Failure> {
    let named = path.to_str().and_then(|text| text.parse().ok());
    match named {
        Some(DeviceSpec::Crash) => Err(Failure::usage("device crash is for tests alone")),
        Some(spec) => Ok(spec),
        None if path.is_file() => Ok(DeviceSpec::Dax(path.to_owned())),
        None => Ok(DeviceSpec::File(path.to_owned())),
    }
}

fn password(file: &Path) -> Result<String, Failure> {
    check_secret(file)?;
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("cannot read the password in {}: {error}", file.display()))
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Refuses a file that all users of the machine may read or write. One that cannot be looked at is
/// told when it is read.
fn check_secret(file: &Path) -> Done {
    const OTHERS: u32 = 0o007;
    let Ok(found) = std::fs::metadata(file) else { return Ok(()) };
    if !found.is_file() || found.permissions().mode() & OTHERS == 0 {
        return Ok(());
    }
    let path = file.display();
    Err(Failure::usage(format!(
        "all users of this machine have access to {path}, in which the password is: take it from \
         them (chmod 600 {path}), and choose another password if they may have read it"
    )))
}

fn failure(error: ServeError) -> Failure {
    match error {
        ServeError::Options(message) => Failure::usage(message),
        stopped @ ServeError::Stopped(_) => {
            Failure { code: STORE_FAILED, ..Failure::new(stopped.to_string()) }
        }
        other => Failure::new(other.to_string()),
    }
}

fn cannot_open(device: &DeviceSpec, error: &OpenError) -> Failure {
    Failure::new(format!("cannot open {device}: {error}"))
}

fn plain(listening: &Listening, shares: &Shares) -> String {
    let all = listening.addresses.iter().map(ToString::to_string);
    let all = all.chain(listening.socket.iter().map(|path| path.display().to_string()));
    let all: Vec<String> = all.collect();
    let (all, memory) = (all.join(" and "), shares.plain());
    format!("listening at {all}; user and database nvcaracal; {memory}")
}

fn json(store: &str, listening: &Listening, shares: &Shares) -> String {
    let ready = Ready {
        addresses: listening.addresses.iter().map(ToString::to_string).collect(),
        socket: listening.socket.as_ref().map(|path| path.display().to_string()),
        store: store.to_owned(),
        statement_memory_bytes: shares.statements,
        data_bytes_max: shares.image,
        user: "nvcaracal",
        database: "nvcaracal",
    };
    serde_json::to_string(&ready).expect("texts are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_failed_has_an_exit_code_of_its_own() {
        let store = Store::open(StoreOptions::memory()).unwrap();
        let database = store.database().clone();
        assert!(database.stopped().is_none());
        store.close().unwrap();
        let told = failure(ServeError::Stopped(database.stopped().unwrap()));
        assert_eq!(told.code, 4);
        assert!(told.messages[0].contains("start the server again"), "{:?}", told.messages);
    }

    #[test]
    fn a_password_that_all_may_read_is_refused() {
        let room = tempfile::tempdir().unwrap();
        let file = room.path().join("password");
        std::fs::write(&file, "pencil\n").unwrap();
        let mode = |mode| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            password(&file)
        };
        for open in [0o644, 0o604, 0o602, 0o777] {
            let refused = mode(open).unwrap_err();
            assert_eq!(refused.code, 2);
            assert!(refused.messages[0].contains("chmod 600"), "{:?}", refused.messages);
        }
        for closed in [0o600, 0o640, 0o400] {
            assert_eq!(mode(closed).unwrap(), "pencil");
        }
    }
}
