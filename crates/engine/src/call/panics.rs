//! Panics of what users wrote: each fails the call in which it happened, and no other.

use std::any::Any;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic said.
pub type PanicText = Box<str>;

/// Runs what may panic; what it said, if it did.
///
/// # Errors
/// The text of the panic. Its payload is dropped here, where it may panic once more without harm.
#[inline(always)]
pub fn caught<R>(run: impl FnOnce() -> R) -> Result<R, PanicText> {
    catch_unwind(AssertUnwindSafe(run)).map_err(text_of)
}

/// The text of a panic, of which nothing is left then.
#[cold]
#[inline(never)]
pub fn text_of(panic: Box<dyn Any + Send>) -> PanicText {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no message").into();
    // The payload is a value of a type of the user's.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        forget(another);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    #[test]
    fn a_payload_that_panics_when_it_is_dropped_is_one_panic() {
        struct Again(u32);

        impl Drop for Again {
            fn drop(&mut self) {
                panic_any(Again(self.0 + 1));
            }
        }

        assert_eq!(caught(|| 7).unwrap(), 7);
        let number = 9;
        let texts = [
            caught(|| panic!("text")),
            caught(|| panic!("number {number}")),
            caught(|| panic_any(Again(0))),
        ];
        let texts = texts.map(|text: Result<(), _>| text.unwrap_err());
        assert_eq!(texts.each_ref().map(|text| &**text), ["text", "number 9", "no message"]);
    }
}
