//! A row between its bytes and what people and other programs read: by the types that its table has
//! in words, of whichever version its value is.
//!
//! What is shown of a row is read back before anybody gets to see it: where that does not come to
//! the same bytes, the bytes are shown.

use nvcaracal::dynamic::{Cell, RowTypes, Value};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

/// How rows of a table are read and written.
#[derive(Debug, Clone)]
pub(crate) struct Types {
    is_sequence: bool,
    types: Option<RowTypes>,
}

/// A row as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: Part,
    /// Of which version of its type the value is, where there are several.
    pub(crate) version: Option<usize>,
    pub(crate) value: Part,
}

/// A key or a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// By its type.
    Shown(Value),
    /// What has no other form from which it could be had again.
    Bytes(Vec<u8>),
}

impl Part {
    /// Whether it is shown by its type.
    pub(crate) fn is_shown(&self) -> bool {
        matches!(self, Self::Shown(_))
    }
}

/// A column of a table of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    of: ColumnOf,
}

/// Which part of a row a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnOf {
    Key,
    /// The version of the value's type.
    Version,
    /// The whole value, where it is no struct.
    Value,
    /// A field of it, by the column's name.
    Field,
}

/// A cell: nothing, or a text.
pub(crate) type Text = Option<String>;

/// A row's key and value as they are stored.
pub(crate) type Stored = (Vec<u8>, Vec<u8>);

/// Without types rows are bytes.
const PLAIN: Cell = Cell { is_text: false, may_be_null: false };

impl Types {
    /// Of a table whose rows are of unknown types, or of a sequence.
    pub(crate) fn unknown(is_sequence: bool) -> Self {
        Self { is_sequence, types: None }
    }

    /// By the words for each version of the types, the oldest first.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        Ok(Self { is_sequence: false, types: Some(RowTypes::parse(words)?) })
    }

    pub(crate) fn is_sequence(&self) -> bool {
        self.is_sequence
    }

    /// Whether values of several versions may be there.
    pub(crate) fn has_versions(&self) -> bool {
        self.types.as_ref().is_some_and(|types| types.versions() > 1)
    }

    pub(crate) fn key(&self, bytes: &[u8]) -> Value {
        match &self.types {
            Some(types) => types.key(bytes),
            None if self.is_sequence => number(bytes, u64::from_be_bytes),
            None => Value::Bytes(bytes.to_vec()),
        }
    }

    pub(crate) fn value(&self, bytes: &[u8]) -> Value {
        match &self.types {
            Some(types) => types.value(bytes),
            None if self.is_sequence => number(bytes, u64::from_le_bytes),
            None => Value::Bytes(bytes.to_vec()),
        }
    }

    /// A row as it is shown.
    fn row(&self, key: &[u8], value: &[u8]) -> Row {
        let version = self.types.as_ref().map_or(Some(0), |types| types.version_of(value));
        Row {
            key: Part::Shown(self.key(key)),
            version: version.filter(|_| self.has_versions()),
            value: match version {
                Some(_) => Part::Shown(self.value(value)),
                None => Part::Bytes(value.to_vec()),
            },
        }
    }

    /// A row as a line of JSON from which it can be had again.
    pub(crate) fn line(&self, key: &[u8], value: &[u8]) -> String {
        let mut row = self.row(key, value);
        let line = row.line();
        let read = Row::parse(&line).ok();
        let is = |bytes: Option<Vec<u8>>, stored: &[u8]| bytes.is_some_and(|bytes| bytes == stored);
        let key_again = read.as_ref().and_then(|read| self.key_bytes(&read.key).ok());
        let value_again = read.as_ref().and_then(|read| self.value_bytes(read).ok());
        let (is_key, is_value) = (is(key_again, key), is(value_again, value));
        if is_key && is_value {
            return line;
        }
        if !is_key {
            row.key = Part::Bytes(key.to_vec());
        }
        if !is_value {
            (row.version, row.value) = (None, Part::Bytes(value.to_vec()));
        }
        row.line()
    }

    /// Key and value of a row as they are stored.
    ///
    /// # Errors
    /// What they cannot be.
    pub(crate) fn bytes(&self, row: &Row) -> Result<Stored, String> {
        let key = self.key_bytes(&row.key).map_err(|what| format!("key: {what}"))?;
        let value = self.value_bytes(row).map_err(|what| format!("value: {what}"))?;
        Ok((key, value))
    }

    fn key_bytes(&self, key: &Part) -> Result<Vec<u8>, String> {
        match (key, &self.types) {
            (Part::Bytes(bytes), _) => Ok(bytes.clone()),
            (Part::Shown(key), Some(types)) => types.key_bytes(key),
            (Part::Shown(key), None) if self.is_sequence => {
                Ok(sequence_number(key)?.to_be_bytes().to_vec())
            }
            (Part::Shown(key), None) => plain()?.key_bytes(key),
        }
    }

    fn value_bytes(&self, row: &Row) -> Result<Vec<u8>, String> {
        let value = match &row.value {
            Part::Bytes(_) if row.version.is_some() => {
                return Err("bytes are of no version".to_string());
            }
            Part::Bytes(bytes) => return Ok(bytes.clone()),
            Part::Shown(value) => value,
        };
        match (&self.types, row.version) {
            (Some(types), Some(version)) => types.value_bytes_of(value, version),
            (Some(types), None) => types.value_bytes(value),
            (None, Some(_)) => Err("the values of its table have no versions".to_string()),
            (None, None) if self.is_sequence => Ok(sequence_number(value)?.to_le_bytes().to_vec()),
            (None, None) => plain()?.value_bytes(value),
        }
    }
}

