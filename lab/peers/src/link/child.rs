//! A database in a process of its own, so that what that process takes is what the database takes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use super::Link;
use super::cgroup::Group;
use crate::order::{Answer, Order};
use crate::peer::{Error, Result};
use crate::settings::Memory;

/// The process; killed when it is no longer needed.
pub(crate) struct Child {
    name: &'static str,
    process: std::process::Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Removed after the process has ended.
    group: Option<Group>,
}

impl Child {
    /// Starts a program that takes orders ([`crate::serve`]), in a control group with a limit of
    /// memory if there is one.
    pub(crate) fn start(
        name: &'static str,
        mut program: Command,
        memory: Option<&Memory>,
    ) -> Result<Self> {
        let group = memory.map(|memory| Group::make(name, memory)).transpose()?;
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = program.spawn().map_err(|error| Error::of(name, error))?;
        let (orders, answers) = process
            .stdin
            .take()
            .zip(process.stdout.take())
            .ok_or_else(|| Error::of(name, "its process has no standard input and output"))?;
        let answers = BufReader::new(answers);
        let child = Self { name, process, orders, answers, group };
        if let Some(group) = &child.group {
            // It waits for its first order, and has hardly any memory until then.
            group.add(child.process.id())?;
        }
        Ok(child)
    }

    /// Why there is no answer.
    fn ended(&mut self) -> Error {
        let status = match self.process.wait() {
            Ok(status) => status,
            Err(error) => return Error::of(self.name, error),
        };
        if let Some(group) = &self.group
            && group.has_killed()
        {
            let what = format!("its process was killed at the limit of {} bytes", group.bytes());
            return Error::refused(self.name, what);
        }
        match status.signal() {
            Some(signal) => Error::of(self.name, format!("its process ended by signal {signal}")),
            None => Error::of(self.name, format!("its process ended: {status}")),
        }
    }
}

impl Link for Child {
    fn ask(&mut self, order: &Order) -> Result<Answer> {
        let failed = |error: &dyn std::fmt::Display| Error::of(self.name, error);
        let mut line = serde_json::to_vec(order).map_err(|error| failed(&error))?;
        line.push(b'\n');
        if self.orders.write_all(&line).and_then(|()| self.orders.flush()).is_err() {
            return Err(self.ended());
        }
        let mut answer = String::new();
        match self.answers.read_line(&mut answer) {
            Ok(0) | Err(_) => return Err(self.ended()),
            Ok(_) => {}
        }
        match serde_json::from_str(&answer) {
            Ok(Answer::Failed(error)) => Err(error),
            Ok(answer) => Ok(answer),
            Err(error) => Err(Error::of(self.name, error)),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that has ended already is no error.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a process that does this says instead of an answer.
    fn error_of(script: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        let mut child = Child::start("fake", shell, None).unwrap();
        child.ask(&Order::Finish).unwrap_err().to_string()
    }

    #[test]
    fn a_process_that_ends_is_an_error_and_its_answers_are_passed_on() {
        assert_eq!(error_of("kill -9 $$"), "fake: its process ended by signal 9");
        let ended = error_of("read order; exit 7");
        assert!(ended.starts_with("fake: its process ended: exit status: 7"), "{ended}");
        let refused = r#"read order; echo '{"Failed":{"Refused":"too much"}}'; read order"#;
        assert_eq!(error_of(refused), "too much");
        assert!(error_of("read order; echo nonsense; read order").starts_with("fake: "));
    }
}
