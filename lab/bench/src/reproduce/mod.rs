//! The figures of the papers, made again: which runs show what a figure shows, what they came to,
//! and which of the paper's statements that bears out.
//!
//! A figure is a scenario file (`lab/bench/scenarios`): workloads, series, statements and rules
//! that judge them. `scenario` reads them, `plan` names the runs, `data` keeps what runs came to,
//! `numbers` has ours of each statement, `verdict` judges it, `report` puts all of it together,
//! `svg` and `html` show it.
//!
//! Every run is a `bench` command in a process of its own. Nothing here starts a process or reads a
//! clock: the caller that does makes the runs in the order of [`Plan::runs`] and keeps their
//! results as [`Recorded`] lines.

mod data;
mod html;
mod machine;
mod numbers;
mod papers;
mod plan;
mod report;
mod scale;
mod scenario;
mod statement;
mod svg;
mod verdict;

#[cfg(test)]
mod tests;

pub use crate::cost::Price;
pub use data::{Found, Outcome, Recorded, Session};
pub use html::render as render_html;
pub use machine::Machine;
pub use plan::{Plan, Run};
pub use report::{ReproduceReport, report};
pub use scale::Scale;
pub use scenario::{FIGURES, Suite, figures_named};
