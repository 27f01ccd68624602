//! The system catalog and the session in queries: relations, types of objects, and functions.

use super::binder::Binder;
use super::coerce::{Bound, Form, of_type};
use super::described::{Described, described};
use super::effects::effect_named;
use super::expression::{call as pure_call, no_operator};
use super::kinds::{Willing, chosen};
use crate::catalog::Catalog;
use crate::ir::{ArrayFunction, Function, Kind, Op, SchemaId, SystemFunction, Value};
use crate::system::{self, Known};
use sqlparser::ast::ObjectName;
use values::{Datum, Error, Result, Type};

/// The relation of the system catalog that a name means.
pub(super) fn relation_named(catalog: &Catalog, name: &ObjectName) -> Option<&'static Known> {
    system::relation_named(catalog, &super::binder::written_name(name).ok()?)
}

/// The text that was cast to a type of objects, if it is a literal.
pub(super) fn literal_of_object(bound: &Bound) -> Option<&str> {
    match (&bound.form, &bound.code[..]) {
        (Form::Literal(text), _) => Some(text),
        (
            _,
            [_, Op::Constant(Value(Datum::Text(text))), Op::System(SystemFunction::ToObject, 2)],
        ) => Some(text),
        _ => None,
    }
}

/// Constants: what is always the same here.
fn constant(catalog: &Catalog, name: &str, count: usize) -> Option<(Datum, Type)> {
    let text = |value: &str| Some((Datum::text(value), Type::Name));
    let nothing = Some((Datum::Null, Type::Text));
    match (name, count) {
        ("version", 0) => Some((Datum::text(system::version()), Type::Text)),
        ("current_database" | "current_catalog", 0) => text(catalog.database()),
        ("current_user" | "session_user" | "user" | "current_role", 0) => text(system::NAME),
        ("getdatabaseencoding" | "pg_client_encoding", 0) => text("UTF8"),
        ("pg_is_in_recovery", 0) | ("pg_is_other_temp_schema", 1) => {
            Some((Datum::Bool(false), Type::Bool))
        }
        ("pg_my_temp_schema", 0) => {
            let id = if catalog.has_temporary() { SchemaId::TEMPORARY.number() } else { 0 };
            Some((Datum::Int4(id as i32), Type::Oid))
        }
        (
            "has_table_privilege"
            | "has_schema_privilege"
            | "has_database_privilege"
            | "has_sequence_privilege"
            | "has_function_privilege"
            | "has_type_privilege"
            | "has_any_column_privilege"
            | "pg_has_role",
            2 | 3,
        )
        | ("has_column_privilege", 3 | 4) => Some((Datum::Bool(true), Type::Bool)),
        ("pg_relation_is_publishable" | "row_security_active", 1) => {
            Some((Datum::Bool(false), Type::Bool))
        }
        (
            "pg_get_triggerdef"
            | "pg_get_ruledef"
            | "pg_get_partkeydef"
            | "pg_get_functiondef"
            | "pg_get_function_arguments"
            | "pg_get_function_identity_arguments"
            | "pg_get_function_result"
            | "pg_get_statisticsobjdef"
            | "pg_get_statisticsobjdef_columns"
            | "pg_tablespace_location"
            | "acldefault",
            1 | 2,
        ) => nothing,
        (
            "pg_table_size"
            | "pg_relation_size"
            | "pg_total_relation_size"
            | "pg_indexes_size"
            | "pg_database_size"
            | "pg_tablespace_size",
            1 | 2,
        ) => Some((Datum::Null, Type::Int8)),
        _ => None,
    }
}

