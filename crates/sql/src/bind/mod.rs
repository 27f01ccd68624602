//! From trees to plans: names become column numbers, literals and parameters get types, implicit
//! casts are written out, and the rows of a table are looked for by its keys.

mod access;
mod aggregates;
mod array_values;
mod binder;
mod bits;
mod change;
mod coerce;
mod conditions;
mod copied;
mod copies;
mod copy;
mod described;
mod door;
mod effects;
mod ends;
mod enums;
mod expression;
mod frames;
mod from;
mod functions;
mod grouping_sets;
mod guard;
mod immutable;
mod index;
mod items;
mod joins;
mod json_paths;
mod key_order;
mod kinds;
mod known;
mod like;
mod lists;
mod locks;
mod math;
mod members;
mod merge;
mod name;
mod named;
mod networks;
mod operators;
mod order;
mod output;
mod parts;
mod patterns;
mod periods;
mod prefixes;
mod prepare;
mod query;
mod records;
mod recursion;
mod row_calls;
mod row_functions;
mod row_values;
mod scope;
mod semi;
mod sets;
mod shape;
mod statistics;
mod subquery;
mod symmetric;
mod system;
mod ties;
mod views;
mod window_list;
mod windows;
mod with;
mod without_brackets;
mod working;
mod written;

pub use access::Choice;
pub use copied::{CopiedTable, Copy, Direction};
pub use output::OutputColumn;
pub use prepare::{Options, Prepared, prepare};
pub(crate) use {
    binder::{Binder, name_of, new_name, own_name, unsupported, written_name},
    door::{check_call, check_select, is_only_body, refuse},
    expression::check_collation,
    guard::{keys_of, leading_index, unique_index},
    index::{KeyPart, index_column_name, is_index_element},
    kinds::{interval_of, kind_of, kind_of_interval, may_assign},
    parts::has_parts,
    scope::TypePlace,
    views::{NewView, bound_again, damaged, name_of_relation, shown_text},
    written::writable_columns,
};
