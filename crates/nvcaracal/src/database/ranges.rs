//! Loading and emptying key ranges of tables of bytes, in steps that are short.

use std::sync::Arc;

use engine::Abort;
use storage::TableId;

use crate::call::declare::WriteSet;
use crate::call::raw::{Procedure, ProcedureNumber};
use crate::call::ticket::Ticket;
use crate::call::transaction::Transaction;
use crate::database::submitter::Submitter;
use crate::database::way::Part;
use crate::error::{Error, Result};
use crate::stop::Stop;
use crate::table::handle::Table;

/// Most bytes of keys and values that one call loads; a single row may have more.
const LOAD_BYTES: usize = 256 << 10;
/// Most rows that one call loads.
const LOAD_ROWS: usize = 1000;
/// Calls of a load that are under way at a time.
const LOAD_CALLS: usize = 4;

/// The code of the abort of a load into a range that has rows.
const NOT_EMPTY: u32 = 1;

/// Loads rows into empty key ranges of some tables, and empties ranges, as calls that are short
/// each: other calls go on between them. Register it as a procedure
/// ([`Options::raw_procedure`](crate::Options::raw_procedure)), with the same tables in the same
/// order for as long as its calls may be logged.
///
/// ```
/// # use nvcaracal::{Database, DeviceSpec, raw};
/// let orders = raw::ordered("orders", 40, 2000);
/// let ranges = raw::Ranges::new([orders]);
/// let options = Database::options().table(orders).raw_procedure(ranges.clone());
/// let db = options.open_device(DeviceSpec::Dram)?;
/// let rows = (0..5000_u32).map(|number| (number.to_be_bytes().to_vec(), vec![7; 100]));
/// assert_eq!(ranges.load(&db.submitter(), orders, rows)?, 5000);
/// let (low, high) = (1000_u32.to_be_bytes(), 4000_u32.to_be_bytes());
/// assert_eq!(ranges.delete(&db.submitter(), orders, &low, &high, 500)?, 3000);
/// # assert_eq!(db.snapshot()?.count(orders, ..)?, 2000);
/// # Ok::<(), nvcaracal::Error>(())
/// ```
#[derive(Debug)]
pub struct Ranges {
    tables: Vec<Table<[u8], Vec<u8>>>,
}

impl Ranges {
    /// The name of the procedure.
    pub const NAME: &'static str = "nvcaracal: ranges";

    /// For these tables.
    #[must_use]
    pub fn new(tables: impl IntoIterator<Item = Table<[u8], Vec<u8>>>) -> Arc<Self> {
        Arc::new(Self { tables: tables.into_iter().collect() })
    }

    /// Loads rows in the order of their keys into a range in which there are none, and says how
    /// many. Each of several calls loads some of them and checks that there is no row between its
    /// first and its last key.
    ///
    /// # Errors
    /// [`Error::is_mistake`] for a key that does not come after the one before it, a table that is
    /// not one of these, and where this is not registered; [`Error::is_user_abort`] if there is a
    /// row in the way; [`Error::is_failed`] for a key or a value beyond its limit; as
    /// [`Submitter::submit`] and [`Ticket::wait`]. Rows that came before may have been loaded then,
    /// and some after it: [`Ranges::delete`] takes them away.
    pub fn load(
        &self,
        by: &Submitter,
        table: Table<[u8], Vec<u8>>,
        rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<u64> {
        let mut load = Load {
            procedure: by.raw_procedure(Self::NAME)?,
            by,
            begin: Step::Load.begin(self.number(&table)?),
            rows: Vec::new(),
            count: 0,
            loading: Vec::new(),
            loaded: 0,
        };
        let mut before: Option<Vec<u8>> = None;
        for (key, value) in rows {
            if before.as_ref().is_some_and(|before| *before >= key) {
                return Err(Error::mistake("rows are loaded in the order of their keys"));
            }
            load.add(&key, &value)?;
            before = Some(key);
        }
        load.finish()
    }

    /// Deletes the rows with `low <= key < high`, at most so many with each call, and says how many
    /// there were. Rows that others insert there meanwhile may stay.
    ///
    /// # Errors
    /// [`Error::is_mistake`] for a table that is not one of these, and where this is not
    /// registered; as [`Submitter::submit`] and [`Ticket::wait`].
    pub fn delete(
        &self,
        by: &Submitter,
        table: Table<[u8], Vec<u8>>,
        low: &[u8],
        high: &[u8],
        rows_max: u32,
    ) -> Result<u64> {
        let procedure = by.raw_procedure(Self::NAME)?;
        let mut call = Step::Delete.begin(self.number(&table)?);
        call.extend(rows_max.max(1).to_le_bytes());
        put(&mut call, low);
        put(&mut call, high);
        let (by, mut deleted) = (by.part(Part::Serial), 0);
        loop {
            let answer = by.submit_raw(procedure, &call)?.wait()?;
            let step = answer.try_into().map_or(0, u64::from_le_bytes);
            deleted += step;
            if step < u64::from(rows_max.max(1)) {
                return Ok(deleted);
            }
        }
    }

    fn number(&self, table: &Table<[u8], Vec<u8>>) -> Result<TableId> {
        let at = self.tables.iter().position(|of| of.shape == table.shape);
        at.and_then(|at| u16::try_from(at).ok()).map(TableId).ok_or_else(|| {
            Error::mistake(format!("{} is none of the tables of these ranges", table.shape))
        })
    }
}

/// Rows on their way.
struct Load<'b> {
    by: &'b Submitter,
    procedure: ProcedureNumber,
    /// How calls begin.
    begin: Vec<u8>,
    /// The rows of the next call.
    rows: Vec<u8>,
    count: usize,
    loading: Vec<Ticket<Vec<u8>>>,
    loaded: u64,
}

