//! Numbers that plans name things by.

use serde::{Deserialize, Serialize};

/// The number of a table, index or sequence, which no other one gets later: the beginning of its
/// keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId(u32);

impl ObjectId {
    /// How many bytes of a key it takes.
    pub const BYTES: usize = size_of::<u32>();

    /// The id with this number.
    pub const fn new(number: u32) -> ObjectId {
        ObjectId(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether it is one of a session's own object. Bit 31 marks pieces of long rows.
    pub const fn is_temporary(self) -> bool {
        self.0 >> 30 == 1
    }

    /// The id after this one.
    pub fn next(self) -> ObjectId {
        ObjectId(self.0.checked_add(1).expect("ids are given one at a time, by statements"))
    }

    /// Its bytes in keys, whose order is that of ids.
    pub fn to_bytes(self) -> [u8; ObjectId::BYTES] {
        self.0.to_be_bytes()
    }

    /// The id with these bytes.
    pub fn from_bytes(bytes: [u8; ObjectId::BYTES]) -> ObjectId {
        ObjectId(u32::from_be_bytes(bytes))
    }
}

/// The number of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SchemaId(u32);

impl SchemaId {
    /// Schema `public`, which each catalog begins with.
    pub const PUBLIC: SchemaId = SchemaId(2_200);
    /// The schema of names that nothing has.
    pub const NOWHERE: SchemaId = SchemaId(0);
    /// The schema of temporary objects, of each session another one. Their ids follow, and are far
    /// from those of other objects also in the system catalog, which has fewer bits for them.
    pub const TEMPORARY: SchemaId = SchemaId(1 << 30 | 1 << 28);

    /// The id with this number.
    pub const fn new(number: u32) -> SchemaId {
        SchemaId(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The id of its row in the catalog.
    pub const fn object(self) -> ObjectId {
        ObjectId(self.0)
    }
}

impl From<ObjectId> for SchemaId {
    fn from(id: ObjectId) -> SchemaId {
        SchemaId(id.0)
    }
}

/// The place of a query among those of a statement, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueryNumber(u16);

impl QueryNumber {
    /// The most queries of a statement.
    pub const COUNT_MAX: usize = 10_000;

    /// The number of the query at this place. Limits keep statements at fewer than there are
    /// numbers.
    pub fn at(place: usize) -> QueryNumber {
        QueryNumber(u16::try_from(place).expect("a statement has fewer queries than numbers"))
    }
}

impl From<QueryNumber> for usize {
    fn from(number: QueryNumber) -> usize {
        usize::from(number.0)
    }
}

/// The place of a column in a row, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ColumnNumber(u16);

impl ColumnNumber {
    /// The largest place.
    pub const MAX: usize = u16::MAX as usize;

    /// The number of the column at this place of a row. Limits keep rows narrower than numbers go.
    pub fn at(place: usize) -> ColumnNumber {
        ColumnNumber(u16::try_from(place).expect("a row has fewer columns than there are numbers"))
    }
}

impl From<ColumnNumber> for usize {
    fn from(number: ColumnNumber) -> usize {
        usize::from(number.0)
    }
}
