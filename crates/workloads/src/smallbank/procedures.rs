//! The five transactions of SmallBank, and the load.
//!
//! Those that write have their [commit point](Tx::commit_point) behind the last check, if `EARLY`
//! says so. Each row that they update has been read by then, so that no update can miss one.

use crate::api::{Abort, Declare, Procedure, TableId, Tx};
use crate::common::{BAD_ARGUMENTS, MISSING_ROW, code, word_at};
use crate::random::Random;
use crate::smallbank::{ACCOUNTS, CHECKING, SAVINGS};

/// What an overdraft costs.
pub const PENALTY: i64 = 1;

/// The arguments of a procedure: exactly `N` little-endian words.
fn words<const N: usize>(args: &[u8]) -> Result<[u64; N], Abort> {
    if args.len() != N * 8 {
        return Err(BAD_ARGUMENTS);
    }
    let mut words = [0; N];
    for (i, word) in words.iter_mut().enumerate() {
        *word = word_at(args, i * 8).ok_or(BAD_ARGUMENTS)?;
    }
    Ok(words)
}

fn key(customer: u64) -> [u8; 8] {
    customer.to_be_bytes()
}

/// Reads the account row, which must say what the write set was declared from.
fn check_account<T: Tx>(tx: &mut T, name: u64) -> Result<(), T::Error> {
    let row = tx.get(ACCOUNTS, &key(name))?.ok_or(MISSING_ROW)?;
    if word_at(row, 0) == Some(name) { Ok(()) } else { Err(MISSING_ROW.into()) }
}

fn balance<T: Tx>(tx: &mut T, table: TableId, customer: u64) -> Result<i64, T::Error> {
    let row = tx.get(table, &key(customer))?.ok_or(MISSING_ROW)?;
    Ok(word_at(row, 0).ok_or(MISSING_ROW)? as i64)
}

/// The commit point, if there is to be one.
fn commit_point<T: Tx, const EARLY: bool>(tx: &mut T) -> Result<(), T::Error> {
    if EARLY { tx.commit_point() } else { Ok(()) }
}

fn set_balance<T: Tx>(
    tx: &mut T,
    table: TableId,
    customer: u64,
    balance: i64,
) -> Result<(), T::Error> {
    if tx.update(table, &key(customer), &balance.to_le_bytes())? {
        Ok(())
    } else {
        Err(MISSING_ROW.into())
    }
}

/// Answers the sum of both balances.
pub(super) enum Balance {}

impl Procedure for Balance {
    const NAME: &'static str = "smallbank_balance";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let [customer] = words(args)?;
        declare.will_read(ACCOUNTS, &key(customer));
        declare.will_read(SAVINGS, &key(customer));
        declare.will_read(CHECKING, &key(customer));
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let [customer] = words(args)?;
        check_account(tx, customer)?;
        let total = balance(tx, SAVINGS, customer)?.wrapping_add(balance(tx, CHECKING, customer)?);
        tx.output().extend_from_slice(&total.to_le_bytes());
        Ok(())
    }
}

/// Pays into the checking account; answers its new balance. Aborts on a negative amount.
pub(super) enum DepositChecking<const EARLY: bool> {}

impl<const EARLY: bool> Procedure for DepositChecking<EARLY> {
    const NAME: &'static str = "smallbank_deposit_checking";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let [customer, _] = words(args)?;
        declare.will_read(ACCOUNTS, &key(customer));
        declare.update(CHECKING, &key(customer));
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let [customer, amount] = words(args)?;
        check_account(tx, customer)?;
        let checking = balance(tx, CHECKING, customer)?;
        if (amount as i64) < 0 {
            return Err(Abort(code::NEGATIVE_AMOUNT).into());
        }
        let checking = checking.wrapping_add(amount as i64);
        commit_point::<T, EARLY>(tx)?;
        set_balance(tx, CHECKING, customer, checking)?;
        tx.output().extend_from_slice(&checking.to_le_bytes());
        Ok(())
    }
}

/// Pays into or takes from the savings account; answers its new balance. Aborts if that would be
/// negative.
pub(super) enum TransactSavings<const EARLY: bool> {}

