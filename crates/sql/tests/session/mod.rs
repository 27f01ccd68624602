//! A database in memory: what a server does with a statement, without the server.

#![allow(dead_code, reason = "each test takes what it needs")]

use sql::bind::{Choice, Options};
use sql::catalog::Catalog;
use sql::ir::{self, Plan, Space};
use sql::run::{Context, Memory, Overlay, Rows, Written, is_predicted, predict, run};
use sql::{define, parse, prepare};
use values::{Datum, Result, Timestamp, Type, Zone, text};

/// Catalog and rows.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) catalog: Catalog,
    pub(crate) memory: Memory,
    pub(crate) choice: Choice,
}

/// What a statement answers, as text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) tag: String,
    pub(crate) columns: Vec<String>,
    pub(crate) types: Vec<Type>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Session {
    pub(crate) fn new() -> Session {
        Session {
            catalog: Catalog::default(),
            memory: Memory::new(1_000_000),
            choice: Choice::Best,
        }
    }

    /// Runs the one statement of a text.
    pub(crate) fn run(&mut self, text: &str) -> Result<Answer> {
        self.run_with(text, &[])
    }

    /// Runs it with parameters as text, which become of the types that the plan asks for.
    pub(crate) fn run_with(&mut self, text: &str, parameters: &[Option<&str>]) -> Result<Answer> {
        let mut context = Context::at(Timestamp::parse("2024-02-29 12:00:00").unwrap());
        self.memory.begin();
        let statements = parse::parse(text)?;
        let [statement] = &statements[..] else { panic!("one statement at a time: {text}") };
        let mut overlay = Overlay::new(&mut self.memory);
        if let Some(definition) = define(&self.catalog, statement, &context, &mut overlay)? {
            for (key, row) in definition.delta.rows() {
                match row {
                    Some(row) => overlay.put(Space::Catalog, key, row)?,
                    None => overlay.delete(Space::Catalog, key)?,
                }
            }
            overlay.apply()?;
            for (space, prefix) in definition.delta.cleared() {
                self.memory.clear(*space, prefix);
            }
            for sequence in definition.delta.counters() {
                self.memory.restart(*sequence);
            }
            self.catalog = self.catalog.with(&definition.delta)?;
            let shown = |value: &Datum| match value {
                Datum::Null => "NULL".to_owned(),
                value => text::print(value, &Zone::utc()),
            };
            let rows = definition.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
            let (tag, columns, types) = (definition.shown_tag(), Vec::new(), Vec::new());
            return Ok(Answer { tag, columns, types, rows });
        }
        let options = Options { choice: self.choice, ..Options::default() };
        let prepared = prepare(&self.catalog, statement, &options)?;
        for (ty, value) in prepared.parameters.iter().zip(parameters) {
            context.parameters.push(match value {
                Some(value) => text::parse(*ty, value, &Zone::utc())?,
                None => Datum::Null,
            });
        }
        // What is logged is what runs.
        let plan: Plan = ir::decode(&ir::encode(&prepared.plan))?;
        assert_eq!(plan, prepared.plan);
        let answer = self.run_plan(&plan, &context)?;
        let rows = answer.rows.iter().map(|row| {
            assert_eq!(row.len(), prepared.columns.len(), "{text}");
            let pairs = row.iter().zip(&prepared.columns);
            let shown = pairs.map(|(value, column)| {
                assert!(value.fits(column.kind.ty), "{text}: {value:?} as {:?}", column.kind.ty);
                match value {
                    Datum::Null => "NULL".to_owned(),
                    value => text::print(value, &Zone::utc()),
                }
            });
            shown.collect()
        });
        Ok(Answer {
            tag: answer.tag.to_string(),
            columns: prepared.columns.iter().map(|column| column.name.clone()).collect(),
            types: prepared.columns.iter().map(|column| column.kind.ty).collect(),
            rows: rows.collect(),
        })
    }

    /// Runs a plan. If its writes can be said before, there are no others; if it fails, there are
    /// none in rows that nobody takes back.
    fn run_plan(&mut self, plan: &Plan, context: &Context) -> Result<sql::run::Answer> {
        let predicted = is_predicted(plan).then(|| {
            // Of a copy, so that sequences give the same numbers again.
            predict(plan, context, &mut self.memory.clone())
        });
        let mut overlay = Overlay::new(&mut self.memory);
        let answer = match run(plan, context, &mut overlay) {
            Ok(answer) => answer,
            Err(error) => {
                let mut alone = self.memory.clone();
                let is_refused = run(plan, context, &mut alone).is_err();
                let is_unchanged = alone.rows().eq(self.memory.rows());
                assert!(!is_refused || is_unchanged, "{plan:?} fails and writes");
                return Err(error);
            }
        };
        if let Some(predicted) = predicted {
            let predicted = predicted.expect("what is refused before does not run");
            for (space, key) in overlay.writes().keys() {
                let is_same = |of: &Written| of.space == *space && of.key == *key;
                assert!(predicted.iter().any(is_same), "{plan:?} writes {key:?} of {space:?}");
            }
        }
        overlay.apply()?;
        Ok(answer)
    }

    /// All rows of the store.
    pub(crate) fn state(&self) -> Vec<(Space, Vec<u8>, Vec<u8>)> {
        self.memory.rows().map(|(space, key, row)| (space, key.to_vec(), row.to_vec())).collect()
    }

    /// The catalog that the store's rows make.
    pub(crate) fn reopened(&self) -> Catalog {
        let rows = self.memory.rows().filter(|(space, ..)| *space == Space::Catalog);
        Catalog::open(rows.map(|(_, key, row)| (key, row))).unwrap()
    }
}
