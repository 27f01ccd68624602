//! Engines whose cores own parts of the rows: Granola and PWV.

use super::costs::Costs;
use super::engines::{Cores, Simulated};
use super::shape::{Access, Kind, Shape};

/// Deals pieces to their partitions, in serial order. Each core deals its share of the calls, so
/// that takes as long on each.
fn deal(shape: &Shape, costs: &Costs, cores: usize, simulated: &mut Simulated) {
    let accesses = shape.accesses() as f64;
    let from_others = accesses * (cores - 1) as f64 / cores as f64;
    simulated.messages += from_others as u64;
    let control_ns = costs.control_ns + costs.append_ns;
    simulated.control_ns =
        (accesses * control_ns + from_others * costs.message_ns()) / cores as f64;
}

/// Whether each access of a call can run for itself.
fn is_cut(call: &[Access]) -> bool {
    call.iter().all(|access| access.kind == Kind::Piece)
}

fn core_of(access: &Access, cores: usize) -> usize {
    (access.home % cores as u64) as usize
}

/// The partitions of a call, each once.
fn parts(call: &[Access], cores: usize) -> Vec<usize> {
    let mut parts: Vec<usize> = call.iter().map(|access| core_of(access, cores)).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// Granola: each core runs its pieces in serial order. The cores of a call that cannot be cut meet,
/// and wait until one of them has run it.
pub(super) fn in_order(shape: &Shape, costs: &Costs, cores: usize) -> Simulated {
    let mut simulated = Simulated::default();
    deal(shape, costs, cores, &mut simulated);
    let mut clocks = Cores::new(cores);
    for call in &shape.calls {
        if is_cut(call) {
            for access in call {
                clocks.0[core_of(access, cores)] += costs.execute_ns;
            }
            continue;
        }
        let parts = parts(call, cores);
        if parts.is_empty() {
            continue;
        }
        let begin = parts.iter().map(|part| clocks.0[*part]).fold(0.0, f64::max);
        let end = begin + whole(call, costs, cores, &parts, &mut simulated);
        for part in parts {
            simulated.waited_ns += begin - clocks.0[part];
            clocks.0[part] = end;
        }
    }
    simulated.execute_ns = clocks.end();
    simulated
}

/// How long a call runs that cannot be cut: on the first of its partitions, to which the values of
/// the others come and from which they return.
fn whole(
    call: &[Access],
    costs: &Costs,
    cores: usize,
    parts: &[usize],
    simulated: &mut Simulated,
) -> f64 {
    let run_ns = call.len() as f64 * costs.execute_ns;
    let away = call.iter().filter(|access| core_of(access, cores) != parts[0]);
    let moved = away.map(|access| {
        simulated.hand_overs += 1;
        costs.value_ns(access.lines)
    });
    run_ns + moved.sum::<f64>() + (parts.len() - 1) as f64 * costs.line_ns
}

/// PWV: a piece runs when those before it on its row have, so a call that waits stops no others. As
/// cores fill such gaps with other pieces, the epoch takes as long as the busiest core works or the
/// longest chain of pieces lasts, whichever is more: no schedule is shorter.
pub(super) fn by_graph(shape: &Shape, costs: &Costs, cores: usize) -> Simulated {
    let mut simulated = Simulated::default();
    deal(shape, costs, cores, &mut simulated);
    let mut busy = Cores::new(cores);
    let mut ready = vec![0.0_f64; shape.rows];
    for call in &shape.calls {
        if is_cut(call) {
            for access in call {
                busy.0[core_of(access, cores)] += costs.execute_ns;
                ready[access.row as usize] += costs.execute_ns;
            }
            continue;
        }
        let parts = parts(call, cores);
        let Some(&first) = parts.first() else { continue };
        let lasts = whole(call, costs, cores, &parts, &mut simulated);
        busy.0[first] += lasts;
        let begin = call.iter().map(|access| ready[access.row as usize]).fold(0.0, f64::max);
        for access in call.iter().filter(|access| access.writes()) {
            ready[access.row as usize] = begin + lasts;
        }
    }
    let chain = ready.into_iter().fold(0.0, f64::max);
    simulated.execute_ns = busy.end().max(chain);
    simulated
}
