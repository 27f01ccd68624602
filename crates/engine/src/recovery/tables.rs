//! Tables of which all is read before an open changes anything ([`EngineConfig::read_at_open`]):
//! where pages come when they are touched, a damaged one would be met when the store was accepted.
//!
//! [`EngineConfig::read_at_open`]: crate::EngineConfig::read_at_open

use pmem::{Device, LINE_BYTES};
use storage::Store;
use storage::format::KEY_BYTES_MAX;

use crate::error::Result;
use crate::index::{ExactWords, OrderedIndex, SearchKey};
use crate::reads::Reads;
use crate::state::core::{Core, RowKeys};
use crate::table::{Table, order_word};
use crate::version::newest_version;

/// Reads the indexes, rows and values of the tables that are to be read. Where rows were scanned,
/// or all pages are there, nothing is read again.
///
/// # Errors
/// `Storage(Device(Corrupt))` for a damaged page.
pub(super) fn read(core: &Core, store: &Store) -> Result<()> {
    if !store.device().has_memory_limit() {
        return Ok(());
    }
    let is_wanted = |table: &&Table| core.config.read_at_open.contains(&table.name);
    core.tables.iter().filter(is_wanted).try_for_each(|table| read_table(table, core, store))
}

fn read_table(table: &Table, core: &Core, store: &Store) -> Result<()> {
    let device = store.device();
    for [offset, buckets, _] in table.hash.kept().unwrap_or_default() {
        device.read_pages(offset, buckets * LINE_BYTES)?;
    }
    let mut rows = Vec::new();
    table.hash.for_each(|_, id| rows.push(core.entries.row_of(id)));
    for row in rows {
        device.read_pages(row, table.layout.row_bytes)?;
        let (value, _) = newest_version(core.image_base, row, |_| &table.layout);
        if value.is_value() && value.is_persistent() {
            device.read_pages((value.address() - core.image_base) as u64, value.len() as u64)?;
        }
    }
    let Some(ordered) = &table.ordered else { return Ok(()) };
    // No key is longer or larger.
    let (reads, last) = (Reads::new(false), [0xff; KEY_BYTES_MAX as usize]);
    let [first, last] = [&[][..], &last].map(|key| SearchKey { word: order_word(key), key });
    let mut chunks = Vec::new();
    if table.exact {
        ordered.visit_places(first, last, &ExactWords, |chunk| chunks.push(chunk));
    } else {
        ordered.visit_places(first, last, &RowKeys { core, reads: &reads }, |chunk| {
            chunks.push(chunk);
        });
    }
    for chunk in chunks {
        let offset = chunk.wrapping_sub(core.image_base) as u64;
        // Chunks that are not of the image are in memory.
        if offset < device.image_bytes() {
            device.read_pages(offset, OrderedIndex::CHUNK_BYTES)?;
        }
    }
    Ok(())
}
