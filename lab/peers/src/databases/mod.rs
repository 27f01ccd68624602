//! The databases, each with the fastest durable way that it offers.

mod caracal;
mod fjall_peer;
mod lmdb_peer;
mod redb_peer;
#[cfg(feature = "rocksdb")]
mod rocksdb_peer;
mod rows;
mod sqlite;

use std::path::Path;

use serde::{Deserialize, Serialize};

#[cfg(not(feature = "rocksdb"))]
use crate::peer::Error;
use crate::peer::{Peer, Result, Shape};

/// A database that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Database {
    /// NVCaracal, by its library.
    Nvcaracal,
    /// redb.
    Redb,
    /// fjall.
    Fjall,
    /// SQLite, compiled in.
    Sqlite,
    /// LMDB, compiled in.
    Lmdb,
    /// RocksDB, with feature `rocksdb`.
    Rocksdb,
}

impl Database {
    /// All, also those that are not built in.
    pub const ALL: [Self; 6] =
        [Self::Nvcaracal, Self::Redb, Self::Fjall, Self::Sqlite, Self::Lmdb, Self::Rocksdb];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvcaracal => "nvcaracal",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
            Self::Sqlite => "sqlite",
            Self::Lmdb => "lmdb",
            Self::Rocksdb => "rocksdb",
        }
    }

    /// Whether this build has it.
    #[must_use]
    pub const fn is_built(self) -> bool {
        !matches!(self, Self::Rocksdb) || cfg!(feature = "rocksdb")
    }

    /// Those that this build has.
    #[must_use]
    pub fn built() -> Vec<Self> {
        Self::ALL.into_iter().filter(|database| database.is_built()).collect()
    }

    /// Its name with its version, as far as it tells that.
    pub(crate) fn version(self) -> String {
        match self {
            Self::Nvcaracal => format!("nvcaracal {}", env!("CARGO_PKG_VERSION")),
            Self::Redb => "redb 3".into(),
            Self::Fjall => "fjall 2".into(),
            Self::Sqlite => sqlite::version(),
            Self::Lmdb => "LMDB 0.9".into(),
            Self::Rocksdb => "RocksDB 11".into(),
        }
    }

    /// The way that was chosen, in a few words.
    pub(crate) const fn way(self) -> &'static str {
        match self {
            Self::Nvcaracal => caracal::WAY,
            Self::Redb => redb_peer::WAY,
            Self::Fjall => fjall_peer::WAY,
            Self::Sqlite => sqlite::WAY,
            Self::Lmdb => lmdb_peer::WAY,
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => rocksdb_peer::WAY,
            #[cfg(not(feature = "rocksdb"))]
            Self::Rocksdb => "not built in",
        }
    }
}

/// Opens a database, and makes it if it is not there.
pub(crate) fn open(which: Database, path: &Path, shape: Shape) -> Result<Box<dyn Peer>> {
    Ok(match which {
        Database::Nvcaracal => Box::new(caracal::Caracal::open(path, shape)?),
        Database::Redb => Box::new(redb_peer::Redb::open(path, shape)?),
        Database::Fjall => Box::new(fjall_peer::Fjall::open(path, shape)?),
        Database::Sqlite => Box::new(sqlite::Sqlite::open(path, shape)?),
        Database::Lmdb => Box::new(lmdb_peer::Lmdb::open(path, shape)?),
        #[cfg(feature = "rocksdb")]
        Database::Rocksdb => Box::new(rocksdb_peer::RocksDb::open(path, shape)?),
        #[cfg(not(feature = "rocksdb"))]
        Database::Rocksdb => {
            return Err(Error::of("rocksdb", "this build does not have it: --features rocksdb"));
        }
    })
}
