//! Values before their rows were overwritten, for snapshots that still see them.
//!
//! Each worker keeps those of the rows that it wrote, in *layers*: one for each snapshot that was
//! the newest when a row was written first. A before-image in the layer of snapshot S was written
//! at S or before, and replaced after S. So what a snapshot E sees of a key is the first
//! before-image of it in the layers from E on; if that was written after E, the key had no row
//! then.
//!
//! Snapshots are read while calls run: a worker locks its layers before it overwrites a value that
//! a snapshot sees, and a reader all layers for the part that it reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmem::sync::RwLock;
use storage::{EpochNumber, IndexKind, TableId};

use crate::index::HashIndex;
use crate::table::{KeyWord, Table};

/// The snapshots that live: how many of each epoch.
pub(crate) type Live = BTreeMap<EpochNumber, usize>;

/// The snapshots that live, and what is kept for them. `live` is locked before layers are.
#[derive(Default)]
pub(crate) struct Snapshots {
    pub(crate) live: RwLock<Live>,
    /// The layers of each worker.
    pub(crate) of_workers: Vec<Arc<RwLock<Layers>>>,
}

/// What a before-image takes besides its key and its value, about.
const BEFORE_IMAGE_BYTES: u64 = 112;

/// What a row was.
#[derive(Debug)]
pub(crate) struct BeforeImage {
    /// The epoch that wrote it.
    pub(crate) written: EpochNumber,
    pub(crate) value: Box<[u8]>,
}

impl BeforeImage {
    /// What a snapshot sees of its key.
    pub(crate) fn seen_at(&self, epoch: EpochNumber) -> Option<&[u8]> {
        (self.written <= epoch).then_some(&self.value)
    }
}

/// Before-images by table and key; those of a hash table by its shards first, as they are visited.
pub(crate) type BeforeImages = BTreeMap<Box<[u8]>, BeforeImage>;

/// The before-images that came about while a snapshot was the newest.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) epoch: EpochNumber,
    pub(crate) before_images: BeforeImages,
    bytes: u64,
}

impl Layer {
    fn insert(&mut self, key: Box<[u8]>, image: BeforeImage) -> u64 {
        let bytes = bytes_of(&key, &image);
        self.bytes += bytes;
        let before = self.before_images.insert(key, image);
        assert!(before.is_none(), "a row is replaced first once");
        bytes
    }
}

fn bytes_of(key: &[u8], image: &BeforeImage) -> u64 {
    (key.len() + image.value.len()) as u64 + BEFORE_IMAGE_BYTES
}

/// The layers of one worker.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// By the epochs of their snapshots.
    layers: Vec<Layer>,
    /// Something was not kept: all snapshots that live end with this epoch.
    pub(crate) are_incomplete: bool,
}

/// One worker's before-images.
#[derive(Default)]
pub(crate) struct WorkerBeforeImages {
    /// The newest snapshot: values of its epoch and before are kept. 0 if there is none.
    newest: EpochNumber,
    /// Bytes that may still be kept in this epoch ...
    room: u64,
    /// ... and whether something was not.
    is_incomplete: bool,
    pub(crate) layers: Arc<RwLock<Layers>>,
    /// Which tables are ordered.
    are_ordered: Vec<bool>,
}

impl WorkerBeforeImages {
    /// A snapshot of these tables is made.
    pub(crate) fn know(&mut self, tables: &[Table]) {
        if self.are_ordered.is_empty() {
            self.are_ordered.extend(tables.iter().map(|t| t.kind == IndexKind::Ordered));
        }
    }

    /// An epoch begins, in which so many bytes may be kept for snapshots, the newest of this epoch.
    pub(crate) fn begin(&mut self, newest: EpochNumber, room: u64) {
        assert!(
            newest == EpochNumber::ZERO || !self.are_ordered.is_empty(),
            "who keeps images for a snapshot knows its tables"
        );
        (self.newest, self.room, self.is_incomplete) = (newest, room, false);
    }

