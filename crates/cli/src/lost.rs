//! The end of a process whose store has a page that cannot be read, for which a thread waits: that
//! never goes on, so the process ends without it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::output::{Failure, tell};

/// The exit code of a server whose store has failed, for instance because a file could not be
/// written: a supervisor may start it again.
pub(crate) const STORE_FAILED: u8 = 4;

/// How long a server may take to tell its clients.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a server has lost its store; empty while there is no server.
static OF_SERVER: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// From now on such a page is a failure of the command, in words and with its exit code.
pub(crate) fn hear() {
    pmem::on_lost_page(end);
}

/// Returns what says so to a server, whose clients are told before the process ends.
pub(crate) fn of_server() -> Arc<AtomicBool> {
    Arc::clone(OF_SERVER.get_or_init(Arc::default))
}

#[expect(clippy::disallowed_methods, reason = "a thread of the store never ends, nor can main")]
fn end(why: &str) -> ! {
    if IS_ENDING.swap(true, Ordering::Relaxed) {
        // The first one ends the process.
        loop {
            std::thread::park();
        }
    }
    tell(&format!("error: {why}"));
    let code = match OF_SERVER.get() {
        None => Failure::new("").code,
        Some(is_lost) => {
            is_lost.store(true, Ordering::Relaxed);
            std::thread::sleep(PATIENCE);
            STORE_FAILED
        }
    };
    std::process::exit(i32::from(code))
}
