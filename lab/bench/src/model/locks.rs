//! Calvin: one core requests the locks of all calls in their order, the others run what has its
//! locks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::costs::Costs;
use super::engines::{Cores, Simulated};
use super::shape::Shape;

/// Calls and what they wait for.
struct Waiting {
    /// Calls that want a lock which this one has, in order.
    behind: Vec<Vec<u32>>,
    /// How many calls each one waits for.
    missing: Vec<u32>,
    /// When all that a call waited for until now was there.
    since: Vec<f64>,
}

impl Waiting {
    /// Who waits for whom: a writer for the readers since the last writer or, if there are none,
    /// for that one; a reader for the last writer.
    fn new(shape: &Shape) -> Self {
        let count = shape.calls.len();
        let mut behind = vec![Vec::new(); count];
        let mut missing = vec![0_u32; count];
        let mut writers: Vec<Option<u32>> = vec![None; shape.rows];
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); shape.rows];
        for (call, accesses) in shape.calls.iter().enumerate() {
            let call = call as u32;
            for access in accesses {
                let row = access.row as usize;
                let mut before: Vec<u32> = writers[row].into_iter().collect();
                if access.writes() {
                    before.append(&mut readers[row]);
                    writers[row] = Some(call);
                } else {
                    readers[row].push(call);
                }
                for other in before {
                    behind[other as usize].push(call);
                    missing[call as usize] += 1;
                }
            }
        }
        Self { behind, missing, since: vec![0.0; count] }
    }
}

pub(super) fn simulate(shape: &Shape, costs: &Costs, cores: usize) -> Simulated {
    let mut simulated = Simulated::default();
    let lock_ns = costs.control_ns + costs.append_ns;
    let mut requested = 0.0;
    let mut waiting = Waiting::new(shape);
    let mut ready = BinaryHeap::new();
    for (call, accesses) in shape.calls.iter().enumerate() {
        requested += accesses.len() as f64 * lock_ns;
        waiting.since[call] = requested;
        if waiting.missing[call] == 0 {
            ready.push(Reverse(Ready(requested, call as u32)));
        }
    }
    // A single core does both by turns: it requests everything first, which takes as long. Nothing
    // comes from another core then.
    let (message_ns, line_ns) = match cores {
        1 => (0.0, 0.0),
        _ => (costs.message_ns(), costs.line_ns),
    };
    let mut clocks = Cores::new(cores.saturating_sub(1).max(1));
    if cores == 1 {
        clocks.0[0] = requested;
    }
    while let Some(Reverse(Ready(at, call))) = ready.pop() {
        let core = clocks.first_free();
        simulated.waited_ns += (at - clocks.0[core]).max(0.0);
        simulated.messages += 1;
        let accesses = shape.calls[call as usize].len() as f64;
        let end = clocks.0[core].max(at) + message_ns + accesses * costs.execute_ns;
        clocks.0[core] = end;
        for behind in std::mem::take(&mut waiting.behind[call as usize]) {
            let behind_at = behind as usize;
            simulated.hand_overs += 1;
            let since = &mut waiting.since[behind_at];
            *since = since.max(end + line_ns);
            waiting.missing[behind_at] -= 1;
            if waiting.missing[behind_at] == 0 {
                ready.push(Reverse(Ready(*since, behind)));
            }
        }
    }
    simulated.execute_ns = clocks.end();
    simulated
}

/// A call that has its locks since then. The earliest is the least, then the first.
#[derive(Debug, Clone, Copy)]
struct Ready(f64, u32);

impl Ord for Ready {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ready {}
