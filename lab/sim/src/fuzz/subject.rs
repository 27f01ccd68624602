//! What can be fuzzed, and what may become of it.

use super::checksums::repair;
use super::edit::{Edit, Editor, Files};
use crate::history::Random;

/// Changes, and whether checksums were made right afterwards.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) edits: Vec<Edit>,
    pub(crate) repaired: bool,
}

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Refused,
    Right,
    Older,
    Forged,
}

/// Something that is fuzzed.
pub(crate) trait Subject: Send {
    /// What is right, and who changes it.
    fn files(&self) -> (&Files, &Editor);

    /// Opens changed files, and compares.
    fn check(&self, files: &Files, case: &Case) -> Result<Verdict, String>;

    /// Any case.
    fn case(&self, random: &mut Random) -> Case {
        let (files, editor) = self.files();
        Case { edits: editor.edits(files, random), repaired: random.percent(50) }
    }

    /// The files of a case.
    fn apply(&self, case: &Case) -> Files {
        let mut files = self.files().0.clone();
        for edit in &case.edits {
            edit.apply(&mut files);
            if case.repaired {
                repair(&mut files, edit.file(), edit.place().unwrap_or(0));
            }
        }
        files
    }
}
