//! What queries may ask of the system catalog and the session. No statement that writes has any of
//! it: a replay knows neither.

use super::effect::{AdvisoryAction, SleepForm};
use super::expression::Expression;
use serde::{Deserialize, Serialize};

/// What [`super::Op::System`] computes: functions that look at the catalog or the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after PostgreSQL's functions")]
pub enum SystemFunction {
    ProcessId,
    CurrentSetting,
    /// The object that text names, of the type with this name; an error if there is none.
    ToObject,
    /// The same; NULL if there is none.
    FindObject,
    /// What an object of the type with this name is called.
    ObjectName,
    FormatType,
    IndexDefinition,
    ConstraintDefinition,
    ViewDefinition,
    UserName,
    IsVisible,
    SerialSequence,
    EncodingName,
    EncodingNumber,
    SizePretty,
    /// `obj_description`
    Description,
    /// `col_description`
    ColumnDescription,
    /// `shobj_description`
    SharedDescription,
    /// `pg_get_expr` with whether brackets are only where they are needed.
    ExpressionText,
    /// `pg_advisory_lock` and its kin.
    Advisory(AdvisoryAction),
    /// `pg_sleep` and its kin.
    Sleep(SleepForm),
    /// `pg_cancel_backend`
    CancelBackend,
    /// `pg_terminate_backend`
    TerminateBackend,
    /// `oidvectortypes`
    FormatTypes,
    /// `information_schema._pg_char_max_length`
    CharMaxLength,
    /// `information_schema._pg_numeric_precision`
    NumericPrecision,
    /// `information_schema._pg_numeric_scale`
    NumericScale,
    /// `information_schema._pg_datetime_precision`
    DatetimePrecision,
    /// `pg_sequence_last_value`
    SequenceLast,
}

impl SystemFunction {
    /// Whether it does something beside computing: each row that it is computed for counts.
    pub fn has_effect(self) -> bool {
        use SystemFunction::{Advisory, CancelBackend, Sleep, TerminateBackend};
        matches!(self, Advisory(_) | Sleep(_) | CancelBackend | TerminateBackend)
    }
}

/// A function whose results are rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowsFunction {
    /// `generate_series`
    Series,
    /// `unnest`
    Unnest,
    /// `generate_subscripts`
    Subscripts,
    /// One of which there is nothing here, such as `pg_partition_ancestors`.
    Nothing,
    /// `information_schema._pg_expandarray`: the items, each with its place.
    Expanded,
    /// `jsonb_array_elements`
    JsonItems,
    /// `jsonb_array_elements_text`
    JsonItemsText,
    /// `jsonb_object_keys`, and the keys of `jsonb_each`
    JsonKeys,
    /// The values of `jsonb_each`
    JsonValues,
    /// The values of `jsonb_each_text`
    JsonValuesText,
    /// `regexp_matches`, with its flags.
    RegexMatches,
    /// `regexp_split_to_table`, with its flags.
    RegexParts,
    /// `string_to_table`
    TextParts,
    /// The value itself: one row.
    Value,
    /// `pg_listening_channels`; only in queries.
    ListeningChannels,
    /// `jsonb_path_query`, with its variables and whether it is silent.
    JsonQuery,
}

/// A call of such a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowsCall {
    /// The function.
    pub function: RowsFunction,
    /// Its arguments.
    pub arguments: Vec<Expression>,
}
