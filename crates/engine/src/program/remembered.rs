//! What a store remembers of the programs that opened it before the last one, and what of that the
//! program of now would forget (O-111).
//!
//! The record of the program says what the last program had. What must outlive the programs behind
//! it stands at the end of that record: names that tables no longer have, the greatest version of
//! each procedure, and tables and indexes that the last program left alone. The record is no part
//! of an epoch: a store has one also after a clean close.
//!
//! A program of before does not know what later ones have made. It would make an empty table of a
//! name that has gone, give up a unique index, or run a body that was corrected. So everything that
//! a store has is known to the program, or the open is refused.

use std::collections::BTreeMap;

use storage::Store;

use crate::error::{EngineError, Result};
use crate::program::definitions::{Definitions, Known};
use crate::program::procedure::{FIRST_VERSION, ProcedureTable};
use crate::program::record::{IndexInWords, Program, TypedName, index_types};
use crate::secondary::IndexDefinition;

/// What a store remembers beside its last program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// Names that tables had.
    pub(crate) gone: Vec<Gone>,
    /// The least version that a procedure may be registered in, for those that the last program
    /// does not have in such a version; by name.
    pub(crate) versions: Vec<(String, u32)>,
    /// Tables that the last program left alone.
    pub(crate) tables: Vec<TypedName>,
    /// Indexes that it left alone, in the form of those of a program.
    pub(crate) indexes: Vec<TypedName>,
}

/// A name that a table had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) name: String,
    /// The name that the table has now; `None` if it was dropped.
    pub(crate) now: Option<String>,
}

impl Remembered {
    /// Whether there is anything.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn gone(&self, name: &str) -> Option<&Gone> {
        self.gone.iter().find(|gone| gone.name == name)
    }

    /// A table no longer has a name.
    fn go(&mut self, name: &str, now: Option<&str>) {
        let now = now.map(str::to_string);
        for gone in self.gone.iter_mut().filter(|gone| gone.now.as_deref() == Some(name)) {
            gone.now.clone_from(&now);
        }
        self.gone.retain(|gone| Some(&gone.name) != now.as_ref());
        self.gone.push(Gone { name: name.to_string(), now });
    }
}

/// What is to be remembered when a program has opened a store.
///
/// # Errors
/// `NotKnown` if the program says what it knows, and the store has something else.
pub(crate) fn remember(
    store: &Store,
    definitions: &Definitions<'_>,
    logged: Option<&Program>,
    registered: &ProcedureTable,
) -> Result<Remembered> {
    let used = store.tables().iter().filter(|table| table.is_used());
    let stored: Vec<&str> = used.map(|table| table.definition.name.as_str()).collect();
    let mut open = Open {
        definitions,
        logged,
        tables: stored.iter().map(|name| (name.to_string(), Some(name.to_string()))).collect(),
        remembered: Remembered::default(),
        unknown: Vec::new(),
    };
    open.names(&stored);
    open.tables();
    open.indexes();
    open.versions(registered);
    let Open { remembered, unknown, .. } = open;
    match definitions.known.is_none() || unknown.is_empty() {
        true => Ok(remembered),
        false => Err(EngineError::NotKnown(unknown.join("; "))),
    }
}

/// A store that is opened.
struct Open<'a, 'd> {
    definitions: &'a Definitions<'d>,
    logged: Option<&'a Program>,
    /// The names that tables have in the store, and those that they get; `None` if they go.
    tables: Vec<(String, Option<String>)>,
    remembered: Remembered,
    /// What the program would forget.
    unknown: Vec<String>,
}

impl Open<'_, '_> {
    /// What the program says of it; a tool says nothing.
    fn says(&self, list: fn(&Known) -> &[String], name: &str) -> bool {
        self.definitions.known.is_some_and(|known| list(known).iter().any(|there| there == name))
    }

    /// Names that go, and those that come again.
    fn names(&mut self, stored: &[&str]) {
        let gone = self.logged.map(|program| program.remembered.gone.clone());
        self.remembered.gone = gone.unwrap_or_default();
        // A crash may have left the record of an open whose change did not take place.
        self.remembered.gone.retain(|gone| !stored.contains(&gone.name.as_str()));
        let definitions = self.definitions;
        for name in definitions.dropped {
            if let Some(table) = named(&mut self.tables, name) {
                *table = None;
                self.remembered.go(name, None);
            }
        }
        for (from, to) in definitions.renamed {
            if let Some(table) = named(&mut self.tables, from) {
                *table = Some(to.clone());
                self.come_back(to, Some(from));
                self.remembered.go(from, Some(to));
            }
        }
        for table in definitions.tables {
            let name = &table.definition.name;
            if named(&mut self.tables, name).is_none() {
                self.come_back(name, None);
            }
        }
    }

    /// A table that is new, or had another name, gets a name. Only the one that had it may.
    fn come_back(&mut self, name: &str, had: Option<&str>) {
        let Some(gone) = self.remembered.gone(name) else { return };
        let is_the_same = had.is_some() && gone.now.as_deref() == had;
        if !is_the_same && !self.says(|known| &known.reused_names, name) {
            self.unknown.push(match &gone.now {
                Some(now) => format!(
                    "table {name:?} is renamed to {now:?}: register it under that name, with \
                     `rename_table`"
                ),
                None => format!(
                    "table {name:?} was dropped: take another name, or say `reuse_name` for a new \
                     table"
                ),
            });
        }
        self.remembered.gone.retain(|gone| gone.name != name);
    }

    fn asks_for(&self, table: &str) -> bool {
        self.definitions.tables.iter().any(|asked| asked.definition.name == table)
    }