/// Tables of text.
impl Types {
    /// The columns: of all versions of the values.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let column = |name: &str, of| Column { name: name.to_string(), of };
        let mut columns = vec![column("key", ColumnOf::Key)];
        let Some(types) = &self.types else {
            columns.push(column("value", ColumnOf::Value));
            return columns;
        };
        if self.has_versions() {
            columns.push(column("version", ColumnOf::Version));
        }
        let fields = |version| types.fields(version);
        if (0..types.versions()).any(|version| fields(version).is_empty()) {
            columns.push(column("value", ColumnOf::Value));
        }
        let mut names: Vec<&str> = Vec::new();
        // In the order of the newest; those that it does not have come last.
        for name in (0..types.versions()).rev().flat_map(fields) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        columns.extend(names.into_iter().map(|name| column(name, ColumnOf::Field)));
        columns
    }

    /// What is in the cells of a column in rows of a version; `None` if that has no such field.
    fn cell_of(&self, column: &Column, version: usize) -> Option<Cell> {
        let Some(types) = &self.types else { return Some(PLAIN) };
        let (fields, cells) = (types.fields(version), types.cells(version));
        match column.of {
            ColumnOf::Key => Some(types.key_cell()),
            ColumnOf::Version => Some(PLAIN),
            ColumnOf::Value => cells.first().copied().filter(|_| fields.is_empty()),
            ColumnOf::Field => {
                let at = fields.iter().position(|name| *name == column.name)?;
                cells.get(at).copied()
            }
        }
    }

    /// A row's cells; `None` if the row could not be had again from them.
    pub(crate) fn cells(&self, columns: &[Column], key: &[u8], value: &[u8]) -> Option<Vec<Text>> {
        let row = self.row(key, value);
        let (Part::Shown(key_shown), Part::Shown(shown)) = (&row.key, &row.value) else {
            return None;
        };
        let of_field = |name: &str| match shown {
            Value::Struct(named) => {
                let found = named.iter().find(|(of, _)| of == name);
                found.and_then(|(_, value)| cell(value))
            }
            _ => None,
        };
        let version = row.version.unwrap_or(0);
        let cells = columns.iter().map(|column| {
            self.cell_of(column, version)?;
            match column.of {
                ColumnOf::Key => cell(key_shown),
                ColumnOf::Version => row.version.map(|version| version.to_string()),
                ColumnOf::Value => cell(shown),
                ColumnOf::Field => of_field(&column.name),
            }
        });
        let cells: Vec<Text> = cells.collect();
        let again = self.row_of_cells(columns, &cells).and_then(|row| self.bytes(&row)).ok()?;
        (again.0 == key && again.1 == value).then_some(cells)
    }

    /// The row that cells are of.
    ///
    /// # Errors
    /// Which cell is wrong.
    pub(crate) fn row_of_cells(&self, columns: &[Column], cells: &[Text]) -> Result<Row, String> {
        let named = || columns.iter().zip(cells);
        let version = match named().find(|(column, _)| column.of == ColumnOf::Version) {
            None => None,
            Some((_, Some(text))) => Some(text.parse::<usize>().map_err(|_| {
                format!("version: {text:?} is no version: they are counted from 0")
            })?),
            Some((_, None)) => return Err("version: there is none".to_string()),
        };
        let (mut key, mut whole, mut fields) = (Value::Null, None, Vec::new());
        for (column, text) in named().filter(|(column, _)| column.of != ColumnOf::Version) {
            let name = &column.name;
            let Some(cell) = self.cell_of(column, version.unwrap_or(0)) else {
                match text {
                    None => continue,
                    Some(_) => return Err(format!("{name}: values of this version have none")),
                }
            };
            let value = untyped_cell(text, cell).map_err(|what| format!("{name}: {what}"))?;
            match (column.of, value) {
                (ColumnOf::Key, value) => key = value.unwrap_or(Value::Null),
                (ColumnOf::Value, value) => whole = Some(value.unwrap_or(Value::Null)),
                (_, Some(value)) => fields.push((name.clone(), value)),
                // What is missing is told by its type.
                (_, None) => {}
            }
        }
        let value = Part::Shown(whole.unwrap_or(Value::Struct(fields)));
        Ok(Row { key: Part::Shown(key), version, value })
    }
}

