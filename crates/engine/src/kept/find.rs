//! Step 4, first half: whether the checkpoint has a root.

use pmem::Device;
use storage::{SegmentKind, SegmentUses, Store};

use super::Run;
use super::root::{HEADER_WORDS, Root};
use crate::error::Result;

/// What the segments of indexes hold.
#[derive(Debug)]
pub(crate) struct Found {
    /// Segments of blocks.
    pub(super) segments: SegmentUses,
    /// Where a root is, whatever it says.
    pub(super) run: Option<Run>,
    /// A root of the checkpoint's epoch.
    pub(super) root: Option<Root>,
    /// Its bytes.
    pub(super) root_bytes: u64,
}

impl Found {
    /// Whether there is a root of the checkpoint's epoch.
    pub(crate) fn has_root(&self) -> bool {
        self.root.is_some()
    }
}

/// Sorts the segments of indexes, and reads the root.
///
/// # Errors
/// The device's, if the root cannot be read.
pub(crate) fn find(store: &Store, segments: SegmentUses) -> Result<Found> {
    let (mut of_root, of_blocks): (Vec<_>, Vec<_>) =
        segments.into_iter().partition(|(_, entry)| entry.kind == SegmentKind::IndexRoot);
    of_root.sort_unstable_by_key(|(_, entry)| entry.ordinal);
    let first = of_root.first().map_or(0, |(segment, _)| *segment);
    let is_in_row = (0..)
        .zip(&of_root)
        .all(|(ordinal, (segment, entry))| entry.ordinal == ordinal && *segment == first + ordinal);
    if !is_in_row {
        // Nothing writes that: blocks all of them, and no root.
        let segments = of_root.into_iter().chain(of_blocks).collect();
        return Ok(Found { segments, run: None, root: None, root_bytes: 0 });
    }
    let run = (!of_root.is_empty()).then_some(Run { first, count: of_root.len() as u64 });
    if let Some(run) = run {
        let segments = store.segments();
        store.device().read_pages(run.offset(segments), run.bytes(segments))?;
    }
    let epoch = store.checkpoint().epoch;
    let found = run.and_then(|run| read(store, run)).filter(|(root, _)| root.epoch == epoch);
    let (root, root_bytes) = found.unzip();
    Ok(Found { segments: of_blocks, run, root, root_bytes: root_bytes.unwrap_or(0) })
}

/// A root, and its bytes.
fn read(store: &Store, run: Run) -> Option<(Root, u64)> {
    let (segments, image) = (store.segments(), store.device().image());
    let offset = run.offset(segments);
    let word = |at: u64| image.load_u64(offset + at * 8);
    let header = std::array::from_fn(|at| word(at as u64));
    let count = HEADER_WORDS.checked_add(Root::content_words(header)?)?;
    if count > run.bytes(segments) / 8 {
        return None;
    }
    Some((Root::decode(&(0..count).map(word).collect::<Vec<_>>())?, count * 8))
}
