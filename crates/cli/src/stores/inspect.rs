//! `inspect`: what is in a store, page by page, and the format itself.
//!
//! The format page is generated from the structs, so it cannot differ from the code; a golden file
//! holds it.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use bench::{BenchError, Limits};
use pmem::{AnyDevice, Device, PAGE_BYTES};
use serde::Serialize;
use storage::format::{CLASS_BYTES_MIN, StructLayout, TABLES_MAX};
use storage::{Opened, Store, StoreOptions, SubPool};

use crate::args::{InspectArguments, Page};
use crate::output::{Done, Failure, show};
use crate::rows::OfTable;

/// Runs an `inspect` command.
pub(crate) fn run(arguments: &InspectArguments) -> Done {
    let path: &Path = arguments.path.as_ref();
    if path == Path::new("format") && arguments.page.is_none() {
        let page = format_page();
        return show(&page, arguments.json, || format_text(&page));
    }
    if let Some(table) = &arguments.table {
        return rows(arguments, table);
    }
    let spec = bench::spec_of_path(&arguments.path)?;
    let mut pages = pages(bench::open_device(&spec, Limits::read_only(&spec))?)?;
    pages.keep_only(arguments.page);
    show(&pages, arguments.json, || text(&pages))
}

/// Shows rows of a table.
fn rows(arguments: &InspectArguments, table: &str) -> Done {
    let spec = bench::spec_of_path(&arguments.path)?;
    let reading = OfTable { table, key: arguments.key.as_deref(), limit: arguments.limit };
    let shown = reading.of(bench::open_device(&spec, Limits::read_only(&spec))?)?;
    let shown = shown.map_err(Failure::usage)?;
    if let Some(note) = &shown.note {
        eprintln!("note: {note}");
    }
    show(&shown, arguments.json, || shown.text())
}

/// A struct on the device.
#[derive(Debug, Serialize)]
struct Struct {
    space: &'static str,
    name: &'static str,
    bytes: usize,
    fields: Vec<Field>,
}

#[derive(Debug, Serialize)]
struct Field {
    offset: usize,
    bytes: usize,
    name: &'static str,
    meaning: &'static str,
}

fn format_page() -> Vec<Struct> {
    let of = |space: &'static str| {
        move |layout: StructLayout| Struct {
            space,
            name: layout.name,
            bytes: layout.bytes,
            fields: layout
                .fields
                .into_iter()
                .map(|f| Field {
                    offset: f.offset,
                    bytes: f.bytes,
                    name: f.name,
                    meaning: f.meaning,
                })
                .collect(),
        }
    };
    let image = storage::format::layout().into_iter().map(of("image"));
    let log = storage::input_log::format::layout().into_iter().map(of("log"));
    image.chain(log).collect()
}

fn format_text(page: &[Struct]) -> String {
    let mut text = format!("format version {}\n", storage::format::FORMAT_VERSION);
    for layout in page {
        let Struct { space, name, bytes, fields } = layout;
        let _ = writeln!(text, "\n{name}, {bytes} bytes, {space}");
        let _ = writeln!(text, "{:>8} {:>6}  {:<20} meaning", "offset", "bytes", "field");
        for Field { offset, bytes, name, meaning } in fields {
            let _ = writeln!(text, "{offset:>8} {bytes:>6}  {name:<20} {meaning}");
        }
    }
    text
}

/// The pages about a store; those that were not asked for are absent.
#[derive(Debug, Serialize)]
struct Pages {
    #[serde(skip_serializing_if = "Option::is_none")]
    superblock: Option<SuperblockPage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pools: Option<Vec<Pool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<Vec<Table>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<LogPage>,
}

impl Pages {
    fn keep_only(&mut self, page: Option<Page>) {
        let Some(page) = page else { return };
        let others = |this| page != this;
        self.superblock.take_if(|_| others(Page::Superblock));
        self.pools.take_if(|_| others(Page::Pools));
        self.tables.take_if(|_| others(Page::Tables));
        self.log.take_if(|_| others(Page::Log));
    }
}

#[derive(Debug, Serialize)]
struct SuperblockPage {
    format_version: u32,
    features_required: u64,
    features_optional: u64,
    instance: String,
    segment_bytes: u64,
    segments_max: u64,
    segments_used: u64,
    log_segment_bytes: u64,
    image_bytes: u64,
    /// On `file`: the length of the file with the pages, and of those that are in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_file_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_used_bytes: Option<u64>,
    checkpoint_sequence: u64,
    checkpoint_epoch: u64,
    state_digest: Option<String>,
    rows: u64,
    calls_deferred: u32,
}

