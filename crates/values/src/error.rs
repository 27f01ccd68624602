//! Errors as PostgreSQL reports them: a code of five characters (SQLSTATE), a message, and what
//! helps to find the cause. All crates of the server use this one type, so nothing is lost on the
//! way to a client.

use std::fmt;
use std::num::NonZeroU32;

/// The result of what may fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class and kind of an error: five digits or upper-case letters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState([u8; 5]);

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: SqlState = SqlState(*$code);)*
        }
    };
}

states! {
    /// No error: the code of a notice.
    SUCCESSFUL_COMPLETION = b"00000";
    /// A message that the protocol does not have, or not there.
    PROTOCOL_VIOLATION = b"08P01";
    /// What the server does not support.
    FEATURE_NOT_SUPPORTED = b"0A000";
    /// Text is longer than its type allows.
    STRING_TOO_LONG = b"22001";
    /// A subscript of a JSON path that there is not.
    JSON_SUBSCRIPT = b"22033";
    /// No number where a JSON path takes one.
    JSON_NOT_NUMERIC = b"22036";
    /// None or several items where a JSON path takes one.
    JSON_NOT_SINGLE = b"22038";
    /// No array where a JSON path takes one.
    JSON_NO_ARRAY = b"22039";
    /// A member that a JSON path leads to is not there.
    JSON_NO_MEMBER = b"2203A";
    /// No number that a JSON path could give a sign.
    JSON_NO_NUMBER = b"2203B";
    /// No object where a JSON path takes one.
    JSON_NO_OBJECT = b"2203C";
    /// A string of bits has another length than its type, or than the one beside it.
    LENGTH_MISMATCH = b"22026";
    /// A number does not fit its type.
    NUMERIC_OUT_OF_RANGE = b"22003";
    /// NULL where no NULL may be.
    NULL_NOT_ALLOWED = b"22004";
    /// What is no date or time.
    INVALID_DATETIME = b"22007";
    /// A date or time beyond what its type holds.
    DATETIME_OUT_OF_RANGE = b"22008";
    /// A zone that does not exist.
    INVALID_ZONE = b"22009";
    /// A substring of negative length.
    SUBSTRING_ERROR = b"22011";
    /// Division by zero.
    DIVISION_BY_ZERO = b"22012";
    /// An offset of a frame that is negative.
    INVALID_FRAME_OFFSET = b"22013";
    /// A number of parts that is not positive.
    INVALID_NTILE = b"22014";
    /// A place in a frame that is not positive.
    INVALID_NTH_VALUE = b"22016";
    /// An interval that its type does not hold.
    INTERVAL_OVERFLOW = b"22015";
    /// A logarithm of what is not positive.
    INVALID_LOGARITHM = b"2201E";
    /// Buckets that there cannot be.
    INVALID_BUCKETS = b"2201G";
    /// A root or power that is not real.
    INVALID_POWER = b"2201F";
    /// A LIMIT that is negative.
    INVALID_LIMIT = b"2201W";
    /// An OFFSET that is negative.
    INVALID_OFFSET = b"2201X";
    /// Bytes that are no UTF-8.
    INVALID_ENCODING = b"22021";
    /// An argument that a function does not take.
    INVALID_PARAMETER = b"22023";
    /// An escape in a pattern that ends too early.
    INVALID_ESCAPE = b"22025";
    /// Data that an operation does not take.
    DATA_EXCEPTION = b"22000";
    /// Subscripts of arrays that do not match.
    ARRAY_SUBSCRIPT = b"2202E";
    /// Text that is no JSON.
    INVALID_JSON = b"22P02";
    /// Text that is no value of the type.
    INVALID_TEXT = b"22P02";
    /// Bytes that are no value of the type.
    INVALID_BINARY = b"22P03";
    /// A character that an encoding does not have.
    UNTRANSLATABLE = b"22P05";
    /// A line of COPY that does not have the form or the columns that it must have.
    BAD_COPY_FILE = b"22P04";
    /// A value that breaks NOT NULL.
    NOT_NULL_VIOLATION = b"23502";
    /// A row whose parent does not exist, or a parent that has rows.
    FOREIGN_KEY_VIOLATION = b"23503";
    /// A key that exists.
    UNIQUE_VIOLATION = b"23505";
    /// A row that a CHECK refuses.
    CHECK_VIOLATION = b"23514";
    /// A sequence that has come to its end.
    SEQUENCE_LIMIT = b"2200H";
    /// ON CONFLICT that would touch one row twice.
    CARDINALITY_VIOLATION = b"21000";
    /// A value for a column that is always generated.
    GENERATED_ALWAYS = b"428C9";
    /// BEGIN in a block, or a mode of a block that has begun already.
    ACTIVE_TRANSACTION = b"25001";
    /// A write in a block that only reads.
    READ_ONLY_TRANSACTION = b"25006";
    /// A statement in a block that has failed.
    FAILED_TRANSACTION = b"25P02";
    /// A client that did nothing in a block for too long.
    IDLE_IN_TRANSACTION = b"25P03";
    /// A savepoint that does not exist.
    UNDEFINED_SAVEPOINT = b"3B001";
    /// COMMIT or ROLLBACK without a block.
    NO_ACTIVE_TRANSACTION = b"25P01";
    /// A prepared statement that does not exist.
    UNDEFINED_STATEMENT = b"26000";
    /// A user that does not exist.
    INVALID_AUTHORIZATION = b"28000";
    /// A wrong password.
    INVALID_PASSWORD = b"28P01";
    /// A portal that does not exist.
    UNDEFINED_CURSOR = b"34000";
    /// A database that does not exist.
    UNDEFINED_DATABASE = b"3D000";
    /// A database that exists already.
    DUPLICATE_DATABASE = b"42P04";
    /// A portal that exists already.
    DUPLICATE_CURSOR = b"42P03";
    /// A prepared statement that exists already.
    DUPLICATE_STATEMENT = b"42P05";
    /// A regular expression that is none.
    INVALID_REGULAR_EXPRESSION = b"2201B";
    /// Text that is no name.
    INVALID_NAME = b"42602";
    /// A schema that does not exist.
    UNDEFINED_SCHEMA = b"3F000";
    /// What only the system may do.
    INSUFFICIENT_PRIVILEGE = b"42501";
    /// A name that the system keeps for itself.
    RESERVED_NAME = b"42939";
    /// Text that is no statement.
    SYNTAX_ERROR = b"42601";
    /// A name that is too long.
    NAME_TOO_LONG = b"42622";
    /// A name of several columns.
    AMBIGUOUS_COLUMN = b"42702";
    /// A name of several tables of a query.
    AMBIGUOUS_ALIAS = b"42P09";
    /// A column that does not exist.
    UNDEFINED_COLUMN = b"42703";
    /// An object, such as a type or constraint, that does not exist.
    UNDEFINED_OBJECT = b"42704";
    /// An object, such as a constraint, that exists already.
    DUPLICATE_OBJECT = b"42710";
    /// A function name with arguments that fit several.
    AMBIGUOUS_FUNCTION = b"42725";
    /// A column that exists already.
    DUPLICATE_COLUMN = b"42701";
    /// A table of a query that is called like another.
    DUPLICATE_ALIAS = b"42712";
    /// A column that is neither grouped nor aggregated.
    GROUPING_ERROR = b"42803";
    /// Types that do not fit.
    DATATYPE_MISMATCH = b"42804";
    /// An object of another kind.
    WRONG_OBJECT = b"42809";
    /// An object that something still uses.
    OBJECT_IN_USE = b"55006";
    /// A cast that does not exist.
    CANNOT_COERCE = b"42846";
    /// A function or operator that does not exist.
    UNDEFINED_FUNCTION = b"42883";
    /// A table that does not exist.
    UNDEFINED_TABLE = b"42P01";
    /// A parameter that does not exist.
    UNDEFINED_PARAMETER = b"42P02";
    /// A schema that exists already.
    DUPLICATE_SCHEMA = b"42P06";
    /// A table that exists already.
    DUPLICATE_TABLE = b"42P07";
    /// A column that ORDER BY, INSERT or ON CONFLICT may not name.
    INVALID_COLUMN_REFERENCE = b"42P10";
    /// A table definition that contradicts itself.
    INVALID_TABLE_DEFINITION = b"42P16";
    /// An object that needs itself.
    INVALID_OBJECT_DEFINITION = b"42P17";
    /// A recursive query that is no such one.
    INVALID_RECURSION = b"42P19";
    /// A window function where there is none, or a malformed window.
    WINDOWING_ERROR = b"42P20";
    /// A foreign key that refers to no unique columns, or to other numbers of them.
    INVALID_FOREIGN_KEY = b"42830";
    /// A parameter whose type nothing tells.
    INDETERMINATE_TYPE = b"42P18";
    /// Other objects need the object.
    DEPENDENT_OBJECTS = b"2BP01";
    /// The memory that a query may take.
    OUT_OF_MEMORY = b"53200";
    /// Too many clients.
    TOO_MANY_CONNECTIONS = b"53300";
    /// A limit of the program.
    LIMIT_EXCEEDED = b"54000";
    /// A statement that is too deep, too long, or does too much.
    STATEMENT_TOO_COMPLEX = b"54001";
    /// Too many columns.
    TOO_MANY_COLUMNS = b"54011";
    /// Too many arguments.
    TOO_MANY_ARGUMENTS = b"54023";
    /// A state in which the command cannot be.
    WRONG_STATE = b"55000";
    /// A lock that others have, for a statement that does not wait for it or not for longer.
    LOCK_NOT_AVAILABLE = b"55P03";
    /// A conflict with other statements: run it again.
    SERIALIZATION_FAILURE = b"40001";
    /// Sessions that wait for each other.
    DEADLOCK = b"40P01";
    /// A configured limit.
    CONFIGURATION_LIMIT = b"53400";
    /// No error, but maybe a mistake.
    WARNING = b"01000";
    /// The disk has no room.
    DISK_FULL = b"53100";
    /// The operating system failed to read or write.
    IO_ERROR = b"58030";
    /// What a query reads is not kept any more.
    SNAPSHOT_TOO_OLD = b"72000";
    /// A client that asked for the end of its statement.
    QUERY_CANCELED = b"57014";
    /// The store or the server is closing, or has stopped.
    ADMIN_SHUTDOWN = b"57P01";
    /// A bug of this program.
    INTERNAL = b"XX000";
    /// Bytes of the store that are no row or key.
    DATA_CORRUPTED = b"XX001";
}

