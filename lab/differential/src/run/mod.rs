//! Runs scenarios on both servers: fresh stores, steps, contents, a kill, contents again.

mod minimise;
mod scenario;
mod script;
mod servers;
mod steps;

pub(crate) use minimise::minimise;
pub(crate) use scenario::{End, Found, run};
pub(crate) use script::to_psql;
pub(crate) use steps::Forms;
