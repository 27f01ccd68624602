//! SmallBank (Alomari et al., ICDE 2008), as in NV 6.2.2 and Table 2: five types of transactions,
//! chosen uniformly, on customers of whom a hot few get 90 % of the transactions.
//!
//! * Tables: `accounts` (name to customer number; read only), `savings` and `checking` (customer
//!   number to an 8-byte balance in cents). Names are numbers here, and customers are numbered in
//!   the order of their names, so the write set follows from the name without reconnaissance; the
//!   body still reads the account row, and aborts if it is missing or says something else.
//! * "Two of the transaction types may abort at a rate of 10 %": the original lets DepositChecking
//!   fail on a negative amount and TransactSavings on a balance that would become negative. One in
//!   ten of each is generated to fail: a deposit of a negative amount, a withdrawal beyond any
//!   balance. The others deposit, so they never fail, and the rate stays at 10 % however long a run
//!   is. Both fail in the body, after they have read what they would update.
//! * WriteCheck takes a penalty of one cent from who overdraws, and may leave a negative checking
//!   balance.
//! * A hot transaction takes all its customers from the hot ones (those with the smallest numbers),
//!   a cold one from the others; Amalgamate takes two different ones.
//! * With `commit_points`, off unless asked for, transactions that write have a commit point behind
//!   their last check (early write visibility, NV 3.1.2).
//! * The check: all money at the start, plus what the answers say came in, minus what they say went
//!   out, is all the money there is. Also no savings balance is negative, and no row appears or
//!   vanishes.

mod procedures;

pub use procedures::PENALTY;

use crate::api::{
    Answer, IndexKind, Observer, ProcedureId, Register, StreamEpoch, TableId, TableSpec, View,
    Workload,
};
use crate::common::{Complaints, SettingsError, named, require, word_at};
use crate::random::Random;
use procedures::{Amalgamate, Balance, DepositChecking, Load, TransactSavings, WriteCheck};

/// Name to customer number; never written after loading.
pub const ACCOUNTS: TableId = TableId(0);
/// Customer number to savings balance.
pub const SAVINGS: TableId = TableId(1);
/// Customer number to checking balance.
pub const CHECKING: TableId = TableId(2);

const BALANCE: ProcedureId = 0;
const DEPOSIT_CHECKING: ProcedureId = 1;
const TRANSACT_SAVINGS: ProcedureId = 2;
const AMALGAMATE: ProcedureId = 3;
const WRITE_CHECK: ProcedureId = 4;
const LOAD: ProcedureId = 5;

const CUSTOMERS_PER_LOAD: u64 = 100;
/// Of the deposits, and of the transactions on savings.
pub const ABORT_PERCENT: u64 = 10;
/// More than any account holds, and far from overflow.
pub const BEYOND_ANY_BALANCE: i64 = 1 << 60;

/// What a SmallBank run looks like. Start from a preset and change fields.
#[derive(Debug, Clone, PartialEq)]
pub struct SmallBankSettings {
    /// How many customers there are; each has a savings and a checking account.
    pub customers: u64,
    /// How many of them are hot.
    pub hot_customers: u64,
    /// The share of transactions on hot customers.
    pub hot_probability: f64,
    /// Whether transactions that write have a commit point behind their last check, from which on
    /// others may see each write at once ([`crate::Tx::commit_point`]). Answers and state are the
    /// same.
    pub commit_points: bool,
    /// Names the data and the stream of calls.
    pub seed: u64,
}

impl SmallBankSettings {
    /// Low contention of Table 2: 1 M of 18 M customers are hot, or the same share of fewer
    /// customers.
    #[must_use]
    pub fn low(customers: u64) -> Self {
        Self {
            customers,
            hot_customers: (customers / 18).max(2),
            hot_probability: 0.9,
            commit_points: false,
            seed: 1,
        }
    }

    /// High contention of Table 2: 10,000 of 18 M customers are hot, or the same share of fewer
    /// customers.
    #[must_use]
    pub fn high(customers: u64) -> Self {
        Self { hot_customers: (customers / 1800).max(2), ..Self::low(customers) }
    }

    fn validate(&self) -> Result<(), SettingsError> {
        let Self { customers, hot_customers, hot_probability, .. } = *self;
        require((0.0..=1.0).contains(&hot_probability), || {
            format!("hot_probability is {hot_probability}, it must lie between 0 and 1")
        })?;
        require(customers <= 1 << 40, || {
            format!("customers is {customers}, at most {} are allowed", 1_u64 << 40)
        })?;
        require(hot_customers >= 2, || {
            format!("hot_customers is {hot_customers}, Amalgamate needs two")
        })?;
        require(customers.checked_sub(hot_customers).is_some_and(|cold| cold >= 2), || {
            format!("{hot_customers} hot of {customers} customers: Amalgamate needs two others")
        })
    }
}

/// The SmallBank workload.
#[derive(Debug, Clone)]
pub struct SmallBank {
    settings: SmallBankSettings,
}

impl SmallBank {
    /// A workload with these settings.
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub fn new(settings: SmallBankSettings) -> Result<Self, SettingsError> {
        settings.validate()?;
        Ok(Self { settings })
    }

    /// The settings it was made with.
    #[must_use]
    pub fn settings(&self) -> &SmallBankSettings {
        &self.settings
    }

