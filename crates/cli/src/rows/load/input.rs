//! The files that are loaded: ordinary ones, in UTF-8, read more than once.

use std::fmt;
use std::fs::{self, File};
use std::path::Path;

use crate::output::Failure;

/// A line of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'f> {
    pub(super) path: &'f Path,
    pub(super) line: u64,
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.path.display(), self.line)
    }
}

impl At<'_> {
    /// What is wrong there.
    pub(super) fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("{self}: {what}"))
    }
}

/// Opens a file of rows.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    let failed =
        |what: &dyn fmt::Display| Failure::new(format!("cannot read {}: {what}", path.display()));
    let data = fs::metadata(path).map_err(|error| failed(&error))?;
    if !data.is_file() {
        return Err(failed(&"it is no file; what is loaded is read twice, so a pipe will not do"));
    }
    File::open(path).map_err(|error| failed(&error))
}

/// Text that is in no encoding which is read here.
pub(super) const NO_UTF_8: &str = "this is no UTF-8: convert the file";

/// The text at the beginning of a file, without a byte order mark.
pub(super) fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(
            "the file begins with the byte order mark of UTF-16: convert it to UTF-8".into()
        );
    }
    let mut text = String::from_utf8(bytes).map_err(|_| NO_UTF_8.to_string())?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}