impl Load<'_> {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let bytes = self.rows.len() + key.len() + value.len();
        if self.count > 0 && (self.count >= LOAD_ROWS || bytes > LOAD_BYTES) {
            self.submit()?;
        }
        put(&mut self.rows, key);
        put(&mut self.rows, value);
        self.count += 1;
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        let call = [&self.begin[..], &self.rows].concat();
        if self.loading.len() >= LOAD_CALLS {
            self.wait_for_first()?;
        }
        self.loading.push(self.by.submit_raw(self.procedure, &call)?);
        self.rows.clear();
        self.count = 0;
        Ok(())
    }

    fn wait_for_first(&mut self) -> Result<()> {
        let answer = self.loading.remove(0).wait()?;
        self.loaded += answer.try_into().map_or(0, u64::from_le_bytes);
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        if self.count > 0 {
            self.submit()?;
        }
        while !self.loading.is_empty() {
            self.wait_for_first()?;
        }
        Ok(self.loaded)
    }
}

/// What a call does: its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Load = 1,
    Delete = 2,
}

impl Step {
    fn begin(self, table: TableId) -> Vec<u8> {
        let [low, high] = table.0.to_le_bytes();
        vec![self as u8, low, high]
    }
}

fn put(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend((bytes.len() as u32).to_le_bytes());
    into.extend_from_slice(bytes);
}

/// Takes what [`put`] has put.
fn take<'c>(from: &mut &'c [u8]) -> Option<&'c [u8]> {
    let (len, rest) = from.split_first_chunk()?;
    let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *from = rest;
    Some(bytes)
}

/// The rows of a load.
fn rows_of(mut rest: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut rows = Vec::new();
    while !rest.is_empty() {
        rows.push((take(&mut rest)?, take(&mut rest)?));
    }
    Some(rows)
}

/// A call of this procedure.
enum Call<'c> {
    Load(Table<[u8], Vec<u8>>, Vec<(&'c [u8], &'c [u8])>),
    Delete { table: Table<[u8], Vec<u8>>, rows_max: u32, low: &'c [u8], high: &'c [u8] },
}

impl Ranges {
    fn read<'c>(&self, arguments: &'c [u8]) -> Option<Call<'c>> {
        let (&[step, low, high], mut rest) = arguments.split_first_chunk()?;
        let table = *self.tables.get(usize::from(u16::from_le_bytes([low, high])))?;
        if step == Step::Load as u8 {
            return Some(Call::Load(table, rows_of(rest)?));
        }
        let (rows_max, bounds) = rest.split_first_chunk()?;
        rest = bounds;
        let (low, high) = (take(&mut rest)?, take(&mut rest)?);
        let is_whole = step == Step::Delete as u8 && rest.is_empty();
        let rows_max = u32::from_le_bytes(*rows_max);
        is_whole.then_some(Call::Delete { table, rows_max, low, high })
    }
}

impl Procedure for Ranges {
    fn name(&self) -> &str {
        Self::NAME
    }

    /// The form of its calls, and which table each number is.
    fn semantics(&self) -> String {
        let names: Vec<_> = self.tables.iter().map(|table| table.shape.name).collect();
        format!("1 {names:?}")
    }

    fn write_set(&self, arguments: &[u8], set: &mut WriteSet) {
        match self.read(arguments) {
            Some(Call::Load(table, rows)) => {
                rows.iter().for_each(|(key, _)| set.insert(table, *key));
            }
            _ => set.unknown(),
        }
    }

    fn run(&self, arguments: &[u8], tx: &mut Transaction) -> Result<Vec<u8>, Stop> {
        let done = match self.read(arguments).ok_or(Abort::new("no call of these ranges"))? {
            Call::Load(table, rows) => load(tx, table, &rows)?,
            Call::Delete { table, rows_max, low, high } => {
                let found = tx.range(table, low..high).take(rows_max as usize);
                let keys = found.map(|row| Ok(row?.0)).collect::<Result<Vec<_>, Stop>>()?;
                for key in &keys {
                    tx.delete(table, &key[..])?;
                }
                keys.len()
            }
        };
        Ok((done as u64).to_le_bytes().to_vec())
    }
}

fn load(
    tx: &mut Transaction,
    table: Table<[u8], Vec<u8>>,
    rows: &[(&[u8], &[u8])],
) -> Result<usize, Stop> {
    let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else { return Ok(0) };
    if let Some(found) = tx.range(table, *first..=*last).next() {
        let (key, _) = found?;
        let message = format!("the range that is loaded has a row: {key:02x?}").into();
        return Err(Abort { message, ..Abort::code(NOT_EMPTY) }.into());
    }
    for (key, value) in rows {
        tx.insert(table, *key, &value.to_vec())?;
    }
    Ok(rows.len())
}
