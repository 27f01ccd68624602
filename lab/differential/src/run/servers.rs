//! PostgreSQL, which runs already, and the server under test, which starts for each scenario.

use crate::wire::{Address, Client, Event};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Both servers, each with a connection.
pub(crate) struct Servers {
    postgresql: Address,
    program: PathBuf,
    /// The folder of the store that is served.
    store: PathBuf,
    child: Option<Child>,
    /// A connection to PostgreSQL that makes binary forms, whatever block `theirs` is in.
    forms: Option<Client>,
    pub(crate) theirs: Client,
    pub(crate) ours: Client,
}

impl Servers {
    /// Starts the server under test (`program serve`) on an empty store within `room`,
    /// and empties the database of the PostgreSQL at `postgresql`.
    pub(crate) fn fresh(postgresql: &Address, program: &Path, room: &Path) -> io::Result<Servers> {
        let store = room.join("store");
        if store.exists() {
            std::fs::remove_dir_all(&store)?;
        }
        let mut theirs = Client::connect(postgresql)?;
        let answer = theirs.simple(
            "SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public; \
             RESET client_min_messages; SET statement_timeout = '20s'",
        );
        if let Some(failure) = answer.iter().find(|event| is_failure(event)) {
            return Err(io::Error::other(format!("PostgreSQL is not emptied: {failure:?}")));
        }
        let theirs = Client::connect(postgresql)?;
        let (child, ours) = serve(program, &store)?;
        let (postgresql, program) = (postgresql.clone(), program.to_owned());
        Ok(Servers { postgresql, program, store, child: Some(child), forms: None, theirs, ours })
    }

    /// Kills the server under test and opens its store again; new connections to both.
    pub(crate) fn kill_and_open(&mut self) -> io::Result<()> {
        self.kill();
        let (child, ours) = serve(&self.program, &self.store)?;
        self.child = Some(child);
        self.ours = ours;
        self.theirs = Client::connect(&self.postgresql)?;
        Ok(())
    }

    /// The connection to PostgreSQL that makes binary forms of values.
    pub(crate) fn forms(&mut self) -> Option<&mut Client> {
        if self.forms.is_none() {
            self.forms = Client::connect(&self.postgresql).ok();
        }
        self.forms.as_mut()
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself, which an answer has told.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_failure(event: &Event) -> bool {
    matches!(event, Event::Failed { .. } | Event::Lost(_))
}

/// Starts the program on a store and connects to it.
fn serve(program: &Path, store: &Path) -> io::Result<(Child, Client)> {
    let mut child = Command::new(program)
        .arg("serve")
        .arg(store)
        .args(["--listen", "127.0.0.1:0", "--json", "--workers", "2"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut said = String::new();
    let out = child.stdout.take().ok_or_else(|| io::Error::other("no output of the server"))?;
    BufReader::new(out).read_line(&mut said)?;
    let connected = address(&said).and_then(|address| Client::connect(&address));
    match connected {
        Ok(client) => Ok((child, client)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

fn address(said: &str) -> io::Result<Address> {
    let unknown =
        || io::Error::other(format!("the server does not say where it listens: {said:?}"));
    let json: serde_json::Value = serde_json::from_str(said).map_err(|_| unknown())?;
    let address = json["addresses"][0].as_str().ok_or_else(unknown)?;
    Ok(Address::Tcp(address.parse().map_err(|_| unknown())?))
}
