//! Which orders keys have: an order that a statement wants may be that of a key, so that nothing is
//! sorted, and a limit ends the search.

use super::access::Way;
use super::known::Known;
use crate::ir::{Access, Function, KeyColumn, KeyOrder, Op, Relation, SortKey};
use values::{Type, key};

/// An order that a statement wants.
#[derive(Clone, Copy, Default)]
pub(super) struct OrderWish<'s> {
    pub(super) sort: &'s [SortKey],
    /// Whether some of the first rows are enough.
    pub(super) has_limit: bool,
    /// Whether rows count in which the first value is NULL.
    pub(super) has_nulls: bool,
    /// Whether a row of the table may stand in several rows that are sorted.
    pub(super) is_joined: bool,
}

/// Whether all rows have one value where rows are sorted by it.
fn is_constant(known: &Known, key: &SortKey) -> bool {
    let mut all = known.comparisons.iter();
    all.any(|each| each.function == Function::Equal && each.subject == key.value.code)
}

/// The order of a key, if it is the one that is wanted. Rows that are equal by it come in that of
/// the primary key.
pub(super) fn key_order(way: Way<'_>, access: &Access, wish: OrderWish<'_>) -> Option<KeyOrder> {
    let sort: Vec<&SortKey> = wish.sort.iter().filter(|key| !is_constant(way.known, key)).collect();
    let own = way.columns();
    let begin = access.equal.len();
    let mut seen: Vec<&KeyColumn> = own[..begin].iter().collect();
    let (mut is_backward, mut sorted, mut count) = (None, 0, begin);
    let mut first = None;
    for (at, column) in own.iter().chain(way.primary_behind()).enumerate().skip(begin) {
        let way = if at < own.len() { way } else { way.primary() };
        let is_seen = seen.iter().any(|other| other.column == column.column);
        if !is_seen && way.equal(column).is_none() {
            let Some(key) = sort.get(sorted) else { break };
            let has_nulls = wish.has_nulls && way.relation.is_nullable(column);
            let Some(own) = direction(way, column, key, has_nulls) else { break };
            if *is_backward.get_or_insert(own) != own {
                break;
            }
            first = first.or(Some(at));
            sorted += 1;
        }
        seen.push(column);
        count += 1;
    }
    let is_nullable = |column: &KeyColumn| way.relation.is_nullable(column);
    let is_whole = way.is_unique() && count >= own.len() && !own.iter().any(is_nullable);
    let is_satisfied = is_whole && !wish.is_joined
        || is_canonical(way.relation, way.known, sort[sorted..].iter().copied(), wish.is_joined);
    let skips_nulls = !wish.has_nulls && access.among.is_none() && first == Some(begin);
    let columns = u16::try_from(count).ok()?;
    let is_backward = is_backward == Some(true);
    let order = KeyOrder { columns, is_backward, has_nulls: !skips_nulls };
    (sorted > 0 && is_satisfied).then_some(order)
}

/// Whether a column of a key gives an order: `true` if that of its keys is the opposite one.
fn direction(way: Way<'_>, column: &KeyColumn, key: &SortKey, has_nulls: bool) -> Option<bool> {
    if !way.is_of(column, &key.value.code) || !way.is_sorted(column) {
        return None;
    }
    let is_backward = column.descending != key.descending;
    let nulls_fit = (column.nulls_first != key.nulls_first) == is_backward;
    (!has_nulls || nulls_fit).then_some(is_backward)
}

/// Whether rows in canonical order are in this one, too.
pub(super) fn is_canonical<'s>(
    relation: &Relation,
    known: &Known,
    sort: impl IntoIterator<Item = &'s SortKey>,
    is_joined: bool,
) -> bool {
    let mut bytes = crate::ir::ObjectId::BYTES;
    let mut primary = relation.primary.iter();
    let is_equal = |column: &KeyColumn| {
        let code = [Op::Column(column.column)];
        let mut all = known.comparisons.iter();
        all.any(|each| each.function == Function::Equal && each.subject == code)
    };
    for key in sort.into_iter().filter(|key| !is_constant(known, key)) {
        loop {
            // Rows that are equal in the whole key are one.
            let Some(column) = primary.next() else { return !is_joined };
            let ty = relation.key_type(None, column).filter(|ty| *ty != Type::Char);
            // Keys that are cut are in no order.
            let Some(width) = ty.and_then(key::fixed_bytes) else { return false };
            bytes += width + 1;
            if key.value.code == [Op::Column(column.column)] {
                if column.descending != key.descending || bytes > key::KEY_HEAD_BYTES {
                    return false;
                }
                break;
            }
            if !is_equal(column) {
                return false;
            }
        }
    }
    true
}