    /// Whether a value that is about to be replaced is kept.
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        self.newest != EpochNumber(0)
    }

    /// Whether a value of this epoch is kept.
    pub(crate) fn wants(&self, written: EpochNumber) -> bool {
        written <= self.newest && !self.is_incomplete
    }

    /// Keeps what a row of a table was, if there is room.
    pub(crate) fn keep(&mut self, table: TableId, word: KeyWord<'_>, image: BeforeImage) {
        let key = before_image_key_of(table, self.are_ordered[table.index()], word);
        assert!(image.written <= self.newest, "a snapshot sees what is kept (O-85)");
        let bytes = bytes_of(&key, &image);
        let mut layers = self.layers.write().expect("no panic while locked");
        if bytes > self.room {
            (self.is_incomplete, layers.are_incomplete) = (true, true);
            return;
        }
        self.room -= bytes;
        layers.layer(self.newest).insert(key, image);
    }
}

impl Layers {
    /// The layer of a snapshot.
    fn layer(&mut self, epoch: EpochNumber) -> &mut Layer {
        let at = self.layers.partition_point(|layer| layer.epoch < epoch);
        if self.layers.get(at).is_none_or(|layer| layer.epoch != epoch) {
            self.layers.insert(at, Layer { epoch, before_images: BeforeImages::new(), bytes: 0 });
        }
        &mut self.layers[at]
    }

    /// The layers that a snapshot sees.
    pub(crate) fn from(&self, epoch: EpochNumber) -> &[Layer] {
        let at = self.layers.partition_point(|layer| layer.epoch < epoch);
        &self.layers[at..]
    }

    /// Before-images in the layer of a snapshot.
    pub(crate) fn rows_of(&self, epoch: EpochNumber) -> usize {
        let layer = self.layers.iter().find(|layer| layer.epoch == epoch);
        layer.map_or(0, |layer| layer.before_images.len())
    }

    /// Bytes that are kept for snapshots from an epoch on.
    pub(crate) fn bytes_from(&self, epoch: EpochNumber) -> u64 {
        self.from(epoch).iter().map(|layer| layer.bytes).sum()
    }

    /// Frees before-before-images of snapshots that have ended, of at most so many rows; an older
    /// snapshot that still sees one takes it over. Whether any are left (O-90).
    pub(crate) fn sweep(&mut self, live: &Live, most: usize) -> bool {
        let ended = |layer: &Layer| !live.contains_key(&layer.epoch);
        let Some(at) = self.layers.iter().position(ended) else { return false };
        let heir = live.range(..self.layers[at].epoch).next_back().map(|(&epoch, _)| epoch);
        let mut layer = self.layers.remove(at);
        for _ in 0..most {
            let Some((key, image)) = layer.before_images.pop_first() else { break };
            let bytes = bytes_of(&key, &image);
            assert!(layer.bytes >= bytes, "what is freed was kept");
            layer.bytes -= bytes;
            if let Some(heir) = heir.filter(|&heir| image.written <= heir) {
                self.layer(heir).insert(key, image);
            }
        }
        let is_free = layer.before_images.is_empty();
        assert!(!is_free || layer.bytes == 0, "an empty layer has no bytes");
        if !is_free {
            let at = self.layers.partition_point(|other| other.epoch < layer.epoch);
            self.layers.insert(at, layer);
        }
        self.layers.iter().any(ended)
    }
}

/// Under what the before-images of a key are kept, or those of a part of a table.
pub(crate) fn before_image_key(table: TableId, shard: Option<u8>, key: &[u8]) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(3 + key.len());
    bytes.extend_from_slice(&table.0.to_be_bytes());
    bytes.extend(shard);
    bytes.extend_from_slice(key);
    bytes.into()
}

/// The same, of a key.
pub(crate) fn before_image_key_of(
    table: TableId,
    is_ordered: bool,
    word: KeyWord<'_>,
) -> Box<[u8]> {
    let shard = (!is_ordered).then(|| HashIndex::shard_of_word(word.hash));
    before_image_key(table, shard, word.key)
}
