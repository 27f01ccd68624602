//! Calls of functions of JSON paths.

use super::binder::Binder;
use super::coerce::Bound;
use crate::ir::{Function, PathQuery};
use values::{Datum, Json, Result, Type};

impl Binder<'_> {
    /// What is asked of what a path finds in JSON: its variables and whether it is silent may be
    /// left out.
    pub(super) fn json_query(
        &mut self,
        query: PathQuery,
        arguments: Vec<Bound>,
        is_silent: bool,
    ) -> Result<Bound> {
        let result = match query {
            PathQuery::Exists | PathQuery::Match => Type::Bool,
            PathQuery::All | PathQuery::First => Type::Jsonb,
        };
        let all = with_defaults(arguments, is_silent);
        let types = [Type::Jsonb, Type::Jsonpath, Type::Jsonb, Type::Bool];
        self.typed(Function::JsonQuery(query), all, &types, result)
    }
}

/// The arguments with those that were left out.
pub(super) fn with_defaults(mut arguments: Vec<Bound>, is_silent: bool) -> Vec<Bound> {
    if arguments.len() < 3 {
        let empty = Datum::Jsonb(Box::new(Json::Object(Vec::new())));
        arguments.push(Bound::constant(empty, Type::Jsonb));
    }
    if arguments.len() < 4 {
        arguments.push(Bound::constant(Datum::Bool(is_silent), Type::Bool));
    }
    arguments
}
