//! Tables, views and sequences as the catalog keeps them.

use crate::ir::{
    ColumnNumber, Deferral, Expression, Kind, Name, ObjectId, Referential, Relation, from_bytes,
    to_bytes,
};
use serde::{Deserialize, Serialize};
use values::{Result, Type};

/// A table: what its plans need, and what only statements about it need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Columns, keys, indexes and checks.
    pub relation: Relation,
    /// The rest about each column.
    pub columns: Vec<ColumnInfo>,
    /// What ALTER TABLE says of row-level security.
    pub row_security: RowSecurity,
}

/// Whether policies apply to the rows of a table. There are none, and the one user is exempt from
/// them as their owner, so this is only shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSecurity {
    /// ENABLE ROW LEVEL SECURITY
    pub is_enabled: bool,
    /// FORCE ROW LEVEL SECURITY
    pub is_forced: bool,
}

/// A table in the form that says nothing of row-level security, which most tables have.
#[derive(Serialize, Deserialize)]
struct PlainTable<R, C> {
    relation: R,
    columns: C,
}

/// What a plan of reads does not need of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnInfo {
    /// What a row gets that states no value; NULL without it.
    pub default: Option<Expression>,
    /// The default as it was written.
    pub default_text: Option<String>,
    /// Whether values come from a sequence by the standard's rules.
    pub identity: Option<Identity>,
    /// The sequence that belongs to the column and goes with it.
    pub sequence: Option<ObjectId>,
}

/// GENERATED ... AS IDENTITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// ALWAYS: statements may not state a value.
    Always,
    /// BY DEFAULT: statements may.
    ByDefault,
}

/// A sequence of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Its object id, by which the store counts.
    pub id: ObjectId,
    /// Its name.
    pub name: Name,
    /// The first number.
    pub start: i64,
    /// From each number to the next; not 0.
    pub increment: i64,
    /// The smallest number.
    pub minimum: i64,
    /// The largest number.
    pub maximum: i64,
    /// Whether it begins again after its end.
    pub cycle: bool,
    /// The type whose numbers it has.
    pub kind: Kind,
    /// The number from which the store counts.
    pub last: i64,
    /// Whether that number was given, so that the first one is the next.
    pub is_called: bool,
}

/// A sequence in the form that had no type, and was never altered.
#[derive(Serialize, Deserialize)]
struct PlainSequence {
    id: ObjectId,
    name: Name,
    start: i64,
    increment: i64,
    minimum: i64,
    maximum: i64,
    cycle: bool,
}

impl Sequence {
    /// The sequence of a row of the catalog.
    pub(super) fn read(row: &[u8]) -> Result<Sequence> {
        const WHAT: &str = "sequence of the catalog";
        let Ok(plain) = from_bytes::<PlainSequence>(row, WHAT) else {
            return from_bytes(row, WHAT);
        };
        let PlainSequence { id, name, start, increment, minimum, maximum, cycle } = plain;
        let ty = match maximum {
            ..=32_767 if minimum >= i64::from(i16::MIN) => Type::Int2,
            2_147_483_647 => Type::Int4,
            _ => Type::Int8,
        };
        let (kind, last, is_called) = (Kind::plain(ty), start, false);
        let sequence =
            Sequence { id, name, start, increment, minimum, maximum, cycle, kind, last, is_called };
        Ok(sequence)
    }
}

/// A foreign key. It names its tables, whose ids change with TRUNCATE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Its object id.
    pub id: ObjectId,
    /// The constraint's name.
    pub name: String,
    /// The table whose rows refer.
    pub child: Name,
    /// The columns that refer.
    pub columns: Vec<ColumnNumber>,
    /// The table that they refer to.
    pub parent: Name,
    /// The columns that they refer to, which are unique together.
    pub referred: Vec<ColumnNumber>,
    /// What becomes of children when their parent goes.
    pub on_delete: Referential,
    /// What becomes of them when its key changes.
    pub on_update: Referential,
    /// When it is checked.
    pub deferral: Deferral,
}

