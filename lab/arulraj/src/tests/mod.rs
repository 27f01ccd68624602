//! Tests of all engines: against a model, with and without power cuts.

mod crash;
mod history;
mod limits;
mod lines;
mod model;
mod table3;
