//! The windows and window functions of a query while it is bound.

use crate::ir::{
    ColumnNumber, Expression, Frame, FrameBound, FrameUnit, Op, QueryNumber, SortKey, Window,
    WindowCall, Windows,
};
use values::{Error, Result, SqlState, Type};

/// The most window functions of a query.
const CALLS_MAX: usize = 1_600;

/// The window functions of a query while it is bound.
#[derive(Default)]
pub(super) struct WindowList {
    /// WINDOW
    pub(super) named: Vec<(String, Spec)>,
    windows: Vec<Window>,
    calls: Vec<WindowCall>,
    pub(super) place: Place,
}

/// Where in a query an expression stands.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// Where no window function may be.
    #[default]
    Before,
    /// Among the columns of the answer, or in its order.
    Columns,
    /// In a window function.
    Call,
    /// In a window.
    Definition,
}

/// A window with its frame.
#[derive(Clone)]
pub(super) struct Spec {
    pub(super) partition: Vec<Expression>,
    pub(super) order: Vec<SortKey>,
    /// The type of the first value of the order.
    pub(super) ordered: Option<Type>,
    pub(super) frame: Frame,
    pub(super) has_frame: bool,
}

impl WindowList {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Their results are columns behind all others of a row; how many those are is known when the
    /// whole query is bound. Until then they are counted from the largest number down.
    pub(super) fn stand_behind(&self, width: usize, code: &mut [Op]) {
        let first = ColumnNumber::MAX - self.calls.len();
        for op in code {
            if let Op::Column(column) = op
                && usize::from(*column) > first
            {
                *column = ColumnNumber::at(width + ColumnNumber::MAX - usize::from(*column));
            }
        }
    }

    /// The functions over the rows of a query, which have so many columns.
    pub(super) fn over(&self, rows: QueryNumber, width: usize) -> Result<Windows> {
        if width + 2 * self.calls.len() > ColumnNumber::MAX {
            let message = "query has too many columns for its window functions";
            return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        Ok(Windows { rows, windows: self.windows.clone(), calls: self.calls.clone() })
    }

    /// The column of a function, and its window's place.
    pub(super) fn add(
        &mut self,
        window: Window,
        call: impl FnOnce(u16) -> WindowCall,
    ) -> Result<Op> {
        let place = match self.windows.iter().position(|other| *other == window) {
            Some(place) => place,
            None => {
                self.windows.push(window);
                self.windows.len() - 1
            }
        };
        let call = call(place as u16);
        let at = match self.calls.iter().position(|other| *other == call) {
            Some(at) => at,
            None if self.calls.len() >= CALLS_MAX => {
                let message = format!("query has more than {CALLS_MAX} window functions");
                return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
            }
            None => {
                self.calls.push(call);
                self.calls.len() - 1
            }
        };
        Ok(Op::Column(ColumnNumber::at(ColumnNumber::MAX - at)))
    }
}

pub(super) fn error(message: impl Into<String>) -> Error {
    Error::new(SqlState::WINDOWING_ERROR, message.into())
}

/// The frame of a window without one: all rows up to the peers of the current one.
pub(super) fn whole() -> Frame {
    Frame {
        unit: FrameUnit::Range(None),
        begin: FrameBound::UnboundedPreceding,
        end: FrameBound::CurrentRow,
    }
}

/// Whether a function is one of windows only.
pub(super) fn is_window_function(name: &str) -> bool {
    matches!(
        name,
        "row_number"
            | "rank"
            | "dense_rank"
            | "percent_rank"
            | "cume_dist"
            | "ntile"
            | "lag"
            | "lead"
            | "first_value"
            | "last_value"
            | "nth_value"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::WindowFunction;

    #[test]
    fn results_stand_behind_all_other_columns() {
        let mut list = WindowList::default();
        let call = |function| {
            move |window| WindowCall { window, function, arguments: Vec::new(), frame: whole() }
        };
        let window = Window { partition: Vec::new(), order: Vec::new() };
        let first = list.add(window.clone(), call(WindowFunction::Rank)).unwrap();
        let second = list.add(window.clone(), call(WindowFunction::RowNumber)).unwrap();
        assert_eq!(list.add(window, call(WindowFunction::Rank)).unwrap(), first);
        let mut code = [first, second, Op::Column(ColumnNumber::at(2))];
        list.stand_behind(3, &mut code);
        assert_eq!(code, [3, 4, 2].map(|at| Op::Column(ColumnNumber::at(at))));
    }
}
