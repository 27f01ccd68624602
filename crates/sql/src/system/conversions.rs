//! The functions that convert types, with PostgreSQL's object ids: drivers compare `typinput` with
//! that of arrays. Statements cannot call them.

use super::type_names::short_name;
use values::Type;

/// What the columns of `pg_type` say of a type.
pub(super) struct Conversions {
    /// From text, to text, from bytes, to bytes.
    pub(super) both_ways: [i32; 4],
    /// Of its modifier from text and to text; 0 where there is none.
    pub(super) modifier: [i32; 2],
    pub(super) subscript: i32,
    pub(super) analyze: i32,
}

/// Those of arrays.
const OF_ARRAYS: (&str, [i32; 4]) = ("array_", [750, 751, 2_400, 2_401]);

/// Those of enums.
const OF_ENUMS: (&str, [i32; 4]) = ("enum_", [3_506, 3_507, 3_532, 3_533]);

/// Types with what the names of their functions begin with.
const OF_TYPES: [(Type, &str, [i32; 4]); 33] = [
    (Type::Bool, "bool", [1_242, 1_243, 2_436, 2_437]),
    (Type::Bytea, "bytea", [1_244, 31, 2_412, 2_413]),
    (Type::Letter, "char", [1_245, 33, 2_434, 2_435]),
    (Type::Name, "name", [34, 35, 2_422, 2_423]),
    (Type::Int8, "int8", [460, 461, 2_408, 2_409]),
    (Type::Int2, "int2", [38, 39, 2_404, 2_405]),
    (Type::Int4, "int4", [42, 43, 2_406, 2_407]),
    (Type::Regproc, "regproc", [44, 45, 2_444, 2_445]),
    (Type::Text, "text", [46, 47, 2_414, 2_415]),
    (Type::Oid, "oid", [1_798, 1_799, 2_418, 2_419]),
    (Type::Json, "json_", [321, 322, 323, 324]),
    (Type::Float4, "float4", [200, 201, 2_424, 2_425]),
    (Type::Float8, "float8", [214, 215, 2_426, 2_427]),
    (Type::Char, "bpchar", [1_044, 1_045, 2_430, 2_431]),
    (Type::Varchar, "varchar", [1_046, 1_047, 2_432, 2_433]),
    (Type::Date, "date_", [1_084, 1_085, 2_468, 2_469]),
    (Type::Time, "time_", [1_143, 1_144, 2_470, 2_471]),
    (Type::Timestamp, "timestamp_", [1_312, 1_313, 2_474, 2_475]),
    (Type::Timestamptz, "timestamptz_", [1_150, 1_151, 2_476, 2_477]),
    (Type::Interval, "interval_", [1_160, 1_161, 2_478, 2_479]),
    (Type::Numeric, "numeric_", [1_701, 1_702, 2_460, 2_461]),
    (Type::Regclass, "regclass", [2_218, 2_219, 2_452, 2_453]),
    (Type::Regtype, "regtype", [2_220, 2_221, 2_454, 2_455]),
    (Type::Uuid, "uuid_", [2_952, 2_953, 2_961, 2_962]),
    (Type::Jsonb, "jsonb_", [3_806, 3_804, 3_805, 3_803]),
    (Type::Regnamespace, "regnamespace", [4_084, 4_085, 4_087, 4_088]),
    (Type::Regrole, "regrole", [4_098, 4_092, 4_094, 4_095]),
    (Type::Bit, "bit_", [1_564, 1_565, 2_456, 2_457]),
    (Type::Varbit, "varbit_", [1_579, 1_580, 2_458, 2_459]),
    (Type::Jsonpath, "jsonpath_", [4_001, 4_003, 4_002, 4_004]),
    (Type::Inet, "inet_", [910, 911, 2_496, 2_497]),
    (Type::Cidr, "cidr_", [1_267, 1_427, 2_498, 2_499]),
    (Type::Record, "record_", [2_290, 2_291, 2_402, 2_403]),
];

const OF_MODIFIERS: [(Type, [i32; 2]); 9] = [
    (Type::Char, [2_913, 2_914]),
    (Type::Varchar, [2_915, 2_916]),
    (Type::Time, [2_909, 2_910]),
    (Type::Timestamp, [2_905, 2_906]),
    (Type::Timestamptz, [2_907, 2_908]),
    (Type::Interval, [2_903, 2_904]),
    (Type::Numeric, [2_917, 2_918]),
    (Type::Bit, [2_919, 2_920]),
    (Type::Varbit, [2_902, 2_921]),
];

const OTHERS: [(i32, &str); 4] = [
    (6_179, "array_subscript_handler"),
    (6_180, "raw_array_subscript_handler"),
    (6_098, "jsonb_subscript_handler"),
    (3_816, "array_typanalyze"),
];

pub(super) fn of(ty: Type) -> Conversions {
    let element = ty.element().unwrap_or(ty);
    let known = OF_TYPES.iter().find(|(own, ..)| *own == ty).map(|(_, _, ids)| *ids);
    let of_others = if ty.element().is_some() { OF_ARRAYS.1 } else { OF_ENUMS.1 };
    let both_ways = known.unwrap_or(of_others);
    let modifier = OF_MODIFIERS.iter().find(|(own, _)| *own == element);
    let (subscript, analyze) = match ty {
        Type::Array(_) => (6_179, 3_816),
        Type::Name => (6_180, 0),
        Type::Jsonb => (6_098, 0),
        _ => (0, 0),
    };
    Conversions { both_ways, modifier: modifier.map_or([0, 0], |own| own.1), subscript, analyze }
}

/// All of them, with their object ids.
fn all() -> impl Iterator<Item = (i32, String)> {
    let of_types = OF_TYPES.iter().map(|(_, stem, ids)| (*stem, *ids));
    let both_ways = of_types.chain([OF_ARRAYS, OF_ENUMS]).flat_map(|(stem, ids)| {
        let ends = ["in", "out", "recv", "send"];
        ids.into_iter().zip(ends).map(move |(id, end)| (id, format!("{stem}{end}")))
    });
    let of_modifiers = OF_MODIFIERS.iter().flat_map(|(ty, ids)| {
        let name = short_name(*ty);
        let ends = ["in", "out"];
        ids.iter().zip(ends).map(move |(id, end)| (*id, format!("{name}typmod{end}")))
    });
    let others = OTHERS.iter().map(|(id, name)| (*id, (*name).to_owned()));
    both_ways.chain(of_modifiers).chain(others)
}

/// The object id of one.
pub(super) fn number(name: &str) -> Option<i32> {
    all().find(|(_, own)| own == name).map(|(id, _)| id)
}

/// The name of one.
pub(super) fn name(id: i32) -> Option<String> {
    all().find(|(own, _)| *own == id).map(|(_, name)| name)
}
