//! What the log's inputs mean: the program that logged them, as the log keeps it.
//!
//! A replay must come to the past that was answered. So the log says which procedures its calls
//! are of, and for which tables; replay is refused where the program of today is another one. What
//! cannot be told from outside, the body of a procedure, is found by the state hashes in the log.

use storage::Store;

use crate::error::{EngineError, Result};
use crate::program::definitions::Definitions;
use crate::program::procedure::{FIRST_VERSION, ProcedureTable};
use crate::program::remembered::{Gone, Remembered};

/// Raised with every change after which the engine might come to another state or answer for the
/// same log, limits that procedures can run into included.
const SEMANTICS_VERSION: u32 = 4;
/// The last version by which a call of the parallel part was deferred that would change a secondary
/// index. Logs of it are replayed so.
const SEMANTICS_DEFERRING_INDEXES: u32 = 3;

/// Between versions of the type of a table's values.
const VERSIONS: &str = "; then ";

/// A procedure, a table or an index: its name, and its types in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedName {
    pub(crate) name: String,
    pub(crate) types: String,
    /// Of the body of a procedure; tables and indexes have the first.
    pub(crate) version: u32,
}

impl TypedName {
    /// One of the first version.
    pub(crate) fn new(name: impl Into<String>, types: impl Into<String>) -> Self {
        Self { name: name.into(), types: types.into(), version: FIRST_VERSION }
    }
}

/// A program, as far as replay depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    semantics: u32,
    /// In the order of their numbers.
    pub(crate) procedures: Vec<TypedName>,
    tables: Vec<TypedName>,
    /// Secondary indexes: which call is deferred depends on them.
    pub(crate) indexes: Vec<TypedName>,
    /// What it does not have, and the store has seen. Nothing of it matters to a replay.
    pub(crate) remembered: Remembered,
}

impl Program {
    /// The program that opens the store now.
    pub(crate) fn current(
        definitions: &Definitions<'_>,
        procedures: &ProcedureTable,
        remembered: Remembered,
    ) -> Self {
        let Definitions { tables, indexes, .. } = definitions;
        let indexes = indexes.iter().map(|index| {
            let of = tables.get(index.table).map_or("", |table| &table.definition.name);
            TypedName::new(&index.name, index_types(index.is_unique, &index.types, of))
        });
        let tables = tables
            .iter()
            .map(|table| TypedName::new(&table.definition.name, table.types.join(VERSIONS)));
        let procedures = procedures
            .named()
            .map(|(name, types, version)| TypedName { version, ..TypedName::new(name, types) });
        Self {
            semantics: SEMANTICS_VERSION,
            procedures: procedures.collect(),
            tables: tables.collect(),
            indexes: indexes.collect(),
            remembered,
        }
    }

    /// The names of its procedures, in the order of their numbers.
    pub(crate) fn procedures(&self) -> impl Iterator<Item = &str> {
        self.procedures.iter().map(|procedure| procedure.name.as_str())
    }

    /// The versions of the types of a table.
    pub(crate) fn types_of(&self, table: &str) -> Option<Vec<String>> {
        let types = self.words_of(table)?;
        Some(types.split(VERSIONS).map(str::to_string).collect())
    }

    /// The same as one text.
    pub(crate) fn words_of(&self, table: &str) -> Option<String> {
        let part = self.all_tables().find(|part| part.name == table)?;
        Some(part.types.clone())
    }

    /// Those of the program, and those that it left alone.
    fn all_tables(&self) -> impl Iterator<Item = &TypedName> {
        self.tables.iter().chain(&self.remembered.tables)
    }

    fn types_in_words(self) -> impl Iterator<Item = (String, Vec<String>)> {
        let words = |types: String| types.split(VERSIONS).map(str::to_string).collect();
        let tables = self.tables.into_iter().chain(self.remembered.tables);
        tables.map(move |part| (part.name, words(part.types)))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.semantics.to_le_bytes().to_vec();
        for parts in [&self.procedures, &self.tables, &self.indexes] {
            encode_parts(parts, &mut bytes);
        }
        self.encode_versions(&mut bytes);
        self.encode_remembered(&mut bytes);
        bytes
    }