impl SqlState {
    /// The five characters.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }

    /// The state with these five characters, if they are digits or upper-case letters.
    pub fn from_code(code: &str) -> Option<SqlState> {
        let bytes: [u8; 5] = code.as_bytes().try_into().ok()?;
        let valid = bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        valid.then_some(SqlState(bytes))
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A place in the text of a statement: characters, the first of which is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(NonZeroU32);

impl Position {
    /// The place with this number; 0 is none.
    pub fn new(number: u32) -> Option<Position> {
        NonZeroU32::new(number).map(Position)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

/// An error with its SQLSTATE, as a client gets it.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Report>);

/// What an [`Error`] says.
#[derive(Clone, PartialEq, Eq)]
struct Report {
    state: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    table: Option<String>,
    column: Option<String>,
    constraint: Option<String>,
    context: Option<String>,
    position: Option<Position>,
}

impl Error {
    /// An error with a code and a message: lower-case fragment, values included, no full stop.
    pub fn new(state: SqlState, message: impl Into<String>) -> Error {
        Error(Box::new(Report {
            state,
            message: message.into(),
            detail: None,
            hint: None,
            table: None,
            column: None,
            constraint: None,
            context: None,
            position: None,
        }))
    }

    /// What the server does not support, and what to do instead.
    pub fn unsupported(what: impl Into<String>, instead: &str) -> Error {
        let error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, what);
        if instead.is_empty() { error } else { error.with_hint(instead) }
    }

    /// Bytes of the store that are no row or key.
    pub fn corrupted(what: impl Into<String>) -> Error {
        Error::new(SqlState::DATA_CORRUPTED, what)
    }

    /// Adds what tells the reader more.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds what the reader can do.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the table whose rows it is about.
    pub fn with_table(mut self, name: impl Into<String>) -> Error {
        self.0.table = Some(name.into());
        self
    }

    /// Adds the column of the table that it is about.
    pub fn with_column(mut self, name: impl Into<String>) -> Error {
        self.0.column = Some(name.into());
        self
    }

    /// Adds the constraint that was broken.
    pub fn with_constraint(mut self, name: impl Into<String>) -> Error {
        self.0.constraint = Some(name.into());
        self
    }

    /// Adds where it happened, unless that is known already: a line of COPY.
    pub fn with_context(mut self, context: impl Into<String>) -> Error {
        self.0.context.get_or_insert_with(|| context.into());
        self
    }

    /// Adds where in the statement the cause is, unless it is known already.
    pub fn at(mut self, position: Option<Position>) -> Error {
        self.0.position = self.0.position.or(position);
        self
    }

    /// The error without a place in the text.
    #[must_use]
    pub fn without_position(mut self) -> Error {
        self.0.position = None;
        self
    }

    /// The code.
    pub fn state(&self) -> SqlState {
        self.0.state
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What tells the reader more.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// What the reader can do.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The table whose rows it is about.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// The column of the table that it is about.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// The constraint that was broken.
    pub fn constraint(&self) -> Option<&str> {
        self.0.constraint.as_deref()
    }

    /// Where it happened.
    pub fn context(&self) -> Option<&str> {
        self.0.context.as_deref()
    }

    /// Where in the statement the cause is.
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.state, self.0.message)?;
        if let Some(detail) = &self.0.detail {
            write!(f, " ({detail})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_position_stays() {
        let error = Error::new(SqlState::SYNTAX_ERROR, "no");
        let error = error.at(Position::new(0)).at(Position::new(7)).at(Position::new(9));
        assert_eq!(error.position().map(Position::number), Some(7));
        assert_eq!(error.to_string(), "42601: no");
    }

    #[test]
    fn states_are_five_digits_or_letters() {
        assert_eq!(SqlState::from_code("23505"), Some(SqlState::UNIQUE_VIOLATION));
        assert_eq!(SqlState::from_code("2350"), None);
        assert_eq!(SqlState::from_code("2350a"), None);
    }
}
