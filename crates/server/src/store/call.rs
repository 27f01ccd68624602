//! The bytes of calls and of their answers.

use super::block::form::Block;
use serde::{Deserialize, Serialize};
use sql::ir::{ObjectId, Space, Value};
use sql::run::Tag;
use std::collections::BTreeMap;
use values::{Datum, Error, Position, Result, SqlState, Timestamp, Zone};

/// The version of these forms; the first byte of each call.
const VERSION: u8 = 1;

/// The code of an abort by an error of the statement, which is its payload.
pub(super) const REFUSED: u32 = 1;
/// The code of an abort of a call that got too few numbers of sequences: its payload says how many
/// it takes.
pub(super) const MORE_NUMBERS: u32 = 2;

/// What a call does.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Call<'a> {
    /// Runs a plan.
    Run(#[serde(borrow)] Run<'a>),
    /// Writes rows of a definition: of the catalog, and entries of a new index.
    Define(Vec<DefinedRow>),
    /// Deletes rows whose keys begin with this, at most so many.
    Clear(Space, Vec<u8>, u32),
    /// Runs several plans.
    Block(#[serde(borrow)] Block<'a>),
    /// Takes numbers of a sequence, for a block.
    Reserve(ObjectId, u32),
    /// Writes rows of a block with definitions, and counts what it took of sequences that are new.
    DefineBlock(Vec<DefinedRow>, BTreeMap<ObjectId, u32>),
    /// Runs a plan that passes by the rows with these keys, in order, as blocks had claimed them.
    RunPassing(#[serde(borrow)] Run<'a>, Vec<Vec<u8>>),
}

/// A row that a definition writes, or deletes if there is none.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DefinedRow {
    pub(super) space: Space,
    #[serde(with = "serde_bytes")]
    pub(super) key: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub(super) row: Option<Vec<u8>>,
}

/// A plan with all that decides what comes of it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Run<'a> {
    /// How many numbers of which sequences it gets.
    pub(super) numbers: BTreeMap<ObjectId, u32>,
    /// Whether the write set is said before it runs.
    pub(super) is_predicted: bool,
    /// `now()`, in microseconds since 2000.
    pub(super) now: i64,
    /// The session's zone.
    #[serde(borrow)]
    pub(super) zone: ZoneForm<'a>,
    pub(super) steps_max: u64,
    pub(super) memory_bytes_max: u64,
    pub(super) parameters: Vec<Value>,
    /// The plan's own form, with its own version.
    #[serde(borrow, with = "serde_bytes")]
    pub(super) plan: &'a [u8],
}

impl Call<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![VERSION]).expect("a vector takes all")
    }

    /// The call of these bytes. Any bytes are decoded or refused.
    pub(super) fn decode(bytes: &[u8]) -> Result<Call<'_>> {
        let damaged = || Error::corrupted("call is damaged");
        match bytes.split_first() {
            Some((&VERSION, body)) => postcard::from_bytes(body).map_err(|_| damaged()),
            _ => Err(damaged()),
        }
    }
}

impl Run<'_> {
    /// What the plan runs in.
    pub(super) fn context(&self) -> Result<sql::run::Context> {
        Ok(sql::run::Context {
            parameters: self.parameters.iter().map(|value| value.0.clone()).collect(),
            now: Timestamp::from_bits(self.now)?,
            zone: self.zone.zone()?,
            limits: sql::run::Limits {
                memory_bytes_max: usize::try_from(self.memory_bytes_max).unwrap_or(usize::MAX),
                ..Default::default()
            },
            system: None,
            grant: None,
        })
    }
}

/// A zone as calls have it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum ZoneForm<'a> {
    /// Always so many seconds from UTC.
    Fixed(i32),
    /// By its name.
    Named(&'a str),
}

impl ZoneForm<'_> {
    pub(super) fn of(zone: &Zone) -> ZoneForm<'_> {
        match zone.fixed_seconds() {
            Some(seconds) => ZoneForm::Fixed(seconds),
            None => ZoneForm::Named(zone.name()),
        }
    }

    pub(super) fn zone(&self) -> Result<Zone> {
        match *self {
            ZoneForm::Fixed(0) => Ok(Zone::utc()),
            ZoneForm::Fixed(seconds) => {
                Zone::fixed(seconds).ok_or_else(|| Error::corrupted("zone of a call is damaged"))
            }
            ZoneForm::Named(name) => Zone::named(name),
        }
    }
}

#[derive(Serialize, Deserialize)]
enum TagKind {
    Select,
    Insert,
    Update,
    Delete,
    Copy,
    Merge,
}

#[derive(Serialize, Deserialize)]
struct Answered {
    kind: TagKind,
    count: u64,
    rows: Vec<Vec<Value>>,
}

