//! Statements as clients have them: parsed, and planned.

use super::pending::Answer;
use super::pool::Pool;
use super::services::QueryServices;
use super::temporary::{self, Places, Use};
use sql::bind::{Copy, Options, OutputColumn};
use sql::catalog::{Catalog, Path, Temporary};
use sql::ir::{Claim, Insert, InsertRows, ObjectId, Plan, Relation, Wait};
use sql::parse::{Control, Explain};
use sql::run::{Tag, is_lookup, is_predicted};
use sql::system::{Services, Session, SessionValues, System};
use sql::{Explained, Grant};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Type, Zone};

/// The tag of NOTIFY.
const NOTIFY: &str = "NOTIFY";

/// What a plan has of its session.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The zone, for literals.
    pub zone: Zone,
    /// Where names are looked for.
    pub path: Path,
    /// The temporary objects that names may mean, as the connection has them.
    pub temporary: Option<Arc<Temporary>>,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment::new(Zone::utc(), Path::default())
    }
}

impl Environment {
    /// What a session sets, without temporary objects.
    #[must_use]
    pub fn new(zone: Zone, path: Path) -> Environment {
        Environment { zone, path, temporary: None }
    }

    /// The catalog as the session sees it: with its temporary objects, along its path.
    pub(super) fn over(&self, catalog: &Arc<Catalog>) -> Arc<Catalog> {
        match &self.temporary {
            Some(temporary) => temporary.over(catalog).shared_along(&self.path),
            None => catalog.shared_along(&self.path),
        }
    }

    /// The version of the temporary objects.
    pub(super) fn version(&self) -> Option<u64> {
        self.temporary.as_ref().map(|temporary| temporary.version())
    }

    /// Whether names mean the same as in another one.
    pub(super) fn names_as(&self, other: &Environment) -> bool {
        self.path == other.path && self.version() == other.version()
    }
}

/// What the statements of a text share.
pub(super) struct Source {
    pub(super) text: Arc<str>,
    /// What the text and its trees take.
    pub(super) grant: Arc<Grant>,
    /// Where trees are dropped.
    pub(super) pool: Arc<Pool>,
}

impl Source {
    /// The same text with memory of its own, of which it has nothing yet.
    fn apart(&self) -> Source {
        let (text, pool) = (Arc::clone(&self.text), Arc::clone(&self.pool));
        Source { text, grant: self.grant.another(), pool }
    }
}

/// A tree that may be too deep to be dropped on any stack.
struct Tree {
    tree: Option<sql::parse::Statement>,
    source: Arc<Source>,
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(tree) = self.tree.take() {
            self.source.pool.drop_deep(tree);
        }
    }
}

/// One statement of a text. Cheap to clone.
#[derive(Clone)]
pub struct Parsed {
    tree: Arc<Tree>,
    /// Which of the text's statements it is.
    place: usize,
    /// Whether it is only a part of that.
    is_part: bool,
}

impl Parsed {
    pub(super) fn new(tree: sql::parse::Statement, source: Arc<Source>, place: usize) -> Parsed {
        Parsed { tree: Arc::new(Tree { tree: Some(tree), source }), place, is_part: false }
    }

    /// The tree, which one [without](Parsed::without_tree) does not have.
    pub(super) fn tree(&self) -> &sql::parse::Statement {
        self.tree.tree.as_ref().expect("a statement that needs its tree keeps it")
    }

    /// The same statement without its tree, which is large beside its text.
    fn without_tree(&self) -> Result<Parsed> {
        let source = self.tree.source.apart();
        source.grant.grow(source.text.len())?;
        Ok(self.with(None, source))
    }

    /// The same statement with its tree, which is parsed again if it has none. Needs the stack of a
    /// thread of the pool.
    fn with_tree(&self) -> Result<Parsed> {
        if self.tree.tree.is_some() {
            return Ok(self.clone());
        }
        let source = self.tree.source.apart();
        let mut trees = sql::parse::parse_within(&source.text, &source.grant)?;
        Ok(self.with(Some(trees.swap_remove(self.place)), source))
    }

