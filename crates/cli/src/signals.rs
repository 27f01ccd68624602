//! SIGINT and SIGTERM: the first one asks for an end in good order, the second one ends the process
//! at once. SIGHUP, which a terminal that closes sends, ends no server. SIGXFSZ ends nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bench::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::output::Failure;

/// What shells add to the number of a signal.
const SHELL_CODE: usize = 128;

/// Makes a write beyond the limit on file sizes an error, not the end of the process.
pub(crate) fn outlive_file_limit() -> Result<(), Failure> {
    // The write itself fails then, so the flag is not read.
    flag::register(SIGXFSZ, Arc::default())
        .map(drop)
        .map_err(|e| Failure::new(format!("cannot listen to signal {SIGXFSZ}: {e}")))
}

/// Hears signals from its creation to the end of the process.
pub struct Signals {
    /// Number of the signal that came; 0: none.
    came: Arc<AtomicUsize>,
}

impl Signals {
    /// Begins to listen; from now on one signal alone ends nothing.
    pub fn listen() -> Result<Self, Failure> {
        let came = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // What is registered first runs first: a signal must look whether it is the second one
            // before it is counted itself.
            flag::register_conditional_default(signal, Arc::clone(&again))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&came), signal as usize))
                .and_then(|_| flag::register(signal, Arc::clone(&again)))
                .map_err(|e| Failure::new(format!("cannot listen to signal {signal}: {e}")))?;
        }
        Ok(Self { came })
    }

    /// From now on SIGHUP ends nothing: the flag says that one has come.
    pub fn outlive_terminal(&self) -> Result<Arc<AtomicBool>, Failure> {
        let came = Arc::new(AtomicBool::new(false));
        flag::register(SIGHUP, Arc::clone(&came))
            .map_err(|e| Failure::new(format!("cannot listen to signal {SIGHUP}: {e}")))?;
        Ok(came)
    }

    /// Stops a run once a signal has come.
    pub fn stop(&self) -> Stop {
        let came = Arc::clone(&self.came);
        Stop::when(move || came.load(Ordering::Relaxed) != 0)
    }

    /// The exit code of a command that a signal interrupted: 130 or 143.
    pub fn exit_code(&self) -> u8 {
        let code = SHELL_CODE + self.came.load(Ordering::Relaxed);
        u8::try_from(code).expect("only signals of small numbers are listened to")
    }
}