impl<const EARLY: bool> Procedure for TransactSavings<EARLY> {
    const NAME: &'static str = "smallbank_transact_savings";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let [customer, _] = words(args)?;
        declare.will_read(ACCOUNTS, &key(customer));
        declare.update(SAVINGS, &key(customer));
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let [customer, amount] = words(args)?;
        check_account(tx, customer)?;
        let savings = balance(tx, SAVINGS, customer)?.wrapping_add(amount as i64);
        if savings < 0 {
            return Err(Abort(code::INSUFFICIENT_FUNDS).into());
        }
        commit_point::<T, EARLY>(tx)?;
        set_balance(tx, SAVINGS, customer, savings)?;
        tx.output().extend_from_slice(&savings.to_le_bytes());
        Ok(())
    }
}

/// Moves everything the first customer has to the second one's checking account; answers what was
/// moved and the new balance there.
pub(super) enum Amalgamate<const EARLY: bool> {}

impl<const EARLY: bool> Procedure for Amalgamate<EARLY> {
    const NAME: &'static str = "smallbank_amalgamate";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let [from, to] = words(args)?;
        declare.will_read(ACCOUNTS, &key(from));
        declare.will_read(ACCOUNTS, &key(to));
        declare.update(SAVINGS, &key(from));
        declare.update(CHECKING, &key(from));
        declare.update(CHECKING, &key(to));
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let [from, to] = words(args)?;
        check_account(tx, from)?;
        check_account(tx, to)?;
        let moved = balance(tx, SAVINGS, from)?.wrapping_add(balance(tx, CHECKING, from)?);
        // A customer who moves money to himself writes his checking account twice.
        if EARLY && from != to {
            balance(tx, CHECKING, to)?;
            tx.commit_point()?;
        }
        set_balance(tx, SAVINGS, from, 0)?;
        set_balance(tx, CHECKING, from, 0)?;
        let checking = balance(tx, CHECKING, to)?.wrapping_add(moved);
        set_balance(tx, CHECKING, to, checking)?;
        tx.output().extend_from_slice(&moved.to_le_bytes());
        tx.output().extend_from_slice(&checking.to_le_bytes());
        Ok(())
    }
}

/// Cashes a check; answers what was paid (with the penalty, if the customer has less in both
/// accounts together) and the new checking balance.
pub(super) enum WriteCheck<const EARLY: bool> {}

impl<const EARLY: bool> Procedure for WriteCheck<EARLY> {
    const NAME: &'static str = "smallbank_write_check";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let [customer, _] = words(args)?;
        declare.will_read(ACCOUNTS, &key(customer));
        declare.will_read(SAVINGS, &key(customer));
        declare.update(CHECKING, &key(customer));
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let [customer, amount] = words(args)?;
        let amount = amount as i64;
        check_account(tx, customer)?;
        let savings = balance(tx, SAVINGS, customer)?;
        let checking = balance(tx, CHECKING, customer)?;
        let penalty = if savings.wrapping_add(checking) < amount { PENALTY } else { 0 };
        let paid = amount.wrapping_add(penalty);
        let checking = checking.wrapping_sub(paid);
        commit_point::<T, EARLY>(tx)?;
        set_balance(tx, CHECKING, customer, checking)?;
        tx.output().extend_from_slice(&paid.to_le_bytes());
        tx.output().extend_from_slice(&checking.to_le_bytes());
        Ok(())
    }
}

/// Inserts a run of customers with random balances between 100 and 500.
pub(super) enum Load {}

impl Procedure for Load {
    const NAME: &'static str = "smallbank_load";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        let [first, count, _] = words(args)?;
        for customer in first..first + count {
            declare.insert(ACCOUNTS, &key(customer));
            declare.insert(SAVINGS, &key(customer));
            declare.insert(CHECKING, &key(customer));
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let [first, count, seed] = words(args)?;
        for customer in first..first + count {
            let mut random = Random::new(seed, u64::MAX, customer);
            let (savings, checking) =
                (random.between(10_000, 50_000), random.between(10_000, 50_000));
            tx.insert(ACCOUNTS, &key(customer), &customer.to_le_bytes())?;
            tx.insert(SAVINGS, &key(customer), &savings.to_le_bytes())?;
            tx.insert(CHECKING, &key(customer), &checking.to_le_bytes())?;
        }
        Ok(())
    }
}
