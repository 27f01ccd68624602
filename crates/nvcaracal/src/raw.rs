//! Tables and procedures that are known at run time only: names from anywhere, keys, values,
//! arguments and answers as bytes. For interpreters, such as a server for a query language; other
//! programs are better off with types.
//!
//! Tables of bytes are handles as all others are ([`ordered`], [`hash`]), so transactions,
//! snapshots, feeds and [`Database::get`](crate::Database::get) know them. A [`Procedure`] is an
//! object instead of a type; its calls are submitted by its [number](ProcedureNumber), through
//! a [`Submitter`](crate::Submitter), and answered with bytes.
//!
//! ```
//! use std::sync::Arc;
//!
//! use nvcaracal::{Database, DeviceSpec, HashTable, Part, Stop, Transaction, WriteSet, raw};
//!
//! /// Puts a row of any table of a catalog: its number, a byte with the length of the key, key and
//! /// value.
//! struct Put { tables: Vec<Bytes> }
//!
//! type Bytes = HashTable<[u8], Vec<u8>>;
//!
//! impl Put {
//!     fn parts<'a>(&self, call: &'a [u8]) -> Option<(Bytes, &'a [u8], &'a [u8])> {
//!         let (&[table, len], rest) = call.split_first_chunk()?;
//!         let (key, value) = rest.split_at_checked(len.into())?;
//!         Some((*self.tables.get(usize::from(table))?, key, value))
//!     }
//! }
//!
//! impl raw::Procedure for Put {
//!     fn name(&self) -> &str {
//!         "put"
//!     }
//!
//!     fn write_set(&self, call: &[u8], set: &mut WriteSet) {
//!         if let Some((table, key, _)) = self.parts(call) {
//!             set.insert(table, key);
//!         }
//!     }
//!
//!     fn run(&self, call: &[u8], tx: &mut Transaction) -> Result<Vec<u8>, Stop> {
//!         let (table, key, value) = self.parts(call).ok_or("a call that cannot be read")?;
//!         let before = tx.get(table, key)?;
//!         tx.insert(table, key, &value.to_vec())?;
//!         Ok(before.unwrap_or_default())
//!     }
//! }
//!
//! # let config = ["users", "orders"];
//! let tables: Vec<_> = config.iter().map(|name| raw::hash(name, 40, 2000)).collect();
//! let mut options = Database::options().raw_procedure(Arc::new(Put { tables: tables.clone() }));
//! for table in &tables {
//!     options = options.table(*table);
//! }
//! let db = options.open_device(DeviceSpec::Dram)?;
//! let (put, connection) = (db.raw_procedure("put")?, db.submitter());
//! let first = connection.submit_raw(put, b"\x01\x02k1first")?;
//! let second = connection.part(Part::Serial).submit_raw(put, b"\x01\x02k1second")?;
//! assert_eq!(second.wait()?, b"first");
//! assert_eq!(first.wait()?, b"");
//! assert_eq!(db.get(tables[1], &b"k1"[..])?.as_deref(), Some(&b"second"[..]));
//! # Ok::<(), nvcaracal::Error>(())
//! ```

pub use crate::call::raw::{Procedure, ProcedureNumber};
pub use crate::database::ranges::Ranges;
pub use crate::table::raw::{hash, ordered};
