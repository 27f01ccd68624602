//! Runs a case and takes its steps and its time.

use super::cases::Case;
use super::large;
use crate::session::Session;
use rustix::time::{ClockId, clock_gettime};
use sql::bind::Options;
use sql::catalog::Catalog;
use sql::ir::Plan;
use sql::parse::parse;
use sql::prepare;
use sql::run::{Context, Limits, Memory, run};
use sql::system::System;
use std::fmt;
use std::sync::Arc;
use values::{Datum, Timestamp};

/// The processor time that a case runs at least.
const MEASURED_NS: u64 = 2_000_000;

/// A case that is planned.
pub(crate) struct Measured {
    text: String,
    plan: Plan,
    context: Context,
}

impl Measured {
    /// The case with values of so many bytes, for each of so many rows.
    pub(crate) fn of(case: &Case, bytes: usize, rows: usize) -> Measured {
        let (mut text, mut parameters) = (case.text.to_owned(), Vec::new());
        if case.is_call() {
            text = format!("SELECT count({text}) FROM generate_series(1, {rows}) AS g(i)");
        }
        text = text.replace("{rows}", &rows.to_string());
        text = text.replace("{bytes}", &bytes.to_string());
        while let Some(begin) = text.find('{') {
            let end = begin + text[begin..].find('}').expect("a name ends");
            let (ty, value) = large::of(&text[begin + 1..end], bytes);
            parameters.push(value);
            text.replace_range(begin..=end, &format!("${}::{ty}", parameters.len()));
        }
        let statements = parse(&text).expect(&text);
        let prepared = prepare(&catalog(), &statements[0], &Options::default());
        let plan = prepared.unwrap_or_else(|error| panic!("{text}: {error}")).plan;
        Measured { text, plan, context: context(parameters) }
    }

    /// How the plan is shown.
    pub(crate) fn plan(&self) -> String {
        format!("{:?}", self.plan)
    }

    /// The steps of a run.
    pub(crate) fn steps(&self) -> u64 {
        let mut memory = Memory::new(u64::MAX);
        let done = run(&self.plan, &self.context, &mut memory);
        match done {
            Ok(_) => memory.steps_done(),
            Err(error) => panic!("{}: {error}", self.text),
        }
    }
}

/// What cases name.
fn catalog() -> Catalog {
    let mut session = Session::new();
    session.run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')").unwrap();
    session.catalog
}

fn context(parameters: Vec<Datum>) -> Context {
    let limits = Limits { memory_bytes_max: 1 << 30, ..Limits::default() };
    let now = Timestamp::parse("2024-02-29 12:00:00").unwrap();
    let session = sql::system::Session { process: 1, ..Default::default() };
    let system =
        System { catalog: Arc::new(catalog()), session: Arc::new(session), services: None };
    Context { parameters, limits, system: Some(Arc::new(system)), ..Context::at(now) }
}

/// What a case costs with values of one size.
pub(crate) struct Cost {
    text: &'static str,
    bytes: usize,
    steps: u64,
    ns: u64,
}

impl Cost {
    /// With small values and with large ones.
    pub(crate) fn of(case: &Case) -> Vec<Cost> {
        case.sizes().map(|(bytes, rows)| Cost::measured(case, bytes, rows)).into()
    }

    fn measured(case: &Case, bytes: usize, rows: usize) -> Cost {
        let measured = Measured::of(case, bytes, rows);
        let (mut steps, began) = (0, thread_ns());
        loop {
            steps += measured.steps();
            let ns = thread_ns() - began;
            if ns >= MEASURED_NS {
                return Cost { text: case.text, bytes, steps, ns };
            }
        }
    }

    /// The time of a step.
    pub(crate) fn step_ns(&self) -> u64 {
        self.ns / self.steps.max(1)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { text, bytes, steps, ns } = self;
        write!(f, "{:8} ns a step ({steps} in {ns} ns) with {bytes} bytes: {text}", self.step_ns())
    }
}

/// The processor time of this thread.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