    /// Two different customers, both hot or both cold.
    fn choose_customers(&self, random: &mut Random) -> (u64, u64) {
        let Self { settings: SmallBankSettings { customers, hot_customers, .. } } = self;
        let hot = random.unit() < self.settings.hot_probability;
        let (base, count) =
            if hot { (0, *hot_customers) } else { (*hot_customers, customers - hot_customers) };
        let first = random.below(count);
        let second = (first + 1 + random.below(count - 1)) % count;
        (base + first, base + second)
    }
}

impl Workload for SmallBank {
    fn name(&self) -> &'static str {
        "smallbank"
    }

    fn tables(&self) -> Vec<TableSpec> {
        let table =
            |name| TableSpec { name, index: IndexKind::Hash, key_bytes_max: 8, value_bytes_max: 8 };
        vec![table("accounts"), table("savings"), table("checking")]
    }

    fn register<R: Register>(&self, to: &mut R) {
        match self.settings.commit_points {
            false => register::<R, false>(to),
            true => register::<R, true>(to),
        }
    }

    fn load_count(&self) -> u64 {
        self.settings.customers.div_ceil(CUSTOMERS_PER_LOAD)
    }

    fn load(&self, i: u64, args: &mut Vec<u8>) -> ProcedureId {
        let first = i * CUSTOMERS_PER_LOAD;
        let count = CUSTOMERS_PER_LOAD.min(self.settings.customers - first);
        put_words(args, [first, count, self.settings.seed]);
        LOAD
    }

    fn generate(&self, epoch: StreamEpoch, position: u64, args: &mut Vec<u8>) -> ProcedureId {
        let mut random = Random::new(self.settings.seed ^ 0x534D_424B, epoch.0, position);
        let procedure = random.below(5) as ProcedureId;
        let (first, second) = self.choose_customers(&mut random);
        let amount = random.between(1, 10_000) as i64;
        let fails = random.percent(ABORT_PERCENT);
        match procedure {
            BALANCE => put_words(args, [first]),
            AMALGAMATE => put_words(args, [first, second]),
            DEPOSIT_CHECKING => {
                put_words(args, [first, (if fails { -amount } else { amount }) as u64]);
            }
            TRANSACT_SAVINGS => {
                put_words(args, [first, (if fails { -BEYOND_ANY_BALANCE } else { amount }) as u64]);
            }
            _ => put_words(args, [first, amount as u64]),
        }
        procedure
    }

    fn observer(&self, view: &dyn View) -> Box<dyn Observer> {
        let mut complaints = Complaints::default();
        let found = Totals::of(view, &mut complaints);
        Box::new(SmallBankObserver { customers: self.settings.customers, money: found.money })
    }
}

/// The procedures in the order of their numbers, with or without commit points.
fn register<R: Register, const EARLY: bool>(to: &mut R) {
    to.procedure::<Balance>();
    to.procedure::<DepositChecking<EARLY>>();
    to.procedure::<TransactSavings<EARLY>>();
    to.procedure::<Amalgamate<EARLY>>();
    to.procedure::<WriteCheck<EARLY>>();
    to.procedure::<Load>();
}

fn put_words<const N: usize>(args: &mut Vec<u8>, words: [u64; N]) {
    for word in words {
        args.extend_from_slice(&word.to_le_bytes());
    }
}

/// What a state adds up to.
struct Totals {
    money: i128,
    rows: [u64; 3],
}

impl Totals {
    fn of(view: &dyn View, complaints: &mut Complaints) -> Self {
        let mut totals = Self { money: 0, rows: [0; 3] };
        for table in [ACCOUNTS, SAVINGS, CHECKING] {
            view.for_each(table, &mut |key, value| {
                totals.rows[usize::from(table.0)] += 1;
                let Some(word) = word_at(value, 0) else {
                    complaints.add("short row", || format!("table {}, key {key:x?}", table.0));
                    return;
                };
                if table == ACCOUNTS {
                    if key != word.to_be_bytes() {
                        complaints.add("wrong account", || format!("{key:x?} leads to {word}"));
                    }
                    return;
                }
                let balance = word as i64;
                totals.money += i128::from(balance);
                if table == SAVINGS && balance < 0 {
                    complaints.add("negative savings", || format!("{key:x?} has {balance}"));
                }
            });
        }
        totals
    }
}

/// How much money there must be.
struct SmallBankObserver {
    customers: u64,
    money: i128,
}

impl Observer for SmallBankObserver {
    fn observe(&mut self, procedure: ProcedureId, args: &[u8], answer: Answer<'_>) {
        let Answer::Committed(output) = answer else { return };
        let word = |bytes, at| i128::from(word_at(bytes, at).unwrap_or(0) as i64);
        match procedure {
            DEPOSIT_CHECKING | TRANSACT_SAVINGS => self.money += word(args, 8),
            WRITE_CHECK => self.money -= word(output, 0),
            _ => {}
        }
    }

    fn check(&self, view: &dyn View) -> Vec<String> {
        let mut complaints = Complaints::default();
        let found = Totals::of(view, &mut complaints);
        complaints.equal(
            "money not conserved",
            named("found", found.money),
            named("answered", self.money),
            || "all accounts".to_owned(),
        );
        for (table, rows) in ["accounts", "savings", "checking"].iter().zip(found.rows) {
            complaints.equal(
                "wrong row count",
                named("found", rows),
                named("customers", self.customers),
                || (*table).to_owned(),
            );
        }
        complaints.into_lines()
    }
}