    fn with(&self, tree: Option<sql::parse::Statement>, source: Source) -> Parsed {
        let source = Arc::new(source);
        Parsed { tree: Arc::new(Tree { tree, source }), ..self.clone() }
    }

    /// The text that it is from, to which positions of errors belong.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.tree.source.text
    }

    /// What it says about the session: such statements are not prepared here.
    #[must_use]
    pub fn control(&self) -> Option<Control> {
        self.tree().control()
    }

    /// The cursor that it declares; otherwise it is the cursor's query.
    #[must_use]
    pub fn declared(&self) -> Option<sql::parse::Declared> {
        self.tree().declared().cloned()
    }

    /// Whether it defines something.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        self.tree().is_definition()
    }

    /// Whether it is a query, which may write only through functions.
    #[must_use]
    pub fn is_query(&self) -> bool {
        self.tree().is_query()
    }

    /// The columns, if it is a query of functions of the session.
    #[must_use]
    pub fn session_columns(&self) -> Option<Vec<sql::parse::SessionColumn>> {
        self.tree().session_columns()
    }

    /// What it sets before it runs.
    #[must_use]
    pub fn configs(&self) -> Vec<sql::parse::SetConfig> {
        self.tree().configs().to_vec()
    }

    /// Its place in the text, and whether it is only a part of the statement there.
    pub(super) fn place_of_part(&self) -> (usize, bool) {
        (self.place, self.is_part)
    }

    /// A statement that is a part of this one.
    pub(super) fn part(&self, tree: sql::parse::Statement) -> Parsed {
        let part = Parsed::new(tree, Arc::clone(&self.tree.source), self.place);
        Parsed { is_part: true, ..part }
    }

    /// Whether another statement is within it.
    pub(super) fn has_part(&self) -> bool {
        self.tree().has_part()
    }

    /// The name that PREPARE gives, and the statement that it is for, as a copy: on a thread with
    /// [`sql::parse::STACK_BYTES`] of stack.
    pub(super) fn prepared(&self) -> Option<(String, Parsed)> {
        let (name, tree) = self.tree().prepared()?;
        Some((name, self.part(tree)))
    }

    /// The name of the prepared statement that EXECUTE runs.
    #[must_use]
    pub fn executed_name(&self) -> Option<String> {
        self.tree().executed_name()
    }

    /// What EXPLAIN asks for, and the statement whose plan it shows, as a copy: on a thread with
    /// [`sql::parse::STACK_BYTES`] of stack.
    ///
    /// # Errors
    /// What EXPLAIN asks for and is not supported.
    pub(super) fn explained(&self) -> Result<Option<(Explain, Parsed)>> {
        Ok(self.tree().explained()?.map(|(asked, tree)| (asked, self.part(tree))))
    }
}

/// A statement that can be submitted, any number of times.
pub struct Statement {
    /// The types of its parameters.
    pub parameters: Vec<Type>,
    /// The columns of its answer; none if there are no rows.
    pub columns: Vec<OutputColumn>,
    /// How rows come or go, of a COPY.
    pub copy: Option<Copy>,
    /// The command, if it locks rows in PostgreSQL.
    locking: Option<&'static str>,
    /// Whether it is NOTIFY, whose row no client sees.
    is_notify: bool,
    /// Whether it has to be planned [with the session](Statement::with_session) before it runs.
    pub(super) asks_session: bool,
    /// The values of the session that stand in its plan.
    pub(super) session: Option<SessionValues>,
    pub(super) parsed: Parsed,
    pub(super) environment: Environment,
    /// Whether it defines temporary objects.
    pub(super) defines_temporary: bool,
    /// The version of the catalog that it was planned with.
    pub(super) version: u64,
    /// `None` of a definition.
    pub(super) planned: Option<Planned>,
    /// The memory of the plan's constants.
    _constants: Arc<Grant>,
}

