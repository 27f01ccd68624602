//! Where the archive of a log is, and when epochs go there.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::in_range;
use crate::error::{Error, Result};

/// How long after their answers epochs are archived, unless the program says otherwise.
const DELAY: Duration = Duration::from_secs(10);
const DELAY_MIN: Duration = Duration::from_millis(10);
const DELAY_MAX: Duration = Duration::from_secs(3600);

/// How long after its answers an epoch is in an archive; `None` if there is none.
///
/// # Errors
/// If a delay is out of its range, or there is nothing that it is for.
pub(super) fn delay(archive: Option<&Path>, said: Option<Duration>) -> Result<Option<Duration>> {
    let range = DELAY_MIN.as_millis()..=DELAY_MAX.as_millis();
    let delay = said.unwrap_or(DELAY);
    in_range("archive_delay (ms)", delay.as_millis(), range)?;
    if said.is_some() && archive.is_none() {
        return Err(Error::mistake(
            "an archive_delay is set, and no archive: say in which directory the log is kept \
             (Options::archive), or set no delay",
        ));
    }
    Ok(archive.map(|_| delay))
}

/// Refuses an archive in the directory of its database, and the other way round: what is in the way
/// of one would be so of both, and who removes or restores one of them has lost the other.
pub(super) fn check_apart(database: &Path, archive: &Path) -> Result<()> {
    let (Ok(store), Ok(kept)) = (resolved(database), resolved(archive)) else {
        // What cannot be looked at is told by who opens it.
        return Ok(());
    };
    let how = match (kept.starts_with(&store), store.starts_with(&kept)) {
        (true, true) => "is the directory of its database",
        (true, false) => "is inside of the directory of its database",
        (false, true) => "has the directory of its database in it",
        (false, false) => return Ok(()),
    };
    let (archive, database) = (archive.display(), database.display());
    Err(Error::mistake(format!(
        "the archive {archive} {how}, {database}: choose a directory beside it, better on another \
         disk"
    )))
}

/// A path without links and dots, of which the end need not be there.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let there = path.ancestors().find(|part| part.symlink_metadata().is_ok());
    let there = there.ok_or(io::ErrorKind::NotFound)?;
    let rest = path.strip_prefix(there).map_err(io::Error::other)?;
    let there = there.canonicalize()?;
    Ok(rest.components().fold(there, |mut place, part| {
        match part {
            std::path::Component::ParentDir => drop(place.pop()),
            part => place.push(part),
        }
        place
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_and_its_database_are_apart() {
        let room = tempfile::tempdir().unwrap();
        let at = |name: &str| room.path().join(name);
        std::fs::create_dir_all(at("store/inner")).unwrap();
        std::os::unix::fs::symlink(at("store"), at("link")).unwrap();
        let told = |store: &str, archive: &str| {
            check_apart(&at(store), &at(archive)).err().map(|error| error.to_string())
        };
        for (archive, how) in [
            ("store", "is the directory of"),
            ("link", "is the directory of"),
            ("store/../store/.", "is the directory of"),
            ("none/../store", "is the directory of"),
            ("store/archive", "is inside of"),
            ("link/inner/archive", "is inside of"),
            ("", "has the directory of"),
            (".", "has the directory of"),
        ] {
            let told = told("store", archive).unwrap_or_else(|| panic!("{archive} is taken"));
            assert!(told.contains(how), "{archive}: {told}");
        }
        assert!(told("new/store", "new").is_some_and(|told| told.contains("has the directory")));
        for archive in ["archive", "store2", "storeroom/store", "store/../archive"] {
            assert_eq!(told("store", archive), None, "{archive}");
        }
    }

    #[test]
    fn a_delay_is_for_an_archive() {
        let (archive, second) = (Some(Path::new("archive")), Duration::from_secs(1));
        assert_eq!(delay(None, None).unwrap(), None);
        assert_eq!(delay(archive, None).unwrap(), Some(DELAY));
        assert_eq!(delay(archive, Some(second)).unwrap(), Some(second));
        assert!(delay(None, Some(second)).unwrap_err().is_mistake());
        for wrong in [DELAY_MIN / 2, DELAY_MAX * 2] {
            assert!(delay(archive, Some(wrong)).unwrap_err().is_limit());
        }
    }
}
