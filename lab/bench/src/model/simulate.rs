//! An epoch of an engine, whichever it is.

use super::costs::Costs;
use super::engines::{Engine, Simulated};
use super::shape::{Access, Shape};
use super::{locks, partitions, versions};

/// Simulates an epoch.
///
/// # Panics
/// If there is no core.
pub(super) fn simulate(engine: Engine, shape: &Shape, costs: &Costs, cores: usize) -> Simulated {
    assert!(cores > 0, "an epoch needs a core");
    let used = if engine == Engine::Serial { 1 } else { cores };
    let mut simulated = match engine {
        Engine::Serial => serial(shape, costs),
        Engine::Versions(versions) => versions::simulate(versions, shape, costs, cores),
        Engine::Granola => partitions::in_order(shape, costs, cores),
        Engine::Pwv => partitions::by_graph(shape, costs, cores),
        Engine::Calvin => locks::simulate(shape, costs, cores),
    };
    let lines = |access: &Access| match access.writes() {
        true => 2 * access.lines,
        false => access.lines,
    };
    let lines: f64 = shape.calls.iter().flatten().map(|access| f64::from(lines(access))).sum();
    simulated.execute_ns =
        simulated.execute_ns.max(costs.memory_ns(lines, shape.accesses() as f64, used));
    if engine != Engine::Serial {
        simulated.control_ns += 2.0 * costs.barrier_ns(cores);
        simulated.execute_ns += costs.barrier_ns(cores);
    }
    simulated
}

fn serial(shape: &Shape, costs: &Costs) -> Simulated {
    let execute_ns = shape.accesses() as f64 * costs.execute_ns;
    Simulated { execute_ns, ..Simulated::default() }
}