/// A view: its query is bound again by each statement that selects from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Its object id.
    pub id: ObjectId,
    /// Its name.
    pub name: Name,
    /// Its columns.
    pub columns: Vec<ViewColumn>,
    /// The text of its query, in which no `*` stands for columns.
    pub text: String,
    /// The zone of the session that made it, which literals without one are in.
    pub zone: String,
    /// The distance from UTC of a zone that is nothing else.
    pub zone_seconds: Option<i32>,
    /// The tables and views that it selects from.
    pub uses: Vec<Used>,
}

/// A column of a view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

/// A table or view that a view selects from. It is named, as ids change with TRUNCATE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Its name.
    pub relation: Name,
    /// The columns that the view's query names.
    pub columns: Vec<String>,
}

impl Table {
    /// The table of a row of the catalog.
    pub(super) fn read(row: &[u8]) -> Result<Table> {
        const WHAT: &str = "table of the catalog";
        let Ok(PlainTable { relation, columns }) = from_bytes(row, WHAT) else {
            return from_bytes(row, WHAT);
        };
        Ok(Table { relation, columns, row_security: RowSecurity::default() })
    }

    /// The row of the catalog.
    pub(super) fn to_row(&self) -> Vec<u8> {
        let Table { relation, columns, row_security } = self;
        match *row_security == RowSecurity::default() {
            true => to_bytes(&PlainTable { relation, columns }),
            false => to_bytes(self),
        }
    }

    /// The number of a column that statements can name.
    pub fn column(&self, name: &str) -> Option<ColumnNumber> {
        let named = |column: &crate::ir::Column| !column.is_hidden() && column.name == name;
        self.relation.columns.iter().position(named).map(ColumnNumber::at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that stores have of before sequences had a type and a last number.
    #[test]
    fn rows_of_sequences_of_before_are_read() {
        let mut row = vec![1];
        row.extend([0x80, 0x80, 0x01, 1, b's', 20, 4, 2, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0]);
        let sequence = Sequence::read(&row).unwrap();
        assert_eq!((sequence.id.number(), &*sequence.name), (16_384, "s"));
        assert_eq!((sequence.start, sequence.increment), (10, 2));
        assert_eq!((sequence.minimum, sequence.maximum), (1, 2_147_483_647));
        assert_eq!((sequence.kind.ty, sequence.last, sequence.is_called), (Type::Int4, 10, false));
        let again = crate::ir::to_bytes(&sequence);
        assert_eq!(Sequence::read(&again).unwrap(), sequence);
        for end in 0..row.len() {
            assert!(Sequence::read(&row[..end]).is_err(), "{end}");
        }
    }

    /// The bytes that stores have of tables of which nothing was said.
    #[test]
    fn rows_of_tables_without_row_security_have_no_bytes_for_it() {
        let relation = Relation {
            id: ObjectId::new(16_384),
            name: Name::public("t"),
            space: crate::ir::Space::Row256,
            columns: Vec::new(),
            primary_name: String::new(),
            primary: Vec::new(),
            indexes: Vec::new(),
            checks: Vec::new(),
        };
        let plain = to_bytes(&(&relation, Vec::<ColumnInfo>::new()));
        let mut table = Table { relation, columns: Vec::new(), row_security: Default::default() };
        assert_eq!(table.to_row(), plain);
        assert_eq!(Table::read(&plain).unwrap(), table);
        table.row_security.is_forced = true;
        let row = table.to_row();
        assert_eq!(row, [&plain[..], &[0, 1]].concat());
        assert_eq!(Table::read(&row).unwrap(), table);
        assert!(Table::read(&row[..row.len() - 1]).is_err());
    }

    /// The bytes that stores have of before constraints could be deferred.
    #[test]
    fn deferral_has_the_bytes_of_a_truth_value() {
        for (before, deferral) in [(false, Deferral::No), (true, Deferral::Deferrable)] {
            assert_eq!(crate::ir::to_bytes(&deferral), crate::ir::to_bytes(&before));
        }
        assert_eq!(crate::ir::to_bytes(&Deferral::Deferred).last(), Some(&2));
    }
}