    /// Tables that the program does not have.
    fn tables(&mut self) {
        for (stored, now) in std::mem::take(&mut self.tables) {
            if let Some(name) = now.as_ref().filter(|name| !self.asks_for(name)) {
                let types = self.logged.and_then(|program| program.words_of(&stored));
                let types = types.unwrap_or_default();
                if !self.says(|known| &known.ignored, name) {
                    let words = if types.is_empty() { "" } else { " of " };
                    self.unknown.push(format!(
                        "table {name:?}{words}{types}: register it, drop it with `drop_table`, or \
                         leave it alone with `ignore_table`"
                    ));
                }
                self.remembered.tables.push(TypedName::new(name, types));
            }
            self.tables.push((stored, now));
        }
    }

    /// Indexes that the program does not have.
    fn indexes(&mut self) {
        let Some(logged) = self.logged else { return };
        for (index, of) in logged.all_indexes() {
            let table = self.tables.iter().find(|(stored, _)| *stored == of);
            // Its table has gone, or never came.
            let Some(now) = table.and_then(|(_, now)| now.clone()) else { continue };
            let names = [of.as_str(), now.as_str()];
            if self.asks_for(&now) {
                let is_known = has_index(self.definitions, &index, names)
                    || is_kept(self.definitions, &index, names)
                    || self.says(|known| &known.dropped_indexes, &index.name);
                if is_known {
                    continue;
                }
                let IndexInWords { name, types, is_unique } = &index;
                let words = if *is_unique { "unique index" } else { "index" };
                self.unknown.push(format!(
                    "{words} {name:?} ({types}) of table {now:?}: register it, or say that it goes \
                     with `index_was` or `drop_index`"
                ));
            }
            let types = index_types(index.is_unique, &index.types, &now);
            self.remembered.indexes.push(TypedName::new(index.name, types));
        }
    }

    /// Versions of procedures, which are never used again.
    fn versions(&mut self, registered: &ProcedureTable) {
        let mut least: BTreeMap<&str, u32> = BTreeMap::new();
        if let Some(logged) = self.logged {
            let last = logged.procedures.iter().map(|of| (of.name.as_str(), of.version));
            let before = &logged.remembered.versions;
            let before = before.iter().map(|(name, version)| (name.as_str(), *version));
            for (name, version) in last.chain(before) {
                let there = least.entry(name).or_insert(FIRST_VERSION);
                *there = version.max(*there);
            }
        }
        for (name, _, version) in registered.named() {
            match least.get(name) {
                Some(&least) if version < least => self.unknown.push(format!(
                    "procedure {name:?} is version {version}, and the store has seen version \
                     {least}: versions are never used again, give it a later one"
                )),
                _ => {
                    least.remove(name);
                }
            }
        }
        let superseded =
            self.definitions.known.map_or(&[][..], |known| known.superseded.as_slice());
        for (name, version) in superseded {
            if registered.number(name).is_none() {
                let there = least.entry(name).or_insert(FIRST_VERSION);
                *there = (*version).max(*there);
            }
        }
        least.retain(|_, version| *version > FIRST_VERSION);
        self.remembered.versions =
            least.into_iter().map(|(name, version)| (name.to_string(), version)).collect();
    }
}

/// The name that a table is to get, by the one that it has got so far.
fn named<'t>(
    tables: &'t mut [(String, Option<String>)],
    name: &str,
) -> Option<&'t mut Option<String>> {
    tables.iter_mut().map(|(_, now)| now).find(|now| now.as_deref() == Some(name))
}

/// Whether a program has an index of a store, whose table has one of these names.
fn has_index(definitions: &Definitions<'_>, stored: &IndexInWords, names: [&str; 2]) -> bool {
    definitions.indexes.iter().any(|index| {
        let table = definitions.tables.get(index.table);
        let name = table.map_or("", |table| table.definition.name.as_str());
        names.contains(&name) && is_same(index, stored)
    })
}

/// Whether a program keeps an index for logs of before only.
fn is_kept(definitions: &Definitions<'_>, stored: &IndexInWords, names: [&str; 2]) -> bool {
    let kept = definitions.earlier.as_ref().map_or(&[][..], |earlier| earlier.indexes);
    kept.iter().any(|(index, of)| names.contains(&of.as_str()) && is_same(index, stored))
}

fn is_same(index: &IndexDefinition, stored: &IndexInWords) -> bool {
    stored.is(&index.name, index.is_unique, &index.types)
}

/// What a store remembers of the programs that opened it, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastInWords {
    /// Names that tables had, each with the one that the table has now; `None` if it was dropped.
    pub gone: Vec<(String, Option<String>)>,
    /// Procedures that have been in a later version than the first: the last one; by name.
    pub versions: Vec<(String, u32)>,
    /// Tables that the last program left alone.
    pub ignored: Vec<String>,
}

/// What a store remembers of the programs that opened it.
///
/// # Errors
/// As [`crate::types_in_words`].
pub fn past_in_words(store: &Store) -> Result<PastInWords> {
    let program = Program::decode(&store.log().program().unwrap_or_default())?;
    let Some(program) = program else { return Ok(PastInWords::default()) };
    let Remembered { gone, versions, tables, .. } = program.remembered;
    let mut last: BTreeMap<String, u32> = versions.into_iter().collect();
    for TypedName { name, version, .. } in program.procedures {
        let there = last.entry(name).or_insert(version);
        *there = version.max(*there);
    }
    last.retain(|_, version| *version > FIRST_VERSION);
    Ok(PastInWords {
        gone: gone.into_iter().map(|gone| (gone.name, gone.now)).collect(),
        versions: last.into_iter().collect(),
        ignored: tables.into_iter().map(|table| table.name).collect(),
    })
}