fn plain() -> Result<RowTypes, String> {
    RowTypes::parse(&["[u8] -> Vec<u8>"])
}

fn number(bytes: &[u8], of: fn([u8; 8]) -> u64) -> Value {
    match bytes.try_into() {
        Ok(word) => Value::Unsigned(of(word).into()),
        Err(_) => Value::Bytes(bytes.to_vec()),
    }
}

fn sequence_number(value: &Value) -> Result<u64, String> {
    let number = match value {
        Value::Unsigned(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    // The number after the last one could not be allocated.
    let number = number.filter(|&number| number < u64::MAX);
    number.ok_or_else(|| format!("{value} is no number of a sequence"))
}

/// Texts as they are, nothing for null, everything else as JSON.
fn cell(value: &Value) -> Text {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// What a cell says; nothing where there is nothing and null is no value.
fn untyped_cell(text: &Text, of: Cell) -> Result<Option<Value>, String> {
    match text {
        None if of.may_be_null => Ok(Some(Value::Null)),
        None => Ok(None),
        Some(text) if of.is_text => Ok(Some(Value::Text(text.clone()))),
        Some(text) => {
            let json = serde_json::from_str(text);
            json.map(|json| Some(untyped(json))).map_err(|error| format!("{text:?}: {error}"))
        }
    }
}

/// A row as a line of JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowLine {
    #[serde(default, deserialize_with = "there")]
    key: Option<Json>,
    #[serde(default)]
    key_bytes: Option<String>,
    #[serde(default)]
    version: Option<usize>,
    #[serde(default, deserialize_with = "there")]
    value: Option<Json>,
    #[serde(default)]
    value_bytes: Option<String>,
}

/// Null is a value, too.
fn there<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

impl Row {
    /// Reads what [`Row::line`] wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let line: RowLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let part = |name: &str, shown: Option<Json>, bytes: Option<String>| match (shown, bytes) {
            (Some(shown), None) => Ok(Part::Shown(untyped(shown))),
            (None, Some(text)) => {
                let bytes = plain()?.value_bytes(&Value::Text(text));
                bytes.map(Part::Bytes).map_err(|what| format!("{name}_bytes: {what}"))
            }
            (None, None) => Err(format!("missing field `{name}`")),
            (Some(_), Some(_)) => Err(format!("there is `{name}` and `{name}_bytes`")),
        };
        Ok(Self {
            key: part("key", line.key, line.key_bytes)?,
            version: line.version,
            value: part("value", line.value, line.value_bytes)?,
        })
    }

    fn line(&self) -> String {
        let part = |name: &str, part: &Part| match part {
            Part::Shown(value) => format!("\"{name}\":{value}"),
            Part::Bytes(bytes) => format!("\"{name}_bytes\":{}", Value::Bytes(bytes.clone())),
        };
        let (key, value) = (part("key", &self.key), part("value", &self.value));
        match self.version {
            None => format!("{{{key},{value}}}"),
            Some(version) => format!("{{{key},\"version\":{version},{value}}}"),
        }
    }
}

/// A value of JSON.
fn untyped(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(flag),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Value::Unsigned(number.into()),
            (None, Some(number)) => Value::Signed(number.into()),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(items) => Value::List(items.into_iter().map(untyped).collect()),
        Json::Object(fields) => {
            Value::Struct(fields.into_iter().map(|(name, of)| (name, untyped(of))).collect())
        }
    }
}