#[derive(Debug, Serialize)]
struct Pool {
    pool: u16,
    holds: String,
    slot_bytes: u64,
    sub_pools_used: u64,
    slots_allocated: u64,
    slots_free: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Table {
    id: u16,
    name: String,
    index: &'static str,
    key_bytes_max: u32,
    value_bytes_max: u32,
    /// Bytes that a row takes.
    row_bytes: u64,
    /// 1: the row has an inline value of the newest version only.
    inline_values: u8,
    /// 0: the row's heap is not shared by both versions.
    shared_heap_bytes: u32,
}

#[derive(Debug, Serialize)]
struct LogPage {
    space_bytes: u64,
    bytes_in_use: u64,
    segment_bytes: u64,
    /// How the device keeps it.
    device: String,
    committed: Vec<LogEpoch>,
    /// Begun but never committed: they count as never started.
    uncommitted: Vec<u64>,
}

#[derive(Debug, Serialize)]
struct LogEpoch {
    epoch: u64,
    calls: u64,
    bytes: u64,
    streams: u32,
    segments: u32,
    deferred_bytes: Option<u64>,
}

fn pages(device: Arc<AnyDevice>) -> Result<Pages, BenchError> {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let opened = Store::open(device, &options)?;
    Ok(Pages {
        superblock: Some(superblock_page(&opened)),
        pools: Some(pools_page(&opened)),
        tables: Some(tables_page(&opened)),
        log: Some(log_page(&opened)),
    })
}

fn superblock_page(opened: &Opened) -> SuperblockPage {
    let store = &opened.store;
    let (superblock, checkpoint) = (store.superblock(), store.checkpoint());
    let files = store.device().use_of_files();
    SuperblockPage {
        format_version: superblock.version,
        features_required: superblock.features_required,
        features_optional: superblock.features_optional,
        instance: format!("{:016x}", superblock.instance),
        segment_bytes: superblock.segment_bytes,
        segments_max: superblock.segments_max,
        segments_used: store.segments().used(),
        log_segment_bytes: superblock.log_segment_bytes,
        image_bytes: store.device().image_bytes(),
        data_file_bytes: files.as_ref().map(|files| files.data_bytes),
        data_used_bytes: files.as_ref().map(|files| files.pages * PAGE_BYTES),
        checkpoint_sequence: checkpoint.sequence,
        checkpoint_epoch: checkpoint.epoch,
        state_digest: checkpoint.state_hash().map(|hash| hash.to_string()),
        rows: checkpoint.rows,
        calls_deferred: checkpoint.deferred_calls,
    }
}

/// Sub-pools of one pool follow each other.
fn pools_page(opened: &Opened) -> Vec<Pool> {
    let store = &opened.store;
    let sub_pools_of = |sub_pools: &[SubPool]| {
        let first = &sub_pools[0];
        let sum = |of: fn(&SubPool) -> u64| sub_pools.iter().map(of).sum::<u64>();
        Pool {
            pool: first.pool(),
            holds: match store.tables().get(usize::from(first.pool())) {
                Some(table) if !table.is_used() => "nothing: its table was dropped".to_string(),
                Some(table) => format!("rows of {}", table.definition.name),
                None => {
                    let class = usize::from(first.pool()).saturating_sub(TABLES_MAX);
                    format!("values of up to {} bytes", CLASS_BYTES_MIN << class)
                }
            },
            slot_bytes: first.slot_bytes(),
            sub_pools_used: sub_pools.iter().filter(|sub_pool| sub_pool.offsets().bump > 0).count()
                as u64,
            slots_allocated: sum(|sub_pool| sub_pool.offsets().bump),
            slots_free: sum(|sub_pool| sub_pool.offsets().tail - sub_pool.offsets().head),
            bytes: sub_pools.iter().map(|sub_pool| sub_pool.bytes(store.segments())).sum(),
        }
    };
    let pools = opened.sub_pools.chunk_by(|a, b| a.pool() == b.pool()).map(sub_pools_of);
    pools.filter(|pool| pool.bytes > 0).collect()
}

fn tables_page(opened: &Opened) -> Vec<Table> {
    let used = opened.store.tables().iter().filter(|table| table.is_used());
    let tables = used.map(|table| Table {
        id: table.layout.table.0,
        name: table.definition.name.clone(),
        index: match table.definition.index {
            storage::IndexKind::Hash => "hash",
            storage::IndexKind::Ordered => "ordered",
            storage::IndexKind::Sequence => "sequence",
        },
        key_bytes_max: table.definition.key_bytes_max,
        value_bytes_max: table.definition.value_bytes_max,
        row_bytes: table.layout.row_bytes,
        inline_values: if table.layout.has_single_heap() { 1 } else { 2 },
        shared_heap_bytes: table.definition.shared_heap_bytes,
    });
    tables.collect()
}

fn log_page(opened: &Opened) -> LogPage {
    let log = opened.store.log();
    let committed = opened.log.committed.iter().map(|epoch| LogEpoch {
        epoch: epoch.epoch.0,
        calls: epoch.calls,
        bytes: epoch.bytes,
        streams: epoch.streams,
        segments: epoch.segments,
        deferred_bytes: epoch.deferred_bytes,
    });
    LogPage {
        space_bytes: opened.store.device().log_bytes(),
        bytes_in_use: log.bytes_in_use(),
        segment_bytes: log.segment_bytes(),
        device: opened.store.device().description().note,
        committed: committed.collect(),
        uncommitted: opened.log.uncommitted.iter().map(|epoch| epoch.0).collect(),
    }
}

fn text(pages: &Pages) -> String {
    let mut text = String::new();
    if let Some(page) = &pages.superblock {
        superblock_text(&mut text, page);
    }
    if let Some(pools) = &pages.pools {
        let _ = writeln!(
            text,
            "{:>5} {:>10} {:>9} {:>12} {:>10} {:>14}  holds",
            "pool", "slot bytes", "sub-pools", "slots", "free", "bytes"
        );
        for p in pools {
            let (sub_pools, out, free) = (p.sub_pools_used, p.slots_allocated, p.slots_free);
            let _ = writeln!(
                text,
                "{:>5} {:>10} {sub_pools:>9} {out:>12} {free:>10} {:>14}  {}",
                p.pool, p.slot_bytes, p.bytes, p.holds
            );
        }
        text.push('\n');
    }
    if let Some(tables) = &pages.tables {
        let _ = writeln!(
            text,
            "{:>5} {:<9} {:>8} {:>10} {:>9} {:>13} {:>11}  name",
            "table", "index", "key max", "value max", "row bytes", "inline values", "shared heap"
        );
        for t in tables {
            let _ = writeln!(
                text,
                "{:>5} {:<9} {:>8} {:>10} {:>9} {:>13} {:>11}  {}",
                t.id,
                t.index,
                t.key_bytes_max,
                t.value_bytes_max,
                t.row_bytes,
                t.inline_values,
                t.shared_heap_bytes,
                t.name
            );
        }
        text.push('\n');
    }
    if let Some(log) = &pages.log {
        log_text(&mut text, log);
    }
    text
}

fn superblock_text(text: &mut String, page: &SuperblockPage) {
    let rows: [(&str, String); 14] = [
        ("format version", page.format_version.to_string()),
        ("features required", format!("{:#x}", page.features_required)),
        ("features optional", format!("{:#x}", page.features_optional)),
        ("instance", page.instance.clone()),
        ("segment bytes", page.segment_bytes.to_string()),
        ("segments at most", page.segments_max.to_string()),
        ("segments used", page.segments_used.to_string()),
        ("log segment bytes", page.log_segment_bytes.to_string()),
        ("image bytes", page.image_bytes.to_string()),
        ("checkpoint number", page.checkpoint_sequence.to_string()),
        ("checkpoint epoch", page.checkpoint_epoch.to_string()),
        ("state digest", page.state_digest.clone().unwrap_or_else(|| "not known".into())),
        ("rows", page.rows.to_string()),
        ("deferred calls", page.calls_deferred.to_string()),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<20} {value}");
    }
    if let (Some(file), Some(used)) = (page.data_file_bytes, page.data_used_bytes) {
        let _ = writeln!(text, "{:<20} {file} bytes, {used} in use", "data file");
    }
    text.push('\n');
}

fn log_text(text: &mut String, log: &LogPage) {
    let LogPage { space_bytes, bytes_in_use, segment_bytes, .. } = log;
    let _ = writeln!(
        text,
        "input log: {bytes_in_use} of {space_bytes} bytes in use, segments of {segment_bytes} bytes"
    );
    let _ = writeln!(text, "device: {}", log.device);
    if log.committed.is_empty() {
        let _ = writeln!(text, "no committed epoch after the checkpoint");
    } else {
        let _ = writeln!(
            text,
            "{:>10} {:>10} {:>12} {:>8} {:>9} {:>12}",
            "epoch", "calls", "bytes", "streams", "segments", "deferred bytes"
        );
    }
    for e in &log.committed {
        let deferred_calls = e.deferred_bytes.map_or("-".to_string(), |bytes| bytes.to_string());
        let _ = writeln!(
            text,
            "{:>10} {:>10} {:>12} {:>8} {:>9} {deferred_calls:>12}",
            e.epoch, e.calls, e.bytes, e.streams, e.segments
        );
    }
    if !log.uncommitted.is_empty() {
        let _ =
            writeln!(text, "begun and never committed, so never started: {:?}", log.uncommitted);
    }
}
