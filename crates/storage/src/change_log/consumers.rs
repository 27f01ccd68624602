//! The file `consumers`: who follows which table, and how far each has got.
//!
//! It is replaced as a whole: written beside, synced, renamed. The first line names the format and
//! the CRC-32 of what follows: a line for the store, for each table and for each consumer, with
//! names as hexadecimal digits of their bytes.
//!
//! ```text
//! nvcaracal consumers 1 8f3a01c2
//! store 13816480214527390521 0
//! table 4 17 6f7264657273
//! consumer 4 31 6d61696c6572
//! ```
//!
//! The store has its instance number, and 1 if an earlier list was lost: then each new consumer may
//! be one that was in it. A table has its number and the epoch after which its changes are kept, a
//! consumer the number of its table and its position, the epoch up to which it has confirmed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::change_log::segments::sync_directory;

use crate::ids::{EpochNumber, TableId};

const NAME: &str = "consumers";
const NEW_NAME: &str = "consumers.new";
const HEAD: &str = "nvcaracal consumers 1 ";

/// A consumer and how far it has got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Its name.
    pub name: String,
    /// The number of the table that it follows.
    pub table: TableId,
    /// The name of that table.
    pub table_name: String,
    /// It has confirmed the changes of all epochs up to this one.
    pub epoch: EpochNumber,
}

/// A table that consumers follow.
#[derive(Debug, Clone)]
struct FollowedTable {
    name: String,
    /// Changes of epochs after this one are kept.
    after: EpochNumber,
}

/// Consumers and their tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Followed {
    /// Of the store; `None` if there is no list.
    instance: Option<u64>,
    were_lost: bool,
    tables: BTreeMap<TableId, FollowedTable>,
    consumers: BTreeMap<String, Position>,
}

/// Makes the directory of a change log, durably, if it is not there.
pub(super) fn create_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    DirBuilder::new().mode(0o700).create(directory)?;
    directory.parent().map_or(Ok(()), sync_directory)
}

