//! Enum types: names in an order, which statements make.
//!
//! A value is the number of its label: rows and keys have these 4 bytes, and numbers are in the
//! order of the labels. There are gaps between them for labels that come later. Definitions are
//! immutable and stay as long as the process, each once, so that a type is a plain reference to its
//! own; how many bytes of them there may be is limited.

use super::Oid;
use crate::{Error, Result, SqlState};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// The most labels of a type.
pub const LABELS_MAX: usize = 4_096;
/// The most bytes of a label, and of a type's name.
const NAME_BYTES_MAX: usize = 63;
/// The widest gap that is left between the numbers of labels.
const GAP_MAX: u32 = 1 << 24;
/// The most bytes of definitions that statements make in the life of a process.
const DEFINED_BYTES_MAX: usize = 64 << 20;

/// An enum type: one of its definitions. Definitions of one object id are one type.
#[derive(Clone, Copy)]
pub struct EnumType(&'static Definition);

/// A label with its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    number: u32,
    text: Box<str>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Definition {
    oid: Oid,
    name: Box<str>,
    /// As messages and statements write it.
    shown: Box<str>,
    /// By number.
    labels: Vec<Label>,
}

/// All definitions that there ever were in this process, and their bytes.
struct Defined {
    all: BTreeSet<&'static Definition>,
    bytes: usize,
}

static DEFINED: Mutex<Defined> = Mutex::new(Defined { all: BTreeSet::new(), bytes: 0 });

/// Where a label is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// Behind all others.
    Last,
    /// Before the label with this text.
    Before(&'a str),
    /// Behind the label with this text.
    After(&'a str),
}

impl EnumType {
    /// A type with these labels, from the smallest to the largest. The object id of its arrays is
    /// the next one. Texts are as PostgreSQL wants them: not longer than a name, and
    /// each is there once.
    pub fn new(oid: Oid, name: &str, shown: &str, labels: &[&str]) -> Result<EnumType> {
        if labels.len() > LABELS_MAX {
            return Err(too_many());
        }
        let gap = (u32::MAX / (2 * (labels.len() as u32 + 1))).min(GAP_MAX);
        let middle = u32::MAX / 2;
        let first = middle - gap * (labels.len() as u32 / 2);
        let numbers = (0_u32..).map(|at| first + at * gap);
        let mut all: Vec<Label> = Vec::with_capacity(labels.len());
        for (text, number) in labels.iter().zip(numbers) {
            check_label(text)?;
            if all.iter().any(|label| *label.text == **text) {
                let message = format!("enum label \"{text}\" used more than once");
                return Err(Error::new(SqlState::UNIQUE_VIOLATION, message));
            }
            all.push(Label { number, text: (*text).into() });
        }
        let (name, shown) = (name.into(), shown.into());
        EnumType::define(Definition { oid, name, shown, labels: all })
    }

    /// The same type with another label.
    pub fn with_label(self, text: &str, place: Place<'_>) -> Result<EnumType> {
        check_label(text)?;
        let labels = &self.0.labels;
        if labels.len() >= LABELS_MAX {
            return Err(too_many());
        }
        let at = match place {
            Place::Last => labels.len(),
            Place::Before(other) => self.place(other)?,
            Place::After(other) => self.place(other)? + 1,
        };
        let below = at.checked_sub(1).map(|before| labels[before].number);
        let above = labels.get(at).map(|after| after.number);
        let number = match (below, above) {
            (None, None) => Some(u32::MAX / 2),
            (Some(below), None) => between(below, below.saturating_add(2 * GAP_MAX)),
            (None, Some(above)) => between(above.saturating_sub(2 * GAP_MAX), above),
            (Some(below), Some(above)) => between(below, above),
        };
        let number = number.ok_or_else(|| {
            let message =
                format!("there is no room for a label at this place of type {}", self.0.shown);
            let hint = "Make another type with these labels, and ALTER COLUMN ... TYPE it.";
            Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint)
        })?;
        let mut labels = labels.clone();
        labels.insert(at, Label { number, text: text.into() });
        self.changed(labels)
    }

    /// The same type, in which a label has another text.
    pub fn with_renamed_label(self, from: &str, to: &str) -> Result<EnumType> {
        let at = self.place(from)?;
        check_label(to)?;
        if self.number_of(to).is_some() {
            let message = format!("enum label \"{to}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        let mut labels = self.0.labels.clone();
        labels[at].text = to.into();
        self.changed(labels)
    }

    /// The same type under another name.
    pub fn with_name(self, name: &str, shown: &str) -> Result<EnumType> {
        let (oid, labels) = (self.0.oid, self.0.labels.clone());
        EnumType::define(Definition { oid, name: name.into(), shown: shown.into(), labels })
    }

    fn changed(self, labels: Vec<Label>) -> Result<EnumType> {
        let Definition { oid, name, shown, .. } = self.0;
        EnumType::define(Definition { oid: *oid, name: name.clone(), shown: shown.clone(), labels })
    }

    /// A definition that a statement makes.
    fn define(definition: Definition) -> Result<EnumType> {
        let mut defined = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        if defined.bytes + definition.bytes() > DEFINED_BYTES_MAX {
            let message = "too many definitions of enum types since the server was started";
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        Ok(defined.keep(definition))
    }

    /// The object id.
    pub fn oid(self) -> Oid {
        self.0.oid
    }

    /// The object id of its arrays.
    pub fn array_oid(self) -> Oid {
        Oid::new(self.0.oid.number() + 1)
    }

    /// The name in the catalog.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The name as statements write it.
    pub fn shown(self) -> &'static str {
        &self.0.shown
    }

    /// The texts of the labels, from the smallest to the largest.
    pub fn labels(self) -> impl DoubleEndedIterator<Item = &'static str> + ExactSizeIterator {
        self.0.labels.iter().map(|label| &*label.text)
    }

    /// All values, from the smallest to the largest.
    pub fn values(self) -> impl DoubleEndedIterator<Item = EnumValue> + ExactSizeIterator {
        self.0.labels.iter().map(move |label| EnumValue { ty: self, number: label.number })
    }

    /// Whether it has a label of this text.
    pub fn has(self, text: &str) -> bool {
        self.number_of(text).is_some()
    }

    fn number_of(self, text: &str) -> Option<u32> {
        let found = self.0.labels.iter().find(|label| *label.text == *text)?;
        Some(found.number)
    }

    /// Where a label is that a statement names.
    fn place(self, text: &str) -> Result<usize> {
        self.labels().position(|label| label == text).ok_or_else(|| {
            let message = format!("\"{text}\" is not an existing enum label");
            Error::new(SqlState::INVALID_PARAMETER, message)
        })
    }

    /// The value with this label.
    pub fn parse(self, text: &str) -> Result<EnumValue> {
        let number = self.number_of(text).ok_or_else(|| {
            let message = format!("invalid input value for enum {}: \"{text}\"", self.0.shown);
            Error::new(SqlState::INVALID_TEXT, message)
        })?;
        Ok(EnumValue { ty: self, number })
    }

    /// The value with this number, as rows have it.
    pub fn value(self, number: u32) -> Option<EnumValue> {
        self.0.labels.binary_search_by_key(&number, |label| label.number).ok()?;
        Some(EnumValue { ty: self, number })
    }

    /// The definition as stored bytes.
    ///
    /// ```text
    /// object id (u32), name, name as it is shown, then each label: number (u32), text
    /// ```
    ///
    /// Numbers are little endian; a text has its length before it, in one byte.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.0.oid.number().to_le_bytes().to_vec();
        let push = |text: &str, bytes: &mut Vec<u8>| {
            bytes.push(text.len() as u8);
            bytes.extend_from_slice(text.as_bytes());
        };
        push(&self.0.name, &mut bytes);
        push(&self.0.shown, &mut bytes);
        for label in &self.0.labels {
            bytes.extend_from_slice(&label.number.to_le_bytes());
            push(&label.text, &mut bytes);
        }
        bytes
    }

    /// The type whose definition these bytes are. Any bytes are read or refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<EnumType> {
        let corrupted = || Error::corrupted("enum type is damaged");
        let word = |bytes: &mut &[u8]| -> Result<u32> {
            let (first, rest) = bytes.split_first_chunk::<4>().ok_or_else(corrupted)?;
            *bytes = rest;
            Ok(u32::from_le_bytes(*first))
        };
        let text = |bytes: &mut &[u8]| -> Result<Box<str>> {
            let (length, rest) = bytes.split_first().ok_or_else(corrupted)?;
            let (text, rest) = rest.split_at_checked(usize::from(*length)).ok_or_else(corrupted)?;
            *bytes = rest;
            let text = std::str::from_utf8(text).map_err(|_| corrupted())?;
            if text.contains('\0') { Err(corrupted()) } else { Ok(text.into()) }
        };
        let mut rest = bytes;
        let oid = Oid::new(word(&mut rest)?);
        let (name, shown) = (text(&mut rest)?, text(&mut rest)?);
        let mut labels: Vec<Label> = Vec::new();
        let mut texts = BTreeSet::new();
        while !rest.is_empty() {
            let label = Label { number: word(&mut rest)?, text: text(&mut rest)? };
            let is_larger = labels.last().is_none_or(|last| last.number < label.number);
            if !is_larger || labels.len() >= LABELS_MAX || !texts.insert(label.text.clone()) {
                return Err(corrupted());
            }
            labels.push(label);
        }
        if oid.number() == u32::MAX {
            return Err(corrupted());
        }
        let mut defined = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(defined.keep(Definition { oid, name, shown, labels }))
    }
}

