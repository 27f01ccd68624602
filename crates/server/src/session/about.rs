//! Statements about the session: SET, SHOW, and the functions that drivers ask for at first.

use super::conversation::{Conversation, Stop};
use super::planned::{Known, Prepared, Work};
use super::queue::Shape;
use super::settings::{Settings, joined};
use crate::config::NAME;
use crate::store::{Answer, BlockOperation, Control, OutputColumn, Statement};
use sql::catalog::{Deferral, Written};
use sql::ir::Kind;
use sql::parse::{
    BlockModes, ConfigValue, Own, SessionColumn, SessionFunction, SetConfig, SetConstraints,
};
use sql::system::{OpenCursor, PreparedStatement, Session};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Type};

/// The columns of a query about the session.
pub(super) fn columns(asked: &[SessionColumn]) -> Arc<[OutputColumn]> {
    let column = |asked: &SessionColumn| {
        let ty = match asked.function {
            SessionFunction::ProcessId => Type::Int4,
            SessionFunction::IsInRecovery => Type::Bool,
            _ => Type::Text,
        };
        OutputColumn { name: asked.name.clone(), kind: Kind::plain(ty) }
    };
    asked.iter().map(column).collect()
}

pub(super) fn text_column(name: &str) -> OutputColumn {
    OutputColumn { name: name.to_owned(), kind: Kind::plain(Type::Text) }
}

impl Conversation {
    /// The columns of the answer to a statement about the session.
    pub(super) fn columns_of(&self, control: &Control) -> Result<Arc<[OutputColumn]>> {
        Ok(match control {
            Control::Show(name) if name == "all" => ["name", "setting"].map(text_column).into(),
            Control::Fetch(fetch) if fetch.is_move => Arc::new([]),
            Control::Fetch(fetch) => self.columns_of_cursor(&fetch.cursor)?,
            Control::Show(name) => Arc::new([text_column(&self.settings.show(name)?.0)]),
            _ => Arc::new([]),
        })
    }

    /// Does what a statement says about the session.
    pub(super) async fn control(&mut self, control: &Control, shape: &Shape) -> Result<Answer> {
        if let Some(tag) = self.block_control(control).await? {
            return Ok(tagged(tag, Vec::new()));
        }
        if let Some(tag) = self.channel_control(control)? {
            return Ok(tagged(tag, Vec::new()));
        }
        let answer = self.session_control(control, shape).await?;
        self.block.has_run |= reads_state(control);
        Ok(answer)
    }

    /// Does what a statement says about the session, but for blocks.
    async fn session_control(&mut self, control: &Control, shape: &Shape) -> Result<Answer> {
        let mut rows = Vec::new();
        let tag = match control {
            Control::Fetch(fetch) => return self.fetch(fetch, shape),
            Control::Close(name) => self.close(name.as_deref())?,
            Control::SetLocal(name, values) => {
                let value = joined(name, values)?;
                self.change_locally(|settings| settings.set(name, &value))?;
                "SET"
            }
            Control::SetDefault { name, is_local } => {
                let change = |settings: &mut Settings| settings.reset_named(Some(name));
                match is_local {
                    true => self.change_locally(change)?,
                    false => self.change(change)?,
                }
                "SET"
            }
            Control::Set(name, values) => {
                let value = joined(name, values)?;
                self.change(|settings| settings.set(name, &value))?;
                "SET"
            }
            Control::Reset(name) => {
                self.change(|settings| settings.reset_named(name.as_deref()))?;
                "RESET"
            }
            Control::Deallocate(Some(name)) => {
                self.statements.get(name)?;
                self.statements.remove(name);
                "DEALLOCATE"
            }
            Control::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            Control::Characteristics(modes) => self.set_default_modes(modes)?,
            Control::Show(name) => {
                rows = match name.as_str() {
                    "all" => self
                        .settings
                        .all()
                        .map(|(name, value)| vec![Datum::text(name), Datum::text(value)])
                        .collect(),
                    name => vec![vec![Datum::text(self.settings.show(name)?.1)]],
                };
                "SHOW"
            }
            Control::Own(Own::Checkpoint) => {
                self.connection.checkpoint().await?;
                "CHECKPOINT"
            }
            Control::Own(own) => self.own(own).await?,
            Control::DiscardNothing(tag) => tag,
            Control::DiscardTemporary => {
                self.connection.block(BlockOperation::DiscardTemporary).await?;
                "DISCARD TEMP"
            }
            Control::DiscardAll => {
                self.discard_all().await?;
                "DISCARD ALL"
            }
            _ => unreachable!("the others are about blocks"),
        };
        Ok(tagged(tag, rows))
    }

