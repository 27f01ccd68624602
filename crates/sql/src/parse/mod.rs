//! From text to syntax trees, by `sqlparser` behind limits of our own: text that would exhaust the
//! stack or take long is refused before it is parsed.

mod alter_type;
mod alter_view;
mod channel;
mod comment;
mod configs;
mod conflict;
mod control;
mod forgiving;
mod limits;
mod locks;
mod modes;
mod own;
mod position;
mod prepared;
mod rewritten;
mod sequence;
mod session;
mod set_value;
mod signs;
mod size;
mod statement;
mod strings;
mod table_as;
mod view;

pub(crate) use alter_type::{TypeMove, TypePlace};
pub(crate) use alter_view::{ViewChange, ViewPlace};
pub(crate) use comment::{CommentOn, CommentTarget};
pub use configs::{ConfigValue, SetConfig};
pub(crate) use conflict::place_of_expression;
pub use control::Control;
pub use limits::{DEPTH_MAX, LEVELS_MAX, SET_OPERATIONS_MAX, TEXT_BYTES_MAX};
pub(crate) use locks::strength_of;
pub use locks::{LockMode, LockTable};
pub use modes::BlockModes;
pub use own::{Declared, Fetch, FetchTo, Own, SetConstraints};
pub(crate) use position::Lines;
pub(crate) use rewritten::SEQUENCE_QUOTE;
pub(crate) use sequence::{AlterSequence, Counting, IdentityChange, SequenceChange};
pub use session::{SessionColumn, SessionFunction};
pub use size::PARSER_BYTES_MAX;
pub(crate) use statement::parsed_expression;
pub use statement::{STACK_BYTES, Statement, parse, parse_within, with_stack};
pub(crate) use table_as::TableAs;
pub(crate) use view::{Stars, query_text, with_words};
