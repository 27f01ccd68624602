//! Types of values, with PostgreSQL's names and object ids.

use super::EnumType;

/// The type of a value, without length or precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`
    Numeric,
    /// `text`
    Text,
    /// `character varying`
    Varchar,
    /// `character`, with blanks at its end
    Char,
    /// `bytea`
    Bytea,
    /// `uuid`
    Uuid,
    /// `date`
    Date,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    Timestamptz,
    /// `interval`
    Interval,
    /// `jsonb`
    Jsonb,
    /// `oid`: the number of an object of the catalog. Values are `integer`s, and so are those of
    /// the types below that are called by a kind of object.
    Oid,
    /// `name`: text in the catalog.
    Name,
    /// `"char"`: a letter in the catalog.
    Letter,
    /// `regclass`
    Regclass,
    /// `regtype`
    Regtype,
    /// `regproc`
    Regproc,
    /// `regnamespace`
    Regnamespace,
    /// `regrole`
    Regrole,
    /// `json`: text as it was given.
    Json,
    /// `time without time zone`
    Time,
    /// `record`: a row of values, which no table has in a column.
    Record,
    /// `bit`: bits of a stated number.
    Bit,
    /// `bit varying`
    Varbit,
    /// `jsonpath`
    Jsonpath,
    /// `inet`
    Inet,
    /// `cidr`
    Cidr,
    /// An enum type.
    Enum(EnumType),
    /// An array of one of the others.
    Array(Element),
}

/// The type of an array's items; made by [`Type::array`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Element(Item);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Item {
    /// The place in the table.
    Known(u8),
    Enum(EnumType),
}

/// The number of a type in PostgreSQL's catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(u32);