/// A plan, and how it runs.
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// The form that is logged.
    pub(super) bytes: Vec<u8>,
    pub(super) way: Way,
    /// The tables whose rows it may write.
    pub(super) writes: BTreeSet<ObjectId>,
    /// The catalog that it was planned with, if it reads that.
    pub(super) catalog: Option<Arc<Catalog>>,
    /// Whether a seed is behind its parameters.
    pub(super) needs_seed: bool,
    /// The claims of rows that it makes.
    pub(super) claims: Vec<Claim>,
    pub(super) effects: Effects,
    /// Whether it notifies listeners.
    pub(super) notifies: bool,
    pub(super) temporary: Use,
    /// Where the rows of its temporary tables are.
    pub(super) places: Places,
}

/// What a plan does beside reading and writing rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effects {
    Nothing,
    /// It takes locks or sleeps.
    Some,
    /// The same, and it asks for nothing else that no call knows.
    Only,
}

/// About how much memory a plan takes with its `encoded` form.
pub(super) fn plan_bytes(encoded: &[u8]) -> usize {
    const TIMES: usize = 32;
    encoded.len().saturating_mul(1 + TIMES)
}

/// How a plan runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    /// At a snapshot.
    Query,
    /// At the newest state: it reads one row at most, once.
    Lookup,
    /// As a call.
    Call {
        /// Whether its write set is said before, so that it runs in parallel with others.
        is_predicted: bool,
        /// The numbers of sequences that it takes.
        numbers: BTreeMap<ObjectId, u32>,
    },
    /// As a call that takes as many numbers of sequences as there are rows: it tells how many, and
    /// is submitted again.
    Counted,
    /// In its session, as it writes no tables but temporary ones.
    Own {
        /// Whether it only answers.
        is_read: bool,
    },
}

impl Way {
    /// That of a plan that uses temporary tables so.
    fn with(self, temporary: Use, is_read: bool) -> Way {
        match (temporary, self) {
            (Use::No, way) => way,
            (Use::Own, _) => Way::Own { is_read },
            (Use::Given, Way::Call { numbers, .. }) => Way::Call { is_predicted: false, numbers },
            (Use::Given, way) => way,
        }
    }
}

impl Planned {
    /// # Errors
    /// What it does with temporary tables and cannot be logged.
    pub(super) fn new(plan: Plan, catalog: &Arc<Catalog>) -> Result<Planned> {
        let temporary = Use::of(&plan)?;
        let places = match temporary {
            Use::No => Places::new(),
            _ => temporary::places_of(&plan, catalog),
        };
        let catalog = plan.needs_system().then(|| Arc::clone(catalog));
        let (bytes, numbers) = (sql::ir::encode(&plan), plan.numbers());
        let effects = match (plan.has_effects(), plan.has_only_effects()) {
            (false, _) => Effects::Nothing,
            (true, false) => Effects::Some,
            (true, true) => Effects::Only,
        };
        let notifies = plan.notifies();
        let way = if effects != Effects::Nothing {
            assert!(plan.is_query() && numbers.is_empty(), "no call has effects");
            Way::Query
        } else if notifies && numbers.is_empty() {
            Way::Call { is_predicted: is_predicted(&plan), numbers }
        } else if numbers.is_empty() && is_lookup(&plan) {
            Way::Lookup
        } else if numbers.is_empty() && plan.is_query() {
            Way::Query
        } else if numbers.is_empty() || !plan.is_by_rows() {
            Way::Call { is_predicted: is_predicted(&plan), numbers }
        } else {
            Way::Counted
        };
        let way = way.with(temporary, plan.is_query());
        let needs_seed = plan.needs_seed();
        let writes = plan.writes().into_iter().filter(|id| !id.is_temporary()).collect();
        let claims = plan.claims();
        Ok(Planned {
            plan,
            bytes,
            way,
            writes,
            catalog,
            needs_seed,
            claims,
            effects,
            notifies,
            temporary,
            places,
        })
    }

    /// The plan of a part of a COPY, whose rows go under the ids of `relation`.
    pub(super) fn part(insert: &Insert, relation: Relation, catalog: &Arc<Catalog>) -> Planned {
        assert!(matches!(insert.rows, InsertRows::Copied(..)), "only COPY has parts");
        let planned = Planned::new(Plan::Insert(Insert { relation, ..insert.clone() }), catalog);
        planned.expect("no temporary table has parts")
    }

