//! ALTER TABLE: identity columns.

use super::alter::Altering;
use super::columns::refuse_no_integer;
use super::counting::Options;
use super::sequences::{counted, replace_in};
use crate::bind::{name_of, own_name, unsupported};
use crate::catalog::{Identity, Sequence, Table};
use crate::ir::ObjectId;
use crate::parse::IdentityChange;
use crate::run::Rows;
use sqlparser::ast::{GeneratedAs, Ident, ObjectName, SequenceOptions};
use values::{Error, Result, SqlState, Type};

fn wrong_state(message: String) -> Error {
    Error::new(SqlState::WRONG_STATE, message)
}

/// ALWAYS or BY DEFAULT.
pub(super) fn identity_of(generated: GeneratedAs) -> Result<Identity> {
    match generated {
        GeneratedAs::Always => Ok(Identity::Always),
        GeneratedAs::ByDefault => Ok(Identity::ByDefault),
        GeneratedAs::ExpStored => Err(unsupported("GENERATED ... STORED")),
    }
}

impl Altering<'_> {
    /// ADD GENERATED ... AS IDENTITY
    pub(super) fn add_identity(
        &mut self,
        name: &Ident,
        generated: GeneratedAs,
        sequence: Option<&ObjectName>,
        options: &[SequenceOptions],
    ) -> Result<()> {
        let (own, shown, column) = (self.name(), name_of(name), self.column(name)?);
        let at = usize::from(column);
        let (nullable, ty) = {
            let column = &self.draft.table.relation.columns[at];
            (column.nullable, column.kind.ty)
        };
        refuse_no_integer(ty)?;
        let of = format!("column \"{shown}\" of relation \"{own}\"");
        if nullable {
            let message = format!("{of} must be declared NOT NULL before identity can be added");
            return Err(wrong_state(message));
        }
        let info = &self.draft.table.columns[at];
        if info.identity.is_some() {
            return Err(wrong_state(format!("{of} is already an identity column")));
        }
        if info.default.is_some() {
            return Err(wrong_state(format!("{of} already has a default value")));
        }
        if info.sequence.is_some() {
            let message = "a second sequence of one column is not supported";
            return Err(Error::unsupported(message, "Drop the first one before."));
        }
        let identity = identity_of(generated)?;
        let sequence = sequence.map(own_name).transpose()?;
        self.draft.number(&shown, ty, sequence, options)?;
        let info = &mut self.draft.table.columns[at];
        (info.identity, info.default_text) = (Some(identity), None);
        Ok(())
    }

    pub(super) fn change_identity(
        &mut self,
        name: &Ident,
        change: &IdentityChange,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        let (own, shown, column) = (self.name(), name_of(name), self.column(name)?);
        let at = usize::from(column);
        let info = &self.draft.table.columns[at];
        let is_new = matches!(change, IdentityChange::Add { .. });
        if info.identity.is_none() && !is_new {
            let message =
                format!("column \"{shown}\" of relation \"{own}\" is not an identity column");
            if matches!(change, IdentityChange::Drop { if_exists: true }) {
                self.notice(format!("{message}, skipping"));
                return Ok(());
            }
            return Err(wrong_state(message));
        }
        match change {
            IdentityChange::Add { generated, sequence, counting } => {
                self.add_identity(name, *generated, sequence.as_ref(), &counting.options)
            }
            IdentityChange::Drop { .. } => {
                let info = std::mem::take(&mut self.draft.table.columns[at]);
                if let Some(sequence) = info.sequence {
                    self.refuse_taken(sequence)?;
                    self.draft.delta.drop_sequence(sequence);
                    self.draft.sequences.remove(&sequence);
                }
                Ok(())
            }
            IdentityChange::Set { generated, counting } => {
                if let Some(generated) = generated {
                    let identity = identity_of(*generated)?;
                    self.draft.table.columns[at].identity = Some(identity);
                }
                self.count_otherwise(at, &Options::of(counting)?, rows)
            }
        }
    }

    /// The numbers of an identity column become of another type with it.
    pub(super) fn type_of_identity(
        &mut self,
        at: usize,
        ty: Type,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        if self.draft.table.columns[at].identity.is_none() {
            return Ok(());
        }
        self.count_otherwise(at, &Options::of_type(ty), rows)
    }

    /// The sequence of a column goes on with other options.
    fn count_otherwise(&mut self, at: usize, options: &Options, rows: &mut dyn Rows) -> Result<()> {
        let old = self.draft.table.columns[at].sequence;
        let Some(old) = old.filter(|_| !options.counts_the_same()) else { return Ok(()) };
        let catalog = self.draft.catalog;
        let of_catalog = || catalog.sequence_by_id(old).map(|own| Sequence::clone(own));
        let sequence = self.draft.sequences.remove(&old).or_else(of_catalog);
        let sequence = sequence.expect("identity columns have sequences");
        let next = options.change(&counted(&sequence, options, rows)?)?;
        let next = Sequence { id: self.draft.new_id(), ..next };
        replace_in(&mut self.draft.table, old, &next);
        self.refuse_taken(old)?;
        self.draft.delta.drop_sequence(old);
        self.draft.put_sequence(next);
        Ok(())
    }

    /// Refuses to change the sequence of an identity column of which other tables take numbers.
    fn refuse_taken(&self, sequence: ObjectId) -> Result<()> {
        let own = self.old.relation.id;
        let takes = |table: &Table| {
            let op = crate::ir::Op::Next(sequence);
            let mut defaults = table.columns.iter().filter_map(|info| info.default.as_ref());
            table.relation.id != own && defaults.any(|default| default.code.contains(&op))
        };
        match self.draft.catalog.tables().find(|table| takes(table)) {
            None => Ok(()),
            Some(table) => {
                let other = &table.relation.name;
                let message = format!(
                    "another way to count of a sequence that table \"{other}\" takes numbers of \
                     is not supported"
                );
                Err(Error::unsupported(message, "Use ALTER SEQUENCE."))
            }
        }
    }
}
