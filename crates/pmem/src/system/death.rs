//! What a thread was at when it ended its process: by an abort, a stack overflow or another fault.
//!
//! While a thread is at something, it has a *note*: a word of shared memory and a value for it. A
//! handler of the signals that end a process stores the value, and passes the signal on to the
//! handler of before. A process that is ended from outside (a kill, the kernel's lack of memory, an
//! operator's signal) stores nothing, so the word tells the two apart.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is stored where, if this thread ends the process.
#[derive(Clone, Copy)]
struct Note {
    /// Null: nothing is.
    word: *const AtomicU64,
    value: u64,
}

const NOTHING: Note = Note { word: ptr::null(), value: 0 };

thread_local! {
    static NOTE: Cell<Note> = const { Cell::new(NOTHING) };
}

/// Puts the note of before back, also when a panic passes.
struct Restore(Note);

impl Drop for Restore {
    fn drop(&mut self) {
        NOTE.set(self.0);
    }
}

/// Runs something, during which this thread has a note: if it ends the process, `value` is stored
/// to `word`. Notes may be nested; the innermost counts.
pub(crate) fn noting<R>(word: &AtomicU64, value: u64, run: impl FnOnce() -> R) -> R {
    system::listen();
    let before = Restore(NOTE.replace(Note { word, value }));
    let result = run();
    drop(before);
    // A handler of before has gone on after a fault.
    if word.load(Ordering::Relaxed) == value {
        let _ = word.compare_exchange(value, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
    result
}

/// This thread is about to end the process for a reason of its own, whatever it is at.
pub(crate) fn take_note_back() {
    NOTE.set(NOTHING);
}

/// Stores what the note of this thread says. Called by a handler of a signal.
#[cfg_attr(any(not(target_os = "linux"), miri), expect(dead_code, reason = "there is no handler"))]
fn store_note() {
    let note = NOTE.try_with(Cell::get).unwrap_or(NOTHING);
    if !note.word.is_null() {
        // SAFETY: the thread is in `noting`, which borrows the word; the signal is its own.
        unsafe { (*note.word).store(note.value, Ordering::Relaxed) };
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod system {
    pub(super) fn listen() {}
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::mem::{MaybeUninit, transmute};
    use std::sync::OnceLock;

    use libc::{SIG_DFL, SIG_IGN, c_int, c_void, sigaction, siginfo_t};

    /// The signals of an abort and of faults.
    const SIGNALS: [c_int; 5] =
        [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

    /// The process that listens, and what it did with each signal before.
    struct Before {
        process: libc::pid_t,
        actions: [Option<sigaction>; SIGNALS.len()],
    }

    static BEFORE: OnceLock<Before> = OnceLock::new();

    /// Listens from the first call on to the end of the process.
    pub(super) fn listen() {
        if BEFORE.get().is_some() {
            return;
        }
        // What was before is known first: a handler looks at it.
        // SAFETY: asks who this process is.
        let process = unsafe { libc::getpid() };
        let before = Before { process, actions: SIGNALS.map(|signal| change(signal, None)) };
        if BEFORE.set(before).is_ok() {
            // SAFETY: all bytes of an action may be zero.
            let mut action: sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = hear;
            action.sa_sigaction = handler as usize;
            // A thread whose stack is full has another one for this.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            for signal in SIGNALS {
                change(signal, Some(&action));
            }
        }
    }

    /// Sets what is done with a signal, if that is given; returns what was before, if it is known.
    fn change(signal: c_int, to: Option<&sigaction>) -> Option<sigaction> {
        let to = to.map_or(std::ptr::null(), std::ptr::from_ref);
        let mut before = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: both are actions, or none is given. Zeroed bytes are one that says nothing.
        unsafe {
            (libc::sigaction(signal, to, before.as_mut_ptr()) == 0).then(|| before.assume_init())
        }
    }

    extern "C" fn hear(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let Some(before) = BEFORE.get() else { return };
        // SAFETY: the system gives a handler of this kind the signal's information, of which the
        // sender is there if it was sent. The other call asks who this process is.
        let is_own = unsafe {
            let is_here = libc::getpid() == before.process;
            is_here && ((*info).si_code > 0 || (*info).si_pid() == before.process)
        };
        if is_own {
            super::store_note();
        }
        let at = SIGNALS.iter().position(|of| *of == signal);
        let action = at.and_then(|at| before.actions[at]);
        let handler = action.map_or(SIG_DFL, |action| action.sa_sigaction);
        if handler == SIG_DFL || handler == SIG_IGN {
            change(signal, action.as_ref());
            // SAFETY: the signal comes once more when this returns: a fault by itself, and one that
            // was sent by this.
            unsafe {
                if (*info).si_code <= 0 && handler == SIG_DFL {
                    libc::raise(signal);
                }
            }
        } else if action.is_some_and(|action| action.sa_flags & libc::SA_SIGINFO != 0) {
            // SAFETY: what was registered as a handler of this kind is one.
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                unsafe { transmute(handler) };
            handler(signal, info, context);
        } else {
            // SAFETY: what was registered as a handler of the other kind is one.
            let handler: extern "C" fn(c_int) = unsafe { transmute(handler) };
            handler(signal);
        }
    }
}