    /// Number and version of each procedure that is not in its first version; nothing if all are,
    /// and nothing is remembered either.
    fn encode_versions(&self, bytes: &mut Vec<u8>) {
        let versions = (0u32..).zip(self.procedures.iter().map(|procedure| procedure.version));
        let versions: Vec<_> = versions.filter(|(_, version)| *version != FIRST_VERSION).collect();
        if versions.is_empty() && self.remembered.is_empty() {
            return;
        }
        bytes.extend_from_slice(&(versions.len() as u32).to_le_bytes());
        for number in versions.iter().flat_map(|&(number, version)| [number, version]) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// What is remembered; nothing if nothing is.
    fn encode_remembered(&self, bytes: &mut Vec<u8>) {
        let Remembered { gone, versions, tables, indexes } = &self.remembered;
        if self.remembered.is_empty() {
            return;
        }
        bytes.extend_from_slice(&(gone.len() as u32).to_le_bytes());
        for Gone { name, now } in gone {
            encode_text(name, bytes);
            // No table has the empty name.
            encode_text(now.as_deref().unwrap_or_default(), bytes);
        }
        bytes.extend_from_slice(&(versions.len() as u32).to_le_bytes());
        for (name, version) in versions {
            encode_text(name, bytes);
            bytes.extend_from_slice(&version.to_le_bytes());
        }
        for parts in [tables, indexes] {
            encode_parts(parts, bytes);
        }
    }

    /// Reads what [`Program::encode`] wrote; `None` for no bytes at all: a log that is for no
    /// program yet.
    ///
    /// # Errors
    /// `Corrupt` for other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Self>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut reader = Reader { rest: bytes };
        let found = reader.program().filter(|_| reader.rest.is_empty());
        found.map(Some).ok_or_else(|| {
            let what = "the record of the program in the input log makes no sense".to_string();
            storage::StorageError::Corrupt(what).into()
        })
    }

    /// Whether the calls that were logged for this program mean the same to `current`, which may
    /// have more procedures and tables.
    ///
    /// # Errors
    /// `OtherProgram` with the first difference.
    pub(crate) fn check(&self, current: &Self) -> Result<()> {
        let other = |what: String| Err(EngineError::OtherProgram(what));
        if self.semantics != current.semantics {
            return other(self.of_other_rules());
        }
        for (number, logged) in self.procedures.iter().enumerate() {
            match current.procedures.get(number) {
                Some(now) if now.name == logged.name && now.version != logged.version => {
                    return other(format!(
                        "procedure {:?} was version {} and is version {}",
                        logged.name, logged.version, now.version
                    ));
                }
                Some(now) if now.name == logged.name => check_types("procedure", logged, now)?,
                _ => return other(format!("procedure {:?} is not registered", logged.name)),
            }
        }
        for logged in &self.tables {
            match current.tables.iter().find(|now| now.name == logged.name) {
                None => return other(format!("table {:?} is not registered", logged.name)),
                Some(now) => check_types("table", logged, now)?,
            }
        }
        self.check_indexes(current)
    }
}

impl Program {
    /// Whether this engine can replay its calls by the rules under which they ran.
    ///
    /// # Errors
    /// `OtherProgram` if it cannot.
    pub(crate) fn check_rules(&self) -> Result<()> {
        match is_known(self.semantics) {
            true => Ok(()),
            false => Err(EngineError::OtherProgram(self.of_other_rules())),
        }
    }

    /// Whether calls of the parallel part that would change a secondary index are deferred.
    pub(crate) fn defers_changes_of_indexes(&self) -> bool {
        self.semantics <= SEMANTICS_DEFERRING_INDEXES
    }

    fn of_other_rules(&self) -> String {
        format!(
            "it was version {} of the rules by which the engine executes, this is version \
             {SEMANTICS_VERSION}, of release {}: open and close it with the release that wrote the \
             log",
            self.semantics,
            env!("CARGO_PKG_VERSION"),
        )
    }

    /// The indexes, each with the name of its table.
    ///
    /// # Errors
    /// `Corrupt` for one that is of no table.
    pub(crate) fn indexes_of_tables(&self) -> Result<Vec<(IndexInWords, String)>> {
        let found = self.indexes.iter().map(|index| self.index_in_words(index));
        found.collect::<Option<_>>().ok_or_else(|| {
            let what = "the record of the program names an index of no table".to_string();
            storage::StorageError::Corrupt(what).into()
        })
    }