fn function_named(name: &str, count: usize) -> Option<Described<SystemFunction>> {
    use SystemFunction as F;
    use Type::{Bool, Int4, Int8, Name, Oid, Text};
    match (name, count) {
        ("pg_backend_pid", 0) => described(F::ProcessId, &[], Int4),
        ("current_setting", 1 | 2) => described(F::CurrentSetting, &[Text, Bool], Text),
        ("pg_get_expr", 3) => described(F::ExpressionText, &[Text, Oid, Bool], Text),
        ("format_type", 2) => described(F::FormatType, &[Oid, Int4], Text),
        ("pg_get_indexdef", 1 | 3) => described(F::IndexDefinition, &[Oid, Int4, Bool], Text),
        ("pg_get_constraintdef", 1 | 2) => described(F::ConstraintDefinition, &[Oid, Bool], Text),
        ("pg_get_viewdef", 1 | 2) => described(F::ViewDefinition, &[Oid, Bool], Text),
        ("obj_description", 1 | 2) => described(F::Description, &[Oid, Name], Text),
        ("col_description", 2) => described(F::ColumnDescription, &[Oid, Int4], Text),
        ("shobj_description", 2) => described(F::SharedDescription, &[Oid, Name], Text),
        ("pg_get_userbyid", 1) => described(F::UserName, &[Oid], Name),
        (
            "pg_table_is_visible"
            | "pg_type_is_visible"
            | "pg_function_is_visible"
            | "pg_operator_is_visible"
            | "pg_opclass_is_visible"
            | "pg_opfamily_is_visible"
            | "pg_collation_is_visible"
            | "pg_conversion_is_visible"
            | "pg_statistics_obj_is_visible"
            | "pg_ts_config_is_visible"
            | "pg_ts_dict_is_visible"
            | "pg_ts_parser_is_visible"
            | "pg_ts_template_is_visible",
            1,
        ) => described(F::IsVisible, &[Oid], Bool),
        ("pg_sequence_last_value", 1) => described(F::SequenceLast, &[Oid], Int8),
        ("pg_get_serial_sequence", 2) => described(F::SerialSequence, &[Text, Text], Text),
        ("pg_encoding_to_char", 1) => described(F::EncodingName, &[Int4], Name),
        ("pg_char_to_encoding", 1) => described(F::EncodingNumber, &[Name], Int4),
        ("information_schema._pg_char_max_length", 2) => {
            described(F::CharMaxLength, &[Oid, Int4], Int4)
        }
        ("information_schema._pg_numeric_precision", 2) => {
            described(F::NumericPrecision, &[Oid, Int4], Int4)
        }
        ("information_schema._pg_numeric_scale", 2) => {
            described(F::NumericScale, &[Oid, Int4], Int4)
        }
        ("information_schema._pg_datetime_precision", 2) => {
            described(F::DatetimePrecision, &[Oid, Int4], Int4)
        }
        ("pg_size_pretty", 1) => described(F::SizePretty, &[Int8], Text),
        _ => None,
    }
}

/// `to_regclass` and its kin.
fn found_type(name: &str) -> Option<Type> {
    Some(match name {
        "to_regclass" => Type::Regclass,
        "to_regtype" => Type::Regtype,
        "to_regproc" => Type::Regproc,
        "to_regnamespace" => Type::Regnamespace,
        "to_regrole" => Type::Regrole,
        _ => return None,
    })
}