    /// Whether it claims rows.
    pub(super) fn claims_rows(&self) -> bool {
        !self.claims.is_empty()
    }

    /// Whether it waits for rows that others have claimed, or fails.
    pub(super) fn awaits_rows(&self) -> bool {
        self.claims.iter().any(|claim| claim.wait != Wait::Skip)
    }

    /// Whether it reads rows of tables.
    pub(super) fn needs_rows(&self) -> bool {
        match self.temporary {
            Use::Own => self.plan.tables().into_iter().any(|id| !id.is_temporary()),
            Use::No | Use::Given => !self.plan.is_query() || self.plan.reads_tables(),
        }
    }

    /// What it reads beside rows.
    pub(super) fn system(
        &self,
        session: &Arc<Session>,
        services: Option<Arc<QueryServices>>,
    ) -> Option<Arc<System>> {
        let catalog = Arc::clone(self.catalog.as_ref()?);
        let services = services.map(|services| services as Arc<dyn Services>);
        Some(Arc::new(System { catalog, session: Arc::clone(session), services }))
    }
}

impl Statement {
    /// Plans a statement. Needs the stack of a thread of the pool.
    pub(super) fn plan(
        parsed: &Parsed,
        types: &[Option<Type>],
        environment: &Environment,
        catalog: &Arc<Catalog>,
    ) -> Result<Arc<Statement>> {
        Statement::plan_in(parsed, types, environment, catalog, None)
    }

    /// The same statement, with the values that functions of the session have now in their place.
    /// Needs the stack of a thread of the pool.
    pub(super) fn with_session(
        &self,
        catalog: &Arc<Catalog>,
        session: &Arc<Session>,
        parameters: &[Datum],
    ) -> Result<Arc<Statement>> {
        let types: Vec<_> = self.parameters.iter().map(|ty| Some(*ty)).collect();
        let (session, parameters) = (Arc::clone(session), parameters.to_vec());
        let known = Some(SessionValues { session, parameters });
        Statement::plan_in(&self.parsed, &types, &self.environment, catalog, known)
    }

    fn plan_in(
        parsed: &Parsed,
        types: &[Option<Type>],
        environment: &Environment,
        catalog: &Arc<Catalog>,
        session: Option<SessionValues>,
    ) -> Result<Arc<Statement>> {
        #[cfg(test)]
        super::panics::planted(super::panics::Place::Plan, parsed.text());
        let (parsed, version) = (parsed.with_tree()?, catalog.version());
        let catalog = &environment.over(catalog);
        let grant = parsed.tree.source.grant.another();
        let mut statement = Statement {
            parameters: Vec::new(),
            columns: Vec::new(),
            copy: None,
            locking: None,
            is_notify: parsed.tree().is_notify(),
            asks_session: false,
            session: session.clone(),
            parsed,
            environment: environment.clone(),
            defines_temporary: false,
            version,
            planned: None,
            _constants: Arc::clone(&grant),
        };
        let options = Options {
            parameters: types.to_vec(),
            zone: environment.zone.clone(),
            asks_later: session.is_none(),
            session,
            grant: Some(grant),
            ..Options::default()
        };
        if statement.parsed.is_definition() {
            statement.defines_temporary = statement.parsed.tree().defines_temporary(catalog);
            (statement.parameters, statement.columns) =
                sql::described(catalog, statement.parsed.tree(), &options)?;
        } else {
            let prepared = sql::prepare(catalog, statement.parsed.tree(), &options)?;
            statement.parameters = prepared.parameters;
            if !statement.is_notify {
                statement.columns = prepared.columns;
            }
            statement.copy = prepared.copy;
            statement.locking = prepared.locking;
            statement.asks_session = prepared.asks_session;
            let planned = statement.planned.insert(Planned::new(prepared.plan, catalog)?);
            // What reads the session is planned again for each run in a block.
            let may_ask = planned.catalog.is_some() || statement.session.is_some();
            if !may_ask && !statement.parsed.is_part {
                statement.parsed = statement.parsed.without_tree()?;
            }
            if statement.copy.is_some() && statement.needs_seed() {
                let message = "COPY with random values";
                let hint = "Give all columns whose default is random() or gen_random_uuid().";
                return Err(Error::unsupported(message, hint));
            }
        }
        Ok(Arc::new(statement))
    }

