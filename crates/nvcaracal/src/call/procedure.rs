//! Procedures: Rust types that are transactions.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use engine::{Abort, Steps};

use crate::body;
use crate::call::declare::{Sequences, WriteSet};
use crate::call::piece::Piece;
use crate::call::piece_result::{PieceResult, PieceResults};
use crate::call::raw;
use crate::call::transaction::Transaction;
use crate::data::readable::with_readable;
use crate::data::value::Data;
use crate::dynamic::RowTypes;
use crate::stop::Stop;
use crate::table::raw::name_for_ever;
use crate::table::schema::Schema;

/// A transaction as a type: its fields are the arguments, its functions say what it may write and
/// what it does.
///
/// A procedure runs once when it is called, and once more for every recovery that replays it, and
/// must do the same each time. So it uses its arguments and what it reads through the transaction,
/// and nothing else: no clock ([`Transaction::timestamp_ns`] has one), no randomness
/// ([`Transaction::seed`]), no environment, no global state, no order of a `HashMap`, no address.
/// [`Options::check_determinism`](crate::Options::check_determinism) finds what does otherwise.
///
/// Where what a procedure does changes, or its arguments, or its answer, it gets another
/// [`VERSION`](Self::VERSION), and the one before is kept ([`WAS`](Self::WAS)): a log with calls of
/// a program whose procedures are not there is refused, and so is a replay that comes to another
/// state than the one that was answered. After a clean
/// [`Database::close`](crate::Database::close) there is no log, and anything may change.
///
/// ```
/// use nvcaracal::{Abort, HashTable, Procedure, Stop, Table, Transaction, WriteSet};
///
/// const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
///
/// nvcaracal::plain! {
///     struct Withdraw { account: u64, cents: i64 }
/// }
///
/// impl Procedure for Withdraw {
///     const NAME: &'static str = "withdraw";
///     type Output = i64;
///
///     fn write_set(&self, set: &mut WriteSet) {
///         set.update(ACCOUNTS, self.account);
///     }
///
///     fn run(&self, tx: &mut Transaction) -> Result<i64, Stop> {
///         let cents = tx.get(ACCOUNTS, self.account)?.ok_or(Abort::new("no such account"))?;
///         if cents < self.cents {
///             return Err(Abort::new("not enough money").into());
///         }
///         tx.update(ACCOUNTS, self.account, &(cents - self.cents))?;
///         Ok(cents - self.cents)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be called: it is no `nvcaracal::Procedure`",
    label = "this is no `Procedure`",
    note = "a call is a value of a type that implements `Procedure`, whose fields are the arguments"
)]
pub trait Procedure: Data + 'static {
    /// The name under which calls are logged: different for each procedure, and the same forever.
    const NAME: &'static str;

    /// The answer.
    type Output: Data;

    /// Which of the bodies that the procedure has had this is, from 1: a greater one whenever it is
    /// to do something else, or has other arguments or another answer.
    const VERSION: u32 = 1;

    /// The procedure before this version, kept as a type of its own. Its calls in the log of a
    /// database that was killed run again with it when the database is opened; then everything goes
    /// on with this version, and [`Database::recovery`](crate::Database::recovery) says whether it
    /// was needed. Without it such an open is refused.
    ///
    /// The attribute [`procedure`](crate::procedure) takes both as
    /// `#[procedure(version = 2, was = PayV1)]`. What is kept uses the handles of its time: tables
    /// by the names, and rows by the types, that they had. A procedure that is no longer there at
    /// all is kept by [`Options::procedure_was`](crate::Options::procedure_was).
    const WAS: Option<Was> = None;

    /// Whether [`Procedure::sequences`] does anything; it is not called otherwise. Where no
    /// procedure of a database allocates, epochs are a step shorter.
    const SEQUENCES: bool = true;

    /// Allocates from sequences. Runs first; by default allocates nothing.
    ///
    /// # Errors
    /// An abort ends the transaction, and it allocates nothing, so that it leaves no gap.
    fn sequences(&self, sequences: &mut Sequences) -> Result<(), Abort> {
        let _ = sequences;
        Ok(())
    }

    /// Predicts which rows [`Procedure::run`] may write, so that it can run on all cores beside
    /// others. Reads need not be declared.
    ///
    /// It is never an error to leave the set: a transaction that would write another row is
    /// *deferred*. It runs again in the next epoch, alone and before all others, and then comes to
    /// its end, whatever it writes. So does one of a procedure without this function. Calls of
    /// procedures that are often deferred are run that way at once. A transaction with pieces keeps
    /// to its set: leaving it is a mistake there, and so it is after a commit point.
    fn write_set(&self, set: &mut WriteSet) {
        set.unknown();
    }

    /// Does it. Nothing that it wrote is seen by anybody until it returns `Ok`.
    ///
    /// # Errors
    /// Give up with an [`Abort`], which converts by `?` or `into()`; pass on what the transaction's
    /// functions return with `?`. In both cases nothing was written. Nothing is written either if
    /// one of them failed and this returns `Ok` all the same: its caller gets that error.
    fn run(&self, tx: &mut Transaction) -> Result<Self::Output, Stop>;

    /// Whether [`Procedure::write_set`] declares pieces.
    const PIECES: bool = false;

    /// Runs a piece that [`WriteSet::update_piece`] declared, once it is certain that the
    /// transaction commits: not before the body has returned `Ok`, or has come to a
    /// [commit point](Transaction::commit_point). Its result goes to [`Procedure::finish`], and to
    /// pieces with larger numbers that ask for it ([`Piece::result`]).
    ///
    /// # Errors
    /// An error or a panic **stops the database**, because the transaction can no longer give up.
    /// What can fail belongs in the body.
    fn piece(&self, piece: &mut Piece) -> Result<PieceResult, Stop> {
        let _ = piece;
        Err(Stop::mistake(format!("procedure {:?} has no function for its pieces", Self::NAME)))
    }

    /// Makes the answer from what the body returned and what the pieces came to. By default it is
    /// what the body returned.
    ///
    /// A panic **stops the database**, as an error of a piece does. An answer that does not read
    /// back fails the call alone, and nothing was written: a procedure whose answers may be such
    /// ([`Data::always_reads_back`]) runs its calls alone, before all others of their epoch.
    fn finish(&self, output: Self::Output, results: PieceResults) -> Self::Output {
        let _ = results;
        output
    }
}