impl Binder<'_> {
    /// A function of the system catalog or the session, or one of arrays; `None` if there is none
    /// of this name and number of arguments.
    pub(super) fn system_function(&mut self, name: &str, all: Vec<Bound>) -> Result<Option<Bound>> {
        if (name, all.len()) == ("current_schema", 0) {
            let first = self.catalog.searched(false).first().copied();
            return Ok(Some(Bound::constant(first.map_or(Datum::Null, Datum::text), Type::Name)));
        }
        if let Some((value, ty)) = constant(self.catalog, name, all.len()) {
            return Ok(Some(Bound::constant(value, ty)));
        }
        if (name, all.len()) == ("pg_notify", 2) {
            return self.notify(all).map(Some);
        }
        let found = self.described_function(name, all)?;
        let is_of_system = |bound: &Bound| bound.code.iter().any(|op| matches!(op, Op::System(..)));
        if let (Some(true), Some(place)) = (found.as_ref().map(is_of_system), self.no_queries) {
            return Err(Error::unsupported(format!("cannot use function {name} in {place}"), ""));
        }
        Ok(found)
    }

    /// The value of a function of the session, if the plan may have it in its place.
    fn of_session(&self, function: SystemFunction, all: &[Bound]) -> Result<Option<Datum>> {
        let Some(known) = self.session else { return Ok(None) };
        let value = |bound: &Bound| match &bound.code[..] {
            [Op::Constant(Value(value))] => Some(value.clone()),
            [Op::Parameter(at)] => known.parameters.get(usize::from(*at)).cloned(),
            _ => None,
        };
        match all.iter().map(value).collect::<Option<Vec<Datum>>>() {
            Some(arguments) => known.session.value(function, &arguments),
            None => Ok(None),
        }
    }

    fn described_function(&mut self, name: &str, mut all: Vec<Bound>) -> Result<Option<Bound>> {
        let found = function_named(name, all.len()).or_else(|| effect_named(name, all.len()));
        if let Some(found) = found {
            let Described { function, arguments, result } = found;
            let all = self.coerced(all, arguments)?;
            if let Some(value) = self.of_session(function, &all)? {
                return Ok(Some(Bound::constant(value, result)));
            }
            return Ok(Some(call(function, all, result)));
        }
        Ok(Some(match (name, all.len()) {
            ("oidvectortypes", 1) => {
                let all = self.coerced(all, &[array_of(Type::Oid)?])?;
                call(SystemFunction::FormatTypes, all, Type::Text)
            }
            // What it is given is text already.
            ("pg_get_expr", 2) => self.coerce(all.swap_remove(0), Type::Text, Willing::Implicit)?,
            ("current_schemas", 1) => {
                let implicit = matches!(all[0].code[..], [Op::Constant(Value(Datum::Bool(true)))]);
                let names = self.catalog.searched(implicit).into_iter().map(Datum::text).collect();
                let array = values::Array::new(Type::Name, names)?;
                Bound::constant(Datum::Array(Box::new(array)), array_of(Type::Name)?)
            }
            (name, 1) if found_type(name).is_some() => {
                let ty = found_type(name).unwrap_or(Type::Regclass);
                let text = self.coerce(all.swap_remove(0), Type::Text, Willing::Implicit)?;
                of_type(SystemFunction::FindObject, text, ty, ty)
            }
            _ => return self.array_function(name, all),
        }))
    }

    /// Functions of arrays.
    fn array_function(&mut self, name: &str, all: Vec<Bound>) -> Result<Option<Bound>> {
        use ArrayFunction as A;
        use Function as F;
        let parts = match (name, &all[..]) {
            (
                "array_append" | "array_position" | "array_positions" | "array_remove",
                [array, item],
            )
            | ("array_prepend", [item, array]) => vec![(array, true), (item, false)],
            ("array_replace", [array, from, to]) => {
                vec![(array, true), (from, false), (to, false)]
            }
            ("array_cat", [left, right]) => vec![(left, true), (right, true)],
            (_, [array, ..]) => vec![(array, true)],
            (_, []) => return Ok(None),
        };
        let makes_array = matches!(name, "array_append" | "array_prepend" | "array_cat");
        if !makes_array && parts[0].0.ty().is_none() {
            return Ok(None);
        }
        // An array becomes one of the items' type, too, which an argument does not.
        let willing = if parts.len() > 1 { Willing::Explicit } else { Willing::Implicit };
        let Some(element) = common_item(&parts) else { return Ok(None) };
        let own = array_of(element)?;
        let (function, arguments, result): (_, &[Type], _) = match (name, all.len()) {
            ("array_to_string", 2 | 3) => {
                (F::ArrayToString, &[own, Type::Text, Type::Text], Type::Text)
            }
            ("array_upper", 2) => (F::ArrayUpper, &[own, Type::Int4], Type::Int4),
            ("array_lower", 2) => (F::ArrayLower, &[own, Type::Int4], Type::Int4),
            ("array_length", 2) => (F::ArrayLength, &[own, Type::Int4], Type::Int4),
            ("cardinality", 1) => (F::ArrayCount, &[own], Type::Int4),
            ("array_position", 2) => (F::ArrayPosition, &[own, element], Type::Int4),
            ("array_cat", 2) => (F::ArrayConcat, &[own, own], own),
            ("array_append", 2) => (F::ArrayAppend, &[own, element], own),
            ("array_prepend", 2) => (F::ArrayPrepend, &[element, own], own),
            ("array_remove", 2) => (F::ArrayRemove, &[own, element], own),
            ("array_replace", 3) => (F::Array(A::Replace), &[own, element, element], own),
            ("array_positions", 2) => {
                (F::Array(A::Positions), &[own, element], array_of(Type::Int4)?)
            }
            ("array_dims", 1) => (F::Array(A::Dimensions), &[own], Type::Text),
            ("array_ndims", 1) => (F::Array(A::DimensionCount), &[own], Type::Int4),
            ("trim_array", 2) => (F::Array(A::Trim), &[own, Type::Int4], own),
            _ => return Ok(None),
        };
        let pairs = all.into_iter().zip(arguments);
        let all = pairs.map(|(bound, ty)| self.coerce(bound, *ty, willing));
        let all = all.collect::<Result<Vec<_>>>()?;
        self.array_call(function, all, own, result).map(Some)
    }

    /// A call of a function of arrays of type `own`, which puts items to the empty array if it has
    /// NULL.
    fn array_call(
        &mut self,
        function: Function,
        mut all: Vec<Bound>,
        own: Type,
        result: Type,
    ) -> Result<Bound> {
        match function {
            Function::ArrayAppend => all[0] = self.or_empty(all[0].clone(), own)?,
            Function::ArrayPrepend => all[1] = self.or_empty(all[1].clone(), own)?,
            _ => {}
        }
        Ok(pure_call(function, all, result))
    }

    /// An array of a type, or the empty one if it is NULL: what items are put to.
    fn or_empty(&mut self, array: Bound, ty: Type) -> Result<Bound> {
        match array.code[..] {
            [Op::Constant(Value(ref value))] if !value.is_null() => Ok(array),
            _ => {
                let empty = Bound::untyped(Form::Literal("{}".to_owned()), None);
                let empty = self.coerce(empty, ty, Willing::Implicit)?;
                self.coalesce(vec![array, empty])
            }
        }
    }

    /// `||` of an array with an array or an item.
    pub(super) fn array_concat(&mut self, left: Bound, right: Bound) -> Result<Option<Bound>> {
        let is_array = |bound: &Bound| bound.ty().map(|ty| ty.element().is_some());
        let (of_left, of_right) = (is_array(&left), is_array(&right));
        if of_left != Some(true) && of_right != Some(true) {
            return Ok(None);
        }
        // What has no type is an array here.
        let (has_left, has_right) = (of_left.unwrap_or(true), of_right.unwrap_or(true));
        let Some(own) = common_item(&[(&left, has_left), (&right, has_right)]) else {
            return Err(no_operator(&format!("{} || {}", left.type_name(), right.type_name())));
        };
        let all = array_of(own)?;
        let (function, first, second) = match (has_left, has_right) {
            (true, true) => (Function::ArrayConcat, all, all),
            (true, false) => (Function::ArrayAppend, all, own),
            (false, _) => (Function::ArrayPrepend, own, all),
        };
        let left = self.coerce(left, first, Willing::Explicit)?;
        let right = self.coerce(right, second, Willing::Explicit)?;
        self.array_call(function, vec![left, right], all, all).map(Some)
    }
}

/// The type that the items of arrays, and items beside them, have in common: text if none of them
/// has one. `None` if there is none, or what should be an array is not. `parts` says of each
/// whether it is an array.
fn common_item(parts: &[(&Bound, bool)]) -> Option<Type> {
    let mut common = None;
    for (bound, is_array) in parts {
        let Some(ty) = bound.ty() else { continue };
        let item = if *is_array { ty.element()? } else { ty };
        common = Some(common.map_or(Some(item), |before| chosen(before, item))?);
    }
    Some(common.unwrap_or(Type::Text))
}

fn array_of(element: Type) -> Result<Type> {
    element.array().ok_or_else(|| Error::unsupported("an array of arrays", ""))
}

fn call(function: SystemFunction, arguments: Vec<Bound>, ty: Type) -> Bound {
    let count = arguments.len() as u32;
    let mut code: Vec<Op> = arguments.into_iter().flat_map(|bound| bound.code).collect();
    code.push(Op::System(function, count));
    Bound::new(code, Kind::plain(ty))
}
