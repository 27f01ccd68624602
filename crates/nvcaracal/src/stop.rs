//! How a procedure ends without committing.

use std::fmt;

use engine::Abort;

use crate::data::readable::with_readable;
use crate::data::tags::fold_all;
use crate::data::value::Data;

/// Why a procedure ends without committing.
///
/// The functions of a [`Transaction`](crate::Transaction) return it for mistakes and for what the
/// database has to do; pass that on with `?`. To give up on purpose, return words, a value of a
/// type of your own that is [`Data`] and has a text, or an [`Abort`], all of which convert by `?`
/// or `into()`:
///
/// ```
/// use nvcaracal::{Data, Database, HashTable, Procedure, Stop, Table, Transaction, plain};
///
/// #[derive(Debug, Clone, PartialEq, Data)]
/// struct Missing {
///     cents: i64,
/// }
///
/// impl std::fmt::Display for Missing {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         write!(f, "{} cents are missing", self.cents)
///     }
/// }
///
/// const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
///
/// plain! {
///     struct Withdraw { account: u64, cents: i64 }
/// }
///
/// impl Procedure for Withdraw {
///     const NAME: &'static str = "withdraw";
///     type Output = i64;
///
///     fn run(&self, tx: &mut Transaction) -> Result<i64, Stop> {
///         let Some(cents) = tx.get(ACCOUNTS, self.account)? else {
///             Err(format!("there is no account {}", self.account))?
///         };
///         if cents < self.cents {
///             Err(Missing { cents: self.cents - cents })?;
///         }
///         tx.update(ACCOUNTS, self.account, &(cents - self.cents))?;
///         Ok(cents - self.cents)
///     }
/// }
///
/// # plain! { struct Open { account: u64 } }
/// # impl Procedure for Open {
/// #     const NAME: &'static str = "open";
/// #     type Output = ();
/// #     fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
/// #         tx.insert(ACCOUNTS, self.account, &5)
/// #     }
/// # }
/// # let db = Database::options().table(ACCOUNTS).procedure::<Withdraw>().procedure::<Open>()
/// #     .open_device(nvcaracal::DeviceSpec::Dram)?;
/// # db.call(Open { account: 1 })?;
/// let error = db.call(Withdraw { account: 1, cents: 7 }).unwrap_err();
/// assert_eq!(error.to_string(), "aborted: 2 cents are missing");
/// assert_eq!(error.abort_as::<Missing>(), Some(Missing { cents: 2 }));
/// # let error = db.call(Withdraw { account: 2, cents: 7 }).unwrap_err();
/// # assert_eq!(error.to_string(), "aborted: there is no account 2");
/// # Ok::<(), nvcaracal::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub(crate) inner: engine::Stop,
}

impl Stop {
    /// A mistake of the procedure that is not noted yet.
    pub(crate) fn mistake(what: String) -> Self {
        engine::Stop::mistake(what).into()
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl std::error::Error for Stop {}

impl From<engine::Stop> for Stop {
    fn from(inner: engine::Stop) -> Self {
        Self { inner }
    }
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        engine::Stop::from(abort).into()
    }
}

impl From<&str> for Stop {
    fn from(message: &str) -> Self {
        message.to_string().into()
    }
}

/// Gives up with a value, which the caller gets back by
/// [`Error::abort_as`](crate::Error::abort_as).
impl<E: Data + fmt::Display> From<E> for Stop {
    fn from(reason: E) -> Self {
        let mut payload = type_of::<E>().to_le_bytes().to_vec();
        match with_readable(&reason, |bytes| payload.extend_from_slice(bytes)) {
            Ok(()) => Abort { payload, ..Abort::new(reason.to_string()) }.into(),
            Err(what) => Self::mistake(format!("the reason of an abort, {reason}: {what}")),
        }
    }
}

/// What tells a value that a procedure gave up with from those of other types.
fn type_of<E: Data>() -> u64 {
    let name = std::any::type_name::<E>();
    fold_all(&[name.as_bytes(), E::describe().as_bytes()])
}

/// The value that a procedure gave up with, if it is of this type.
pub(crate) fn reason<E: Data>(abort: &Abort) -> Option<E> {
    let (tag, bytes) = abort.payload.split_first_chunk()?;
    (u64::from_le_bytes(*tag) == type_of::<E>()).then(|| E::from_bytes(bytes)).flatten()
}
