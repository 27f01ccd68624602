//! Foreign keys as plans have them.

use super::expression::Expression;
use super::number::{ColumnNumber, ObjectId};
use super::relation::Relation;
use serde::{Deserialize, Serialize};

/// A foreign key between two of the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// The constraint's name.
    pub name: String,
    /// The place of the table whose rows refer.
    pub child: u16,
    /// The place of the table that they refer to.
    pub parent: u16,
    /// The columns that refer.
    pub columns: Vec<ColumnNumber>,
    /// The columns that they refer to.
    pub referred: Vec<ColumnNumber>,
    /// The parent's unique index of these, or its primary key (`None`).
    pub parent_index: Option<u16>,
    /// The child's index that begins with the columns that refer, or its primary key (`None`).
    pub child_index: Option<u16>,
    /// What becomes of children when their parent goes.
    pub on_delete: Referential,
    /// What becomes of them when its key changes.
    pub on_update: Referential,
    /// What SET DEFAULT sets, for each column.
    pub defaults: Vec<Expression>,
    /// When it is checked.
    pub deferral: Deferral,
}

/// When a constraint is checked. The first two have the bytes of the truth value that says in older
/// catalogs whether it is DEFERRABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deferral {
    /// At the end of each statement.
    No,
    /// There, too, unless SET CONSTRAINTS defers it.
    Deferrable,
    /// INITIALLY DEFERRED: at COMMIT.
    Deferred,
}

/// What becomes of rows whose parent goes or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after SQL's actions")]
pub enum Referential {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

impl Referential {
    /// Whether it writes rows.
    pub fn writes(self) -> bool {
        !matches!(self, Referential::NoAction | Referential::Restrict)
    }
}

/// The tables whose rows change with those that they refer to.
pub(super) fn changed_children(
    relations: &[Relation],
    keys: &[ForeignKey],
) -> impl Iterator<Item = ObjectId> {
    let changing = keys.iter().filter(|key| key.on_delete.writes() || key.on_update.writes());
    changing.filter_map(|key| relations.get(usize::from(key.child)).map(|child| child.id))
}

/// Whether keys are between these tables, and all their numbers name something.
pub(super) fn are_sound(relations: &[Relation], keys: &[ForeignKey]) -> bool {
    let has = |relation: &Relation, columns: &[ColumnNumber]| {
        columns.iter().all(|column| usize::from(*column) < relation.columns.len())
    };
    let index_of = |relation: &Relation, index: Option<u16>| match index {
        Some(at) => {
            let index = relation.indexes.get(usize::from(at));
            let plain = index.filter(|index| index.special().is_none());
            plain.map(|index| index.columns.clone())
        }
        None => Some(relation.primary.clone()),
    };
    let begins = |relation: &Relation, index, columns: &[ColumnNumber]| {
        index_of(relation, index).is_some_and(|key| {
            key.len() >= columns.len()
                && key[..columns.len()].iter().all(|each| columns.contains(&each.column))
        })
    };
    keys.iter().all(|key| {
        let child = relations.get(usize::from(key.child));
        let parent = relations.get(usize::from(key.parent));
        let (Some(child), Some(parent)) = (child, parent) else { return false };
        !key.columns.is_empty()
            && key.columns.len() == key.referred.len()
            && key.columns.len() == key.defaults.len()
            && has(child, &key.columns)
            && has(parent, &key.referred)
            && begins(child, key.child_index, &key.columns)
            && begins(parent, key.parent_index, &key.referred)
    })
}