/// What a procedure was before: see [`Procedure::WAS`].
#[derive(Debug, Clone, Copy)]
pub struct Was {
    /// Adds it, and what it was before.
    kept: fn(&mut Vec<Registration>),
}

impl Was {
    /// This procedure, and what it was before.
    #[must_use]
    pub const fn new<P: Procedure>() -> Self {
        Self { kept: keep::<P> }
    }
}

/// Adds a procedure for logs of before, and what it was before.
pub(crate) fn keep<P: Procedure>(into: &mut Vec<Registration>) {
    into.push(Registration::new::<P>());
    keep_before::<P>(into);
}

/// Adds what a procedure was before.
pub(crate) fn keep_before<P: Procedure>(into: &mut Vec<Registration>) {
    if let Some(Was { kept }) = P::WAS {
        kept(into);
    }
}

/// How to register a procedure with a database of any schema.
#[derive(Clone)]
pub(crate) struct Registration {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    kind: Kind,
}

/// What a procedure is.
#[derive(Clone)]
enum Kind {
    /// A type.
    Typed(Typed),
    /// An object.
    Raw(Arc<dyn raw::Procedure>),
}

/// What is known of a procedure that is a type.
#[derive(Clone, Copy)]
struct Typed {
    id: TypeId,
    object: fn(Arc<Schema>) -> Arc<dyn engine::Procedure>,
    is_alone: fn() -> bool,
    types: fn() -> String,
    show: fn(&[u8]) -> Option<String>,
}

impl Registration {
    pub(crate) fn new<P: Procedure>() -> Self {
        let typed = Typed {
            id: TypeId::of::<P>(),
            object: |schema| Arc::new(Object::<P> { schema, procedure: PhantomData }),
            is_alone: || P::PIECES && !P::Output::always_reads_back(),
            types: types::<P>,
            show: show::<P>,
        };
        Self { name: P::NAME, version: P::VERSION, kind: Kind::Typed(typed) }
    }

    pub(crate) fn raw(procedure: Arc<dyn raw::Procedure>) -> Self {
        Self { name: name_for_ever(procedure.name()), version: 1, kind: Kind::Raw(procedure) }
    }