    async fn discard_all(&mut self) -> Result<()> {
        self.check_alone("DISCARD ALL")?;
        self.statements.clear();
        self.cursors.clear();
        self.connection.block(BlockOperation::DiscardTemporary).await?;
        self.connection.unlock_all();
        self.mailbox().unlisten(None);
        self.change(|settings| settings.reset_named(None))?;
        // It takes place at once, whatever its segment comes to.
        self.end_changes(true);
        Ok(())
    }

    /// SET SESSION CHARACTERISTICS: modes of transactions from the next one on.
    fn set_default_modes(&mut self, modes: &BlockModes) -> Result<&'static str> {
        let access = modes.is_read_only.map(|is| if is { "on" } else { "off" });
        let level = modes.level.as_deref();
        let deferrable = modes.is_deferrable.map(|is| if is { "on" } else { "off" });
        for (name, value) in [
            ("default_transaction_isolation", level),
            ("default_transaction_read_only", access),
            ("default_transaction_deferrable", deferrable),
        ] {
            let Some(value) = value else { continue };
            self.change(|settings| settings.set(name, value))?;
        }
        Ok("SET")
    }

    /// VACUUM and ANALYZE have nothing to do here: only what they name must be.
    async fn own(&mut self, own: &Own) -> Result<&'static str> {
        match own {
            Own::Vacuum(_) => self.check_alone("VACUUM")?,
            Own::Database(statement) => return self.database_statement(statement).await,
            _ => {}
        }
        self.connection.saw_catalog(self.catalog_version);
        let catalog = self.connection.catalog();
        let check = |written: &Written| {
            let name = catalog.relation(written)?;
            let is_there = catalog.table(&name).is_some() || catalog.view(&name).is_some();
            if is_there { Ok(()) } else { Err(written.missing()) }
        };
        let no_table = |names: &[Written]| names.iter().try_for_each(check);
        let (tag, missing) = match own {
            Own::Refused(word) => {
                let hint = match word.as_str() {
                    "ALTER DATABASE ... SET" => "Set it in the options of each connection.",
                    _ => "",
                };
                return Err(Error::unsupported(format!("{word} is not supported"), hint));
            }
            Own::Checkpoint | Own::Database(_) => unreachable!("they are done before"),
            Own::Vacuum(tables) => ("VACUUM", no_table(tables)),
            Own::Analyze(tables) => ("ANALYZE", no_table(tables)),
            Own::SetConstraints(set) => return self.set_constraints(set).await,
        };
        missing.map(|()| tag)
    }

    /// SET CONSTRAINTS: checks of the block wait from now on, or do so no longer.
    async fn set_constraints(&mut self, set: &SetConstraints) -> Result<&'static str> {
        const TAG: &str = "SET CONSTRAINTS";
        self.warn_alone(TAG);
        let catalog = self.connection.catalog();
        for name in &set.names {
            let mut named = catalog.foreign_keys().filter(|key| key.name == name.own).peekable();
            if named.peek().is_none() {
                let message = format!("constraint \"{name}\" does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
            if set.is_deferred && named.any(|key| key.deferral == Deferral::No) {
                let message = format!("constraint \"{name}\" is not deferrable");
                return Err(Error::new(SqlState::WRONG_OBJECT, message));
            }
        }
        if self.is_in_block() {
            self.connection.block(BlockOperation::Constraints(set.clone())).await?;
        }
        Ok(TAG)
    }

    /// What a statement sees of the session, if it looks at that.
    pub(super) fn show_session_to(&mut self, statement: &Statement) {
        if !statement.needs_system() {
            return;
        }
        let all = self.settings.all();
        let settings = all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let process = self.registered.process;
        let is_named = |(name, _): &(&String, &Known)| !name.is_empty();
        let prepared = self.statements.by_name().into_iter().filter(is_named);
        let prepared = prepared.map(|(name, known)| PreparedStatement {
            name: name.clone(),
            text: Arc::clone(&known.text),
            at: known.at,
            parameters: known.prepared.parameters().to_vec(),
            is_sql: known.is_sql,
        });
        let cursors = self.cursors.by_name().into_iter().map(|(name, cursor)| OpenCursor {
            name: name.clone(),
            text: Arc::clone(&cursor.text),
            at: cursor.at_time,
            is_held: cursor.is_held,
            is_scrollable: !cursor.is_forward,
            is_binary: cursor.is_binary,
        });
        let (prepared, cursors) = (prepared.collect(), cursors.collect());
        let session = Session { process, settings, prepared, cursors };
        self.connection.set_session(session);
    }

    /// Does what needs nothing of the store.
    pub(super) async fn about_work(
        &mut self,
        work: &Work,
        values: &[Datum],
    ) -> Result<Answer, Stop> {
        self.block.has_run = true;
        match work {
            Work::Session(asked, _) => Ok(self.about(asked, values).await?),
            Work::Explain(explaining) => self.explain(explaining, values).await,
            Work::Prepare(name, prepared, text) => {
                self.statements.check(name, prepared.bytes)?;
                let (prepared, text) = (Arc::clone(prepared), Arc::clone(text));
                let known = Known { prepared, text, at: self.connection.now(), is_sql: true };
                self.statements.insert(name.clone(), known);
                Ok(tagged("PREPARE", Vec::new()))
            }
            _ => unreachable!("the others are for the store"),
        }
    }

    /// Answers a query about the session.
    async fn about(&mut self, asked: &[SessionColumn], values: &[Datum]) -> Result<Answer> {
        let mut row = Vec::with_capacity(asked.len());
        for column in asked {
            row.push(self.value(&column.function, values).await?);
        }
        Ok(tagged("SELECT 1", vec![row]))
    }

    async fn value(&mut self, function: &SessionFunction, values: &[Datum]) -> Result<Datum> {
        Ok(match function {
            SessionFunction::Version => Datum::text(sql::system::version()),
            SessionFunction::Database => Datum::text(self.connection.database()),
            SessionFunction::User => Datum::text(NAME),
            SessionFunction::ProcessId => Datum::Int4(self.registered.process),
            SessionFunction::IsInRecovery => Datum::Bool(false),
            SessionFunction::Setting(name) => Datum::text(self.settings.show(name)?.1),
            SessionFunction::Set(config) => {
                self.set_config(config, values).await?;
                Datum::text(self.settings.show(&config.name)?.1)
            }
        })
    }

    /// Sets what a statement sets before it runs.
    pub(super) async fn set_configs(&mut self, prepared: &Prepared) -> Result<()> {
        for config in &prepared.configs {
            if config.if_exists && self.settings.show(&config.name).is_err() {
                continue;
            }
            self.set_config(config, &[]).await?;
        }
        Ok(())
    }

    /// `set_config`
    pub(super) async fn set_config(&mut self, config: &SetConfig, values: &[Datum]) -> Result<()> {
        let SetConfig { name, value, is_local, .. } = config;
        let value = match value {
            ConfigValue::Constant(value) => value.clone(),
            ConfigValue::Parameter(at) => match values.get(*at) {
                Some(Datum::Text(text)) => Some(text.to_string()),
                _ => None,
            },
        };
        let change = |settings: &mut Settings| match &value {
            Some(value) => settings.set(name, value),
            None => settings.reset_named(Some(name)),
        };
        match Settings::modes_of(name, value.as_deref())? {
            Some(modes) => self.set_modes(&modes).await,
            None if *is_local => self.change_locally(change),
            None => self.change(change),
        }
    }

    /// Says an answer that is here, and that its portal is suspended if it is.
    pub(super) fn local_answer(&mut self, answer: &Answer, shape: &Shape, is_suspended: bool) {
        if shape.is_described {
            self.out.row_description(&shape.columns, |at| shape.format(at));
        }
        for row in &answer.rows {
            self.out.data_row(row, |at| shape.format(at), &shape.zone);
        }
        if is_suspended {
            self.out.portal_suspended();
        } else {
            self.out.command_complete(&answer.tag);
        }
    }
}

/// Whether a statement about the session reads a state, as PostgreSQL has it: the modes of its
/// transaction are settled then.
fn reads_state(control: &Control) -> bool {
    match control {
        Control::Deallocate(_) | Control::Close(_) => true,
        Control::Own(own) => matches!(own, Own::Analyze(_)),
        _ => false,
    }
}

pub(super) fn tagged(tag: &str, rows: Vec<Vec<Datum>>) -> Answer {
    Answer { tag: tag.to_owned(), rows, ..Answer::default() }
}