    /// The same statement with a later catalog.
    pub(super) fn plan_again(&self, catalog: &Arc<Catalog>) -> Result<Arc<Statement>> {
        let types: Vec<_> = self.parameters.iter().map(|ty| Some(*ty)).collect();
        let (parsed, session) = (&self.parsed, self.session.clone());
        Statement::plan_in(parsed, &types, &self.environment, catalog, session)
    }

    /// The same statement with other temporary objects.
    pub(super) fn plan_with(
        &self,
        objects: Option<Arc<Temporary>>,
        catalog: &Arc<Catalog>,
    ) -> Result<Arc<Statement>> {
        let types: Vec<_> = self.parameters.iter().map(|ty| Some(*ty)).collect();
        let environment = Environment { temporary: objects, ..self.environment.clone() };
        let session = self.session.clone();
        let again = Statement::plan_in(&self.parsed, &types, &environment, catalog, session)?;
        self.check_same(&again)?;
        Ok(again)
    }

    /// Clients were told its columns and parameters.
    pub(super) fn check_same(&self, again: &Statement) -> Result<()> {
        if again.columns != self.columns || again.parameters != self.parameters {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            )
            .with_hint("Prepare the statement again."));
        }
        Ok(())
    }

    /// Whether it defines something.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        self.planned.is_none()
    }

    /// The command of a definition that reads nothing before it writes, or of a query that locks
    /// rows; `None` of all others.
    pub(crate) fn command(&self) -> Option<String> {
        match self.is_definition() {
            true => self.parsed.tree().command(),
            false => self.locking.map(str::to_owned),
        }
    }

    /// Whether it reads the system catalog or the session, which no call can.
    #[must_use]
    pub fn needs_system(&self) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.catalog.is_some())
    }

    /// Whether it takes locks or sleeps.
    pub(super) fn has_effects(&self) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.effects != Effects::Nothing)
    }

    /// Whether its answer is of a version of the catalog.
    pub(super) fn shows_catalog(&self) -> bool {
        self.needs_system()
            && self.planned.as_ref().is_some_and(|planned| planned.effects != Effects::Only)
    }

    /// Whether it notifies listeners.
    pub(crate) fn notifies(&self) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.notifies)
    }

    /// Whether it only reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        let planned = self.planned.as_ref();
        planned.is_some_and(|planned| {
            matches!(planned.way, Way::Query | Way::Lookup | Way::Own { is_read: true })
        })
    }

    /// Whether it reads or writes temporary tables: it is no part of one call with others.
    #[must_use]
    pub fn uses_temporary(&self) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.temporary != Use::No)
    }

    /// Whether it writes no tables but temporary ones, of which it uses some.
    pub(crate) fn is_own(&self) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.temporary == Use::Own)
    }

    /// Whether no call runs it: it asks for something that only the session has.
    pub(super) fn is_of_session(&self) -> bool {
        self.needs_system() || self.is_own()
    }

    /// Whether it waits for rows that others have claimed, or fails: it is no part of one call with
    /// others.
    pub(crate) fn awaits_rows(&self) -> bool {
        self.planned.as_ref().is_some_and(Planned::awaits_rows)
    }

    /// Whether it is a query that locks rows until the end of its transaction.
    pub(crate) fn locks_rows(&self) -> bool {
        self.is_read() && self.locking.is_some()
    }

    /// Whether its answer is rows, of which a query may have some without columns.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        let is_query = self.planned.as_ref().is_some_and(|planned| planned.plan.is_query());
        let is_query = is_query && !self.is_notify;
        !self.columns.is_empty() || is_query && self.copy.is_none()
    }

    /// The tag of an answer without rows. Of definitions only queries that set a sequence have any.
    pub(crate) fn tag_of_none(&self) -> String {
        if self.is_notify {
            return NOTIFY.to_owned();
        }
        let tag = self.planned.as_ref().map(|planned| Tag::of_none(&planned.plan));
        tag.unwrap_or(Tag::Select(0)).to_string()
    }

    /// What its client is told of an answer.
    pub(super) fn said(&self, answer: Answer) -> Answer {
        match self.is_notify {
            true => Answer { tag: NOTIFY.to_owned(), ..Answer::default() },
            false => answer,
        }
    }

    /// Whether it has random values.
    pub(super) fn needs_seed(&self) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.needs_seed)
    }

    /// Its plan to be shown, with the names of a catalog; `None` of a definition.
    #[must_use]
    pub fn explain(&self, catalog: &Catalog) -> Option<Explained> {
        let planned = self.planned.as_ref()?;
        Some(sql::explain(catalog, &planned.plan))
    }

    /// The text that it is from.
    pub(crate) fn text(&self) -> &Arc<str> {
        self.parsed.text()
    }

    /// Its text, as far as a message has room for it.
    pub(super) fn shown(&self) -> String {
        const CHARACTERS_MAX: usize = 200;
        let text = self.text().trim();
        match text.char_indices().nth(CHARACTERS_MAX) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.to_owned(),
        }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let planned = self.planned.as_ref().map_or(0, |planned| plan_bytes(&planned.bytes));
        const BYTES: usize = 5 << 10;
        const COLUMN_BYTES: usize = size_of::<OutputColumn>() + 64;
        let columns = self.columns.len() * COLUMN_BYTES;
        BYTES + self.parsed.tree.source.grant.bytes() + planned + columns
    }
}