    /// Whether another one is of the same procedure.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Typed(one), Kind::Typed(other)) => one.id == other.id,
            (Kind::Raw(one), Kind::Raw(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Its type, if it is one.
    pub(crate) fn type_id(&self) -> Option<TypeId> {
        match &self.kind {
            Kind::Typed(typed) => Some(typed.id),
            Kind::Raw(_) => None,
        }
    }

    /// The procedure of a database of a schema.
    pub(crate) fn object(&self, schema: Arc<Schema>) -> Arc<dyn engine::Procedure> {
        match &self.kind {
            Kind::Typed(typed) => (typed.object)(schema),
            Kind::Raw(procedure) => {
                Arc::new(raw::Object { schema, procedure: Arc::clone(procedure) })
            }
        }
    }

    /// Whether answers are made when their calls can no longer fail in parallel, and may fail.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(&self.kind, Kind::Typed(typed) if (typed.is_alone)())
    }

    /// Says of which types arguments and answer are.
    pub(crate) fn types(&self) -> String {
        match &self.kind {
            Kind::Typed(typed) => (typed.types)(),
            Kind::Raw(procedure) => raw::types(procedure.as_ref()),
        }
    }

    /// An answer for people.
    pub(crate) fn show(&self, answer: &[u8]) -> Option<String> {
        match &self.kind {
            Kind::Typed(typed) => (typed.show)(answer),
            Kind::Raw(_) => None,
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

fn types<P: Procedure>() -> String {
    format!("{} -> {}", P::describe(), P::Output::describe())
}

fn show<P: Procedure>(answer: &[u8]) -> Option<String> {
    let types = RowTypes::parse(&[format!("() -> {}", P::Output::describe())]).ok()?;
    Some(types.value(answer).to_string())
}

/// A procedure of one database, as the engine calls it.
struct Object<P> {
    schema: Arc<Schema>,
    procedure: PhantomData<fn(P)>,
}

fn undecodable<P: Procedure>() -> String {
    format!("procedure {:?}: the arguments are no {}", P::NAME, std::any::type_name::<P>())
}

impl<P: Procedure> engine::Procedure for Object<P> {
    fn name(&self) -> &str {
        P::NAME
    }

    fn steps(&self) -> Steps {
        Steps { sequences: P::SEQUENCES, pieces: P::PIECES, finish: P::PIECES }
    }

    fn sequences(&self, arguments: &[u8], inner: &mut engine::Sequences<'_>) -> Result<(), Abort> {
        let mut sequences = Sequences { inner, schema: &self.schema };
        body::within(|| P::with_value(arguments, |procedure| procedure.sequences(&mut sequences)))
            .unwrap_or_else(|| {
                sequences.inner.mistake(undecodable::<P>());
                Ok(())
            })
    }

    fn write_set(&self, arguments: &[u8], inner: &mut engine::WriteSet<'_>) -> Result<(), Abort> {
        let mut set = WriteSet { inner, schema: &self.schema };
        if body::within(|| P::with_value(arguments, |procedure| procedure.write_set(&mut set)))
            .is_none()
        {
            set.inner.mistake(undecodable::<P>());
        }
        Ok(())
    }

    fn run(
        &self,
        arguments: &[u8],
        inner: &mut engine::Transaction<'_>,
    ) -> Result<(), engine::Stop> {
        let mut tx = Transaction { inner, schema: &self.schema };
        body::within(|| {
            let output = P::with_value(arguments, |procedure| procedure.run(&mut tx))
                .unwrap_or_else(|| Err(Stop::mistake(undecodable::<P>())))
                .map_err(|stop| stop.inner)?;
            with_readable(&output, |bytes| tx.inner.output().extend_from_slice(bytes))
                .map_err(|what| tx.inner.mistake(format!("the answer: {what}")))
        })
    }

    fn piece(
        &self,
        arguments: &[u8],
        inner: &mut engine::Piece<'_>,
    ) -> Result<engine::PieceResult, engine::Stop> {
        let mut piece = Piece { inner, schema: &self.schema };
        body::within(|| P::with_value(arguments, |procedure| procedure.piece(&mut piece)))
            .unwrap_or_else(|| Err(Stop::mistake(undecodable::<P>())))
            .map(|result| result.0)
            .map_err(|stop| stop.inner)
    }

    fn finish(&self, arguments: &[u8], results: &[engine::PieceResult], bytes: &mut Vec<u8>) {
        let results = PieceResults(results);
        body::within(|| {
            let output = P::Output::from_bytes(bytes).expect("the body put out what it returned");
            let output = P::with_value(arguments, |procedure| procedure.finish(output, results));
            bytes.clear();
            let output = output.expect("the body ran with the same arguments");
            with_readable(&output, |output| bytes.extend_from_slice(output))
                .unwrap_or_else(|what| panic!("the answer: {what}"));
        });
    }
}
