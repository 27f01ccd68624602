//! A server in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio_postgres::{Client, Config, NoTls};

use crate::support::{PATIENCE, PAUSE, command};

/// A server that is killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts one and waits until it listens.
    pub(crate) fn start(line: &str) -> Server {
        Server::try_start(line).unwrap_or_else(|| panic!("serve {line}: it does not listen"))
    }

    /// As [`Server::start`]; `None` if it ends before it listens.
    pub(crate) fn try_start(line: &str) -> Option<Server> {
        Server::heard(Server::spawn(line))
    }

    /// The same of a command that ends in one that says as JSON where it listens.
    pub(crate) fn of(command: &mut Command) -> Server {
        let child = command.stdout(Stdio::piped()).spawn().expect("a server");
        Server::heard(child).expect("it listens")
    }

    fn heard(mut child: Child) -> Option<Server> {
        let mut said = String::new();
        let output = child.stdout.as_mut().expect("a pipe");
        BufReader::new(output).read_line(&mut said).expect("a line");
        if said.is_empty() {
            child.wait().expect("a process of ours");
            return None;
        }
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said:?}"));
        let address = said["addresses"][0].as_str().expect("an address");
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Some(Server { child, port })
    }

    /// Starts one that is killed before it listens, or a moment after.
    pub(crate) fn start_and_kill(line: &str, after: Duration) {
        let mut child = Server::spawn(line);
        std::thread::sleep(after);
        child.kill().expect("a process of ours");
        child.wait().expect("a process of ours");
    }

    fn spawn(line: &str) -> Child {
        let line = format!("serve {line} --listen 127.0.0.1:0 --json");
        command(&line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a server")
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a process of ours");
    }

    /// Waits for the end; gives the exit code.
    pub(crate) fn ended(self) -> Option<i32> {
        self.ended_with().0
    }

    /// The same with what it has said on standard error, if that is a pipe.
    pub(crate) fn ended_with(mut self) -> (Option<i32>, String) {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a process of ours") {
                let mut said = String::new();
                if let Some(pipe) = &mut self.child.stderr {
                    pipe.read_to_string(&mut said).expect("a pipe of ours");
                }
                return (status.code(), said);
            }
            assert!(started.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(PAUSE);
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> (&'static str, u16) {
        ("127.0.0.1", self.port)
    }

    pub(crate) async fn connect(&self) -> Option<Client> {
        self.try_connect().await.ok()
    }

    pub(crate) async fn try_connect(&self) -> Result<Client, tokio_postgres::Error> {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user("nvcaracal").connect_timeout(PATIENCE);
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
