//! Salvage: what can still be read of a store that recovery refuses because of its rows, and a new
//! store of that.
//!
//! The damaged store is only read. A row counts as readable if its key has its checksum and its
//! newest version leads to a value that is its own; whatever is wrong besides, with its stale
//! version for example, is no reason to give it up. Nothing is guessed: where the newest value is
//! out of reach, an older one does not take its place.
//!
//! One kind of damage is undone. Rows that are one line were written with values of up to 16 bytes
//! as if those were inline (`HEAP_IN_HEADER`), when a table had got longer values. The
//! bytes are there, behind the key, as long as no second version lies in them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pmem::{AnyDevice, Device, Port};

use crate::catalog::CatalogChange;
use crate::digest::{StateHash, row_hash};
use crate::error::Result;
use crate::format::{SerialId, TABLES_MAX, ValuePointer};
use crate::ids::{EpochNumber, Position, TableId};
use crate::pool::{SubPool, class_of, class_pool};
use crate::row::{Content, First, NewVersion, RowLayout};
use crate::scan::{ScanPlan, ScannedRow, leads_to_a_value};
use crate::store::{Opened, Store, StoreOptions};
use crate::{row, scan};

/// Longest value that the header line of a row held by mistake.
const HEADER_BYTES_MAX: u64 = 16;

/// What a damaged store holds.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Rows that can be read, by table and key.
    pub rows: Vec<FoundRow>,
    /// Rows that cannot.
    pub lost: Vec<LostRow>,
    /// Whether rows and state hash are those of the checkpoint. `None` where rows are lost, or the
    /// checkpoint knows no state hash.
    pub is_whole: Option<bool>,
}

/// A row that can be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundRow {
    /// Its table.
    pub table: TableId,
    /// Its key.
    pub key: Vec<u8>,
    /// Who wrote it.
    serial_id: u64,
    /// Offset of the row in the image.
    row: u64,
    /// Where its value is.
    value: u64,
    value_bytes: u64,
    /// Its pool slot, if the value is in one.
    external: Option<u64>,
    /// Whether its pointer leads nowhere, and its value was found in the header line.
    pub is_restored: bool,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostRow {
    /// The table in whose pool it is.
    pub table: TableId,
    /// Offset in the image.
    pub row: u64,
    /// Its key, if that has its checksum.
    pub key: Option<Vec<u8>>,
    /// What is wrong with it.
    pub why: String,
}

/// Looks for the rows of a store that was just opened and not used yet.
#[must_use]
pub fn find(opened: &Opened) -> Found {
    let plan = scan::plan(&opened.store, &opened.sub_pools, &opened.log);
    let mut found = Found::default();
    let look = Look { opened, plan: &plan };
    for unit in &plan.units {
        let layout = opened.store.tables()[unit.table.index()].layout;
        let first = opened.store.segments().offset(unit.segment);
        let rows = (0..unit.slots).map(|slot| first + slot * layout.row_bytes);
        for at in rows.filter(|at| plan.free.binary_search(at).is_err()) {
            match look.at(at, &layout) {
                Ok(row) => found.rows.push(row),
                Err(lost) => found.lost.push(lost),
            }
        }
    }
    found.rows.sort_unstable();
    found.drop_shared_values(opened);
    found.drop_older_rows();
    found.lost.sort_unstable();
    found.is_whole = found.compare(opened);
    found
}

/// The value of a row that [`find`] found in the same store.
pub fn value_of<'o>(opened: &'o Opened, row: &FoundRow) -> &'o [u8] {
    let image = opened.store.device().image();
    // SAFETY: `find` has checked where the value is, and nothing stores while the store is only
    // looked at.
    unsafe { image.slice(row.value, row.value_bytes) }
}

struct Look<'o> {
    opened: &'o Opened,
    plan: &'o ScanPlan,
}