impl Oid {
    /// The object id with this number.
    pub const fn new(number: u32) -> Oid {
        Oid(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// What is known of a type that is neither an array nor an enum. The place in the table is the
/// type's code in stored bytes.
struct Known {
    ty: Type,
    name: &'static str,
    oid: Oid,
    array_oid: Oid,
    fixed_bytes: Option<usize>,
}

const fn known(
    ty: Type,
    name: &'static str,
    oid: u32,
    array_oid: u32,
    fixed_bytes: Option<usize>,
) -> Known {
    Known { ty, name, oid: Oid(oid), array_oid: Oid(array_oid), fixed_bytes }
}

const KNOWN: [Known; 33] = [
    known(Type::Bool, "boolean", 16, 1000, Some(1)),
    known(Type::Int2, "smallint", 21, 1005, Some(2)),
    known(Type::Int4, "integer", 23, 1007, Some(4)),
    known(Type::Int8, "bigint", 20, 1016, Some(8)),
    known(Type::Float4, "real", 700, 1021, Some(4)),
    known(Type::Float8, "double precision", 701, 1022, Some(8)),
    known(Type::Numeric, "numeric", 1700, 1231, None),
    known(Type::Text, "text", 25, 1009, None),
    known(Type::Varchar, "character varying", 1043, 1015, None),
    known(Type::Char, "character", 1042, 1014, None),
    known(Type::Bytea, "bytea", 17, 1001, None),
    known(Type::Uuid, "uuid", 2950, 2951, Some(16)),
    known(Type::Date, "date", 1082, 1182, Some(4)),
    known(Type::Timestamp, "timestamp without time zone", 1114, 1115, Some(8)),
    known(Type::Timestamptz, "timestamp with time zone", 1184, 1185, Some(8)),
    known(Type::Interval, "interval", 1186, 1187, Some(16)),
    known(Type::Jsonb, "jsonb", 3802, 3807, None),
    known(Type::Oid, "oid", 26, 1028, Some(4)),
    known(Type::Name, "name", 19, 1003, None),
    known(Type::Letter, "\"char\"", 18, 1002, None),
    known(Type::Regclass, "regclass", 2205, 2210, Some(4)),
    known(Type::Regtype, "regtype", 2206, 2211, Some(4)),
    known(Type::Regproc, "regproc", 24, 1008, Some(4)),
    known(Type::Regnamespace, "regnamespace", 4089, 4090, Some(4)),
    known(Type::Regrole, "regrole", 4096, 4097, Some(4)),
    known(Type::Json, "json", 114, 199, None),
    known(Type::Time, "time without time zone", 1083, 1183, Some(8)),
    known(Type::Record, "record", 2249, 2287, None),
    known(Type::Bit, "bit", 1560, 1561, None),
    known(Type::Varbit, "bit varying", 1562, 1563, None),
    known(Type::Jsonpath, "jsonpath", 4072, 4073, None),
    known(Type::Inet, "inet", 869, 1041, None),
    known(Type::Cidr, "cidr", 650, 651, None),
];

/// Set in the stored code of an array.
const ARRAY_BIT: u8 = 0x80;
/// The stored code of an enum, whose definition is beside it.
const ENUM_CODE: u8 = 0x7f;

impl Type {
    /// All types of columns that are no arrays and that no statement makes.
    pub fn scalars() -> impl Iterator<Item = Type> {
        KNOWN.iter().map(|known| known.ty).filter(|ty| *ty != Type::Record)
    }

    /// The place in the table; of an array, that of its items. Enums have none.
    fn place(self) -> Option<u8> {
        Some(match self {
            Type::Bool => 0,
            Type::Int2 => 1,
            Type::Int4 => 2,
            Type::Int8 => 3,
            Type::Float4 => 4,
            Type::Float8 => 5,
            Type::Numeric => 6,
            Type::Text => 7,
            Type::Varchar => 8,
            Type::Char => 9,
            Type::Bytea => 10,
            Type::Uuid => 11,
            Type::Date => 12,
            Type::Timestamp => 13,
            Type::Timestamptz => 14,
            Type::Interval => 15,
            Type::Jsonb => 16,
            Type::Oid => 17,
            Type::Name => 18,
            Type::Letter => 19,
            Type::Regclass => 20,
            Type::Regtype => 21,
            Type::Regproc => 22,
            Type::Regnamespace => 23,
            Type::Regrole => 24,
            Type::Json => 25,
            Type::Time => 26,
            Type::Record => 27,
            Type::Bit => 28,
            Type::Varbit => 29,
            Type::Jsonpath => 30,
            Type::Inet => 31,
            Type::Cidr => 32,
            Type::Enum(_) | Type::Array(Element(Item::Enum(_))) => return None,
            Type::Array(Element(Item::Known(place))) => place,
        })
    }

    fn known(self) -> Option<&'static Known> {
        self.place().map(|place| &KNOWN[usize::from(place)])
    }

    /// The enum type that it is, or that its items are of.
    pub fn enum_type(self) -> Option<EnumType> {
        match self {
            Type::Enum(ty) | Type::Array(Element(Item::Enum(ty))) => Some(ty),
            _ => None,
        }
    }

    /// The array type with items of this type; `None` of an array, as arrays of arrays are one
    /// array with more dimensions.
    pub fn array(self) -> Option<Type> {
        match self {
            Type::Array(_) => None,
            Type::Enum(ty) => Some(Type::Array(Element(Item::Enum(ty)))),
            scalar => scalar.place().map(|place| Type::Array(Element(Item::Known(place)))),
        }
    }

    /// The type of an array's items.
    pub fn element(self) -> Option<Type> {
        match self {
            Type::Array(Element(Item::Enum(ty))) => Some(Type::Enum(ty)),
            Type::Array(_) => self.known().map(|known| known.ty),
            _ => None,
        }
    }

    /// The code of the type in stored bytes. That of an enum says only that it is one, or an array
    /// of one: its [`Type::enum_type`] is stored beside it.
    pub fn code(self) -> u8 {
        let own = self.place().unwrap_or(ENUM_CODE);
        if matches!(self, Type::Array(_)) { own | ARRAY_BIT } else { own }
    }

    /// The type with this code, unless it is one of an enum.
    pub fn from_code(code: u8) -> Option<Type> {
        let known = KNOWN.get(usize::from(code & !ARRAY_BIT))?;
        if code & ARRAY_BIT == 0 { Some(known.ty) } else { known.ty.array() }
    }

    /// Whether this code is that of an enum, or of an array of one.
    pub fn is_code_of_enum(code: u8) -> bool {
        code & !ARRAY_BIT == ENUM_CODE
    }

    /// The type with this code, of this enum.
    pub fn from_code_of_enum(code: u8, ty: EnumType) -> Option<Type> {
        match code {
            ENUM_CODE => Some(Type::Enum(ty)),
            _ if Type::is_code_of_enum(code) => Type::Enum(ty).array(),
            _ => None,
        }
    }

    /// PostgreSQL's name, as `format_type` prints it.
    pub fn name(self) -> String {
        let own = match (self.known(), self.enum_type()) {
            (Some(known), _) => known.name,
            (None, enumeration) => enumeration.map_or("", EnumType::shown),
        };
        match self {
            Type::Array(_) => format!("{own}[]"),
            _ => own.to_owned(),
        }
    }

    /// PostgreSQL's object id.
    pub fn oid(self) -> Oid {
        let (own, array) = match (self.known(), self.enum_type()) {
            (Some(known), _) => (known.oid, known.array_oid),
            (None, Some(ty)) => (ty.oid(), ty.array_oid()),
            (None, None) => unreachable!("a type is in the table or an enum"),
        };
        if matches!(self, Type::Array(_)) { array } else { own }
    }

    /// The type with this object id, of those that no statement makes.
    pub fn from_oid(oid: Oid) -> Option<Type> {
        let known = KNOWN.iter().find(|known| known.oid == oid || known.array_oid == oid)?;
        if known.oid == oid { Some(known.ty) } else { known.ty.array() }
    }

    /// The number of bytes of all its values in rows, if they all have the same.
    pub fn fixed_bytes(self) -> Option<usize> {
        match self {
            Type::Array(_) => None,
            Type::Enum(_) => Some(4),
            _ => self.known().and_then(|known| known.fixed_bytes),
        }
    }

    /// The number of bytes that PostgreSQL's `RowDescription` gives: -1 for varying ones.
    pub fn wire_bytes(self) -> i16 {
        self.fixed_bytes().map_or(-1, |bytes| bytes as i16)
    }

    /// Whether values may be in keys of tables and indexes.
    pub fn may_be_key(self) -> bool {
        !matches!(self, Type::Array(_) | Type::Jsonb | Type::Json | Type::Jsonpath | Type::Record)
    }

    /// Whether it is one of the types of text.
    pub fn is_text(self) -> bool {
        matches!(self, Type::Text | Type::Varchar | Type::Char | Type::Name | Type::Letter)
    }

    /// Whether its values are addresses of the internet.
    pub fn is_network(self) -> bool {
        matches!(self, Type::Inet | Type::Cidr)
    }

    /// Whether its values are strings of bits.
    pub fn is_bits(self) -> bool {
        matches!(self, Type::Bit | Type::Varbit)
    }

    /// Whether its values are numbers of objects of the catalog.
    pub fn is_object_id(self) -> bool {
        self == Type::Oid || self.is_named_object()
    }

    /// Whether its values are numbers of objects that are shown by their names.
    pub fn is_named_object(self) -> bool {
        matches!(
            self,
            Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace | Type::Regrole
        )
    }

    /// Whether only the catalog has columns of it.
    pub fn is_of_catalog(self) -> bool {
        let own = self.element().unwrap_or(self);
        own.is_object_id() || matches!(own, Type::Name | Type::Letter)
    }

    /// Whether it is a type of numbers.
    pub fn is_number(self) -> bool {
        self.is_integer() || matches!(self, Type::Float4 | Type::Float8 | Type::Numeric)
    }

    /// Whether it is a type of integers.
    pub fn is_integer(self) -> bool {
        matches!(self, Type::Int2 | Type::Int4 | Type::Int8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_object_ids_name_one_type() {
        for ty in Type::scalars().chain([Type::Record]) {
            let array = ty.array().unwrap();
            assert_eq!(ty.known().map(|known| known.ty), Some(ty));
            for ty in [ty, array] {
                assert_eq!(Type::from_code(ty.code()), Some(ty));
                assert_eq!(Type::from_oid(ty.oid()), Some(ty));
            }
            assert_eq!(array.element(), Some(ty));
            assert_eq!(array.array(), None);
        }
        assert_eq!(Type::from_code(33), None);
        assert_eq!(Type::from_code(ENUM_CODE), None);
        assert_eq!(Type::from_oid(Oid::new(2)), None);
    }
}
