//! A client of a store, for tests.

use crate::script::{Target, shown};
use server::store::{
    Answer, BlockOperation, Connection, Modes, Pending, Statement, Store, StoreOptions,
};
use sql::ir::Space;
use std::path::Path;
use std::sync::Arc;
use values::{Datum, Result, Timestamp};

pub(crate) fn noon() -> Timestamp {
    Timestamp::parse("2024-02-29 12:00:00").unwrap()
}

/// Options with a clock that stands still.
pub(crate) fn options(options: StoreOptions) -> StoreOptions {
    StoreOptions { clock: noon, ..options }
}

pub(crate) fn memory() -> Store {
    Store::open(options(StoreOptions::memory())).unwrap()
}

pub(crate) fn on_disk(path: &Path) -> Store {
    let device = server::store::DeviceSpec::File(path.to_owned());
    Store::open(options(StoreOptions::at(device))).unwrap()
}

/// Options with which few rows of a COPY or a definition are many.
pub(crate) fn small_parts(of: StoreOptions) -> StoreOptions {
    StoreOptions { copy_bytes_max: 20_000, part_bytes: 4_000, ..options(of) }
}

/// Waits until nothing is being cleared: how many rows there are, whether or not the catalog leads
/// to them.
pub(crate) fn cleared(store: &Store) -> usize {
    while store.is_clearing() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    store.database().stats().rows as usize
}

/// Waits until there are as many rows as before, and at most the one more in which the catalog says
/// what ids were given: clearing may begin a moment after a client has left.
#[track_caller]
pub(crate) fn assert_cleared(store: &Store, before: usize) {
    let expected = before..=before + 1;
    for _ in 0..10_000 {
        if expected.contains(&cleared(store)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("{} rows, {before} before", cleared(store));
}

/// Copies a store as a crash leaves it now: once no call runs, and nothing writes a snapshot any
/// more, as files are copied one by one.
pub(crate) fn copy(store: &Store, from: &Path, to: &Path) {
    while store.is_clearing() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    std::fs::create_dir_all(to).unwrap();
    let names: Vec<_> =
        std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let is_same =
        |name| std::fs::read(from.join(name)).unwrap() == std::fs::read(to.join(name)).unwrap();
    loop {
        for name in &names {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
        if names.iter().all(is_same) {
            return;
        }
    }
}

/// Waits for a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(crate) struct Client {
    pub(crate) store: Store,
    pub(crate) connection: Connection,
}

impl Client {
    pub(crate) fn new(store: &Store) -> Client {
        Client { store: store.clone(), connection: store.connect() }
    }

    /// The one statement of a text, planned.
    pub(crate) fn prepare(&self, text: &str) -> Result<Arc<Statement>> {
        block_on(async {
            let parsed = self.connection.parse(text).await?;
            let [parsed] = &parsed[..] else { panic!("one statement at a time: {text}") };
            self.connection.prepare(parsed, &[]).await
        })
    }

    pub(crate) fn submit(&mut self, text: &str, parameters: Vec<Datum>) -> Result<Pending> {
        let statement = self.prepare(text)?;
        Ok(self.connection.submit(&statement, parameters))
    }

    /// Runs the one statement of a text.
    pub(crate) fn run(&mut self, text: &str) -> Result<Answer> {
        self.submit(text, Vec::new())?.wait()
    }

    /// Runs the one statement of a text in the block that was begun.
    pub(crate) fn within(&mut self, text: &str) -> Result<Answer> {
        let statement = self.prepare(text)?;
        self.connection.submit_in_block(&statement, Vec::new()).wait()
    }

    pub(crate) fn begin(&mut self, modes: Modes) {
        self.connection.block(BlockOperation::Begin(modes)).wait().unwrap();
    }

    pub(crate) fn block(&mut self, operation: BlockOperation) -> Result<Answer> {
        self.connection.block(operation).wait()
    }

    pub(crate) fn commit(&mut self) -> Result<Answer> {
        self.block(BlockOperation::Commit)
    }

    /// The rows of a query, as text.
    pub(crate) fn query(&mut self, text: &str) -> Vec<Vec<String>> {
        let answer = self.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        answer.rows.iter().map(|row| shown(row)).collect()
    }

    /// The one value of a query, as text.
    pub(crate) fn value(&mut self, text: &str) -> String {
        let rows = self.query(text);
        assert!(rows.len() == 1 && rows[0].len() == 1, "{text}: {rows:?}");
        rows[0][0].clone()
    }
}

impl Target for Client {
    fn rows(&mut self, text: &str) -> Result<Vec<Vec<String>>> {
        let answer = self.run(text)?;
        Ok(answer.rows.iter().map(|row| shown(row)).collect())
    }

    fn state(&self) -> Vec<(Space, Vec<u8>, Vec<u8>)> {
        self.store.rows().unwrap()
    }
}