impl Look<'_> {
    /// The row at an offset, which is that of a slot in use.
    fn at(&self, at: u64, layout: &RowLayout) -> std::result::Result<FoundRow, LostRow> {
        let store = &self.opened.store;
        let (device, epoch) = (store.device().as_ref(), store.checkpoint_epoch());
        let lost = |key, why| Err(LostRow { table: layout.table, row: at, key, why });
        let (table, key_bytes, crc) = row::meta(device, at);
        if table != layout.table || key_bytes > layout.key_bytes_max {
            let why = format!("it claims table {table} and a key of {key_bytes} bytes");
            return lost(None, why);
        }
        // SAFETY: the key lies in its row, and nothing stores while the store is only looked at.
        let key = unsafe { row::key(device, at) };
        if row::key_crc(table, key) != crc {
            return lost(None, "its key fails its checksum".into());
        }
        let versions = row::versions(device, at);
        let Some(slot) = row::checkpoint_slot(&versions, epoch) else {
            return lost(Some(key.to_vec()), format!("it has no version up to epoch {epoch}"));
        };
        if versions[0].serial_id == versions[1].serial_id {
            let why = format!("both versions have the serial id {:#x}", versions[0].serial_id);
            return lost(Some(key.to_vec()), why);
        }
        let scanned = ScannedRow { row: at, slot, versions };
        let found = FoundRow {
            table,
            key: key.to_vec(),
            serial_id: versions[slot].serial_id,
            row: at,
            value: layout.value_offset(at, slot, scanned.pointer()),
            value_bytes: scanned.pointer().value_bytes(),
            external: scanned.pointer().external_offset(),
            is_restored: false,
        };
        match self.value(&scanned, layout) {
            Ok(is_restored) => Ok(FoundRow { is_restored, ..found }),
            Err(why) => lost(Some(found.key), why),
        }
    }

    /// Whether the newest version of a row leads to its value; true if it does not, and the value
    /// is in the header line nevertheless.
    fn value(&self, scanned: &ScannedRow, layout: &RowLayout) -> std::result::Result<bool, String> {
        let store = &self.opened.store;
        let (device, live) = (store.device().as_ref(), scanned.pointer());
        let stale = scanned.versions[1 - scanned.slot];
        let (sid, pointer) = (SerialId(stale.serial_id), ValuePointer(stale.pointer));
        if !live.is_null() && leads_to_a_value(device, store.segments(), self.plan, live, layout) {
            let counts = sid.0 != 0 && sid.epoch() <= store.checkpoint_epoch();
            let pointers = scanned.versions.map(|version| ValuePointer(version.pointer));
            if counts && pointer.is_inline() && layout.overlap(pointers) {
                return Err("the value of its older version lies over it".into());
            }
            return Ok(false);
        }
        // A version in the other slot, of whatever epoch, may have been stored over it.
        let is_alone = sid.0 == 0 && pointer.is_null() || pointer.external_offset().is_some();
        let was_in_header = layout.is_one_line() && live.is_valid() && live.is_inline();
        if was_in_header && scanned.slot == 0 && is_alone && live.value_bytes() <= HEADER_BYTES_MAX
        {
            return Ok(true);
        }
        Err(format!("its value pointer {:#x} leads nowhere", live.0))
    }
}

impl Found {
    /// A value slot that is free, or of two rows, may have been written for another row.
    fn drop_shared_values(&mut self, opened: &Opened) {
        let (device, segments) = (opened.store.device().as_ref(), opened.store.segments());
        let values = opened.sub_pools.iter().filter(|of| usize::from(of.pool()) >= TABLES_MAX);
        let free: HashSet<u64> = values.flat_map(|of| of.free_slots(device, segments)).collect();
        let mut owners = HashMap::new();
        for offset in self.rows.iter().filter_map(|row| row.external) {
            *owners.entry(offset).or_insert(0) += 1;
        }
        self.drop_rows(|row| {
            let offset = row.external?;
            match owners[&offset] {
                1 if free.contains(&offset) => Some(format!("its value slot at {offset} is free")),
                1 => None,
                rows => Some(format!("its value slot at {offset} is that of {rows} rows")),
            }
        });
    }

    /// Of rows with one key the newest counts.
    fn drop_older_rows(&mut self) {
        let same = |two: &&[FoundRow]| (two[0].table, &two[0].key) == (two[1].table, &two[1].key);
        // They are sorted by table, key and writer.
        let older: HashSet<u64> = self.rows.windows(2).filter(same).map(|two| two[0].row).collect();
        let why = "a row that was written later has the same key";
        self.drop_rows(|row| older.contains(&row.row).then(|| why.to_string()));
    }

    fn drop_rows(&mut self, why: impl Fn(&FoundRow) -> Option<String>) {
        let lost = &mut self.lost;
        self.rows.retain(|row| {
            let Some(why) = why(row) else { return true };
            lost.push(LostRow { table: row.table, row: row.row, key: Some(row.key.clone()), why });
            false
        });
    }