impl Definition {
    fn bytes(&self) -> usize {
        let labels = self.labels.iter().map(|label| size_of::<Label>() + label.text.len());
        size_of::<Definition>() + self.name.len() + self.shown.len() + labels.sum::<usize>()
    }
}

impl Defined {
    fn keep(&mut self, definition: Definition) -> EnumType {
        if let Some(found) = self.all.get(&definition) {
            return EnumType(found);
        }
        self.bytes += definition.bytes();
        let kept: &'static Definition = Box::leak(Box::new(definition));
        self.all.insert(kept);
        EnumType(kept)
    }
}

fn between(below: u32, above: u32) -> Option<u32> {
    let number = below + (above - below) / 2;
    (number != below).then_some(number)
}

fn too_many() -> Error {
    let message = format!("an enum type can have at most {LABELS_MAX} labels");
    Error::new(SqlState::LIMIT_EXCEEDED, message)
}

fn check_label(text: &str) -> Result<()> {
    if text.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let message = format!("invalid enum label \"{text}\"");
    let detail = format!("Labels must be {NAME_BYTES_MAX} bytes or less.");
    Err(Error::new(SqlState::INVALID_NAME, message).with_detail(detail))
}

impl PartialEq for EnumType {
    fn eq(&self, other: &EnumType) -> bool {
        self.0.oid == other.0.oid
    }
}

