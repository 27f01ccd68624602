//! Identity of the format, and its limits.

/// First eight bytes of a superblock.
pub const SUPERBLOCK_MAGIC: [u8; 8] = *b"NVCARACL";
/// Format version; a store of another major version is refused (O-53).
pub const FORMAT_VERSION: u32 = 9;
/// Feature bits that a reader must know to open the store at all.
pub const FEATURES_KNOWN: u64 =
    FEATURE_KEPT_INDEXES | FEATURE_SINGLE_HEAPS | FEATURE_REMEMBERED_PROGRAMS | FEATURE_CONSUMERS;

/// Indexes are kept in segments of their own, which an older program takes for damage.
pub const FEATURE_KEPT_INDEXES: u64 = 1;
/// Rows of some table have one inline value, where an older program looks for two.
pub const FEATURE_SINGLE_HEAPS: u64 = 2;
/// The record of the program says what programs before it had, which an older program cannot read.
pub const FEATURE_REMEMBERED_PROGRAMS: u64 = 4;
/// The store has had consumers of changes, whose log an older program would not go on with.
pub const FEATURE_CONSUMERS: u64 = 8;

/// Most tables of one store.
pub const TABLES_MAX: usize = 128;
/// Most sub-pools: independent allocators, shared out among however many workers there are (O-44).
pub const SUB_POOLS: usize = 64;
/// Smallest value class in bytes; classes are powers of two.
pub const CLASS_BYTES_MIN: u64 = 128;
/// Largest value class in bytes.
pub const CLASS_BYTES_MAX: u64 = 256 * 1024;
/// Number of value classes.
pub const CLASSES: usize =
    (CLASS_BYTES_MAX.trailing_zeros() - CLASS_BYTES_MIN.trailing_zeros()) as usize + 1;
/// Pools: one of rows for each table, one of values for each class.
pub const POOLS: usize = TABLES_MAX + CLASSES;
/// Longest table name in bytes.
pub const NAME_BYTES: usize = 48;
/// Longest key in bytes.
pub const KEY_BYTES_MAX: u32 = 256;
/// Longest value in bytes. The length of a value has 18 bits in its pointer.
pub const VALUE_BYTES_MAX: u32 = (CLASS_BYTES_MAX - 16) as u32;
/// Bytes of a row's header line, which holds everything that recovery must see change atomically.
pub const ROW_HEADER_BYTES: u64 = 64;
/// Key bytes inside the header line; the rest of a longer key follows it.
pub const KEY_BYTES_IN_HEADER: u64 = 24;
