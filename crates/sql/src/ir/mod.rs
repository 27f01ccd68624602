//! The form of plans that is logged: what the planner decided, with nothing left to decide.
//!
//! Expressions are flat programs for a stack, run by a loop, so no depth of a statement is a depth
//! of calls. The order of the variants of all enums here is part of the format: new ones go to the
//! end. Golden files in the tests keep the bytes as they are; a change that old bytes do not
//! survive is a new [`VERSION`].

mod access;
mod change;
mod claim;
mod codec;
mod composed;
mod effect;
mod expression;
mod foreign;
mod functions;
mod guarded;
mod index;
mod join;
mod name;
mod named;
mod number;
mod plan;
mod query;
mod relation;
mod system;
mod value;
mod window;
mod writing;

pub use access::{Access, Among, Bound, KeyOrder, Members, RangeRest};
pub use change::{Action, Assignment, Conflict, Delete, Insert, InsertRows, Update};
pub use claim::{Claim, ClaimKey, Strength, Wait};
pub use codec::{VERSION, decode, encode};
pub(crate) use codec::{from_bytes, to_bytes};
pub use composed::{
    Change, Composed, Input, Main, QUERY_DEPTH_MAX, Query, Recursive, SetOperator, SetStep,
};
pub use effect::{AdvisoryAction, AdvisoryMode, SleepForm};
pub use expression::{Expression, Function, Op, Random, Use};
pub use foreign::{Deferral, ForeignKey, Referential};
pub use functions::{
    ArrayFunction, ByteFunction, MathFunction, NetworkFunction, PathQuery, PatternFunction,
    Statistic, TextFunction, TimeFunction,
};
pub use guarded::Guarded;
pub use index::{Computed, ExtendedIndex, Index, IndexForm, SpecialIndex};
pub use join::{Item, ItemRows, JoinKind, Joins, Method};
pub use name::Name;
pub use number::{ColumnNumber, ObjectId, QueryNumber, SchemaId};
pub use plan::Plan;
pub use query::{Aggregate, AggregateKind, Direction, Group, OrderedKind, Select, SortKey, Source};
pub use relation::{Check, Column, ColumnForm, KeyColumn, Relation, Space};
pub use system::{RowsCall, RowsFunction, SystemFunction};
pub use value::{Kind, Value};
pub use window::{Frame, FrameBound, FrameUnit, Window, WindowCall, WindowFunction, Windows};
pub use writing::{Part, Writing};