impl Eq for EnumType {}

impl PartialOrd for EnumType {
    fn partial_cmp(&self, other: &EnumType) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EnumType {
    fn cmp(&self, other: &EnumType) -> Ordering {
        self.0.oid.cmp(&other.0.oid)
    }
}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.oid.hash(state);
    }
}

impl std::fmt::Debug for EnumType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.0.shown, self.0.oid.number())
    }
}

/// A value of an enum type; it has a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnumValue {
    ty: EnumType,
    number: u32,
}

impl EnumValue {
    /// Its type.
    pub fn ty(self) -> EnumType {
        self.ty
    }

    /// Its number, which orders the values of a type.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Its label.
    pub fn label(self) -> &'static str {
        let labels = &self.ty.0.labels;
        let at = labels.binary_search_by_key(&self.number, |label| label.number);
        &labels[at.expect("a value was made of its label")].text
    }
}

/// By place, and not by label.
impl Ord for EnumValue {
    fn cmp(&self, other: &EnumValue) -> Ordering {
        self.number.cmp(&other.number).then_with(|| self.ty.cmp(&other.ty))
    }
}

impl PartialOrd for EnumValue {
    fn partial_cmp(&self, other: &EnumValue) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mood() -> EnumType {
        EnumType::new(Oid::new(70_000), "mood", "mood", &["sad", "ok", "happy"]).unwrap()
    }

