//! SmallBank by a plain program: arrays of balances behind one mutex, one thread. No engine, no
//! log, no versions, no rows to look up: what is left is the work that the calls ask for.
//!
//! The calls are those of `workloads::smallbank`, and a test runs both on the same ones.

use std::hint::black_box;
use std::sync::Mutex;

use bench::clock::now_ns;
use bench::report::median;
use workloads::random::Random;
use workloads::smallbank::{ABORT_PERCENT, BEYOND_ANY_BALANCE, PENALTY};

const REPETITIONS: u64 = 5;
const TRANSACTIONS: u64 = 500_000;
const CUSTOMERS: u64 = 1_000_000;
/// The hot customers, and the per cent of calls that are theirs.
const HOT_CUSTOMERS: u64 = 1_000;
const HOT_PERCENT: u64 = 90;

/// Microseconds of a transaction, every customer as likely as any other.
pub(super) fn uniform_us() -> f64 {
    transaction_us(Customers { all: CUSTOMERS, hot: 0 })
}

/// Microseconds of a transaction with a hot set.
pub(super) fn hot_us() -> f64 {
    transaction_us(Customers { all: CUSTOMERS, hot: HOT_CUSTOMERS })
}

fn transaction_us(customers: Customers) -> f64 {
    let bank = Mutex::new(Bank::new(customers.all));
    let one = |seed| {
        let mut random = Random::new(seed, 5, customers.hot);
        let start = now_ns();
        for _ in 0..TRANSACTIONS {
            let call = Call::random(&mut random, customers);
            black_box(bank.lock().expect("no thread panicked").run(call));
        }
        (now_ns() - start) as f64 / 1e3 / TRANSACTIONS as f64
    };
    median((1..=REPETITIONS).map(one).collect())
}

/// Who may be called, and how many with the smallest numbers are hot; 0 if none is.
#[derive(Clone, Copy)]
struct Customers {
    all: u64,
    hot: u64,
}

impl Customers {
    /// The first one's number and the count of those of whom one call takes its customers.
    fn random_group(self, random: &mut Random) -> (u64, u64) {
        if self.hot > 0 && random.percent(HOT_PERCENT) {
            (0, self.hot)
        } else {
            (self.hot, self.all - self.hot)
        }
    }
}

/// A transaction and its arguments; customers are places in the arrays.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Call {
    Balance(usize),
    DepositChecking(usize, i64),
    TransactSavings(usize, i64),
    Amalgamate(usize, usize),
    WriteCheck(usize, i64),
}

impl Call {
    /// The five types in equal shares; allocates no more than the type needs.
    #[inline]
    fn random(random: &mut Random, customers: Customers) -> Self {
        let kind = random.below(5);
        let (base, count) = customers.random_group(random);
        let first = random.below(count);
        let customer = (base + first) as usize;
        match kind {
            0 => Self::Balance(customer),
            1 => {
                let amount = amount(random);
                let fails = random.percent(ABORT_PERCENT);
                Self::DepositChecking(customer, if fails { -amount } else { amount })
            }
            2 => {
                let amount = amount(random);
                let fails = random.percent(ABORT_PERCENT);
                Self::TransactSavings(customer, if fails { -BEYOND_ANY_BALANCE } else { amount })
            }
            3 => {
                let second = (first + 1 + random.below(count - 1)) % count;
                Self::Amalgamate(customer, (base + second) as usize)
            }
            _ => Self::WriteCheck(customer, amount(random)),
        }
    }
}

fn amount(random: &mut Random) -> i64 {
    random.between(1, 10_000) as i64
}

/// The money, by customer.
#[derive(Debug, PartialEq)]
struct Bank {
    savings: Vec<i64>,
    checking: Vec<i64>,
}

impl Bank {
    fn new(customers: u64) -> Self {
        let mut random = Random::new(0, 5, 0);
        let mut balance = |_| random.between(10_000, 50_000) as i64;
        let savings = (0..customers).map(&mut balance).collect();
        Self { savings, checking: (0..customers).map(balance).collect() }
    }

    /// The answer, of which the last word is the balance that was read or left; none if the
    /// transaction aborts.
    #[inline]
    fn run(&mut self, call: Call) -> Option<(i64, i64)> {
        let Self { savings, checking } = self;
        match call {
            Call::Balance(customer) => Some((0, savings[customer] + checking[customer])),
            Call::DepositChecking(customer, amount) => {
                (amount >= 0).then(|| (0, add(&mut checking[customer], amount)))
            }
            Call::TransactSavings(customer, amount) => {
                let balance = &mut savings[customer];
                (*balance + amount >= 0).then(|| (0, add(balance, amount)))
            }
            Call::Amalgamate(from, to) => {
                let moved =
                    std::mem::take(&mut savings[from]) + std::mem::take(&mut checking[from]);
                Some((moved, add(&mut checking[to], moved)))
            }
            Call::WriteCheck(customer, amount) => {
                let overdrawn = savings[customer] + checking[customer] < amount;
                let paid = amount + if overdrawn { PENALTY } else { 0 };
                Some((paid, add(&mut checking[customer], -paid)))
            }
        }
    }
}