impl Followed {
    /// Reads the file of a directory; none is as one without consumers.
    pub(super) fn read(directory: &Path) -> io::Result<Self> {
        let path = directory.join(NAME);
        let text = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let followed = std::str::from_utf8(&text).ok().and_then(Self::parse);
        followed.ok_or_else(|| {
            let what = format!(
                "{} is damaged: put it back from a copy, or remove it, and each consumer is told \
                 that it has missed changes",
                path.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once('\n')?;
        let crc = u32::from_str_radix(head.strip_prefix(HEAD)?, 16).ok()?;
        if crc32fast::hash(body.as_bytes()) != crc {
            return None;
        }
        let mut followed = Self::default();
        let (store, lines) = body.split_once('\n')?;
        let (instance, were_lost) = store.strip_prefix("store ")?.split_once(' ')?;
        followed.instance = Some(instance.parse().ok()?);
        followed.were_lost = were_lost == "1";
        for line in lines.lines() {
            let mut words = line.split(' ');
            let kind = words.next()?;
            let table = TableId(words.next()?.parse().ok()?);
            let epoch = EpochNumber(words.next()?.parse().ok()?);
            let name = text_of(words.next()?)?;
            match kind {
                "table" => {
                    followed.tables.insert(table, FollowedTable { name, after: epoch });
                }
                "consumer" => {
                    let table_name = followed.tables.get(&table)?.name.clone();
                    let position = Position { name: name.clone(), table, table_name, epoch };
                    followed.consumers.insert(name, position);
                }
                _ => return None,
            }
        }
        Some(followed)
    }

    /// Replaces the file; durable when this returns.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let beside = directory.join(NEW_NAME);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, directory.join(NAME))?;
        sync_directory(directory)
    }

    fn text(&self) -> String {
        let (instance, were_lost) = (self.instance.unwrap_or(0), u8::from(self.were_lost));
        let mut body = format!("store {instance} {were_lost}\n");
        for (id, table) in &self.tables {
            let name = hex_of(&table.name);
            writeln!(body, "table {} {} {name}", id.0, table.after.0).expect("a string");
        }
        for consumer in self.consumers.values() {
            let name = hex_of(&consumer.name);
            let (table, epoch) = (consumer.table.0, consumer.epoch.0);
            writeln!(body, "consumer {table} {epoch} {name}").expect("a string");
        }
        format!("{HEAD}{:08x}\n{body}", crc32fast::hash(body.as_bytes()))
    }

    /// The instance number of the store that the list is of; `None` if there is no list.
    pub(super) fn instance(&self) -> Option<u64> {
        self.instance
    }

    /// Whether an earlier list was lost.
    pub(super) fn were_lost(&self) -> bool {
        self.were_lost
    }

    /// The list is of the store with this instance number, and an earlier one was lost or not.
    pub(super) fn begin_store(&mut self, instance: u64, were_lost: bool) {
        if were_lost {
            *self = Self { were_lost, ..Self::default() };
        }
        self.instance = Some(instance);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.consumers.is_empty()
    }

    pub(super) fn tables(&self) -> BTreeMap<TableId, String> {
        self.tables.iter().map(|(&id, table)| (id, table.name.clone())).collect()
    }

    pub(super) fn consumers(&self) -> impl Iterator<Item = &Position> {
        self.consumers.values()
    }

    pub(super) fn find(&self, name: &str) -> Option<&Position> {
        self.consumers.get(name)
    }

    /// The epoch after which a table's changes are kept; `None` if no consumer follows it.
    pub(super) fn after(&self, table: TableId) -> Option<EpochNumber> {
        self.tables.get(&table).map(|table| table.after)
    }

    /// The position of the consumer that is behind all others.
    pub(super) fn least(&self) -> Option<EpochNumber> {
        self.consumers.values().map(|consumer| consumer.epoch).min()
    }

    /// Adds a consumer. Returns its position: `epoch`, or 0 if it may have had one that was lost.
    pub(super) fn add(
        &mut self,
        name: &str,
        (table, table_name): (TableId, &str),
        epoch: EpochNumber,
    ) -> EpochNumber {
        let followed = FollowedTable { name: table_name.into(), after: epoch };
        self.tables.entry(table).or_insert(followed);
        let epoch = if self.were_lost { EpochNumber(0) } else { epoch };
        let position = Position { name: name.into(), table, table_name: table_name.into(), epoch };
        self.consumers.insert(name.into(), position);
        epoch
    }

    /// Removes a consumer, and its table if it was the last. Returns whether it was there.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let is_there = self.consumers.remove(name).is_some();
        self.forget_tables();
        is_there
    }

    fn forget_tables(&mut self) {
        let consumers = &self.consumers;
        self.tables.retain(|id, _| consumers.values().any(|consumer| consumer.table == *id));
    }

    /// Moves a consumer. Returns whether it is there.
    pub(super) fn confirm(&mut self, name: &str, epoch: EpochNumber) -> bool {
        let found = self.consumers.get_mut(name);
        found.map(|consumer| consumer.epoch = epoch).is_some()
    }

    /// Keeps consumers of tables for which `name_of` has a name. Returns whether anything changed.
    pub(super) fn agree(
        &mut self,
        mut name_of: impl FnMut(TableId, &str) -> Option<String>,
    ) -> bool {
        let mut has_changed = false;
        let names: BTreeMap<TableId, Option<String>> =
            self.tables.iter().map(|(&id, table)| (id, name_of(id, &table.name))).collect();
        self.consumers.retain(|_, consumer| {
            let Some(name) = &names[&consumer.table] else {
                has_changed = true;
                return false;
            };
            has_changed |= *name != consumer.table_name;
            consumer.table_name.clone_from(name);
            true
        });
        self.forget_tables();
        for (id, table) in &mut self.tables {
            table.name = names[id].clone().expect("consumers of other tables are gone");
        }
        has_changed
    }

    /// Sets positions after an epoch to 0: they are of another past. Returns whether there was one.
    pub(super) fn forget_positions_after(&mut self, epoch: EpochNumber) -> bool {
        let mut were_any = false;
        for consumer in self.consumers.values_mut().filter(|consumer| consumer.epoch > epoch) {
            consumer.epoch = EpochNumber(0);
            were_any = true;
        }
        were_any
    }
}

fn hex_of(name: &str) -> String {
    name.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string");
        hex
    })
}

fn text_of(hex: &str) -> Option<String> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    String::from_utf8(pairs.map(byte).collect::<Option<_>>()?).ok()
}
