//! Epochs that run twice before they run: how procedures are found that are not deterministic
//! ([`Options::check_determinism`](crate::Options::check_determinism)).
//!
//! A copy is an engine of its own over memory, opened on the image and the log that the database
//! has between two epochs. There are two. Both run the calls of the next epoch from the same state,
//! with the same timestamp and seed, and in the same parts as the database would. As long as they
//! come to the same, the database runs the epoch, too, and the copies are ready for the next one;
//! where they do not, nothing has happened to the database.
//!
//! To blame is the first call with another answer. If all answers are the same and states differ,
//! it is the last call of the shortest beginning of the epoch after which they do, which is found
//! by running beginnings on new copies.

use std::collections::BTreeMap;

use engine::{Answer, Calls, EpochInfo, EpochOutcome};
use pmem::DeviceSpec;
use storage::{IndexKind, StoreOptions, TableId};

use crate::call::procedure::Registration;
use crate::error::{Error, Result};
use crate::host::driver::Driver;
use crate::host::earlier::Kept;
use crate::host::open::{Plan, host};

/// The calls of an epoch.
#[derive(Clone, Copy)]
pub(crate) enum Repeated<'c> {
    /// These, behind those that are deferred.
    Calls(&'c Calls),
    /// Those that are deferred, or as many of them as there is space for.
    Deferred,
}

type Pair = [Driver; 2];
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Two copies of a database.
pub(crate) struct Copies {
    plan: Plan,
    /// Absent until they are needed, and where they do not have the state of the database.
    pair: Option<Pair>,
}

/// An epoch that came to two results.
struct TwoResults<'f> {
    real: &'f mut Driver,
    epoch: Repeated<'f>,
    info: EpochInfo,
    outcomes: [EpochOutcome; 2],
}

impl Copies {
    /// Of a database that is opened with this plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut plan = Plan {
            device: DeviceSpec::Dram,
            disk: None,
            archive: None,
            renamed: Vec::new(),
            dropped: Vec::new(),
            kept: Kept::default(),
            ..plan.clone()
        };
        plan.config.store = StoreOptions { create: false, ..plan.config.store };
        plan.config = plan.config.checkpoint_after(Some(1));
        (plan.config.cache_bytes, plan.config.contention) = (0, false);
        plan.config.change_log = None;
        Self { plan, pair: None }
    }

    /// Runs the next epoch of a database on both copies.
    ///
    /// # Errors
    /// [`Error::is_not_deterministic`] if they come to different results;
    /// [`Error::is_limit`] if there is no space for the epoch. Nothing has happened to the database
    /// in either case.
    pub(crate) fn run(
        &mut self,
        real: &mut Driver,
        epoch: Repeated<'_>,
        info: EpochInfo,
    ) -> Result<()> {
        let last = real.status().epoch;
        let mut pair = match self.pair.take() {
            Some(pair) if pair.iter().all(|copy| copy.status().epoch == last) => pair,
            _ => self.open(real)?,
        };
        let outcomes = match run(&mut pair, epoch, info) {
            Ok(outcomes) => outcomes,
            Err(error) if error.is_limit() => return Err(error.into()),
            // A failure that stops a copy stops the database, too, which says more of it.
            Err(_) => return Ok(()),
        };
        assert_eq!(real.status().epoch, last, "the database's own epoch ran meanwhile");
        for copy in &pair {
            assert_eq!(copy.status().epoch, last.next(), "a copy ran another epoch");
        }
        let found = TwoResults { real, epoch, info, outcomes };
        if let Some(difference) = self.difference(found, &pair)? {
            return Err(Error::not_deterministic(difference));
        }
        self.pair = Some(pair);
        Ok(())
    }

    fn open(&self, real: &mut Driver) -> Result<Pair> {
        let mut open = || {
            let device = real.copy(self.plan.image_bytes_max, self.plan.log_bytes_max)?;
            Ok::<_, Error>(host(device, self.plan.clone())?.0)
        };
        let pair = [open()?, open()?];
        let status = real.status();
        for copy in pair.iter().map(|copy| copy.status()) {
            assert_eq!(copy.epoch, status.epoch, "a copy is of another epoch");
            assert_eq!(copy.state_hash, status.state_hash, "a copy has another state");
            assert_eq!(copy.deferred, status.deferred, "a copy defers other calls");
        }
        Ok(pair)
    }

    /// What the copies did differently, and which call is to blame.
    fn difference(&self, mut found: TwoResults<'_>, pair: &Pair) -> Result<Option<String>> {
        let (number, what) = match found.first_answer() {
            Some(number) => {
                let procedure = self.procedure(&found, number);
                let shown =
                    found.outcomes.each_ref().map(|one| show(procedure, one.answer(number)));
                (number, format!("{} and, run again, {}", shown[0], shown[1]))
            }
            None if has_one_state(pair) => return Ok(None),
            None => {
                let what = self.rows_that_differ(found.real, pair)?;
                self.blame(&mut found, what)?
            }
        };
        let (name, epoch) = (self.procedure(&found, number).name, found.outcomes[0].epoch);
        Ok(Some(format!(
            "procedure {name:?} is not deterministic: call {} of epoch {epoch} {what}; look for \
             clocks, randomness, the order of a HashMap, global state, addresses",
            found.position(number)
        )))
    }

    /// The call after which states differ: its number, and how they do.
    fn blame(&self, found: &mut TwoResults<'_>, mut what: String) -> Result<(usize, String)> {
        let order = found.order();
        let (mut low, mut high) = (0, order.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.try_first(found, &order[..middle])? {
                Some(other) => (high, what) = (middle, other),
                None => low = middle + 1,
            }
        }
        // With none of the others, it was one of those that were deferred.
        let last = high.checked_sub(1).map(|last| found.deferred_in() + order[last]);
        Ok((last.unwrap_or(0), what))
    }

    /// Runs the deferred calls and some of the others on new copies: how their states differ, if
    /// they do.
    fn try_first(&self, found: &mut TwoResults<'_>, numbers: &[usize]) -> Result<Option<String>> {
        let Repeated::Calls(calls) = found.epoch else { return Ok(None) };
        let mut some = Calls::new();
        for &number in numbers {
            some.append_some(calls, number..number + 1)?;
        }
        let mut pair = self.open(found.real)?;
        run(&mut pair, Repeated::Calls(&some), found.info)?;
        match has_one_state(&pair) {
            true => Ok(None),
            false => self.rows_that_differ(found.real, &pair).map(Some),
        }
    }

    /// How the states of the copies differ: the first row.
    fn rows_that_differ(&self, real: &Driver, pair: &Pair) -> Result<String> {
        for shape in &self.plan.shapes {
            let table = real.schema().number(shape).map_err(Error::mistake)?;
            let [one, two] = [rows(&pair[0], table)?, rows(&pair[1], table)?];
            let mut keys = one.keys().chain(two.keys());
            let Some(key) = keys.find(|key| one.get(*key) != two.get(*key)) else { continue };
            if shape.index == IndexKind::Sequence {
                break;
            }
            let before = real.get(table, key)?;
            let did = [&one, &two].map(|rows| did(before.as_ref(), rows.get(key)));
            let (name, key, [one, two]) = (shape.name, hex(key), did);
            return Ok(format!("{one} row {key} of table {name:?} and, run again, {two} it"));
        }
        Ok("allocated from sequences and, run again, drew others or other numbers".into())
    }

    /// The procedure of a call.
    fn procedure(&self, found: &TwoResults<'_>, number: usize) -> &Registration {
        let id = match found.epoch {
            Repeated::Calls(calls) if number >= found.deferred_in() => {
                calls.get(number - found.deferred_in()).0
            }
            _ => found.real.deferred_procedure(number),
        };
        let at = found.real.procedure_ids().iter().position(|&of| of == id);
        &self.plan.procedures[at.expect("a call that the database takes")]
    }
}

