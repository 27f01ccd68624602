//! CHECKPOINT: the library's, and all of the log is in its archive before it is answered.

use super::connection::Connection;
use super::failure;
use std::sync::Arc;
use std::thread::Builder;
use tokio::sync::oneshot;
use values::{Error, Result, SqlState};

impl Connection {
    /// Makes a checkpoint. One is made at a time, on a thread of its own: it waits for the disk.
    ///
    /// # Errors
    /// The database's; that of the archive, if it has not all epochs then.
    pub async fn checkpoint(&self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let _one = self.shared.checkpoints.lock().await;
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            let database = &shared.database;
            let made = database.checkpoint().map(|()| database.stats().archive_error);
            // The client may have gone.
            let _ = sender.send(made);
        };
        let thread = Builder::new().name("checkpoint".to_owned()).spawn(work);
        thread.map_err(|error| {
            Error::new(SqlState::OUT_OF_MEMORY, format!("there is no thread for it: {error}"))
        })?;
        match receiver.await {
            Ok(Ok(None)) => Ok(()),
            Ok(Ok(Some(why))) => Err(Error::new(
                SqlState::IO_ERROR,
                format!("the checkpoint is made, but the log is not archived: {why}"),
            )),
            Ok(Err(error)) => Err(failure::of_call(&error)),
            Err(_) => Err(failure::cut_off()),
        }
    }
}