#[cfg(test)]
mod tests {
    use super::super::shared::ENTRY_BYTES;
    use super::super::{Store, StoreOptions};
    use super::*;
    use std::collections::BTreeMap;

    /// What is kept of a text weighs what it takes, and not many times that.
    #[test]
    fn a_statement_weighs_what_it_takes() {
        let store = Store::open(StoreOptions::memory()).unwrap();
        let catalog = Arc::new(Catalog::open(std::iter::empty()).unwrap());
        let many = |part: &str, count| vec![part; count].join(",");
        let texts = BTreeMap::from([
            ("one", "SELECT 1".to_owned()),
            ("parameters", "SELECT $1::int + $2::int, $3::text || 'x'".to_owned()),
            ("columns", format!("SELECT {}", many("1 + 2 * 3 - length('abc')", 500))),
            ("values", format!("VALUES {}", many("(1, 'abc', 2.5)", 2_000))),
            ("list", format!("SELECT 1 WHERE 1 IN ({})", many("12345", 5_000))),
            ("queries", format!("SELECT {}", many("(SELECT count(*) FROM (SELECT 1) x)", 200))),
        ]);
        let mut wrong = false;
        for (name, text) in texts {
            let (pool, grant) = (Arc::clone(&store.shared.pool), store.shared.memory.grant());
            let (mut parsed, mut planned) = (None, None);
            let parse = || {
                let text: Arc<str> = text.as_str().into();
                let tree = sql::parse::parse_within(&text, &grant).unwrap().remove(0);
                let source = Arc::new(Source { text, grant: Arc::clone(&grant), pool });
                parsed = Some(Parsed::new(tree, source, 0));
            };
            let of_tree = allocation_counter::measure(parse).bytes_current;
            let parsed = parsed.expect("it was parsed");
            let plan = || {
                planned =
                    Some(Statement::plan(&parsed, &[], &Environment::default(), &catalog).unwrap());
            };
            let of_plan = allocation_counter::measure(plan).bytes_current;
            let planned = planned.expect("it was planned");
            assert!(planned.parsed.tree.tree.is_none(), "{name}");
            let of_text = text.len() as i64;
            for (what, taken, weight) in [
                ("tree", of_tree, ENTRY_BYTES + grant.bytes()),
                ("plan", of_plan + of_text, planned.bytes()),
            ] {
                let times = weight as f64 / taken as f64;
                eprintln!("{name:12} {what} takes {taken:9} bytes, weighs {times:.2} times that");
                wrong |= !(1.0..=6.0).contains(&times);
            }
        }
        assert!(!wrong, "it weighs less than it takes, or many times that");
    }
}