impl TwoResults<'_> {
    fn deferred_in(&self) -> usize {
        self.outcomes[0].deferred_in
    }

    /// The numbers of the calls that were not deferred, in their serial order.
    fn order(&self) -> Vec<usize> {
        let Repeated::Calls(calls) = self.epoch else { return Vec::new() };
        let mut order: Vec<usize> = (0..calls.len()).collect();
        order.sort_by_key(|&number| !calls.is_serial(number));
        order
    }

    /// The position of a call in the epoch.
    fn position(&self, number: usize) -> usize {
        let of = |own: usize| self.order().iter().position(|&number| number == own);
        number
            .checked_sub(self.deferred_in())
            .and_then(of)
            .map_or(number, |at| at + self.deferred_in())
    }

    /// The first call in serial order with two answers.
    fn first_answer(&self) -> Option<usize> {
        let [one, two] = &self.outcomes;
        let order = self.order().into_iter().map(|own| own + self.deferred_in());
        let mut all = (0..self.deferred_in()).chain(order);
        all.find(|&number| one.answer(number) != two.answer(number))
    }
}

/// Runs an epoch on both copies.
fn run(pair: &mut Pair, epoch: Repeated<'_>, info: EpochInfo) -> engine::Result<[EpochOutcome; 2]> {
    let [one, two] = pair.each_mut().map(|copy| match epoch {
        Repeated::Calls(calls) => copy.run_epoch(calls, info),
        Repeated::Deferred => copy.run_deferred(info),
    });
    Ok([one?, two?])
}

fn has_one_state(pair: &Pair) -> bool {
    let [one, two] = pair.each_ref().map(|copy| copy.status());
    (one.state_hash, one.rows) == (two.state_hash, two.rows)
}

fn rows(copy: &Driver, table: TableId) -> Result<Rows> {
    let mut rows = Rows::new();
    copy.for_each(table, &mut |key, value| {
        rows.insert(key.to_vec(), value.to_vec());
    })?;
    Ok(rows)
}

/// What was done to a row.
fn did(before: Option<&Vec<u8>>, after: Option<&Vec<u8>>) -> String {
    match after {
        after if after == before => "did not write".into(),
        None => "deleted".into(),
        Some(value) => format!("wrote {} to", hex(value)),
    }
}

fn show(procedure: &Registration, answer: Answer<'_>) -> String {
    match answer {
        Answer::Committed(bytes) => {
            format!("answered {}", procedure.show(bytes).unwrap_or_else(|| hex(bytes)))
        }
        Answer::Aborted(abort) => format!("gave up ({abort})"),
        Answer::Failed(why) => format!("failed ({why})"),
        Answer::Deferred => "was deferred".into(),
    }
}

/// The first bytes of a key or of a value.
fn hex(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    let shown: String = bytes.iter().take(BYTES_MAX).map(|byte| format!("{byte:02x}")).collect();
    match bytes.len() {
        0 => "none".into(),
        len if len <= BYTES_MAX => shown,
        len => format!("{shown}... ({len} bytes)"),
    }
}
