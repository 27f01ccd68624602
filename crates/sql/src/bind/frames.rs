//! Frames of windows: ROWS, RANGE and GROUPS.

use super::binder::Binder;
use super::coerce::Bound;
use super::kinds::Willing;
use super::shape::has_column;
use super::window_list::error;
use crate::ir::{Expression, Frame, FrameBound, FrameUnit, Kind, SortKey};
use sqlparser::ast::{Expr, WindowFrame, WindowFrameBound as Written, WindowFrameUnits as Units};
use values::{Error, Result, SqlState, Type};

/// The types in which RANGE counts.
#[derive(Clone, Copy)]
struct Distance {
    /// That of the values.
    value: Type,
    /// That of offsets.
    offset: Type,
}

impl Binder<'_> {
    /// The frame of a window with so many values in its order, of which this is the first.
    pub(super) fn frame(
        &mut self,
        tree: &WindowFrame,
        ordered: usize,
        first: Option<(SortKey, Type)>,
    ) -> Result<Frame> {
        let end = tree.end_bound.as_ref().unwrap_or(&Written::CurrentRow);
        check_ends(tree)?;
        let has_offset = [&tree.start_bound, end].iter().any(|bound| {
            matches!(bound, Written::Preceding(Some(_)) | Written::Following(Some(_)))
        });
        let mut distance = None;
        let (unit, name) = match tree.units {
            Units::Rows => (FrameUnit::Rows, "ROWS"),
            Units::Groups if ordered == 0 => {
                return Err(error("GROUPS mode requires an ORDER BY clause"));
            }
            Units::Groups => (FrameUnit::Groups, "GROUPS"),
            Units::Range if !has_offset => (FrameUnit::Range(None), "RANGE"),
            Units::Range => {
                let Some((key, ty)) = first.filter(|_| ordered == 1) else {
                    return Err(error(
                        "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY \
                         column",
                    ));
                };
                let wanted = distance_of(ty)?;
                let value = Bound::new(key.value.code, Kind::plain(ty));
                let value = self.coerce(value, wanted.value, Willing::Implicit)?;
                distance = Some((ty, wanted));
                (FrameUnit::Range(Some(value.expression())), "RANGE")
            }
        };
        let begin = self.frame_bound(&tree.start_bound, name, distance)?;
        Ok(Frame { unit, begin, end: self.frame_bound(end, name, distance)? })
    }

    fn frame_bound(
        &mut self,
        bound: &Written,
        name: &str,
        distance: Option<(Type, Distance)>,
    ) -> Result<FrameBound> {
        Ok(match bound {
            Written::CurrentRow => FrameBound::CurrentRow,
            Written::Preceding(None) => FrameBound::UnboundedPreceding,
            Written::Following(None) => FrameBound::UnboundedFollowing,
            Written::Preceding(Some(offset)) => {
                FrameBound::Preceding(self.frame_offset(offset, name, distance)?)
            }
            Written::Following(Some(offset)) => {
                FrameBound::Following(self.frame_offset(offset, name, distance)?)
            }
        })
    }

    fn frame_offset(
        &mut self,
        expr: &Expr,
        name: &str,
        distance: Option<(Type, Distance)>,
    ) -> Result<Expression> {
        let bound = self.expression(expr)?;
        if has_column(&bound.code) || !self.is_movable(&bound.code) {
            let message = format!("argument of {name} must not contain variables");
            return Err(
                Error::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(self.position(expr))
            );
        }
        let Some((ty, wanted)) = distance else {
            return Ok(self.coerce(bound, Type::Int8, Willing::Assignment)?.expression());
        };
        let own = bound.ty();
        if own.is_some_and(|own| own != wanted.offset && !own.is_number())
            || ty.is_integer() && own.is_some_and(|own| !own.is_integer())
            || own.is_some_and(|own| own.is_number() != wanted.offset.is_number())
        {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and \
                 offset type {}",
                ty.name(),
                bound.type_name()
            );
            let hint = "Cast the offset value to an appropriate type.";
            return Err(Error::unsupported(message, hint).at(self.position(expr)));
        }
        Ok(self.coerce(bound, wanted.offset, Willing::Assignment)?.expression())
    }
}

/// In which types distances from a value are counted. Whole numbers are counted where nothing
/// overflows.
fn distance_of(ty: Type) -> Result<Distance> {
    let (value, offset) = match ty {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric => (Type::Numeric, Type::Numeric),
        Type::Float4 | Type::Float8 => (Type::Float8, Type::Float8),
        Type::Date | Type::Timestamp => (Type::Timestamp, Type::Interval),
        Type::Timestamptz => (Type::Timestamptz, Type::Interval),
        Type::Interval => (Type::Interval, Type::Interval),
        ty => {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                ty.name()
            );
            return Err(Error::unsupported(message, ""));
        }
    };
    Ok(Distance { value, offset })
}

/// Refuses frames that end before they begin, whatever the offsets.
fn check_ends(tree: &WindowFrame) -> Result<()> {
    use Written::{CurrentRow, Following, Preceding};
    let message = match (&tree.start_bound, &tree.end_bound) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, Some(Preceding(None))) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Some(Preceding(_))) => {
            "frame starting from current row cannot have preceding rows"
        }
        (Following(_), None) => "frame starting from following row cannot end with current row",
        (Following(_), Some(CurrentRow | Preceding(_))) => {
            "frame starting from following row cannot have preceding rows"
        }
        _ => return Ok(()),
    };
    Err(error(message))
}