    fn compare(&self, opened: &Opened) -> Option<bool> {
        let checkpoint = opened.store.checkpoint();
        let expected = checkpoint.state_hash().filter(|_| self.lost.is_empty())?;
        let is_whole = self.rows.len() as u64 == checkpoint.rows && self.hash(opened) == expected;
        Some(is_whole)
    }

    fn hash(&self, opened: &Opened) -> StateHash {
        let mut hash = StateHash::default();
        for row in &self.rows {
            hash.add(row_hash(row.table, &row.key, value_of(opened, row)));
        }
        hash
    }
}

/// Writes what was found into an empty device, as a store with the same tables that has ended the
/// same epoch, and closes it. Returns its state hash.
///
/// # Errors
/// `Foreign` if there is a store already; the device's.
pub fn write(opened: &Opened, found: &Found, target: Arc<AnyDevice>) -> Result<StateHash> {
    let superblock = opened.store.superblock();
    let options = StoreOptions {
        segment_bytes: superblock.segment_bytes,
        log_segment_bytes: superblock.log_segment_bytes,
        create: true,
        instance: superblock.instance,
    };
    let Opened { mut store, mut sub_pools, created, .. } = Store::open(target, &options)?;
    if !created {
        let what = "there is a store where what was salvaged is to go".to_string();
        return Err(crate::error::StorageError::Foreign(what));
    }
    let change = CatalogChange::same_as(opened.store.records());
    store.adopt_catalog(&change, &mut sub_pools)?;
    let mut port = Port::new(Arc::clone(store.device()), 0);
    let program = opened.store.log().program().unwrap_or_default();
    store.log().write_program(&mut port, &program)?;
    // Rows are of an epoch, and epoch 0 has none.
    let epoch = opened.store.checkpoint_epoch().max(EpochNumber(1));
    let mut first_of_pool = HashMap::new();
    for (at, sub_pool) in sub_pools.iter().enumerate() {
        first_of_pool.entry(sub_pool.pool()).or_insert(at);
    }
    let mut writer = Writer { store: &store, port: &mut port, sub_pools, first_of_pool, epoch };
    for row in &found.rows {
        writer.row(row, value_of(opened, row))?;
    }
    writer.save();
    store.write_catalog(&mut port, &change);
    let hash = found.hash(opened);
    store.commit(&mut port, epoch, Some(hash), found.rows.len() as u64, 0);
    crate::store::snapshot_image(store.device().as_ref(), epoch)?;
    Ok(hash)
}

struct Writer<'s> {
    store: &'s Store,
    port: &'s mut Port,
    sub_pools: Vec<SubPool>,
    /// Where they begin in there.
    first_of_pool: HashMap<u16, usize>,
    epoch: EpochNumber,
}

impl Writer<'_> {
    fn row(&mut self, found: &FoundRow, value: &[u8]) -> Result<()> {
        let layout = self.store.tables()[found.table.index()].layout;
        let len = value.len() as u64;
        let external = match layout.fits_alone(len) {
            true => None,
            false => Some(self.slot(class_pool(class_of(len)))?),
        };
        let at = self.slot(found.table.0)?;
        let sid = SerialId::new(self.epoch, Position(0));
        let content = Content::Bytes(value, external);
        let version = NewVersion { slot: 0, sid, content, first: First::KeyIsThere };
        // SAFETY: both slots were allocated just now, and the store is used here only.
        unsafe {
            row::initialise(self.port, at, &layout, &found.key);
            row::write_version(self.port, at, &layout, &version);
        }
        Ok(())
    }

    /// A slot of a pool: all come from its first sub-pool.
    fn slot(&mut self, pool: u16) -> Result<u64> {
        let segments = self.store.segments();
        let sub_pool = &mut self.sub_pools[self.first_of_pool[&pool]];
        if !sub_pool.has_room() {
            segments.reserve(self.store.device().as_ref(), 1)?;
        }
        sub_pool.bump(self.port, segments)
    }

    fn save(&mut self) {
        let sequence = self.store.next_sequence();
        self.sub_pools.iter_mut().for_each(|sub_pool| sub_pool.save(self.port, sequence));
        self.port.fence();
    }
}

#[cfg(test)]
mod tests;
