//! The acknowledgement log: one line `epoch digest` for each epoch, synced when its answers are
//! given.
//!
//! It stands for the clients: what they were told must still be true after a crash. So at a resume
//! the log is read first, and a recovered store that is older than the last line, or has another
//! digest, is an error that nothing may hide.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{BenchError, Result};

/// An open acknowledgement log.
#[derive(Debug)]
pub struct AckLog {
    path: PathBuf,
    file: File,
    last: Option<(u64, String)>,
}

impl AckLog {
    /// Starts an empty log; whatever was in the file is no longer there.
    ///
    /// # Errors
    /// `Io`.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|e| BenchError::io("create", path, e))?;
        let log = Self { path: path.to_path_buf(), file, last: None };
        log.sync_directory()?;
        Ok(log)
    }

    /// Opens the log of an earlier run to go on with it; an empty one if there is none. A line
    /// without an end, which a kill may leave, was never given to anybody and is cut off.
    ///
    /// # Errors
    /// `Io`; `Store` naming the line that is no `epoch digest`.
    pub fn resume(path: &Path) -> Result<Self> {
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::create(path),
            Err(error) => return Err(BenchError::io("open", path, error)),
        };
        let io = |what| move |e| BenchError::io(what, path, e);
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(io("read"))?;
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64).map_err(io("truncate"))?;
        file.seek(SeekFrom::End(0)).map_err(io("seek in"))?;
        let last = parse(&text[..whole])
            .map_err(|why| BenchError::Store(format!("{}: {why}", path.display())))?;
        Ok(Self { path: path.to_path_buf(), file, last })
    }

    /// Epoch and digest of the last line.
    #[must_use]
    pub fn last(&self) -> Option<(u64, &str)> {
        self.last.as_ref().map(|(epoch, digest)| (*epoch, digest.as_str()))
    }

    /// Compares a recovered store with what was acknowledged, and catches up: a store may be one
    /// epoch ahead, if it was killed after the epoch was committed and before the line was written.
    ///
    /// # Errors
    /// `Difference` if an acknowledged epoch was lost or came out differently.
    pub fn check_recovered(&mut self, epoch: u64, digest: &str) -> Result<()> {
        let path = self.path.display();
        match self.last() {
            Some((acknowledged, _)) if epoch < acknowledged => {
                Err(BenchError::Difference(format!(
                    "{path} acknowledges epoch {acknowledged}, but the recovered store is at epoch \
                     {epoch}: acknowledged epochs were lost"
                )))
            }
            Some((acknowledged, told)) if epoch == acknowledged && digest != told => {
                Err(BenchError::Difference(format!(
                    "{path} acknowledges digest {told} for epoch {epoch}, but the recovered store \
                     has {digest}"
                )))
            }
            Some((acknowledged, _)) if epoch == acknowledged => Ok(()),
            _ if epoch == 0 => Ok(()),
            _ => self.write(epoch, digest),
        }
    }

    /// Adds a line and makes it durable.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&mut self, epoch: u64, digest: &str) -> Result<()> {
        let line = format!("{epoch} {digest}\n");
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|e| BenchError::io("write and sync", &self.path, e))?;
        self.last = Some((epoch, digest.to_string()));
        Ok(())
    }

    fn sync_directory(&self) -> Result<()> {
        let parent = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let sync = File::open(parent).and_then(|directory| directory.sync_all());
        sync.map_err(|e| BenchError::io("sync directory", parent, e))
    }
}

/// Reads whole lines; returns the last one.
fn parse(text: &str) -> std::result::Result<Option<(u64, String)>, String> {
    let mut last: Option<(u64, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: &str| format!("line {} is {line:?}: {why}", number + 1);
        let (epoch, digest) =
            line.split_once(' ').ok_or_else(|| wrong("expected `epoch digest`"))?;
        let epoch: u64 = epoch.parse().map_err(|_| wrong("the epoch is no number"))?;
        if digest.len() != 32 || !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong("the digest is not 32 hexadecimal digits"));
        }
        if last.as_ref().is_some_and(|(before, _)| *before >= epoch) {
            return Err(wrong("epochs must increase"));
        }
        last = Some((epoch, digest.to_string()));
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "00000000000000000000000000000001";
    const B: &str = "00000000000000000000000000000002";

    fn log(text: &str) -> (tempfile::TempDir, Result<AckLog>) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("ack");
        std::fs::write(&path, text).expect("a written file");
        let log = AckLog::resume(&path);
        (dir, log)
    }

    #[test]
    fn o_25_a_recovered_store_must_not_be_older_than_what_was_acknowledged() {
        let (_dir, log) = log(&format!("1 {A}\n2 {B}\n"));
        let mut log = log.expect("a good log");
        let lost = log.check_recovered(1, A).expect_err("epoch 2 was lost").to_string();
        assert!(lost.contains("acknowledges epoch 2") && lost.contains("at epoch 1"), "{lost}");
        let other = log.check_recovered(2, A).expect_err("another digest").to_string();
        assert!(other.contains(A) && other.contains(B), "{other}");
        log.check_recovered(2, B).expect("the same");
        log.check_recovered(3, A).expect("committed, not yet acknowledged");
        assert_eq!(log.last(), Some((3, A)));
    }

    #[test]
    fn a_torn_line_is_cut_off_and_a_wrong_one_is_named() {
        let (dir, torn) = log(&format!("1 {A}\n2 0000"));
        assert_eq!(torn.expect("a good log").last(), Some((1, A)));
        let left = std::fs::read_to_string(dir.path().join("ack")).expect("the file");
        assert_eq!(left, format!("1 {A}\n"));
        for wrong in ["nonsense", "x 00", "1 zz", &format!("1 {A}\n1 {A}")] {
            let (_dir, log) = log(&format!("{wrong}\n"));
            let message = log.expect_err("a wrong line").to_string();
            assert!(message.contains("line "), "{message}");
        }
    }
}