    fn labels(ty: EnumType) -> Vec<&'static str> {
        ty.labels().collect()
    }

    #[test]
    fn values_are_in_the_order_of_labels() {
        let ty = mood();
        let value = |text| ty.parse(text).unwrap();
        assert!(value("sad") < value("ok"));
        assert!(value("ok") < value("happy"), "in the alphabet it is the other way around");
        assert_eq!(value("ok").label(), "ok");
        assert_eq!(ty.parse("glad").unwrap_err().state(), SqlState::INVALID_TEXT);
    }

    #[test]
    fn labels_are_added_where_they_are_said_to_be() {
        let ty = mood().with_label("glad", Place::Before("happy")).unwrap();
        let ty = ty.with_label("furious", Place::Before("sad")).unwrap();
        let ty = ty.with_label("so so", Place::After("sad")).unwrap();
        let ty = ty.with_label("ecstatic", Place::Last).unwrap();
        assert_eq!(labels(ty), ["furious", "sad", "so so", "ok", "glad", "happy", "ecstatic"]);
        let numbers: Vec<u32> = ty.values().map(EnumValue::number).collect();
        assert!(numbers.is_sorted_by(|left, right| left < right));
        assert_eq!(ty.parse("ok").unwrap(), mood().parse("ok").unwrap());
        let ty = ty.with_renamed_label("ok", "fine").unwrap();
        assert_eq!(ty.value(mood().parse("ok").unwrap().number()).unwrap().label(), "fine");
        assert_eq!(ty, mood(), "an object id is one type");
    }

    #[test]
    fn a_place_without_room_is_refused() {
        let mut ty = mood();
        for at in 0_u32.. {
            match ty.with_label(&format!("l{at}"), Place::Before("happy")) {
                Ok(next) => ty = next,
                Err(error) => {
                    assert_eq!(error.state(), SqlState::LIMIT_EXCEEDED);
                    assert_eq!(at, GAP_MAX.ilog2(), "each label takes half of what is left");
                    break;
                }
            }
        }
        ty.with_label("last", Place::Last).unwrap();
        let many: Vec<String> = (0..LABELS_MAX).map(|at| at.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let ty = EnumType::new(Oid::new(70_002), "many", "many", &many).unwrap();
        assert_eq!(ty.values().len(), LABELS_MAX);
        assert_eq!(
            ty.with_label("more", Place::Last).unwrap_err().state(),
            SqlState::LIMIT_EXCEEDED
        );
    }

    #[test]
    fn stored_bytes_are_read_or_refused() {
        let bytes = mood().to_bytes();
        assert_eq!(labels(EnumType::from_bytes(&bytes).unwrap()), labels(mood()));
        // 4 bytes of id, 5 of each name: there a type has no labels, and then one, and two.
        let whole = [14, 22, 29];
        for end in 0..bytes.len() {
            let read = EnumType::from_bytes(&bytes[..end]);
            assert_eq!(read.is_ok(), whole.contains(&end), "{end}");
        }
        let empty = EnumType::from_bytes(&bytes[..14]).unwrap();
        assert_eq!(empty.labels().len(), 0);
    }
}