/// Adds to a balance; what it is then.
fn add(balance: &mut i64, amount: i64) -> i64 {
    *balance += amount;
    *balance
}

#[cfg(test)]
mod tests {
    use workloads::oracle::{Oracle, OracleAnswer};
    use workloads::smallbank::{CHECKING, SAVINGS, SmallBank, SmallBankSettings};
    use workloads::{ProcedureId, StreamEpoch, View, Workload};

    use super::*;

    fn words(bytes: &[u8]) -> Vec<i64> {
        bytes.chunks(8).map(|word| i64::from_le_bytes(word.try_into().expect("8 bytes"))).collect()
    }

    /// The workload's call as one of ours.
    fn call(procedure: ProcedureId, args: &[u8]) -> Call {
        match (procedure, &words(args)[..]) {
            (0, &[customer]) => Call::Balance(customer as usize),
            (1, &[customer, amount]) => Call::DepositChecking(customer as usize, amount),
            (2, &[customer, amount]) => Call::TransactSavings(customer as usize, amount),
            (3, &[from, to]) => Call::Amalgamate(from as usize, to as usize),
            (4, &[customer, amount]) => Call::WriteCheck(customer as usize, amount),
            _ => panic!("procedure {procedure} is none of a stream"),
        }
    }

    /// The state of the workload as one of ours.
    fn bank(oracle: &Oracle) -> Bank {
        let balances = |table| {
            let mut found = Vec::new();
            oracle.for_each(table, &mut |key, value| {
                found.push((key.to_vec(), words(value)[0]));
            });
            found.sort_unstable();
            found.into_iter().map(|(_, balance)| balance).collect()
        };
        Bank { savings: balances(SAVINGS), checking: balances(CHECKING) }
    }

    #[test]
    fn the_plain_program_answers_and_leaves_what_the_workload_does() {
        let workload = SmallBank::new(SmallBankSettings::high(100)).expect("settings");
        let mut oracle = Oracle::loaded(&workload);
        let mut bank_here = bank(&oracle);
        let mut calls: Vec<(ProcedureId, Vec<u8>)> = Vec::new();
        for position in 0..5_000 {
            let mut args = Vec::new();
            calls.push((workload.generate(StreamEpoch(1), position, &mut args), args));
        }
        let borrowed: Vec<_> = calls.iter().map(|(id, args)| (*id, &args[..])).collect();
        for ((id, args), answer) in calls.iter().zip(oracle.run_epoch(&borrowed, 0)) {
            let here = bank_here.run(call(*id, args));
            let there = match answer {
                OracleAnswer::Committed(output) => Some(words(&output)),
                OracleAnswer::Aborted(_) => None,
                other => panic!("procedure {id}, {:?}: {other:?}", words(args)),
            };
            assert_eq!(here.is_some(), there.is_some(), "procedure {id}, {:?}", words(args));
            let (Some((first, last)), Some(there)) = (here, there) else { continue };
            let here = if there.len() == 1 { vec![last] } else { vec![first, last] };
            assert_eq!(here, there, "procedure {id}, {:?}", words(args));
        }
        assert_eq!(bank_here, bank(&oracle));
    }

    #[test]
    fn calls_come_in_the_shares_of_the_workload() {
        let (mut random, mut kinds, mut hot, mut failing) = (Random::new(1, 0, 0), [0; 5], 0, 0);
        for _ in 0..100_000 {
            let call = Call::random(&mut random, Customers { all: 1_000, hot: 10 });
            let (kind, first, second, fails) = match call {
                Call::Balance(customer) => (0, customer, None, false),
                Call::DepositChecking(customer, amount) => (1, customer, None, amount < 0),
                Call::TransactSavings(customer, amount) => (2, customer, None, amount < 0),
                Call::Amalgamate(from, to) => (3, from, Some(to), false),
                Call::WriteCheck(customer, _) => (4, customer, None, false),
            };
            kinds[kind] += 1;
            hot += u32::from(first < 10);
            failing += u32::from(fails);
            let apart = |second| second != first && (second < 10) == (first < 10) && second < 1_000;
            assert!(second.is_none_or(apart), "{call:?}");
        }
        assert!(kinds.iter().all(|kind| (19_000..21_000).contains(kind)), "{kinds:?}");
        assert!((89_000..91_000).contains(&hot), "{hot}");
        assert!((3_800..4_200).contains(&failing), "{failing}");
        let uniform = Customers { all: 7, hot: 0 };
        let balances: Vec<_> = (0..7).map(Call::Balance).collect();
        let allocation: Vec<_> = (0..1_000).map(|_| Call::random(&mut random, uniform)).collect();
        assert!(balances.iter().all(|call| allocation.contains(call)), "every customer is called");
    }
}