    /// The indexes of the program, and those that it left alone, each with the name of its table.
    pub(crate) fn all_indexes(&self) -> impl Iterator<Item = (IndexInWords, String)> {
        let all = self.indexes.iter().chain(&self.remembered.indexes);
        all.filter_map(|index| self.index_in_words(index))
    }

    /// An index, and its table.
    fn index_in_words(
        &self,
        TypedName { name, types, .. }: &TypedName,
    ) -> Option<(IndexInWords, String)> {
        let (is_unique, rest) = match types.strip_prefix("unique ") {
            Some(rest) => (true, rest),
            None => (false, types.as_str()),
        };
        let of = |table: &&TypedName| rest.strip_suffix(&format!(" of {:?}", table.name));
        let table = self.all_tables().find(|table| of(table).is_some())?;
        let types = of(&table)?.to_string();
        Some((IndexInWords { name: name.clone(), is_unique, types }, table.name.clone()))
    }

    /// An index that was added would defer other calls, and a unique one would abort some.
    fn check_indexes(&self, current: &Self) -> Result<()> {
        for logged in &self.indexes {
            match current.indexes.iter().find(|now| now.name == logged.name) {
                None => {
                    let what = format!("index {:?} is not registered", logged.name);
                    return Err(EngineError::OtherProgram(what));
                }
                Some(now) => check_types("index", logged, now)?,
            }
        }
        let is_new = |now: &&TypedName| !self.indexes.iter().any(|logged| logged.name == now.name);
        match current.indexes.iter().find(is_new) {
            None => Ok(()),
            Some(new) => {
                Err(EngineError::OtherProgram(format!("index {:?} was not registered", new.name)))
            }
        }
    }
}

fn check_types(what: &str, logged: &TypedName, now: &TypedName) -> Result<()> {
    if logged.types == now.types {
        return Ok(());
    }
    Err(EngineError::OtherProgram(format!(
        "{what} {:?} was {} and is {}",
        logged.name, logged.types, now.types
    )))
}

/// The types of the tables of a store in words, by name, as the program that wrote it last gave
/// them: `KEY -> VALUE` for each version of the type of the values, the oldest first. A table of a
/// program that said nothing has one empty text.
///
/// # Errors
/// `Corrupt` if what the log has of the program makes no sense.
pub fn types_in_words(store: &Store) -> Result<Vec<(String, Vec<String>)>> {
    let program = Program::decode(&store.log().program().unwrap_or_default())?;
    Ok(program.into_iter().flat_map(Program::types_in_words).collect())
}

/// The procedures whose calls the log of a store may hold, in the order of their numbers.
///
/// # Errors
/// As [`types_in_words`].
pub fn logged_procedures(store: &Store) -> Result<Vec<String>> {
    let program = Program::decode(&store.log().program().unwrap_or_default())?;
    Ok(program.iter().flat_map(Program::procedures).map(str::to_string).collect())
}

/// Names and types of the procedures whose calls the log of a store may hold, in the order of their
/// numbers.
pub(crate) fn logged_types(store: &Store) -> Result<Vec<(String, String)>> {
    let program = Program::decode(&store.log().program().unwrap_or_default())?;
    let procedures = program.map(|program| program.procedures).unwrap_or_default();
    Ok(procedures.into_iter().map(|part| (part.name, part.types)).collect())
}

/// The secondary indexes of a store in words, as the program that wrote it last gave them, each
/// with the name of its table.
///
/// # Errors
/// As [`types_in_words`].
pub fn indexes_in_words(store: &Store) -> Result<Vec<(IndexInWords, String)>> {
    let program = Program::decode(&store.log().program().unwrap_or_default())?;
    Ok(program.iter().flat_map(Program::all_indexes).collect())
}

/// A secondary index, as far as words say what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexInWords {
    /// Its name.
    pub name: String,
    /// Whether two rows may not have the same key in it.
    pub is_unique: bool,
    /// The types of its keys.
    pub types: String,
}

impl IndexInWords {
    /// Whether it is an index of this name with these keys.
    pub(crate) fn is(&self, name: &str, is_unique: bool, types: &str) -> bool {
        self.name == name && self.is_unique == is_unique && keys(&self.types) == keys(types)
    }
}

/// The types of the keys of an index: that of the rows, by which it begins, may have another name.
fn keys(types: &str) -> &str {
    types.split_once(" by ").map_or(types, |(_, keys)| keys)
}