pub(super) fn encode_answer(answer: sql::run::Answer) -> Vec<u8> {
    let (kind, count) = match answer.tag {
        Tag::Select(count) => (TagKind::Select, count),
        Tag::Insert(count) => (TagKind::Insert, count),
        Tag::Update(count) => (TagKind::Update, count),
        Tag::Delete(count) => (TagKind::Delete, count),
        Tag::Copy(count) => (TagKind::Copy, count),
        Tag::Merge(count) => (TagKind::Merge, count),
    };
    let values = |row: Vec<Datum>| row.into_iter().map(Value).collect();
    let rows = answer.rows.into_iter().map(values).collect();
    postcard::to_allocvec(&Answered { kind, count, rows }).expect("a vector takes all")
}

pub(super) fn decode_answer(bytes: &[u8]) -> Result<sql::run::Answer> {
    let answered: Answered =
        postcard::from_bytes(bytes).map_err(|_| Error::corrupted("answer is damaged"))?;
    let count = answered.count;
    let tag = match answered.kind {
        TagKind::Select => Tag::Select(count),
        TagKind::Insert => Tag::Insert(count),
        TagKind::Update => Tag::Update(count),
        TagKind::Delete => Tag::Delete(count),
        TagKind::Copy => Tag::Copy(count),
        TagKind::Merge => Tag::Merge(count),
    };
    let data = |row: Vec<Value>| row.into_iter().map(|value| value.0).collect();
    Ok(sql::run::Answer { tag, rows: answered.rows.into_iter().map(data).collect() })
}

#[derive(Serialize, Deserialize)]
struct Report {
    state: String,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    constraint: Option<String>,
    position: Option<u32>,
    context: Option<String>,
    table: Option<String>,
    column: Option<String>,
}

pub(super) fn encode_error(error: &Error) -> Vec<u8> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let report = Report {
        state: error.state().code().to_owned(),
        message: error.message().to_owned(),
        detail: owned(error.detail()),
        hint: owned(error.hint()),
        constraint: owned(error.constraint()),
        position: error.position().map(Position::number),
        context: owned(error.context()),
        table: owned(error.table()),
        column: owned(error.column()),
    };
    postcard::to_allocvec(&report).expect("a vector takes all")
}

pub(super) fn decode_error(bytes: &[u8]) -> Error {
    let Ok(report) = postcard::from_bytes::<Report>(bytes) else {
        return Error::corrupted("error of a call is damaged");
    };
    let state = SqlState::from_code(&report.state).unwrap_or(SqlState::INTERNAL);
    let mut error = Error::new(state, report.message);
    if let Some(detail) = report.detail {
        error = error.with_detail(detail);
    }
    if let Some(hint) = report.hint {
        error = error.with_hint(hint);
    }
    if let Some(constraint) = report.constraint {
        error = error.with_constraint(constraint);
    }
    if let Some(table) = report.table {
        error = error.with_table(table);
    }
    if let Some(column) = report.column {
        error = error.with_column(column);
    }
    if let Some(context) = report.context {
        error = error.with_context(context);
    }
    error.at(report.position.and_then(Position::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_errors_read_back() {
        let berlin = Zone::named("europe/berlin").unwrap();
        let run = Run {
            numbers: BTreeMap::from([(ObjectId::new(20_000), 3)]),
            is_predicted: true,
            now: -5,
            zone: ZoneForm::of(&berlin),
            steps_max: 1,
            memory_bytes_max: 2,
            parameters: vec![Value(Datum::Null), Value(Datum::text("x"))],
            plan: b"plan",
        };
        assert_eq!(run.context().unwrap().zone.name(), "Europe/Berlin");
        let call = Call::Run(run);
        let bytes = call.encode();
        assert_eq!(Call::decode(&bytes).unwrap(), call);
        for len in 0..bytes.len() {
            assert!(Call::decode(&bytes[..len]).is_err());
        }
        let error = Error::new(SqlState::UNIQUE_VIOLATION, "duplicate")
            .with_detail("which")
            .with_hint("what to do")
            .with_constraint("key")
            .with_table("table")
            .with_column("column")
            .with_context("where")
            .at(Position::new(7));
        let again = decode_error(&encode_error(&error));
        assert_eq!(format!("{:?}", encode_error(&again)), format!("{:?}", encode_error(&error)));
    }

    #[test]
    fn zones_read_back() {
        for zone in [Zone::utc(), Zone::fixed(-5400).unwrap(), Zone::named("gmt").unwrap()] {
            let again = ZoneForm::of(&zone).zone().unwrap();
            assert_eq!(again.offset_seconds(0), zone.offset_seconds(0));
        }
    }

    #[test]
    fn all_values_of_an_answer_read_back() {
        let row = vec![Datum::Null, Datum::Int8(-1), Datum::text(""), Datum::Bool(true)];
        let answer = sql::run::Answer { tag: Tag::Update(9), rows: vec![row, Vec::new()] };
        assert_eq!(decode_answer(&encode_answer(answer.clone())).unwrap(), answer);
    }
}