/// What a program says of an index.
pub(crate) fn index_types(is_unique: bool, types: &str, table: &str) -> String {
    let unique = if is_unique { "unique " } else { "" };
    format!("{unique}{types} of {table:?}")
}

fn encode_parts(parts: &[TypedName], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(parts.len() as u32).to_le_bytes());
    for text in parts.iter().flat_map(|part| [&part.name, &part.types]) {
        encode_text(text, bytes);
    }
}

fn encode_text(text: &str, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Whether a log of a version of the rules can be read and replayed.
fn is_known(semantics: u32) -> bool {
    (SEMANTICS_DEFERRING_INDEXES..=SEMANTICS_VERSION).contains(&semantics)
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl Reader<'_> {
    fn program(&mut self) -> Option<Program> {
        let semantics = self.number()?;
        if !is_known(semantics) {
            // Whatever else it says, it says it in another way.
            self.rest = &[];
            let nothing = Vec::new;
            return Some(Program {
                semantics,
                procedures: nothing(),
                tables: nothing(),
                indexes: nothing(),
                remembered: Remembered::default(),
            });
        }
        let (mut procedures, tables, indexes) = (self.parts()?, self.parts()?, self.parts()?);
        self.versions(&mut procedures)?;
        let remembered = self.remembered()?;
        Some(Program { semantics, procedures, tables, indexes, remembered })
    }

    /// What is remembered, where there is something.
    fn remembered(&mut self) -> Option<Remembered> {
        if self.rest.is_empty() {
            return Some(Remembered::default());
        }
        let mut remembered = Remembered::default();
        for _ in 0..self.number()? {
            let (name, now) = (self.text()?, Some(self.text()?).filter(|now| !now.is_empty()));
            remembered.gone.push(Gone { name, now });
        }
        for _ in 0..self.number()? {
            remembered.versions.push((self.text()?, self.number()?));
        }
        (remembered.tables, remembered.indexes) = (self.parts()?, self.parts()?);
        Some(remembered)
    }

    /// Versions of procedures, where there are others than the first.
    fn versions(&mut self, procedures: &mut [TypedName]) -> Option<()> {
        if self.rest.is_empty() {
            return Some(());
        }
        for _ in 0..self.number()? {
            let (number, version) = (self.number()?, self.number()?);
            procedures.get_mut(number as usize)?.version = version;
        }
        Some(())
    }

    fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<String> {
        let len = self.number()? as usize;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        String::from_utf8(bytes.to_vec()).ok()
    }

    fn parts(&mut self) -> Option<Vec<TypedName>> {
        let count = self.number()?;
        (0..count).map(|_| Some(TypedName::new(self.text()?, self.text()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(procedures: &[(&str, &str)], tables: &[(&str, &str)]) -> Program {
        let parts = |parts: &[(&str, &str)]| {
            parts.iter().map(|(name, types)| TypedName::new(*name, *types)).collect()
        };
        Program {
            semantics: SEMANTICS_VERSION,
            procedures: parts(procedures),
            tables: parts(tables),
            indexes: Vec::new(),
            remembered: Remembered::default(),
        }
    }

    /// O-111: what is remembered stands behind the rest; where there is nothing, the record is the
    /// one that there was before.
    #[test]
    fn o_111_what_is_remembered_is_part_of_the_record() {
        for version in [1, 2] {
            let mut plain = program(&[("a", "x"), ("b", "y")], &[("t", "1")]);
            plain.procedures[1].version = version;
            let mut full = plain.clone();
            full.remembered = Remembered {
                gone: vec![
                    Gone { name: "old".into(), now: Some("t".into()) },
                    Gone { name: "away".into(), now: None },
                ],
                versions: vec![("c".into(), 7)],
                tables: vec![TypedName::new("left", "u64 -> i64")],
                indexes: vec![TypedName::new("i", "unique R by u64 of \"left\"")],
            };
            let (short, bytes) = (plain.encode(), full.encode());
            assert_eq!(Program::decode(&bytes).unwrap(), Some(full.clone()));
            assert_eq!(Program::decode(&short).unwrap(), Some(plain.clone()));
            for len in short.len() + 1..bytes.len() {
                // The versions of procedures alone are a record of before.
                if let Ok(found) = Program::decode(&bytes[..len]) {
                    assert_eq!(found, Some(plain.clone()), "{len} bytes");
                }
            }
            let (index, table) = full.all_indexes().next().unwrap();
            assert_eq!((index.is_unique, table.as_str()), (true, "left"));
            assert!(index.is("i", true, "Other by u64") && !index.is("i", true, "R by u32"));
            // A replay does not depend on it.
            plain.check(&full).unwrap();
            full.check(&plain).unwrap();
        }
    }

    #[test]
    fn o_65_a_program_survives_the_way_there_and_back() {
        let program = program(&[("a", "x"), ("", "")], &[("t", "u64 -> i64")]);
        let bytes = program.encode();
        assert_eq!(Program::decode(&bytes).unwrap(), Some(program));
        assert_eq!(Program::decode(&[]).unwrap(), None);
        for len in 1..bytes.len() {
            assert!(Program::decode(&bytes[..len]).unwrap_err().is_corrupt(), "{len} bytes");
        }
    }

    /// O-107: a log says which version of each procedure its calls are of; where all are of the
    /// first, it is the record that there was before procedures had versions.
    #[test]
    fn o_107_versions_of_procedures_are_part_of_the_record() {
        let first = program(&[("a", "x"), ("b", "y")], &[("t", "1")]);
        let mut second = first.clone();
        second.procedures[1].version = 2;
        let (short, bytes) = (first.encode(), second.encode());
        assert_eq!(bytes[..short.len()], short);
        assert_eq!(Program::decode(&bytes).unwrap(), Some(second.clone()));
        for len in short.len() + 1..bytes.len() {
            assert!(Program::decode(&bytes[..len]).unwrap_err().is_corrupt(), "{len} bytes");
        }
        let mut of_no_procedure = bytes;
        let at = short.len() + 4;
        of_no_procedure[at] = 2;
        assert!(Program::decode(&of_no_procedure).unwrap_err().is_corrupt());
        let text = first.check(&second).unwrap_err().to_string();
        assert!(text.contains("procedure \"b\" was version 1 and is version 2"), "{text}");
        second.check(&second).unwrap();
    }

    #[test]
    fn o_65_only_additions_leave_a_log_as_it_was_meant() {
        let logged = program(&[("a", "x"), ("b", "y")], &[("t", "1"), ("u", "2")]);
        let check = |procedures: &[(&str, &str)], tables: &[(&str, &str)]| {
            logged.check(&program(procedures, tables)).map_err(|error| error.to_string())
        };
        let (same, tables) = ([("a", "x"), ("b", "y")], [("t", "1"), ("u", "2")]);
        assert_eq!(check(&same, &tables), Ok(()));
        let more = [("a", "x"), ("b", "y"), ("c", "z")];
        assert_eq!(check(&more, &[("u", "2"), ("v", "3"), ("t", "1")]), Ok(()));
        let refused = [
            (check(&same[..1], &tables), "procedure \"b\" is not registered"),
            (check(&[same[1], same[0]], &tables), "procedure \"a\" is not registered"),
            (check(&[same[0], ("b", "z")], &tables), "procedure \"b\" was y and is z"),
            (check(&same, &tables[1..]), "table \"t\" is not registered"),
            (check(&same, &[tables[0], ("u", "3")]), "table \"u\" was 2 and is 3"),
        ];
        for (result, words) in refused {
            let text = result.unwrap_err();
            assert!(text.contains(words), "{text}");
        }
    }

    /// O-99: a log means the same with the same indexes only.
    #[test]
    fn o_99_another_set_of_indexes_is_another_program() {
        let of = |indexes: &[(&str, &str)]| {
            let indexes = indexes.iter().map(|(name, types)| TypedName::new(*name, *types));
            Program { indexes: indexes.collect(), ..program(&[], &[]) }
        };
        let logged = of(&[("a", "x"), ("b", "y")]);
        assert_eq!(Program::decode(&logged.encode()).unwrap(), Some(of(&[("a", "x"), ("b", "y")])));
        logged.check(&of(&[("b", "y"), ("a", "x")])).unwrap();
        for (indexes, words) in [
            (&[("a", "x")][..], "index \"b\" is not registered"),
            (&[("a", "x"), ("b", "y"), ("c", "z")], "index \"c\" was not registered"),
            (&[("a", "x"), ("b", "unique y")], "index \"b\" was y and is unique y"),
        ] {
            let text = logged.check(&of(indexes)).unwrap_err().to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
